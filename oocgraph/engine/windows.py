"""Push and pull for stores that kernels cannot read themselves (compressed or remote): windows of edges through Zarr.

In: an adjacency, the search state, and the counts of the rows concerned per slice. Out: bytes of the windows read. Only windows that
hold rows which are concerned and not resident are read, each once and in order; the next is read while one is processed.
A window is a PartialCSR: it starts and ends anywhere in a row.
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from oocgraph.engine.shard import Adjacency
from oocgraph.engine.state import SearchState
from oocgraph.kernels import cpu
from oocgraph.kernels.rows import NO_LONG_ROWS, ChunkFiles, no_planes
from oocgraph.types import Array

WINDOW_BYTES = 1 << 20
"""Edges read at once; two windows are held."""


def pull_windows(pull: Adjacency, state: SearchState, counts: Array) -> int:
    """Look for parents of the undecided vertices in the windows that hold their lists."""
    num_bytes = 0
    asked = state.undecided.copy()
    closed = ~asked  # to the kernel all but the undecided are visited
    heads = no_planes(pull.heads.edges.dtype, state.num_vertices)
    for start, window in _windows(pull, counts):
        first = _vertex_of_edge(pull, start) >> 6
        last = _vertex_of_edge(pull, start + window.size - 1) >> 6
        cpu.pull_heads(
            first, last + 1, state.num_vertices, pull.lookup, heads, window, start, state.frontier, closed, state.undecided, state.marks,
            NO_LONG_ROWS,
        )  # fmt: skip
        num_bytes += window.nbytes
    state.visited |= closed & asked
    return num_bytes


def push_windows(push: Adjacency, state: SearchState, counts: Array, files: ChunkFiles) -> int:
    """Push the frontier's edges that are not resident."""
    num_bytes = 0
    heads = no_planes(push.heads.edges.dtype, state.num_vertices)
    nothing = np.empty(0, np.uint8)
    for start, window in _windows(push, counts):
        cpu.push_rows(
            max(start, push.resident.size), start + window.size, push.lookup, heads, window, start, files, 0,
            nothing, nothing.view(window.dtype), state.frontier, state.closed, *state.owners, state.marks,
        )  # fmt: skip
        num_bytes += window.nbytes
    return num_bytes


def _windows(adjacency: Adjacency, counts: Array) -> Iterator[tuple[int, Array]]:
    """Yield (first_edge, edges) of each window that holds part of a row counted and not resident."""
    stored = adjacency.stored
    size = max(1, min(stored.chunk_length, WINDOW_BYTES // stored.dtype.itemsize))
    ends = np.append(counts[1:, 3], adjacency.num_edges)
    starts: list[int] = []
    for i in np.flatnonzero(counts[:, 0]).tolist():
        first = max(int(counts[i, 3]), int(adjacency.resident.size)) // size
        starts += [w * size for w in range(first, -(-int(ends[i]) // size)) if not starts or w * size > starts[-1]]

    def read(start: int) -> Array:
        return stored.read(start, min(start + size, stored.length)).astype(stored.dtype.newbyteorder("="), copy=False)

    with ThreadPoolExecutor(1, thread_name_prefix="oocgraph-window") as reader:
        ahead = [reader.submit(read, start) for start in starts[:1]]
        for i, start in enumerate(starts):
            ahead += [reader.submit(read, following) for following in starts[i + 1 : i + 2]]
            yield start, ahead.pop(0).result()


def _vertex_of_edge(adjacency: Adjacency, e: int) -> int:
    """Vertex whose row holds edge `e`; if it is another partition's edge, the next one that is not."""
    indptr, first, edge, value = adjacency.lookup
    if indptr.size:
        return max(0, min(int(np.searchsorted(indptr, e, side="right")) - 1, adjacency.num_rows - 1))
    c = max(0, int(np.searchsorted(edge, e, side="right")) - 1)
    while c and not value[c]:
        c -= 1
    v = int(first[c]) + (e - int(edge[c])) // max(1, int(value[c]))
    # a partition's rows have gaps between them, before and behind
    return max(0, min(v, int(first[c + 1]) if c + 1 < first.size else adjacency.num_rows - 1))
