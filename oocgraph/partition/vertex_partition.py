"""Deals the vertices of a graph to partitions, so that each has about as many edges, vertices and plane entries.

In: a store and a number of partitions. Out: `VertexPartition`, runs of consecutive vertices with their owner; a few kilobytes to a
megabyte, the same on every machine. Inside a partition vertices have local positions ``0 .. num_owned - 1``, ascending in store number, so
its vertices are sorted by degree as those of the whole graph are, and its planes are dense.

- Degree order: vertices are cut into blocks, which are assigned in boustrophedon order (0 .. P-1, P-1 .. 0). A block ends at 64 KiB of edge
  bytes or 4,096 vertices, so blocks of one round are alike in edges, in vertices and in degree; a hub may be a block alone.
  The largest share of edges exceeds the mean by one block at most, so it is the largest hub that limits the balance.
  Measured, Kronecker graph of scale 20, P = 8, largest share over mean: edges 1.009, vertices 1.007, plane entries 1.003.
- Original order: P ranges of about equal edges, found by bisection of the stored ``indptr``.
- Unequal shares: a partition with share s of S has about s / S of the edges. Blocks are then dealt in turns of S places, in which each
  partition has as many as its share, spread evenly; every other turn goes backwards. Shares of 1 each are the turns above.

Differs from CuSP (Hoang et al., IPDPS 2019): an owner is a pure function of degrees, there is no state to exchange.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from oocgraph.compiled.load import load_kernel
from oocgraph.errors import ArgumentError
from oocgraph.kernels.partition import cut_blocks
from oocgraph.store.graph import CSRStore
from oocgraph.store.slices import StoredSlice
from oocgraph.types import Array

BLOCK_BYTES = 64 << 10
"""Edge bytes of a block at most: one read of a disk, and little beside a partition's share."""

BLOCK_VERTICES = 4096
"""Vertices of a block at most, where vertices have few edges: shares of vertices and of planes stay equal too."""

MIN_BLOCKS = 64
"""Blocks that each partition gets of a small graph, at least: one block more or less is then 1.6 % of its share."""


@dataclass(frozen=True, slots=True, eq=False)
class VertexPartition:
    """Who owns which vertices. Blocks are maximal: neighbours have different owners.

    Attributes
    ----------
    num_vertices, num_partitions : int
        Of the whole graph.
    first : (num_blocks + 1,) int64
        First vertex of each block, then `num_vertices`.
    owner : (num_blocks,) int32
        Its partition.
    local : (num_blocks,) int64
        Position of its first vertex in its partition.
    num_owned : (num_partitions,) int64
        Vertices of each partition.
    num_edges : (num_partitions,) int64
        Stored entries (of the pull group) in each partition's rows.
    """

    num_vertices: int
    num_partitions: int
    first: Array
    owner: Array
    local: Array
    num_owned: Array
    num_edges: Array

    def blocks_of(self, partition: int) -> tuple[Array, Array, Array]:
        """Return first vertex, vertex after the last, and local position of each block of a partition: (k,) int64, ascending."""
        own = np.flatnonzero(self.owner == partition)
        return self.first[own], self.first[own + 1], self.local[own]

    def locate(self, vertices: Array) -> tuple[Array, Array]:
        """Return owner (int32) and local position (int64) of each of `vertices` (store numbers)."""
        v = np.asarray(vertices, np.int64)
        block = np.searchsorted(self.first[:-1], v, side="right") - 1
        return self.owner[block], self.local[block] + v - self.first[block]

    @property
    def num_bytes(self) -> int:
        """Bytes of the arrays."""
        return sum(array.nbytes for array in (self.first, self.owner, self.local, self.num_owned, self.num_edges))


def partition_vertices(store: CSRStore, num_partitions: int, shares: Sequence[int] | None = None) -> VertexPartition:
    """Deal the vertices of a graph to `num_partitions` partitions; each gets at least one (none of an empty graph).

    Parameters
    ----------
    store
        Of which degrees, or about ``P * log2(num_vertices)`` elements of ``indptr``, are read.
    num_partitions
        From 1 to the number of vertices.
    shares
        Edges that each partition should own, as parts of their sum, 1 or more; None: equal ones.

    Raises
    ------
    ArgumentError
        `num_partitions` is out of this range, or there is not one of `shares` for each partition.
    """
    n = store.num_rows
    if not 1 <= num_partitions <= max(1, n):
        raise ArgumentError(
            f"num_partitions is {num_partitions}, but this graph of {n:,} vertices (isolated ones not counted) can be divided among "
            f"1 to {max(1, n):,} partitions; choose a number in this range"
        )
    if shares is not None and (len(shares) != num_partitions or min(shares) < 1):
        raise ArgumentError(f"shares is {list(shares)}; give a whole number from 1 on for each of {num_partitions} partitions")
    if n == 0:
        none, zero = np.empty(0, np.int64), np.zeros(1, np.int64)
        return VertexPartition(0, 1, zero, none.astype(np.int32), none, zero, zero)
    if store.attributes.vertex_order == "degree":
        return _deal_blocks(store, _turn(shares or [1] * num_partitions), num_partitions)
    return _deal_ranges(store, shares or [1] * num_partitions)


def _turn(shares: Sequence[int]) -> Array:
    """Return the partitions of a turn, ``sum(shares)`` places: each once, in order, so that none stays empty; then the others, evenly.

    Examples
    --------
    >>> _turn([1, 1, 1]).tolist(), _turn([4, 2]).tolist()
    ([0, 1, 2], [0, 1, 0, 0, 1, 0])
    """
    more = np.asarray(shares, np.int64) - 1
    partition = np.repeat(np.arange(more.size), more)
    number = np.arange(partition.size) - np.repeat(np.cumsum(more) - more, more)
    at = (number + 0.5) / more[partition]
    return np.append(np.arange(more.size), partition[np.argsort(at, kind="stable")])


def local_lookup(
    vertex_partition: VertexPartition, partition: int, degree_first: Array, degree_edge: Array, degree_value: Array
) -> tuple[Array, Array, Array]:
    """Return the row lookup (see `oocgraph.kernels.rows`) of a partition of a degree-sorted graph, in local positions.

    The row of local vertex ``l`` in piece ``c`` begins at edge ``edge[c] + (l - first[c]) * value[c]`` of the stored ``indices``.

    Parameters
    ----------
    degree_first, degree_edge, degree_value : (num_distinct,) int64
        The row lookup of the whole graph.

    Returns
    -------
    first, edge, value : (num_pieces,) int64
        A piece is the part of one block (or of adjacent ones) in one degree class; at least one piece.
    """
    block_first, block_stop, local = vertex_partition.blocks_of(partition)
    if not block_first.size:
        return np.zeros(1, np.int64), np.zeros(1, np.int64), np.zeros(1, np.int64)
    lowest = np.searchsorted(degree_first, block_first, side="right") - 1
    highest = np.searchsorted(degree_first, block_stop - 1, side="right") - 1
    pieces = highest - lowest + 1
    block = np.repeat(np.arange(block_first.size), pieces)
    begin = np.cumsum(pieces) - pieces
    c = lowest[block] + np.arange(block.size) - begin[block]
    start = np.maximum(block_first[block], degree_first[c])
    value = degree_value[c]
    first, edge = local[block] + start - block_first[block], degree_edge[c] + (start - degree_first[c]) * value
    goes_on = (value[1:] == value[:-1]) & (edge[1:] == edge[:-1] + np.diff(first) * value[:-1])
    kept = np.append(True, ~goes_on)
    return first[kept], edge[kept], value[kept]


def _deal_blocks(store: CSRStore, places: Array, num_partitions: int) -> VertexPartition:
    """Cut blocks of degree-sorted vertices and assign them turn by turn (`places`: partitions of a turn), in boustrophedon order."""
    n, num_edges = store.num_rows, store.attributes.num_stored_edges
    value, degree_first = (array.astype(np.int64) for array in store.degree_classes)
    max_vertices = max(1, min(BLOCK_VERTICES, n // (MIN_BLOCKS * num_partitions)))
    max_edges = max(1, min(BLOCK_BYTES // store.index_dtype.itemsize, num_edges // (MIN_BLOCKS * num_partitions)))
    out = np.empty(n // max_vertices + 2 * (num_edges // max_edges) + 2, np.int64)
    arguments = degree_first, value, n, max_vertices, max_edges, out
    load_kernel(cut_blocks, arguments)
    first = out[: cut_blocks(*arguments)]
    turn, place = np.divmod(np.arange(first.size), places.size)
    owner = places[np.where(turn & 1, places.size - 1 - place, place)]
    kept = np.append(True, owner[1:] != owner[:-1])
    first, owner = np.append(first[kept], n), owner[kept]
    degree_edge = np.append(0, np.cumsum(np.diff(np.append(degree_first, n)) * value))
    c = np.searchsorted(degree_first, first[:-1], side="right") - 1
    edge = np.append(degree_edge[c] + (first[:-1] - degree_first[c]) * value[c], degree_edge[-1])
    return _vertex_partition(first, owner, edge, num_partitions)


def _deal_ranges(store: CSRStore, shares: Sequence[int]) -> VertexPartition:
    """Cut the vertices into ranges with about these shares of the edges."""
    indptr = StoredSlice(store.array(f"{store.pull_group}/indptr"))
    n, num_partitions = store.num_rows, len(shares)
    num_edges, before = indptr[n], np.append(0, np.cumsum(shares)).tolist()
    part = np.arange(num_partitions + 1)
    cuts = np.array([_nearest(indptr, num_edges * share // before[-1]) for share in before[:-1]] + [n])
    cuts[0] = 0
    cuts = np.maximum.accumulate(cuts - part) + part  # each range has a vertex: one after the cut before,
    cuts = np.minimum(cuts, n - num_partitions + part)  # and enough of them left for those behind
    return _vertex_partition(cuts, part[:-1], np.array([indptr[int(v)] for v in cuts]), num_partitions)


def _vertex_partition(first: Array, owner: Array, edge: Array, num_partitions: int) -> VertexPartition:
    """Make a vertex_partition of blocks, where `edge` is the first edge of each (and, last, the number of edges)."""
    sizes = np.diff(first)
    order = np.argsort(owner, kind="stable")
    before = np.cumsum(sizes[order]) - sizes[order]
    num_owned = np.zeros(num_partitions, np.int64)
    num_edges = np.zeros(num_partitions, np.int64)
    np.add.at(num_owned, owner, sizes)
    np.add.at(num_edges, owner, np.diff(edge))
    local = np.empty(sizes.size, np.int64)
    local[order] = before - (np.cumsum(num_owned) - num_owned)[owner[order]]
    return VertexPartition(int(first[-1]), num_partitions, first.astype(np.int64), owner.astype(np.int32), local, num_owned, num_edges)


def _nearest(ascending: StoredSlice, target: int) -> int:
    """Return a position whose element is nearest to `target`."""
    at = min(bisect_left(ascending, target), ascending.size - 1)
    return at - 1 if at and target - ascending[at - 1] < ascending[at] - target else at
