"""The receiver's bandwidth estimator of aiortc (aiortc/rate.py) behind Weir's `exec:` protocol.

    main.py FOLDER LABEL     FOLDER has the library's rate.py and utils.py, LABEL its name and version

It is called as aiortc's RTCRtpReceiver calls it, once for each packet of video, and what it returns is asked for by REMB at once. It has no
clock of its own: the time of arrival is an argument."""

import importlib.machinery
import importlib.util
import json
import struct
import sys

FOLDER, LABEL = sys.argv[1:3]
# The package without its __init__.py, which needs the codecs.
package = importlib.machinery.ModuleSpec("aiortc", None, is_package=True)
package.submodule_search_locations = [FOLDER]
sys.modules["aiortc"] = importlib.util.module_from_spec(package)

from aiortc.rate import RemoteBitrateEstimator  # noqa: E402

RECEIVED, HEAD, REMB = 9, 16, 128
# Bytes of an event of each kind that an estimator at the receiver gets (docs/estimators.md).
SIZES = {6: 32, 7: 16, 9: 40, 10: 24}
SSRC = 1
ABOUT = {
    "version": 2,
    "name": LABEL,
    "form": "binary",
    "sides": ["receiver"],
    "events": ["received"],
    "answers": ["received"],
}

into, out = sys.stdin.buffer, sys.stdout.buffer
event = json.loads(into.readline())["events"][0]
rate = event["start_bps"]
out.write(json.dumps({"turn": 0, "media_bps": rate, "about": ABOUT}).encode() + b"\n")
out.flush()

estimator = RemoteBitrateEstimator()
while head := into.read(HEAD):
    length, _, turn = struct.unpack("<IIQ", head)
    body = into.read(length)
    at = flags = 0
    while at < length:
        kind, present, _, _, now_ns = struct.unpack_from("<BBHIq", body, at)
        if kind == RECEIVED and present & 1:
            _, sent_ns, _, payload = struct.unpack_from("<QqII", body, at + HEAD)
            # The extension of 24 bits from which Weir has read the time: in units of 2^-18 s.
            abs_send_time = round(sent_ns * (1 << 18) / 10**9) & 0xFFFFFF
            asked = estimator.add(now_ns // 1_000_000, abs_send_time, payload, SSRC)
            if asked is not None:
                rate, flags = asked[0], REMB
        at += SIZES[kind]
    out.write(struct.pack("<IIQIHBBdddQqq", 56, 0, turn, flags, 0, 0, 0, rate, 0, 0, 0, 0, 0))
    out.flush()
