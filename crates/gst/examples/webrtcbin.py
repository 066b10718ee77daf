"""weirbwe inside webrtcbin: a call between two of them in this process, over ICE and DTLS, whose encoder follows the estimate.

    GST_PLUGIN_PATH=target/release python3 crates/gst/examples/webrtcbin.py [CONTROLLER [SECONDS]]

Debian: python3-gi gir1.2-gst-plugins-bad-1.0 gstreamer1.0-nice gstreamer1.0-plugins-bad gstreamer1.0-plugins-good
"""

import sys

import gi

gi.require_version("Gst", "1.0")
gi.require_version("GstSdp", "1.0")
gi.require_version("GstWebRTC", "1.0")
from gi.repository import GLib, Gst, GstSdp, GstWebRTC

Gst.init(None)
controller = sys.argv[1] if len(sys.argv) > 1 else "gcc"
seconds = int(sys.argv[2]) if len(sys.argv) > 2 else 10
VP8 = (
    "application/x-rtp,media=video,encoding-name=VP8,clock-rate=90000,payload=96,rtcp-fb-transport-cc=(boolean)true,"
    "extmap-1=(string)http://www.ietf.org/id/draft-holmer-rmcat-transport-wide-cc-extensions-01"
)
pipeline = Gst.parse_launch(
    "videotestsrc is-live=true ! video/x-raw,width=320,height=240,framerate=30/1 ! vp8enc name=encoder deadline=1 "
    f"target-bitrate=300000 ! rtpvp8pay mtu=1200 ! {VP8} ! webrtcbin name=sends bundle-policy=max-bundle "
    "webrtcbin name=receives bundle-policy=max-bundle"
)
sends, receives, encoder = (pipeline.get_by_name(name) for name in ("sends", "receives", "encoder"))
estimators, received = [], [0]


def estimator(_, transport):
    bwe = Gst.ElementFactory.make("weirbwe")
    for name, value in {
        "controller": controller,
        "estimated-bitrate": 300_000,
        "min-bitrate": 100_000,
        "max-bitrate": 2_000_000,
    }.items():
        bwe.set_property(name, value)
    bwe.connect(
        "notify::estimated-bitrate",
        lambda e, _: encoder.set_property("target-bitrate", e.get_property("estimated-bitrate")),
    )
    estimators.append(bwe)
    return bwe


sends.connect("request-aux-sender", estimator)


# The answer has the header extension only if the receiver's transceiver prefers it.
receives.connect("on-new-transceiver", lambda _, t: t.set_property("codec-preferences", Gst.Caps.from_string(VP8)))
for one, other in ((sends, receives), (receives, sends)):
    one.connect("on-ice-candidate", lambda _, line, text, to=other: to.emit("add-ice-candidate", line, text))


def count(_, info):
    received[0] += info.get_buffer().get_size()
    return Gst.PadProbeReturn.OK


def on_pad(_, pad):
    if pad.direction == Gst.PadDirection.SRC:
        sink = Gst.parse_bin_from_description("fakesink sync=false async=false", True)
        pipeline.add(sink)
        sink.sync_state_with_parent()
        pad.add_probe(Gst.PadProbeType.BUFFER, count)
        pad.link(sink.get_static_pad("sink"))


receives.connect("pad-added", on_pad)
kept = []


def described(element, what):
    promise = Gst.Promise.new()
    element.emit(f"create-{what}", Gst.Structure.new_empty("options"), promise)
    promise.wait()
    reply = promise.get_reply()
    # The bindings do not keep what a promise holds.
    kept.append((promise, reply))
    return reply.get_value(what).sdp.as_text()


def apply(element, side, what, text):
    promise = Gst.Promise.new()
    _, sdp = GstSdp.SDPMessage.new_from_text(text)
    kind = GstWebRTC.WebRTCSDPType.OFFER if what == "offer" else GstWebRTC.WebRTCSDPType.ANSWER
    kept.append((sdp, GstWebRTC.WebRTCSessionDescription.new(kind, sdp)))
    element.emit(f"set-{side}-description", kept[-1][1], promise)
    promise.wait()


def negotiate():
    for one, other, what in ((sends, receives, "offer"), (receives, sends, "answer")):
        text = described(one, what)
        apply(one, "local", what, text)
        apply(other, "remote", what, text)
    return False


def needed(_):
    if not kept:
        kept.append("negotiated once")
        GLib.idle_add(negotiate)


sends.connect("on-negotiation-needed", needed)
before = [0]


def show():
    for bwe in estimators:
        stats = bwe.get_property("stats")
        value = lambda name: stats.get_value(name) or 0
        print(
            f"estimate {bwe.get_property('estimated-bitrate') / 1e3:6.0f} kbit/s, received "
            f"{(received[0] - before[0]) * 8 / 1e3:6.0f} kbit/s, feedback on {value('feedback-matched')} packets, unmatched "
            f"{value('feedback-unmatched')}, round trip {value('round-trip-time') / 1e6:.1f} ms",
            flush=True,
        )
    before[0] = received[0]
    return True


loop = GLib.MainLoop()
bus = pipeline.get_bus()
bus.add_signal_watch()
bus.connect("message::error", lambda _, message: (print(message.parse_error()), loop.quit()))
GLib.timeout_add_seconds(1, show)
GLib.timeout_add_seconds(seconds, loop.quit)
pipeline.set_state(Gst.State.PLAYING)
loop.run()
pipeline.set_state(Gst.State.NULL)
