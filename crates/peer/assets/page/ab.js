// Two calls beside each other: Weir's clip under two controllers, through equal links.

import { Call, ask } from "/page/call.js";
import { $, download, notice, open } from "/page/common.js";
import { Plot } from "/page/plots.js";

const SIDES = ["a", "b"];
const POLL_MS = 200;
const WINDOW_S = 60;
/** Samples saved of each call: an hour. */
const MAX_SAMPLES = 36000;

// The setting is in the address.
open();
const given = new URLSearchParams(location.search);

const plots = {
  rates: new Plot($("rates"), [["target A", "one"], ["sent A", "one-light"], ["target B", "two"], ["sent B", "two-light"], ["capacity of the links", "four"]]),
  delays: new Plot($("delays"), [["A", "one"], ["B", "two"]]),
  losses: new Plot($("losses"), [["A", "one"], ["B", "two"]]),
};
let menu = null;
let run = null;

const setting = () => ({ ab: SIDES.map((s) => $(`controller-${s}`).value), max: Number($("max").value) });

/** The address of this page with the setting, without the token. */
function address() {
  const { ab, max } = setting();
  return `${location.pathname}?${new URLSearchParams({ ab: ab.join(), max })}`;
}

async function load() {
  menu = await (await ask("/controllers")).json();
  const asked = (given.get("ab") ?? "").split(",");
  const names = menu.controllers.map((c) => c.name);
  const usual = [menu.controller, names.find((n) => n === "sluice" && n !== menu.controller) ?? names[0]];
  SIDES.forEach((side, n) => {
    $(`controller-${side}`).replaceChildren(...names.map((name) => new Option(name, name)));
    $(`controller-${side}`).value = names.includes(asked[n]) ? asked[n] : usual[n];
  });
  $("max").value = given.get("max") ?? menu.max_kbps;
  $("about-link").textContent = menu.has_link ? "Each is behind a link of its own, and both links are equal." : "There is no emulated link: start weir live webrtc with --link to put equal ones before both.";
  show();
  document.body.dataset.ready = "yes";
}

async function start() {
  $("start").disabled = true;
  delete document.body.dataset.idle;
  notice("");
  const { ab, max } = setting();
  const mine = { ab, max, calls: [new Call(), new Call()], samples: [[], []], stats: [null, null], seen: [null, null] };
  run = mine;
  try {
    await Promise.all(mine.calls.map((call, n) => call.start(null, { controller: ab[n], max, codec: menu.codec, way: "whep" }, () => {
      const video = $(`video-${SIDES[n]}`);
      if (mine === run && video.srcObject !== call.remote) video.srcObject = call.remote;
    })));
    $("start").textContent = "Stop";
    $("save").disabled = false;
    poll(mine);
  } catch (e) {
    notice(`No calls: ${e.message}`);
    await end();
  }
  $("start").disabled = false;
}

async function end() {
  const ended = run;
  if (!ended) return;
  ended.isOver = true;
  $("start").textContent = "Start";
  $("state").textContent = "Stopped.";
  await Promise.all(ended.calls.map((call) => call.stop().catch(() => {})));
  document.body.dataset.idle = "yes";
}

async function poll(mine) {
  try {
    for (let turn = 0; mine === run && !mine.isOver; turn += 1) {
      await Promise.all(mine.calls.map(async (call, n) => {
        [mine.seen[n], mine.stats[n]] = await Promise.all([call.seen(), call.stats()]);
        if (turn % 5 === 0) call.tell(mine.stats[n]).catch(() => {});
        mine.samples[n].push(...mine.seen[n].samples);
        mine.samples[n].splice(0, mine.samples[n].length - MAX_SAMPLES);
      }));
      if (mine !== run || mine.isOver) return;
      show();
      const ended = mine.seen.find((seen) => seen.state === "ended");
      if (ended) {
        notice(`A call has ended: ${ended.reason}. Start again.`);
        return end();
      }
      await new Promise((done) => setTimeout(done, POLL_MS));
    }
  } catch (e) {
    if (mine !== run) return;
    notice(`The service does not answer: ${e.message}. Start again.`);
    await end();
  }
}

const kbps = (bps) => (bps === null || bps === undefined ? null : bps / 1e3);
const mean = (values) => (values.length ? values.reduce((a, b) => a + b, 0) / values.length : null);
const text = (value, digits) => (value === null || value === undefined ? "-" : value.toFixed(digits));

function quantile(values, share) {
  const sorted = values.toSorted((a, b) => a - b);
  return sorted.length ? sorted[Math.min(Math.floor(share * sorted.length), sorted.length - 1)] : null;
}

function row(cells) {
  const line = document.createElement("tr");
  for (const cell of cells) line.insertCell().textContent = cell;
  return line;
}

function show() {
  // Both on one axis of tenths of a second.
  const tenths = [new Map(), new Map()];
  const recent = (samples) => samples.slice(-10 * (WINDOW_S + 1));
  run?.samples.forEach((samples, n) => recent(samples).forEach((s) => tenths[n].set(Math.round(10 * s.t_s), s)));
  const times = [...new Set(tenths.flatMap((t) => [...t.keys()]))].sort((a, b) => a - b);
  const line = (n, value) => times.map((t) => (tenths[n].has(t) ? value(tenths[n].get(t)) : null));
  const x = times.map((t) => t / 10);
  const both = (value) => [0, 1].map((n) => line(n, value));
  const capacity = times.map((t) => kbps((tenths[0].get(t) ?? tenths[1].get(t))?.link?.capacity_bps));
  const rates = [0, 1].flatMap((n) => [line(n, (s) => kbps(s.target_bps)), line(n, (s) => kbps(s.sent_bps))]);
  plots.rates.show([x, ...rates, capacity]);
  plots.delays.show([x, ...both((s) => s.delay_ms)]);
  plots.losses.show([x, ...both((s) => (s.loss === null ? null : 100 * s.loss))]);
  const of = (n, value) => [...tenths[n].values()].map(value).filter((v) => v !== null && v !== undefined);
  const pair = (label, value) => row([label, value(0), value(1)]);
  $("both").replaceChildren(
    pair("target, kbit/s", (n) => text(mean(of(n, (s) => kbps(s.target_bps))), 0)),
    pair("sent, kbit/s", (n) => text(mean(of(n, (s) => kbps(s.sent_bps))), 0)),
    pair("delay, median, ms", (n) => text(quantile(of(n, (s) => s.delay_ms), 0.5), 0)),
    pair("delay, 95th percentile, ms", (n) => text(quantile(of(n, (s) => s.delay_ms), 0.95), 0)),
    pair("loss, %", (n) => text(mean(of(n, (s) => (s.loss === null ? null : 100 * s.loss))), 2)),
    pair("frames decoded", (n) => text(run?.stats[n]?.inbound?.framesDecoded ?? null, 0)),
    pair("freezes", (n) => text(run?.stats[n]?.inbound?.freezeCount ?? null, 0)),
  );
  SIDES.forEach((side, n) => {
    const inbound = run?.stats[n]?.inbound;
    $(`text-${side}`).textContent = `${run?.seen[n]?.controller ?? "-"}, ${inbound?.frameWidth ?? "-"}x${inbound?.frameHeight ?? "-"}, ${text(inbound?.framesPerSecond ?? null, 0)} a second`;
    document.body.dataset[`decoded${side.toUpperCase()}`] = inbound?.framesDecoded ?? 0;
  });
  if (run && !run.isOver && run.seen[0]) $("state").textContent = `${run.seen.map((s) => s.controller).join(" and ")}, ${text(x.at(-1) ?? 0, 0)} s`;
}

async function change() {
  history.replaceState(null, "", address());
  if (!run || run.isOver) return;
  const { ab, max } = setting();
  try {
    await Promise.all(run.calls.map((call, n) => call.change({ controller: ab[n], max_kbps: max })));
    notice("");
  } catch (e) {
    notice(e.message);
  }
}

/** The run as JSON: the setting, and of each call its samples, sums and the browser's numbers. */
function save() {
  const kept = { setting: setting(), calls: run.calls.map((_, n) => ({ controller: run.seen[n]?.controller, totals: run.seen[n]?.totals, browser: run.stats[n]?.inbound ?? null, samples: run.samples[n] })) };
  const text = JSON.stringify(kept);
  download(new Blob([text], { type: "application/json" }), `weir-${run.ab.join("-")}.json`);
  document.body.dataset.saved = text.length;
}

async function copy() {
  const link = location.origin + address();
  history.replaceState(null, "", address());
  try {
    await navigator.clipboard.writeText(link);
    notice("");
    $("copy").textContent = "Copied";
  } catch {
    notice(`The link: ${link}`);
  }
}

$("start").addEventListener("click", () => (run && !run.isOver ? end() : start()));
$("copy").addEventListener("click", copy);
$("save").addEventListener("click", save);
for (const id of ["controller-a", "controller-b", "max"]) $(id).addEventListener("change", change);
$("settings").addEventListener("submit", (event) => event.preventDefault());
addEventListener("pagehide", () => run?.calls.forEach((call) => call.stop().catch(() => {})));
load().catch((e) => notice(`${e.message}. Open the address that weir live webrtc has printed, with /ab before its #.`));
