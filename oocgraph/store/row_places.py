"""Where some rows of a stored CSR begin and end, without reading the others.

In: store numbers. Out: the first entry of each row and the one behind its last. Where vertices are sorted by degree, rows of equal degree
are evenly spaced, and the degree classes tell without reading ``indptr``; otherwise its elements at those vertices are read.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from oocgraph.errors import ArgumentError
from oocgraph.store.columns import distinct, read_at
from oocgraph.store.graph_arrays import GraphArrays
from oocgraph.store.row_lookup import sorted_lookup
from oocgraph.store.rows import are_by_degree, damaged_rows
from oocgraph.types import Array

if TYPE_CHECKING:
    from oocgraph.store.scattered import RangeReader

FEW_ROWS = 16
"""Rows whose places are read one by one."""


def check_no_view(store: GraphArrays) -> None:
    """Refuse a view, whose lists have all edges.

    Raises
    ------
    ArgumentError
        It is one.
    """
    if store.where is not None:
        raise ArgumentError(f"{store.url} is a view of the edges with {store.where}, which searches alone look at; ask the graph itself")


def group_of(store: GraphArrays, direction: str) -> str:
    """Return the group that holds the lists of a direction, ``out`` or ``in``: an undirected graph has only one.

    Raises
    ------
    ArgumentError
        `direction` is neither, the store lacks these lists, as a partition may, or it is a view.
    """
    check_no_view(store)
    if direction not in ("out", "in"):
        raise ArgumentError(f"direction is {direction!r}; it must be 'out' (edges from a vertex) or 'in' (edges to it)")
    group = direction if store.attributes.directed else "out"
    if group not in store.attributes.stored_groups:
        raise ArgumentError(f"{store.url} holds no {group}-lists; give direction={store.attributes.stored_groups[0]!r}")
    return group


def row_ends(store: GraphArrays, group: str, vertices: Array, reader: RangeReader | None = None) -> tuple[Array, Array]:
    """Return where rows begin and end in ``indices``.

    Parameters
    ----------
    vertices : (n,) int64
        Store numbers, below ``num_rows``.
    reader
        Of the same store, for many rows that are far apart.

    Returns
    -------
    begin, end : (n,) int64

    Raises
    ------
    CorruptStoreError
        What the store says of its rows cannot be.
    """
    if not vertices.size:
        return np.empty(0, np.int64), np.empty(0, np.int64)
    if are_by_degree(store, group):
        return _by_degree(store, vertices)
    indptr, unique = store.array(f"{group}/indptr"), distinct(vertices)
    positions = distinct(np.concatenate([unique, unique + 1]))
    at = np.searchsorted(positions, vertices)
    if reader is None or unique.size <= FEW_ROWS or indptr.is_held:
        offsets = read_at(indptr, positions)
        return offsets[at], offsets[at + 1]
    offsets = reader.read(indptr, positions, positions + 1)  # which does not compare them with each other
    begin, end = offsets[at], offsets[at + 1]
    if offsets[0] < 0 or offsets[-1] > store.array(f"{group}/indices").length or np.any(begin > end):
        raise damaged_rows(store, group)
    return begin, end


def row_lengths(store: GraphArrays, group: str, vertices: Array, reader: RangeReader | None = None) -> Array:
    """Entries of rows: (n,) int64; see `row_ends`."""
    begin, end = row_ends(store, group, vertices, reader)
    return end - begin


def row_pieces(begin: Array, end: Array, most: int) -> Iterator[tuple[slice, Array, Array]]:
    """Cut rows into pieces of at most so many entries.

    Parameters
    ----------
    begin, end : (num_rows,) int64
        Where they begin and end.

    Yields
    ------
    (slice, begin, end): which of the rows have entries in the piece, and where these begin and end; a row may be in several pieces.
    """
    offset = np.concatenate([np.zeros(1, np.int64), np.cumsum(end - begin)])
    for start in range(0, int(offset[-1]), most):
        stop = min(int(offset[-1]), start + most)
        a, z = int(np.searchsorted(offset, start, side="right")) - 1, int(np.searchsorted(offset, stop))
        low = begin[a:z] + np.maximum(start - offset[a:z], 0)
        yield slice(a, z), low, begin[a:z] + np.minimum(stop, offset[a + 1 : z + 1]) - offset[a:z]


def whole_row_pieces(begin: Array, end: Array, most: int) -> Iterator[tuple[slice, Array, Array]]:
    """Cut rows into pieces as `row_pieces` does, but between rows: each is in one piece, empty ones too, and none has more entries.

    Raises
    ------
    ValueError
        A row has more.
    """
    offset, a = np.concatenate([np.zeros(1, np.int64), np.cumsum(end - begin)]), 0
    while a < begin.size:
        z = int(np.searchsorted(offset, offset[a] + most, side="right")) - 1
        if z == a:
            raise ValueError(f"a row has {end[a] - begin[a]:,} entries, more than {most:,}")
        yield slice(a, z), begin[a:z], end[a:z]
        a = z


def _by_degree(store: GraphArrays, vertices: Array) -> tuple[Array, Array]:
    _, first, edge, value = sorted_lookup(store)
    at = np.searchsorted(first, vertices, side="right") - 1
    begin = edge[at] + (vertices - first[at]) * value[at]
    return begin, begin + value[at]
