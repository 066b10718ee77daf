// One call of a browser with the service whose page it has opened: an expression, the function of a job. It resolves to text in JSON.
async ({ token, way, codec, seconds, size, nack, fec, flexfec = true }) => {
  const wait = (ms) => new Promise((done) => setTimeout(done, ms));
  const peer = new RTCPeerConnection({ bundlePolicy: "max-bundle" });
  const said = { offer: "", answer: "", state: "", error: null };
  try {
    const [width, height] = size;
    const camera = way === "whip" ? await navigator.mediaDevices.getUserMedia({ video: { width, height } }) : null;
    const track = camera?.getVideoTracks()[0];
    const direction = track ? "sendonly" : "recvonly";
    const transceiver = peer.addTransceiver(track ?? "video", { direction, streams: camera ? [camera] : [] });
    const all = (track ? RTCRtpSender : RTCRtpReceiver).getCapabilities("video").codecs;
    const is = (c) => c.mimeType.toLowerCase() === `video/${codec}`;
    if (!all.some(is)) throw new Error(`it has no ${codec}: ${[...new Set(all.map((c) => c.mimeType))].join(" ")}`);
    const isFec = (c) => /\/(flexfec-03|ulpfec|red)$/i.test(c.mimeType);
    const rest = all.filter((c) => !is(c) && (fec || !isFec(c)) && (flexfec || !/flexfec/i.test(c.mimeType)));
    transceiver.setCodecPreferences([...all.filter(is), ...rest]);
    peer.addEventListener("track", ({ track: received }) => {
      const video = Object.assign(document.createElement("video"), { muted: true, autoplay: true });
      video.srcObject = new MediaStream([received]);
      document.body.append(video);
    });
    await peer.setLocalDescription();
    for (let n = 0; n < 20 && peer.iceGatheringState !== "complete"; n += 1) await wait(50);
    said.offer = peer.localDescription.sdp;
    // What it requests is not sent again where the offer has no generic NACKs.
    if (!nack) said.offer = said.offer.replace(/a=rtcp-fb:\S+ nack\r\n/g, "");
    const headers = { authorization: `Bearer ${token}` };
    const sdp = { ...headers, "content-type": "application/sdp" };
    const answer = await fetch(`/${way}?codec=${codec}`, { method: "POST", headers: sdp, body: said.offer });
    said.answer = await answer.text();
    if (!answer.ok) throw new Error(JSON.parse(said.answer).detail);
    await peer.setRemoteDescription({ type: "answer", sdp: said.answer });
    for (let n = 0; n < 200 && peer.connectionState !== "connected"; n += 1) await wait(50);
    said.state = peer.connectionState;
    await wait(1000 * seconds);
    const reports = [...(await peer.getStats()).values()];
    const video = (type) => reports.find((r) => r.type === type && r.kind === "video") ?? {};
    const [inbound, outbound] = [video("inbound-rtp"), video("outbound-rtp")];
    said.frames = inbound.framesDecoded ?? outbound.framesEncoded ?? 0;
    said.packets = inbound.packetsReceived ?? outbound.packetsSent ?? 0;
    said.fec = inbound.fecPacketsReceived ?? null;
    said.retransmissions = inbound.retransmittedPacketsReceived ?? outbound.retransmittedPacketsSent ?? null;
    const { framesReceived, framesDropped, keyFramesDecoded, freezeCount, decoderImplementation, encoderImplementation } = { ...inbound, ...outbound };
    const { fecBytesReceived, packetsLost, nackCount, pliCount, totalFreezesDuration, jitterBufferDelay, jitterBufferEmittedCount } = inbound;
    said.more = {
      framesReceived, framesDropped, keyFramesDecoded, freezeCount, decoderImplementation, encoderImplementation,
      fecBytesReceived, packetsLost, nackCount, pliCount, totalFreezesDuration, jitterBufferDelay, jitterBufferEmittedCount,
    };
    await fetch(answer.headers.get("location"), { method: "DELETE", headers });
  } catch (error) {
    said.error = String(error.message ?? error);
  }
  peer.close();
  return JSON.stringify(said);
}
