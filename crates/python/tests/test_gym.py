"""The environments, and the blocks of docs/python.md: run by tests/gym.rs in a Python with gymnasium."""

import os
import pathlib
import re
import tempfile
import unittest
import warnings

import gymnasium
import numpy as np
from gymnasium.utils.env_checker import check_env

import weir
import weir.gym
from weir.gym import CallEnv, CallVectorEnv, Links, NUMBERS

STEADY = Links(rate_bps=(1e6, 1e6), change_s=None, delay_ms=(30, 30), queue_ms=(200, 200), loss=None)
# The package is tested from a copy of it; this file stays in the checkout.
DOC = pathlib.Path(__file__).resolve().parents[3] / "docs" / "python.md"


def action(bps):
    low, high = weir.gym.RATE_RANGE_BPS
    return np.array([2 * np.log(bps / low) / np.log(high / low) - 1], np.float32)


class Single(unittest.TestCase):
    def test_gymnasiums_own_check_passes(self):
        for arguments in ({}, {"observation": "mmsys2024"}, {"reward": lambda numbers: numbers["loss"]}):
            env = gymnasium.make("weir/Call-v0", duration_s=3, **arguments)
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                # Raw features have no bounds, and there is nothing to render.
                warnings.filterwarnings("ignore", message=".*infinity.*")
                warnings.filterwarnings("ignore", message=".*render.*")
                check_env(env.unwrapped)

    def test_the_agent_sets_the_rate_and_sees_the_queue(self):
        env = CallEnv(links=STEADY, duration_s=6)
        for bps, lost in ((500e3, False), (2e6, True)):
            env.reset(seed=1)
            over, steps = False, []
            while not over:
                observation, reward, terminated, over, info = env.step(action(bps))
                steps.append(info | {"reward": reward})
            self.assertEqual((len(steps), terminated), (100, False))
            late = steps[50:]
            received = np.mean([s["receive_rate_bps"] for s in late])
            queue = np.mean([s["queue_delay_ms"] for s in late if s["queue_delay_ms"] is not None])
            self.assertEqual(tuple(info), NUMBERS)
            self.assertTrue(all(s["capacity_bps"] == 1e6 for s in steps))
            if lost:
                # Beyond the link's rate its queue is full: 200 ms, and half of the packets are lost.
                self.assertTrue(0.85e6 < received < 1.0e6, received)
                self.assertTrue(150 < queue < 210, queue)
                self.assertTrue(0.35 < np.mean([s["loss"] for s in late]) < 0.65)
            else:
                self.assertTrue(0.45e6 < received < 0.6e6, received)
                self.assertTrue(0 <= queue < 20, queue)
            best = np.mean([s["reward"] for s in late])
            if not lost:
                good = best
        self.assertGreater(good, best + 0.3)

    def test_the_order_of_calls_and_faults_are_said(self):
        env = CallEnv(duration_s=1)
        with self.assertRaises(gymnasium.error.ResetNeeded):
            env.step(action(1e6))
        for arguments, words in [
            ({"reward": "mmsys2024"}, "opennetlab"),
            ({"observation": "all"}, "mmsys2024"),
            ({"intervals": 0}, "0 numbers"),
            ({"step_ms": 20, "observation": "mmsys2024"}, "60 ms"),
            ({"step_ms": 1}, "step_ms"),
            ({"duration_s": -1}, "duration_s"),
            ({"links": Links(rate_bps=(2e6, 1e6))}, "rate_bps"),
            ({"controller": "gc"}, "gc"),
            ({"scenario": "responsivness"}, "responsiveness"),
            ({"scenario": "fairness"}, "expected one"),
            ({"scenario": []}, "none was given"),
        ]:
            with self.assertRaises(ValueError) as raised:
                CallEnv(**arguments)
            self.assertIn(words, str(raised.exception))
        with self.assertRaisesRegex(ValueError, "num_envs"):
            CallVectorEnv(0)


class Vector(unittest.TestCase):
    def roll(self, threads, steps=130, count=5):
        envs = CallVectorEnv(count, duration_s=6, threads=threads)
        rng = np.random.default_rng(1)
        all_steps = [envs.reset(seed=4)[0]]
        for _ in range(steps):
            step = envs.step(rng.uniform(-1, 0.5, (count, 1)))
            all_steps += [*step[:4], *step[4].values()]
        return all_steps

    def test_an_action_that_is_no_number_is_refused_by_its_environment(self):
        envs = CallVectorEnv(3, duration_s=6)
        envs.reset(seed=1)
        with self.assertRaisesRegex(ValueError, "action of environment 1 is NaN: expected a number"):
            envs.step(np.array([[0.0], [np.nan], [0.0]]))
        self.assertEqual(len(envs.step(np.zeros((3, 1)))[0]), 3)

    def test_results_are_the_same_at_any_number_of_threads(self):
        one = self.roll(1)
        for threads in (2, 5, 64):
            for a, b in zip(one, self.roll(threads), strict=True):
                np.testing.assert_array_equal(a, b)

    def test_each_environment_is_the_single_one_of_its_seed(self):
        envs = CallVectorEnv(3, "responsiveness", duration_s=3, threads=2)
        first = envs.reset(seed=[11, 12, 13])[0]
        again = envs.reset(seed=[11, 12, 13])[0]
        np.testing.assert_array_equal(first, again)
        a = [envs.step(np.full((3, 1), 0.1))[0] for _ in range(20)]
        self.assertEqual(a[-1].shape, (3, 40))
        # Other seeds, other packets.
        self.assertFalse(np.array_equal(a[-1][0], a[-1][1]) and np.array_equal(a[-1][1], a[-1][2]))
        kept = envs.reset(seed=[1, 2, 3], options={"reset_mask": np.array([True, False, True])})[0]
        np.testing.assert_array_equal(kept[1], a[-1][1])
        self.assertTrue((kept[0] == 0).all())

    def test_the_step_after_the_end_begins_an_episode(self):
        envs = gymnasium.make_vec("weir/Call-v0", num_envs=2, vectorization_mode="vector_entry_point", duration_s=1.2)
        self.assertEqual(envs.metadata["autoreset_mode"], gymnasium.vector.AutoresetMode.NEXT_STEP)
        envs.reset(seed=1)
        ends = [n for n in range(62) if envs.step(envs.action_space.sample())[3].all()]
        self.assertEqual(ends, [19, 40, 61])

    def test_a_controller_can_be_watched(self):
        envs = CallVectorEnv(2, controller="gcc", duration_s=12, links=STEADY, reward=lambda n: n["loss"])
        envs.reset(seed=2)
        targets = [envs.step(np.ones((2, 1)))[4]["target_bps"] for _ in range(200)]
        self.assertTrue((np.array(targets[-1]) > 1.5 * np.array(targets[0])).all(), (targets[0], targets[-1]))


class Document(unittest.TestCase):
    def test_every_block_runs(self):
        blocks = re.findall(r"^```python\n(.*?)^```", DOC.read_text(), re.S | re.M)
        self.assertGreaterEqual(len(blocks), 4)
        names = {}
        # Paths in the document are those of the checkout, and files that it writes stay out of it.
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        for entry in DOC.parents[1].iterdir():
            os.symlink(entry, os.path.join(folder.name, entry.name))
        self.addCleanup(os.chdir, os.getcwd())
        os.chdir(folder.name)
        for n, block in enumerate(blocks):
            exec(compile(block, f"{DOC}, block {n + 1}", "exec"), names)


if __name__ == "__main__":
    unittest.main(verbosity=2)
