// A member of a room: its offer with a simulcast and places for the others, and the numbers of both ends.

import { ask, fileOf, gathered, restartIce, tell } from "/page/call.js";

const ANSWER_MS = 2000;
/** Encodings by number: the lowest first, each with half of the next one's sides. */
const ENCODINGS = {
  1: [{ rid: "h", maxBitrate: 700e3 }],
  2: [{ rid: "l", scaleResolutionDownBy: 2, maxBitrate: 150e3 }, { rid: "h", maxBitrate: 700e3 }],
  3: [{ rid: "l", scaleResolutionDownBy: 4, maxBitrate: 150e3 }, { rid: "m", scaleResolutionDownBy: 2, maxBitrate: 500e3 }, { rid: "h", maxBitrate: 2000e3 }],
};

export class Member {
  #peer = new RTCPeerConnection({ bundlePolicy: "max-bundle" });
  #location = null;
  #from = 0;
  /** Tracks that may come, by MID. */
  tracks = new Map();

  /** `media` may be null: then it only watches. */
  async join({ room, name, controller, max, sends, codec, link, places }, media, onState) {
    const peer = this.#peer;
    const [camera, microphone] = [media?.getVideoTracks()[0], media?.getAudioTracks()[0]];
    const video = [];
    if (camera) video.push(peer.addTransceiver(camera, { direction: "sendonly", streams: [media], sendEncodings: ENCODINGS[sends] }));
    if (microphone) peer.addTransceiver(microphone, { direction: "sendonly", streams: [media] });
    for (let n = 0; n < places; n += 1) video.push(peer.addTransceiver("video", { direction: "recvonly" }));
    for (let n = 0; n < places; n += 1) peer.addTransceiver("audio", { direction: "recvonly" });
    for (const transceiver of video) this.#prefer(transceiver);
    peer.addEventListener("connectionstatechange", onState);
    await peer.setLocalDescription();
    await gathered(peer);
    const query = new URLSearchParams({ controller, max_kbps: max, link: link ? "on" : "off" });
    if (codec) query.set("codec", codec);
    if (name) query.set("name", name);
    const headers = { "content-type": "application/sdp" };
    const answer = await ask(`/rooms/${encodeURIComponent(room)}?${query}`, { method: "POST", headers, body: peer.localDescription.sdp });
    this.#location = answer.headers.get("location");
    await peer.setRemoteDescription({ type: "answer", sdp: await answer.text() });
    for (const t of peer.getTransceivers()) if (t.currentDirection === "recvonly") this.tracks.set(t.mid, t.receiver.track);
  }

  /** Only what rooms have, so that the offer of many places is short. */
  #prefer(transceiver) {
    const all = RTCRtpReceiver.getCapabilities("video").codecs;
    const wanted = ["video/vp8", "video/h264", "video/rtx"];
    transceiver.setCodecPreferences(all.filter((c) => wanted.includes(c.mimeType.toLowerCase())));
  }

  get state() {
    return this.#peer.connectionState;
  }

  async restart() {
    await restartIce(this.#peer, this.#location);
  }

  async change(settings) {
    const headers = { "content-type": "application/json" };
    await ask(`${this.#location}/settings`, { method: "POST", headers, body: JSON.stringify(settings) });
  }

  /** What the service has seen since the last time. */
  async seen() {
    const signal = AbortSignal.timeout(ANSWER_MS);
    const seen = await (await ask(`${this.#location}?from=${this.#from}`, { signal })).json();
    this.#from = seen.first + seen.samples.length;
    return seen;
  }

  /** What the browser gets by MID, and what it sends by RID. */
  async stats() {
    const [inbound, outbound] = [new Map(), new Map()];
    for (const report of (await this.#peer.getStats()).values()) {
      if (report.type === "inbound-rtp") inbound.set(report.mid, report);
      if (report.type === "outbound-rtp" && report.kind === "video") outbound.set(report.rid ?? "", report);
    }
    return { inbound, outbound };
  }

  /** Passes the browser's numbers of all streams on: the service keeps them as a series beside its own. */
  async tell() {
    const all = [...(await this.#peer.getStats()).values()];
    const of = (type, kind) => all.filter((r) => r.type === type && r.kind === kind);
    const inUse = all.find((r) => r.type === "transport" && r.selectedCandidatePairId)?.selectedCandidatePairId;
    const pair = all.find((r) => r.type === "candidate-pair" && (inUse ? r.id === inUse : (r.selected ?? r.nominated)));
    const [inbound, outbound, remote] = ["inbound-rtp", "outbound-rtp", "remote-inbound-rtp"].map((type) => of(type, "video"));
    await tell(this.#location, { inbound, outbound, remote, pair, heard: of("inbound-rtp", "audio"), said: of("outbound-rtp", "audio") });
  }

  /** A file of the member's call, and its name. */
  file(name) {
    return fileOf(this.#location, name);
  }

  async leave() {
    this.#peer.close();
    if (this.#location) await ask(this.#location, { method: "DELETE", keepalive: true });
  }
}
