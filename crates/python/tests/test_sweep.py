"""Sweeps: run by tests/extras.rs in a Python with pyarrow."""

import concurrent.futures
import json
import os
import pathlib
import signal
import socket
import subprocess
import tempfile
import time
import unittest

import weir

SHORT = """
title = "Short"
duration = "3 s"
compare = ["gcc"]
[links.bottleneck]
rate = "1 Mbps"
delay = "20 ms"
queue = "200 ms"
[rtp.call]
controller = "$controller"
"""
GRID = {
    "scenarios": SHORT,
    "controllers": ["gcc", "nada"],
    "seeds": 3,
    "set": {"links.bottleneck.delay": ["20 ms", "80 ms"]},
}


def content(sweep):
    """The dataset's rows in an order of their own."""
    return sorted((r for r in sweep.to_arrow().to_pylist()), key=lambda r: (r["key"], r["flow"]))


class RecordedCalls(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        (self.folder / "link.toml").write_text(SHORT.replace("3 s", "8 s"))
        for seed in (1, 2, 3):
            call = self.folder / "calls" / str(seed)
            call.mkdir(parents=True)
            for end in ("sender", "receiver"):
                self.weir("run", "link.toml", "-q", "--seed", str(seed), "--pcap-at", end, "--pcap", str(call / f"{end}.pcapng"))
        (self.folder / "calls" / "none").mkdir()
        (self.folder / "calls" / "none" / "targets.log").write_text("1747225741356, 100000\n1747225741456, 200000\n")

    def weir(self, *arguments, code=0):
        done = subprocess.run([os.environ["WEIR_BINARY"], *arguments], capture_output=True, text=True, cwd=self.folder)
        self.assertEqual(done.returncode, code, done.stderr)
        return done.stdout

    def test_the_command_line_and_python_make_the_same_and_share_a_folder(self):
        options = {"controllers": ["gcc", "nada"], "controller": "gcc", "draws": 2}
        here = weir.calls(self.folder / "calls", self.folder / "a", threads=2, **options)
        self.assertEqual((here.done, here.kept, len(here.failures)), (4, 0, 1))
        self.assertIn("captures at both ends", here.failures[0]["error"])
        fits, controllers = here.to_arrow(), here.controllers()
        self.assertEqual((fits.num_rows, controllers.num_rows), (3, 6))
        self.assertEqual(sorted(set(controllers["controller"].to_pylist())), ["gcc", "nada"])
        self.assertEqual((here.summary.calls, here.summary.explained.controller), (3, "gcc"))
        search = ["search", "calls", "calls", "--controllers", "gcc,nada", "--controller", "gcc", "--draws", "2", "-q", "--json"]
        there = json.loads(self.weir(*search, "--out", "b", code=1))
        self.assertEqual(there["summary"]["controllers"], json.loads(self.weir(*search, "--out", "a"))["summary"]["controllers"])
        with concurrent.futures.ProcessPoolExecutor(1) as pool:
            again = weir.calls(self.folder / "calls", self.folder / "b", executor=pool, **options)
            self.assertEqual((again.done, again.kept), (0, 4))
            wider = weir.calls([self.folder / "calls" / "1"], self.folder / "b", controllers="sluice", draws=2, executor=pool)
        self.assertEqual((wider.done, wider.controllers().num_rows), (1, 7))

    def test_faults_are_named_before_anything_is_made(self):
        for paths, options, words in [
            (self.folder / "absent", {}, "no such file"),
            (self.folder / "calls", {"controllers": ["nadda"]}, "did you mean `nada`"),
            (self.folder / "calls", {"set": {"ceilng": "3Mbps"}}, "known: audio, ceiling"),
        ]:
            with self.assertRaises(ValueError) as raised:
                weir.calls(paths, self.folder / "c", **options)
            self.assertIn(words, str(raised.exception))


class Sweeps(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def test_every_combination_is_run_once_and_its_numbers_are_those_of_run(self):
        first = weir.sweep(GRID, self.folder / "a", threads=2)
        self.assertEqual((first.done, first.kept, first.failures), (12, 0, []))
        rows = content(first)
        self.assertEqual(len(rows), 12)
        one = next(r for r in rows if r["controller"] == "nada" and r["seed"] == 2 and "80 ms" in r["set"])
        alone = weir.run(SHORT.replace("20 ms", "80 ms"), controller="nada", seed=2)
        self.assertEqual(one["rates.goodput_bps"], alone.flows[0].rates.goodput_bps)
        again = weir.sweep(GRID, self.folder / "a")
        self.assertEqual((again.done, again.kept), (0, 12))
        wider = weir.sweep(GRID | {"seeds": 4}, self.folder / "a")
        self.assertEqual((wider.done, wider.kept), (4, 12))
        other = weir.sweep(GRID | {"seeds": 4}, self.folder / "b", threads=1)
        self.assertEqual(content(other), content(wider))

    def test_a_broken_off_sweep_goes_on(self):
        class Broken(concurrent.futures.Executor):
            """Runs one chunk of two, and fails the other."""

            def __init__(self, whole):
                self.taken, self.whole = 0, whole

            def submit(self, function, chunk):
                future = concurrent.futures.Future()
                self.taken += 1
                future.set_result(function(chunk)) if self.taken == self.whole else future.set_exception(KeyboardInterrupt())
                return future

        for whole in (1, 2):
            folder = self.folder / str(whole)
            with self.assertRaises(KeyboardInterrupt):
                weir.sweep(GRID, folder, executor=Broken(whole))
            left = weir.sweep(GRID, folder)
            self.assertEqual((left.done + left.kept, left.kept), (12, 6))
        alone = weir.sweep(GRID, self.folder / "b")
        self.assertEqual(content(left), content(alone))
        self.assertEqual(list(self.folder.rglob("*.part")), [])

    def test_the_command_line_and_python_share_a_folder(self):
        grid = self.folder / "grid.toml"
        lists = 'controllers = ["gcc", "nada"]\nseeds = 3\n[set]\nlinks.bottleneck.delay = ["20 ms", "80 ms"]\n'
        grid.write_text(f"scenarios = [{json.dumps(SHORT)}]\n{lists}")

        def binary(out):
            command = [os.environ["WEIR_BINARY"], "sweep", str(grid), "--out", str(self.folder / out), "--quiet"]
            return subprocess.run(command, capture_output=True, text=True, check=True).stdout

        self.assertIn("0 kept before, 12 made", binary("a"))
        here = weir.sweep(GRID, self.folder / "a")
        self.assertEqual((here.done, here.kept), (0, 12))
        there = weir.sweep(GRID, self.folder / "b")
        self.assertIn("12 kept before, 0 made", binary("b"))
        files = lambda out: {f.relative_to(self.folder / out): f.read_bytes() for f in sorted((self.folder / out).rglob("*.*"))}
        self.assertEqual(files("a"), files("b"))
        self.assertEqual(content(here), content(there))

    def test_failures_are_kept_beside_results(self):
        grid = GRID | {"set": {"links.bottleneck.delay": ["20 ms"], "rtp.call.floor": ["50 kbps", "9 Gbps"]}}
        sweep = weir.sweep(grid, self.folder / "a")
        self.assertEqual((sweep.done, len(sweep.failures), len(content(sweep))), (12, 6, 6))
        self.assertIn("floor", sweep.failures[0]["error"])
        self.assertEqual(weir.sweep(grid, self.folder / "a").done, 0)
        self.assertEqual(weir.sweep(grid, self.folder / "a", retry_failures=True).done, 6)
        self.assertEqual(len(sweep.failures), 6)

    def test_faults_of_a_grid_are_named_before_anything_runs(self):
        (self.folder / "full").mkdir()
        (self.folder / "full" / "thesis.tex").write_text("years")
        for grid, out, words in [
            ({"scenario": SHORT}, "a", "scenarios"),
            ({}, "a", "scenarios"),
            (GRID | {"controllers": [weir.Controller]}, "a", "name"),
            (GRID | {"set": {"link.bottleneck.delay": ["1 ms"]}}, "a", "link"),
            (GRID | {"scenarios": "responsivness"}, "a", "responsiveness`?"),
            (GRID | {"controllers": ["nadda"]}, "a", "did you mean `nada`"),
            (GRID | {"controlers": ["nada"]}, "a", "did you mean `controllers`"),
            (GRID | {"scenarios": "token-buckets", "set": {}, "variants": ["polcer"]}, "a", "did you mean `policer`"),
            (GRID | {"set": {"link.bottleneck.delay": ["1 ms"]}}, "a", "did you mean `links`"),
            (GRID | {"set": {"links.botleneck.delay": ["1 ms"]}}, "a", "did you mean `bottleneck`"),
            (GRID | {"set": {"links.bottleneck.dely": ["1 ms"]}}, "a", "did you mean `delay`"),
            (GRID, "full", "empty folder"),
        ]:
            with self.assertRaises(ValueError) as raised:
                weir.sweep(grid, self.folder / out)
            self.assertIn(words, str(raised.exception))
        with self.assertRaisesRegex(ValueError, "executor"):
            weir.sweep(GRID, self.folder / "a", executor=3)
        with socket.socket() as closed:
            closed.bind(("127.0.0.1", 0))
            begun = time.monotonic()
            for address in ("127.0.0.1:{}", "tcp://127.0.0.1:{}", "tls://127.0.0.1:{}"):
                with self.assertRaisesRegex(ConnectionError, "no Dask scheduler answers at '"):
                    weir.sweep(GRID, self.folder / "a", executor=address.format(closed.getsockname()[1]))
            self.assertLess(time.monotonic() - begun, 5)
        self.assertFalse((self.folder / "a" / "runs").exists())

    def test_a_lost_process_is_replaced_and_loses_nothing(self):
        with concurrent.futures.ProcessPoolExecutor(2) as pool:
            killed = []

            def progress(share):
                if not killed:
                    killed.append(next(iter(pool._processes)))
                    os.kill(killed[0], signal.SIGKILL)

            grid = GRID | {"seeds": 200, "set": {}}
            sweep = weir.sweep(grid, self.folder / "a", executor=pool, progress=progress)
        self.assertEqual((sweep.done, sweep.kept, sweep.failures, len(killed)), (400, 0, [], 1))
        self.assertEqual(content(sweep), content(weir.sweep(grid, self.folder / "b")))

    def test_processes_that_always_die_end_the_sweep(self):
        with concurrent.futures.ProcessPoolExecutor(1, initializer=os._exit, initargs=(3,)) as pool:
            with self.assertRaises(concurrent.futures.BrokenExecutor):
                weir.sweep(GRID, self.folder / "a", executor=pool)


if __name__ == "__main__":
    unittest.main(verbosity=2)
