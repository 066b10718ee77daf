// Regions on the map: drawn on a canvas, chosen by pointer or arrow keys.

import { colour, colours, format, ladder } from "/map/colours.js";
import { decode } from "/map/geometry.js";

const DIRECTIONS = { ArrowUp: [0, -1], ArrowDown: [0, 1], ArrowLeft: [-1, 0], ArrowRight: [1, 0] };
const LEVELS = {
  cell: "this part of the week", any_hour: "any part of the week", near: "around it", any_technology: "any technology",
  district: "its district",
};
const DEVICES = { few: "few", some: "some", many: "many" };

const element = (name, text, attributes = {}) => {
  const made = document.createElement(name);
  if (text !== undefined) made.textContent = text;
  for (const [attribute, value] of Object.entries(attributes)) made.setAttribute(attribute, value);
  return made;
};

export class Regions {
  #map;
  #renderer;
  #shown = new Map();
  #selected = null;
  #mark;
  #ladder = null;
  measure = "rate";
  quantile = "p50";

  /** `edge` is the colour between regions; `chosen` gets a region, or nothing when none is chosen. */
  constructor(map, edge, chosen) {
    this.#map = map;
    Object.assign(this, { edge, chosen });
    this.#renderer = L.canvas({ padding: 0.3, tolerance: 0 });
    map.createPane("mark").style.zIndex = 460;
    const svg = L.svg({ pane: "mark" });
    this.#mark = ["#ffffff", "#000000"].map((color, i) =>
      L.polygon([], { renderer: svg, interactive: false, fill: false, color, weight: 6 - 3 * i }));
  }

  get count() {
    return this.#shown.size;
  }

  value(region) {
    const name = { rate: this.quantile, rtt: "rtt_ms", loss: "loss", confidence: "confidence" }[this.measure];
    return region[name] ?? null;
  }

  /** Shows these regions and no others. */
  set(list) {
    const kept = new Set(list.map((r) => r.cell));
    this.#remove([...this.#shown.keys()].filter((cell) => !kept.has(cell)));
    this.#ladder = null;
    this.change(list, []);
  }

  change(list, gone) {
    this.#remove(gone);
    for (const region of list) {
      const before = this.#shown.get(region.cell);
      if (before) {
        before.region = region;
      } else {
        const polygon = L.polygon(this.#outline(region), { renderer: this.#renderer, weight: 0.8, smoothFactor: 0 });
        polygon.on("click", (event) => {
          if (this.#map.getContainer().classList.contains("drawing")) return;
          L.DomEvent.stop(event);
          this.select(region.cell);
        });
        this.#shown.set(region.cell, { region, polygon: polygon.addTo(this.#map) });
      }
    }
    this.recolour();
    if (this.#selected) this.select(this.#selected, false);
  }

  #remove(cells) {
    for (const cell of cells) {
      this.#shown.get(cell)?.polygon.remove();
      this.#shown.delete(cell);
    }
  }

  /** A region's corners, in the copy of the world that is in view. */
  #outline(region) {
    const corners = decode(region.outline);
    const middle = this.#map.getCenter().lng;
    const first = corners[0][1];
    const turn = Math.round((middle - first) / 360) * 360;
    return corners.map(([lat, lon]) => [lat, lon + turn + Math.round((first - lon) / 360) * 360]);
  }

  recolour() {
    const values = [...this.#shown.values()].map((s) => this.value(s.region)).filter((v) => v !== null);
    this.#ladder ??= ladder(this.measure, values);
    for (const { region, polygon } of this.#shown.values()) {
      const value = this.value(region);
      const fillColor = value === null ? "#888888" : colour(this.#ladder, value);
      polygon.setStyle({ fillColor, color: this.edge, fillOpacity: value === null ? 0.25 : 0.82 });
    }
  }

  /** Another measure or quantile. */
  remeasure(measure, quantile) {
    [this.measure, this.quantile, this.#ladder] = [measure, quantile, null];
    this.recolour();
    if (this.#selected) this.select(this.#selected, false);
  }

  select(cell, follow = true) {
    const shown = this.#shown.get(cell);
    this.#selected = shown ? cell : null;
    for (const mark of this.#mark) {
      if (shown) mark.setLatLngs(shown.polygon.getLatLngs()).addTo(this.#map);
      else mark.remove();
    }
    if (shown && follow && !this.#map.getBounds().pad(-0.08).contains(shown.polygon.getCenter())) {
      this.#map.panTo(shown.polygon.getCenter(), { animate: false });
    }
    this.chosen(shown?.region ?? null);
  }

  #point(shown) {
    return this.#map.latLngToContainerPoint(shown.polygon.getCenter());
  }

  /** Goes to the next region in the direction of an arrow key; to the one in the middle if none is chosen. */
  step(arrow) {
    const from = this.#shown.get(this.#selected);
    const origin = from ? this.#point(from) : this.#map.getSize().divideBy(2);
    const [dx, dy] = from ? DIRECTIONS[arrow] : [0, 0];
    let best = [Infinity, null];
    for (const [cell, shown] of this.#shown) {
      const [x, y] = [this.#point(shown).x - origin.x, this.#point(shown).y - origin.y];
      const [ahead, aside] = [x * dx + y * dy, Math.abs(x * dy - y * dx)];
      if (from && (ahead <= 1 || aside > 1.8 * ahead)) continue;
      const cost = Math.hypot(x, y) + 0.7 * aside;
      if (cost < best[0]) best = [cost, cell];
    }
    if (best[1]) this.select(best[1]);
  }

  /** The poorest regions of the window, the poorest first. */
  poorest(count) {
    const bounds = this.#map.getBounds();
    const less = this.#ladder?.less ? -1 : 1;
    return [...this.#shown.values()]
      .filter((s) => this.value(s.region) !== null && bounds.contains(s.polygon.getCenter()))
      .map((s) => ({ cell: s.region.cell, value: this.value(s.region) }))
      .sort((a, b) => less * (a.value - b.value))
      .slice(0, count);
  }

  legend(into) {
    const of = this.#ladder;
    if (!of) return;
    const name = { rate: `Throughput, ${this.quantile}`, rtt: "Round-trip time", loss: "Loss", confidence: "Confidence" }[this.measure];
    const bar = element("div", undefined, { class: "bar" });
    for (const background of colours(of)) {
      const part = element("i");
      part.style.background = background;
      bar.append(part);
    }
    const ticks = element("div", undefined, { class: "ticks" });
    for (const bound of of.bounds) ticks.append(element("span", String(Number((bound * of.scale).toPrecision(3)))));
    const unit = element("div", `${name} in ${of.unit}`, { class: "unit" });
    into.replaceChildren(unit, bar, ticks);
    into.setAttribute("aria-label", `Colours: ${name} from ${of.less ? "bright, low, to dark, high" : "dark, low, to bright, high"}`);
  }
}

/** What is known of a region, as a list of terms. */
export function describe(region) {
  const list = element("dl");
  const row = (term, text) => list.append(element("dt", term), element("dd", text));
  for (const q of ["p10", "p25", "p50", "p75", "p90"]) row(q, format.rate(region[q]));
  if (region.rtt_ms !== undefined) row("round-trip time", format.rtt(region.rtt_ms));
  if (region.loss !== undefined) row("loss", format.loss(region.loss));
  row("confidence", format.confidence(region.confidence));
  row("devices", DEVICES[region.devices] ?? "");
  row("from", LEVELS[region.level] ?? "");
  row("cell", region.cell);
  return list;
}

export { element };
