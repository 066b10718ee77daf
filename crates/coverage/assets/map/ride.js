// A device that moves: its position, what it measured, and what was foretold. Along the route if it is on it; else each forecast
// is that of the sector ahead, made at least five seconds before.

import { along, bearing, distance } from "/map/geometry.js";
import { ask } from "/map/service.js";

const $ = (id) => document.getElementById(id);
/** Reports that are drawn. */
const MOST = 900;
/** Between two forecasts without a route, and how far they reach, in seconds. */
const AGAIN = 5;
const AHEAD = 30;

export class Ride {
  #map;
  #marker = null;
  #trail;
  #reports = [];
  #begin = 0;
  #asked = -Infinity;
  #foretold = new Map();
  #at = 0;
  #on = [null, 0];
  following = null;
  measured = [];
  present = null;

  constructor(map, colours, route, network, follow, changed) {
    Object.assign(this, { colours, route, network, changed });
    this.#map = map;
    const renderer = L.svg({ pane: "route" });
    this.#trail = L.polyline([], { renderer, interactive: false, weight: 2, dashArray: "1 5" });
    this.#marker = L.circleMarker([0, 0], { renderer, interactive: false, radius: 9, weight: 4, fillOpacity: 1 });
    $("follow").addEventListener("click", () => {
      this.follow(this.following === null ? $("device").value : null);
      follow(this.following);
    });
  }

  follow(device) {
    this.following = device;
    $("follow").setAttribute("aria-pressed", String(device !== null));
    this.#forget();
    this.#reports = [];
    this.#trail.remove();
    this.#marker.remove();
    $("ride-note").textContent = device === null ? "" : "No report yet.";
    this.changed();
  }

  #forget() {
    [this.measured, this.present, this.#at] = [[], null, 0];
    [this.#foretold, this.#asked, this.#begin] = [new Map(), -Infinity, 0];
  }

  /** Begins again if the route or its speed is another: what was measured is placed by them. */
  sync() {
    const { line, speed } = this.route;
    if (line !== this.#on[0] || speed !== this.#on[1]) this.#forget();
    this.#on = [line, speed];
  }

  recolour(colours) {
    this.colours = colours;
    this.#trail.setStyle({ color: colours.ride });
    this.#marker.setStyle({ color: colours.casing, fillColor: colours.ride });
  }

  /** Takes reports of the device. */
  hear(reports) {
    if (this.following === null) return;
    this.sync();
    const first = this.#reports.length === 0;
    for (const report of reports) this.#take(report);
    this.measured = this.measured.slice(-MOST);
    this.#reports = this.#reports.slice(-MOST);
    const at = this.#reports.map((r) => r.at);
    this.recolour(this.colours);
    this.#trail.setLatLngs(at).addTo(this.#map);
    this.#marker.setLatLng(at.at(-1)).addTo(this.#map);
    if (first || !this.#map.getBounds().contains(at.at(-1))) this.#map.panTo(at.at(-1), { animate: false });
    this.#note();
    this.changed();
  }

  #take({ time_ms, position, throughput_bps }) {
    const at = [position.lat, position.lon];
    this.#reports.push({ time: time_ms / 1e3, at, rate: throughput_bps });
    const line = this.route.line;
    const metres = line ? along(line, at, this.#at) : null;
    if (metres !== null) {
      // Another round begins.
      if (metres < this.#at - 150) this.#forget();
      this.#at = metres;
      this.present = metres / this.route.speed;
      this.measured.push([this.present, throughput_bps]);
    } else if (!line) {
      this.#begin ||= time_ms / 1e3;
      this.present = time_ms / 1e3 - this.#begin;
      this.measured.push([this.present, throughput_bps]);
      this.#foretell();
    }
  }

  async #foretell() {
    const [before, last] = [this.#reports.at(-4), this.#reports.at(-1)];
    if (!before || last.time - this.#asked < AGAIN || last.time <= before.time) return;
    this.#asked = last.time;
    const begin = this.#begin;
    const speed = distance(before.at, last.at) / (last.time - before.time);
    if (speed < 0.5) return;
    const question = {
      position: { lat: last.at[0], lon: last.at[1] }, heading_deg: bearing(before.at, last.at), speed_mps: Math.min(speed, 300),
      radius_m: Math.max(speed * AHEAD, 60), network: this.network(),
    };
    const answer = await ask("/v1/lookahead/area", question).catch((error) => {
      $("ride-note").textContent = error.message;
      return { segments: [] };
    });
    if (begin !== this.#begin) return;
    for (let s = AGAIN; s < AHEAD; s += 1) {
      const segment = answer.segments.find((g) => s >= g.from_s && s < g.to_s);
      const time = Math.round(last.time - begin) + s;
      this.#foretold.set(time, { from_s: time, to_s: time + 1, capacity: segment?.capacity ?? null });
    }
    for (const time of [...this.#foretold.keys()].slice(0, -MOST)) this.#foretold.delete(time);
    this.#note();
    this.changed();
  }

  /** What was foretold: along the route, or as it came. */
  get segments() {
    if (this.route.line) return this.route.segments;
    return [...this.#foretold.values()].sort((a, b) => a.from_s - b.from_s);
  }

  #note() {
    const inside = { all: 0, half: 0, most: 0 };
    const segments = this.segments;
    for (const [time, rate] of this.measured) {
      const known = segments.find((s) => time >= s.from_s && time < s.to_s)?.capacity;
      if (!known) continue;
      inside.all += 1;
      inside.half += rate >= known.p25 && rate <= known.p75;
      inside.most += rate >= known.p10 && rate <= known.p90;
    }
    const share = (n) => `${Math.round((100 * n) / inside.all)} %`;
    const off = this.route.line && this.present === null ? " It is not on the route." : "";
    const now = `${Math.round(this.#reports.at(-1).rate / 1e3)} kbit/s now.`;
    $("ride-note").textContent = inside.all === 0
      ? `${now}${off}`
      : `${now} Of ${inside.all} measurements ${share(inside.half)} between p25 and p75, ${share(inside.most)} between p10 and p90.${off}`;
  }
}
