// Lines on the Earth, as [latitude, longitude] in degrees, and their lengths in metres.

const RADIUS = 6_371_008.8;
const rad = (degrees) => (degrees * Math.PI) / 180;

export function distance([lat1, lon1], [lat2, lon2]) {
  const [a, b] = [rad(lat1), rad(lat2)];
  const h = Math.sin((b - a) / 2) ** 2 + Math.cos(a) * Math.cos(b) * Math.sin(rad(lon2 - lon1) / 2) ** 2;
  return 2 * RADIUS * Math.asin(Math.sqrt(Math.min(h, 1)));
}

/** Degrees clockwise from north. */
export function bearing([lat1, lon1], [lat2, lon2]) {
  const [a, b, d] = [rad(lat1), rad(lat2), rad(lon2 - lon1)];
  const y = Math.sin(d) * Math.cos(b);
  const x = Math.cos(a) * Math.sin(b) - Math.sin(a) * Math.cos(b) * Math.cos(d);
  return ((Math.atan2(y, x) * 180) / Math.PI + 360) % 360;
}

/** Decodes a polyline of Google's format. Throws where it is none. Longitudes may go on across the antimeridian. */
export function decode(text, decimals = 5) {
  const unit = 10 ** -decimals;
  const points = [];
  let [at, lat, lon] = [0, 0, 0];
  const number = () => {
    let [value, shift] = [0, 0];
    for (;;) {
      const bits = text.charCodeAt(at) - 63;
      if (!(bits >= 0 && bits < 64) || shift > 30) throw new RangeError(`no polyline: byte ${at}`);
      at += 1;
      value += (bits & 31) * 2 ** shift;
      shift += 5;
      if (bits < 32) return value % 2 ? -(value + 1) / 2 : value / 2;
    }
  };
  while (at < text.length) {
    lat += number();
    lon += number();
    if (Math.abs(lat * unit) > 90 || Math.abs(lon * unit) > 360) throw new RangeError(`no polyline: byte ${at}`);
    points.push([lat * unit, lon * unit]);
  }
  return points;
}

/** Reads a route as pasted: "lat, lon" by lines, or a polyline. */
export function read(text) {
  const lines = text.trim().split(/[\n;]+/).map((line) => line.trim()).filter(Boolean);
  const numbers = lines.map((line) => line.match(/^(-?\d+(?:\.\d+)?)[\s,]+(-?\d+(?:\.\d+)?)$/));
  const points = numbers.every(Boolean) ? numbers.map((m) => [Number(m[1]), Number(m[2])]) : decode(lines.join(""));
  if (points.some(([lat, lon]) => Math.abs(lat) > 90 || Math.abs(lon) > 180)) {
    throw new RangeError("latitudes are -90 to 90, longitudes -180 to 180");
  }
  if (points.length < 2 || points.length > 2_000) throw new RangeError(`a route has 2 to 2,000 points: got ${points.length}`);
  return points;
}

/** A line with the distance of each of its points from the begin. */
export function measured(points) {
  let length = 0;
  const at = points.map((p, i) => (length += i ? distance(points[i - 1], p) : 0));
  return { points, at, length };
}

const between = (a, b, share) => [a[0] + (b[0] - a[0]) * share, a[1] + (b[1] - a[1]) * share];

/** The position so far along a line. */
export function position(line, metres) {
  const i = line.at.findIndex((at) => at >= metres);
  if (i < 0) return line.points.at(-1);
  if (i === 0) return line.points[0];
  const leg = line.at[i] - line.at[i - 1];
  return between(line.points[i - 1], line.points[i], leg > 0 ? (metres - line.at[i - 1]) / leg : 0);
}

/** The part of a line between two distances. */
export function part(line, from, to) {
  const inside = line.points.filter((_, i) => line.at[i] > from && line.at[i] < to);
  return [position(line, from), ...inside, position(line, to)];
}

/** How far along a line a position is: where it passes within `off` metres, next after `from` if it passes more than once. */
export function along(line, at, from, off = 60) {
  const scale = [1, Math.cos(rad(at[0]))];
  const hits = [];
  for (let i = 1; i < line.points.length; i += 1) {
    const [a, b] = [line.points[i - 1], line.points[i]];
    const [x, y] = [(b[0] - a[0]) * scale[0], (b[1] - a[1]) * scale[1]];
    const squared = x * x + y * y;
    const dot = (at[0] - a[0]) * scale[0] * x + (at[1] - a[1]) * scale[1] * y;
    const share = squared > 0 ? Math.min(Math.max(dot / squared, 0), 1) : 0;
    if (distance(at, between(a, b, share)) <= off) hits.push(line.at[i - 1] + share * (line.at[i] - line.at[i - 1]));
  }
  const next = hits.filter((h) => h >= from - 40 && h <= from + 400);
  return next[0] ?? hits[0] ?? null;
}
