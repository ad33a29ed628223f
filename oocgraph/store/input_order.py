"""Values of vertices between the user's order and the store's: every input id ascending, isolated ones included; or by store number.

In: a store and an array in one order. Out: the other, filled block by block as the ids are streamed, so that nothing of O(vertices) is
held beside the two.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from oocgraph.store.graph import CSRStore
from oocgraph.store.vertices import VertexIds
from oocgraph.types import Array

BLOCK_VERTICES = 1 << 15
"""Ids streamed at once."""

BLOCK_BYTES = 256 * BLOCK_VERTICES
"""What a stream holds at most: ids (of strings about 32 bytes), read twice as far ahead, store numbers and positions."""


def to_store_order(store: CSRStore, values: Array, out: Array) -> None:
    """Set ``out[v]`` to the value of store number v.

    Parameters
    ----------
    values : (num_input_vertices,)
        By input id, ascending.
    out : (num_vertices,)
        Those of isolated vertices have no place in it.
    """
    start = 0
    for _, vertices in VertexIds(store).stored_blocks(BLOCK_VERTICES):
        here = np.flatnonzero(vertices >= 0)
        out[vertices[here]] = values[start + here]
        start += vertices.size


def to_input_order(store: CSRStore, values: Array, out: Array) -> None:
    """Set the values of the vertices that have edges, by input id; those of isolated vertices are left as they are.

    Parameters
    ----------
    values : (num_vertices,)
        By store number.
    out : (num_input_vertices,)
        By input id, ascending.
    """
    start = 0
    for _, vertices in VertexIds(store).stored_blocks(BLOCK_VERTICES):
        here = np.flatnonzero(vertices >= 0)
        out[start + here] = values[vertices[here]]
        start += vertices.size


def positions_of(store: CSRStore, ids: Sequence[Any]) -> Array:
    """Position of each id among the input's, ascending: (n,) int64.

    Raises
    ------
    VertexNotFoundError
        An id does not occur in the graph's input.
    """
    known = VertexIds(store)
    known.vertices_of(ids)
    given, implied = known.parse(ids), store.attributes.implied_ids
    if implied is not None:
        return given - implied[0]
    position = np.empty(given.size, np.int64)
    order = np.argsort(given, kind="stable")
    start = done = 0
    for block, _ in known.blocks(BLOCK_VERTICES):
        end = done + int(np.searchsorted(given[order[done:]], block[-1], side="right"))
        here = order[done:end]
        position[here] = start + np.searchsorted(block, given[here])
        start, done = start + block.size, end
        if done == given.size:
            break
    return position
