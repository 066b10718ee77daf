"""Results as objects. Fields are those of the command line's JSON; ``weir show schema --markdown`` explains them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np


class Tabular:
    """What can be given to pandas, Polars and pyarrow as it is: any of them takes it by the Arrow PyCapsule interface."""

    def to_arrow(self) -> Any:
        """A pyarrow Table."""
        raise NotImplementedError

    def to_pandas(self) -> Any:
        """A pandas DataFrame."""
        return self.to_arrow().to_pandas()

    def to_polars(self) -> Any:
        """A Polars DataFrame."""
        import polars

        return polars.from_arrow(self.to_arrow())

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        """The Arrow PyCapsule interface, by pyarrow: ``pyarrow.table(x)``, DuckDB and others; for Polars see :meth:`to_polars`."""
        return self.to_arrow().__arrow_c_stream__(requested_schema)


class Fields(Mapping[str, Any]):
    """A JSON object whose fields are attributes too."""

    def __init__(self, data: dict[str, Any]) -> None:
        self._data = data

    def __getitem__(self, name: str) -> Any:
        return _wrapped(self._data[name])

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        try:
            return _wrapped(self._data[name])
        except KeyError:
            raise AttributeError(f"no field {name!r}: there are {', '.join(self._data)}") from None

    def __iter__(self) -> Iterator[str]:
        return iter(self._data)

    def __len__(self) -> int:
        return len(self._data)

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *self._data]

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(self._data)})"

    def to_dict(self) -> dict[str, Any]:
        """The JSON object, as the command line prints it."""
        return self._data


def _wrapped(value: Any) -> Any:
    if isinstance(value, dict):
        return Fields(value)
    if isinstance(value, list):
        return [_wrapped(v) for v in value]
    return value


class Series(Tabular, Mapping[Any, "np.ndarray[Any, np.dtype[np.float64]]"]):
    """Time series of a run: one value a sampling interval, NaN where there is none.

    ``series["time_s"]`` is the end of each interval; ``series["video", "sent_bps"]`` a flow's column, ``series["bottleneck",
    "queue_delay_ms"]`` a link's. Where a flow and a link have one name, the flow's column is meant. An array is made when it is first
    asked for, and shared with what is made of it.
    """

    def __init__(self, columns: Any) -> None:
        self._columns = columns
        self._arrays: dict[Any, np.ndarray[Any, np.dtype[np.float64]]] = {}
        self._kinds: dict[Any, tuple[str, str, str]] = {}
        for kind, name, column in columns.columns():
            self._kinds.setdefault((name, column) if name else column, (kind, name, column))

    @property
    def interval_s(self) -> float:
        """Length of an interval."""
        return self._columns.interval_s

    def __getitem__(self, key: Any) -> np.ndarray[Any, np.dtype[np.float64]]:
        place = self._kinds.get(key)
        if place is None:
            raise KeyError(f"no column {key!r}: there are {', '.join(map(repr, self._kinds))}")
        if key not in self._arrays:
            self._arrays[key] = np.frombuffer(self._columns.column(*place), dtype=np.float64)
        return self._arrays[key]

    def __iter__(self) -> Iterator[Any]:
        return iter(self._kinds)

    def __len__(self) -> int:
        return len(self._kinds)

    def __repr__(self) -> str:
        return f"Series({len(self._columns)} rows, {len(self)} columns)"

    def to_dict(self) -> dict[str, np.ndarray[Any, np.dtype[np.float64]]]:
        """All columns by names such as ``video.sent_bps``."""
        return {".".join(k) if isinstance(k, tuple) else k: self[k] for k in self}

    def to_pandas(self) -> Any:
        """A pandas DataFrame, with ``time_s`` as its index."""
        import pandas

        return pandas.DataFrame(self.to_dict()).set_index("time_s")

    def to_arrow(self) -> Any:
        """A pyarrow Table over the arrays, which are not copied; NaN stays NaN."""
        import pyarrow

        return pyarrow.table(self.to_dict())


class Run(Fields):
    """One run: ``run.flows[0].rates.goodput_bps``, ``run.links``, ``run.fairness`` and so on, and :attr:`series`."""

    def __init__(self, data: dict[str, Any], series: Series | None) -> None:
        super().__init__(data)
        #: The time series; ``None`` if the run was made with ``series=False``.
        self.series = series

    def __repr__(self) -> str:
        variant = f" [{self['condition']}]" if self.get("condition") else ""
        return f"Run({self.scenario}{variant}, {self.controller}, seed {self.seed})"

    def flow(self, name: str) -> Fields:
        """A flow by its name."""
        for flow in self.flows:
            if flow["name"] == name:
                return flow
        raise KeyError(f"no flow {name!r}: there are {', '.join(f['name'] for f in self.flows)}")

    def _rows(self) -> list[tuple[str, str, str]]:
        rows = []
        for flow in self.flows:
            delay = flow.one_way_delay_ms
            goodput = f"{flow.rates.goodput_bps / 1e3:,.0f} kbit/s"
            rows.append((flow["name"], goodput, "" if delay is None else f"{delay.p95:.0f} ms"))
        return rows

    def _repr_html_(self) -> str:
        from html import escape

        rows = "".join("<tr>" + "".join(f"<td>{escape(c)}</td>" for c in row) + "</tr>" for row in self._rows())
        head = "<tr><th>flow</th><th>goodput</th><th>delay, p95</th></tr>"
        return f"<table><caption>{escape(repr(self)[4:-1])}</caption>{head}{rows}</table>"

    def plot(self, axes: Any = None) -> Any:
        """Draws capacity, sending rates and one-way delay over time with matplotlib; gives both axes."""
        import matplotlib.pyplot as plt

        if self.series is None:
            raise ValueError("the run has no series: make it with series=True")
        if axes is None:
            _, axes = plt.subplots(2, 1, sharex=True, figsize=(9, 5), layout="constrained")
        rate, delay = axes
        time = self.series["time_s"]
        links = {name for kind, name, _ in self.series._columns.columns() if kind == "link"}
        bottleneck = self.flows[0].bottleneck
        if bottleneck in links:
            capacity = np.frombuffer(self.series._columns.column("link", bottleneck, "capacity_bps"))
            rate.step(time, capacity / 1e6, color="0.6", label="capacity", where="pre")
        for flow in self.flows:
            name = flow["name"]
            rate.plot(time, self.series[name, "sent_bps"] / 1e6, label=f"{name} ({flow.controller})", lw=1)
            delay.plot(time, self.series[name, "delay_ms"], lw=1)
        rate.set(ylabel="Sent, Mbit/s", title=repr(self)[4:-1])
        rate.set_ylim(bottom=0)
        rate.legend(loc="upper right", fontsize="small")
        delay.set(ylabel="One-way delay, ms", xlabel="Time, s")
        return axes


class Rows(Tabular, Fields):
    """A result that is a table."""

    def rows(self) -> list[dict[str, Any]]:
        """The table's rows."""
        raise NotImplementedError

    def to_arrow(self) -> Any:
        """:meth:`rows` as a pyarrow Table."""
        import pyarrow

        rows = self.rows()
        # Rows differ in their columns.
        names = dict.fromkeys(name for row in rows for name in row)
        return pyarrow.table({name: [row.get(name) for row in rows] for name in names})

    def to_pandas(self) -> Any:
        """:meth:`rows` as a pandas DataFrame."""
        import pandas

        return pandas.DataFrame(self.rows())

    def _table(self) -> tuple[list[str], list[list[str]]]:
        raise NotImplementedError

    def _repr_html_(self) -> str:
        from html import escape

        head, rows = self._table()
        cells = lambda tag, row: "<tr>" + "".join(f"<{tag}>{escape(c)}</{tag}>" for c in row) + "</tr>"
        return f"<table>{cells('th', head)}{''.join(cells('td', row) for row in rows)}</table>"


class Comparison(Rows):
    """Many runs: ``aggregates`` has each scenario, variant and controller with means and 95 % confidence intervals."""

    def __init__(self, data: dict[str, Any], failures: list[str]) -> None:
        super().__init__(data)
        #: Runs that failed, in words.
        self.failures = failures

    def rows(self) -> list[dict[str, Any]]:
        """One row a flow: scenario, variant (empty without one), controller, flow, and the mean of each metric."""
        rows = []
        for group in self.to_dict()["aggregates"]:
            for flow in group["flows"]:
                row = {"scenario": group["scenario"], "variant": group.get("condition", "")}
                row |= {"controller": flow["controller"], "flow": flow["name"]}
                rows.append(row | {name: metric["mean"] for name, metric in flow["metrics"].items()})
        return rows

    def _table(self) -> tuple[list[str], list[list[str]]]:
        def shown(value: float | None, scale: float, unit: str) -> str:
            return "" if value is None else f"{value / scale:,.0f} {unit}"

        rows = [
            [r["scenario"], r["variant"], r["controller"], r["flow"], shown(r.get("goodput_bps"), 1e3, "kbit/s"),
             shown(r.get("one_way_delay_p95_ms"), 1, "ms")]
            for r in self.rows()
        ]
        return ["scenario", "variant", "controller", "flow", "goodput", "delay, p95"], rows


class Reproduction(Rows):
    """A paper's numbers beside those measured: ``cells`` and ``claims``, as ``weir show schema --markdown`` explains them."""

    def __init__(self, data: dict[str, Any], failures: list[str]) -> None:
        super().__init__(data)
        #: Runs that failed, in words.
        self.failures = failures

    def rows(self) -> list[dict[str, Any]]:
        """One row a published number: table, scenario, condition, algorithm, metric, unit, published, measured and so on."""
        return list(self.to_dict()["cells"])

    def _table(self) -> tuple[list[str], list[list[str]]]:
        names = ["table", "scenario", "condition", "algorithm", "metric", "published", "measured"]
        shown = lambda v: "" if v is None else f"{v:.4g}" if isinstance(v, float) else str(v)
        return names, [[shown(row.get(name)) for name in names] for row in self.rows()]
