// A route that is drawn or pasted, and the look-ahead along it.

import { clock } from "/map/chart.js";
import { measured, part, read } from "/map/geometry.js";
import { element } from "/map/regions.js";
import { ask } from "/map/service.js";

const $ = (id) => document.getElementById(id);
const STYLES = { known: { weight: 4 }, unknown: { weight: 3, dashArray: "2 8" }, poor: { weight: 8 } };
/** Longest look-ahead of the service, in seconds. */
const MAX_HORIZON = 86_400;

export class Route {
  #map;
  #points = [];
  #drawing = false;
  #renderer;
  #lines = L.layerGroup();
  #asked = null;
  line = null;
  segments = [];

  /** `network` gives the operator and technology; `changed` is called with each answer. */
  constructor(map, colours, network, changed) {
    Object.assign(this, { colours, network, changed });
    this.#map = map;
    map.createPane("route").style.zIndex = 450;
    this.#renderer = L.svg({ pane: "route" });
    this.#lines.addTo(map);
    $("draw").addEventListener("click", () => this.#draw(!this.#drawing));
    $("undo").addEventListener("click", () => this.set(this.#points.slice(0, -1)));
    $("clear").addEventListener("click", () => this.set([]));
    $("use").addEventListener("click", () => this.#paste());
    $("speed").addEventListener("change", () => this.look());
    $("poor").addEventListener("change", () => this.show());
    map.on("click", (event) => this.#drawing && this.#add(event.latlng));
    map.getContainer().addEventListener("keydown", (event) => this.#key(event));
  }

  get speed() {
    return Math.min(Math.max(Number($("speed").value) || 50, 1), 1_200) / 3.6;
  }

  /** Whether a stretch is poor, by its lower quartile. */
  poor = (segment) => segment.capacity !== null && segment.capacity.p25 < (Number($("poor").value) || 0) * 1e3;

  #draw(on) {
    this.#drawing = on;
    $("draw").setAttribute("aria-pressed", String(on));
    $("draw-help").hidden = !on;
    this.#map.getContainer().classList.toggle("drawing", on);
    this.#map.doubleClickZoom[on ? "disable" : "enable"]();
    if (on) this.#map.getContainer().focus({ preventScroll: true });
  }

  #add(at) {
    const { lat, lng } = at.wrap();
    this.set([...this.#points, [lat, lng]]);
  }

  #key(event) {
    if (!this.#drawing) return;
    if (event.key === "Enter") this.#add(this.#map.getCenter());
    else if (event.key === "Backspace") this.set(this.#points.slice(0, -1));
    else if (event.key === "Escape") this.#draw(false);
    else return;
    event.preventDefault();
  }

  #paste() {
    try {
      const points = read($("paste").value);
      this.set(points);
      this.#map.fitBounds(L.latLngBounds(points).pad(0.2));
    } catch (error) {
      $("route-note").textContent = error.message;
    }
  }

  set(points) {
    this.#points = points;
    $("undo").disabled = $("clear").disabled = points.length === 0;
    this.line = points.length > 1 ? measured(points) : null;
    this.segments = [];
    this.show();
    return this.look();
  }

  /** Asks what is ahead. Answers to earlier questions are dropped. */
  async look() {
    this.#asked?.abort();
    if (!this.line) return;
    const asked = (this.#asked = new AbortController());
    const points = this.#points.map(([lat, lon]) => ({ lat, lon }));
    const horizon = Math.min(Math.max(this.line.length / this.speed, 1), MAX_HORIZON);
    const question = { points, speed_mps: this.speed, horizon_s: horizon, network: this.network() };
    try {
      this.segments = (await ask("/v1/lookahead/route", question, asked.signal)).segments;
      this.show();
    } catch (error) {
      if (error.name !== "AbortError") $("route-note").textContent = error.message;
    }
  }

  show() {
    this.#lines.clearLayers();
    const add = (points, style) => L.polyline(points, { renderer: this.#renderer, interactive: false, ...style }).addTo(this.#lines);
    const dot = (at) => L.circleMarker(at, {
      renderer: this.#renderer, interactive: false, radius: 5, weight: 2, color: this.colours.casing, fillColor: this.colours.route, fillOpacity: 1,
    }).addTo(this.#lines);
    if (this.line) {
      add(this.line.points, { weight: 8, color: this.colours.casing });
      if (this.segments.length === 0) add(this.line.points, { color: this.colours.route, ...STYLES.known });
      for (const s of this.segments) {
        const kind = s.capacity === null ? "unknown" : this.poor(s) ? "poor" : "known";
        const color = kind === "poor" ? this.colours.poor : this.colours.route;
        add(part(this.line, s.from_s * this.speed, s.to_s * this.speed), { color, lineCap: "butt", ...STYLES[kind] });
      }
    }
    for (const at of [this.#points[0], this.#points.at(-1)].filter(Boolean)) dot(at);
    this.#note();
    this.changed();
  }

  #note() {
    const end = this.segments.at(-1)?.to_s ?? 0;
    const sum = (which) => this.segments.filter(which).reduce((sum, s) => sum + s.to_s - s.from_s, 0);
    const share = (s) => `${Math.round((100 * s) / end)} %`;
    $("route-note").textContent = !this.line
      ? this.#points.length === 1 ? "One point: a route has two at least." : ""
      : end === 0 ? "No answer yet."
      : `${(this.line.length / 1e3).toFixed(1)} km in ${clock(end)}: poor ${share(sum(this.poor))}, not known ${share(sum((s) => !s.capacity))}.`;
    const rows = this.segments.map((s) => {
      const row = element("tr", undefined, this.poor(s) ? { class: "poor" } : {});
      const values = ["p10", "p25", "p50", "p75", "p90"].map((q) => (s.capacity ? String(Math.round(s.capacity[q] / 1e3)) : "-"));
      const km = ((s.from_s * this.speed) / 1e3).toFixed(2);
      row.append(...[`${clock(s.from_s)} to ${clock(s.to_s)}`, km, ...values].map((v) => element("td", v)));
      return row;
    });
    const table = element("table");
    const head = element("tr");
    head.append(...["time", "from km", "p10", "p25", "p50", "p75", "p90"].map((v) => element("th", v, { scope: "col" })));
    table.append(element("caption", "Throughput in kbit/s"), head, ...rows);
    $("stretches").replaceChildren(table);
  }
}
