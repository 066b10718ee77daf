"""Sweeps on Ray: run by tests/extras.rs in a Python with pyarrow and Ray."""

import os
import pathlib
import signal
import sys
import tempfile
import time
import unittest

# Nothing is sent to Ray's authors, and no file is left in the home folder.
os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
os.environ["RAY_AUTH_MODE"] = "disabled"

import ray

import weir

# No file beside the sources.
sys.dont_write_bytecode = True
from test_sweep import GRID, content


class Ray(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        # A shell's background job, as tests may be, ignores it.
        signal.signal(signal.SIGINT, signal.default_int_handler)
        ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False, object_store_memory=100 << 20, address="local")
        cls.addClassCleanup(ray.shutdown)

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def test_a_killed_worker_loses_nothing(self):
        @ray.remote
        def worker():
            time.sleep(0.3)
            return os.getpid()

        workers = sorted(set(ray.get([worker.remote() for _ in range(2)])))
        shares = []

        def progress(share):
            # The other parts run by now, or wait.
            if not shares:
                os.kill(workers[0], signal.SIGKILL)
            shares.append(share)

        grid = GRID | {"seeds": 100, "set": {}}
        sweep = weir.sweep(grid, self.folder / "a", executor=ray, progress=progress)
        self.assertEqual((sweep.done, sweep.kept, sweep.failures), (200, 0, []))
        self.assertEqual((shares == sorted(shares), len(shares), shares[-1]), (True, 4, 1.0))
        self.assertFalse(pathlib.Path(f"/proc/{workers[0]}").exists())
        here = weir.sweep(grid, self.folder / "b")
        self.assertEqual(content(sweep), content(here))
        again = weir.sweep(grid, self.folder / "a", executor="ray")
        self.assertEqual((again.done, again.kept), (0, 200))
        self.assertTrue(ray.is_initialized())

    def test_a_broken_off_sweep_leaves_whole_files_and_goes_on(self):
        def interrupt(share):
            signal.raise_signal(signal.SIGINT)

        with self.assertRaises(KeyboardInterrupt):
            weir.sweep(GRID, self.folder / "a", executor="ray", progress=interrupt)
        self.assertEqual(list(self.folder.rglob("*.part")), [])
        left = weir.sweep(GRID, self.folder / "a", executor="ray")
        self.assertEqual((left.done, left.kept), (6, 6))
        self.assertEqual(len(content(left)), 12)

    def test_an_error_of_a_task_is_raised(self):
        with weir._sweep._pool(ray, None) as pool, self.assertRaises(ValueError):
            list(pool.each(["no JSON"]))


if __name__ == "__main__":
    unittest.main(verbosity=2)
