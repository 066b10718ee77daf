"""Sweeps: many runs into a Parquet dataset that a later sweep goes on with. Needs pyarrow."""

from __future__ import annotations

import concurrent.futures
import copy
import hashlib
import itertools
import json
import os
import pathlib
import urllib.parse
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from . import _weir
from ._simulate import Progress, Scenario, ScenarioLike, _Bar, _given, scenarios

#: The dataset's layout; docs/python.md describes it.
FORMAT = 1
#: Runs in a file at most, so that a broken-off sweep loses few and datasets have few files.
CHUNK = 64
#: Keys of a grid.
GRID = ("scenarios", "controllers", "variants", "seeds", "set")


class Sweep:
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

    def to_pandas(self) -> Any:
        """All rows of the dataset, one a flow, as a pandas DataFrame."""
        return self.to_arrow().to_pandas()

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
    process (one a core without ``threads``), a ``concurrent.futures`` executor, a ``dask.distributed`` Client, or the address
    of a Dask scheduler.

    Raises ValueError for a grid with a fault, before anything is run.
    """
    folder = pathlib.Path(out)
    tasks = {task["key"]: task for task in _tasks(grid)}
    _claim(folder)
    known = _keys(folder / "runs") | (set() if retry_failures else _keys(folder / "failures"))
    left = [task for key, task in tasks.items() if key not in known]
    # Controllers are the dataset's partitions: each chunk has one.
    left.sort(key=lambda task: str(task["controller"]))
    chunks = [
        list(part)
        for _, group in itertools.groupby(left, key=lambda task: str(task["controller"]))
        for part in _parts(list(group))
    ]
    done = 0
    with _Bar(progress) as bar, _Pool(executor, threads) as pool:
        for results in pool.each(chunks):
            _keep(folder, results)
            done += len(results)
            if bar is not None:
                bar(done / len(left))
    return Sweep(folder, done, len(tasks) - len(left))


def _parts(tasks: list[dict[str, Any]]) -> Iterator[list[dict[str, Any]]]:
    for at in range(0, len(tasks), CHUNK):
        yield tasks[at : at + CHUNK]


def _several(value: Any) -> list[Any]:
    one = isinstance(value, (str, Mapping, Scenario)) or hasattr(value, "__fspath__")
    return [value] if one or value is None else list(value)


def _tasks(grid: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Every run of a grid, with the key by which it is found again."""
    unknown = set(grid) - set(GRID)
    if unknown:
        raise ValueError(f"grid: no key is named {sorted(unknown)[0]!r}: there are {', '.join(GRID)}")
    if "scenarios" not in grid:
        raise ValueError("grid: the key 'scenarios' is missing")
    seeds = grid.get("seeds", 1)
    seeds = list(range(1, seeds + 1)) if isinstance(seeds, int) else [int(s) for s in seeds]
    settings = grid.get("set", {})
    settings = {place: _several(values) for place, values in settings.items()}
    for controller in _several(grid.get("controllers")):
        if controller is not None and not isinstance(controller, str):
            raise ValueError(f"grid: controllers: {controller!r}: a run is found again by names, so give the name of one")
    for scenario in _several(grid["scenarios"]):
        variants = _several(grid["variants"]) if "variants" in grid else json.loads(_weir.variants(_given(scenario)))
        text, tables = _content(scenario)
        for values in itertools.product(*settings.values()):
            changed = dict(zip(settings, values))
            given = _given(scenario) if not changed else ["json", *_changed(scenario, tables, changed)]
            for variant, controller, seed in itertools.product(variants or [None], _several(grid.get("controllers")), seeds):
                about = {
                    "weir": _weir.__version__,
                    "scenario": text,
                    "set": changed,
                    "variant": variant,
                    "controller": controller,
                    "seed": seed,
                }
                canonical = json.dumps(about, sort_keys=True, separators=(",", ":"))
                key = hashlib.sha256(canonical.encode()).hexdigest()
                yield about | {"key": key, "given": given, "set": json.dumps(changed, sort_keys=True)}


def _content(scenario: ScenarioLike) -> tuple[Any, Any]:
    """What identifies a scenario, and how to get its tables."""
    if isinstance(scenario, Mapping):
        return scenario, scenario
    if isinstance(scenario, Scenario):
        return scenario.text, scenario.text
    if isinstance(scenario, str) and "\n" in scenario:
        return scenario, scenario
    path = pathlib.Path(scenario)
    if path.is_file():
        text = path.read_text()
        return text, text
    name = os.fspath(scenario)
    shipped = {s.name: s.text for s in scenarios()}
    found = [text for full, text in shipped.items() if full == name or full.rsplit("/", 1)[-1] == name]
    text = found[0] if found else name
    return text, text


def _changed(scenario: ScenarioLike, tables: Any, values: Mapping[str, Any]) -> tuple[str, str]:
    if not isinstance(tables, Mapping):
        try:
            import tomllib
        except ImportError:
            raise ValueError("grid: set: before Python 3.11 give the scenario as a dict") from None
        tables = tomllib.loads(tables)
    tables = copy.deepcopy(dict(tables))
    for place, value in values.items():
        at = tables
        *above, last = place.split(".")
        for part in above:
            if not isinstance(at.get(part), dict):
                raise ValueError(f"grid: set: {place!r}: the scenario has no table {part!r} there")
            at = at[part]
        at[last] = value
    return str(tables.get("title", "scenario")), json.dumps(tables)


def _run(tasks: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Makes runs, here or in another process."""
    results = []
    for task in tasks:
        about = {name: task[name] for name in ("key", "variant", "controller", "seed", "set")}
        try:
            text, _ = _weir.run(
                task["given"], controller=task["controller"], variant=task["variant"], seed=task["seed"], series=False
            )
            results.append(about | {"result": text})
        except (ValueError, RuntimeError) as e:
            results.append(about | {"error": str(e)})
    return results


def _numbers(value: Any, name: str = "") -> Iterator[tuple[str, float]]:
    if isinstance(value, bool):
        return
    if isinstance(value, (int, float)):
        yield name, float(value)
    elif isinstance(value, dict):
        for key, inner in value.items():
            yield from _numbers(inner, f"{name}.{key}" if name else key)


def _keep(folder: pathlib.Path, results: list[dict[str, Any]]) -> None:
    rows, failed = [], []
    for r in results:
        about = {name: r[name] for name in ("key", "variant", "seed", "set")}
        if "error" in r:
            failed.append(about | {"controller": r["controller"], "error": r["error"]})
            continue
        result = json.loads(r["result"])
        for flow in result["flows"]:
            rows.append(about | {"scenario": result["scenario"], "flow": flow["name"], "result": r["result"]} | dict(_numbers(flow)))
    for name, table in (("runs", rows), ("failures", failed)):
        if table:
            controller = urllib.parse.quote(str(results[0]["controller"]), safe="")
            parts = folder / name if name == "failures" else folder / name / f"controller={controller}"
            _write(parts, table)


def _write(folder: pathlib.Path, rows: list[dict[str, Any]]) -> None:
    """One file, whole or not at all, named by the runs in it."""
    import pyarrow as pa
    import pyarrow.parquet

    names = dict.fromkeys(itertools.chain.from_iterable(rows))
    table = pa.table({name: [row.get(name) for row in rows] for name in names})
    digest = hashlib.sha256("".join(sorted(row["key"] for row in rows)).encode()).hexdigest()
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{digest[:32]}.parquet"
    unfinished = path.with_suffix(f".{os.getpid()}.unfinished")
    pyarrow.parquet.write_table(table, unfinished, compression="zstd")
    os.replace(unfinished, path)


def _claim(folder: pathlib.Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    mark = folder / "weir-sweep.json"
    if not mark.exists():
        if any(folder.iterdir()):
            raise ValueError(f"out: {folder} has files and is no sweep: give an empty folder")
        mark.write_text(json.dumps({"format": FORMAT}) + "\n")
        return
    found = json.loads(mark.read_text()).get("format")
    if found != FORMAT:
        raise ValueError(f"out: {folder} has the layout {found}: this version has {FORMAT}")


def _files(folder: pathlib.Path) -> list[pathlib.Path]:
    return sorted(folder.rglob("*.parquet")) if folder.is_dir() else []


def _keys(folder: pathlib.Path) -> set[str]:
    files = _files(folder)
    if not files:
        return set()
    import pyarrow.parquet

    return {k for f in files for k in pyarrow.parquet.read_table(f, columns=["key"], partitioning=None)["key"].to_pylist()}


def _table(folder: pathlib.Path) -> Any:
    files = _files(folder)
    if not files:
        return None
    import pyarrow.dataset as ds
    import pyarrow as pa

    # Scenarios differ in their columns: the schema is that of all files.
    parts = ds.partitioning(pa.schema([("controller", pa.string())]), flavor="hive") if folder.name == "runs" else None
    schemas = [ds.dataset([str(f)], partitioning=parts, partition_base_dir=str(folder)).schema for f in files]
    schema = pa.unify_schemas(schemas, promote_options="permissive")
    return ds.dataset([str(f) for f in files], schema=schema, partitioning=parts, partition_base_dir=str(folder)).to_table()


class _Pool:
    """Where chunks are run."""

    def __init__(self, executor: Any, threads: int | None) -> None:
        self.own: Any = None
        if executor is None:
            executor = self.own = concurrent.futures.ThreadPoolExecutor(threads or os.cpu_count() or 1)
        elif isinstance(executor, str):
            from dask.distributed import Client

            executor = self.own = Client(executor)
        if not hasattr(executor, "submit"):
            raise ValueError(f"executor: {executor!r}: expected None, an executor, a Dask client or its address")
        self.executor = executor

    def __enter__(self) -> _Pool:
        return self

    def each(self, chunks: Iterable[list[dict[str, Any]]]) -> Iterator[list[dict[str, Any]]]:
        """The results of every chunk, as they come. If one fails, the others' are yielded before its error is raised."""
        if isinstance(self.executor, concurrent.futures.Executor):
            futures = [self.executor.submit(_run, chunk) for chunk in chunks]
            completed: Iterable[Any] = concurrent.futures.as_completed(futures)
        else:
            from dask.distributed import as_completed

            # Not pure: an equal chunk of an earlier sweep is not to be looked up in Dask's memory.
            futures = [self.executor.submit(_run, chunk, pure=False) for chunk in chunks]
            completed = as_completed(futures)
        failed: BaseException | None = None
        try:
            for future in completed:
                try:
                    results = future.result()
                except BaseException as e:
                    if failed is None:
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

    def __exit__(self, *_: object) -> None:
        if isinstance(self.own, concurrent.futures.Executor):
            self.own.shutdown()
        elif self.own is not None:
            self.own.close()
