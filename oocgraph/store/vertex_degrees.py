"""Degrees as users count them: a self-loop of an undirected graph twice, of a directed one the edges in both directions.

In: user ids, or none for all vertices. Out: numbers, in the order of the ids, of all vertices by ascending id. Edges are not read.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from oocgraph.errors import ArgumentError
from oocgraph.memory import Budget
from oocgraph.store.answering import budget_of
from oocgraph.store.columns import distinct
from oocgraph.store.given import as_collection, is_single
from oocgraph.store.graph_arrays import GraphArrays
from oocgraph.store.id_order import bisect
from oocgraph.store.input_order import BLOCK_BYTES, to_input_order
from oocgraph.store.layout import SELF_LOOPS
from oocgraph.store.neighbours import VERTEX_BYTES
from oocgraph.store.row_places import group_of, row_lengths
from oocgraph.store.rows import BLOCK_ROWS, degree_blocks
from oocgraph.store.scattered import RangeReader
from oocgraph.store.vertices import VertexIds
from oocgraph.types import Array

LOOP_BLOCK = 1 << 16
"""Self-loops read at once."""


def degree(store: GraphArrays, ids: Any, *, direction: str, memory_budget: str | int | None) -> Any:
    """Return degrees; see `oocgraph.store.access.GraphAccess.degree`."""
    groups, budget = _groups(store, direction), budget_of(store, memory_budget)
    if ids is None:
        return _all(store, groups, budget)
    given = as_collection(ids)
    budget.reserve("given vertices", VERTEX_BYTES * len(given))
    numbers = VertexIds(store).vertices_of(given)
    linked = distinct(numbers[numbers >= 0])
    found = np.append(degrees_of(store, groups, linked), 0)[np.where(numbers >= 0, np.searchsorted(linked, numbers), -1)]
    return int(found[0]) if is_single(ids) else found


def _groups(store: GraphArrays, direction: str) -> list[str]:
    if direction == "both":
        return [group_of(store, one) for one in (("out", "in") if store.attributes.directed else ("out",))]
    if direction not in ("out", "in"):
        raise ArgumentError(f"direction is {direction!r}; it must be 'both', 'out' or 'in'")
    return [group_of(store, direction)]


def degrees_of(store: GraphArrays, groups: list[str], vertices: Array, reader: RangeReader | None = None) -> Array:
    """Return the degrees of vertices, as users count them.

    Parameters
    ----------
    groups
        Whose rows count.
    vertices : (n,) int64
        Store numbers, ascending, none twice.
    reader
        Of the same store, for many vertices.
    """
    count = np.zeros(vertices.size, np.int64)
    for group in groups:
        count += row_lengths(store, group, vertices, reader)
    return count if store.attributes.directed else count + _loops_of(store, vertices)


def _loops_of(store: GraphArrays, vertices: Array) -> Array:
    """Return the stored self-loops of each of some vertices, ascending: by halves where the array is long and they are few."""
    num_loops, count = store.attributes.num_self_loops, np.zeros(vertices.size, np.int64)
    if num_loops > LOOP_BLOCK * max(1, vertices.size):
        loops = store.array(SELF_LOOPS)

        def below(vertex: int) -> int:
            return bisect(0, num_loops, lambda i: loops.read(i, i + 1)[0] >= vertex)

        return np.array([below(one + 1) - below(one) for one in vertices.tolist()], np.int64)
    for part in _loop_blocks(store):
        count += np.searchsorted(part, vertices, side="right") - np.searchsorted(part, vertices)
    return count


def _loop_blocks(store: GraphArrays) -> Any:
    """Iterate over the vertices of the stored self-loops, ascending, a vertex for each loop."""
    if store.attributes.num_self_loops:
        for _, loops in store.array(SELF_LOOPS).blocks(LOOP_BLOCK):
            yield loops.astype(np.int64)


def _all(store: GraphArrays, groups: list[str], budget: Budget) -> Array:
    budget.reserve_all({"degrees": 8 * store.num_rows, "degrees by id": 8 * store.num_vertices, "blocks": BLOCK_BYTES + 24 * BLOCK_ROWS})
    count = np.zeros(store.num_rows, np.int64)
    for group in groups:
        for first, lengths in degree_blocks(store, group):
            count[first : first + lengths.size] += lengths
    if not store.attributes.directed:
        for loops in _loop_blocks(store):
            np.add.at(count, loops, 1)
    out = np.zeros(store.num_vertices, np.int64)
    to_input_order(store, count, out)
    return out
