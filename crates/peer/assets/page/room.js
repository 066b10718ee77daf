// The page of a room: its members' pictures, and which layer of each the rate to this browser has room for.

import { ask, keep } from "/page/call.js";
import { $, LOST_MS, about, answers, kbps, notice, open, openMedia, row, saves, showInternals } from "/page/common.js";
import { Member } from "/page/member.js";
import { Plots } from "/page/plots.js";

const POLL_MS = 250;

const given = open();
const plots = new Plots($("rates"), $("delays"), $("losses"));
const tiles = new Map();
let member = null;
/** Whose run is saved: the member in the room, or the last. */
let lastMember = null;
let media = null;
let menu = null;
let attempt = null;

async function load() {
  menu = await (await ask("/controllers")).json();
  $("controller").replaceChildren(...menu.controllers.map((c) => new Option(c.name, c.name)));
  $("controller").value = given.get("controller") ?? menu.controller;
  $("max").value = given.get("max") ?? menu.max_kbps;
  $("room").value = given.get("room") ?? "lobby";
  $("name").value = given.get("name") ?? "";
  $("sends").value = given.get("sends") ?? "2";
  $("codec").value = given.get("codec") ?? "";
  $("link").checked = given.get("link") !== "off";
  $("link-line").hidden = !menu.has_link;
  about(menu);
  document.body.dataset.ready = "yes";
}

async function join() {
  if (!$("settings").reportValidity()) return;
  $("join").disabled = true;
  delete document.body.dataset.idle;
  notice("");
  plots.clear();
  try {
    const sends = Number($("sends").value);
    media?.getTracks().forEach((t) => t.stop());
    const [width, height] = sends === 3 ? [1280, 720] : [640, 360];
    media = sends ? await openMedia({ width, height, frameRate: 30 }, $("sound").checked) : null;
    if (sends && !media) notice("No camera: you only watch.");
    $("local").srcObject = media;
    member = new Member();
    const mine = member;
    const settings = { room: $("room").value, name: $("name").value.trim(), controller: $("controller").value, max: Number($("max").value), sends, codec: $("codec").value, link: $("link").checked, places: menu.members - 1 };
    await mine.join(settings, media, keep(mine, () => mine === member, LOST_MS, () => again("The connection was lost")));
    $("join").textContent = "Leave";
    lastMember = mine;
    $("saves").disabled = false;
    poll(mine);
  } catch (e) {
    notice(`Not in the room: ${e.message}`);
    await end();
  }
  $("join").disabled = false;
}

/** Joins again once the service answers. */
async function again(why) {
  const lost = member;
  const mine = {};
  [member, attempt] = [null, mine];
  clear();
  $("state").textContent = "Joining again.";
  notice(`${why}: joining again.`);
  lost?.leave().catch(() => {});
  if (await answers(() => mine === attempt, why, "Join again")) {
    if (mine !== attempt) return;
    attempt = null;
    return join();
  }
  if (mine === attempt) await end();
}

function clear() {
  for (const tile of tiles.values()) tile.figure.remove();
  tiles.clear();
}

async function end() {
  const left = member;
  member = attempt = null;
  $("join").textContent = "Join";
  $("state").textContent = "In no room.";
  clear();
  await left?.tell().catch(() => {});
  await left?.leave().catch(() => {});
  document.body.dataset.idle = "yes";
}

/** The picture of a member, made when it comes. */
function tile(mine, place) {
  const known = tiles.get(place.member);
  if (known?.mid === place.mid) return known;
  // Another member of that name, at another place.
  known?.figure.remove();
  const figure = document.createElement("figure");
  const video = document.createElement("video");
  const caption = document.createElement("figcaption");
  [video.autoplay, video.playsInline] = [true, true];
  const tracks = [mine.tracks.get(place.mid), mine.tracks.get(place.audio_mid)].filter(Boolean);
  video.srcObject = new MediaStream(tracks);
  figure.append(video, caption);
  $("tiles").append(figure);
  const made = { mid: place.mid, figure, video, caption };
  tiles.set(place.member, made);
  return made;
}

const layer = (place) => (place.encoding === null ? "stopped" : `${place.encoding + 1} of ${place.encodings.length}`);

function show(mine, seen, { inbound, outbound }) {
  const places = seen.room?.places ?? [];
  for (const place of places) {
    const { figure, caption } = tile(mine, place);
    const report = inbound.get(place.mid);
    const size = report?.frameWidth ? `${report.frameWidth}x${report.frameHeight}, ${(report.framesPerSecond ?? 0).toFixed(0)} a second` : "no picture yet";
    caption.textContent = `${place.member}: ${place.encoding === null ? "video stopped" : `layer ${layer(place)}`}, ${size}`;
    figure.classList.toggle("stopped", place.encoding === null);
    const heard = inbound.get(place.audio_mid);
    Object.assign(figure.dataset, {
      member: place.member,
      encoding: place.encoding ?? "none",
      width: report?.frameWidth ?? 0,
      decoded: report?.framesDecoded ?? 0,
      heard: heard?.packetsReceived ?? 0,
      energy: heard?.totalAudioEnergy ?? 0,
    });
  }
  for (const [name, { figure }] of tiles) {
    if (places.some((p) => p.member === name)) continue;
    figure.remove();
    tiles.delete(name);
  }
  $("places").replaceChildren(...places.map((p) => row([p.member, layer(p), kbps(p.share_bps), String(p.frames), String(p.switches)])));
  const sent = seen.room?.encodings ?? [];
  const size = (e) => (e.size ? `${e.size[0]}x${e.size[1]}` : "-");
  $("encodings").replaceChildren(...sent.map((e, n) => row([String(n + 1), kbps(e.rate_bps), size(e)])));
  showInternals(seen.internals);
  const largest = [...outbound.values()].reduce((a, b) => ((a?.frameWidth ?? 0) > (b.frameWidth ?? 0) ? a : b), null);
  $("local-text").textContent = largest ? `${largest.frameWidth ?? "-"}x${largest.frameHeight ?? "-"} in ${outbound.size} ${outbound.size === 1 ? "layer" : "layers"}` : "only watching";
}

async function poll(mine) {
  let turn = 0;
  try {
    while (mine === member) {
      const [seen, stats] = await Promise.all([mine.seen(), mine.stats()]);
      if (mine !== member) return;
      if (turn++ % 4 === 0) mine.tell().catch(() => {});
      plots.add(seen.samples);
      show(mine, seen, stats);
      document.body.dataset.controller = seen.controller;
      document.body.dataset.members = seen.room?.members ?? 1;
      const target = seen.samples.at(-1)?.target_bps;
      const members = seen.room?.members ?? 1;
      $("state").textContent = `${seen.state}: ${members} ${members === 1 ? "member" : "members"}, ${seen.codec}, ${seen.controller}${target ? `, target ${kbps(target)} kbit/s` : ""}`;
      if (seen.state === "ended") {
        if (seen.reason?.includes("consented")) return again("This browser was not heard for a while");
        notice(`The room was left: ${seen.reason}. Join again.`);
        return end();
      }
      await new Promise((done) => setTimeout(done, POLL_MS));
    }
  } catch (e) {
    if (mine !== member) return;
    await again(e.status === 404 ? "The service was started again" : "The service does not answer");
  }
}

async function change() {
  about(menu);
  if (!member) return;
  try {
    await member.change({ controller: $("controller").value, max_kbps: Number($("max").value) });
    notice("");
  } catch (e) {
    notice(e.message);
  }
}

saves(["report.html", "packets.pcapng"], async () => {
  // The newest numbers of this browser are part of it.
  if (member && member === lastMember) await member.tell().catch(() => {});
  return lastMember;
});
$("join").addEventListener("click", () => (member || attempt ? end() : join()));
$("controller").addEventListener("change", change);
$("max").addEventListener("change", change);
$("settings").addEventListener("submit", (event) => event.preventDefault());
addEventListener("pagehide", () => member?.leave());
load().catch((e) => notice(`${e.message}. Open the address that weir live webrtc has printed, with /room before its #.`));
