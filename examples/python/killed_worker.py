"""A sweep on two Dask workers of this machine, one of which is killed in the middle: every run is there in the end.

    pip install 'dask[distributed]'
    python examples/python/killed_worker.py [--runs 10000]
"""

import argparse
import os
import signal
import tempfile
import threading
import time

import weir

SHORT = """
title = "Short"
duration = "2 s"
compare = ["gcc"]
[links.bottleneck]
rate = "1 Mbps"
delay = "20 ms"
queue = "200 ms"
[rtp.call]
controller = "$controller"
"""


def main():
    from dask.distributed import Client, LocalCluster

    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=10_000)
    parser.add_argument("--out", help="folder of the results (default: one that is removed)")
    arguments = parser.parse_args()
    half = arguments.runs // 2
    with tempfile.TemporaryDirectory() as temporary, LocalCluster(
        n_workers=2, threads_per_worker=1, host="127.0.0.1", dashboard_address=None
    ) as cluster, Client(cluster) as client:
        victim = client.run(os.getpid)[sorted(client.scheduler_info()["workers"])[0]]
        killed = threading.Event()

        def progress(share):
            if share >= 0.4 and not killed.is_set():
                killed.set()
                os.kill(victim, signal.SIGKILL)
                print(f"worker {victim} killed at {100 * share:.0f} %", flush=True)

        out = arguments.out or temporary
        grid = {"scenarios": SHORT, "controllers": ["gcc", "nada"], "seeds": half}
        begun = time.monotonic()
        sweep = weir.sweep(grid, out, executor=client, progress=progress)
        passed = time.monotonic() - begun
        keys = sweep.to_arrow()["key"].to_pylist()
        print(f"{sweep}: {len(keys)} rows, {len(set(keys))} keys, {len(sweep.failures)} failures, {passed:.0f} s")
        assert killed.is_set() and len(keys) == len(set(keys)) == 2 * half and not sweep.failures
        assert weir.sweep(grid, out, executor=client).done == 0


if __name__ == "__main__":
    main()
