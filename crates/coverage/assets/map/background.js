// Land and a grid of meridians and parallels, drawn from a file of the service.

import { decode } from "/map/geometry.js";

// Land is rounded to 1.1 km: nearer than this it would be wrong by more than it shows.
const LAST_ZOOM = 10;
const STEPS = [30, 10, 5, 2, 1, 0.5, 0.2, 0.1, 0.05, 0.02, 0.01, 0.005, 0.002, 0.001];
// Least distance between lines of the grid, in pixels.
const APART = 110;

export class Background {
  #map;
  #renderer;
  #polygons = null;
  // Copies of the world in view, by the turns they are off.
  #land = new Map();
  #grid = null;
  #colours;

  constructor(map, colours) {
    this.#map = map;
    map.createPane("background").style.zIndex = 200;
    this.#renderer = L.canvas({ pane: "background", padding: 0.2 });
    this.#colours = colours;
    map.on("moveend", () => this.draw());
  }

  async load() {
    const text = await (await fetch("/map/land.txt")).text();
    this.#polygons = text.trim().split("\n").map((line) => line.split(" ").map((ring) => decode(ring, 2)));
    this.draw();
  }

  recolour(colours) {
    this.#colours = colours;
    this.draw();
  }

  draw() {
    const zoom = this.#map.getZoom();
    if (zoom === undefined) return;
    const far = zoom <= LAST_ZOOM;
    this.#map.getContainer().classList.toggle("near", !far);
    const bounds = this.#map.getBounds().pad(0.2);
    this.#drawLand(far ? bounds : null);
    this.#grid?.remove();
    const degrees = (APART * (bounds.getEast() - bounds.getWest())) / (this.#map.getSize().x * 1.4);
    const step = STEPS.findLast((s) => s >= degrees) ?? 30;
    const [south, north] = [Math.max(bounds.getSouth(), -85), Math.min(bounds.getNorth(), 85)];
    const lines = [];
    for (let lon = Math.ceil(bounds.getWest() / step) * step; lon <= bounds.getEast(); lon += step) {
      lines.push([[south, lon], [north, lon]]);
    }
    for (let lat = Math.ceil(south / step) * step; lat <= north; lat += step) {
      lines.push([[lat, bounds.getWest()], [lat, bounds.getEast()]]);
    }
    const style = { renderer: this.#renderer, interactive: false, color: this.#colours.grid, weight: 1, noClip: true };
    this.#grid = L.polyline(lines, style).addTo(this.#map);
  }

  /** Land in these bounds, or none. */
  #drawLand(bounds) {
    for (const turn of [-1, 0, 1]) {
      // Land crosses the antimeridian by up to 30 degrees.
      const middle = 360 * turn;
      const seen = this.#polygons && bounds && bounds.getWest() < middle + 210 && bounds.getEast() > middle - 210;
      if (!seen) {
        this.#land.get(turn)?.remove();
        continue;
      }
      if (!this.#land.has(turn)) {
        const moved = this.#polygons.map((rings) => rings.map((ring) => ring.map(([lat, lon]) => [lat, lon + middle])));
        const style = { renderer: this.#renderer, interactive: false, smoothFactor: 1.5, weight: 1, fillOpacity: 1 };
        this.#land.set(turn, L.polygon(moved, style));
      }
      const { coast: color, land: fillColor } = this.#colours;
      this.#land.get(turn).setStyle({ color, fillColor }).addTo(this.#map).bringToBack();
    }
  }
}
