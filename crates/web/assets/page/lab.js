// The page: a scenario, its runs under several controllers, and what came of them.

import { read, write } from "./address.js";
import { change, rateText, remove, split } from "./capacity.js";
import { Editor } from "./editor.js";
import { Engine, Fault } from "./engine.js";
import { Plots } from "./plots.js";
import { Recording } from "./recording.js";
import { Schema } from "./schema.js";

const $ = (id) => document.getElementById(id);
const FIRST = "rmcat-comparison/responsiveness";
const COLOURS = 8;
/** In the table of steps. */
const MOST_STEPS = 100;
const TYPING_MS = 120;
/** A turn that takes longer is ended when it is out of date, and can be stopped. */
const LONG_MS = 600;

const engine = new Engine(Math.max(1, Math.min(navigator.hardwareConcurrency || 2, 4)), document.baseURI);
/** What the address says; text is null while it is the shipped one. */
let setting = { name: FIRST, text: null, variant: null, controllers: null, seed: null, flow: null };
let outline = null;
let shipped = new Map();
let listed = null;
let runs = [];
let dragged = null;

/** Whether the outline is that of the setting's text. */
const outlined = () => outline !== null && outline.of === setting.name && outline.given === setting.text;
const text = () => setting.text ?? shipped.get(setting.name) ?? (outlined() ? outline.text : "");
/** The capacity of the bottleneck, where it can be changed and its places are those of the text. */
function capacity() {
  if (!outlined() || setting.variant) return null;
  return outline.capacities.find((c) => c.link === outline.bottleneck) ?? null;
}

function show(element, value) {
  element.textContent = value;
  element.hidden = !value;
}

// Turns: an outline, then a run for each controller. A newer one waits for the one under way, unless that is long.

let turning = null;
let again = false;
let timer = 0;

function soon(ms) {
  clearTimeout(timer);
  timer = setTimeout(refresh, ms);
}

async function refresh() {
  clearTimeout(timer);
  if (turning) {
    again = true;
    const late = turning;
    setTimeout(() => again && turning === late && engine.forget("turn"), Math.max(0, LONG_MS - (performance.now() - late.since)));
    return;
  }
  do {
    again = false;
    turning = { since: performance.now() };
    await turn(turning);
  } while (again);
  turning = null;
}

async function turn(mine) {
  const slow = setTimeout(() => {
    $("stop").hidden = false;
    $("state").textContent = "Running: this scenario takes a while.";
  }, LONG_MS);
  const given = { ...setting };
  try {
    if (!outlined()) {
      const asked = { ask: "outline", name: given.name, text: given.text };
      const found = JSON.parse((await engine.ask(asked, "turn")).text);
      // The last part of a name is enough in an address.
      if (setting.name === given.name) setting.name = found.name;
      given.name = found.name;
      outline = { ...found, of: given.name, given: given.text };
    }
    if (again) return;
    settings();
    const compared = outline.controllers.length > 0;
    const names = compared ? given.controllers ?? outline.controllers : [null];
    const ask = (controller) => ({ ask: "run", name: given.name, text: given.text, variant: given.variant, controller, seed: given.seed, series: true });
    const made = await Promise.all(names.map(async (controller) => ({ controller, ...(await engine.ask(ask(controller), "turn")) })));
    runs = made.map((run, i) => ({ ...run, result: JSON.parse(run.text), colour: `c${i % COLOURS}` }));
    present(mine, given);
    failed(null);
  } catch (e) {
    // Given up: a newer turn follows, or it was stopped.
    if (e !== null) failed(e, given);
  } finally {
    clearTimeout(slow);
    $("stop").hidden = true;
  }
}

function failed(e) {
  const fault = e instanceof Fault ? e.fault : e && { kind: "page", message: e.message };
  const own = fault?.kind === "scenario" || fault?.kind === "run";
  const place = fault?.line ? `Line ${fault.line}, ${fault.field ? `${fault.field}: ` : "column ".concat(fault.column, ": ")}` : "";
  const words = fault && `${place || (fault.field ? `${fault.field}: ` : "")}${fault.message}${fault.help ? `\n${fault.help}` : ""}`;
  show($("fault"), own ? words : "");
  show($("notice"), fault && !own ? words : "");
  editor.mark(fault?.line ?? null);
  document.body.classList.toggle("stale", !!fault);
  document.body.dataset.fault = fault?.kind ?? "";
  if (fault) $("state").textContent = own ? "The scenario has a fault: these are the last results." : "No results.";
}

// Results.

const flowOf = (result) => result.flows.find((f) => f.name === setting.flow) ?? result.flows.find((f) => f.kind === "rtp") ?? result.flows[0];
const label = (run) => run.controller ?? flowOf(run.result)?.controller ?? "";

function present(mine, given) {
  const usable = runs.filter((run) => flowOf(run.result));
  if (usable.length === 0) throw new Error("the scenario has no flow to show");
  plots.show(usable.map((run) => {
    const flow = flowOf(run.result);
    return { label: label(run), colour: run.colour, flow: flow.name, bottleneck: flow.bottleneck, columns: run.columns, numbers: run.numbers };
  }));
  const capacityKey = { name: "capacity", colour: "capacity" };
  $("key").replaceChildren(...[...usable.map((run) => ({ name: label(run), colour: run.colour.replace("c", "k") })), capacityKey].map(({ name, colour }) => {
    const [item, mark] = [document.createElement("li"), document.createElement("i")];
    mark.className = colour;
    item.append(mark, name);
    return item;
  }));
  $("rows").replaceChildren(...usable.map(row));
  const flows = [...new Set(usable.flatMap((run) => run.result.flows.map((f) => f.name)))];
  $("flows").hidden = flows.length < 2;
  options($("flow"), flows.map((name) => [name, name]), flowOf(usable[0].result).name);
  const ms = performance.now() - mine.since;
  const seconds = outline.duration_s * usable.length;
  $("state").textContent = `${usable.length === 1 ? "One run" : `${usable.length} runs`} of ${outline.duration_s} s in ${ms.toFixed(0)} ms (${Math.round((1e3 * seconds) / ms).toLocaleString("en")} times real time).`;
  const { dataset } = document.body;
  dataset.runs = JSON.stringify({ controllers: usable.map(label), ms, name: given.name });
  dataset.turns = Number(dataset.turns ?? 0) + 1;
  dataset.first ??= performance.now().toFixed(0);
}

function row(run) {
  const line = document.createElement("tr");
  const flow = flowOf(run.result);
  const number = (v, digits, scale = 1) => (v === null || v === undefined ? "-" : (v * scale).toFixed(digits));
  const cells = [
    label(run), number(flow.utilisation, 1, 100), number(flow.rates.sent_bps, 0, 1e-3), number(flow.one_way_delay_ms?.mean, 1),
    number(flow.one_way_delay_ms?.p95, 1), number(flow.loss, 2, 100), number(flow.ramp_up_s, 1),
  ];
  cells.forEach((cell) => (line.insertCell().textContent = cell));
  line.cells[0].className = run.colour.replace("c", "k");
  return line;
}

// Settings.

function options(select, pairs, value) {
  const wanted = JSON.stringify(pairs);
  if (select.dataset.of !== wanted) {
    select.replaceChildren(...pairs.map(([name, shown]) => new Option(shown, name)));
    select.dataset.of = wanted;
  }
  select.value = value;
}

function settings() {
  if (listed === null) options($("scenario"), [[setting.name, setting.name]], setting.name);
  else $("scenario").value = setting.name;
  $("about").textContent = outline.title;
  $("about").title = outline.doc;
  $("variants").hidden = outline.variants.length === 0;
  options($("variant"), outline.variants.map((name) => [name, name]), setting.variant ?? outline.variants[0] ?? "");
  if (document.activeElement !== $("seed")) $("seed").value = setting.seed ?? outline.seed;
  editor.value = text();
  $("reset").hidden = setting.text === null || !shipped.has(setting.name);
  controllers();
  steps();
  if (!dragged) keep();
}

function controllers() {
  const fixed = outline.controllers.length === 0;
  const on = setting.controllers ?? outline.controllers;
  const rest = (listed ?? []).filter((c) => !outline.controllers.includes(c.name));
  const all = [...outline.controllers.map((name) => listed?.find((c) => c.name === name) ?? { name, summary: "" }), ...rest];
  const wanted = JSON.stringify([fixed, all.map((c) => c.name)]);
  const box = $("controllers");
  if (box.dataset.of !== wanted) {
    box.dataset.of = wanted;
    const choice = ({ name, summary }) => {
      const [whole, input] = [document.createElement("label"), document.createElement("input")];
      Object.assign(input, { type: "checkbox", value: name });
      whole.title = summary;
      whole.append(input, name);
      return whole;
    };
    const note = document.createElement("span");
    note.className = "help";
    note.textContent = "This scenario names its own.";
    box.replaceChildren(box.querySelector("legend"), ...(fixed ? [note] : all.map(choice)));
  }
  box.querySelectorAll("input").forEach((input) => (input.checked = on.includes(input.value)));
}

let kept = "";
async function keep() {
  const fragment = await write(setting);
  if (fragment === kept) return;
  kept = fragment;
  $("to-lab").href = fragment;
  if (!inRecording()) history.replaceState(null, "", fragment);
}

function steps() {
  const of = capacity();
  const into = $("capacity");
  const many = of?.points.length > MOST_STEPS;
  if (!of || many) {
    const note = document.createElement("p");
    note.className = "help";
    note.textContent = many ? `This capacity has ${of.points.length} steps: change it in the file.` : setting.variant ? "A variant's capacity is changed in the file." : "This capacity is a trace or a pattern: change it in the file.";
    return into.replaceChildren(note);
  }
  if (into.contains(document.activeElement) && into.querySelectorAll("tr").length === of.points.length + 1) {
    // Whoever types in it keeps the field.
    return of.points.forEach((p, i) => into.querySelectorAll("tr")[i + 1].querySelectorAll("input").forEach((input) => {
      if (input !== document.activeElement) input.value = input.dataset.kind === "rate" ? p.rate_bps / 1e3 : p.at_s;
    }));
  }
  const table = document.createElement("table");
  const head = table.createTHead().insertRow();
  ["from, s", "kbit/s", ""].forEach((title) => head.append(Object.assign(document.createElement("th"), { textContent: title })));
  const body = table.createTBody();
  of.points.forEach((point, i) => {
    const line = body.insertRow();
    const field = (kind, value, means) => {
      const input = Object.assign(document.createElement("input"), { type: "number", min: 0, step: "any", value, disabled: kind === "at" && (i === 0 || !point.at) });
      input.dataset.kind = kind;
      input.setAttribute("aria-label", `${kind === "at" ? "start in s" : "rate in kbit/s"} of step ${i + 1}`);
      input.addEventListener("change", () => input.value !== "" && edit((base, c) => change(base, c, i, means(Number(input.value)))));
      line.insertCell().append(input);
    };
    field("at", point.at_s, (at_s) => ({ at_s }));
    field("rate", point.rate_bps / 1e3, (kbps) => ({ rate_bps: 1e3 * kbps }));
    const buttons = line.insertCell();
    const button = (name, means, act) => {
      const made = Object.assign(document.createElement("button"), { type: "button", className: "small", textContent: name, title: means });
      made.addEventListener("click", () => edit(act));
      buttons.append(made, " ");
    };
    button("Split", "a further step in the middle of this one, at half its rate", (base, c) => split(base, c, i, outline.duration_s) ?? base);
    if (i > 0) button("Remove", "the step before it lasts longer", (base, c) => remove(base, c, i));
  });
  into.replaceChildren(table);
}

/** Changes the text by a function of it and its capacity, if that is known now. */
function edit(by) {
  const of = capacity();
  if (of) write_text(by(text(), of), 0);
}

function write_text(changed, wait) {
  setting.text = changed === shipped.get(setting.name) ? null : changed;
  editor.value = changed;
  soon(wait);
}

// What the reader does.

const editor = new Editor($("text"), $("lines"), $("names"), { changed: (value) => write_text(value, TYPING_MS), run: refresh });
const plots = new Plots($("rates"), $("delays"), $("losses"), {
  capacity: () => dragged?.capacity ?? capacity(),
  begin: () => {
    const of = capacity();
    dragged = of && { capacity: structuredClone(of), base: text() };
    return !!dragged;
  },
  move: (index, to) => {
    write_text(change(dragged.base, dragged.capacity, index, to), 0);
    const shown = to.rate_bps === undefined ? "" : ` ${rateText(Math.max(to.rate_bps, 1e4))}`;
    $("state").textContent = `Capacity from ${dragged.capacity.points[index].at_s} s:${shown}`;
  },
  end: () => {
    dragged = null;
    soon(0);
  },
});

function choose(changes, wait = 0) {
  setting = { ...setting, ...changes };
  soon(wait);
}

$("scenario").addEventListener("change", () => {
  choose({ name: $("scenario").value, text: null, variant: null, controllers: null, seed: null, flow: null });
});
$("variant").addEventListener("change", () => choose({ variant: $("variant").value }));
$("flow").addEventListener("change", () => choose({ flow: $("flow").value }));
$("seed").addEventListener("input", () => /^\d{1,15}$/.test($("seed").value) && choose({ seed: Number($("seed").value) }, TYPING_MS));
$("controllers").addEventListener("change", ({ target }) => {
  const before = setting.controllers ?? outline?.controllers ?? [];
  const after = target.checked ? [...before, target.value] : before.filter((name) => name !== target.value);
  // One at least stays.
  target.checked ||= after.length === 0;
  if (after.length > 0) choose({ controllers: after });
});
$("reset").addEventListener("click", () => {
  editor.value = shipped.get(setting.name);
  choose({ text: null });
});
$("stop").addEventListener("click", () => {
  engine.forget("turn", true);
  $("state").textContent = "Stopped: these are the last results.";
});
$("share").addEventListener("click", async () => {
  await keep();
  const copied = await navigator.clipboard?.writeText(location.href).then(() => true, () => false);
  $("share").textContent = copied ? "Copied" : "It is in the address";
  setTimeout(() => ($("share").textContent = "Copy link"), 2_000);
});
$("settings").addEventListener("submit", (event) => event.preventDefault());

// Views: the lab, and a recorded call.

const recording = new Recording(document.baseURI, engine.module);
const inRecording = () => location.hash === "#recording";

function view() {
  const there = inRecording();
  $("lab").hidden = $("share").hidden = $("state").hidden = there;
  $("recording").hidden = !there;
  document.body.classList.toggle("in-recording", there);
  $("to-call").toggleAttribute("aria-current", there);
  $("to-lab").toggleAttribute("aria-current", !there);
}

addEventListener("hashchange", () => {
  view();
  if (inRecording()) return;
  if (!started) start();
  else if (location.hash !== kept) load();
});

const hasFiles = (event) => event.dataTransfer?.types.includes("Files");
addEventListener("dragover", (event) => {
  if (!hasFiles(event)) return;
  event.preventDefault();
  document.body.classList.add("dropping");
});
addEventListener("dragleave", (event) => event.relatedTarget === null && document.body.classList.remove("dropping"));
addEventListener("drop", (event) => {
  if (!hasFiles(event)) return;
  event.preventDefault();
  document.body.classList.remove("dropping");
  location.hash = "#recording";
  view();
  $("files").value = "";
  recording.open(event.dataTransfer.files);
});

// Begin.

async function load() {
  let strange = null;
  // What is loaded is what a later change of the address differs from, whether it holds a setting or a fault.
  kept = location.hash;
  try {
    const given = await read(location.hash);
    setting = given.name ? given : { ...setting, ...given, name: setting.name };
  } catch (e) {
    strange = e;
  }
  if (setting.text !== null) editor.value = setting.text;
  await refresh();
  if (strange) show($("notice"), `The address holds no setting: ${strange.message}. Ask for it again, or choose a scenario.`);
}

/** Lists, after the first results. */
async function lists() {
  const ask = async (what) => JSON.parse((await engine.ask({ ask: what })).text);
  const [all, schema, scenarios] = await Promise.all([ask("controllers"), ask("schema"), ask("scenarios")]);
  listed = all;
  editor.schema = new Schema(schema, all);
  shipped = new Map(scenarios.map((s) => [s.name, s.text]));
  const groups = Map.groupBy?.(scenarios, (s) => s.name.split("/")[0]) ?? new Map([["", scenarios]]);
  $("scenario").replaceChildren(...[...groups].map(([folder, members]) => {
    const group = Object.assign(document.createElement("optgroup"), { label: folder });
    group.append(...members.map((s) => Object.assign(new Option(`${s.name.split("/").at(-1)}: ${s.title}`, s.name), { title: s.doc })));
    return group;
  }));
  $("scenario").value = setting.name;
  if (setting.text !== null && setting.text === shipped.get(setting.name)) setting.text = null;
  if (outline) settings();
  document.body.dataset.ready = "yes";
}

navigator.serviceWorker?.register("sw.js").catch(() => {});

let started = false;
function start() {
  started = true;
  load().then(lists).catch((e) => failed(e));
}

view();
// Whoever comes to open a call waits for no run.
if (!inRecording()) start();
