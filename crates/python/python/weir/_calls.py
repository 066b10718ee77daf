"""Many recorded calls: their links, and other controllers over them, into a Parquet dataset. Reading it needs pyarrow."""

from __future__ import annotations

import json
import os
import pathlib
from collections.abc import Iterable, Mapping
from typing import Any

from . import _weir
from ._results import Fields, Tabular
from ._simulate import Progress, _Bar
from ._sweep import _pool, _table


class Calls(Tabular):
    """A dataset of calls: :meth:`to_arrow` has the fits, one row a call, :meth:`controllers` one row a call and controller."""

    def __init__(self, folder: pathlib.Path, done: int, kept: int, summary: Fields) -> None:
        self.folder = folder
        #: Calls made by this call, failed ones among them.
        self.done = done
        #: Calls that the dataset had before.
        self.kept = kept
        #: Sums by controller and by cause over the calls asked for: ``weir show schema calls`` explains them.
        self.summary = summary

    def __repr__(self) -> str:
        return f"Calls({str(self.folder)!r}: {self.done} calls made, {self.kept} kept)"

    def to_arrow(self) -> Any:
        """The fits of the dataset, one row a call, as a pyarrow Table."""
        return _table(self.folder / "fits")

    def controllers(self) -> Any:
        """Controllers over the links of calls, one row a call and controller, as a pyarrow Table."""
        return _table(self.folder / "controllers")

    @property
    def failures(self) -> list[dict[str, Any]]:
        """Calls that failed: ``call``, ``controller`` if it is one that did, and ``error``."""
        table = _table(self.folder / "failures")
        return [] if table is None else table.to_pylist()


def calls(
    paths: str | os.PathLike[str] | Iterable[str | os.PathLike[str]],
    out: str | os.PathLike[str],
    *,
    controllers: str | Iterable[str] = (),
    controller: str | None = None,
    ceiling_bps: float | None = None,
    set: Mapping[str, str] | None = None,
    draws: int = 20,
    each_file: bool = False,
    take_damaged: bool = False,
    executor: Any = None,
    threads: int | None = None,
    retry_failures: bool = False,
    progress: Progress = False,
) -> Calls:
    """Fits the links of recorded calls, runs controllers over them, and keeps the results in the folder ``out``.

    A folder is one call, of all its recordings, and so is each folder below it; a file that is named is a call of its own, with
    ``each_file`` so is each one in folders. ``controllers`` are run over each call's links; ``controller`` is the one that was
    recorded, to see how many calls the fits explain; ``set`` changes the calls, such as ``{"repair": "nack"}``. Rows that the
    folder has are not made again. ``executor`` and ``threads`` are as of :func:`weir.sweep`; workers read the recordings by their
    paths. It is ``weir search calls`` of the command line, which shares the folder.

    Raises ValueError for a path, controller or change that is none, before anything is made.
    """
    folder = pathlib.Path(out)
    one = isinstance(paths, (str, os.PathLike))
    # Workers may have another working folder.
    names = [os.path.abspath(os.fspath(p)) for p in ([paths] if one else paths)]  # type: ignore[list-item, union-attr]
    question = json.dumps({
        "controllers": [controllers] if isinstance(controllers, str) else list(controllers),
        "controller": controller,
        "ceiling_bps": ceiling_bps,
        "draws": draws,
        "set": dict(set or {}),
        "take_damaged": take_damaged,
    })
    with _pool(executor, threads, _make) as pool:
        chunks, kept, plan = _weir.calls_plan(names, question, os.fspath(folder), each_file, retry_failures)
        left, done = sum(len(json.loads(chunk)) for chunk in chunks), 0
        with _Bar(progress) as bar:
            for results in pool.each(chunks):
                done += _weir.calls_keep(os.fspath(folder), results)
                if bar is not None:
                    bar(done / left)
    summary = Fields(json.loads(_weir.calls_summary(os.fspath(folder), question, plan)))
    return Calls(folder, done, kept, summary)


def _make(chunk: str) -> str:
    """Makes the rows of calls, here or in another process."""
    return _weir.calls_make(chunk)
