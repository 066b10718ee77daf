"""Environments of Gymnasium: a simulated call whose media rate the agent sets. Needs the extra ``gym``.

>>> import gymnasium, weir.gym
>>> env = gymnasium.make("weir/Call-v0")
>>> envs = gymnasium.make_vec("weir/Call-v0", num_envs=64, vectorization_mode="vector_entry_point")
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Union

import numpy as np

try:
    import gymnasium
    from gymnasium import spaces
    from gymnasium.vector import AutoresetMode, VectorEnv
except ImportError as e:
    raise ImportError("weir.gym needs gymnasium 1.1 or later: pip install 'weir-rtc[gym]'") from e

from . import _weir
from ._simulate import ScenarioLike, Scenario, _given

#: A reward by name, or a function of a step's numbers (see :data:`NUMBERS`): of floats in :class:`CallEnv`, of arrays with one
#: value an environment in :class:`CallVectorEnv`.
RewardLike = Union[str, Callable[[Mapping[str, Any]], Any]]

#: The names of a step's further numbers, as ``info`` has them. ``delay_ms`` counts from the delay of the call's first packet,
#: ``queue_delay_ms`` from the least delay of the call. Without a packet reported, delays are ``None``, in arrays NaN.
NUMBERS: tuple[str, ...] = tuple(_weir.Calls.names())

#: Rates at the two ends of an action's scale, in bit/s.
RATE_RANGE_BPS = (50e3, 20e6)

#: One call over one link, for :class:`Links` to draw.
ONE_CALL = """
title = "One call"
duration = "60 s"
compare = ["gcc"]
[links.bottleneck]
rate = "1 Mbps"
delay = "40 ms"
queue = "300 ms"
[rtp.call]
controller = "$controller"
floor = "50 kbps"
ceiling = "20 Mbps"
start_rate = "300 kbps"
"""


@dataclass(frozen=True)
class Links:
    """Ranges from which each episode's bottleneck is drawn; ``None`` leaves what the scenario has."""

    #: Capacity in bit/s, uniform on a logarithmic scale.
    rate_bps: tuple[float, float] | None = (200e3, 4e6)
    #: Time between changes of the capacity in s, uniform; ``None`` for a capacity that stays.
    change_s: tuple[float, float] | None = (4.0, 12.0)
    #: One-way delay in ms, uniform, the same in both directions.
    delay_ms: tuple[float, float] | None = (10.0, 100.0)
    #: Limit of the queue in ms at the current capacity, uniform.
    queue_ms: tuple[float, float] | None = (100.0, 500.0)
    #: Share of packets lost at random, uniform.
    loss: tuple[float, float] | None = (0.0, 0.02)


def rate_bps(action: Any) -> Any:
    """The media rate of an action: 50 kbit/s at -1, 20 Mbit/s at 1, on a logarithmic scale."""
    low, high = RATE_RANGE_BPS
    return low * (high / low) ** ((np.clip(action, -1.0, 1.0) + 1.0) / 2.0)


class _Calls:
    """Environments in the extension module, with their spaces."""

    def __init__(
        self,
        count: int,
        scenario: ScenarioLike | Iterable[ScenarioLike] | None,
        *,
        links: Links | None,
        observation: str,
        intervals: int,
        reward: RewardLike,
        step_ms: float,
        duration_s: float | None,
        controller: str | None,
        threads: int | None,
    ) -> None:
        if scenario is None:
            scenario, links = ONE_CALL, links or Links()
        one = isinstance(scenario, (str, Mapping, Scenario)) or hasattr(scenario, "__fspath__")
        given = [_given(s) for s in ([scenario] if one else scenario)]
        if observation == "recent":
            numbers, bound = 8 * intervals, 1.0
        elif observation == "mmsys2024":
            numbers, bound = 150, np.inf
        else:
            raise ValueError(f"observation: {observation!r} is none: there are 'recent' and 'mmsys2024'")
        settings = {
            "count": count,
            "threads": threads,
            "step_ms": step_ms,
            "duration_s": duration_s,
            "numbers": numbers,
            "reward": "zero" if callable(reward) else reward,
            "links": dataclasses.asdict(links) if links else None,
            "controller": controller,
        }
        self.reward = reward if callable(reward) else None
        self.count, self.numbers = count, numbers
        self.calls = _weir.Calls(given, json.dumps(settings, allow_nan=False))
        self.observation_space = spaces.Box(-bound, bound, (numbers,), np.float32)
        self.action_space = spaces.Box(-1.0, 1.0, (1,), np.float32)

    def reset(self, which: np.ndarray, seeds: list[int]) -> np.ndarray:
        return self._observations(self.calls.reset(which.astype(np.uint8).tobytes(), seeds))

    def step(self, actions: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray, dict[str, np.ndarray]]:
        actions = np.ascontiguousarray(actions, dtype=np.float32)
        if actions.size != self.count:
            raise ValueError(f"actions of shape {actions.shape}: expected one number for each of {self.count}")
        if np.isnan(actions).any():
            which = int(np.flatnonzero(np.isnan(actions.reshape(-1)))[0])
            raise ValueError(f"action of environment {which} is NaN: expected a number, of which -1 to 1 count")
        observations, rewards, over, numbers = self.calls.step(actions.tobytes())
        table = np.frombuffer(numbers).reshape(self.count, len(NUMBERS)).T
        info = dict(zip(NUMBERS, table))
        return self._observations(observations), np.frombuffer(rewards).copy(), np.frombuffer(over, dtype=np.bool_).copy(), info

    def _observations(self, raw: bytes) -> np.ndarray:
        # A copy: arrays over bytes are read-only.
        return np.frombuffer(raw, dtype=np.float32).reshape(self.count, self.numbers).copy()


class CallEnv(gymnasium.Env):
    """One call. docs/python.md explains observation, action and reward.

    ``scenario`` is what :func:`weir.run` takes, or several of them, one of which is drawn for each episode together with its
    variant; exactly one flow of it has the controller ``$controller``. Without one it is a call over one link that ``links``
    draws. An episode is ``truncated`` when the scenario ends or ``duration_s`` is over; none is ``terminated``. With
    ``controller`` that controller sets the rate, actions are ignored, and rewards are its own.
    """

    metadata = {"render_modes": []}

    def __init__(
        self,
        scenario: ScenarioLike | Iterable[ScenarioLike] | None = None,
        *,
        links: Links | None = None,
        observation: str = "recent",
        intervals: int = 5,
        reward: RewardLike = "opennetlab",
        step_ms: float = 60.0,
        duration_s: float | None = None,
        controller: str | None = None,
        render_mode: None = None,
    ) -> None:
        self._calls = _Calls(
            1, scenario, links=links, observation=observation, intervals=intervals, reward=reward,
            step_ms=step_ms, duration_s=duration_s, controller=controller, threads=1,
        )
        self.observation_space = self._calls.observation_space
        self.action_space = self._calls.action_space
        self.render_mode = render_mode
        self._over = True

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[np.ndarray, dict[str, Any]]:
        super().reset(seed=seed)
        drawn = int(self.np_random.integers(2**63))
        self._over = False
        return self._calls.reset(np.ones(1, bool), [drawn])[0], {}

    def step(self, action: Any) -> tuple[np.ndarray, float, bool, bool, dict[str, Any]]:
        if self._over:
            raise gymnasium.error.ResetNeeded("the episode is over, or has not begun: call reset()")
        observations, rewards, over, info = self._calls.step(action)
        self._over = bool(over[0])
        numbers = {name: None if np.isnan(v[0]) else float(v[0]) for name, v in info.items()}
        reward = float(rewards[0]) if self._calls.reward is None else float(self._calls.reward(numbers))
        return observations[0], reward, False, self._over, numbers


class CallVectorEnv(VectorEnv):
    """Many calls, stepped together over ``threads`` (one a core if absent) with the interpreter free for others.

    Results are the same at any number of threads. Arguments are those of :class:`CallEnv`. Where an episode has ended, the next
    step begins another: its reward is 0 and its numbers NaN (Gymnasium's autoreset mode ``NEXT_STEP``).
    """

    metadata = {"render_modes": [], "autoreset_mode": AutoresetMode.NEXT_STEP}

    def __init__(
        self,
        num_envs: int = 1,
        scenario: ScenarioLike | Iterable[ScenarioLike] | None = None,
        *,
        links: Links | None = None,
        observation: str = "recent",
        intervals: int = 5,
        reward: RewardLike = "opennetlab",
        step_ms: float = 60.0,
        duration_s: float | None = None,
        controller: str | None = None,
        threads: int | None = None,
        render_mode: None = None,
    ) -> None:
        self._calls = _Calls(
            num_envs, scenario, links=links, observation=observation, intervals=intervals, reward=reward,
            step_ms=step_ms, duration_s=duration_s, controller=controller, threads=threads,
        )
        self.num_envs = num_envs
        self.render_mode = render_mode
        self.single_observation_space = self._calls.observation_space
        self.single_action_space = self._calls.action_space
        self.observation_space = gymnasium.vector.utils.batch_space(self.single_observation_space, num_envs)
        self.action_space = gymnasium.vector.utils.batch_space(self.single_action_space, num_envs)
        self._begun = False

    def reset(
        self, *, seed: int | list[int | None] | None = None, options: dict[str, Any] | None = None
    ) -> tuple[np.ndarray, dict[str, Any]]:
        """Begins an episode in each environment, or in those of ``options["reset_mask"]``."""
        if isinstance(seed, int) or seed is None:
            super().reset(seed=seed)
            given: list[int | None] = [None] * self.num_envs if seed is None else [seed + n for n in range(self.num_envs)]
        else:
            given = list(seed)
        drawn = self.np_random.integers(2**63, size=self.num_envs)
        seeds = [int(d) if s is None else int(s) % 2**64 for s, d in zip(given, drawn)]
        mask = np.asarray((options or {}).get("reset_mask", np.ones(self.num_envs)), bool)
        observations = self._calls.reset(mask, seeds)
        if self._begun:
            observations[~mask] = self._last[~mask]
        self._begun, self._last = True, observations
        return observations.copy(), {}

    def step(self, actions: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, dict[str, Any]]:
        if not self._begun:
            raise gymnasium.error.ResetNeeded("no episode has begun: call reset()")
        observations, rewards, over, info = self._calls.step(actions)
        if self._calls.reward is not None:
            begun = np.isnan(info["target_bps"])
            rewards = np.where(begun, 0.0, self._calls.reward(info))
        self._last = observations.copy()
        return observations, rewards, np.zeros(self.num_envs, bool), over, info


gymnasium.register("weir/Call-v0", entry_point=CallEnv, vector_entry_point=CallVectorEnv)
