"""The extension module: what the package around it calls. JSON texts are those of the command line."""

from collections.abc import Callable
from typing import Any

__version__: str

#: ("name", NAME), ("toml", NAME, TEXT) or ("json", NAME, TEXT).
_Given = list[str]
#: Names of the caller's controllers, and what makes them.
_Own = list[tuple[str, Callable[[float, float, float, int], Any]]]

class Series:
    @property
    def interval_s(self) -> float: ...
    def __len__(self) -> int: ...
    def columns(self) -> list[tuple[str, str, str]]: ...
    def column(self, kind: str, name: str, column: str) -> bytes | None: ...

class Calls:
    def __new__(cls, scenarios: list[_Given], settings: str) -> Calls: ...
    def reset(self, which: bytes, seeds: list[int]) -> bytes: ...
    def step(self, actions: bytes) -> tuple[bytes, bytes, bytes, bytes]: ...
    @staticmethod
    def names() -> list[str]: ...

def run(
    scenario: _Given,
    *,
    controller: str | None = None,
    variant: str | None = None,
    seed: int | None = None,
    series: bool = True,
    own: _Own = ...,
    progress: Callable[[float], object] | None = None,
) -> tuple[str, Series | None]: ...
def compare(
    scenarios: list[_Given],
    *,
    controllers: list[str] | None = None,
    runs: int = 1,
    seed: int | None = None,
    threads: int | None = None,
    own: _Own = ...,
    progress: Callable[[float], object] | None = None,
) -> tuple[str, list[str]]: ...
def reproduce(
    paper: str,
    *,
    table: str | None = None,
    runs: int | None = None,
    seed: int | None = None,
    threads: int | None = None,
    progress: Callable[[float], object] | None = None,
) -> tuple[str, list[str]]: ...
def call(
    controller: str,
    settings: dict[str, float | bool],
    *,
    own: _Own = ...,
    progress: Callable[[float], object] | None = None,
) -> str: ...
def controllers() -> str: ...
def scenarios() -> str: ...
def sweep_plan(grid: str, folder: str, repeat_failures: bool) -> tuple[list[str], int]: ...
def sweep_make(chunk: str) -> str: ...
def sweep_keep(folder: str, results: str) -> int: ...
