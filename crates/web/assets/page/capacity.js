// Changes of a scenario's capacity: in its text, where the numbers stand.

const LEAST_BPS = 10e3;
/** Between two steps, in s. */
const LEAST_GAP_S = 0.5;

export function rateText(bps) {
  const round = (v) => String(Number(v.toPrecision(3)));
  return bps >= 999.5e3 ? `${round(bps / 1e6)} Mbps` : `${round(bps / 1e3)} kbps`;
}

const timeText = (s) => `${Number(s.toFixed(1))} s`;
const replace = (text, [from, to], by) => text.slice(0, from) + by + text.slice(to);
const step = (at_s, bps) => `{ at = "${timeText(at_s)}", rate = "${rateText(bps)}" }`;

/** The text with one point changed to a rate or another start. */
export function change(text, capacity, index, { rate_bps, at_s }) {
  const { points, repeat_s } = capacity;
  const point = points[index];
  if (rate_bps !== undefined) return replace(text, point.rate, `"${rateText(Math.max(rate_bps, LEAST_BPS))}"`);
  if (!point.at || index === 0) return text;
  const low = points[index - 1].at_s + LEAST_GAP_S;
  const high = (points[index + 1]?.at_s ?? repeat_s ?? Infinity) - LEAST_GAP_S;
  const at = Math.min(Math.max(Math.round(2 * at_s) / 2, low), Math.max(high, low));
  return replace(text, point.at, `"${timeText(at)}"`);
}

/** The text with a further step half-way between a point and the next, or null if there is no room. */
export function split(text, capacity, index, duration_s) {
  const { points, repeat_s, steps } = capacity;
  const point = points[index];
  const end = points[index + 1]?.at_s ?? Math.min(repeat_s ?? Infinity, Math.max(duration_s, point.at_s + 2));
  const at_s = Math.round(point.at_s + end) / 2;
  if (at_s - point.at_s < LEAST_GAP_S || end - at_s < LEAST_GAP_S) return null;
  const added = step(at_s, point.rate_bps / 2);
  if (!steps) return replace(text, point.rate, `{ steps = [${step(0, point.rate_bps)}, ${added}] }`);
  // Its own line where the steps have theirs.
  const line = text.lastIndexOf("\n", point.step[0]) + 1;
  const before = text.slice(line, point.step[0]);
  const gap = before.trim() === "" ? `,\n${before}` : ", ";
  return replace(text, [point.step[1], point.step[1]], gap + added);
}

/** The text without a step; the first stays. */
export function remove(text, capacity, index) {
  const { points } = capacity;
  // From the end of the step before it, with the comma between.
  return index === 0 ? text : replace(text, [points[index - 1].step[1], points[index].step[1]], "");
}
