// A recorded call's numbers over time: plots that share one time, with the episodes in grey behind them.

import { Plot, colour } from "./plots.js";

/** As the page of `weir open --report` has them: title, digits under the cursor, and lines with their colour. */
const PLOTS = [
  ["Rates, kbit/s", 0, [
    ["sent_kbps", "sent", 0], ["arrived_kbps", "arrived", 1], ["received_kbps", "received", 2], ["passing_kbps", "passing", 2],
    ["goodput_kbps", "arrived and of use", 1],
    ["estimate_delay_kbps", "estimate by delay", 3], ["estimate_loss_kbps", "estimate by loss", 4], ["available_kbps", "available (getStats)", 3],
    ["target_kbps", "target", 6], ["other_kbps", "others' traffic", 5],
  ]],
  ["Delay, ms", 1, [
    ["delay_ms", "one way, median above the least", 0], ["delay_max_ms", "one way, largest above the least", 1], ["rtt_ms", "round trip (RTCP)", 2],
    ["stun_rtt_ms", "round trip (STUN)", 3], ["jitter_ms", "jitter", 4],
  ]],
  ["Packets lost, %", 2, [["loss_percent", "lost", 0]]],
  ["Feedback, 1/s", 1, [["feedback_per_s", "feedback messages", 0], ["answers_per_s", "packets from the other end", 1]]],
  ["Pictures, 1/s", 1, [["frames_per_s", "at the receiver", 0], ["encoded_per_s", "encoded", 1], ["source_per_s", "of the source", 2]]],
];
const HEIGHT = 170;
const TALL = 260;
/** Shortest time that is shown, in s. */
const SHORTEST_S = 0.1;
/** Narrower episodes are drawn as wide as this, to be seen in long calls. */
const LEAST_PX = 2;

const numbers = (values) => Array.from(values, (v) => (Number.isFinite(v) ? v : null));

export class CallPlots {
  #into;
  #shown;
  #charts = [];
  #spans = [];
  #time = [];
  /** Shown part, or null for the whole. */
  #part = null;

  /** `shown` gets the time that is shown, { from, to } in s, after each change. */
  constructor(into, shown) {
    this.#into = into;
    this.#shown = shown;
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.#charts.forEach(({ plot }) => plot.redraw()));
  }

  get window() {
    const [first, last] = [this.#time[0] ?? 0, this.#time.at(-1) ?? 0];
    return this.#part ?? { from: first, to: Math.max(last, first + SHORTEST_S) };
  }

  /** `lines`: { columns, numbers } of the call; `spans`: episodes; `more`: further lines of the plot of rates. The same call keeps
   *  its shown part. */
  show(lines, spans, more = []) {
    const column = (name) => {
      const found = lines.columns.find((c) => c.kind === "call" && c.name === name);
      return found && lines.numbers.subarray(found.from, found.from + found.len);
    };
    const time = numbers(column("time_s") ?? []);
    const same = this.of === lines;
    this.of = lines;
    [this.#time, this.#spans] = [time, spans];
    if (!same) {
      this.#part = null;
      this.#charts.forEach(({ plot }) => plot.end());
      this.#charts = [];
      this.#into.replaceChildren();
    }
    PLOTS.forEach(([title, digits, drawn], place) => {
      const own = drawn.map(([name, label, style]) => ({ label, colour: `c${style}`, kind: "line", values: column(name) })).filter((line) => line.values);
      const all = [...own, ...(place === 0 ? more : [])];
      if (all.length === 0) return;
      const chart = this.#charts.find((c) => c.title === title) ?? this.#chart(title, digits, place === 0 ? TALL : HEIGHT);
      chart.plot.show(all.map(({ label, colour, kind }) => ({ label, colour, kind })), [time, ...all.map((line) => numbers(line.values))]);
    });
    this.#apply();
  }

  #chart(title, digits, height) {
    const into = Object.assign(document.createElement("div"), { className: "plot" });
    into.style.minHeight = `${height}px`;
    this.#into.append(Object.assign(document.createElement("h2"), { textContent: title }), into);
    const chart = { title, plot: new Plot(into, height, (made) => this.#scale(made), (options) => this.#adapt(options, digits)) };
    this.#charts.push(chart);
    return chart;
  }

  #adapt(options, digits) {
    const value = (_, v) => (v === null || v === undefined ? "–" : v.toFixed(digits));
    options.series.forEach((series, i) => (series.value = i === 0 ? (_, v) => (v === null || v === undefined ? "–" : `${v.toFixed(1)} s`) : value));
    return {
      ...options,
      legend: { show: true },
      cursor: {
        sync: { key: "call", filters: { pub: (kind) => kind === "mousemove" || kind === "mouseleave" } },
        drag: { x: true, y: false, setScale: false },
        bind: { dblclick: () => () => this.zoom(null, null) },
      },
      hooks: {
        drawClear: [(plot) => this.#grey(plot)],
        setSelect: [(plot) => this.#select(plot)],
      },
    };
  }

  #grey(plot) {
    const { ctx, bbox } = plot;
    ctx.save();
    ctx.fillStyle = colour("episode");
    for (const [from, to] of this.#spans) {
      const [left, right] = [from, to].map((s) => Math.min(Math.max(plot.valToPos(s, "x", true), bbox.left), bbox.left + bbox.width));
      const { min, max } = plot.scales.x;
      if (to >= min && from <= max) ctx.fillRect(left, bbox.top, Math.max(right - left, LEAST_PX * devicePixelRatio), bbox.height);
    }
    ctx.restore();
  }

  #select(plot) {
    const { left, width } = plot.select;
    if (width < 5) return;
    const [from, to] = [left, left + width].map((px) => plot.posToVal(px, "x"));
    plot.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false);
    this.zoom(from, to);
  }

  /** Shows a time, or the whole call where an end is null. */
  zoom(from, to) {
    const [first, last] = [this.#time[0] ?? 0, this.#time.at(-1) ?? 0];
    const low = Math.min(Math.max(from ?? first, first), Math.max(last - SHORTEST_S, first));
    const high = Math.max(Math.min(to ?? last, last), low + SHORTEST_S);
    this.#part = low <= first && high >= last ? null : { from: low, to: high };
    this.#apply();
  }

  #apply() {
    this.#charts.forEach(({ plot }) => this.#scale(plot.plot));
    this.#shown(this.window);
  }

  #scale(plot) {
    if (!plot) return;
    const { from, to } = this.window;
    plot.setScale("x", { min: from, max: to });
  }
}
