#!/usr/bin/env python3
"""An estimator at the receiver for Weir in 50 lines: it asks for a rate by REMB, ten times a second.

    weir estimator check 'python3 examples/estimators/remb.py'
    weir compare --controllers 'exec:python3 examples/estimators/remb.py,gcc-remb' --scenario quick
"""

import json
import sys

INTERVAL_NS = 100_000_000
ABOUT = {
    "version": 2,
    "name": "remb.py",
    "sides": ["receiver"],
    "events": ["received", "timer"],
    # Packets wait for the next timer: a turn an interval, not one a packet.
    "answers": ["timer"],
}

rate = floor = ceiling = 0
least = last = None  # delay; the sequence number before
delays, lost, size = [], 0, 0

for line in sys.stdin:
    turn = json.loads(line)
    answer = {"turn": turn["turn"]}
    for event in turn["events"]:
        if event["type"] == "configure":
            rate, floor, ceiling = event["start_bps"], event["floor_bps"], event["ceiling_bps"]
            answer["about"] = ABOUT
            answer["timer_ns"] = event["now_ns"] + INTERVAL_NS
        if event["type"] == "received":
            # The clocks of the two ends have another zero each: only differences of the delay say something.
            delays.append(event["now_ns"] - event["sent_ns"])
            size += event["size_bytes"]
            lost += max(event["sequence"] - last - 1, 0) if last is not None else 0
            last = max(event["sequence"], last or 0)
        if event["type"] == "timer":
            if delays:
                least = min(delays + ([] if least is None else [least]))
                queue_ms = (max(delays) - least) / 1e6
                arrived = size * 8e9 / INTERVAL_NS
                if queue_ms > 50 or lost > 0.05 * len(delays):
                    rate = min(rate, 0.85 * arrived)
                elif arrived > 0.5 * rate:
                    rate = rate + 20_000
            delays, lost, size = [], 0, 0
            answer["timer_ns"] = event["now_ns"] + INTERVAL_NS
            answer["report"] = "remb"
    rate = min(max(rate, floor), ceiling)
    print(json.dumps(answer | {"media_bps": rate}), flush=True)
