// A recorded call: its files are read by a simulator's module in a worker, and what was found in them is shown.

import { Engine, Fault } from "./engine.js";
import { CallPlots } from "./call_plots.js";

const $ = (id) => document.getElementById(id);

/** Bounds of the module, which refuses more. */
const MOST_BYTES = 300e6;
const MOST_FILES = 16;
/** What takes longer can be stopped. */
const LONG_MS = 600;
const COLOURS = [7, 2, 5];

const LEVELS = {
  none: "none, as no rate over time is in it",
  "one-end": "one end's packets, without feedback on them",
  statistics: "statistics, which hide what happens within a second",
  log: "one end's packets and the feedback on them",
  packets: "packets at both ends",
};
const KINDS = { fall: "fall", freeze: "freeze", "slow-start": "slow start" };
const TERMS = [
  ["Time", "Since the first time in any of the files."],
  ["Episode", "The rate fell by a fifth or more for a second and more, a picture stood still, or the start was slow."],
  ["Confidence", "Of a cause, as the rules put it: how well its signs match, and no probability. Several causes can hold."],
  ["Lost, delay", "Of packets by the time at which they were sent. Delay is above the least of the recording: clocks of two ends need not agree."],
  ["Estimate, target", "As logged; each holds until the next, for 10 s at most."],
  ["Open loop", "Of a controller on recorded feedback: what it would have asked for on this feedback, not what would have happened."],
];

function made(tag, fields = {}, ...children) {
  const element = Object.assign(document.createElement(tag), fields);
  element.append(...children);
  return element;
}

function show(element, words) {
  element.textContent = words;
  element.hidden = !words;
}

const megabytes = (bytes) => `${(bytes / 1e6).toFixed(bytes < 1e7 ? 1 : 0)} MB`;
const words = (e) => (e instanceof Fault ? [e.fault.message, e.fault.help].filter(Boolean).join("\n") : e.message);

/** A table of texts; a cell may be an element. Wide columns have sentences. */
function table(caption, columns, rows) {
  const head = made("tr", {}, ...columns.map(({ name, means, wide }) => made("th", { textContent: name, title: means ?? "", className: wide ? "text" : "", scope: "col" })));
  const cell = (value, { wide }) => made("td", { className: wide ? "text" : "" }, value);
  const body = rows.map((row) => made("tr", {}, ...row.map((value, i) => cell(value, columns[i]))));
  return made("section", {}, made("h2", { textContent: caption }), made("div", { className: "wide", tabIndex: 0, role: "region", ariaLabel: caption }, made("table", {}, made("thead", {}, head), made("tbody", {}, ...body))));
}

export class Recording {
  #engine = null;
  #base;
  #module;
  #plots = new CallPlots($("call-plots"), (window) => this.#shown(window));
  #report = null;
  #lines = null;
  #beginMs = 0;
  #asked = 0;
  #replaying = false;
  #replayAgain = false;

  constructor(base, module) {
    this.#base = base;
    this.#module = module;
    $("files").addEventListener("change", () => this.open($("files").files));
    // The same files can be chosen again.
    $("files").addEventListener("click", () => ($("files").value = ""));
    $("call-stop").addEventListener("click", () => {
      this.#engine.forget("call", true);
      this.#ends("Stopped.");
    });
    $("window").addEventListener("submit", (event) => {
      event.preventDefault();
      const [from, to] = [$("from"), $("to")].map((field) => (field.value === "" ? null : Number(field.value)));
      this.#plots.zoom(from, to);
    });
    $("whole").addEventListener("click", () => this.#plots.zoom(null, null));
    $("replayed").addEventListener("change", () => this.#replay());
    $("packets").addEventListener("toggle", () => this.#packets());
    $("terms").replaceChildren(...TERMS.flatMap(([term, meaning]) => [made("dt", { textContent: term }), made("dd", { textContent: meaning })]));
  }

  #ends(state, fault = "") {
    $("call-state").textContent = state;
    $("call-stop").hidden = true;
    show($("call-fault"), fault);
    const { dataset } = document.body;
    dataset.calls = Number(dataset.calls ?? 0) + 1;
  }

  /** Opens the files of a call in place of those before. */
  async open(list) {
    const files = [...list];
    if (files.length === 0) return;
    const mine = ++this.#asked;
    ["call", "packets", "replay"].forEach((of) => this.#engine?.forget(of, true));
    [this.#report, this.#lines] = [null, null];
    $("call").hidden = true;
    show($("call-fault"), "");
    const bytes = files.reduce((sum, file) => sum + file.size, 0);
    const larger = "On the command line `weir open FILE...` reads more.";
    if (files.length > MOST_FILES) return this.#ends("", `These are ${files.length} files, and at most ${MOST_FILES} of one call are opened here. ${larger}`);
    if (bytes > MOST_BYTES) return this.#ends("", `${files.length === 1 ? `${files[0].name} has` : "These files have"} ${megabytes(bytes)}, and at most ${megabytes(MOST_BYTES)} are opened here, since a page has 1 GiB of memory. ${larger}`);
    const names = files.map((file) => file.name);
    $("call-state").textContent = `Reading ${names.join(", ")} (${megabytes(bytes)}).`;
    const slow = setTimeout(() => ($("call-stop").hidden = false), LONG_MS);
    const since = performance.now();
    try {
      this.#engine ??= new Engine(1, this.#base, { module: this.#module, words: { what: "The reader", help: `Nothing of these files is shown. ${larger}` } });
      const answer = await this.#engine.ask({ ask: "open", names }, "call", files);
      const ms = performance.now() - since;
      await this.#present(answer);
      document.body.dataset.opened = JSON.stringify({ ms, shown: performance.now() - since, bytes });
      this.#ends(`${files.length === 1 ? "One file" : `${files.length} files`}, ${megabytes(bytes)}, opened in ${(ms / 1e3).toFixed(2)} s.`);
    } catch (e) {
      // Without a reason another call is opened, or this one was stopped.
      if (e !== null && mine === this.#asked) this.#ends("", words(e));
    } finally {
      clearTimeout(slow);
    }
  }

  // What was found.

  async #present({ text, columns, numbers }) {
    const report = JSON.parse(text);
    this.#report = report;
    const begins = report.sources.map((s) => s.from_ms).filter((ms) => ms !== null);
    this.#beginMs = begins.length > 0 ? Math.min(...begins) : 0;
    this.#lines = { columns, numbers };
    $("call-summary").textContent = summary(report);
    $("call-facts").textContent = this.#facts(report);
    show($("call-damage"), report.sources.flatMap(damage).join("\n"));
    $("call-tables").replaceChildren(...[this.#episodes(report), files(report), findings(report)].filter(Boolean));
    $("call").hidden = false;
    const timed = columns.some((c) => c.name !== "time_s" && c.len > 0);
    $("window").hidden = !timed;
    const fed = report.sources.some((s) => s.packets.sent > 0 && s.reported > 0);
    $("replays").hidden = !fed || !timed;
    $("packets").hidden = !report.sources.some((s) => s.packets.sent + s.packets.received + s.packets.passing > 0);
    show($("replay-fault"), "");
    $("replay-numbers").replaceChildren();
    if (!$("replays").hidden) await this.#controllers();
    this.#plots.show(this.#lines, this.#spans(report));
  }

  #second = (ms) => ((ms - this.#beginMs) / 1e3).toFixed(1);

  #spans(report) {
    return report.episodes.map((e) => [(e.from_ms - this.#beginMs) / 1e3, (e.to_ms - this.#beginMs) / 1e3]);
  }

  #facts(report) {
    // Recordings that count from their own zero are no date of before 2001.
    const begin = this.#beginMs > 978_307_200_000 ? `Begin: ${new Date(this.#beginMs).toISOString().replace("T", " ").replace("Z", " UTC")}. ` : "";
    const missing = report.missing ? ` ${report.missing}.` : "";
    return `${begin}Evidence: ${LEVELS[report.level] ?? report.level}.${missing}`;
  }

  #episodes(report) {
    if (report.episodes.length === 0) return null;
    const rows = report.episodes.flatMap((e) => e.causes.map((cause, i) => {
      const name = `${this.#second(e.from_ms)} to ${this.#second(e.to_ms)} s: ${KINDS[e.kind] ?? e.kind}`;
      const button = made("button", { type: "button", className: "link", textContent: name, title: "show this time" });
      button.addEventListener("click", () => {
        const [from, to] = [e.from_ms, e.to_ms].map((ms) => (ms - this.#beginMs) / 1e3);
        this.#plots.zoom(Math.max(0, from - 5), to + 5);
        $("call-plots").scrollIntoView({ block: "start" });
      });
      return [i === 0 ? button : "", cause.name, (cause.confidence * 100).toFixed(0), cause.evidence.join("; ")];
    }));
    const columns = [{ name: "Episode" }, { name: "Cause", means: "docs/open.md has all names" }, { name: "Confidence, %", means: "how well the signs match" }, { name: "Evidence", means: "numbers that speak for it", wide: true }];
    const section = table("Episodes and their causes, the likeliest first", columns, rows);
    section.id = "episodes";
    return section;
  }

  // The shown time.

  #shown({ from, to }) {
    $("from").value = from.toFixed(1);
    $("to").value = to.toFixed(1);
    this.#packets();
  }

  async #packets() {
    if (!$("packets").open || $("packets").hidden || !this.#report) return;
    const { from, to } = this.#plots.window;
    const mine = this.#report;
    try {
      const { text } = await this.#engine.ask({ ask: "packets", from_s: from, to_s: to }, "packets");
      if (mine !== this.#report) return;
      const found = JSON.parse(text);
      const many = found.packets.length === 0 && found.count > 0;
      $("packets-note").textContent = `${found.count} packets of ${found.path} from ${from.toFixed(1)} to ${to.toFixed(1)} s.${many ? ` At most ${found.most} are listed: show a shorter time.` : ""}`;
      const columns = ["time, s", "number", "stream", "way", "sequence", "timestamp", "type", "bytes", "marker", "transport-wide"].map((name) => ({ name }));
      const rows = found.packets.map((p) => [p.at_s.toFixed(4), p.number, p.ssrc, p.direction, p.sequence, p.timestamp, p.payload_type, p.size, p.marker ? "yes" : "", p.transport_sequence ?? ""].map(String));
      $("packets-list").replaceChildren(...(rows.length > 0 ? [table("Packets", columns, rows)] : []));
    } catch (e) {
      if (e !== null) $("packets-note").textContent = words(e);
    }
  }

  // Controllers on the recorded feedback.

  async #controllers() {
    const box = $("replayed");
    if (box.querySelector("input") === null) {
      const names = JSON.parse((await this.#engine.ask({ ask: "replayed" }, "call")).text);
      box.append(...names.map((name) => made("label", {}, made("input", { type: "checkbox", value: name }), name)));
    }
    box.querySelectorAll("input").forEach((input) => (input.checked = false));
  }

  /** The targets of the chosen controllers. A choice under way is not given up for a newer one: the worker has the call. */
  async #replay() {
    this.#replayAgain = true;
    if (this.#replaying) return;
    this.#replaying = true;
    while (this.#replayAgain) {
      this.#replayAgain = false;
      await this.#replayOnce();
    }
    this.#replaying = false;
  }

  async #replayOnce() {
    const mine = this.#report;
    const controllers = [...$("replayed").querySelectorAll("input:checked")].map((input) => input.value);
    show($("replay-fault"), "");
    try {
      const { text, columns, numbers } = await this.#engine.ask({ ask: "replay", controllers }, "replay");
      if (mine !== this.#report) return;
      const replays = JSON.parse(text);
      const lines = columns.map((c, i) => ({ label: `${c.owner}, open loop`, colour: `c${COLOURS[i % COLOURS.length]}`, kind: "dots", values: numbers.subarray(c.from, c.from + c.len) }));
      this.#plots.show(this.#lines, this.#spans(mine), lines);
      const off = replays.filter((r) => r.off_estimate !== null);
      $("replay-numbers").replaceChildren(...off.map((r) => made("li", { textContent: `${r.controller}: ${(r.off_estimate * 100).toFixed(1)} % off the logged estimate (median over time)` })));
      document.body.dataset.replays = JSON.stringify(replays.map((r) => [r.controller, r.targets.length]));
    } catch (e) {
      if (e !== null && mine === this.#report) show($("replay-fault"), words(e));
    }
  }
}

function damage(source) {
  const { path, stopped, damaged } = source;
  const lines = [];
  if (damaged) lines.push(`${path} is damaged at byte ${damaged.offset}: ${damaged.why}. What is like it was passed over.`);
  if (stopped) lines.push(`${path} is damaged: it is read up to byte ${stopped.offset}, where ${stopped.why}. What came before is shown.`);
  return lines;
}

function summary(report) {
  if (report.level === "none") return "Nothing was looked for: no rate over time is in it.";
  if (report.episodes.length === 0) return "No fall of the rate, no freeze and no slow start.";
  const names = [["fall", "falls of the rate"], ["freeze", "freezes"], ["slow-start", "slow starts"]];
  const parts = names.map(([kind, name]) => [report.episodes.filter((e) => e.kind === kind).length, name]).filter(([n]) => n > 0);
  return `Episodes: ${parts.map(([n, name]) => `${name}: ${n}`).join(", ")}. The causes are those that the rules find likeliest.`;
}

/** Formats as the command line names them. */
const FORMATS = new Map([
  ["event-log", "RtcEventLog v2"], ["pcap", "pcap"], ["pcapng", "pcapng"], ["internals-dump", "webrtc-internals dump"], ["get-stats", "getStats lines"],
  ["rtc-stats", "rtcstats"], ["pion-rtp", "Pion RTP log"], ["pion-rtcp", "Pion RTCP log"], ["pion-target", "Pion target log"], ["rtp-dump", "rtpdump"],
  ["scream", "SCReAM trace"], ["weir-series", "Weir series"], ["weir-result", "Weir report"], ["weir-page", "Weir page of calls"], ["observed", "observed packets"],
]);

function files(report) {
  const columns = [
    { name: "File" }, { name: "Format", means: "recognised by content" }, { name: "Time, s", means: "from first to last" }, { name: "Sent", means: "RTP packets sent by the recording end" },
    { name: "Reported lost", means: "of these, by the other end's feedback" }, { name: "Received", means: "RTP packets that it received" }, { name: "Lost", means: "missing among the received ones" },
    { name: "Passing", means: "RTP packets in a capture that does not tell" }, { name: "RTCP", means: "packets" }, { name: "Reported", means: "packets in feedback" },
    { name: "Notes", means: "faults passed over, and facts recognised by behaviour", wide: true },
  ];
  const row = (s) => {
    const notes = [...Object.entries(s.faults).map(([what, n]) => `passed over: ${n} ${what}`), ...s.guessed.map((fact) => `by behaviour: ${fact}`)];
    const seconds = s.from_ms === null ? "-" : ((s.to_ms - s.from_ms) / 1e3).toFixed(1);
    const p = s.packets;
    return [s.path, FORMATS.get(s.format) ?? s.format, seconds, ...[p.sent, p.reported_lost, p.received, p.lost, p.passing, s.rtcp, s.reported].map(String), notes.join("; ")];
  };
  return table("Files", columns, report.sources.map(row));
}

function findings(report) {
  if (report.findings.length === 0) return null;
  const columns = [{ name: "Rule" }, { name: "File" }, { name: "Times", means: "packets that break it" }, { name: "First", means: "first packet that breaks it", wide: true }, { name: "Document", means: "section that states it", wide: true }, { name: "Effect", means: "at the other end", wide: true }];
  const row = (f) => [f.rule, f.path, String(f.count), f.packets.length > 0 ? `packet ${f.packets[0].number}: ${f.packets[0].text}` : "", f.section, f.effect];
  return table("Rules of RTP and RTCP that are broken", columns, report.findings.map(row));
}
