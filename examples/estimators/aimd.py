#!/usr/bin/env python3
"""An estimator for Weir in 40 lines: additive increase, multiplicative decrease on delay and loss.

    weir estimator check 'python3 examples/estimators/aimd.py'
    weir compare --controllers 'exec:python3 examples/estimators/aimd.py,gcc' --scenario quick
"""

import json
import sys

ABOUT = {
    "version": 1,
    "name": "aimd.py",
    "events": ["feedback", "limits"],
    "answers": ["feedback", "limits"],
    "feedback": {"interval_ms": 100},
}

rate = floor = ceiling = 0
least = None

for line in sys.stdin:
    turn = json.loads(line)
    answer = {"turn": turn["turn"]}
    for event in turn["events"]:
        if event["type"] == "configure":
            rate, answer["about"] = event["start_bps"], ABOUT
        if event["type"] in ("configure", "limits"):
            floor, ceiling = event["floor_bps"], event["ceiling_bps"]
        if event["type"] == "feedback" and event["packets"]:
            # The clocks of the two ends have another zero each: only differences of the delay say something.
            delays = [p["arrived_ns"] - p["sent_ns"] for p in event["packets"] if "arrived_ns" in p]
            lost = 1 - len(delays) / len(event["packets"])
            least = min(delays + ([] if least is None else [least]), default=None)
            queue_ms = (max(delays) - least) / 1e6 if delays else 0
            rate = rate * 0.85 if queue_ms > 50 or lost > 0.05 else rate + 20_000
    rate = min(max(rate, floor), ceiling)
    print(json.dumps(answer | {"media_bps": rate}), flush=True)
