"""A sweep on two workers of Dask or Ray, on this machine, one of which is killed in the middle: every run is there in the end.

    pip install 'dask[distributed]' ray
    python examples/python/killed_worker.py [--on ray] [--runs 10000] [--workers 2] [--spare]
"""

import argparse
import contextlib
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


@contextlib.contextmanager
def dask_workers(count):
    """An executor on that many workers, and the process of one."""
    from dask.distributed import Client, LocalCluster

    options = {"threads_per_worker": 1, "host": "127.0.0.1", "dashboard_address": None}
    with LocalCluster(n_workers=count, **options) as cluster, Client(cluster) as client:
        yield client, client.run(os.getpid)[sorted(client.scheduler_info()["workers"])[0]]


@contextlib.contextmanager
def ray_workers(count):
    """The same of Ray."""
    import ray

    ray.init(address="local", num_cpus=count, include_dashboard=False, log_to_driver=False)
    try:
        yield ray, ray.get(ray.remote(lambda: os.getpid()).remote())
    finally:
        ray.shutdown()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--on", choices=["dask", "ray"], default="dask")
    parser.add_argument("--runs", type=int, default=10_000)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--spare", action="store_true", help="kill none")
    parser.add_argument("--out", help="folder of the results (default: one that is removed)")
    arguments = parser.parse_args()
    half = arguments.runs // 2
    workers = {"dask": dask_workers, "ray": ray_workers}[arguments.on]
    with tempfile.TemporaryDirectory() as temporary, workers(arguments.workers) as (executor, victim):
        killed = threading.Event()

        def progress(share):
            if share >= 0.4 and not killed.is_set() and not arguments.spare:
                killed.set()
                os.kill(victim, signal.SIGKILL)
                print(f"worker {victim} killed at {100 * share:.0f} %", flush=True)

        out = arguments.out or temporary
        grid = {"scenarios": SHORT, "controllers": ["gcc", "nada"], "seeds": half}
        begun = time.monotonic()
        sweep = weir.sweep(grid, out, executor=executor, progress=progress)
        passed = time.monotonic() - begun
        keys = sweep.to_arrow()["key"].to_pylist()
        print(f"{sweep}: {len(keys)} rows, {len(set(keys))} keys, {len(sweep.failures)} failures")
        print(f"{passed:.1f} s, {sweep.done / passed:.0f} runs a second")
        assert killed.is_set() != arguments.spare and len(keys) == len(set(keys)) == 2 * half and not sweep.failures
        assert weir.sweep(grid, out, executor=executor).done == 0


if __name__ == "__main__":
    main()
