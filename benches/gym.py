"""Steps a second of the environments, and what a step costs: python benches/gym.py [SECONDS]. Needs the package with its extra `gym`."""

import resource
import sys
import time

import numpy as np

import weir.gym

ENVIRONMENTS = 64


def measured(label, seconds, actions, **arguments):
    envs = weir.gym.CallVectorEnv(ENVIRONMENTS, **arguments)
    envs.reset(seed=1)
    drawn = actions(np.random.default_rng(1))
    usage = lambda: sum(resource.getrusage(resource.RUSAGE_SELF)[:2])
    for _ in range(50):
        envs.step(next(drawn))
    steps, sent, cpu, begun = 0, 0.0, usage(), time.perf_counter()
    while time.perf_counter() - begun < seconds:
        sent += np.nanmean(envs.step(next(drawn))[4]["send_rate_bps"])
        steps += 1
    wall, cpu = time.perf_counter() - begun, usage() - cpu
    total = steps * ENVIRONMENTS
    print(
        f"{label:34} {total / wall:9,.0f} steps/s  {1e6 * cpu / total:6.2f} us CPU a step  "
        f"{0.06 * total / cpu:6,.0f} simulated s a CPU s  {sent / steps / 1e3:6,.0f} kbit/s sent"
    )


def steady(bps):
    low, high = weir.gym.RATE_RANGE_BPS
    action = np.full((ENVIRONMENTS, 1), 2 * np.log(bps / low) / np.log(high / low) - 1, np.float32)

    def draw(_):
        while True:
            yield action

    return draw


def any_rate(rng):
    while True:
        yield rng.uniform(-1, 1, (ENVIRONMENTS, 1)).astype(np.float32)


if __name__ == "__main__":
    seconds = float(sys.argv[1]) if len(sys.argv) > 1 else 5.0
    for threads in (1, 2):
        for bps in (300e3, 1e6, 2e6):
            measured(f"{threads} threads, {bps / 1e3:,.0f} kbit/s", seconds, steady(bps), threads=threads)
        measured(f"{threads} threads, random actions", seconds, any_rate, threads=threads)
