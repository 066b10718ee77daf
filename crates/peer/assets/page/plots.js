// Three plots over the last minute.

const WINDOW_S = 60;
const HEIGHT = 150;

const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();

const of = (value, factor) => (value === null || value === undefined ? null : factor * value);

export class Plot {
  #into;
  #lines;
  #plot = null;
  #data = [[]];

  constructor(into, lines) {
    this.#into = into;
    this.#lines = lines;
    new ResizeObserver(() => this.#plot?.setSize(this.#size())).observe(into);
  }
  #size() {
    return { width: Math.max(this.#into.clientWidth, 100), height: HEIGHT };
  }
  redraw() {
    this.#plot?.destroy();
    this.#plot = null;
    this.show(this.#data);
  }
  show(data) {
    this.#data = data;
    this.#plot ??= new uPlot(this.#options(), data, this.#into);
    this.#plot.setData(data);
  }
  #options() {
    const font = "12px system-ui, sans-serif";
    const grid = colour("grid");
    const axis = { stroke: colour("dim"), font, grid: { stroke: grid, width: 1 }, ticks: { stroke: grid, width: 1 } };
    const line = ([label, name]) => ({ label, stroke: colour(name), width: 1.5, points: { show: false }, spanGaps: true });
    return {
      ...this.#size(),
      cursor: { drag: { x: false, y: false } },
      scales: {
        x: { time: false, range: (_, low, high) => [Math.max(high - WINDOW_S, 0), Math.max(high, 5)] },
        y: { range: (_, low, high) => [0, Math.max((high ?? 0) * 1.08, 1)] },
      },
      axes: [{ ...axis, size: 26, values: (_, splits) => splits.map((s) => `${s} s`) }, { ...axis, size: 54 }],
      series: [{ label: "time" }, ...this.#lines.map(line)],
    };
  }
}

export class Plots {
  #samples = [];
  #plots;

  /** `tells`: whether the browser's own numbers are plotted too, after the service's. */
  constructor(rates, delays, losses, tells = false) {
    const plot = (into, lines, values, own) => (tells ? [new Plot(into, lines), values] : [new Plot(into, lines.slice(0, own)), values.slice(0, own)]);
    this.#plots = [
      plot(rates, [["target", "one"], ["sent", "two"], ["received from this browser", "three"], ["capacity of the link", "four"], ["received, says this browser", "two-light"], ["this browser's own estimate", "three-light"]],
        [(s) => s.target_bps / 1e3, (s) => s.sent_bps / 1e3, (s) => s.received_bps / 1e3, (s) => (s.link?.capacity_bps ? s.link.capacity_bps / 1e3 : null),
        (s) => of(s.browser?.received_bps, 1e-3), (s) => of(s.browser?.available_bps, 1e-3)], 4),
      plot(delays, [["round trip", "one"], ["above the least one-way delay", "two"], ["waits for the pacer", "three"], ["round trip, says this browser", "one-light"]],
        [(s) => s.rtt_ms, (s) => s.delay_ms, (s) => s.queue_ms, (s) => of(s.browser?.rtt_ms, 1)], 3),
      plot(losses, [["reported by this browser", "two"], ["of what it sends, reported by Weir", "three"]], [(s) => of(s.loss, 100), (s) => of(s.browser?.remote_loss, 100)], 1),
    ];
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.#plots.forEach(([plot]) => plot.redraw()));
    this.#show();
  }
  clear() {
    this.#samples = [];
    this.#show();
  }
  /** The service's samples, and what the browser has told it meanwhile, each at the time of the service's that follows. */
  add(samples, browser = []) {
    if (samples.length === 0) return;
    this.#samples.push(...samples);
    for (const told of browser) {
      const at = this.#samples.find((s) => s.t_s >= told.t_s) ?? this.#samples.at(-1);
      at.browser = told;
    }
    const last = this.#samples.at(-1).t_s;
    while (this.#samples[0].t_s < last - WINDOW_S - 1) this.#samples.shift();
    this.#show();
  }
  get count() {
    return this.#samples.length;
  }
  #show() {
    const x = this.#samples.map((s) => s.t_s);
    for (const [plot, values] of this.#plots) plot.show([x, ...values.map((v) => this.#samples.map(v))]);
  }
}
