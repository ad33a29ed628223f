"""Push and pull for stores that kernels cannot read themselves (compressed or remote): windows of edges.

In: an adjacency, the search state, and the rows concerned. Out: bytes of the windows read. Only windows that hold rows which are concerned
and not resident are read, each once and in order, and others while one is processed: of an object store as many as staging has room for.
A window is a PartialCSR: it starts and ends anywhere in a row.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator

import numpy as np

from oocgraph.engine.shard import Adjacency
from oocgraph.engine.state import SearchState
from oocgraph.kernels import cpu
from oocgraph.kernels.row_runs import row_runs
from oocgraph.kernels.rows import NO_LONG_ROWS, ChunkFiles, no_planes
from oocgraph.pool import Call, Pool
from oocgraph.store.arrays import StoredArray, decoded_bytes
from oocgraph.store.fetched import REQUEST_BYTES, RangeArray
from oocgraph.types import Array

WINDOW_BYTES = REQUEST_BYTES
"""Edges read at once."""

GAP_BYTES = 256 << 10
"""Bytes between two rows that are read with them: at 200 MB/s they take as long as a request does of S3's client (1.3 ms)."""

NUM_RUNS = 1024
"""Runs of rows found at once."""

READER_BYTES = 640 << 10
"""Staging of a reading thread for windows from an object store: half of one, and a quarter of that for what a client holds beside it."""

DECODERS = 2
"""Compressed chunks that are decoded at once, while a third is searched."""


def reader_bytes(stored: StoredArray, io_threads: int, buffer_bytes: int) -> int:
    """Return the staging of each of so many reading threads, for edges of an array: `buffer_bytes`, or what windows of it take."""
    if isinstance(stored, RangeArray):
        return max(buffer_bytes, READER_BYTES)
    return max(buffer_bytes, -(-(DECODERS + 1) * decoded_bytes(stored) // io_threads))


def _ahead(stored: StoredArray, io_threads: int) -> tuple[int, int]:
    """Return how many windows are read at once, and of how many edges in all, within the staging of so many reading threads."""
    if isinstance(stored, RangeArray):
        return io_threads, max(1, io_threads // 2) * WINDOW_BYTES // stored.dtype.itemsize
    return DECODERS, (DECODERS + 1) * stored.chunk_length


def pull_windows(pull: Adjacency, state: SearchState, io_threads: int) -> int:
    """Look for parents of the undecided vertices in the windows that hold their lists."""
    num_bytes = 0
    asked = state.undecided.copy()
    closed = ~asked  # to the kernel all but the undecided are visited
    heads = no_planes(pull.heads.edges.dtype, state.num_vertices)
    for start, window in _windows(pull, state.undecided, io_threads):
        first = _vertex_of_edge(pull, start) >> 6
        last = _vertex_of_edge(pull, start + window.size - 1) >> 6
        cpu.pull_heads(
            first, last + 1, state.num_vertices, pull.lookup, heads, window, start, state.frontier, closed, state.undecided, state.marks,
            NO_LONG_ROWS,
        )  # fmt: skip
        num_bytes += window.nbytes
    state.visited |= closed & asked
    return num_bytes


def push_windows(push: Adjacency, state: SearchState, io_threads: int, files: ChunkFiles) -> int:
    """Push the frontier's edges that are not resident."""
    num_bytes = 0
    heads = no_planes(push.heads.edges.dtype, state.num_vertices)
    nothing = np.empty(0, np.uint8)
    for start, window in _windows(push, state.frontier, io_threads):
        cpu.push_rows(
            max(start, push.resident.size), start + window.size, push.lookup, heads, window, start, files, 0,
            nothing, nothing.view(window.dtype), state.frontier, state.closed, *state.owners, state.marks,
        )  # fmt: skip
        num_bytes += window.nbytes
    return num_bytes


def _windows(adjacency: Adjacency, rows: Array, io_threads: int) -> Iterator[tuple[int, Array]]:
    """Yield (first_edge, edges) of each window that holds part of a row that is marked and not resident."""
    stored, ahead = adjacency.stored, deque[tuple[int, int, Call[Array]]]()

    def read(start: int, stop: int) -> Array:
        return stored.read(start, stop).astype(stored.dtype.newbyteorder("="), copy=False)

    bounds, (number, room) = _bounds(adjacency, rows), _ahead(stored, io_threads)
    following = next(bounds, None)
    with Pool(number, "oocgraph-window") as readers:
        try:
            while following or ahead:
                while following and len(ahead) <= number and (following[1] - following[0] <= room or not ahead):
                    start, stop = following
                    ahead.append((start, stop - start, readers.submit(read, start, stop)))
                    room, following = room - (stop - start), next(bounds, None)
                start, length, reading = ahead.popleft()
                yield start, reading.result()
                room += length
        finally:
            for _, _, reading in ahead:
                reading.cancel()


def _bounds(adjacency: Adjacency, rows: Array) -> Iterator[tuple[int, int]]:
    """Yield where windows begin and end. They end where requests do; a compressed chunk, which is decoded as a whole, is one."""
    stored = adjacency.stored
    whole = not isinstance(stored, RangeArray)
    size = max(1, min(stored.chunk_length, WINDOW_BYTES // stored.dtype.itemsize))
    gap = 0 if whole else GAP_BYTES // stored.dtype.itemsize
    runs, v, done = np.empty((NUM_RUNS, 2), np.int64), 0, 0
    while v < adjacency.num_rows:
        count, v = row_runs(v, adjacency.num_rows, adjacency.lookup, adjacency.resident.size, gap, rows, runs)
        for begin, end in runs[:count].tolist():
            start = max(done, begin)
            while start < end:
                stop = min(stored.length, start // size * size + size)
                if whole:
                    yield start // size * size, stop
                    done = stop
                else:
                    yield start, min(end, stop)
                start = stop


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
