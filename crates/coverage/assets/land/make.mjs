// Writes ../map/land.txt from land-50m.json of the npm package world-atlas 2.0.2: node make.mjs land-50m.json
// A polygon a line; its rings are separated by spaces, each a polyline of Google's format with 2 decimals.
import { readFileSync, writeFileSync } from "node:fs";

const { arcs, transform, objects } = JSON.parse(readFileSync(process.argv[2], "utf8"));
const lines = arcs.map((arc) => {
  let [x, y] = [0, 0];
  return arc.map(([dx, dy]) => {
    [x, y] = [x + dx, y + dy];
    const at = (v, i) => Math.round((v * transform.scale[i] + transform.translate[i]) * 100);
    return [at(y, 1), at(x, 0)];
  });
});

function number(value) {
  let rest = value < 0 ? ~(value << 1) : value << 1;
  let text = "";
  for (; rest >= 32; rest >>= 5) text += String.fromCharCode((rest & 31) + 32 + 63);
  return text + String.fromCharCode(rest + 63);
}

function unwrapped(indices) {
  // Across the antimeridian longitudes go on, and around a pole the ring closes through it.
  const points = [];
  let turn = 0;
  for (const [a, b] of indices.flatMap((i) => (i < 0 ? [...lines[~i]].reverse() : lines[i]))) {
    const before = points.at(-1)?.[1];
    if (before !== undefined) turn += 36_000 * Math.round((before - b - turn) / 36_000);
    points.push([a, b + turn]);
  }
  if (Math.abs(points.at(-1)[1] - points[0][1]) > 18_000) {
    const pole = points[0][0] < 0 ? -9_000 : 9_000;
    points.push([pole, points.at(-1)[1]], [pole, points[0][1]]);
  }
  const longitudes = points.map((p) => p[1]);
  const middle = (Math.min(...longitudes) + Math.max(...longitudes)) / 2;
  return points.map(([a, b]) => [a, b - 36_000 * Math.round(middle / 36_000)]);
}

function ring(points) {
  let [lat, lon] = [0, 0];
  let text = "";
  let count = 0;
  for (const [a, b] of points) {
    if (count > 0 && a === lat && b === lon) continue;
    text += number(a - lat) + number(b - lon);
    [lat, lon] = [a, b];
    count += 1;
  }
  return count > 3 ? text : "";
}

const polygons = objects.land.geometries.flatMap((g) => (g.type === "Polygon" ? [g.arcs] : g.arcs));
const text = polygons.map((rings) => rings.map(unwrapped).map(ring).filter(Boolean).join(" ")).filter(Boolean);
writeFileSync(new URL("../map/land.txt", import.meta.url), text.join("\n") + "\n");
