"""Recorded calls of other programs."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Union

import numpy as np

from . import _weir
from ._results import Fields, Series, Tabular

PathLike = Union[str, "os.PathLike[str]"]


class Table(Tabular, Mapping[str, "np.ndarray[Any, np.dtype[Any]]"]):
    """Rows of a recording: a column is an array of numbers (NaN where the format does not tell), or of texts.

    ``at_ms`` is each row's time: Unix time in ms where the recording knows it.
    """

    def __init__(self, columns: list[tuple[str, bytes, list[str] | None]]) -> None:
        self._columns = {name: (data, texts) for name, data, texts in columns}
        self._arrays: dict[str, np.ndarray[Any, np.dtype[Any]]] = {}

    def __getitem__(self, name: str) -> np.ndarray[Any, np.dtype[Any]]:
        if name not in self._columns:
            raise KeyError(f"no column {name!r}: there are {', '.join(self._columns)}")
        if name not in self._arrays:
            data, texts = self._columns[name]
            if texts is None:
                self._arrays[name] = np.frombuffer(data, dtype=np.float64)
            else:
                self._arrays[name] = np.array(texts, dtype=object)[np.frombuffer(data, dtype=np.uint32)]
        return self._arrays[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._columns)

    def __len__(self) -> int:
        return len(self._columns)

    @property
    def rows(self) -> int:
        """Number of rows."""
        data, texts = next(iter(self._columns.values()))
        return len(data) // (8 if texts is None else 4)

    def __repr__(self) -> str:
        return f"Table({self.rows} rows, {', '.join(self)})"

    def to_arrow(self) -> Any:
        """A pyarrow Table: numbers are not copied, texts are dictionaries."""
        import pyarrow

        def column(name: str) -> Any:
            data, texts = self._columns[name]
            if texts is None:
                return pyarrow.array(self[name])
            places = np.frombuffer(data, dtype=np.uint32).astype(np.int32)
            return pyarrow.DictionaryArray.from_arrays(pyarrow.array(places), pyarrow.array(texts, pyarrow.string()))

        return pyarrow.table({name: column(name) for name in self})


class Recording(Mapping[str, Table]):
    """The tables of one file: ``recording["packets"]``, ``recording["estimates"]`` and so on. Absent ones have no rows."""

    def __init__(self, rows: Any, file: int, path: str) -> None:
        self._rows, self._file = rows, file
        self._names: list[str] = rows.tables()
        #: The path as given.
        self.path = path

    def __getitem__(self, name: str) -> Table:
        columns = self._rows.table(self._file, name)
        if columns is None:
            raise KeyError(f"no table {name!r}: there are {', '.join(self._names)}")
        return Table(columns)

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)

    def __repr__(self) -> str:
        return f"Recording({self.path!r})"


class Opened(Fields):
    """A recorded call: ``sources``, ``level``, ``episodes`` with their ``causes``, ``findings`` and ``replays`` as
    ``weir open --json`` has them, and :attr:`series` and :attr:`recordings`."""

    def __init__(self, data: dict[str, Any], rows: Any) -> None:
        super().__init__(data)
        #: Numbers at equal distances of time: ``series["sent_kbps"]``, ``series["delay_ms"]`` and so on.
        self.series = Series(rows)
        #: Begin of the series: Unix time in ms where the files know it; ``None`` without any time.
        self.start_ms: int | None = rows.start_ms
        #: The files' tables, in the order given.
        self.recordings = [Recording(rows, i, source["path"]) for i, source in enumerate(data["sources"])]

    def __repr__(self) -> str:
        return f"Opened({len(self.recordings)} files, {len(self['episodes'])} episodes, evidence: {self['level']})"


def open(files: PathLike | Iterable[PathLike], *, controllers: str | Iterable[str] = ()) -> Opened:
    """Opens a recorded call: one file, or several of the same call.

    It is ``weir open FILE... --lint --json``; ``docs/open.md`` lists formats, causes and rules. ``controllers`` are names: what each
    would have asked for on the recorded feedback is in ``replays``. A damaged file gives what is before the damage, and its source
    has ``stopped``; one whose unreadable lines were passed over has ``damaged``.

    Raises OSError if a file cannot be opened, and ValueError if none of the formats is recognised, or a controller is unknown or
    the recording does not have what it needs.
    """
    paths = [files] if isinstance(files, (str, os.PathLike)) else list(files)
    names = [controllers] if isinstance(controllers, str) else list(controllers)
    text, rows = _weir.open([os.fspath(path) for path in paths], controllers=names)
    return Opened(json.loads(text), rows)
