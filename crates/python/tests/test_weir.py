"""The package as its users have it: run by tests/package.rs with WEIR_BINARY, the command line of the same build."""

import concurrent.futures
import ctypes
import json
import os
import pathlib
import signal
import subprocess
import sys
import threading
import time
import traceback
import unittest
import warnings

import numpy as np

import weir

BINARY = os.environ["WEIR_BINARY"]
EXAMPLES = pathlib.Path(__file__).resolve().parents[3] / "examples"
POLICY = EXAMPLES / "python/policy.onnx"
#: An estimator in another process.
AIMD = f"exec:{sys.executable} {EXAMPLES / 'estimators/aimd.py'}"

SHORT = """
title = "Short"
duration = "10 s"
compare = ["gcc"]
[links.bottleneck]
rate = "1 Mbps"
delay = "20 ms"
queue = "200 ms"
[rtp.call]
controller = "$controller"
"""


def binary(*arguments):
    done = subprocess.run([BINARY, *arguments], capture_output=True, text=True, check=True)
    printed = json.loads(done.stdout)
    del printed["schema"]
    return printed


class Steady(weir.Controller):
    """Half a megabit, whatever is reported."""

    def on_feedback(self, feedback):
        return 500e3


class Runs(unittest.TestCase):
    def test_a_run_has_the_command_lines_numbers(self):
        run = weir.run("responsiveness", controller="nada", seed=3)
        self.assertEqual(run.to_dict(), binary("run", "responsiveness", "--controller", "nada", "--seed", "3", "--quiet", "--json"))
        self.assertEqual(run.controller, "nada")
        self.assertGreater(run.flow("video").rates.goodput_bps, 1e6)

    def test_the_binary_python_and_c_give_the_same_bytes(self):
        library = ctypes.CDLL(os.environ["WEIR_LIBRARY"])
        for scenario, controller, seed in [("quick", "sluice", 7), (SHORT, "gcc", 2), ("rfc8867/5.6-long-tcp", "scream", 1)]:
            path = os.path.join(os.environ["WEIR_FOLDER"], "same.toml")
            if "\n" in scenario:
                with open(path, "w") as file:
                    file.write(scenario)
                scenario = path
            here, _ = weir._weir.run(["name", scenario], controller=controller, seed=seed, series=False)
            handle, length, number = ctypes.c_uint64(), ctypes.c_size_t(), ctypes.c_uint64(seed)
            made = library.weir_run_json(
                scenario.encode(), controller.encode(), ctypes.byref(number), ctypes.byref(handle)
            )
            self.assertEqual(made, 0)
            library.weir_text_copy(handle, None, ctypes.c_size_t(0), ctypes.byref(length))
            text = ctypes.create_string_buffer(length.value)
            self.assertEqual(library.weir_text_copy(handle, text, length, ctypes.byref(length)), 0)
            self.assertEqual(library.weir_free(handle), 0)
            self.assertEqual(text.raw.rstrip(b"\0"), here.encode())
            command = [BINARY, "run", scenario, "--controller", controller, "--seed", str(seed), "--quiet", "--json"]
            printed = subprocess.run(command, capture_output=True, check=True).stdout
            # The command line indents, and names its schema.
            line = b"".join(line.strip() for line in printed.splitlines()).replace(b'": ', b'":')
            schema = b'"schema":"weir:run:1",'
            self.assertEqual(line.replace(schema, b"", 1), here.encode())

    def test_a_comparison_has_the_command_lines_numbers_at_any_number_of_threads(self):
        one = weir.compare("quick", controllers=["gcc", "scream"], runs=2, threads=1)
        three = weir.compare("quick", controllers=["gcc", "scream"], runs=2, threads=3)
        self.assertEqual(one.to_dict(), three.to_dict())
        printed = binary("compare", "--scenario", "quick", "--controllers", "gcc,scream", "--runs", "2", "--quiet", "--json",
                         "--out", os.path.join(os.environ["WEIR_FOLDER"], "report"))
        self.assertEqual(one.to_dict(), printed)
        self.assertEqual({row["controller"] for row in one.rows()}, {"gcc", "scream"})
        self.assertGreater(one.rows()[0]["goodput_bps"], 1e6)
        self.assertEqual(one.failures, [])

    def test_a_reproduction_has_the_command_lines_numbers(self):
        here = weir.reproduce("rmcat-comparison", table="2", runs=1, threads=2)
        there = binary("reproduce", "rmcat-comparison", "--table", "2", "--runs", "1", "--quiet", "--json")
        self.assertEqual(here.to_dict(), there)
        self.assertGreater(len([r for r in here.rows() if r["measured"] is not None]), 3)
        self.assertIn("<table>", here._repr_html_())
        with self.assertRaisesRegex(ValueError, "rmcat-comparison"):
            weir.reproduce("rmcat-comparisn")

    def test_series_are_arrays(self):
        run = weir.run("quick", controller="gcc")
        time_s = run.series["time_s"]
        self.assertEqual(time_s.dtype, np.float64)
        flow = run.flows[0].name
        sent = run.series[flow, "sent_bps"]
        self.assertEqual(len(sent), len(time_s))
        self.assertAlmostEqual(np.nanmean(sent) / run.flows[0].rates.sent_bps, 1.0, delta=0.05)
        self.assertIn(f"{flow}.sent_bps", run.series.to_dict())
        with self.assertRaisesRegex(KeyError, "sent_bps"):
            run.series[flow, "send_bps"]
        self.assertIsNone(weir.run("quick", controller="gcc", series=False).series)

    def test_numbers_out_of_range_are_named(self):
        for call in (
            lambda **given: weir.run(SHORT, **given),
            lambda **given: weir.compare(SHORT, **given),
            lambda **given: weir.reproduce("absent", **given),
        ):
            for seed in (-1, 1 << 64):
                with self.assertRaisesRegex(ValueError, f"seed: {seed}: expected a whole number from 0 to 18446744073709551615"):
                    call(seed=seed)
            with self.assertRaisesRegex(TypeError, "seed: expected a whole number, found 1.5"):
                call(seed=1.5)
        for name in ("runs", "threads"):
            with self.assertRaisesRegex(ValueError, f"{name}: -1: expected a whole number from 0 to 4294967295"):
                weir.compare(SHORT, **{name: -1})
        self.assertEqual(weir.run(SHORT, seed=np.int64(3)).seed, 3)

    def test_scenarios_are_names_files_texts_and_tables(self):
        text = weir.run(SHORT)
        path = os.path.join(os.environ["WEIR_FOLDER"], "short.toml")
        with open(path, "w") as file:
            file.write(SHORT)
        tables = {
            "title": "Short",
            "duration": "10 s",
            "compare": ["gcc"],
            "links": {"bottleneck": {"rate": "1 Mbps", "delay": "20 ms", "queue": "200 ms"}},
            "rtp": {"call": {"controller": "$controller"}},
        }
        for given in (path, tables):
            self.assertEqual(weir.run(given).flows[0].rates.sent_bps, text.flows[0].rates.sent_bps)
        names = [s.name for s in weir.scenarios()]
        self.assertIn("rmcat-comparison/responsiveness", names)
        self.assertIn("sluice", [c["name"] for c in weir.controllers()])

    def test_faults_name_their_place_and_the_nearest_name(self):
        for call, words in [
            (lambda: weir.run("responsivness"), "responsiveness"),
            (lambda: weir.run("quick", controller="gc"), "gcc"),
            (lambda: weir.run(SHORT.replace("20 ms", "20 mss")), "delay"),
            (lambda: weir.run({"title": "x", "duration": None}), "scenario"),
            (lambda: weir.run(""), "scenario"),
        ]:
            with self.assertRaises(ValueError) as raised:
                call()
            self.assertIn(words, str(raised.exception))
        with self.assertRaises(TypeError):
            weir.run("quick", controller=3)


class Recordings(unittest.TestCase):
    def setUp(self):
        self.path = os.path.join(os.environ["WEIR_FOLDER"], "getstats.jsonl")
        with open(self.path, "w") as file:
            sent = 0
            for second in range(40):
                sent += 250_000 if second < 20 else 60_000
                outbound = {"type": "outbound-rtp", "bytesSent": sent, "packetsSent": sent // 1000, "framesEncoded": 30 * second}
                pair = {"type": "candidate-pair", "availableOutgoingBitrate": 3e6}
                times = {"type": "remote-inbound-rtp", "totalRoundTripTime": 0.04 * (second + 1),
                         "roundTripTimeMeasurements": second + 1, "packetsLost": 0}
                line = {"epoch_ms": 1_700_000_000_000 + 1000 * second, "stats": {"O": outbound, "C": pair, "R": times}}
                file.write(json.dumps(line) + "\n")

    def test_a_recorded_call_has_the_command_lines_findings_and_arrays(self):
        call = weir.open(self.path)
        self.assertEqual(call.to_dict(), binary("open", self.path, "--lint", "--json"))
        self.assertEqual((call.level, len(call.episodes)), ("statistics", 1))
        self.assertEqual(call.episodes[0].causes[0].name, "sender-limited")
        sent = call.series["sent_kbps"]
        self.assertEqual((sent.dtype, len(sent)), (np.float64, len(call.series["time_s"])))
        self.assertTrue(1990 < np.nanmax(sent) < 2010 and 475 < np.nanmin(sent) < 485, sent)
        self.assertEqual(call.start_ms, 1_700_000_000_000)
        numbers = call.recordings[0]["series"]
        mine = numbers["value"][numbers["name"] == "bytesSent"]
        self.assertEqual((len(mine), mine[-1]), (40, 6_200_000))
        self.assertEqual(call.recordings[0]["packets"].rows, 0)
        self.assertEqual(list(numbers), ["at_ms", "value", "kind", "id", "name", "text"])

    def test_what_is_damaged_unknown_or_absent_is_told(self):
        with open(self.path) as file:
            text = file.read()
        with open(self.path, "w") as file:
            file.write(text[:3000] + "}{")
        cut = weir.open([self.path])
        self.assertTrue(cut.sources[0].stopped or cut.sources[0].faults.to_dict(), cut.sources[0].to_dict())
        with self.assertRaisesRegex(OSError, "absent.log"):
            weir.open("absent.log")
        with self.assertRaisesRegex(ValueError, "(?s)not a recording.*docs/open.md"):
            weir.open(__file__)
        with self.assertRaisesRegex(ValueError, "controllers"):
            weir.open(self.path, controllers=["gcc"])
        with self.assertRaisesRegex(KeyError, "packets"):
            cut.recordings[0]["packet"]
        with self.assertRaisesRegex(ValueError, "files"):
            weir.open([])

    def test_one_controller_needs_no_list(self):
        log = EXAMPLES.parent / "crates/timeline/tests/calls/healthy-5/left-event_log.log.gz"
        alone, listed = (weir.open(log, controllers=c) for c in ("gcc", ["gcc"]))
        self.assertEqual(alone.to_dict(), listed.to_dict())
        self.assertEqual(len(alone.replays), 1)


class Controllers(unittest.TestCase):
    def test_a_class_is_a_controller_by_its_name(self):
        run = weir.run(SHORT, controller=Steady)
        self.assertEqual(run.controller, "Steady")
        self.assertAlmostEqual(run.flows[0].rates.sent_bps, 500e3, delta=50e3)
        both = weir.compare(SHORT, controllers=["gcc", Steady], runs=2, threads=2)
        self.assertEqual([a["controller"] for a in both.to_dict()["aggregates"]], ["gcc", "Steady"])

    def test_one_controller_needs_no_list(self):
        for one in ("gcc", Steady):
            alone = weir.compare(SHORT, controllers=one, threads=1)
            self.assertEqual(alone.to_dict(), weir.compare(SHORT, controllers=[one], threads=1).to_dict())

    def test_reports_are_arrays_of_packets(self):
        seen = []

        class Looks(weir.Controller):
            interval_s = 0.5
            timeouts = 0

            def on_feedback(self, feedback):
                seen.append(feedback)
                return self.rate, 2 * self.rate

            def on_timeout(self, now_s):
                Looks.timeouts += 1

        weir.run(SHORT, controller=Looks)
        packets = np.concatenate([f.packets for f in seen])
        self.assertTrue((np.diff(packets["sequence"].astype(np.int64)) > 0).all())
        delay_ms = (packets["arrival"] - packets["departure"])[packets["received"]] / 1e6
        self.assertGreaterEqual(len(packets), 100)
        self.assertLess(np.ptp(delay_ms), 250)
        self.assertTrue(all(f.rtt_s is None or f.rtt_s >= 0.04 for f in seen))
        self.assertGreaterEqual(sum(f.bytes_sent for f in seen), packets["size"].sum())
        self.assertTrue(18 <= Looks.timeouts <= 20)

    def test_an_exception_ends_the_run_with_its_traceback(self):
        class Breaks(weir.Controller):
            calls = 0

            def on_feedback(self, feedback):
                Breaks.calls += 1
                if Breaks.calls == 5:
                    raise LookupError("the fifth report")

        try:
            weir.run(SHORT, controller=Breaks)
        except LookupError:
            trace = traceback.format_exc()
        self.assertIn('raise LookupError("the fifth report")', trace)
        self.assertEqual(Breaks.calls, 5)

        class Wrong(weir.Controller):
            def on_feedback(self, feedback):
                return "fast"

        with self.assertRaises(TypeError):
            weir.run(SHORT, controller=Wrong)

        class Absent(weir.Controller):
            def __init__(self):
                pass

        with self.assertRaises(TypeError):
            weir.run(SHORT, controller=Absent)

    def test_wild_rates_are_bounded(self):
        for rate in (1e30, -5.0, float("inf"), (1e6, -1.0), (1e6, float("inf"))):

            class Wild(weir.Controller):
                def on_feedback(self, feedback):
                    return rate

            run = weir.run(SHORT, controller=Wild)
            self.assertTrue(np.isfinite(run.flows[0].rates.sent_bps))

    def test_answers_of_wrong_types_are_named(self):
        for answer, kind in [("500k", "str"), ((1e6, "x"), "tuple"), ([1e6], "list")]:

            class Wrong(weir.Controller):
                def on_feedback(self, feedback):
                    return answer

            with self.assertRaisesRegex(TypeError, f"on_feedback answered a value of type {kind}: expected a media rate"):
                weir.run(SHORT, controller=Wrong)

    def test_nan_intervals_that_are_none_and_absent_methods_raise(self):
        nan = float("nan")
        for answer, words in [
            (nan, "on_feedback answered NaN as media rate"),
            ((nan, 1e6), "on_feedback answered NaN as media rate"),
            ((1e6, nan), "on_feedback answered NaN as pacing rate"),
            (np.float32(nan), "on_feedback answered NaN as media rate"),
        ]:

            class Lost(weir.Controller):
                def on_feedback(self, feedback):
                    return answer

            for made in (lambda: weir.run(SHORT, controller=Lost), lambda: weir.call(Lost, duration_s=30.0)):
                with self.assertRaisesRegex(ValueError, words):
                    made()

        class Silent(weir.Controller):
            pass

        with self.assertRaisesRegex(NotImplementedError, r"controller Silent: define on_feedback\(self, feedback\)"):
            weir.run(SHORT, controller=Silent)
        for seconds in (-1, 0, nan, float("inf"), 1e-9):
            Steady = type("Steady", (weir.Controller,), {"interval_s": seconds, "on_feedback": lambda self, feedback: 5e5})
            with self.assertRaisesRegex(ValueError, "interval_s is .*: expected 0.001 to 1000000 seconds, or None"):
                weir.run(SHORT, controller=Steady)

    def test_a_program_is_a_controller_by_its_command(self):
        run = weir.run(SHORT, controller=AIMD, series=False)
        path = os.path.join(os.environ["WEIR_FOLDER"], "program.toml")
        pathlib.Path(path).write_text(SHORT)
        there = binary("run", path, "--controller", AIMD, "--quiet", "--json")
        self.assertEqual(run.to_dict()["flows"], there["flows"])
        both = weir.compare(SHORT, controllers=["gcc", AIMD], runs=2, threads=2)
        self.assertEqual([a["controller"] for a in both.to_dict()["aggregates"]], ["gcc", AIMD])
        call = weir.call(AIMD, duration_s=1.0)
        self.assertGreater(call.receiver.received.rtp_packets, 0.95 * call.sender.sent.rtp_packets - 5)

    def test_a_program_that_fails_is_warned_of_and_its_results_are_kept(self):
        # The first process is asked for its name, the second dies in the call.
        about = '{"turn":0,"media_bps":300000,"about":{"version":2,"name":"dies"}}'
        dies = f"exec:sh -c 'read turn; echo \"$0\"; read turn' '{about}'"
        with warnings.catch_warnings(record=True) as warned:
            warnings.simplefilter("always")
            run = weir.run(SHORT, controller=dies)
        self.assertEqual([w.category for w in warned], [RuntimeWarning])
        self.assertRegex(str(warned[0].message), "exec:sh .* after the begin: .*; numbers of its flow are those of the floor")
        self.assertEqual(warned[0].filename.rpartition("/")[2], "test_weir.py")
        self.assertGreater(run.flows[0].rates.goodput_bps, 0)

    def test_a_scenario_cannot_start_a_program(self):
        named = SHORT.replace('controller = "$controller"', f"controller = {json.dumps(AIMD)}").replace('compare = ["gcc"]\n', "")
        with self.assertRaisesRegex(ValueError, "you have not named"):
            weir.run(named)
        with self.assertRaisesRegex(ValueError, "does not start"):
            weir.run(SHORT, controller="exec:no-such-program")


class Live(unittest.TestCase):
    def test_calls_are_made_under_any_controller_at_the_rates_that_it_sets(self):
        policy = f"onnx:{POLICY}"
        made, shares = {}, []

        def make(name, controller, **settings):
            made[name] = weir.call(controller, duration_s=2.0, start_bps=200e3, ceiling_bps=2e6, **settings)

        with concurrent.futures.ThreadPoolExecutor() as threads:
            calls = [
                threads.submit(make, "own", Steady, progress=shares.append),
                threads.submit(make, "named", "gcc", srtp=False),
                threads.submit(make, "learned", policy),
            ]
            for call in calls:
                call.result()
        for name, call in made.items():
            self.assertEqual(call.sender.ended.why, "duration", name)
            self.assertGreater(call.receiver.received.rtp_packets, 0.95 * call.sender.sent.rtp_packets - 5, name)
        self.assertEqual(made["own"].sender.target_bps, 500_000)
        self.assertAlmostEqual(made["own"].sender.sent_rate_bps, 500e3, delta=100e3)
        for name in ("named", "learned"):
            self.assertGreater(made[name].sender.target_bps, 250e3, name)
        self.assertGreater(len(shares), 10)
        self.assertIn("sent", repr(made["own"]))

    def test_a_call_has_the_fields_of_the_command_line(self):
        there = binary("call", "loopback", "--codec", "model", "--controller", "gcc", "--duration", "0.3", "--quiet", "--json")
        here = weir.call("gcc", duration_s=0.3).to_dict()
        self.assertEqual({k: sorted(v) for k, v in here.items() if v}, {k: sorted(v) for k, v in there.items() if v})

    def test_faults_end_a_call_or_are_refused(self):
        class Breaks(weir.Controller):
            def on_feedback(self, feedback):
                raise LookupError("the first report")

        begun = time.monotonic()
        with self.assertRaisesRegex(LookupError, "the first report"):
            weir.call(Breaks, duration_s=60.0)
        self.assertLess(time.monotonic() - begun, 10)
        for settings, words in [
            ({"controller": "gc"}, "gc"),
            ({"duration_s": 0.0}, "duration_s is 0"),
            ({"start_bps": 1.0}, "start_bps is 1: expected 50000 to"),
            ({"floor_bps": float("nan")}, "floor_bps is NaN"),
            ({"frame_rate": -1.0}, "frame_rate is -1"),
        ]:
            with self.assertRaisesRegex(ValueError, words):
                weir.call(**settings)
        with self.assertRaises(TypeError):
            weir.call(None)


class Interpreter(unittest.TestCase):
    def test_other_threads_go_on_and_progress_is_reported(self):
        ticks, shares, done = [], [], threading.Event()

        def tick():
            while not done.is_set():
                ticks.append(time.monotonic())
                time.sleep(0.001)

        other = threading.Thread(target=tick)
        other.start()
        weir.run("responsiveness", controller="gcc", progress=shares.append)
        done.set()
        other.join()
        self.assertGreater(len(ticks), 5)
        self.assertGreater(len(shares), 10)
        self.assertEqual(shares, sorted(shares))

    def test_ctrl_c_ends_a_run(self):
        # A shell starts background work with SIGINT ignored, and Python leaves that as it is.
        before = signal.signal(signal.SIGINT, signal.default_int_handler)
        self.addCleanup(signal.signal, signal.SIGINT, before)
        long = SHORT.replace('"10 s"', '"100000 s"')
        threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGINT)).start()
        begun = time.monotonic()
        with self.assertRaises(KeyboardInterrupt):
            weir.run(long, series=False)
        threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGINT)).start()
        with self.assertRaises(KeyboardInterrupt):
            weir.compare(long, runs=4, threads=2)
        self.assertLess(time.monotonic() - begun, 20)


if __name__ == "__main__":
    unittest.main(verbosity=2)
