#!/usr/bin/env python3
"""Replays the test vectors of sluice against a class in Python: tools/sluice-vectors.py MODULE [FILE ...]

docs/sluice-spec.md has the class's interface and the format of the files in section 16.
"""

import argparse
import importlib
import importlib.util
import json
import sys
from collections import namedtuple
from pathlib import Path

VECTORS = Path(__file__).resolve().parent.parent / "crates/cc/tests/vectors/sluice"
SHARE = 1e-3
# Differences below which a timer and an internal value are the same.
TIMER_NS = 10_000
INTERNAL = 1e-6
DECISIONS = ("media_bps", "pacing_bps", "timeout_ns", "mode")

Packet = namedtuple("Packet", "sequence departure_ns arrival_ns size is_ce was_lost")


class Replay:
    """One file against one controller."""

    def __init__(self, vector, make):
        self.vector = vector
        self.tick = vector["tick_ns"]
        config = vector["config"]
        self.start = config["start"] * self.tick
        self.controller = make(
            self.start, config["floor_bps"], config["ceiling_bps"], config["start_bps"], dict(config["params"])
        )
        self.sent = {}
        #: The first internal value that differs, and how many do, of how many compared.
        self.suspect = None
        self.unlike = self.compared = 0

    def run(self):
        """None, or what differs first."""
        found = self.compare("at the start", self.start, self.vector["begin"])
        for number, event in enumerate(self.vector["events"]):
            if found:
                break
            now = event[1] * self.tick
            self.apply(event, now)
            if event[0] != "s":
                found = self.compare(f"event {number} ({event[0]}) at {(now - self.start) * 1e-9:.6f} s", now, event[-1])
        if found and self.suspect:
            found += f"\n    before it: {self.suspect}"
        return found

    def verdict(self):
        """The text of a vector that passes: decisions may agree although values behind them do not."""
        if not self.unlike:
            return "passes"
        return f"passes, but {self.unlike} of {self.compared} internal values differ\n    the first: {self.suspect}"

    def apply(self, event, now):
        kind, of = event[0], self.controller
        if kind == "s":
            self.send(event)
        elif kind == "f":
            rtt = None if event[2] is None else event[2] * self.tick
            of.on_feedback(now, self.packets(event[4], event[5]), event[3], rtt)
        elif kind == "t":
            of.on_timeout(now)
        elif kind == "l":
            of.on_limits(now, event[2], event[3])
        else:
            {"r": of.on_request, "n": of.on_notice, "c": of.on_coupled, "q": of.on_queue}[kind](now, event[2])

    def send(self, event):
        at, first, gaps = event[1], event[2], event[3]
        sizes = event[4] if len(event) > 4 else [self.vector["size"]] * (len(gaps) + 1)
        for i, gap in enumerate([0] + gaps):
            at += gap
            self.sent[first + i] = (at * self.tick, sizes[i])
            self.controller.on_sent(at * self.tick, first + i, sizes[i])

    def packets(self, number, items):
        packets = []
        for item in items:
            flags = 0
            if isinstance(item, list):
                number, item, flags = item
            departure, size = self.sent[number]
            arrival = None if item is None else departure + (item + self.vector["clock_offset"]) * self.tick
            packets.append(Packet(number, departure, arrival, size, bool(flags & 1), bool(flags & 2)))
            number += 1
        return packets

    def compare(self, where, now, expected):
        """What differs in the decisions; the first difference of another value is kept."""
        found = dict(self.controller.internals())
        found["media_bps"], found["pacing_bps"] = self.controller.target()
        found["timeout_ns"] = self.controller.timeout()
        for name, value in zip(self.vector["outputs"], expected):
            if name not in found:
                continue
            self.compared += name not in DECISIONS
            if is_same(name, found[name], value, now):
                continue
            text = f"{where}: {name} is {found[name]}, expected {value}"
            if name in DECISIONS:
                return text
            self.unlike += 1
            self.suspect = self.suspect or text
        return None


def is_same(name, found, expected, now):
    """Whether a value is as near as section 16.2 asks for."""
    if found is None or expected is None:
        return found is expected
    if name == "timeout_ns":
        return abs(found - expected) <= max(SHARE * (expected - now), TIMER_NS)
    if name == "mode":
        return found == expected
    return abs(found - expected) <= max(SHARE * abs(expected), INTERNAL)


def load(name):
    """A module by the path of its file or by its name."""
    if not name.endswith(".py"):
        sys.path.insert(0, ".")
        return importlib.import_module(name)
    path = Path(name).resolve()
    sys.path.insert(0, str(path.parent))
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("module", help="a file of Python, or the name of a module, with a class Sluice")
    parser.add_argument("files", nargs="*", type=Path, help="vectors; all without")
    parser.add_argument("--core", action="store_true", help="only vectors that require no extension")
    parser.add_argument("--with", dest="tags", metavar="TAGS", help="only vectors that require none but these extensions")
    options = parser.parse_intermixed_args()
    files = options.files or sorted(VECTORS.glob("*.json"))
    if not files:
        parser.error(f"there are no vectors in {VECTORS}: name their files")
    known = set(options.tags.split(",")) if options.tags else set()
    make = load(options.module).Sluice
    failed = count = 0
    for path in files:
        vector = json.loads(path.read_text())
        if (options.core or options.tags) and not set(vector["requires"]) <= known:
            continue
        count += 1
        passed = ""
        try:
            replay = Replay(vector, make)
            found = replay.run()
            passed = replay.verdict()
        except Exception as error:  # The controller is somebody else's program.
            found = f"{type(error).__name__}: {error}"
        failed += found is not None
        print(f"{vector['name']}: {found or passed}")
    if not count:
        parser.error("--core and --with leave no vector of these files")
    print(f"{count - failed} of {count} pass")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
