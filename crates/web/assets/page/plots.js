// The plots: one line for each controller, and a capacity that can be dragged.

const NEAR_PX = 9;
const NEAR_TOUCH_PX = 18;

export const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();

export class Plot {
  #into;
  #height;
  #adapt;
  #plot = null;
  #watch = new ResizeObserver(() => this.#plot?.setSize(this.#size()));
  #shape = "";
  #lines = [];
  #data = [[]];
  /** Highest value of the scale while something is dragged. */
  frozen = null;

  /** `ready` gets each plot that is made, `adapt` changes its options before. */
  constructor(into, height, ready, adapt = (options) => options) {
    this.#into = into;
    this.#height = height;
    this.#adapt = adapt;
    this.ready = ready;
    this.#watch.observe(into);
  }
  get plot() {
    return this.#plot;
  }
  #size() {
    return { width: Math.max(this.#into.clientWidth, 100), height: this.#height };
  }
  redraw() {
    this.#shape = "";
    this.show(this.#lines, this.#data);
  }
  /** Nothing is drawn after it. */
  end() {
    this.#watch.disconnect();
    this.#plot?.destroy();
    this.#plot = null;
  }
  /** `lines`: { label, colour, kind }, kind one of line, dots, steps. */
  show(lines, data) {
    const shape = JSON.stringify(lines);
    this.#lines = lines;
    this.#data = data;
    if (shape !== this.#shape) {
      this.#plot?.destroy();
      this.#plot = new uPlot(this.#adapt(this.#options()), data, this.#into);
      this.#shape = shape;
      this.ready?.(this.#plot);
    } else {
      this.#plot.setData(data);
    }
  }
  #options() {
    const font = "12px system-ui, sans-serif";
    const grid = colour("grid");
    const axis = { stroke: colour("dim"), font, grid: { stroke: grid, width: 1 }, ticks: { stroke: grid, width: 1 } };
    const paths = uPlot.paths.stepped({ align: -1 });
    const line = ({ label, colour: name, kind }) => ({
      label, stroke: colour(name), points: { show: false }, spanGaps: false,
      ...{ line: { width: 1.5 }, dots: { width: 1.2, dash: [2, 4] }, steps: { width: 3, paths } }[kind],
    });
    return {
      ...this.#size(),
      legend: { show: false },
      cursor: { drag: { x: false, y: false }, sync: { key: "lab" } },
      scales: {
        x: { time: false },
        y: { range: (_, low, high) => [0, this.frozen ?? Math.max((high ?? 0) * 1.12, 1)] },
      },
      axes: [{ ...axis, size: 26, values: (_, splits) => splits.map((s) => `${s} s`) }, { ...axis, size: 54 }],
      series: [{ label: "time" }, ...this.#lines.map(line)],
    };
  }
}

/** Lets the capacity be dragged: levels up and down, the starts of steps to and fro. */
class Drag {
  #chart;
  #into;
  #held = null;

  /** `capacity()` gives { points, repeat_s } or null; `begin` says whether a drag may begin, `move` and `end` what it does. */
  constructor(chart, into, { capacity, begin, move, end }) {
    this.#chart = chart;
    this.#into = into;
    this.capacity = capacity;
    Object.assign(this, { begin, move, end });
  }
  attach(plot) {
    const { over } = plot;
    over.addEventListener("pointermove", (e) => this.#moves(plot, e));
    over.addEventListener("pointerdown", (e) => this.#presses(plot, e));
    for (const kind of ["pointerup", "pointercancel"]) over.addEventListener(kind, () => this.#release());
    // Pages scroll with a finger, but not while it holds the capacity.
    over.addEventListener("touchstart", (e) => this.#held && e.preventDefault(), { passive: false });
    over.addEventListener("touchmove", (e) => this.#held && e.preventDefault(), { passive: false });
  }
  #place(plot, e) {
    const box = plot.over.getBoundingClientRect();
    const [x, y] = [e.clientX - box.left, e.clientY - box.top];
    return { x, y, t: plot.posToVal(x, "x"), kbps: plot.posToVal(y, "y") };
  }
  #find(plot, e) {
    const capacity = this.capacity();
    if (!capacity) return null;
    const { points, repeat_s: repeat } = capacity;
    const near = e.pointerType === "touch" ? NEAR_TOUCH_PX : NEAR_PX;
    const { x, y, t } = this.#place(plot, e);
    const lap = repeat ? Math.floor(Math.max(t, 0) / repeat) : 0;
    const base = repeat ? lap * repeat : 0;
    const level = (i) => plot.valToPos(points[i].rate_bps / 1e3, "y");
    for (let i = 1; i < points.length; i++) {
      const edge = plot.valToPos(base + points[i].at_s, "x");
      const [high, low] = [Math.min(level(i - 1), level(i)), Math.max(level(i - 1), level(i))];
      if (points[i].at && Math.abs(x - edge) < near && y > high + near && y < low - near) return { index: i, edge: true, base };
    }
    const index = points.findLastIndex((p) => base + p.at_s <= Math.max(t, 0));
    return index >= 0 && Math.abs(y - level(index)) < near ? { index, edge: false, base } : null;
  }
  #moves(plot, e) {
    if (!this.#held) {
      const found = this.#find(plot, e);
      this.#into.classList.toggle("over-capacity", !!found && !found.edge);
      this.#into.classList.toggle("over-step", !!found?.edge);
      return;
    }
    const { t, kbps } = this.#place(plot, e);
    const { index, edge, base } = this.#held;
    this.move(index, edge ? { at_s: t - base } : { rate_bps: 1e3 * kbps });
  }
  #presses(plot, e) {
    const found = e.button === 0 ? this.#find(plot, e) : null;
    if (!found || !this.begin()) return;
    this.#held = found;
    this.#chart.frozen = plot.scales.y.max;
    plot.over.setPointerCapture(e.pointerId);
    e.preventDefault();
  }
  #release() {
    if (!this.#held) return;
    this.#held = null;
    this.#chart.frozen = null;
    this.end();
  }
}

/** Values for a plot: none where there is no number. */
function values(run, kind, owner, name, scale) {
  const column = run.columns.find((c) => c.kind === kind && c.owner === owner && c.name === name);
  if (!column) return [];
  return Array.from(run.numbers.subarray(column.from, column.from + column.len), (v) => (Number.isNaN(v) ? null : v * scale));
}

export class Plots {
  #rates;
  #delays;
  #losses;

  constructor(rates, delays, losses, dragging) {
    const drag = { attach: () => {} };
    this.#rates = new Plot(rates, 250, (plot) => drag.attach(plot));
    this.#delays = new Plot(delays, 150);
    this.#losses = new Plot(losses, 150);
    const real = new Drag(this.#rates, rates, dragging);
    drag.attach = (plot) => real.attach(plot);
    const all = [this.#rates, this.#delays, this.#losses];
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => all.forEach((plot) => plot.redraw()));
  }

  /** `runs`: { label, colour, flow, bottleneck, columns, numbers }, all over the same time. */
  show(runs) {
    const longest = runs.reduce((a, b) => (values(b, "run", "", "time_s", 1).length > values(a, "run", "", "time_s", 1).length ? b : a));
    const time = values(longest, "run", "", "time_s", 1);
    const of = (name, scale) => runs.map((r) => values(r, "flow", r.flow, name, scale));
    const lines = (kind) => runs.map((r) => ({ label: r.label, colour: r.colour, kind }));
    const capacity = values(runs[0], "link", runs[0].bottleneck, "capacity_bps", 1e-3);
    this.#rates.show(
      [{ label: "capacity", colour: "capacity", kind: "steps" }, ...lines("dots"), ...lines("line")],
      [time, capacity, ...of("target_bps", 1e-3), ...of("sent_bps", 1e-3)],
    );
    this.#delays.show(lines("line"), [time, ...of("delay_ms", 1)]);
    this.#losses.show(lines("line"), [time, ...of("loss", 100)]);
  }
  /** Where a time and a rate are on the screen. */
  place(t, kbps) {
    const { plot } = this.#rates;
    const box = plot.over.getBoundingClientRect();
    return [box.left + plot.valToPos(t, "x"), box.top + plot.valToPos(kbps, "y")];
  }
}
