// A call with the service: the offer, the answer, and the numbers of both ends.

/** Longest wait for the service while a call runs. */
const ANSWER_MS = 2000;

let token = "";

export function setToken(given) {
  token = given;
}

export async function ask(path, options = {}) {
  const headers = { authorization: `Bearer ${token}`, ...options.headers };
  const answer = await fetch(path, { ...options, headers });
  if (answer.ok) return answer;
  const problem = await answer.json().catch(() => ({}));
  const error = new Error(problem.detail ?? `the service answers ${answer.status}`);
  error.status = answer.status;
  throw error;
}

/** Resolves once candidates are gathered, or after half a second: those of this machine are found at once. */
export function gathered(peer) {
  if (peer.iceGatheringState === "complete") return Promise.resolve();
  return new Promise((done) => {
    const timer = setTimeout(done, 500);
    peer.addEventListener("icegatheringstatechange", () => {
      if (peer.iceGatheringState !== "complete") return;
      clearTimeout(timer);
      done();
    });
  });
}

/** Restarts ICE within a call (RFC 9725, section 4.3.2): media go on by the new path once its checks have passed. */
export async function restartIce(peer, location) {
  await peer.setLocalDescription(await peer.createOffer({ iceRestart: true }));
  await gathered(peer);
  const own = peer.localDescription.sdp.split("\r\n").filter((l) => /^(a=(group|mid|ice-ufrag|ice-pwd|candidate)|m=)/.test(l));
  const headers = { "content-type": "application/trickle-ice-sdpfrag", "if-match": "*" };
  const answer = await ask(location, { method: "PATCH", headers, body: `${own.join("\r\n")}\r\n` });
  const theirs = await answer.text();
  let { sdp } = peer.currentRemoteDescription;
  for (const name of ["ice-ufrag", "ice-pwd"]) {
    const [line] = theirs.match(new RegExp(`a=${name}:[^\\r\\n]*`));
    sdp = sdp.replaceAll(new RegExp(`a=${name}:[^\\r\\n]*`, "g"), () => line);
  }
  await peer.setRemoteDescription({ type: "answer", sdp });
}

/** Longest wait for a restart to bring the connection back. */
const RESTART_MS = 3000;

/**
 * Keeps a connection: restarts ICE when the browser's network changes, or the connection is lost for a while, and says so
 * where that does not bring it back.
 */
export function keep(call, isCurrent, lostMs, onLost) {
  const isLost = () => isCurrent() && (call.state === "failed" || call.state === "disconnected");
  let isUnderWay = false;
  const restart = async () => {
    if (isUnderWay || !isCurrent() || call.state === "new" || call.state === "connecting") return;
    isUnderWay = true;
    await call.restart().catch(() => {});
    await new Promise((done) => setTimeout(done, isLost() ? RESTART_MS : 0));
    isUnderWay = false;
    if (isLost()) onLost();
  };
  const onState = () => {
    if (isLost()) setTimeout(() => isLost() && restart(), call.state === "failed" ? 0 : lostMs);
  };
  for (const target of [window, navigator.connection].filter(Boolean)) {
    target.addEventListener(target === window ? "online" : "change", restart);
  }
  return onState;
}

/** A file of a call, and its name. */
export async function fileOf(location, name) {
  const answer = await ask(`${location}/${name}`);
  const given = /filename="([^"]+)"/.exec(answer.headers.get("content-disposition") ?? "");
  return { blob: await answer.blob(), name: given?.[1] ?? name };
}

/**
 * Tells the service what the browser says of a call. Of several reports of a kind the sums are taken, and the greatest jitter, round
 * trip and share lost.
 */
export async function tell(location, { inbound, outbound, remote, pair, heard, said }) {
  const ms = (seconds) => (seconds === undefined ? null : 1e3 * seconds);
  const sum = (reports, ...fields) => reports.reduce((all, r) => fields.reduce((n, f) => n + (r[f] ?? 0), all), 0);
  const most = (reports, field) => reports.reduce((most, r) => (r[field] === undefined ? most : Math.max(most ?? 0, r[field])), undefined);
  const numbers = {
    packets_received: sum(inbound, "packetsReceived"),
    packets_lost: sum(inbound, "packetsLost"),
    bytes_received: sum(inbound, "bytesReceived"),
    frames_decoded: sum(inbound, "framesDecoded"),
    freezes: sum(inbound, "freezeCount"),
    packets_sent: sum(outbound, "packetsSent"),
    bytes_sent: sum(outbound, "bytesSent"),
    frames_encoded: sum(outbound, "framesEncoded"),
    audio_packets_received: sum(heard, "packetsReceived"),
    audio_packets_sent: sum(said, "packetsSent"),
    round_trip_ms: ms(pair?.currentRoundTripTime),
    at_ms: (pair ?? inbound[0] ?? outbound[0])?.timestamp ?? null,
    all_bytes_received: sum([...inbound, ...heard], "bytesReceived", "headerBytesReceived"),
    all_bytes_sent: sum([...outbound, ...said], "bytesSent", "headerBytesSent"),
    jitter_ms: ms(most(inbound, "jitter")),
    playout_delay_s: sum(inbound, "jitterBufferDelay"),
    played: sum(inbound, "jitterBufferEmittedCount"),
    target_bps: outbound.some((r) => r.targetBitrate) ? sum(outbound, "targetBitrate") : null,
    retransmitted: sum(outbound, "retransmittedPacketsSent"),
    remote_packets_lost: sum(remote, "packetsLost"),
    remote_loss: most(remote, "fractionLost") ?? null,
    remote_round_trip_ms: ms(most(remote, "roundTripTime")),
    remote_jitter_ms: ms(most(remote, "jitter")),
    available_bps: pair?.availableOutgoingBitrate ?? null,
    pair_bytes_received: pair?.bytesReceived ?? 0,
    pair_bytes_sent: pair?.bytesSent ?? 0,
  };
  const headers = { "content-type": "application/json" };
  await ask(`${location}/browser`, { method: "POST", headers, body: JSON.stringify(numbers) });
}

export class Call {
  #peer = new RTCPeerConnection({ bundlePolicy: "max-bundle" });
  #location = null;
  #from = 0;
  #browserFrom = 0;
  remote = null;

  /** `media` may be null, or without sound: that is then only received. */
  async start(media, { controller, max, codec, way, sound }, onState) {
    const peer = this.#peer;
    const add = (kind, track) => {
      const direction = !track ? "recvonly" : way === "whip" ? "sendonly" : "sendrecv";
      if (track || way !== "whip") return peer.addTransceiver(track ?? kind, { direction, streams: track ? [media] : [] });
    };
    this.#prefer(add("video", media?.getVideoTracks()[0]), codec);
    if (sound) add("audio", media?.getAudioTracks()[0]);
    this.remote = new MediaStream();
    peer.addEventListener("track", ({ track: received }) => {
      this.remote.addTrack(received);
      onState();
    });
    peer.addEventListener("connectionstatechange", onState);
    await peer.setLocalDescription();
    await gathered(peer);
    const query = new URLSearchParams({ controller, max_kbps: max, codec });
    const headers = { "content-type": "application/sdp" };
    const answer = await ask(`/${way}?${query}`, { method: "POST", headers, body: peer.localDescription.sdp });
    this.#location = answer.headers.get("location");
    await peer.setRemoteDescription({ type: "answer", sdp: await answer.text() });
    await this.bound(max);
  }

  #prefer(transceiver, codec) {
    const wanted = `video/${codec}`;
    const all = RTCRtpReceiver.getCapabilities("video").codecs;
    const is = (c) => c.mimeType.toLowerCase() === wanted;
    transceiver.setCodecPreferences([...all.filter(is), ...all.filter((c) => !is(c))]);
  }

  /** Bounds the browser's own rate. */
  async bound(kbps) {
    const sender = this.#peer.getSenders().find((s) => s.track?.kind === "video");
    const parameters = sender?.getParameters();
    if (!parameters?.encodings?.length) return;
    for (const encoding of parameters.encodings) encoding.maxBitrate = 1e3 * kbps;
    await sender.setParameters(parameters);
  }

  get state() {
    return this.#peer.connectionState;
  }
  restarts = 0;

  async restart() {
    await restartIce(this.#peer, this.#location);
    this.restarts += 1;
  }

  async change(settings) {
    const headers = { "content-type": "application/json" };
    await ask(`${this.#location}/settings`, { method: "POST", headers, body: JSON.stringify(settings) });
  }

  /** What the service has seen since the last time. */
  async seen() {
    const signal = AbortSignal.timeout(ANSWER_MS);
    const seen = await (await ask(`${this.#location}?from=${this.#from}&browser_from=${this.#browserFrom}`, { signal })).json();
    this.#from = seen.first + seen.samples.length;
    this.#browserFrom = seen.browser_first + seen.browser_samples.length;
    return seen;
  }

  /** What the browser says of video and sound in both directions. */
  async stats() {
    const found = { inbound: null, outbound: null, remote: null, pair: null, heard: null, said: null };
    const all = await this.#peer.getStats();
    // After a restart of ICE there are pairs of before: the transport names the one in use, or in Firefox the pair says so.
    const inUse = [...all.values()].find((r) => r.type === "transport" && r.selectedCandidatePairId)?.selectedCandidatePairId;
    for (const report of all.values()) {
      if (report.type === "inbound-rtp" && report.kind === "audio") found.heard = report;
      if (report.type === "outbound-rtp" && report.kind === "audio") found.said = report;
      if (report.type === "inbound-rtp" && report.kind === "video") found.inbound = report;
      if (report.type === "outbound-rtp" && report.kind === "video") found.outbound = report;
      if (report.type === "remote-inbound-rtp" && report.kind === "video") found.remote = report;
      if (report.type === "candidate-pair" && (inUse ? report.id === inUse : (report.selected ?? report.nominated))) found.pair = report;
    }
    return found;
  }

  /** Passes the browser's numbers on: the service keeps them as a series beside its own. */
  async tell({ inbound, outbound, remote, pair, heard, said }) {
    const list = (report) => (report ? [report] : []);
    await tell(this.#location, { inbound: list(inbound), outbound: list(outbound), remote: list(remote), pair, heard: list(heard), said: list(said) });
  }

  /** A file of the call, and its name. */
  file(name) {
    return fileOf(this.#location, name);
  }

  async stop() {
    this.#peer.close();
    if (this.#location) await ask(this.#location, { method: "DELETE", keepalive: true });
  }
}
