// The page: a call, its settings, its plots.

import { Call, ask, keep } from "/page/call.js";
import { $, LOST_MS, about, answers, kbps, notice, open, openMedia, row, saves, showInternals } from "/page/common.js";
import { Plots } from "/page/plots.js";

const POLL_MS = 200;
const CAMERA = { width: 640, height: 360, frameRate: 30 };

const given = open();
const plots = new Plots($("rates"), $("delays"), $("losses"), true);
let call = null;
/** The call that is saved: the one that runs, or the last. */
let lastCall = null;
let camera = null;
let menu = null;
/** The attempt to make a lost call again. */
let attempt = null;

const chosen = () => ({ controller: $("controller").value, max: Number($("max").value), codec: $("codec").value, way: $("way").value, sound: $("sound").checked });

/** What lies between the ends. */
const between = () => ({ loss: Math.min(Math.max(Number($("loss").value), 0), 50) / 100, ...(menu.has_link ? { link: $("by-link").checked ? "on" : "off" } : {}) });

async function load() {
  menu = await (await ask("/controllers")).json();
  $("controller").replaceChildren(...menu.controllers.map((c) => new Option(c.name, c.name)));
  $("codec").replaceChildren(...menu.codecs.map((c) => new Option({ vp8: "VP8", h264: "H.264" }[c], c)));
  $("controller").value = given.get("controller") ?? menu.controller;
  $("codec").value = given.get("codec") ?? menu.codec;
  $("max").value = menu.max_kbps;
  $("way").value = given.get("way") ?? "call";
  $("sound").checked = given.get("sound") !== "off";
  $("by-link").disabled = !menu.has_link;
  $("by-link").checked = menu.has_link;
  about(menu);
  document.body.dataset.ready = "yes";
}

async function begin() {
  $("call").disabled = true;
  delete document.body.dataset.idle;
  notice("");
  plots.clear();
  Object.assign(numbers, { last: undefined, told: undefined });
  document.body.dataset.decoded = 0;
  try {
    const wanted = $("way").value !== "whep";
    const sound = $("sound").checked;
    if (wanted && camera?.withSound !== sound) {
      camera?.media.getTracks().forEach((track) => track.stop());
      const media = await openMedia(CAMERA, sound);
      camera = media && { media, withSound: sound };
    }
    $("remote").muted = !sound;
    if (wanted && !camera) notice("No camera: only Weir sends.");
    $("local").srcObject = wanted ? (camera?.media ?? null) : null;
    call = new Call();
    const mine = call;
    const kept = keep(mine, () => mine === call, LOST_MS, () => again("The connection was lost"));
    await mine.start(wanted ? (camera?.media ?? null) : null, chosen(), () => {
      if (mine !== call) return;
      if ($("remote").srcObject !== mine.remote) $("remote").srcObject = mine.remote;
      kept();
    });
    $("call").textContent = "Hang up";
    lastCall = mine;
    if (between().loss > 0 || between().link === "off") await mine.change(between());
    $("saves").disabled = false;
    poll(mine);
  } catch (e) {
    notice(`No call: ${e.message}`);
    await end();
  }
  $("call").disabled = false;
}

/** Makes a call that was lost again, once the service answers. */
async function again(why) {
  const lost = call;
  const mine = {};
  [call, attempt] = [null, mine];
  $("remote").srcObject = null;
  $("state").textContent = "Calling again.";
  notice(`${why}: calling again.`);
  lost?.stop().catch(() => {});
  if (await answers(() => mine === attempt, why, "Call again")) {
    if (mine !== attempt) return;
    attempt = null;
    return begin();
  }
  if (mine === attempt) await end();
}

async function end() {
  const ended = call;
  call = attempt = null;
  $("call").textContent = "Call";
  $("state").textContent = "Not in a call.";
  $("remote").srcObject = null;
  await ended?.stats().then((stats) => ended.tell(stats)).catch(() => {});
  await ended?.stop().catch(() => {});
  document.body.dataset.idle = "yes";
}

const count = (n) => (n === null || n === undefined ? "-" : String(n));
const ms = (s) => (s === null || s === undefined ? "-" : (1e3 * s).toFixed(1));

function numbers(seen, { inbound, outbound, remote, pair, heard, said }) {
  const last = seen.samples.at(-1) ?? numbers.last ?? {};
  const told = seen.browser_samples.at(-1) ?? numbers.told;
  Object.assign(numbers, { last, told });
  const t = seen.totals;
  $("both").replaceChildren(
    row(["to the browser, kbit/s", kbps(last.sent_bps), kbps(told?.received_bps)]),
    row(["packets, with sound", count(t.packets_sent), count(inbound && inbound.packetsReceived + (heard?.packetsReceived ?? 0))]),
    row(["lost", count(t.reported_lost), count(inbound?.packetsLost)]),
    row(["frames coded, decoded", count(t.frames_sent), count(inbound?.framesDecoded)]),
    row(["retransmitted", count(t.retransmitted), count(inbound?.retransmittedPacketsReceived)]),
    row(["to Weir, kbit/s", kbps(last.received_bps), kbps(told?.sent_bps)]),
    row(["packets, with sound", count(t.packets_received), count(outbound && outbound.packetsSent + (said?.packetsSent ?? 0))]),
    row(["frames decoded, coded", count(t.frames_decoded), count(outbound?.framesEncoded)]),
    row(["browser's target, kbit/s", "", kbps(outbound?.targetBitrate)]),
    row(["browser's estimate, kbit/s", "", kbps(pair?.availableOutgoingBitrate)]),
    row(["lost to Weir, as it reports", "", count(remote?.packetsLost)]),
    row(["round trip, ms", last.rtt_ms?.toFixed(1) ?? "-", ms(pair?.currentRoundTripTime ?? remote?.roundTripTime)]),
    row(["packets of sound to the browser", count(t.audio_sent), count(heard?.packetsReceived)]),
    row(["packets of sound to Weir", count(t.audio_decoded), count(said?.packetsSent)]),
    row(["key frame requests", count(t.key_frame_requests), count(outbound?.pliCount)]),
  );
  showInternals(seen.internals);
  const shown = (report, rate) => report ? `${report.frameWidth ?? "-"}x${report.frameHeight ?? "-"}, ${(report.framesPerSecond ?? 0).toFixed(0)} a second, ${kbps(rate)} kbit/s` : "-";
  $("remote-text").textContent = shown(inbound, last.sent_bps);
  $("local-text").textContent = shown(outbound, last.received_bps);
}

async function poll(mine) {
  let turn = 0;
  try {
    while (mine === call) {
      const [seen, stats] = await Promise.all([mine.seen(), mine.stats()]);
      if (mine !== call) return;
      if (turn++ % 5 === 0) mine.tell(stats).catch(() => {});
      plots.add(seen.samples, seen.browser_samples);
      numbers(seen, stats);
      document.body.dataset.samples = plots.count;
      document.body.dataset.controller = seen.controller;
      document.body.dataset.decoded = stats.inbound?.framesDecoded ?? 0;
      document.body.dataset.encoded = stats.outbound?.framesEncoded ?? 0;
      document.body.dataset.seen = seen.totals.frames_decoded;
      document.body.dataset.heard = stats.heard?.packetsReceived ?? 0;
      document.body.dataset.energy = stats.heard?.totalAudioEnergy ?? 0;
      if (seen.samples.length) document.body.dataset.hasLink = seen.samples.at(-1).link ? "yes" : "no";
      document.body.dataset.told = seen.browser_first + seen.browser_samples.length;
      document.body.dataset.restarts = mine.restarts;
      document.body.dataset.listened = seen.totals.audio_decoded;
      const target = seen.samples.at(-1)?.target_bps;
      $("state").textContent = `${seen.state}: ${seen.codec}, ${seen.controller}${target ? `, target ${kbps(target)} kbit/s` : ""}`;
      if (seen.state === "ended") {
        // It slept, or its network was away.
        if (seen.reason?.includes("consented")) return again("This browser was not heard for a while");
        notice(`The call has ended: ${seen.reason}. Call again.`);
        return end();
      }
      await new Promise((done) => setTimeout(done, POLL_MS));
    }
  } catch (e) {
    if (mine !== call) return;
    await again(e.status === 404 ? "The service was started again" : "The service does not answer");
  }
}

/** Applies what has been changed to the call; another controller begins anew, so that it is not named for the rest. */
async function change(settings) {
  about(menu);
  if (!call) return;
  try {
    await call.change(settings);
    await call.bound(chosen().max);
    notice("");
  } catch (e) {
    notice(e.message);
  }
}

saves(["report.html", "scenario.toml", "packets.pcapng"], async () => {
  // The newest numbers of this browser are part of it.
  if (call && call === lastCall) await call.tell(await call.stats()).catch(() => {});
  return lastCall;
});
$("call").addEventListener("click", () => (call || attempt ? end() : begin()));
$("controller").addEventListener("change", () => change({ controller: chosen().controller }));
$("max").addEventListener("change", () => change({ max_kbps: chosen().max }));
for (const id of ["loss", "by-link"]) $(id).addEventListener("change", () => change(between()));
$("settings").addEventListener("submit", (event) => event.preventDefault());
addEventListener("pagehide", () => call?.stop());
load().catch((e) => notice(`${e.message}. Open the address that weir live webrtc has printed.`));
