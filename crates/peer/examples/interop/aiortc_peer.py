"""One call of aiortc with a service of Weir's. The job is the only argument, in JSON; so is the last line of the output."""

import asyncio
import json
import random
import sys
import urllib.request

import aiortc.rtcrtpreceiver
import aiortc.rtcrtpsender
from aiortc import RTCPeerConnection, RTCRtpReceiver, RTCRtpSender, RTCSessionDescription, VideoStreamTrack
from av import VideoFrame

job = json.loads(sys.argv[1])
said = {"offer": "", "answer": "", "state": "", "error": None, "frames": 0, "packets": 0, "retransmissions": 0}
said["more"] = {"estimates": 0}


def counted(module, name, among, what):
    """Counts the calls of a function of the library: it keeps no such statistics."""
    function = getattr(module, name)

    def counts(*args, **kwargs):
        among[what] += 1
        return function(*args, **kwargs)

    setattr(module, name, counts)


class Camera(VideoStreamTrack):
    """Coarse noise, so that there is something to code."""

    def __init__(self, width, height):
        super().__init__()
        draw = random.Random(1)
        self.pictures = []
        for _ in range(30):
            frame = VideoFrame(width, height, "yuv420p")
            for plane in frame.planes:
                row = lambda: b"".join(bytes([draw.randrange(64, 192)]) * 8 for _ in range(plane.line_size // 8 + 1))
                rows = [row()[: plane.line_size] for _ in range(plane.height // 8 + 1)]
                plane.update(b"".join(rows[n // 8] for n in range(plane.height))[: plane.buffer_size].ljust(plane.buffer_size))
            self.pictures.append(frame)
        self.next = 0

    async def recv(self):
        pts, time_base = await self.next_timestamp()
        frame = self.pictures[self.next % len(self.pictures)]
        self.next += 1
        said["frames"] = self.next
        frame.pts, frame.time_base = pts, time_base
        return frame


async def watch(track):
    while True:
        await track.recv()
        said["frames"] += 1


async def main():
    peer, sends = RTCPeerConnection(), job["way"] == "whip"
    if sends:
        counted(aiortc.rtcrtpsender, "wrap_rtx", said, "retransmissions")
        counted(aiortc.rtcrtpsender, "unpack_remb_fci", said["more"], "estimates")
        transceiver = peer.addTransceiver(Camera(*job["size"]), direction="sendonly")
    else:
        counted(aiortc.rtcrtpreceiver, "unwrap_rtx", said, "retransmissions")
        transceiver = peer.addTransceiver("video", direction="recvonly")
    codecs = (RTCRtpSender if sends else RTCRtpReceiver).getCapabilities("video").codecs
    wanted = [c for c in codecs if c.mimeType.lower() == "video/" + job["codec"]]
    transceiver.setCodecPreferences(wanted + [c for c in codecs if c.mimeType == "video/rtx"])
    watching = []
    peer.on("track", lambda track: watching.append(asyncio.ensure_future(watch(track))))
    await peer.setLocalDescription(await peer.createOffer())
    said["offer"] = peer.localDescription.sdp
    headers = {"authorization": "Bearer " + job["token"], "content-type": "application/sdp"}
    address = f"{job['service']}/{job['way']}?codec={job['codec']}"
    request = urllib.request.Request(address, said["offer"].encode(), headers, method="POST")
    try:
        answer = urllib.request.urlopen(request)
    except urllib.error.HTTPError as refused:
        said["answer"] = refused.read().decode()
        raise RuntimeError(json.loads(said["answer"])["detail"]) from None
    said["answer"] = answer.read().decode()
    await peer.setRemoteDescription(RTCSessionDescription(said["answer"], "answer"))
    for _ in range(200):
        if peer.connectionState == "connected":
            break
        await asyncio.sleep(0.05)
    said["state"] = peer.connectionState
    await asyncio.sleep(job["seconds"])
    for report in (await peer.getStats()).values():
        if report.type == ("outbound-rtp" if sends else "inbound-rtp"):
            said["packets"] = report.packetsSent if sends else report.packetsReceived
    end = urllib.request.Request(job["service"] + answer.headers["location"], headers=headers, method="DELETE")
    urllib.request.urlopen(end)
    await peer.close()


try:
    asyncio.run(main())
except Exception as error:
    said["error"] = str(error)
print(json.dumps(said))
