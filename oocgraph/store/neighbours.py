"""Neighbours of some vertices: their rows, read by the pages that hold them.

In: user ids. Out: the neighbours' ids, as a NumPy array (of one vertex), an Arrow list for each (of several), or a table of edges with
their columns. How much there is of it is known before any edge is read, from the degrees.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from oocgraph.arrow import from_numbers
from oocgraph.errors import ArgumentError
from oocgraph.memory import Budget
from oocgraph.store.answering import FEW_BYTES, budget_of, ids_bytes, ids_of
from oocgraph.store.columns import Ids, as_arrow, as_numpy, distinct, taken
from oocgraph.store.edge_columns import EdgeColumns, check_columns, column_bytes
from oocgraph.store.given import as_collection, is_single
from oocgraph.store.graph_arrays import GraphArrays
from oocgraph.store.paged_ids import PagedIds
from oocgraph.store.row_places import group_of, row_ends
from oocgraph.store.scattered import RangeReader
from oocgraph.types import Array

VERTEX_BYTES = 96
"""What a given vertex takes: its number, sorted and found again, and where its row is."""

ENTRY_BYTES = 24
"""What an entry takes beside its id: as read, as ordered, and its place."""


@dataclass(frozen=True, slots=True)
class Rows:
    """Rows of some vertices, those of a vertex that is given twice once.

    Attributes
    ----------
    group : str
        ``out`` or ``in``.
    begin, end : (num_distinct,) int64
        Where the rows of the distinct vertices with edges are, ascending.
    at : (num_given,) int64
        Which of them each given vertex has; -1: none, it is isolated.
    """

    group: str
    begin: Array
    end: Array
    at: Array

    @classmethod
    def of(cls, reader: RangeReader, group: str, numbers: Array) -> Rows:
        """Find the rows of store numbers, (n,) int64; -1 is an isolated vertex."""
        linked = distinct(numbers[numbers >= 0])
        begin, end = row_ends(reader.store, group, linked, reader)
        return cls(group, begin, end, np.where(numbers >= 0, np.searchsorted(linked, numbers), -1))

    @property
    def lengths(self) -> Array:
        """Entries of each given vertex: (num_given,) int64."""
        return np.append(self.end - self.begin, 0)[self.at]

    def order(self) -> Array | slice:
        """Return which of the entries, as `RangeReader.read` returns them, come one after the other in the order of the given vertices."""
        if np.array_equal(self.at, np.arange(self.begin.size)):
            return slice(None)
        lengths = self.lengths
        first = np.append(np.cumsum(self.end - self.begin) - (self.end - self.begin), 0)[self.at]
        order: Array = np.arange(int(lengths.sum())) + np.repeat(first - (np.cumsum(lengths) - lengths), lengths)
        return order


def neighbors(store: GraphArrays, ids: Any, *, direction: str, columns: Sequence[str], memory_budget: str | int | None) -> Any:
    """Return the neighbours of one vertex or of several; see `oocgraph.store.access.GraphAccess.neighbors`."""
    group, names = group_of(store, direction), check_columns(store, columns)
    for name in names:
        if group != store.attributes.stored_groups[0] and not store.has_array(f"{group}/{name}"):
            raise ArgumentError(f"{store.url} holds the edge column {name!r} of out-lists only; leave direction= out")
    given = as_collection(ids)
    vertex_bytes = VERTEX_BYTES * len(given)
    budget = budget_of(store, memory_budget, tables=bool(columns) or not is_single(ids), following_bytes=vertex_bytes)
    # of few vertices a budget is refused when their edges are counted, so that one message names all that is needed
    (budget.hold if vertex_bytes <= FEW_BYTES else budget.reserve)("given vertices", vertex_bytes)
    with RangeReader(store, budget) as reader:
        own_ids, numbers = PagedIds(reader).look_up(given)
        rows = Rows.of(reader, group, numbers)
        _charge(store, rows, names, budget)
        order = rows.order()
        near = ids_of(reader, reader.read(f"{group}/indices", rows.begin, rows.end)[order])
        values = [reader.read(f"{group}/{name}", rows.begin, rows.end)[order] for name in names]
    if names:
        ends = taken(own_ids, np.repeat(np.arange(rows.at.size), rows.lengths)), near
        return _table(ends if direction == "out" else ends[::-1], EdgeColumns(store, names, columns), values)
    return as_numpy(near) if is_single(ids) else _lists(rows.lengths, near)


def _lists(lengths: Array, near: Ids) -> Any:
    import pyarrow as pa

    return pa.LargeListArray.from_arrays(from_numbers(np.concatenate([np.zeros(1, np.int64), np.cumsum(lengths)])), as_arrow(near))


def _charge(store: GraphArrays, rows: Rows, names: Sequence[str], budget: Budget) -> None:
    """Reserve what the answer takes, before any edge is read."""
    num_entries = int(rows.lengths.sum())
    each = ENTRY_BYTES + sum(3 * store.array(f"{rows.group}/{name}").dtype.itemsize for name in names)
    charges = {"neighbours": num_entries * each, "their ids": ids_bytes(store, num_entries)}
    if names:
        charges |= {"strings of columns": column_bytes(store, names), "ids of the vertices": ids_bytes(store, num_entries)}
    budget.reserve_all(charges)


def _table(ends: tuple[Ids, Ids], columns: EdgeColumns, values: list[Array]) -> Any:
    import pyarrow as pa

    source, target = map(as_arrow, ends)
    arrays = [source, target, *(columns.arrow(name, found) for name, found in zip(columns.names, values, strict=True))]
    schema = pa.schema([pa.field("source", source.type), pa.field("target", target.type), *columns.fields()])
    return pa.Table.from_arrays(arrays, schema=schema)
