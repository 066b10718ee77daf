// Cumulative distributions: what share of packets, frames or pictures has at most so much.
const percent = shares.map(s => s * 100);

function cdfView(cdf, runs) {
  return cdf.lines.map(l => {
    const k = l.seeds.indexOf(runs);
    if (runs !== "all" && k >= 0) return { ...l, values: l.v[k].map(v => v * l.scale) };
    if (l.v.length < 2) return { ...l, values: l.v[0].map(v => v * l.scale) };
    const [values, low, high] = bandOf(l, l.scale);
    return { ...l, values, low, high };
  });
}

function cdfPlot(cdf, lines, width, height) {
  const every = lines.flatMap(l => [...l.values, ...(l.low ?? []), ...(l.high ?? [])]).filter(v => v != null);
  const low = Math.min(...every), high = Math.max(...every), isLog = cdf.unit === "ms" && low > 0 && high > 4 * low;
  const at = percent.map((_, i) => i), y = i => percent[i];
  return Plot.plot({
    width, height, marginLeft: 44, marginBottom: 40, marginTop: 24, marginRight: 16,
    ariaLabel: cdf.title,
    ariaDescription: lines.map(l => `${l.label}: median ${number(l.values[percent.indexOf(50)], decimals(l.scale))}, 95th percentile ${number(l.values[percent.indexOf(95)], decimals(l.scale))}`).join("; "),
    style: { background: "none", color: "var(--soft)", fontSize: "12px", fontFamily: FONT },
    x: { type: isLog ? "log" : "linear", domain: [isLog ? low / 1.05 : low, high > low ? high * (isLog ? 1.05 : 1) : low + 1], label: `${withUnit(cdf.title, cdf.unit)}${isLog ? ", log scale" : ""}`, labelArrow: "none", labelAnchor: "center", grid: true, ticks: 6, tickFormat: isLog ? v => shortest(v) : undefined },
    y: { domain: [0, 100], label: "% at or below", labelArrow: "none", grid: true, ticks: 5 },
    marks: [
      ...lines.filter(l => l.low).map(l => Plot.areaX(at, { className: "runs", y, x1: i => l.low[i], x2: i => l.high[i], fill: colour(l.style), fillOpacity: 0.16 })),
      ...lines.map(l => Plot.line(at, { className: "distribution", x: i => l.values[i], y, stroke: colour(l.style), strokeWidth: 1.8, strokeDasharray: dash(l.style).join(" ") || "none" })),
      Plot.tip(lines.flatMap(l => at.map(i => ({ l, i }))), Plot.pointer({ x: p => p.l.values[p.i], y: p => y(p.i), maxRadius: 60, title: p => `${p.l.label}: ${+percent[p.i].toFixed(1)} % at or below ${number(p.l.values[p.i], decimals(p.l.scale))}${cdf.unit ? ` ${cdf.unit}` : ""}`, fill: "var(--bg)", stroke: "var(--rule)" })),
    ],
  });
}

document.querySelectorAll(".charts").forEach(host => {
  const section = sections[host.dataset.section];
  if (!section.cdfs.length) return;
  const box = element("div", { class: "grid" }), hidden = new Set(), panels = [];
  const styles = new Map(section.cdfs.flatMap(c => c.lines.map(l => [l.label, l.style])));
  const legend = element("div", { class: "legend", role: "group", "aria-label": "Lines: Distributions" });
  const redraw = () => panels.forEach(p => p());
  for (const [label, style] of styles) {
    const button = element("button", { type: "button", "aria-pressed": "true" }, key(style), label);
    button.addEventListener("click", () => {
      const show = hidden.delete(label);
      if (!show) hidden.add(label);
      button.setAttribute("aria-pressed", String(show));
      redraw();
    });
    legend.append(button);
  }
  let runs = section.zoom?.runs ?? "all";
  for (const cdf of section.cdfs) {
    const plot = element("div", { class: "cdf" }), title = `${section.title}: ${cdf.title}`;
    const shown = () => cdfView(cdf, runs).filter(l => !hidden.has(l.label));
    const rows = () => {
      const lines = cdfView(cdf, runs), columns = lines.flatMap(l => l.low ? [l.values, l.low, l.high] : [l.values]);
      const heads = lines.flatMap(l => l.low ? ["median", "low", "high"].map(k => `${l.label} ${k}`) : [l.label]);
      return [["percent", ...heads.map(h => column(h, cdf.unit))], ...percent.map((p, i) => [+p.toFixed(1), ...columns.map(c => c[i])])];
    };
    box.append(element("figure", { role: "group", "aria-label": `Cumulative distribution. ${cdf.title}` },
      element("figcaption", {}, element("span", {}, cdf.title, ...(cdf.unit ? [element("span", { class: "unit" }, cdf.unit)] : [])),
        menu(title, rows, () => standalone(cdfPlot(cdf, shown(), 760, 340), title, shown()))), plot));
    const one = () => plot.replaceChildren(...(shown().length ? [cdfPlot(cdf, shown(), Math.max(240, Math.floor(plot.clientWidth)), 250)] : []));
    panels.push(one);
    let width = 0;
    new ResizeObserver(() => {
      if (Math.abs(plot.clientWidth - width) < 8) return;
      width = plot.clientWidth;
      one();
    }).observe(plot);
  }
  host.append(element("div", { class: "group" }, element("div", { class: "group-head" }, element("h3", {}, "Distributions"), legend), box));
  redraw();
  section.showRuns = wanted => { runs = wanted; redraw(); };
});
