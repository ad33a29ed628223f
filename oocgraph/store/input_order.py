"""Values of vertices between the user's order and the store's: every input id ascending, isolated ones included; or by store number.

In: a store and an array in one order. Out: the other, filled block by block as the ids are streamed, so that nothing of O(vertices) is
held beside the two.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from oocgraph.errors import ArgumentError, CorruptStoreError
from oocgraph.store.arrays import REMEDY
from oocgraph.store.graph_arrays import GraphArrays
from oocgraph.store.layout import ORDER
from oocgraph.store.vertices import VertexIds
from oocgraph.types import Array

BLOCK_VERTICES = 1 << 15
"""Ids streamed at once."""

BLOCK_BYTES = 256 * BLOCK_VERTICES
"""What a stream holds at most: ids (of strings about 32 bytes), read twice as far ahead, store numbers and positions."""


def linked_positions(store: GraphArrays) -> Iterator[tuple[Array, Array]]:
    """Iterate over the vertices that have edges, by ascending id: positions among the input ids, and store numbers."""
    start = 0
    for _, vertices in VertexIds(store).stored_blocks(BLOCK_VERTICES):
        here = np.flatnonzero(vertices >= 0)
        yield start + here, vertices[here]
        start += vertices.size


def to_store_order(store: GraphArrays, values: Array, out: Array) -> None:
    """Set ``out[v]`` to the value of store number v.

    Parameters
    ----------
    values : (num_input_vertices,)
        By input id, ascending.
    out : (num_vertices,)
        Those of isolated vertices have no place in it.
    """
    for positions, vertices in linked_positions(store):
        out[vertices] = values[positions]


def to_input_order(store: GraphArrays, values: Array, out: Array) -> None:
    """Set the values of the vertices that have edges, by input id; those of isolated vertices are left as they are.

    Parameters
    ----------
    values : (num_vertices,)
        By store number.
    out : (num_input_vertices,)
        By input id, ascending.
    """
    for positions, vertices in linked_positions(store):
        out[positions] = values[vertices]


def input_positions(store: GraphArrays) -> Array:
    """Position of each vertex among the input ids, ascending: (num_vertices,) uint32.

    Raises
    ------
    ArgumentError
        The input has more than 2**32 ids.
    CorruptStoreError
        ``vertices/order`` does not name every vertex once.
    """
    if store.attributes.num_input_vertices > 2**32:
        raise ArgumentError(
            f"{store.url}: input order is for up to 2**32 vertices, not {store.attributes.num_input_vertices}; use order='store'"
        )
    position = np.empty(store.num_rows, np.uint32)
    is_known = np.zeros(store.num_rows, np.bool_)
    for positions, vertices in linked_positions(store):
        position[vertices] = positions
        is_known[vertices] = True
    if not is_known.all():
        raise CorruptStoreError(f"{store.url}: {ORDER} names some vertices twice, and not vertex {int(np.argmin(is_known))}; {REMEDY}")
    return position
