"""Sweeps: many runs into a Parquet dataset that a later sweep goes on with. Reading it needs pyarrow."""

from __future__ import annotations

import concurrent.futures
import importlib
import itertools
import json
import os
import pathlib
import socket
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from . import _weir
from ._results import Tabular
from ._simulate import Progress, Scenario, _Bar


class Sweep(Tabular):
    """A dataset of runs: :meth:`to_arrow`, :meth:`to_pandas`, and what failed."""

    def __init__(self, folder: pathlib.Path, done: int, kept: int) -> None:
        self.folder = folder
        #: Runs made by this call, failed ones among them.
        self.done = done
        #: Runs of the grid that the dataset had before.
        self.kept = kept

    def __repr__(self) -> str:
        return f"Sweep({str(self.folder)!r}: {self.done} runs made, {self.kept} kept)"

    def to_arrow(self) -> Any:
        """All rows of the dataset, one a flow, as a pyarrow Table."""
        return _table(self.folder / "runs")

    @property
    def failures(self) -> list[dict[str, Any]]:
        """Runs that failed: what they were, and ``error``."""
        table = _table(self.folder / "failures")
        return [] if table is None else table.to_pylist()


def sweep(
    grid: Mapping[str, Any],
    out: str | os.PathLike[str],
    *,
    executor: Any = None,
    threads: int | None = None,
    retry_failures: bool = False,
    progress: Progress = False,
) -> Sweep:
    """Runs every combination of a grid and keeps the results in the folder ``out``.

    The grid's keys: ``scenarios`` (one, or a list, as :func:`weir.run` takes them), ``controllers`` (names; the scenario's
    first if absent), ``variants`` (all of each scenario if absent), ``seeds`` (a list, or the number n for 1 to n; 1 if
    absent) and ``set`` (a dict of places in the scenario, such as ``"links.bottleneck.delay"``, each with a list of values).

    A run that the folder has is not made again, in whatever grid it was; so a broken-off sweep goes on where it was. Failed
    runs are kept beside the results and not repeated, unless ``retry_failures``. ``executor`` is ``None`` for threads of this
    process (one a core without ``threads``), a ``concurrent.futures`` executor, a ``dask.distributed`` Client, the address
    of a Dask scheduler, or Ray: ``"ray"`` or the module ``ray`` for the cluster that the program is connected to, else for what
    ``ray.init()`` finds or starts (of ``threads`` processors if given), and ``"auto"`` or ``"ray://HOST:PORT"`` for a cluster
    that runs. Runs lost with a worker of Dask, Ray or a ``ProcessPoolExecutor`` are made again by another.

    Raises ValueError for a grid with a fault, and ConnectionError if no Dask scheduler answers, before anything is run.
    """
    folder = pathlib.Path(out)
    with _pool(executor, threads) as pool:
        chunks, kept = _weir.sweep_plan(_grid(grid), os.fspath(folder), retry_failures)
        left, done = sum(len(json.loads(chunk)) for chunk in chunks), 0
        with _Bar(progress) as bar:
            for results in pool.each(chunks):
                done += _weir.sweep_keep(os.fspath(folder), results)
                if bar is not None:
                    bar(done / left)
    return Sweep(folder, done, kept)


def _grid(grid: Mapping[str, Any]) -> str:
    """A grid as JSON, with the names of what is named otherwise."""
    grid = dict(grid)
    if "scenarios" in grid:
        one = isinstance(grid["scenarios"], (str, Mapping, Scenario)) or hasattr(grid["scenarios"], "__fspath__")
        scenarios = [grid["scenarios"]] if one else list(grid["scenarios"])
        grid["scenarios"] = [
            s.name if isinstance(s, Scenario) else s if isinstance(s, (str, Mapping)) else os.fspath(s) for s in scenarios
        ]
    for name in ("controllers", "variants"):
        if name in grid and grid[name] is None:
            del grid[name]
        elif name in grid and not isinstance(grid[name], str):
            grid[name] = list(grid[name])
    for controller in grid.get("controllers", []):
        if not isinstance(controller, str):
            raise ValueError(f"grid: controllers: {controller!r}: a run is found again by names, so give the name of one")
    if "seeds" in grid and not isinstance(grid["seeds"], int):
        grid["seeds"] = [int(s) for s in grid["seeds"]]
    places = {}
    for place, values in grid.get("set", {}).items():
        places[place] = values if isinstance(values, (str, int, float, bool)) else list(values)
    if places:
        grid["set"] = places
    return json.dumps(grid, allow_nan=False, default=_plain)


def _plain(value: Any) -> Any:
    """A NumPy number as one of Python's."""
    if hasattr(value, "item"):
        return value.item()
    raise ValueError(f"grid: {value!r}: expected texts, numbers, lists and tables")


def _make(chunk: str) -> str:
    """Makes runs, here or in another process."""
    return _weir.sweep_make(chunk)


def _files(folder: pathlib.Path) -> list[pathlib.Path]:
    return sorted(folder.rglob("*.parquet")) if folder.is_dir() else []


def _table(folder: pathlib.Path) -> Any:
    files = _files(folder)
    if not files:
        return None
    import pyarrow.dataset as ds
    import pyarrow as pa

    # Scenarios, and causes of calls, differ in their columns: the schema is that of all files.
    parts = ds.partitioning(pa.schema([("controller", pa.string())]), flavor="hive") if folder.name in ("runs", "controllers") else None
    schemas = [ds.dataset([str(f)], partitioning=parts, partition_base_dir=str(folder)).schema for f in files]
    schema = pa.unify_schemas(schemas, promote_options="permissive")
    return ds.dataset([str(f) for f in files], schema=schema, partitioning=parts, partition_base_dir=str(folder)).to_table()


def _pool(executor: Any, threads: int | None, make: Callable[[str], str] = _make) -> _Pool | _RayPool:
    """Where ``make`` is called with chunks. A function of a module: workers find it by its name."""
    address = getattr(executor, "__name__", executor)
    if isinstance(address, str) and (address in ("ray", "auto") or address.startswith("ray://")):
        return _RayPool(address, threads, make)
    return _Pool(executor, threads, make)


def _reach(address: str) -> None:
    """Raises ConnectionError if nobody listens at a Dask scheduler's address: Dask itself tries for 30 s."""
    scheme, _, rest = address.rpartition("://")
    host, _, port = rest.rstrip("/").rpartition(":")
    if scheme not in ("", "tcp", "tls", "ws", "wss") or not (host and port.isdecimal()):
        return
    try:
        socket.create_connection((host.strip("[]"), int(port)), timeout=5.0).close()
    except (OSError, OverflowError) as e:
        raise ConnectionError(f"executor: no Dask scheduler answers at {address!r}: {e}") from e


class _Pool:
    """Where chunks are run."""

    #: Pools in a row that replace a broken one and get nothing done, before the sweep ends.
    RETRIES = 3

    def __init__(self, executor: Any, threads: int | None, make: Callable[[str], str]) -> None:
        self.own: Any = None
        self.make = make
        if executor is None:
            executor = self.own = concurrent.futures.ThreadPoolExecutor(threads or os.cpu_count() or 1)
        elif isinstance(executor, str):
            _reach(executor)
            from dask.distributed import Client

            executor = self.own = Client(executor)
        if not hasattr(executor, "submit"):
            raise ValueError(f"executor: {executor!r}: expected None, an executor, a Dask client or its address, or Ray")
        self.executor = executor

    def __enter__(self) -> _Pool:
        return self

    def each(self, chunks: Iterable[str]) -> Iterator[str]:
        """The results of every chunk, as they come. If one fails, the others' are yielded before its error is raised."""
        left, idle = list(chunks), 0
        while left:
            lost: list[str] = []
            idle += 1
            for results in self._round(left, lost if idle <= self.RETRIES else None):
                idle = 0
                yield results
            left = lost
            if left:
                self._replace()

    def _round(self, chunks: list[str], lost: list[str] | None) -> Iterator[str]:
        """The results of every chunk; those of a broken pool of processes go into ``lost``, where that is given."""
        futures: dict[Any, str] = {}
        replaced = isinstance(self.executor, concurrent.futures.ProcessPoolExecutor)
        if isinstance(self.executor, concurrent.futures.Executor):
            for chunk in chunks:
                try:
                    futures[self.executor.submit(self.make, chunk)] = chunk
                except concurrent.futures.BrokenExecutor:
                    if lost is None or not replaced:
                        raise
                    lost.append(chunk)
            completed: Iterable[Any] = concurrent.futures.as_completed(futures)
        else:
            from dask.distributed import as_completed

            # Not pure: an equal chunk of an earlier sweep is not to be looked up in Dask's memory.
            futures = {self.executor.submit(self.make, chunk, pure=False): chunk for chunk in chunks}
            completed = as_completed(list(futures))
        failed: BaseException | None = None
        try:
            for future in completed:
                try:
                    results = future.result()
                except BaseException as e:
                    if replaced and lost is not None and isinstance(e, concurrent.futures.BrokenExecutor):
                        lost.append(futures[future])
                    elif failed is None:
                        failed = e
                        for other in futures:
                            other.cancel()
                    continue
                yield results
        finally:
            for future in futures:
                future.cancel()
        if failed is not None:
            raise failed

    def _replace(self) -> None:
        """Another pool of processes: one that lost a worker takes nothing more. The caller's stays the caller's."""
        broken = self.executor
        if self.own is not None:
            self.own.shutdown()
        self.executor = self.own = concurrent.futures.ProcessPoolExecutor(
            broken._max_workers,
            mp_context=broken._mp_context,
            initializer=broken._initializer,
            initargs=broken._initargs,
        )

    def __exit__(self, *_: object) -> None:
        if isinstance(self.own, concurrent.futures.Executor):
            self.own.shutdown()
        elif self.own is not None:
            self.own.close()


class _RayPool:
    """A cluster of Ray, where each chunk is a task."""

    #: Tasks submitted at a time: many times more than processors, and few enough to wait for one of them quickly.
    SUBMITTED = 1000
    #: How often a chunk is given to another worker, when its worker is lost.
    RETRIES = 3

    def __init__(self, address: str, threads: int | None, make: Callable[[str], str]) -> None:
        self.make = make
        # By its name, since type checkers of programs that import weir would read all of Ray.
        self.ray: Any = importlib.import_module("ray")
        # A connection that the program made stays open.
        self.own = address != "ray" or not self.ray.is_initialized()
        if self.own:
            options: dict[str, Any] = {} if address == "ray" else {"address": address}
            if threads is not None and address == "ray" and not os.environ.get("RAY_ADDRESS"):
                options = {"address": "local", "num_cpus": threads}
            self.ray.init(include_dashboard=False, log_to_driver=False, **options)

    def __enter__(self) -> _RayPool:
        return self

    def each(self, chunks: Iterable[str]) -> Iterator[str]:
        """The results of every chunk, as they come. If one fails, the others' are yielded before its error is raised."""
        ray = self.ray
        make = ray.remote(num_cpus=1, max_retries=self.RETRIES)(self.make)
        left = iter(chunks)
        running: list[Any] = []
        failed: Exception | None = None
        try:
            while True:
                if failed is None:
                    running += [make.remote(chunk) for chunk in itertools.islice(left, self.SUBMITTED - len(running))]
                if not running:
                    break
                (ready,), running = ray.wait(running)
                try:
                    results = ray.get(ready)
                except Exception as e:
                    if failed is None:
                        failed = e
                        self._cancel(running)
                    continue
                yield results
        finally:
            self._cancel(running)
        if failed is not None:
            raise failed

    def _cancel(self, tasks: Iterable[Any]) -> None:
        for task in tasks:
            self.ray.cancel(task)

    def __exit__(self, *_: object) -> None:
        if self.own:
            self.ray.shutdown()
