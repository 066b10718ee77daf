// Throughput ahead over time: bands of quantiles, the median, what was measured (thesis, figure 7.4).

const clock = (s) => `${Math.floor(s / 60)}:${String(Math.floor(s % 60)).padStart(2, "0")}`;
const QUANTILES = ["p10", "p25", "p50", "p75", "p90"];

export class Chart {
  #into;
  #plot = null;
  #data = null;
  #colours;

  /** `pointed` gets the time under the pointer, or nothing. */
  constructor(into, colours, pointed) {
    this.#into = into;
    this.#colours = colours;
    this.pointed = pointed;
    new ResizeObserver(() => this.#plot?.setSize(this.#size())).observe(into);
  }

  #size() {
    return { width: Math.max(this.#into.clientWidth, 100), height: 210 };
  }

  recolour(colours) {
    this.#colours = colours;
    this.#plot?.destroy();
    this.#plot = null;
    if (this.#data) this.show(this.#data);
  }

  /** Shows stretches of time ({from_s, to_s, capacity}), measurements ([s, bit/s]), which stretches are poor, and the present
   * time; `speed` in m/s labels times with distances. */
  show(data) {
    this.#data = data;
    const values = this.#values(data);
    this.#plot ??= new uPlot(this.#options(), values, this.#into);
    this.#plot.setData(values);
  }

  clear() {
    this.#plot?.destroy();
    this.#plot = this.#data = null;
  }

  #values({ segments, measured }) {
    const times = new Set(segments.flatMap((s) => [s.from_s, s.to_s]));
    const rates = new Map(measured);
    for (const time of rates.keys()) times.add(time);
    const x = [...times].sort((a, b) => a - b);
    let i = 0;
    const lines = QUANTILES.map(() => []);
    for (const time of x) {
      while (i < segments.length - 1 && segments[i].to_s <= time) i += 1;
      const known = segments[i] && time >= segments[i].from_s ? segments[i].capacity : null;
      QUANTILES.forEach((q, n) => lines[n].push(known ? known[q] / 1e3 : null));
    }
    return [x, ...lines, x.map((time) => (rates.has(time) ? rates.get(time) / 1e3 : undefined))];
  }

  #options() {
    const c = this.#colours;
    const stepped = uPlot.paths.stepped({ align: 1 });
    const line = (label, stroke, width) => ({ label, stroke, width, paths: stepped, points: { show: false } });
    const axis = { stroke: c.dim, grid: { stroke: c.grid, width: 1 }, ticks: { stroke: c.grid, width: 1 } };
    const at = (s) => {
      const speed = this.#data.speed;
      return speed ? `${clock(s)}\n${((s * speed) / 1e3).toFixed(1)} km` : clock(s);
    };
    const font = "12px system-ui, sans-serif";
    return {
      ...this.#size(),
      legend: { show: false },
      cursor: { y: false, drag: { x: false, y: false }, points: { show: false } },
      scales: { x: { time: false }, y: { range: (_, low, high) => [0, Math.max(high * 1.05, 1)] } },
      axes: [
        { ...axis, font, values: (_, splits) => splits.map(at), size: 44, space: 64 },
        { ...axis, font, size: 58, label: "kbit/s", labelFont: font, labelSize: 16 },
      ],
      series: [
        {},
        line("p10", c.wide, 0), line("p25", c.inner, 0), line("p50", c.median, 2), line("p75", c.inner, 0), line("p90", c.wide, 0),
        { label: "measured", stroke: c.ride, width: 1.5, spanGaps: true, points: { show: false } },
      ],
      bands: [{ series: [5, 1], fill: c.wide }, { series: [4, 2], fill: c.inner }],
      hooks: {
        drawClear: [(plot) => this.#shade(plot)],
        draw: [(plot) => this.#present(plot)],
        setCursor: [(plot) => this.pointed(plot.cursor.left >= 0 ? plot.posToVal(plot.cursor.left, "x") : null)],
      },
    };
  }

  #shade(plot) {
    const { ctx, bbox } = plot;
    ctx.fillStyle = this.#colours.shade;
    for (const { from_s, to_s } of this.#data.segments.filter(this.#data.poor)) {
      const [a, b] = [plot.valToPos(from_s, "x", true), plot.valToPos(to_s, "x", true)];
      ctx.fillRect(a, bbox.top, b - a, bbox.height);
    }
  }

  #present(plot) {
    const { ctx, bbox } = plot;
    if (this.#data.present === null) return;
    ctx.fillStyle = this.#colours.ride;
    ctx.fillRect(plot.valToPos(this.#data.present, "x", true) - 1, bbox.top, 2, bbox.height);
  }
}

export { clock };
