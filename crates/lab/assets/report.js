"use strict";
(() => {
  const root = document.documentElement;
  const sections = JSON.parse(document.getElementById("data").textContent);
  const DASHES = [[], [9, 4], [2, 3], [11, 3, 2, 3], [5, 3], [16, 4], [2, 6], [8, 3, 2, 3, 2, 3]];
  const STYLES = 8;
  const plots = [];

  const colour = style => style < 0 ? "var(--capacity)" : `var(--c${style % STYLES})`;
  // Canvases know no CSS variables: the value in force, looked up at each drawing.
  const resolved = style => getComputedStyle(root).getPropertyValue(style < 0 ? "--capacity" : `--c${style % STYLES}`).trim();
  const variable = name => getComputedStyle(root).getPropertyValue(name).trim();
  const dash = style => style < 0 ? [] : DASHES[style % STYLES];

  const element = (tag, attributes = {}, ...children) => {
    const e = document.createElement(tag);
    for (const [k, v] of Object.entries(attributes)) k === "class" ? e.className = v : e.setAttribute(k, v);
    e.append(...children);
    return e;
  };
  const paint = line => {
    const style = Number(line.dataset.style);
    line.style.stroke = colour(style);
    line.style.strokeDasharray = dash(style).join(" ");
  };
  const key = style => {
    const ns = "http://www.w3.org/2000/svg";
    const svg = document.createElementNS(ns, "svg"), line = document.createElementNS(ns, "line");
    for (const [k, v] of [["width", 28], ["height", 10], ["class", "key"], ["aria-hidden", "true"]]) svg.setAttribute(k, v);
    for (const [k, v] of [["x1", 1], ["y1", 5], ["x2", 27], ["y2", 5]]) line.setAttribute(k, v);
    line.dataset.style = style;
    paint(line);
    svg.append(line);
    return svg;
  };
  document.querySelectorAll("line[data-style]").forEach(paint);

  const number = (v, decimals) => v.toLocaleString("en", { minimumFractionDigits: decimals, maximumFractionDigits: decimals, useGrouping: "min2" }).replaceAll(",", "\u202f");
  const decimals = scale => scale >= 1 ? 0 : Math.min(3, Math.round(-Math.log10(scale)));

  function tooltip(chart) {
    const tip = element("div", { class: "tip", hidden: "" });
    return {
      hooks: {
        init: u => u.over.append(tip),
        setCursor: u => {
          const { idx, left, top } = u.cursor;
          // Only the plot under the pointer tells values; the others show the line alone.
          if (idx == null || left < 0 || !u.over.matches(":hover")) { tip.hidden = true; return; }
          const rows = chart.lines.map((line, i) => [line, u.data[i + 1][idx], u.series[i + 1].show])
            .filter(([, v, show]) => show && v != null)
            .map(([line, v]) => element("div", {}, key(line.style), line.label, element("b", {}, number(v, decimals(line.scale)))));
          tip.replaceChildren(element("div", {}, `${number(u.data[0][idx], 1)} s`), ...rows);
          tip.hidden = false;
          const right = left > u.over.clientWidth / 2;
          tip.style.left = right ? "auto" : `${left + 14}px`;
          tip.style.right = right ? `${u.over.clientWidth - left + 14}px` : "auto";
          tip.style.top = `${Math.max(0, Math.min(top - 10, u.over.clientHeight - tip.offsetHeight))}px`;
        },
      },
    };
  }

  function draw(chart, host, zoom) {
    const points = Math.max(...chart.lines.map(l => l.v.length));
    const x = Array.from({ length: points }, (_, i) => +(chart.t0 + i * chart.dt).toFixed(3));
    const data = [x, ...chart.lines.map(l => x.map((_, i) => l.v[i] == null ? null : l.v[i] * l.scale))];
    const axis = { stroke: () => variable("--soft"), font: "12px system-ui, sans-serif", grid: { stroke: () => variable("--grid"), width: 1 },
      ticks: { stroke: () => variable("--rule"), width: 1, size: 5 } };
    const width = () => Math.max(240, host.clientWidth);
    const u = new uPlot({
      width: width(), height: host.clientHeight, legend: { show: false }, plugins: [tooltip(chart)],
      cursor: { sync: { key: zoom.key, setSeries: false }, y: false, points: { size: 6 }, drag: { x: true, y: false } },
      // The first point ends an interval that begins at 0, so the axis does too.
      scales: { x: { time: false, range: (_, min, max) => [min <= x[0] ? 0 : min, max] }, y: { range: (_, min, max) => [0, chart.max ?? (max > 0 ? max * 1.06 : 1)] } },
      axes: [
        { ...axis, values: (_, ticks) => ticks.map(t => number(t, t % 1 ? 1 : 0)), label: "Time, s", labelSize: 20, labelFont: "12px system-ui, sans-serif", size: 34 },
        { ...axis, values: (_, ticks) => ticks.map(t => number(t, t % 1 ? (t * 10 % 1 ? 2 : 1) : 0)), size: 56 },
      ],
      series: [{}, ...chart.lines.map(line => line.style < 0
        ? { label: line.label, stroke: () => resolved(-1), fill: () => variable("--fill"), width: 1.5, points: { show: false }, paths: uPlot.paths.stepped({ align: -1 }) }
        : { label: line.label, stroke: () => resolved(line.style), fill: chart.stacked ? () => resolved(line.style) + "55" : undefined, width: chart.stacked ? 1 : 1.8, dash: chart.stacked ? [] : dash(line.style), points: { show: false }, spanGaps: false })],
      hooks: {
        setScale: [(self, name) => {
          if (name !== "x" || zoom.busy || self.status === 0) return;
          zoom.busy = true;
          const { min, max } = self.scales.x;
          zoom.plots.forEach(p => p !== self && p.setScale("x", { min, max }));
          zoom.busy = false;
          zoom.reset.hidden = min <= x[0] && max >= x[points - 1] - 1e-6;
        }],
      },
    }, data, host);
    zoom.plots.push(u);
    plots.push({ u, figure: host.parentElement });
    new ResizeObserver(() => {
      if (Math.abs(u.width - width()) > 1 || u.height !== host.clientHeight) u.setSize({ width: width(), height: host.clientHeight });
    }).observe(host);
    return u;
  }

  // At most 41 rows: enough to follow a line by ear, short enough to read.
  function dataTable(charts) {
    const details = element("details", {}, element("summary", {}, "Data as a table"));
    details.addEventListener("toggle", () => {
      if (!details.open || details.dataset.done) return;
      details.dataset.done = "1";
      for (const chart of charts) {
        const n = Math.max(...chart.lines.map(l => l.v.length)), step = Math.max(1, Math.ceil(n / 40));
        const head = element("tr", {}, element("th", { scope: "col" }, "Time, s"), ...chart.lines.map(l => element("th", { scope: "col" }, l.label)));
        const body = element("tbody");
        for (let i = 0; i < n; i += step) {
          body.append(element("tr", {}, element("th", { scope: "row" }, number(chart.t0 + i * chart.dt, 1)),
            ...chart.lines.map(l => element("td", {}, l.v[i] == null ? "–" : number(l.v[i] * l.scale, decimals(l.scale))))));
        }
        const title = chart.title + (chart.unit ? `, ${chart.unit}` : "");
        details.append(element("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": title },
          element("table", {}, element("caption", {}, title), element("thead", {}, head), body)));
      }
    });
    return details;
  }

  function describe(chart) {
    const parts = chart.lines.filter(l => l.style >= 0).map(l => {
      const v = l.v.filter(x => x != null);
      if (!v.length) return `${l.label}: no values`;
      const d = decimals(l.scale), mean = v.reduce((a, b) => a + b, 0) / v.length * l.scale;
      return `${l.label}: mean ${number(mean, d)}, highest ${number(v.reduce((a, b) => Math.max(a, b)) * l.scale, d)}`;
    });
    return `Line plot over time. ${chart.title}${chart.unit ? `, ${chart.unit}` : ""}. ${parts.join("; ")}.`;
  }

  document.querySelectorAll(".charts").forEach(host => {
    const index = Number(host.dataset.section);
    const reset = element("button", { type: "button", class: "reset", hidden: "" }, "Reset zoom");
    const zoom = { key: `section${index}`, plots: [], busy: false, reset };
    reset.addEventListener("click", () => {
      zoom.busy = true;
      zoom.plots.forEach(u => u.setScale("x", { min: u.data[0][0], max: u.data[0][u.data[0].length - 1] }));
      zoom.busy = false;
      reset.hidden = true;
    });
    sections[index].groups.forEach((group, g) => {
      const lines = new Map();
      group.charts.forEach(c => c.lines.forEach(l => lines.has(l.label) || lines.set(l.label, l.style)));
      const own = [];
      const legend = element("div", { class: "legend", role: "group", "aria-label": `Lines: ${group.title}` });
      for (const [label, style] of lines) {
        const button = element("button", { type: "button", "aria-pressed": "true" }, key(style), label);
        button.addEventListener("click", () => {
          const show = button.getAttribute("aria-pressed") !== "true";
          button.setAttribute("aria-pressed", String(show));
          own.forEach(({ u, chart }) => chart.lines.forEach((l, i) => l.label === label && u.setSeries(i + 1, { show })));
        });
        legend.append(button);
      }
      const head = element("div", { class: "group-head" }, element("h3", {}, group.title), legend);
      if (g === 0) head.append(reset);
      const wide = sections[index].groups.length === 1, small = group.charts.length - (wide ? 1 : 0);
      const grid = element("div", { class: small % 3 === 0 && small % 2 === 1 ? "grid three" : "grid" });
      const box = element("div", { class: "group" }, head, grid, dataTable(group.charts));
      host.append(box);
      group.charts.forEach((chart, i) => {
        const first = wide && i === 0;
        const figure = element("figure", { class: first ? "wide" : "", "aria-label": describe(chart), role: "group" },
          element("figcaption", {}, chart.title, ...(chart.unit ? [element("span", { class: "unit" }, chart.unit)] : [])));
        const plot = element("div", { class: "plot" });
        figure.append(plot);
        grid.append(figure);
        own.push({ u: draw(chart, plot, zoom), chart });
      });
    });
  });

  const redraw = () => plots.forEach(({ u }) => u.redraw(false, true));
  const setTheme = theme => {
    root.dataset.theme = theme;
    document.querySelectorAll("[data-set-theme]").forEach(b => b.setAttribute("aria-pressed", String(b.dataset.setTheme === theme)));
    redraw();
  };
  document.querySelectorAll("[data-set-theme]").forEach(b => b.addEventListener("click", () => {
    setTheme(b.dataset.setTheme);
    // A file opened from disk may have no storage.
    try { localStorage.setItem("weir-theme", b.dataset.setTheme); } catch { }
  }));
  let stored = null;
  try { stored = localStorage.getItem("weir-theme"); } catch { }
  const asked = /[#&]theme=(light|dark)/.exec(location.hash);
  setTheme(asked ? asked[1] : stored ?? "auto");
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redraw);
  addEventListener("beforeprint", redraw);
  addEventListener("afterprint", redraw);

  // With #check in the address, tells for each plot how many of its pixels have the colour of one of its lines.
  if (location.hash.includes("check")) setTimeout(() => {
    for (const { u, figure } of plots) {
      const { width, height } = u.ctx.canvas, seen = u.ctx.getImageData(0, 0, width, height).data;
      const wanted = u.series.slice(1).map(s => {
        const c = element("canvas", { width: 1, height: 1 }).getContext("2d");
        c.fillStyle = typeof s.stroke === "function" ? s.stroke(u) : s.stroke;
        c.fillRect(0, 0, 1, 1);
        return c.getImageData(0, 0, 1, 1).data;
      });
      const counts = wanted.map(() => 0);
      for (let i = 0; i < seen.length; i += 4) {
        if (seen[i + 3] < 200) continue;
        wanted.forEach((c, k) => {
          if (Math.abs(seen[i] - c[0]) + Math.abs(seen[i + 1] - c[1]) + Math.abs(seen[i + 2] - c[2]) < 24) counts[k]++;
        });
      }
      figure.dataset.drawn = counts.join(" ");
    }
    root.dataset.checked = plots.length;
  }, 300);
})();
