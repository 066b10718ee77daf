"""Steps a second of Weir's environments, and of the gym of PCC-RL if its checkout is given, in one run on one thread.

    python benches/compare/gyms.py [--pcc-rl FOLDER] [--seconds 5]

PCC-RL (github.com/PCCproject/PCC-RL, Apache-2.0; Jay et al., ICML 2019) is the nearest gym that runs without a build: a simulator of
one bottleneck in Python. OpenNetLab's needs AlphaRTC and ns-3. The two differ in what a step is: here 60 ms of a call, at PCC-RL a
monitor interval of the round-trip time; so simulated seconds a second are given too.
"""

import argparse
import contextlib
import io
import sys
import time

import gymnasium
import numpy as np

import weir.gym


def weir_steps(count, seconds):
    envs = gymnasium.make_vec("weir/Call-v0", num_envs=count, vectorization_mode="vector_entry_point", threads=1)
    envs.reset(seed=1)
    action, steps, begun = np.zeros((count, 1), np.float32), 0, time.perf_counter()
    while time.perf_counter() - begun < seconds:
        envs.step(action)
        steps += count
    passed = time.perf_counter() - begun
    return steps / passed, 0.06 * steps / passed


def pcc_steps(folder, seconds):
    # It was written for the package before Gymnasium.
    gymnasium.utils.seeding = __import__("gymnasium.utils.seeding", fromlist=["seeding"])
    sys.modules |= {"gym": gymnasium, "gym.utils": gymnasium.utils, "gym.envs": gymnasium.envs}
    sys.modules["gym.envs.registration"] = __import__("gymnasium.envs.registration", fromlist=["register"])
    sys.path.insert(0, f"{folder}/src/gym")
    sys.argv = sys.argv[:1]
    with contextlib.redirect_stdout(io.StringIO()):
        import network_sim

        env = network_sim.SimulatedNetworkEnv()
        env.reset()
        steps, simulated, begun = 0, 0.0, time.perf_counter()
        while time.perf_counter() - begun < seconds:
            simulated += env.run_dur
            over = env.step([0.0])[2]
            steps += 1
            if over:
                env.reset()
        passed = time.perf_counter() - begun
    return steps / passed, simulated / passed


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--pcc-rl", metavar="FOLDER", help="a checkout of PCC-RL")
    parser.add_argument("--seconds", type=float, default=5.0)
    arguments = parser.parse_args()
    print("| gym | steps a second | simulated seconds a second |\n|---|---|---|")
    for count in (1, 64):
        steps, simulated = weir_steps(count, arguments.seconds)
        print(f"| weir/Call-v0, {count} at once | {steps:,.0f} | {simulated:,.0f} |")
    if arguments.pcc_rl:
        steps, simulated = pcc_steps(arguments.pcc_rl, arguments.seconds)
        print(f"| PCC-RL | {steps:,.0f} | {simulated:,.0f} |")


if __name__ == "__main__":
    main()
