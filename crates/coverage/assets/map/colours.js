// How values become colours: viridis in seven classes, which stay apart for all common kinds of colour blindness, in print and
// by lightness alone. Dark is poor, whatever is measured.

const VIRIDIS = ["#440154", "#443983", "#31688e", "#21918c", "#35b779", "#90d743", "#fde725"];

const mbps = (bps) => (bps < 999_500 ? `${digits(bps / 1e3)} kbit/s` : `${digits(bps / 1e6)} Mbit/s`);
const digits = (value) => (value >= 100 ? Math.round(value).toString() : String(Number(value.toPrecision(2))));

export const format = {
  rate: mbps,
  rtt: (ms) => `${digits(ms)} ms`,
  loss: (share) => `${digits(share * 100)} %`,
  confidence: (share) => share.toFixed(2),
};

// Bounds between the classes. Throughput has three ladders: 3G, LTE and 5G.
const LADDERS = {
  rate: [
    { unit: "kbit/s", scale: 1e-3, bounds: [1e5, 2.5e5, 5e5, 1e6, 2e6, 4e6] },
    { unit: "Mbit/s", scale: 1e-6, bounds: [5e5, 1e6, 2.5e6, 5e6, 1e7, 2.5e7] },
    { unit: "Mbit/s", scale: 1e-6, bounds: [5e6, 1e7, 2.5e7, 5e7, 1e8, 2.5e8] },
  ],
  rtt: [{ unit: "ms", scale: 1, bounds: [30, 50, 75, 100, 200, 400], less: true }],
  loss: [{ unit: "%", scale: 100, bounds: [0.001, 0.005, 0.01, 0.02, 0.05, 0.1], less: true }],
  confidence: [{ unit: "0 to 1", scale: 1, bounds: [0.1, 0.25, 0.4, 0.5, 0.6, 0.75] }],
};

/** The ladder that fits most of the values. */
export function ladder(measure, values) {
  const ladders = LADDERS[measure];
  const sorted = [...values].sort((a, b) => a - b);
  const high = sorted[Math.floor(sorted.length * 0.75)] ?? 0;
  return ladders.find((l) => high <= l.bounds.at(-1)) ?? ladders.at(-1);
}

/** Colours in the order of rising values. */
export const colours = (of) => (of.less ? [...VIRIDIS].reverse() : VIRIDIS);

export function colour(of, value) {
  const i = of.bounds.findIndex((bound) => value < bound);
  return colours(of)[i < 0 ? 6 : i];
}
