"""The part of a graph that some of its vertices make, as a graph in memory.

In: store numbers of vertices, with the ids of isolated ones. Out: a `oocgraph.store.in_memory.MemoryGraph` of all edges between them. Of an
undirected graph without parallel edges a row is read up to its own vertex only: of a hub, whose number is small, very little.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from oocgraph.errors import ArgumentError
from oocgraph.memory import Budget
from oocgraph.store.columns import Ids, distinct
from oocgraph.store.edge_columns import EdgeColumns, column_bytes
from oocgraph.store.given import as_collection, budget_of, ids_bytes, ids_of, is_single
from oocgraph.store.graph_arrays import GraphArrays
from oocgraph.store.in_memory import MemoryGraph, build_bytes, build_in_memory
from oocgraph.store.layout import WEIGHT
from oocgraph.store.neighbours import VERTEX_BYTES
from oocgraph.store.row_places import group_of, row_ends
from oocgraph.store.scattered import RangeReader
from oocgraph.store.vertices import VertexIds
from oocgraph.types import Array

PIECE_ENTRIES = 1 << 20
"""Entries of rows that are read and filtered at once."""

PIECE_ENTRY_BYTES = 40
"""What one of them takes: as read, its row, its place among the chosen vertices."""

EDGE_BYTES = 24
"""What a kept edge takes: both ends and where its columns are."""


def subgraph(store: GraphArrays, ids: Any, *, memory_budget: str | int | None) -> MemoryGraph:
    """Return the subgraph of some vertices; see `oocgraph.store.access.GraphAccess.subgraph`."""
    budget, given = budget_of(memory_budget), as_collection(ids)
    budget.reserve("given vertices", VERTEX_BYTES * len(given))
    own_ids, numbers = VertexIds(store).look_up(given)
    with RangeReader(store, budget) as reader:
        return _induced(reader, distinct(numbers[numbers >= 0]), own_ids, budget)


def ego(store: GraphArrays, vertex: Any, k: int, *, direction: str, memory_budget: str | int | None) -> MemoryGraph:
    """Return the subgraph of all within `k` edges of a vertex; see `oocgraph.store.access.GraphAccess.ego`."""
    if not is_single(vertex):
        raise ArgumentError(f"vertex is {vertex!r}; give one id")
    if isinstance(k, bool) or not isinstance(k, int | np.integer) or k < 0:
        raise ArgumentError(f"k is {k!r}; it must be a whole number of edges, 0 or more")
    group, budget = group_of(store, direction), budget_of(memory_budget)
    own_id, numbers = VertexIds(store).look_up([vertex])
    with RangeReader(store, budget) as reader:
        near = within(reader, group, numbers[numbers >= 0], int(k), budget)
        budget.reserve("ids", 2 * ids_bytes(store, near.size))
        return _induced(reader, near, ids_of(store, near, budget) if near.size else own_id, budget)


def within(reader: RangeReader, group: str, start: Array, k: int, budget: Budget) -> Array:
    """Return the store numbers of all within `k` edges of those of `start`, ascending, itself included."""
    seen = frontier = start
    _reserve_pieces(budget)
    for _ in range(k):
        if not frontier.size:
            break
        found = np.empty(0, np.int64)
        for _, near in _pieces(reader, f"{group}/indices", *row_ends(reader.store, group, frontier)):
            found = distinct(np.concatenate([found, near]))
            _hold(budget, "vertices within reach", 32 * (seen.size + found.size))
        frontier = np.setdiff1d(found, seen, assume_unique=True)
        seen = distinct(np.concatenate([seen, frontier]))
    return seen


def _induced(reader: RangeReader, chosen: Array, own_ids: Ids, budget: Budget) -> MemoryGraph:
    """Return the edges between chosen vertices (store numbers, ascending) as a graph; `own_ids` are those of all of its vertices."""
    store = reader.store
    a, group = store.attributes, store.attributes.stored_groups[0]
    rows, near, places = _edges_between(reader, group, chosen, budget)
    ends = [rows, near] if group == "out" else [near, rows]
    columns = EdgeColumns(store, tuple(a.columns))
    sizes = [store.array(f"{group}/{name}").dtype.itemsize for name in columns.names]
    texts = 0 if a.id_kind == "int64" else ids_bytes(store, 2 * rows.size)
    budget.reserve_all(
        {
            "ids of the edges": 2 * ids_bytes(store, rows.size),
            "columns of the edges": sum(sizes) * rows.size + column_bytes(store, columns.names),
            "the graph in memory": build_bytes(rows.size, column_bytes=sum(sizes) * rows.size, text_bytes=texts),
        }
    )
    values = {name: columns.decoded(name, reader.read(f"{group}/{name}", places, places + 1)) for name in columns.names}
    source, target = (ids_of(store, end, budget) for end in ends)
    return build_in_memory(
        source, target, directed=a.directed, columns=values, weight=WEIGHT if a.weighted else None, vertices=own_ids,
        duplicates=a.duplicates, keep_self_loops=True, description=f"a subgraph of {store.url}",
    )  # fmt: skip


def _edges_between(reader: RangeReader, group: str, chosen: Array, budget: Budget) -> tuple[Array, Array, Array]:
    """Return the edges between chosen vertices, an undirected one once: row, neighbour and place of each in the group's arrays."""
    store = reader.store
    a = store.attributes
    begin, end = row_ends(store, group, chosen)
    is_simple = a.duplicates != "keep" and not set(a.columns) - ({WEIGHT} if a.weighted else set())
    if not a.directed and is_simple:
        end = np.minimum(end, begin + chosen + 1)  # so many neighbours at most have a number up to its own
    _reserve_pieces(budget)
    rows, near, places = ([np.empty(0, np.int64)] for _ in range(3))
    for place, found in _pieces(reader, f"{group}/indices", begin, end):
        row = chosen[np.searchsorted(begin, place, side="right") - 1]
        at = np.minimum(np.searchsorted(chosen, found), chosen.size - 1)
        kept = np.flatnonzero((chosen[at] == found) & (a.directed | (found <= row)))
        rows.append(row[kept])
        near.append(found[kept])
        places.append(place[kept])
        _hold(budget, "edges of the subgraph", 2 * EDGE_BYTES * sum(one.size for one in rows))
    return np.concatenate(rows), np.concatenate(near), np.concatenate(places)


def _pieces(reader: RangeReader, name: str, begin: Array, end: Array) -> Iterator[tuple[Array, Array]]:
    """Read rows that ascend, up to `PIECE_ENTRIES` entries at once: their places, and the neighbours there, both int64."""
    offset = np.concatenate([np.zeros(1, np.int64), np.cumsum(end - begin)])
    for start in range(0, int(offset[-1]), PIECE_ENTRIES):
        stop = min(int(offset[-1]), start + PIECE_ENTRIES)
        first, last = int(np.searchsorted(offset, start, side="right")) - 1, int(np.searchsorted(offset, stop))
        low = begin[first:last] + np.maximum(start - offset[first:last], 0)
        high = begin[first:last] + np.minimum(stop, offset[first + 1 : last + 1]) - offset[first:last]
        lengths = high - low
        places = np.arange(stop - start) + np.repeat(low - (np.cumsum(lengths) - lengths), lengths)
        yield places, reader.read(name, low, high).astype(np.int64)


def _reserve_pieces(budget: Budget) -> None:
    _hold(budget, "pieces of rows", PIECE_ENTRIES * PIECE_ENTRY_BYTES)


def _hold(budget: Budget, name: str, num_bytes: int) -> None:
    """Charge what has grown to so many bytes."""
    budget.reserve(name, max(0, num_bytes - budget.reservations.get(name, 0)))
