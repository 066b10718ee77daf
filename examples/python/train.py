"""Trains a controller by reinforcement learning, and writes it as ONNX: a controller of every scenario and of live calls.

    pip install '.[gym,train]'                      # torch, stable-baselines3, onnx
    python examples/python/train.py                 # some ten minutes; writes policy.onnx
    weir compare --scenario responsiveness --controllers onnx:policy.onnx,gcc

PPO of Stable-Baselines3 over `weir/Call-v0`: calls over links that `weir.gym.Links` draws, the reward of OpenNetLab's example.
`evaluate.py` sets the result beside controllers of Weir.
"""

import argparse
import time

import gymnasium
import numpy as np
import torch
from stable_baselines3 import PPO
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.vec_env import VecEnv

import weir.gym

#: Steps of 60 ms that the policy sees at once.
INTERVALS = 8


class Calls(VecEnv):
    """`weir/Call-v0`, many at once, as Stable-Baselines3 has its environments: an episode's end and the next one's start are one step."""

    def __init__(self, count, **arguments):
        self.envs = gymnasium.make_vec(
            "weir/Call-v0", num_envs=count, vectorization_mode="vector_entry_point", intervals=INTERVALS, **arguments
        )
        super().__init__(count, self.envs.single_observation_space, self.envs.single_action_space)
        self.returns = np.zeros(count)
        #: Mean rewards of the episodes that have ended.
        self.ended = []
        self.steps = np.zeros(count)

    def reset(self):
        seed = None if self._seeds[0] is None else int(self._seeds[0])
        self._reset_seeds()
        return self.envs.reset(seed=seed)[0]

    def step_async(self, actions):
        self.actions = actions

    def step_wait(self):
        observations, rewards, _, over, _ = self.envs.step(self.actions)
        self.returns += rewards
        self.steps += 1
        infos = [{} for _ in range(self.num_envs)]
        if over.any():
            for n in np.flatnonzero(over):
                infos[n] = {"terminal_observation": observations[n].copy(), "TimeLimit.truncated": True}
                self.ended.append(self.returns[n] / self.steps[n])
            self.returns[over] = self.steps[over] = 0
            observations = self.envs.reset(options={"reset_mask": over})[0]
        return observations, rewards, over, infos

    def close(self):
        self.envs.close()

    def get_attr(self, name, indices=None):
        return [getattr(self.envs, name, None) for _ in self._get_indices(indices)]

    def set_attr(self, name, value, indices=None):
        raise NotImplementedError

    def env_method(self, name, *arguments, indices=None, **named):
        raise NotImplementedError

    def env_is_wrapped(self, wrapper, indices=None):
        return [False for _ in self._get_indices(indices)]


class Progress(BaseCallback):
    """Says after each update what the last episodes gave, and ends the training after a time."""

    def __init__(self, calls, minutes):
        super().__init__()
        self.calls, self.minutes, self.begun = calls, minutes, time.monotonic()

    def _on_rollout_end(self):
        passed = time.monotonic() - self.begun
        last = self.calls.ended[-200:]
        shown = f"{np.mean(last):.3f}" if last else "none yet"
        print(f"{passed:5.0f} s, {self.num_timesteps:,} steps, mean reward of the last {len(last)} episodes: {shown}", flush=True)

    def _on_step(self):
        return time.monotonic() - self.begun < 60 * self.minutes


class Actor(torch.nn.Module):
    """What is needed of the policy in a call: the mean action."""

    def __init__(self, policy):
        super().__init__()
        self.body, self.head = policy.mlp_extractor.policy_net, policy.action_net

    def forward(self, observation):
        return self.head(self.body(observation)).clamp(-1.0, 1.0)


def export(policy, file):
    """Writes the policy as one ONNX file."""
    import onnx

    width = policy.observation_space.shape[0]
    torch.onnx.export(
        Actor(policy).cpu().eval(), (torch.zeros(1, width),), file, input_names=["observation"], output_names=["action"],
        external_data=False,
    )
    model = onnx.load(file)
    onnx.helper.set_model_props(model, {"weir.step_ms": "60"})
    # What the exporter says of its source files is of no use in a call.
    for node in model.graph.node:
        del node.metadata_props[:]
    onnx.save(model, file)


def main():
    parser = argparse.ArgumentParser(description="Train a controller with PPO and write it as ONNX.")
    parser.add_argument("--out", default="policy.onnx", help="the file to write (default: %(default)s)")
    parser.add_argument("--steps", type=int, default=12_000_000, help="steps of 60 ms in all (default: %(default)s)")
    parser.add_argument("--minutes", type=float, default=14.0, help="longest time (default: %(default)s)")
    parser.add_argument("--envs", type=int, default=64, help="calls at a time (default: %(default)s)")
    parser.add_argument("--threads", type=int, default=1, help="threads of the simulator and of torch (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--episode", type=float, default=30.0, help="seconds of a call (default: %(default)s)")
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    calls = Calls(arguments.envs, threads=arguments.threads, duration_s=arguments.episode)
    model = PPO(
        "MlpPolicy", calls, seed=arguments.seed, device="cpu", n_steps=256, batch_size=2048, n_epochs=6, gamma=0.98,
        gae_lambda=0.95, learning_rate=lambda left: 7e-4 * max(left, 0.05), ent_coef=0.0, clip_range=0.2,
        policy_kwargs={"net_arch": [64, 64], "log_std_init": -1.6, "activation_fn": torch.nn.Tanh},
    )
    model.learn(arguments.steps, callback=Progress(calls, arguments.minutes))
    export(model.policy, arguments.out)
    print(f"written: {arguments.out}")


if __name__ == "__main__":
    main()
