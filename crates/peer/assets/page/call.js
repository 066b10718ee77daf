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

export class Call {
  #peer = new RTCPeerConnection({ bundlePolicy: "max-bundle" });
  #location = null;
  #from = 0;
  remote = null;

  /** `camera` may be null: then only Weir sends. */
  async start(camera, { controller, max, codec, way }, onState) {
    const track = camera?.getVideoTracks()[0];
    const peer = this.#peer;
    const direction = !track ? "recvonly" : way === "whip" ? "sendonly" : "sendrecv";
    const transceiver = peer.addTransceiver(track ?? "video", { direction, streams: camera ? [camera] : [] });
    this.#prefer(transceiver, codec);
    peer.addEventListener("track", ({ track: received }) => {
      this.remote = new MediaStream([received]);
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
    const sender = this.#peer.getSenders().find((s) => s.track);
    const parameters = sender?.getParameters();
    if (!parameters?.encodings?.length) return;
    for (const encoding of parameters.encodings) encoding.maxBitrate = 1e3 * kbps;
    await sender.setParameters(parameters);
  }

  get state() {
    return this.#peer.connectionState;
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

  /** What the browser says of video in both directions. */
  async stats() {
    const found = { inbound: null, outbound: null, remote: null, pair: null };
    for (const report of (await this.#peer.getStats()).values()) {
      if (report.type === "inbound-rtp" && report.kind === "video") found.inbound = report;
      if (report.type === "outbound-rtp" && report.kind === "video") found.outbound = report;
      if (report.type === "remote-inbound-rtp") found.remote = report;
      if (report.type === "candidate-pair" && report.nominated) found.pair = report;
    }
    return found;
  }

  /** Passes the browser's numbers on, for the service's report. */
  async tell({ inbound, outbound, pair }) {
    const numbers = {
      packets_received: inbound?.packetsReceived ?? 0,
      packets_lost: inbound?.packetsLost ?? 0,
      bytes_received: inbound?.bytesReceived ?? 0,
      frames_decoded: inbound?.framesDecoded ?? 0,
      freezes: inbound?.freezeCount ?? 0,
      packets_sent: outbound?.packetsSent ?? 0,
      bytes_sent: outbound?.bytesSent ?? 0,
      frames_encoded: outbound?.framesEncoded ?? 0,
      round_trip_ms: pair?.currentRoundTripTime === undefined ? null : 1e3 * pair.currentRoundTripTime,
    };
    const headers = { "content-type": "application/json" };
    await ask(`${this.#location}/browser`, { method: "POST", headers, body: JSON.stringify(numbers) });
  }

  async stop() {
    this.#peer.close();
    if (this.#location) await ask(this.#location, { method: "DELETE", keepalive: true });
  }
}
