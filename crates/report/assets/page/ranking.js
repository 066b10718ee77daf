// Which controller is best: delay against throughput, and a ranking by what the reader cares about.
const QUANTITY = Object.fromEntries(quantities.map((q, i) => [q.key, { ...q, at: i }]));
const valuesOf = (contender, name) => contender.runs.map(r => r.values[QUANTITY[name].at]).filter(v => v != null);
const meanOf = (contender, name) => mean(valuesOf(contender, name));
const has = (name, list = contenders) => list.some(c => valuesOf(c, name).length);

const MAX_PANELS = 6;
const CRITERIA = [
  { key: "delay", title: "Low delay", head: "Delay", quantity: () => choice.x },
  { key: "throughput", title: "Throughput", head: "Through­put", quantity: () => choice.y },
  { key: "loss", title: "Low loss", head: "Loss", quantity: () => "loss" },
  { key: "frames", title: "Frame delay", head: "Frame delay", quantity: () => "frame_p95" },
  { key: "freezes", title: "Few freezes", head: "Frozen", quantity: () => "frozen" },
  { key: "fairness", title: "Fairness", head: "Fairness", quantity: () => "fairness" },
];
const present = CRITERIA.filter(c => c.key === "delay" || c.key === "throughput" || has(c.quantity()));
const xs = ["queue_p95", "queue_mean", "delay_p95", "delay_mean", "frame_p95"].filter(k => has(k));
const ys = ["use", "goodput"].filter(k => has(k));
const choice = {
  scenario: sections[asked("scenario")] ? Number(asked("scenario")) : null,
  x: xs.includes(asked("x")) ? asked("x") : xs[0],
  y: ys.includes(asked("y")) ? asked("y") : ys[0],
  weights: Object.fromEntries(present.map(c => [c.key, 1])),
  all: false,
};
const only = name => present.forEach(c => choice.weights[c.key] = name === "balanced" || name === c.key ? 1 : 0);
if (asked("rank")) only(asked("rank"));

const inScope = () => contenders.filter(c => choice.scenario == null || c.section === choice.scenario);
const names = () => [...new Set(inScope().map(c => choice.scenario == null ? c.who : c.label))];
const nameOf = c => choice.scenario == null ? c.who : c.label;

// Of 0 to 100: the best of its scenario has 100, twice the delay (step added to both) half of that.
function score(name, contender, rivals) {
  const q = QUANTITY[name], own = meanOf(contender, name);
  const others = rivals.map(r => meanOf(r, name)).filter(v => v != null);
  if (own == null || !others.length) return null;
  const best = q.more ? Math.max(...others) : Math.min(...others);
  const [a, b] = q.more ? [own, best] : [best + q.step, own + q.step];
  return b > 0 ? 100 * a / b : 100;
}
function ranking() {
  const scope = inScope();
  const rows = names().map(name => {
    const own = scope.filter(c => nameOf(c) === name);
    const places = [...new Set(own.map(c => c.section))];
    // Several flows of one scenario count as much as one.
    const over = of => mean(places.map(p => mean(own.filter(c => c.section === p).map(of).filter(v => v != null))).filter(v => v != null));
    const parts = present.map(criterion => {
      const quantity = criterion.quantity();
      const near = over(c => score(quantity, c, scope.filter(r => r.section === c.section)));
      return { criterion, score: near, value: over(c => meanOf(c, quantity)), weight: choice.weights[criterion.key] };
    });
    const counted = parts.filter(p => p.score != null && p.weight > 0);
    const weight = counted.reduce((sum, p) => sum + p.weight, 0);
    const total = weight ? counted.reduce((sum, p) => sum + p.weight * p.score, 0) / weight : null;
    return { name, style: own[0].style, parts, total, scenarios: new Set(own.map(c => c.section)).size };
  });
  return rows.sort((a, b) => (b.total ?? -1) - (a.total ?? -1) || a.name.localeCompare(b.name));
}

function rankingTable() {
  const rows = ranking(), scenarios = new Set(inScope().map(c => c.section)).size;
  const shown = present.filter((_, i) => rows.some(r => r.parts[i].score != null));
  const heading = c => {
    const q = QUANTITY[c.quantity()];
    return element("th", { scope: "col", title: `${q.title}${q.unit ? `, ${q.unit}` : ""}` }, c.head, element("span", { class: "unit" }, q.unit || "0 to 1"));
  };
  const parts = "How near the best of its scenario this is, from 0 to 100";
  const body = rows.map((r, i) => element("tr", {},
    element("td", { class: "place" }, r.total == null ? "–" : String(i + 1)),
    element("th", { scope: "row" }, key(r.style), r.name,
      ...(r.scenarios < scenarios ? [element("span", { class: "unit" }, `in ${r.scenarios} of ${scenarios} scenarios`)] : [])),
    element("td", { class: "score" }, element("span", { class: "track", "aria-hidden": "true" }, element("i", { style: `width:${r.total ?? 0}%;background:${colour(r.style)}` })),
      element("b", {}, r.total == null ? "–" : number(r.total, 0))),
    ...r.parts.filter(p => shown.includes(p.criterion)).map(p => element("td", { class: p.weight ? "" : "unweighted" },
      p.value == null ? "–" : number(p.value, p.value >= 100 ? 0 : QUANTITY[p.criterion.quantity()].decimals),
      ...(p.score == null ? [] : [element("span", { class: "unit", title: parts }, number(p.score, 0))])))));
  return element("table", { id: "ranking" },
    element("caption", {}, choice.scenario == null && scenarios > 1 ? `Ranking over ${scenarios} scenarios` : "Ranking"),
    element("thead", {}, element("tr", {}, element("th", { scope: "col" }, "#"), element("th", { scope: "col" }, "Controller"),
      element("th", { scope: "col" }, "Score", element("span", { class: "unit" }, "0 to 100")), ...shown.map(heading))),
    element("tbody", {}, ...body));
}

function formula() {
  const weights = present.map(c => `${choice.weights[c.key]} × ${c.title.toLowerCase()}`).filter(t => !t.startsWith("0 "));
  const sum = present.reduce((s, c) => s + choice.weights[c.key], 0);
  const of = present.map(c => QUANTITY[c.quantity()]);
  const low = [...new Set(of.filter(q => !q.more).map(q => `${q.step} ${q.unit} (${q.title.toLowerCase()})`))];
  return [
    `The score is the mean of the parts that count: each is how near a controller comes to the best of the same scenario, from 0 to 100, the small figure below each value.`,
    `Score = (${weights.join(" + ") || "nothing"})${sum > 1 ? ` / ${sum}` : ""}, then the mean over the scenarios shown. Values are means over the runs.`,
    `Where more is better: 100 × value / best. Where less is better: 100 × (best + s) / (value + s), s = ${low.join(", ")}. What a scenario does not measure is left out of its score.`,
  ];
}

// One standard deviation of the runs around their mean, in the plot's own scale; three runs are needed.
function ellipse(points, isLog) {
  if (points.length < 3) return null;
  const to = isLog ? Math.log : v => v, from = isLog ? Math.exp : v => v;
  const x = points.map(p => to(p[0])), y = points.map(p => p[1]), n = points.length - 1;
  const [mx, my] = [mean(x), mean(y)];
  const cov = (a, ma, b, mb) => a.reduce((s, v, i) => s + (v - ma) * (b[i] - mb), 0) / n;
  const [xx, yy, xy] = [cov(x, mx, x, mx), cov(y, my, y, my), cov(x, mx, y, my)];
  const [middle, half] = [(xx + yy) / 2, Math.hypot((xx - yy) / 2, xy)];
  const [a, b] = [Math.sqrt(middle + half), Math.sqrt(Math.max(0, middle - half))];
  const turn = Math.atan2(2 * xy, xx - yy) / 2;
  return Array.from({ length: 49 }, (_, i) => {
    const t = i / 48 * 2 * Math.PI, [u, v] = [a * Math.cos(t), b * Math.sin(t)];
    return [from(mx + u * Math.cos(turn) - v * Math.sin(turn)), my + u * Math.sin(turn) + v * Math.cos(turn)];
  });
}

// Where labels lie without covering each other or a mean: the first free place around each mean.
function placeLabels(means, scale, width) {
  const boxes = means.map(m => ({ x0: scale.x(m.x) - 7, x1: scale.x(m.x) + 7, y0: scale.y(m.y) - 7, y1: scale.y(m.y) + 7 }));
  const hits = b => boxes.reduce((s, o) => s + Math.max(0, Math.min(b.x1, o.x1) - Math.max(b.x0, o.x0)) * Math.max(0, Math.min(b.y1, o.y1) - Math.max(b.y0, o.y0)), 0)
    + 50 * Math.max(0, b.x1 - width) + 50 * Math.max(0, 40 - b.x0);
  return means.map(m => {
    const [x, y, w] = [scale.x(m.x), scale.y(m.y), m.label.length * 7.6];
    const places = [[10, 4, "start"], [-10, 4, "end"], [0, -12, "middle"], [0, 20, "middle"], [10, -12, "start"], [10, 20, "start"], [-10, -12, "end"], [-10, 20, "end"], [10, 34, "start"], [10, -26, "start"]];
    const best = places.map(([dx, dy, anchor]) => {
      const x0 = anchor === "start" ? x + dx : anchor === "end" ? x + dx - w : x - w / 2;
      const box = { x0, x1: x0 + w, y0: y + dy - 12, y1: y + dy + 3 };
      return { dx, dy: dy - 4, anchor, box, cost: hits(box) };
    }).reduce((a, b) => b.cost < a.cost ? b : a);
    boxes.push(best.box);
    return best;
  });
}

function scatter(section, width, height) {
  const own = contenders.filter(c => c.section === section);
  const at = run => [run.values[QUANTITY[choice.x].at], run.values[QUANTITY[choice.y].at]];
  const shown = own.map(c => ({ ...c, points: c.runs.map(at).filter(p => p[0] != null && p[1] != null) })).filter(c => c.points.length);
  if (!shown.length) return null;
  const every = shown.flatMap(c => c.points.map(p => p[0])), low = Math.min(...every);
  const isLog = low > 0 && Math.max(...every) > 12 * low;
  const rings = shown.map(c => ellipse(c.points, isLog));
  const means = shown.map(c => ({ ...c, x: isLog ? Math.exp(mean(c.points.map(p => Math.log(p[0])))) : mean(c.points.map(p => p[0])), y: mean(c.points.map(p => p[1])) }));
  const around = [...shown.flatMap(c => c.points), ...rings.flatMap(r => r ?? [])];
  const range = k => [Math.min(...around.map(p => p[k])), Math.max(...around.map(p => p[k]))];
  const [[x0, x1], [y0, y1]] = [range(0), range(1)];
  // Axes fit the data, but no difference below a tenth of a value fills the plot.
  const padY = Math.max((y1 - y0) * 0.15, Math.abs(y1) * 0.02), spanX = Math.max((x1 - x0) * 0.15, x1 * 0.05, 0.5);
  const x = isLog ? { type: "log", domain: [x0 / 1.25, x1 * 1.4] } : { domain: [Math.max(0, x0 - spanX), x1 + spanX * 1.6] };
  const [qx, qy] = [QUANTITY[choice.x], QUANTITY[choice.y]];
  const value = (v, q) => `${number(v, q.decimals)}${q.unit ? ` ${q.unit}` : ""}`;
  const text = c => `${c.label}\n${qx.title}: ${value(c.x, qx)}\n${qy.title}: ${value(c.y, qy)}\n${c.points.length} ${c.points.length === 1 ? "run" : "runs"}`;
  const build = labels => Plot.plot({
    width, height, marginLeft: 48, marginBottom: 40, marginTop: 26, marginRight: 14,
    ariaLabel: `${qx.title} against ${qy.title}`,
    ariaDescription: means.map(c => text(c).replaceAll("\n", ", ")).join("; "),
    style: { background: "none", color: "var(--soft)", fontSize: "12px", fontFamily: FONT, overflow: "visible" },
    x: { ...x, label: `${withUnit(qx.title, qx.unit)}${isLog ? ", log scale" : ""}`, labelArrow: "none", labelAnchor: "center", ticks: width < 420 ? 4 : 7, tickFormat: isLog ? v => shortest(v) : undefined, grid: true },
    y: { domain: [Math.max(0, y0 - padY), y1 + padY], label: withUnit(qy.title, qy.unit), labelArrow: "none", ticks: 5, grid: true },
    marks: [
      Plot.text(["better"], { frameAnchor: "top-left", dx: 8, dy: 6, text: t => `\u2196 ${t}`, fill: "var(--soft)", fontStyle: "italic" }),
      ...shown.map((c, i) => rings[i] && Plot.line(rings[i], { className: "spread", curve: "linear-closed", fill: colour(c.style), fillOpacity: 0.16, stroke: colour(c.style), strokeOpacity: 0.8 })),
      ...shown.map(c => c.points.length > 1 && Plot.dot(c.points, { className: "runs", r: 1.8, fill: colour(c.style), fillOpacity: 0.55 })),
      ...means.map(c => Plot.dot([c], { className: "mean", x: "x", y: "y", r: 5.5, symbol: SYMBOLS[c.style % STYLES], fill: colour(c.style), stroke: "var(--bg)", strokeWidth: 1.2 })),
      ...(labels ?? []).map((l, i) => Plot.text([means[i]], { className: "label", x: "x", y: "y", text: "label", dx: l.dx, dy: l.dy, textAnchor: l.anchor, lineAnchor: "middle", fill: colour(means[i].style), stroke: "var(--bg)", strokeWidth: 4, fontWeight: 650, fontSize: 13 })),
      Plot.tip(means, Plot.pointer({ x: "x", y: "y", title: text, fill: "var(--bg)", stroke: "var(--rule)", textPadding: 8 })),
    ].filter(Boolean),
  });
  const first = build(null);
  const scale = { x: v => first.scale("x").apply(v), y: v => first.scale("y").apply(v) };
  const svg = build(placeLabels(means, scale, width - 6));
  const rows = () => [["scenario", "controller", "seed", column(qx.title, qx.unit), column(qy.title, qy.unit)],
    ...own.flatMap(c => c.runs.map(r => [sections[section].title, c.label, r.seed, ...at(r)]))];
  return { svg, rows };
}

function drawScatter(host) {
  const ids = choice.scenario != null ? [choice.scenario] : [...new Set(contenders.map(c => c.section))];
  const shown = choice.all ? ids : ids.slice(0, MAX_PANELS);
  host.replaceChildren();
  host.className = shown.length === 1 ? "panels one" : "panels";
  for (const id of shown) {
    const figure = element("figure", {}), plot = element("div", { class: "scatter" });
    host.append(figure);
    const panel = scatter(id, Math.max(260, Math.floor(figure.clientWidth)), shown.length === 1 ? 400 : 250);
    if (!panel) { figure.remove(); continue; }
    plot.append(panel.svg);
    const title = sections[id].title, of = `${title}: ${QUANTITY[choice.x].title.toLowerCase()} against ${QUANTITY[choice.y].title.toLowerCase()}`;
    figure.append(element("figcaption", {}, element("a", { href: `#s${id}` }, title), menu(of, panel.rows, () => standalone(panel.svg, of, []))), plot);
  }
  if (shown.length < ids.length) {
    const more = element("button", { type: "button", class: "more" }, `Show all ${ids.length} scenarios`);
    more.addEventListener("click", () => { choice.all = true; drawScatter(host); });
    host.append(more);
  }
}

function select(label, entries, value, act) {
  const box = element("select", {}, ...entries.map(([v, text]) => element("option", { value: v, ...(String(v) === String(value) ? { selected: "" } : {}) }, text)));
  box.addEventListener("change", () => act(box.value));
  return element("label", { class: "choose" }, element("span", {}, label), box);
}

function rankingSection() {
  const host = document.getElementById("choice");
  if (!host || !contenders.length || !xs.length || !ys.length) { host?.remove(); return; }
  const plots = element("div"), table = element("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Ranking" });
  const short = element("p", { class: "hint" });
  const explain = element("details", { class: "formula" }, element("summary", {}, "The formula"));
  const presets = element("div", { class: "presets", role: "group", "aria-label": "What counts" });
  const sliders = element("div", { class: "sliders" });
  const rank = () => {
    table.replaceChildren(rankingTable());
    const [first, ...others] = formula();
    short.textContent = first;
    explain.replaceChildren(explain.firstChild, ...others.map(t => element("p", {}, t)));
    const weights = present.map(c => choice.weights[c.key]);
    presets.querySelectorAll("button").forEach(b => {
      const wanted = present.map(c => b.dataset.rank === "balanced" || b.dataset.rank === c.key ? 1 : 0);
      b.setAttribute("aria-pressed", String(wanted.every((w, i) => (w > 0) === (weights[i] > 0) && (b.dataset.rank !== "balanced" || weights[i] === 1))));
    });
    sliders.querySelectorAll("input").forEach(s => {
      s.value = choice.weights[s.name];
      s.nextElementSibling.textContent = s.value;
    });
  };
  const both = () => { rank(); drawScatter(plots); };
  for (const { key: name, title } of [{ key: "balanced", title: "Balanced" }, ...present]) {
    const button = element("button", { type: "button", "data-rank": name }, title);
    button.addEventListener("click", () => { only(name); rank(); });
    presets.append(button);
  }
  for (const c of present) {
    const input = element("input", { type: "range", min: 0, max: 5, step: 1, name: c.key });
    input.addEventListener("input", () => { choice.weights[c.key] = Number(input.value); rank(); });
    sliders.append(element("label", {}, element("span", {}, c.title), input, element("output", {})));
  }
  const scenarios = [...new Set(contenders.map(c => c.section))];
  const controls = element("div", { class: "controls" });
  const scope = element("div", { class: "controls" });
  if (scenarios.length > 1) scope.append(select("Scenario", [["", `All ${scenarios.length} scenarios`], ...scenarios.map(i => [i, sections[i].title])], choice.scenario ?? "", v => {
    choice.scenario = v === "" ? null : Number(v);
    both();
  }));
  controls.append(select("Delay", xs.map(k => [k, QUANTITY[k].title]), choice.x, v => { choice.x = v; both(); }));
  if (ys.length > 1) controls.append(select("Throughput", ys.map(k => [k, QUANTITY[k].title]), choice.y, v => { choice.y = v; both(); }));
  const runs = Math.max(...contenders.map(c => c.runs.length));
  const note = runs >= 3
    ? "Each symbol is the mean over the runs, small dots are runs, an ellipse is one standard deviation of them. Axes fit the data and need not begin at 0."
    : "Each symbol is the mean over the runs; ellipses of their spread need three runs or more. Axes fit the data and need not begin at 0.";
  host.append(element("div", { class: "choice" },
    element("div", { class: "rank" }, scope, element("p", { class: "ask" }, "What counts?"), presets, table, short,
      element("details", { class: "weights" }, element("summary", {}, "Weights"), sliders), explain),
    element("div", { class: "against" }, controls, plots, element("p", { class: "hint" }, note))));
  both();
  let width = plots.clientWidth;
  new ResizeObserver(() => {
    if (Math.abs(plots.clientWidth - width) < 8) return;
    width = plots.clientWidth;
    drawScatter(plots);
  }).observe(plots);
}
rankingSection();
