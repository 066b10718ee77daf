"""Runs and comparisons of scenarios."""

from __future__ import annotations

import json
import operator
import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Union

from . import _weir
from ._controllers import Controller
from ._results import Comparison, Reproduction, Run, Series

#: A scenario: the name of a built-in one, the path of a TOML file, a dict of its tables, or an entry of scenarios().
ScenarioLike = Union[str, "os.PathLike[str]", Mapping[str, Any], "Scenario"]
#: A controller: a name, ``exec:COMMAND``, or a class of one's own.
ControllerLike = Union[str, "type[Controller]"]
Progress = Union[bool, Callable[[float], object]]


@dataclass(frozen=True)
class Scenario:
    """A scenario that ships with Weir."""

    name: str
    title: str
    doc: str
    variants: tuple[str, ...]
    controllers: tuple[str, ...]
    #: The file's text (TOML).
    text: str


def scenarios() -> list[Scenario]:
    """The scenarios that ship with Weir."""
    return [
        Scenario(s["name"], s["title"], s["doc"], tuple(s["variants"]), tuple(s["controllers"]), s["text"])
        for s in json.loads(_weir.scenarios())
    ]


def controllers() -> list[dict[str, Any]]:
    """The built-in controllers: name, summary, source, whether they adapt, and their parameters."""
    return json.loads(_weir.controllers())


def run(
    scenario: ScenarioLike,
    *,
    controller: ControllerLike | None = None,
    variant: str | None = None,
    seed: int | None = None,
    series: bool = True,
    progress: Progress = False,
) -> Run:
    """Runs a scenario once.

    The numbers are those of ``weir run SCENARIO --json``. Without ``controller``, ``variant`` or ``seed`` the scenario's
    first ones are taken. ``progress`` is ``True`` for a bar (needs tqdm), or a function of the share that is done.

    Raises ValueError with the fault and its place if there is no such scenario, controller or variant, or the scenario is
    wrong; an exception of a controller of one's own ends the run and is raised here. The interpreter is free for other
    threads while it runs.

    ``exec:COMMAND`` is an estimator in another process (docs/estimators.md); a scenario cannot name one, only the caller. If it
    fails, its flow goes on at its floor, and a RuntimeWarning says why.
    """
    name, own = _controller(controller)
    seed = _whole("seed", seed, 64)
    with _Bar(progress) as bar:
        text, columns = _weir.run(
            _given(scenario), controller=name, variant=variant, seed=seed, series=series, own=own, progress=bar
        )
    return Run(json.loads(text), Series(columns) if columns is not None else None)


def compare(
    scenarios: ScenarioLike | Iterable[ScenarioLike],
    *,
    controllers: ControllerLike | Iterable[ControllerLike] | None = None,
    runs: int = 1,
    seed: int | None = None,
    threads: int | None = None,
    progress: Progress = False,
) -> Comparison:
    """Runs every variant of the scenarios under every controller, ``runs`` times each with successive seeds.

    The numbers are those of ``weir compare --json``, at any number of threads; one a core without ``threads``.
    """
    runs, seed, threads = _whole("runs", runs, 32), _whole("seed", seed, 64), _whole("threads", threads, 32)
    one = isinstance(scenarios, (str, os.PathLike, Mapping, Scenario))
    wanted = [scenarios] if one else list(scenarios)
    if isinstance(controllers, (str, type)):
        controllers = [controllers]
    named = None if controllers is None else [_controller(c) for c in controllers]
    own = [entry for _, entries in named or [] for entry in entries]
    with _Bar(progress) as bar:
        text, failures = _weir.compare(
            [_given(s) for s in wanted],
            controllers=None if named is None else [name for name, _ in named],
            runs=runs,
            seed=seed,
            threads=threads,
            own=own,
            progress=bar,
        )
    return Comparison(json.loads(text), failures)


def reproduce(
    paper: str | os.PathLike[str],
    *,
    table: str | None = None,
    runs: int | None = None,
    seed: int | None = None,
    threads: int | None = None,
    progress: Progress = False,
) -> Reproduction:
    """Runs a paper's experiments: its published numbers beside those measured.

    ``paper`` is a name (``weir show papers``) or a folder with a reproduce.toml, ``table`` one of its tables. The numbers are those
    of ``weir judge paper --json``, at any number of threads. Without ``runs`` each scenario is run as often as the paper says, or 5
    times.
    """
    runs, seed, threads = _whole("runs", runs, 32), _whole("seed", seed, 64), _whole("threads", threads, 32)
    with _Bar(progress) as bar:
        text, failures = _weir.reproduce(
            os.fspath(paper), table=table, runs=runs, seed=seed, threads=threads, progress=bar
        )
    return Reproduction(json.loads(text), failures)


def _whole(name: str, value: Any, bits: int) -> Any:
    """A number of so many bits, or None, or an error with the argument's name."""
    if value is None:
        return None
    try:
        number = operator.index(value)
    except TypeError:
        raise TypeError(f"{name}: expected a whole number, found {value!r}") from None
    if not 0 <= number < 1 << bits:
        raise ValueError(f"{name}: {number}: expected a whole number from 0 to {(1 << bits) - 1}")
    return number


def _given(scenario: ScenarioLike) -> list[str]:
    if isinstance(scenario, Scenario):
        return ["name", scenario.name]
    if isinstance(scenario, Mapping):
        name = str(scenario.get("title", "scenario"))
        return ["json", name, json.dumps(scenario)]
    if isinstance(scenario, str) and "\n" in scenario:
        return ["toml", "scenario", scenario]
    return ["name", os.fspath(scenario)]


def _controller(controller: ControllerLike | None) -> tuple[str | None, list[tuple[str, Any]]]:
    if controller is None or isinstance(controller, str):
        return controller, []
    if isinstance(controller, type) and issubclass(controller, Controller):
        name = controller.__name__
        return name, [(name, controller._make)]
    raise TypeError(f"controller: expected a name or a subclass of weir.Controller, found {controller!r}")


class _Bar:
    """A bar in the terminal or notebook, or the caller's own function."""

    def __init__(self, progress: Progress) -> None:
        self.progress = progress
        self.bar: Any = None

    def __enter__(self) -> Callable[[float], object] | None:
        if self.progress is True:
            from tqdm.auto import tqdm  # A bar was asked for.

            self.bar = tqdm(total=100, unit="%")
            return self.show
        return self.progress or None

    def show(self, share: float) -> None:
        self.bar.update(round(100 * share) - self.bar.n)

    def __exit__(self, *_: object) -> None:
        if self.bar is not None:
            self.bar.close()
