// What every part of the page uses: the data, colours, elements, numbers and quantiles.
const root = document.documentElement;
const data = JSON.parse(document.getElementById("data").textContent);
const { sections, contenders, quantities, shares } = data;
const DASHES = [[], [9, 4], [2, 3], [11, 3, 2, 3], [5, 3], [16, 4], [2, 6], [8, 3, 2, 3, 2, 3]];
const SYMBOLS = ["circle", "square", "triangle", "diamond", "star", "wye", "cross", "hexagon"];
const STYLES = 8;
const FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, 'DejaVu Sans', sans-serif";
const SVG = "http://www.w3.org/2000/svg";
// Called when light and dark change.
const redraws = [];

// State that the address gives, as #scenario=0&runs=3: for links and tests.
const asked = name => new RegExp(`[#&]${name}=([^&]*)`).exec(location.hash)?.[1];

const colour = style => style < 0 ? "var(--capacity)" : `var(--c${style % STYLES})`;
const variable = name => getComputedStyle(root).getPropertyValue(name).trim();
// Canvases know no CSS variables: the value in force, looked up at each drawing.
const resolved = style => variable(style < 0 ? "--capacity" : `--c${style % STYLES}`);
const dash = style => style < 0 ? [] : DASHES[style % STYLES];
// A colour of the palette (#rrggbb) that lets so much through.
const faint = (style, alpha) => resolved(style) + alpha;

const element = (tag, attributes = {}, ...children) => {
  const e = document.createElement(tag);
  for (const [k, v] of Object.entries(attributes)) k === "class" ? e.className = v : e.setAttribute(k, v);
  e.append(...children);
  return e;
};
const drawn = (tag, attributes = {}, ...children) => {
  const e = document.createElementNS(SVG, tag);
  for (const [k, v] of Object.entries(attributes)) e.setAttribute(k, v);
  e.append(...children);
  return e;
};
const paint = line => {
  const style = Number(line.dataset.style);
  line.style.stroke = colour(style);
  line.style.strokeDasharray = dash(style).join(" ");
};
const key = style => {
  const line = drawn("line", { x1: 1, y1: 5, x2: 27, y2: 5 });
  line.dataset.style = style;
  paint(line);
  return drawn("svg", { width: 28, height: 10, class: "key", "aria-hidden": "true" }, line);
};

const number = (v, decimals) => v.toLocaleString("en", { minimumFractionDigits: decimals, maximumFractionDigits: decimals, useGrouping: "min2" }).replaceAll(",", "\u202f");
const decimals = scale => scale >= 1 ? 0 : Math.min(3, Math.round(-Math.log10(scale)));
const shortest = v => String(+v.toPrecision(12));
const withUnit = (title, unit) => unit ? `${title}, ${unit}` : title;

const mean = values => values.length ? values.reduce((a, b) => a + b, 0) / values.length : null;
const quantile = (sorted, q) => {
  const place = q * (sorted.length - 1), low = Math.floor(place);
  return sorted[low] + (sorted[Math.min(low + 1, sorted.length - 1)] - sorted[low]) * (place - low);
};
// Few runs: median, lowest and highest; 10 or more: median, 10th and 90th percentile. The program has the same rule for runs
// that it joins itself.
const BAND_RUNS = 10;
const bandName = runs => runs >= BAND_RUNS ? "10 to 90 %" : "lowest to highest";
const band = values => {
  const there = values.filter(v => v != null).sort((a, b) => a - b);
  if (!there.length) return [null, null, null];
  const edge = there.length >= BAND_RUNS ? 0.1 : 0;
  return [quantile(there, 0.5), quantile(there, edge), quantile(there, 1 - edge)];
};
// Median and band of a line over all runs, each a list in the data's own unit.
const bandOf = (all, scale) => {
  const scaled = list => list.map(v => v == null ? null : v * scale);
  if (!all.seeds.length) return all.v.map(scaled);
  const points = all.v[0].map((_, i) => band(all.v.map(run => run[i])));
  return [0, 1, 2].map(k => scaled(points.map(p => p[k])));
};
