"""What all results have in common: values of every vertex under the user's ids.

In: values in store order, and the vertex ids of their graph. Out: `VertexResult`, the base class of results, whose arrays are aligned with
every input id, ascending, isolated ones included. Ids are joined as a stream, block by block, when an array is first asked for or the
result is written; the algorithm alone never pays for them.

A result is a subclass of about 60 lines: it declares its columns, computes their values for a block of vertices (`VertexResult.values_of`),
and has a property for each column.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any, ClassVar

import numpy as np

from oocgraph.arguments import check_whole, known_keywords
from oocgraph.errors import ArgumentError, BudgetError, VertexNotFoundError
from oocgraph.lazy import cached_property
from oocgraph.memory import bytes_before, enough_memory, format_bytes
from oocgraph.results import tables
from oocgraph.results.join import named_after
from oocgraph.results.mapping import BLOCK_VERTICES as MAPPED_VERTICES
from oocgraph.results.mapping import ColumnMapping, Walk, one_key
from oocgraph.results.shown import Shown
from oocgraph.results.streaming import FRUGAL, most_rows, room_of, stream_result
from oocgraph.results.writer import ID, write_result
from oocgraph.store.columns import Ids, as_numpy, id_bytes
from oocgraph.store.fingerprint import graph_fingerprint
from oocgraph.store.given import is_single
from oocgraph.store.graph import CSRStore
from oocgraph.store.layout import SORTED_ID
from oocgraph.store.preallocated import PreallocatedArray
from oocgraph.store.vertices import VertexIds
from oocgraph.text import counted
from oocgraph.types import Array

BLOCK_VERTICES = 1 << 19
"""Vertices joined at once, at the most."""

STRING_BYTES = 64
"""Of an id in an array of Python strings, beside its characters and 8: its object, with what the allocator adds, and the reference."""

ARRAY_BLOCK_VERTICES = 1 << 16
"""Vertices joined at once when whole columns are made: a thread's arrays stay in its cache."""


class ResultBlock(SimpleNamespace):
    """Some consecutive vertices of a result, with an attribute for each column of it.

    Attributes
    ----------
    vertices : (n,) int64, or pyarrow.LargeStringArray
        User ids.
    """

    vertices: Ids


@dataclass(frozen=True, kw_only=True, repr=False, eq=False)
class VertexResult(Shown):
    """Values of every vertex under the user's vertex ids: the base class of results.

    A result is a mapping from every id to the value of its first column: ``result[vertex]``, ``dict(result)``, ``result == other``.

    Parameters
    ----------
    ids
        The graph's vertex ids.
    edge_bytes
        Uncompressed bytes of the edges that the algorithm visits.
    load_seconds
        From opening the graph to the first iteration.
    peak_host_bytes
        Peak of the process so far.
    memory_budget
        Bytes the process was allowed.

    Attributes
    ----------
    algorithm : str
        Name of the algorithm, as results on disk have it.
    columns : mapping of str to str
        Columns beside ``vertices``: the dtype of each, or `oocgraph.results.writer.ID` where its values are ids.
    options : tuple of str
        Arguments of the call that `summary` reports where they were given.
    metrics : tuple of str
        Attributes that `summary` returns.
    answers : tuple of str
        Attributes that notebooks show first.

    Notes
    -----
    Arrays are made when first asked for and kept; `blocks`, `write` and all that mappings do make none of them.
    """

    algorithm: ClassVar[str]
    columns: ClassVar[Mapping[str, str]]
    options: ClassVar[tuple[str, ...]] = ()
    metrics: ClassVar[tuple[str, ...]] = ("edge_bytes", "peak_host_bytes", "memory_budget", "load_seconds")

    ids: VertexIds
    edge_bytes: int = 0
    load_seconds: float = 0.0
    peak_host_bytes: int = 0
    memory_budget: int = 0

    @cached_property
    def vertices(self) -> Any:
        """Every input id, ascending, isolated ones included: (num_ids,) int64, or object array of str."""
        return self._joined("vertices")

    def values_of(self, columns: Sequence[str], vertices: Ids, numbers: Array, start: int) -> Mapping[str, Ids]:
        """Return the values of some vertices, by column; each subclass defines this.

        Parameters
        ----------
        columns
            The columns that are needed, none of them ``vertices``; others may be returned too.
        vertices : (n,) int64, or pyarrow.LargeStringArray
            User ids.
        numbers : (n,) int64
            Store numbers; -1 where isolated.
        start
            Position of the first of a block of consecutive vertices among all ids.
        """
        raise NotImplementedError

    def blocks(self, block_size: int | None = None, *, columns: Sequence[str] | None = None) -> Iterator[ResultBlock]:
        """Iterate over the whole result in blocks, without keeping it; of the columns at least those named, by default all.

        Raises
        ------
        ArgumentError
            `block_size` is no whole number of at least 1; there is no column of a name.
        """
        size = self.block_vertices(BLOCK_VERTICES) if block_size is None else check_whole("block_size", block_size, least=1)
        named = self.columns if columns is None else [columns] if isinstance(columns, str) else columns
        names = tuple(name if name in self.columns else self._chosen(name) for name in named if name != "vertices")
        return stream_result(self, names, size, lambda _, vertices, values: ResultBlock(vertices=vertices, **values), room=FRUGAL)

    def of(self, ids: Any, column: str | None = None) -> Any:
        """Return the value of one vertex, or of several, in a column, by default the first.

        Raises
        ------
        VertexNotFoundError
            An id does not occur in the graph's input.
        ArgumentError
            It has no such column.
        """
        return self._look_up(self._chosen(column), ids)

    def column(self, name: str | None = None) -> ColumnMapping:
        """Return a column as a mapping from every id to its value, by default the first; nothing is held.

        Raises
        ------
        ArgumentError
            There is none of this name.
        """
        return ColumnMapping(self, self._chosen(name), None, self.ids.num_ids)

    @property
    def _walk(self) -> Walk:
        found: Walk = self.__dict__.setdefault("_walk", Walk())
        return found

    def _value_of_key(self, vertex: Any) -> Any:
        first = self._chosen(None)
        return self._values_of_key((first,), vertex)[first]

    def __len__(self) -> int:
        return self.ids.num_ids

    def __contains__(self, vertex: Any) -> bool:
        try:
            self.ids.vertices_of(one_key(vertex, self.ids.kind))
        except VertexNotFoundError:
            return False
        return True

    def _parts(self) -> Iterator[tuple[Ids, Ids]]:
        return self.column()._parts()

    def _key_parts(self) -> Iterator[Ids]:
        for vertices, _ in self.ids.stored_blocks(self.block_vertices(MAPPED_VERTICES)):
            yield vertices

    @property
    def _value_dtype(self) -> np.dtype[Any]:
        return self.dtype_of(self._chosen(None))

    def _chosen(self, column: str | None) -> str:
        """Return a column, by default the first.

        Raises
        ------
        ArgumentError
            There is none of this name.
        """
        if column is not None and column not in self.table_columns:
            raise ArgumentError(f"{type(self).__name__} has no column {column!r}; it has {', '.join(self.table_columns)}")
        return column or next(iter(self.table_columns))

    @property
    def table_columns(self) -> Mapping[str, str]:
        """`columns`, of which tables and mappings are made."""
        return self.columns

    def block_vertices(self, most: int) -> int:
        """Return the vertices joined at once when the result is streamed, where memory allows for `most`."""
        return min(most, BLOCK_VERTICES, most_rows(id_bytes(self.ids.store, SORTED_ID)))

    def free_bytes(self) -> int:
        """Return what the memory budget leaves now."""
        return self.memory_budget - bytes_before(self.memory_budget)

    def streamed(self) -> VertexResult:
        """Return the same result as it is streamed best."""
        return self

    def put_by_workers(self, arrays: Mapping[str, PreallocatedArray]) -> bool:
        """Have workers of a cluster write whole columns of numbers, or ``vertices``; return whether that was done."""
        return False

    def array_dtypes(self) -> dict[str, np.dtype[Any]]:
        """Return the dtype of the array of each of `table_columns`, ``vertices`` first."""
        return {name: self.dtype_of(name) for name in ("vertices", *self.table_columns)}

    def has_ids(self, column: str) -> bool:
        """Return whether the values of a column are ids."""
        return self.columns.get(column, ID) == ID

    def check_graph(self, store: CSRStore) -> None:
        """Refuse another graph than the result's; a copy of it will do.

        Raises
        ------
        ArgumentError
            It is another graph.
        StoreError
            The result's graph was replaced.
        """
        used = self.ids.store
        if isinstance(used, CSRStore):
            used.confirm()
        if used.url != store.url and graph_fingerprint(used) != graph_fingerprint(store):
            raise ArgumentError(f"the result is of {used.url}, not of {store.url}; give that graph")

    @known_keywords
    def write(self, path: str | os.PathLike[str], *, overwrite: bool = False) -> None:
        """Write vertices and columns to ``.zarr``, ``.parquet`` or ``.csv``, block by block.

        Parameters
        ----------
        path
            A file, or folder of arrays, here or at a URL such as ``s3://bucket/levels.parquet``; its extension chooses the form.
        overwrite
            Replace a result that exists, once the new one is complete.

        Raises
        ------
        OutputError
            The path exists and `overwrite` is false, its extension is another, or it cannot be written; nothing is left behind.
        """
        write_result(self, path, overwrite=overwrite)

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """Return the stream of `to_arrow`, as ``pyarrow.table(result)`` and DuckDB ask for it."""
        return self.to_arrow().__arrow_c_stream__(requested_schema)

    def to_arrow(self) -> Any:
        """Return a pyarrow.RecordBatchReader: batches with the column vertex and one for each of `columns`, made as they are read.

        Polars takes it, too: ``polars.DataFrame(result.to_arrow())``.
        """
        return tables.to_arrow(self)

    def to_pandas(self) -> Any:
        """Return a pandas.DataFrame with the column vertex and one for each of `columns`.

        Raises
        ------
        MissingDependencyError
            pandas is not installed.
        """
        return tables.to_pandas(self)

    def to_xarray(self) -> Any:
        """Return an xarray.Dataset with the coordinate vertex and a variable for each of `columns`; of a cluster's result, Dask arrays.

        Raises
        ------
        MissingDependencyError
            xarray is not installed.
        """
        return tables.to_xarray(self)

    def summary(self) -> dict[str, Any]:
        """Return the metrics as plain numbers, as the command line prints them."""
        given = {name: getattr(self, name) for name in self.options}
        return {name: getattr(self, name) for name in self.metrics} | {name: one for name, one in given.items() if one}

    def dtype_of(self, column: str) -> np.dtype[Any]:
        """Return the dtype of the array of a column."""
        kind = self.columns.get(column, ID)
        return np.dtype(kind if kind != ID else np.int64 if self.ids.kind == "int64" else object)

    def _look_up(self, column: str, given: Any) -> Any:
        """Return a column's value of one vertex, or an array of those of several.

        Raises
        ------
        VertexNotFoundError
            An id does not occur in the graph's input.
        """
        values = self._values_at((column,), given)[column]
        return values.tolist()[0] if is_single(given) else values

    def _values_at(self, columns: Sequence[str], given: Any) -> dict[str, Array]:
        """Return columns of some vertices, given by user ids.

        Raises
        ------
        VertexNotFoundError
            An id does not occur in the graph's input.
        """
        vertices, numbers = self.ids.look_up(given)
        found = self.values_of(columns, vertices, numbers, 0)
        return {name: as_numpy(found[name]) for name in columns}

    def _values_of_key(self, columns: Sequence[str], vertex: Any) -> dict[str, Any]:
        """Return columns of one vertex, as mappings are indexed.

        Raises
        ------
        VertexNotFoundError
            It does not occur in the graph's input.
        ArgumentTypeError
            It is several.
        """
        found = self._values_at(columns, one_key(vertex, self.ids.kind))
        return {name: values.tolist()[0] for name, values in found.items()}

    def _named(self, stored: Array, vertices: Ids, numbers: Array) -> Ids:
        """Return the ids of the vertices that some are named after: `stored` has store numbers; one that is isolated has its own id."""
        linked = numbers >= 0
        return named_after(self.ids, stored, numbers, linked, vertices, ~linked)

    def _in_memory(self, columns: Sequence[Any]) -> Sequence[Array]:
        """Return whole columns as NumPy arrays."""
        return columns

    def _check_strings(self, names: Sequence[str]) -> None:
        """Refuse whole columns of Python strings that do not fit the memory budget: they are by far the largest arrays of a result.

        Raises
        ------
        BudgetError
            They do not fit.
        """
        needed = len(names) * self.ids.num_ids * (STRING_BYTES + id_bytes(self.ids.store, SORTED_ID)) if names else 0
        if needed and self.memory_budget and needed > self.free_bytes():
            has_all = {"vertices", *self.columns}.issuperset(names)
            streams = "read blocks() or to_arrow(), write() it" if has_all else f"ask {names[0]}_of some vertices at a time"
            raise BudgetError(
                f"{' and '.join(names)} of {counted(self.ids.num_ids, 'vertices')} as Python strings need {format_bytes(needed)} but only "
                f"{format_bytes(max(0, self.free_bytes()))} of the memory budget {format_bytes(self.memory_budget)} are left; {streams}, "
                f"or {enough_memory(self.memory_budget + needed - self.free_bytes())}"
            )

    def _joined(self, column: str) -> Any:
        """Return a whole column, or ``vertices``."""
        return self._columns_joined([column])[0]

    def _columns_joined(self, names: Sequence[str]) -> Sequence[Any]:
        """Return whole columns, of which one may be ``vertices``, joined at once; those that are kept already are not joined again."""
        kept = vars(self)
        self._check_strings([name for name in names if name not in kept and self.dtype_of(name).hasobject])
        made = {name: np.empty(self.ids.num_ids, self.dtype_of(name)) for name in names if name not in kept}

        def put(start: int, vertices: Ids, values: Mapping[str, Ids]) -> None:
            for name, out in made.items():
                out[start : start + len(vertices)] = as_numpy(vertices if name == "vertices" else values[name])

        if made:
            columns, size = tuple(name for name in made if name != "vertices"), self.block_vertices(ARRAY_BLOCK_VERTICES)
            room = room_of(self, size, spent_bytes=sum(out.nbytes for out in made.values()), is_busy=False)
            for _ in stream_result(self, columns, size, put, room=room):
                pass
        return [kept[name] if name in kept else made[name] for name in names]
