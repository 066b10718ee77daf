// Plots over time: one run in full, or all runs as median and band.
const plots = [];

// Where a value of one grid lies in another: the point whose interval holds the time.
const resample = (values, from, x) => x.map(t => values[Math.min(values.length - 1, Math.max(0, Math.ceil(t / from.dt - 1e-6) - 1))] ?? null);
const grid = (t0, dt, points) => Array.from({ length: points }, (_, i) => +(t0 + i * dt).toFixed(3));

// The first point ends an interval, with whose begin the axis begins: 0, or that of a window.
const beginOf = x => x.length > 1 ? Math.max(0, +(2 * x[0] - x[1]).toFixed(3)) : 0;

// What a chart shows of "all" runs or of a seed: times, and for each line its values and, for all runs, its band.
function viewOf(chart, runs, first) {
  const scaled = line => line.v.map(v => v == null ? null : v * line.scale);
  const withRuns = chart.lines.filter(l => l.all);
  if (!withRuns.length || runs === first) {
    const x = grid(chart.t0, chart.dt, Math.max(...chart.lines.map(l => l.v.length)));
    return { x, isBand: false, one: withRuns.length ? null : first, lines: chart.lines.map(l => ({ ...l, values: scaled(l) })) };
  }
  const x = grid(chart.all_dt, chart.all_dt, Math.max(...withRuns.flatMap(l => l.all.v.map(v => v.length))));
  const lines = chart.lines.map(l => {
    if (!l.all) return { ...l, values: resample(scaled(l), chart, x) };
    if (runs === "all") {
      const [values, low, high] = bandOf(l.all, l.scale);
      return { ...l, values, low, high };
    }
    const run = l.all.v[l.all.seeds.indexOf(runs)];
    return { ...l, values: x.map((_, i) => run?.[i] == null ? null : run[i] * l.scale) };
  });
  return { x, isBand: runs === "all", runs: Math.max(...withRuns.map(l => l.all.runs)), one: null, lines };
}

// Where a plot ends so that a few spikes do not flatten the rest; null where nothing is clipped.
function clipOf(chart, view) {
  if (chart.max != null || chart.stacked) return null;
  // Zeros say nothing of how high spikes are: with few losses they would be all that is within the axis.
  const values = view.lines.filter(l => l.style >= 0).flatMap(l => [...l.values, ...(l.high ?? [])]).filter(v => v > 0).sort((a, b) => a - b);
  const capacity = Math.max(0, ...view.lines.filter(l => l.style < 0).flatMap(l => l.values).filter(v => v != null));
  if (!values.length) return null;
  const most = quantile(values, 0.95) * 1.4, highest = values[values.length - 1];
  return most > 0 && highest > 1.8 * most && highest > capacity * 1.5 ? { at: Math.max(most, capacity * 1.06), highest } : null;
}
function bounds(chart, view, clip) {
  const values = view.lines.flatMap(l => [...l.values, ...(l.high ?? [])]).filter(v => v != null);
  const [low, high] = values.reduce(([a, b], v) => [Math.min(a, v), Math.max(b, v)], [Infinity, 0]);
  const bottom = chart.unit === "dB" && Number.isFinite(low) ? Math.floor(low) - 1 : 0;
  return [bottom, clip?.at ?? chart.max ?? (high > 0 ? high * 1.06 : 1)];
}
const tickText = v => number(v, v % 1 ? (v * 10 % 1 ? 2 : 1) : 0);

// Texts of a point's interval, the first of them.
function notesAt(chart, view, idx) {
  const end = view.x[idx], begin = end - chart.dt, all = chart.notes.filter(([t]) => t > begin - 1e-9 && t <= end - 1e-9);
  const shown = all.slice(0, 10).map(([, text]) => element("div", {}, text));
  return all.length > 10 ? [...shown, element("div", {}, `and ${all.length - 10} more`)] : shown;
}

function tooltip(chart, view) {
  const tip = element("div", { class: "tip", hidden: "" });
  return {
    hooks: {
      init: u => u.over.append(tip),
      setCursor: u => {
        const { idx, left, top } = u.cursor;
        // Only the plot under the pointer shows values; the others show the line alone.
        if (idx == null || left < 0 || !u.over.matches(":hover")) { tip.hidden = true; return; }
        const rows = view.lines.filter((l, i) => l.values[idx] != null && u.series[u.places[i]].show).map(l => {
          const d = decimals(l.scale), range = l.low ? ` (${number(l.low[idx], d)} to ${number(l.high[idx], d)})` : "";
          return element("div", {}, key(l.style), l.label, element("b", {}, number(l.values[idx], d) + range));
        });
        tip.replaceChildren(element("div", {}, `${number(u.data[0][idx], 1)} s`), ...rows, ...(chart.notes ? notesAt(chart, view, idx) : []));
        tip.hidden = false;
        const right = left > u.over.clientWidth / 2;
        tip.style.left = right ? "auto" : `${left + 14}px`;
        tip.style.right = right ? `${u.over.clientWidth - left + 14}px` : "auto";
        tip.style.top = `${Math.max(0, Math.min(top - 10, u.over.clientHeight - tip.offsetHeight))}px`;
      },
    },
  };
}

// Triangles at the upper edge, in the line's colour, where it goes on beyond it.
function clipMarks(u, view, clip) {
  if (!clip) return;
  const { ctx, bbox } = u, size = 5 * devicePixelRatio;
  view.lines.forEach((l, i) => {
    if (l.style < 0 || !u.series[u.places[i]].show) return;
    let last = -Infinity;
    ctx.fillStyle = resolved(l.style);
    l.values.forEach((v, at) => {
      const beyond = Math.max(v ?? 0, l.high?.[at] ?? 0) > clip.at, x = u.valToPos(view.x[at], "x", true);
      if (!beyond || x - last < size || x < bbox.left || x > bbox.left + bbox.width) return;
      last = x;
      ctx.beginPath();
      ctx.moveTo(x - size, bbox.top + size * 1.4);
      ctx.lineTo(x + size, bbox.top + size * 1.4);
      ctx.lineTo(x, bbox.top);
      ctx.fill();
    });
  });
}

function draw(chart, view, clip, host, zoom) {
  const { x } = view, series = [{}], columns = [x], bands = [], places = [];
  for (const l of view.lines) {
    places.push(series.length);
    columns.push(l.values);
    series.push(l.style < 0
      ? { label: l.label, stroke: () => resolved(-1), fill: () => variable("--fill"), width: 1.5, points: { show: false }, paths: uPlot.paths.stepped({ align: -1 }) }
      : { label: l.label, stroke: () => resolved(l.style), fill: chart.stacked ? () => faint(l.style, "55") : undefined, width: chart.stacked ? 1 : 1.8, dash: chart.stacked ? [] : dash(l.style), points: { show: false }, spanGaps: false });
    if (!l.low) continue;
    bands.push({ series: [series.length, series.length + 1], fill: () => faint(l.style, "2e") });
    for (const edge of [l.high, l.low]) {
      columns.push(edge);
      series.push({ label: l.label, stroke: "transparent", width: 0, points: { show: false } });
    }
  }
  const axis = { stroke: () => variable("--soft"), font: `12px ${FONT}`, grid: { stroke: () => variable("--grid"), width: 1 }, ticks: { stroke: () => variable("--rule"), width: 1, size: 5 } };
  const width = () => Math.max(240, host.clientWidth);
  const u = new uPlot({
    width: width(), height: host.clientHeight, legend: { show: false }, plugins: [tooltip(chart, view)], bands,
    cursor: { sync: { key: zoom.key, setSeries: false }, y: false, points: { size: 6 }, drag: { x: true, y: false } },
    scales: { x: { time: false, range: (_, min, max) => [min <= x[0] ? beginOf(x) : min, max] }, y: { range: () => bounds(chart, view, clip) } },
    axes: [
      { ...axis, values: (_, ticks) => ticks.map(t => number(t, t % 1 ? 1 : 0)), label: "Time, s", labelSize: 20, labelFont: `12px ${FONT}`, size: 34 },
      { ...axis, values: (_, ticks) => ticks.map(tickText), size: 56 },
    ],
    series,
    hooks: {
      draw: [self => clipMarks(self, view, clip)],
      setScale: [(self, name) => {
        if (name !== "x" || zoom.busy || self.status === 0) return;
        zoom.busy = true;
        const { min, max } = self.scales.x;
        zoom.plots.forEach(p => p !== self && p.setScale("x", { min, max }));
        zoom.busy = false;
        zoom.reset.hidden = min <= x[0] && max >= x[x.length - 1] - 1e-6;
      }],
    },
  }, columns, host);
  u.places = places;
  return u;
}

// The same plot as a drawing of its own, for SVG and PNG.
function drawing(chart, view, clip, title, hidden) {
  const lines = view.lines.filter(l => !hidden.has(l.label)), [low, high] = bounds(chart, view, clip);
  const at = view.x.map((_, i) => i), x = i => view.x[i];
  const beyond = l => at.filter(i => Math.max(l.values[i] ?? 0, l.high?.[i] ?? 0) > high);
  const svg = Plot.plot({
    width: 760, height: 340, marginLeft: 56, marginBottom: 40, marginTop: 14,
    style: { background: "none", color: "var(--soft)", fontSize: "12px", fontFamily: FONT },
    x: { domain: [beginOf(view.x), view.x[view.x.length - 1]], label: "Time, s", labelArrow: "none", labelAnchor: "center" },
    y: { domain: [low, high], label: null, grid: true },
    marks: lines.flatMap(l => l.style < 0
      ? [Plot.areaY(at, { x, y1: 0, y2: i => l.values[i], curve: "step-before", fill: "var(--fill)" }), Plot.lineY(at, { x, y: i => l.values[i], curve: "step-before", stroke: "var(--capacity)" })]
      : [l.low && Plot.areaY(at, { x, y1: i => l.low[i], y2: i => l.high[i], fill: colour(l.style), fillOpacity: 0.18, clip: true }),
        Plot.lineY(at, { x, y: i => l.values[i] ?? NaN, stroke: colour(l.style), strokeWidth: 1.8, strokeDasharray: dash(l.style).join(" ") || "none", clip: true }),
        clip && Plot.dot(beyond(l), { x, y: high, symbol: "triangle", r: 3, dy: 4, fill: colour(l.style) })].filter(Boolean)),
  });
  return standalone(svg, title, lines);
}

function tableOf(chart, view) {
  const head = ["time_s"], columns = [];
  const add = (name, values) => { head.push(column(name, chart.unit)); columns.push(values); };
  view.lines.forEach((l, i) => {
    add(l.low ? `${l.label} median` : l.label, l.values);
    if (!l.low) return;
    add(`${l.label} low`, l.low);
    add(`${l.label} high`, l.high);
    const { all, scale } = chart.lines[i];
    all.seeds.forEach((seed, k) => add(`${l.label} seed ${seed}`, all.v[k].map(v => v == null ? null : v * scale)));
  });
  return [head, ...view.x.map((t, i) => [t, ...columns.map(c => c[i])])];
}

function describe(chart, view) {
  const parts = view.lines.filter(l => l.style >= 0).map(l => {
    const v = l.values.filter(x => x != null), d = decimals(l.scale);
    return v.length ? `${l.label}: mean ${number(mean(v), d)}, highest ${number(v.reduce((a, b) => Math.max(a, b)), d)}` : `${l.label}: no values`;
  });
  return `Line plot over time. ${withUnit(chart.title, chart.unit)}${view.isBand ? `, median of ${view.runs} runs` : ""}. ${parts.join("; ")}.`;
}

// At most 41 rows: enough to follow a line by ear, short enough to read.
function dataTable(panels) {
  const details = element("details", {}, element("summary", {}, "Data as a table"));
  const fill = () => {
    details.replaceChildren(details.firstChild);
    if (!details.open) return;
    for (const { chart, view } of panels) {
      const step = Math.max(1, Math.ceil(view.x.length / 40)), title = withUnit(chart.title, chart.unit);
      const head = element("tr", {}, element("th", { scope: "col" }, "Time, s"), ...view.lines.map(l => element("th", { scope: "col" }, l.label)));
      const body = element("tbody");
      for (let i = 0; i < view.x.length; i += step) {
        body.append(element("tr", {}, element("th", { scope: "row" }, number(view.x[i], 1)),
          ...view.lines.map(l => element("td", {}, l.values[i] == null ? "–" : number(l.values[i], decimals(l.scale))))));
      }
      details.append(element("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": title },
        element("table", {}, element("caption", {}, title), element("thead", {}, head), body)));
    }
  };
  details.addEventListener("toggle", fill);
  details.fill = fill;
  return details;
}

// A chart in its figure, drawn again for other runs or another scale.
function panelOf(chart, group, place, section, zoom) {
  const plot = element("div", { class: "plot" }), note = element("span", { class: "note" }), scale = element("button", { type: "button", class: "clip", hidden: "" });
  const panel = { chart, u: null, view: null, full: false };
  const title = () => `${sections[section].title}: ${chart.title}`;
  const clip = () => panel.full ? null : clipOf(chart, panel.view);
  const figure = element("figure", { role: "group", class: place },
    element("figcaption", {}, element("span", {}, chart.title, ...(chart.unit ? [element("span", { class: "unit" }, chart.unit)] : [])), note, scale,
      menu(title, () => tableOf(chart, panel.view), () => drawing(chart, panel.view, clip(), `${title()}${chart.unit ? `, ${chart.unit}` : ""}`, group.hidden))),
    plot);
  panel.figure = figure;
  panel.show = runs => {
    const first = sections[section].seeds[0], spikes = clipOf(chart, panel.view = viewOf(chart, runs, first)), end = clip();
    if (panel.u) {
      zoom.plots.splice(zoom.plots.indexOf(panel.u), 1);
      panel.u.destroy();
    }
    panel.u = draw(chart, panel.view, end, plot, zoom);
    zoom.plots.push(panel.u);
    panel.hide();
    figure.setAttribute("aria-label", describe(chart, panel.view));
    const most = spikes && `${tickText(+spikes.highest.toPrecision(3))}${chart.unit ? ` ${chart.unit}` : ""}`;
    note.textContent = [end ? `\u25b2 clipped, up to ${most}` : "", panel.view.one != null && sections[section].seeds.length > 1 ? `seed ${first}` : ""].filter(Boolean).join(", ");
    scale.hidden = !spikes;
    scale.textContent = panel.full ? "Clip spikes" : "Full scale";
  };
  panel.hide = () => panel.view.lines.forEach((l, i) => {
    for (let k = 0; k < (l.low ? 3 : 1); k++) panel.u.setSeries(panel.u.places[i] + k, { show: !group.hidden.has(l.label) });
  });
  scale.addEventListener("click", () => { panel.full = !panel.full; panel.show(zoom.runs); });
  new ResizeObserver(() => {
    const width = Math.max(240, plot.clientWidth);
    if (panel.u && (Math.abs(panel.u.width - width) > 1 || panel.u.height !== plot.clientHeight)) panel.u.setSize({ width, height: plot.clientHeight });
  }).observe(plot);
  plots.push(panel);
  return panel;
}

document.querySelectorAll(".charts").forEach(host => {
  const index = Number(host.dataset.section), { groups, seeds } = sections[index];
  const every = groups.flatMap(g => g.charts).flatMap(c => c.lines);
  const hasRuns = every.some(l => l.all), eachSeed = every.some(l => l.all?.seeds.length);
  const reset = element("button", { type: "button", class: "reset", hidden: "" }, "Reset zoom");
  const wanted = asked("runs") === "all" || !seeds.includes(Number(asked("runs"))) ? "all" : Number(asked("runs"));
  const zoom = { key: `section${index}`, plots: [], busy: false, reset, runs: hasRuns ? wanted : seeds[0] };
  reset.addEventListener("click", () => {
    zoom.busy = true;
    zoom.plots.forEach(u => u.setScale("x", { min: u.data[0][0], max: u.data[0][u.data[0].length - 1] }));
    zoom.busy = false;
    reset.hidden = true;
  });
  const bar = element("div", { class: "bar-runs" }), all = [], tables = [];
  if (hasRuns) {
    const count = Math.max(...every.map(l => l.all?.runs ?? 0));
    const listed = eachSeed ? seeds : seeds.slice(0, 1);
    bar.append(select("Runs", [["all", `All ${count}: median, ${bandName(count)}`], ...listed.map(s => [s, `Seed ${s}${s === seeds[0] ? ", in full" : ""}`])], zoom.runs, v => {
      zoom.runs = v === "all" ? v : Number(v);
      all.forEach(p => p.show(zoom.runs));
      sections[index].showRuns?.(zoom.runs);
      tables.forEach(t => t.fill());
      reset.hidden = true;
    }));
  }
  bar.append(reset);
  host.append(bar);
  groups.forEach((group, g) => {
    group.hidden = new Set();
    const lines = new Map();
    group.charts.forEach(c => c.lines.forEach(l => lines.has(l.label) || lines.set(l.label, l.style)));
    const legend = element("div", { class: "legend", role: "group", "aria-label": `Lines: ${group.title}` });
    const wide = groups.length === 1, small = group.charts.length - (wide ? 1 : 0);
    const own = group.charts.map((chart, i) => panelOf(chart, group, wide && i === 0 ? "wide" : "", index, zoom));
    for (const [label, style] of lines) {
      const button = element("button", { type: "button", "aria-pressed": "true" }, key(style), label);
      button.addEventListener("click", () => {
        const show = group.hidden.delete(label);
        if (!show) group.hidden.add(label);
        button.setAttribute("aria-pressed", String(show));
        own.forEach(p => p.hide());
      });
      legend.append(button);
    }
    const table = dataTable(own);
    tables.push(table);
    host.append(element("div", { class: "group" }, element("div", { class: "group-head" }, element("h3", {}, group.title), legend),
      element("div", { class: small > 0 && small % 3 === 0 ? "grid three" : "grid" }, ...own.map(p => p.figure)), table));
    own.forEach(p => p.show(zoom.runs));
    all.push(...own);
  });
  sections[index].zoom = zoom;
});
redraws.push(() => plots.forEach(({ u }) => u.redraw(false, true)));
