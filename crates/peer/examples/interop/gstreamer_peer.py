"""One call of GStreamer's webrtcbin with a service of Weir's. The job is the only argument, in JSON; so is the last line of the output."""

import json
import sys
import time
import urllib.request

import gi

gi.require_version("Gst", "1.0")
gi.require_version("GstSdp", "1.0")
gi.require_version("GstWebRTC", "1.0")
from gi.repository import GLib, Gst, GstSdp, GstWebRTC  # noqa: E402

Gst.init(None)
job = json.loads(sys.argv[1])
said = {"offer": "", "answer": "", "state": "", "error": None, "frames": 0, "packets": 0, "retransmissions": 0}
TWCC = "http://www.ietf.org/id/draft-holmer-rmcat-transport-wide-cc-extensions-01"
sends, h264 = job["way"] == "whip", job["codec"] == "h264"
width, height = job["size"]

caps = f"application/x-rtp,media=video,clock-rate=90000,payload=96,encoding-name={'H264' if h264 else 'VP8'}"
if h264:
    caps += ",packetization-mode=(string)1,profile-level-id=(string)42e01f"
caps += f',extmap-3=(string)"{TWCC}",rtcp-fb-transport-cc=(boolean)true'
camera = f"videotestsrc is-live=true pattern=smpte horizontal-speed=7 ! video/x-raw,width={width},height={height},framerate=30/1 ! identity name=camera signal-handoffs=true"
coder = (
    "openh264enc bitrate=600000 gop-size=300 ! video/x-h264,profile=constrained-baseline"
    " ! rtph264pay config-interval=-1 aggregate-mode=zero-latency mtu=1200"
    if h264
    else "vp8enc deadline=1 cpu-used=8 target-bitrate=600000 keyframe-max-dist=300 ! rtpvp8pay mtu=1200"
)
loop = GLib.MainLoop()
pipeline = Gst.Pipeline.new(None)
webrtc = Gst.ElementFactory.make("webrtcbin")
webrtc.set_property("bundle-policy", GstWebRTC.WebRTCBundlePolicy.MAX_BUNDLE)
pipeline.add(webrtc)


def count(*_):
    said["frames"] += 1


def with_retransmissions(transceiver):
    transceiver.set_property("do-nack", True)


if sends:
    # A filter with a URI in it cannot be part of a launch line.
    source = Gst.parse_bin_from_description(f"{camera} ! {coder} ! capsfilter name=format", True)
    source.get_by_name("format").set_property("caps", Gst.Caps.from_string(caps))
    pipeline.add(source)
    source.link(webrtc)
    source.get_by_name("camera").connect("handoff", count)
    with_retransmissions(webrtc.emit("get-transceiver", 0))
else:
    receives = GstWebRTC.WebRTCRTPTransceiverDirection.RECVONLY
    with_retransmissions(webrtc.emit("add-transceiver", receives, Gst.Caps.from_string(caps)))


def pad_added(_, pad):
    depay = "rtph264depay request-keyframe=true wait-for-keyframe=true"
    if pad.direction != Gst.PadDirection.SRC:
        return
    text = f"{depay} ! h264parse ! avdec_h264" if h264 else "rtpvp8depay request-keyframe=true wait-for-keyframe=true ! vp8dec"
    if h264 and not Gst.ElementFactory.find("avdec_h264"):
        text = f"{depay} ! h264parse ! openh264dec"
    sink = Gst.parse_bin_from_description(f"queue ! {text} ! fakesink name=screen signal-handoffs=true sync=false", True)
    sink.get_by_name("screen").connect("handoff", count)
    pipeline.add(sink)
    sink.sync_state_with_parent()
    pad.link(sink.get_static_pad("sink"))


def elements():
    found = webrtc.iterate_recurse()
    while True:
        result, element = found.next()
        if result != Gst.IteratorResult.OK:
            return
        yield element


def retransmissions():
    """Of both directions: a call has one that is not 0."""
    total = 0
    for element in elements():
        name = element.get_factory().get_name() if element.get_factory() else ""
        if name == "rtprtxreceive":
            total += element.get_property("num-rtx-assoc-packets")
        if name == "rtprtxsend":
            total += element.get_property("num-rtx-packets")
    return total


def fail(text):
    said["error"] = said["error"] or text
    loop.quit()


def on_message(_, message):
    if message.type == Gst.MessageType.ERROR:
        fail(message.parse_error()[0].message)


def finish():
    said["state"] = webrtc.get_property("connection-state").value_nick
    said["retransmissions"] = retransmissions()
    end = urllib.request.Request(job["service"] + finish.location, headers=headers, method="DELETE")
    urllib.request.urlopen(end)
    loop.quit()


headers = {"authorization": "Bearer " + job["token"], "content-type": "application/sdp"}


def ask(*_):
    """Sends the offer once candidates are gathered."""
    if webrtc.get_property("ice-gathering-state") != GstWebRTC.WebRTCICEGatheringState.COMPLETE or said["offer"]:
        return
    said["offer"] = webrtc.get_property("local-description").sdp.as_text()
    address = f"{job['service']}/{job['way']}?codec={job['codec']}"
    try:
        answer = urllib.request.urlopen(urllib.request.Request(address, said["offer"].encode(), headers, method="POST"))
    except urllib.error.HTTPError as refused:
        said["answer"] = refused.read().decode()
        fail(json.loads(said["answer"])["detail"])
        return
    said["answer"] = answer.read().decode()
    finish.location = answer.headers["location"]
    _, message = GstSdp.SDPMessage.new_from_text(said["answer"])
    description = GstWebRTC.WebRTCSessionDescription.new(GstWebRTC.WebRTCSDPType.ANSWER, message)
    webrtc.emit("set-remote-description", description, Gst.Promise.new())


connected = [False]


def on_state(*_):
    if webrtc.get_property("connection-state") == GstWebRTC.WebRTCPeerConnectionState.CONNECTED and not connected[0]:
        connected[0] = True
        GLib.timeout_add(int(1000 * job["seconds"]), finish)


def on_offer(promise, *_):
    reply = promise.get_reply()
    if reply.has_field("error"):
        fail(reply.get_value("error").message)
        return
    offer = reply.get_value("offer")
    webrtc.emit("set-local-description", offer, Gst.Promise.new())


def negotiate(*_):
    webrtc.emit("create-offer", None, Gst.Promise.new_with_change_func(on_offer, None))


webrtc.connect("on-negotiation-needed", negotiate)
webrtc.connect("notify::ice-gathering-state", lambda *_: GLib.idle_add(ask))
webrtc.connect("notify::connection-state", lambda *_: GLib.idle_add(on_state))
webrtc.connect("pad-added", pad_added)
bus = pipeline.get_bus()
bus.add_signal_watch()
bus.connect("message", on_message)
GLib.timeout_add(int(1000 * job["seconds"]) + 12_000, lambda: fail("it has not connected within 12 s"))
pipeline.set_state(Gst.State.PLAYING)
try:
    loop.run()
except Exception as error:  # noqa: BLE001
    said["error"] = str(error)
print(json.dumps(said), flush=True)
time.sleep(0.1)
pipeline.set_state(Gst.State.NULL)
