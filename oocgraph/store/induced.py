"""The part of a graph that some of its vertices make, as a graph in memory.

In: store numbers of vertices, with the ids of isolated ones. Out: a `oocgraph.store.in_memory.MemoryGraph` of all edges between them. Of an
undirected graph without parallel edges a row is read up to its own vertex only: of a hub, whose number is small, very little.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from oocgraph.arguments import check_whole
from oocgraph.errors import ArgumentError
from oocgraph.store.answering import budget_of, ids_bytes, ids_of
from oocgraph.store.columns import Ids, distinct
from oocgraph.store.edge_columns import EdgeColumns, column_bytes
from oocgraph.store.given import as_collection, is_single
from oocgraph.store.graph_arrays import GraphArrays
from oocgraph.store.in_memory import MemoryGraph, build_bytes, build_in_memory
from oocgraph.store.layout import WEIGHT
from oocgraph.store.neighbours import VERTEX_BYTES
from oocgraph.store.paged_ids import PagedIds
from oocgraph.store.row_places import check_no_view, group_of, row_ends, row_pieces
from oocgraph.store.scattered import RangeReader
from oocgraph.types import Array

PIECE_ENTRIES = 1 << 20
"""Entries of rows that are read and filtered at once."""

PIECE_ENTRY_BYTES = 48
"""What an entry of a piece takes: as read, its row, its place among the chosen vertices."""

EDGE_BYTES = 24
"""What a kept edge takes: both ends and where its columns are."""


def subgraph(store: GraphArrays, ids: Any, *, memory_budget: str | int | None) -> MemoryGraph:
    """Return the subgraph of some vertices; see `oocgraph.store.access.GraphAccess.subgraph`."""
    check_no_view(store)
    given = as_collection(ids)
    charges = {"given vertices": VERTEX_BYTES * len(given), "pieces of rows": _piece_bytes(store)}
    budget = budget_of(store, memory_budget, tables=True, following_bytes=sum(charges.values()))
    budget.reserve_all(charges)
    with RangeReader(store, budget) as reader:
        own_ids, numbers = PagedIds(reader).look_up(given)
        return _induced(reader, distinct(numbers[numbers >= 0]), own_ids)


def ego(store: GraphArrays, vertex: Any, k: int, *, direction: str, memory_budget: str | int | None) -> MemoryGraph:
    """Return the subgraph of all within `k` edges of a vertex; see `oocgraph.store.access.GraphAccess.ego`."""
    if not is_single(vertex):
        raise ArgumentError(f"vertex is {vertex!r}; give one id")
    check_whole("k", k, least=0, of="edges")
    group, charges = group_of(store, direction), {"pieces of rows": _piece_bytes(store), "marks of vertices": store.num_rows}
    budget = budget_of(store, memory_budget, tables=True, following_bytes=sum(charges.values()))
    budget.reserve_all(charges)
    with RangeReader(store, budget) as reader:
        own_id, numbers = PagedIds(reader).look_up([vertex])
        near = within(reader, group, numbers[numbers >= 0], int(k))
        budget.reserve("ids of the vertices", 2 * ids_bytes(store, near.size))
        return _induced(reader, near, ids_of(reader, near) if near.size else own_id)


def within(reader: RangeReader, group: str, start: Array, k: int) -> Array:
    """Return the store numbers of all within `k` edges of those of `start`, ascending, itself included."""
    is_near, frontier = np.zeros(reader.store.num_rows, np.bool_), start
    is_near[start] = True
    for _ in range(k):
        found = []
        for _, near in _pieces(reader, f"{group}/indices", *row_ends(reader.store, group, frontier, reader)):
            found.append(distinct(near[~is_near[near]]))
            is_near[found[-1]] = True
            reader.budget.reserve_up_to("vertices within reach", VERTEX_BYTES * sum(one.size for one in found))
        frontier = distinct(np.concatenate([np.empty(0, np.int64), *found]))
        if not frontier.size:
            break
    num_near = int(np.count_nonzero(is_near))
    reader.budget.reserve_up_to("vertices within reach", VERTEX_BYTES * num_near)
    return np.flatnonzero(is_near)


def _induced(reader: RangeReader, chosen: Array, own_ids: Ids) -> MemoryGraph:
    """Return the edges between chosen vertices (store numbers, ascending) as a graph; `own_ids` are those of all of its vertices."""
    store = reader.store
    a, group = store.attributes, store.attributes.stored_groups[0]
    rows, near, places = _edges_between(reader, group, chosen)
    columns = EdgeColumns(store, tuple(a.columns))
    values = {name: columns.decoded(name, reader.read(f"{group}/{name}", places, places + 1)) for name in columns.names}
    weight = None
    if a.weighted:
        weight = a.weight_name or WEIGHT
        values[weight] = values.pop(WEIGHT)
    source, target = (ids_of(reader, end) for end in ((rows, near) if group == "out" else (near, rows)))
    return build_in_memory(
        source, target, directed=a.directed, columns=values, weight=weight, vertices=own_ids,
        duplicates=a.duplicates, keep_self_loops=True, description=f"a subgraph of {store.url}",
    )  # fmt: skip


def _charges(store: GraphArrays, group: str, num_edges: int) -> dict[str, int]:
    """Return what so many edges take until they are a graph in memory."""
    columns = tuple(store.attributes.columns)
    values = num_edges * sum(store.array(f"{group}/{name}").dtype.itemsize for name in columns)
    texts = 0 if store.attributes.id_kind == "int64" else ids_bytes(store, 2 * num_edges)
    return {
        "edges of the subgraph": 2 * EDGE_BYTES * num_edges,
        "their ids": 2 * ids_bytes(store, num_edges),
        "their columns": values + column_bytes(store, columns),
        "the graph in memory": build_bytes(num_edges, column_bytes=values, text_bytes=texts),
    }


def _edges_between(reader: RangeReader, group: str, chosen: Array) -> tuple[Array, Array, Array]:
    """Return the edges between chosen vertices, an undirected one once: row, neighbour and place of each in the group's arrays.

    Raises
    ------
    BudgetError
        They do not fit. Once that is clear the others are counted only, so that the message names a budget that works.
    """
    store, budget = reader.store, reader.budget
    a = store.attributes
    begin, end = row_ends(store, group, chosen, reader)
    is_simple = a.duplicates != "keep" and not set(a.columns) - ({WEIGHT} if a.weighted else set())
    if not a.directed and is_simple:
        end = np.minimum(end, begin + chosen + 1)  # so many neighbours at most have a number up to its own
    edges, num_edges = [np.empty((3, 0), np.int64)], 0
    for place, found in _pieces(reader, f"{group}/indices", begin, end):
        row = chosen[np.searchsorted(begin, place, side="right") - 1]
        at = np.minimum(np.searchsorted(chosen, found), chosen.size - 1)
        kept = np.flatnonzero((chosen[at] == found) & (a.directed | (found <= row)))
        num_edges += kept.size
        if sum(_charges(store, group, num_edges).values()) <= budget.available_bytes:
            edges.append(np.stack([row[kept], found[kept], place[kept]]))
        else:
            edges.clear()
    budget.reserve_all(_charges(store, group, num_edges))
    rows, near, places = np.concatenate(edges, axis=1)
    return rows, near, places


def _pieces(reader: RangeReader, name: str, begin: Array, end: Array) -> Iterator[tuple[Array, Array]]:
    """Read rows that ascend, up to `PIECE_ENTRIES` entries at once: their places, and the neighbours there, both int64."""
    for _, low, high in row_pieces(begin, end, PIECE_ENTRIES):
        lengths = high - low
        places = np.arange(int(lengths.sum())) + np.repeat(low - (np.cumsum(lengths) - lengths), lengths)
        yield places, reader.read(name, low, high).astype(np.int64)


def _piece_bytes(store: GraphArrays) -> int:
    """Return what a piece of rows takes."""
    return PIECE_ENTRY_BYTES * min(PIECE_ENTRIES, store.attributes.num_stored_edges)
