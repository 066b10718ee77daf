"""Sets controllers beside each other where a policy was trained, and where it was not.

    python examples/python/evaluate.py onnx:policy.onnx gcc sluice
    python examples/python/evaluate.py onnx:policy.onnx gcc --traces belgium_4g    # a folder of capacity traces

A line has the means over the calls: on-time goodput over the capacity (at the receiver 100 ms after the path's own delay, at
the latest), the 95th percentile of the one-way delay above the path's own, the share lost; and where the environment can say it,
the reward of OpenNetLab's example. Calls are drawn by seeds that training does not use.
"""

import argparse
import pathlib

import gymnasium
import numpy as np

import weir
import weir.gym

#: What media may take beyond the path's own delay, in ms.
LATE_MS = 100
SECONDS = 60
TRAINED = weir.gym.Links()
#: Links by name: those of the training, and others.
KINDS = {
    "as trained: 0.2 to 4 Mbit/s": TRAINED,
    "faster: 5 to 15 Mbit/s": weir.gym.Links(rate_bps=(5e6, 15e6)),
    "slower: 80 to 200 kbit/s": weir.gym.Links(rate_bps=(80e3, 200e3)),
    "longer: 120 to 250 ms one way": weir.gym.Links(delay_ms=(120, 250)),
    "lossy: 3 to 8 %": weir.gym.Links(loss=(0.03, 0.08)),
    "queues of 0.8 to 1.5 s": weir.gym.Links(queue_ms=(800, 1500)),
    "capacity changes every 1 to 2 s": weir.gym.Links(change_s=(1, 2)),
}


def call(rate, delay_ms, queue, loss=0.0, tcp=False, seconds=SECONDS):
    """A scenario: one call over one link, with a TCP flow beside it if wished."""
    tables = {
        "title": "One call",
        "duration": f"{seconds} s",
        "compare": ["gcc"],
        "links": {"bottleneck": {"rate": rate, "delay": f"{delay_ms:.1f} ms", "queue": queue, "loss": loss}},
        "rtp": {
            "call": {
                "controller": "$controller", "floor": "50 kbps", "ceiling": "20 Mbps", "start_rate": "300 kbps",
                "playout_deadline": f"{delay_ms + LATE_MS:.1f} ms",
            }
        },
    }
    if tcp:
        tables["tcp"] = {"download": {"algorithm": "cubic", "start": "10 s", "stop": "40 s"}}
    return tables


def drawn(links, seed):
    """A call over a link drawn as an environment draws it."""
    rng = np.random.default_rng(seed)
    steps, at = [], 0.0
    while at < SECONDS:
        rate = np.exp(rng.uniform(*np.log(links.rate_bps)))
        steps.append({"at": f"{at:.3f} s", "rate": f"{rate:.0f} bps"})
        at += rng.uniform(*links.change_s)
    delay, queue, loss = rng.uniform(*links.delay_ms), rng.uniform(*links.queue_ms), rng.uniform(*links.loss)
    return call({"steps": steps}, delay, f"{queue:.1f} ms", float(loss)), delay


def measured(calls, controllers):
    """For each controller the means over calls: on-time goodput over the capacity, delay above the path's own, share lost."""
    rows = {}
    for controller in controllers:
        numbers = []
        for n, (scenario, delay) in enumerate(calls):
            flow = weir.run(scenario, controller=controller, seed=n + 1, series=False).flow("call")
            queueing = flow.one_way_delay_ms.p95 - delay if flow.one_way_delay_ms is not None else np.nan
            numbers.append((flow.utilisation_goodput, queueing, flow.loss))
        rows[controller] = np.nanmean(np.array(numbers, float), axis=0)
    return rows


def rewards(links, controllers, count):
    """The mean reward of a step, by controller."""
    means = {}
    for controller in controllers:
        envs = gymnasium.make_vec(
            "weir/Call-v0", num_envs=count, vectorization_mode="vector_entry_point", controller=controller, links=links,
            duration_s=SECONDS,
        )
        envs.reset(seed=1_000_003)
        steps = [envs.step(np.zeros((count, 1)))[1] for _ in range(int(SECONDS / 0.06))]
        means[controller] = float(np.mean(steps))
    return means


def main():
    parser = argparse.ArgumentParser(description="Compare controllers where a policy was trained, and elsewhere.")
    parser.add_argument("controllers", nargs="+", help="names, such as onnx:policy.onnx and gcc")
    parser.add_argument("--calls", type=int, default=40, help="calls of each kind (default: %(default)s)")
    parser.add_argument("--traces", type=pathlib.Path, action="append", default=[], help="a folder of capacity traces; nothing else is run")
    arguments = parser.parse_args()
    print("| calls | controller | reward | on time | delay p95, ms | lost, % |\n|---|---|---|---|---|---|")

    def show(kind, rows, reward):
        for controller, (on_time, delay, loss) in rows.items():
            given = f"{reward[controller]:.3f}" if reward else ""
            print(f"| {kind} | {pathlib.Path(controller).name} | {given} | {on_time:.3f} | {delay:.0f} | {100 * loss:.2f} |", flush=True)

    for folder in arguments.traces:
        files = sorted(f for f in folder.iterdir() if f.is_file() and f.suffix not in (".txt", ".md"))
        calls = [(call({"trace": str(f.resolve())}, 25, "60000 B", seconds=120), 25) for f in files]
        show(f"{folder.name}: {len(calls)} traces", measured(calls, arguments.controllers), None)
    if arguments.traces:
        return
    for kind, links in KINDS.items():
        calls = [drawn(links, 10_000 + n) for n in range(arguments.calls)]
        show(kind, measured(calls, arguments.controllers), rewards(links, arguments.controllers, arguments.calls))
    calls = [(call(f"{rate} Mbps", 30, "200 ms", tcp=True), 30) for rate in (1, 2, 4)]
    show("a CUBIC flow beside, 1, 2 and 4 Mbit/s", measured(calls, arguments.controllers), None)


if __name__ == "__main__":
    main()
