// The page: joins map, regions, route, ride and chart.

import { Background } from "/map/background.js";
import { Chart } from "/map/chart.js";
import { format } from "/map/colours.js";
import { decode, position } from "/map/geometry.js";
import { Regions, describe, element } from "/map/regions.js";
import { Ride } from "/map/ride.js";
import { Route } from "/map/route.js";
import { Live, ask, key } from "/map/service.js";

const $ = (id) => document.getElementById(id);
/** Regions have this many pixels on average, or more. */
const REGION_PX = 220;
/** Time between questions without a feed. */
const POLL_MS = 15_000;

// What the address says is in its fragment, which browsers do not send. A key is removed from there.
const given = new URLSearchParams(location.hash.slice(1));
if (given.has("key")) {
  key.set(given.get("key"));
  given.delete("key");
  history.replaceState(null, "", given.size ? `#${given}` : location.pathname);
}

const dark = matchMedia("(prefers-color-scheme: dark)");
function theme() {
  const chosen = $("theme").value;
  document.documentElement.dataset.theme = chosen;
  document.documentElement.toggleAttribute("data-dark", chosen ? chosen === "dark" : dark.matches);
  const style = getComputedStyle(document.documentElement);
  const names = ["dim", "land", "coast", "grid", "route", "casing", "poor", "ride", "wide", "inner", "median", "shade", "edge"];
  return Object.fromEntries(names.map((name) => [name, style.getPropertyValue(`--${name}`).trim()]));
}
$("theme").value = localStorage.getItem("weir.coverage.theme") ?? "";
let colours = theme();

const moving = !matchMedia("(prefers-reduced-motion: reduce)").matches;
const map = L.map("map", {
  worldCopyJump: true, minZoom: 2, maxZoom: 18, zoomSnap: 0.5, attributionControl: false,
  zoomAnimation: moving, fadeAnimation: moving, inertia: moving,
});
L.control.attribution({ prefix: false }).addAttribution("Land: Natural Earth").addTo(map);
L.control.scale({ imperial: false, maxWidth: 140 }).addTo(map);
const background = new Background(map, colours);

let error = "";
const regions = new Regions(map, colours.edge, (region) => {
  $("region-values").replaceChildren(region ? describe(region) : element("p", "None chosen.", { class: "help" }));
});
const network = () => {
  const of = {};
  if ($("operator").value) of.operator = $("operator").value;
  if ($("technology").value) of.technology = $("technology").value;
  return of;
};
const chart = new Chart($("chart"), colours, (time) => point(time));
const pointer = L.circleMarker([0, 0], { radius: 7, weight: 3, fill: false, interactive: false });
const route = new Route(map, colours, network, () => forecast());
const ride = new Ride(map, colours, route, network, (device) => live.follow(device), () => forecast());

const live = new Live(heard, (open) => {
  if (!open) refresh();
  state();
});

function forecast() {
  ride.sync();
  const segments = ride.segments;
  $("forecast").hidden = segments.length === 0 && ride.measured.length === 0;
  if ($("forecast").hidden) chart.clear();
  else {
    const { measured, present } = ride;
    chart.show({ segments, measured, present, poor: route.poor, speed: route.line ? route.speed : 0 });
  }
  map.invalidateSize({ pan: false });
}

function point(time) {
  if (time === null || !route.line) return void pointer.remove();
  pointer.setStyle({ color: colours.poor }).setLatLng(position(route.line, time * route.speed)).addTo(map);
}

function heard(message) {
  error = "";
  if (message.type === "regions") show(message);
  else if (message.type === "changes") {
    regions.change(message.regions, message.gone);
    made = message.made_ms;
    aside();
  } else if (message.type === "reports") ride.hear(message.reports);
  else if (message.type === "error") error = message.detail;
  state();
}

let [made, resolution, complete] = [0, 0, true];
function show(answer) {
  [made, resolution, complete] = [answer.made_ms, answer.resolution, answer.complete];
  regions.set(answer.regions);
  const chosen = $("operator").value;
  const names = new Set([...answer.operators, ...(chosen ? [chosen] : [])]);
  const option = (name) => element("option", name || "all", { value: name });
  $("operator").replaceChildren(...["", ...[...names].sort()].map(option));
  $("operator").value = chosen;
  aside();
  state();
}

function aside() {
  regions.legend($("legend"));
  const items = regions.poorest(8).map(({ cell, value }) => {
    const button = element("button", format[regions.measure](value), { type: "button" });
    button.addEventListener("click", () => regions.select(cell));
    const item = element("li");
    item.append(button);
    return item;
  });
  $("poorest").querySelector("ol").replaceChildren(...items);
}

function state() {
  const { lat, lng } = map.getCenter().wrap();
  const at = `${Math.abs(lat).toFixed(3)} ${lat < 0 ? "S" : "N"}, ${Math.abs(lng).toFixed(3)} ${lng < 0 ? "W" : "E"}`;
  const how = live.open ? "live" : "asked every 15 s";
  const all = complete ? "" : ", not all that are known";
  const time = made ? `, ${how}, ${new Date(made).toLocaleTimeString()}` : "";
  $("state").textContent = error || `${regions.count} regions of H3 resolution ${resolution}${all} around ${at}${time}`;
  document.body.dataset.regions = regions.count;
}

/** The window in the service's terms. */
function wanted() {
  const bounds = map.getBounds();
  const size = map.getSize();
  const wrap = (lon) => ((((lon + 180) % 360) + 360) % 360) - 180;
  const all = bounds.getEast() - bounds.getWest() >= 359;
  const window = {
    south: Math.max(bounds.getSouth(), -90), north: Math.min(bounds.getNorth(), 90),
    west: all ? -180 : wrap(bounds.getWest()), east: all ? 180 : wrap(bounds.getEast()),
  };
  const most = Math.round(Math.min(Math.max((size.x * size.y) / REGION_PX, 100), 4_000));
  return { window, network: network(), hours: $("hours").value, most };
}

let timer = 0;
/** Asks for the window, now if there is no feed. */
async function refresh() {
  clearTimeout(timer);
  if (!key.get()) return;
  const request = wanted();
  live.watch(request);
  if (live.open) return;
  timer = setTimeout(refresh, POLL_MS);
  try {
    error = "";
    show(await ask("/v1/regions", request));
  } catch (refused) {
    if (refused.status === 401) return askKey(key.get() ? "That key is not valid." : "");
    error = refused.message;
    state();
  }
}

let soon = 0;
const later = () => {
  clearTimeout(soon);
  soon = setTimeout(refresh, 200);
};

function askKey(why) {
  clearTimeout(timer);
  if (why) $("ask-why").textContent = why;
  if (!$("ask").open) $("ask").showModal();
}

/** Looks from afar where there are reports, and goes there. */
async function find() {
  map.setView([25, 10], 2);
  for (let step = 0; step < 6; step += 1) {
    const answer = await ask("/v1/regions", { ...wanted(), hours: "any", network: {} });
    if (answer.regions.length === 0) return;
    const corners = answer.regions.flatMap((r) => decode(r.outline));
    const before = map.getZoom();
    map.fitBounds(L.latLngBounds(corners), { maxZoom: 15, animate: false });
    if (map.getZoom() <= before) return;
  }
}

async function start() {
  if (!key.get()) return askKey("");
  try {
    if (given.has("route")) {
      const points = decode(given.get("route"));
      await route.set(points);
      map.fitBounds(L.latLngBounds(points).pad(0.1), { animate: false });
    } else await find();
  } catch (refused) {
    if (refused.status === 401) return askKey("That key is not valid.");
    error = refused.message;
    if (map.getZoom() === undefined) map.setView([25, 10], 2);
  }
  await refresh();
  live.connect();
  if (given.has("follow")) {
    $("device").value = given.get("follow");
    ride.follow(given.get("follow"));
    live.follow(given.get("follow"));
  }
  document.body.dataset.ready = "yes";
}

$("ask-form").addEventListener("submit", (event) => {
  event.preventDefault();
  key.set($("ask-key").value);
  $("ask-key").value = "";
  $("ask").close();
  start();
});
$("key").addEventListener("click", () => askKey(""));
for (const id of ["operator", "technology", "hours"]) {
  $(id).addEventListener("change", () => {
    refresh();
    route.look();
  });
}
const remeasure = () => {
  $("quantiles").disabled = $("measure").value !== "rate";
  regions.remeasure($("measure").value, document.querySelector("[name=quantile]:checked").value);
  aside();
};
$("measure").addEventListener("change", remeasure);
$("quantiles").addEventListener("change", remeasure);
$("region").addEventListener("keydown", (event) => {
  if (event.target !== $("region")) return;
  if (event.key.startsWith("Arrow")) regions.step(event.key);
  else if (event.key === "+" || event.key === "=") map.zoomIn();
  else if (event.key === "-") map.zoomOut();
  else if (event.key === "Escape") regions.select(null);
  else return;
  event.preventDefault();
});
const repaint = () => {
  colours = theme();
  background.recolour(colours);
  chart.recolour(colours);
  regions.edge = colours.edge;
  regions.recolour();
  route.colours = colours;
  route.show();
  ride.recolour(colours);
};
$("theme").addEventListener("change", () => {
  localStorage.setItem("weir.coverage.theme", $("theme").value);
  repaint();
});
dark.addEventListener("change", repaint);
map.on("moveend", () => {
  aside();
  state();
  later();
});

for (const id of ["operator", "technology", "speed", "poor"]) {
  if (!given.has(id)) continue;
  if (id === "operator") $(id).append(element("option", given.get(id), { value: given.get(id) }));
  $(id).value = given.get(id);
}
regions.select(null);
map.setView([25, 10], 2);
background.load();
start();
