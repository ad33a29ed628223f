"""Reads the first arrays that a search loads into the page cache, while its process still imports what computes.

A process that searches once spends half a second on imports and kernels, and the disk waits. In: a store, and the memory that the process
may hold. Out: threads that read what `oocgraph.plan.residency` would keep of it, as far as the page cache has room for it beside what is
loaded from it, in small pieces, so that modules which are read meanwhile do not wait. They end with the process.
"""

from __future__ import annotations

import threading
from collections import deque
from contextlib import suppress

import numpy as np

from oocgraph.config import settings
from oocgraph.engine.sizes import graph_sizes
from oocgraph.errors import BudgetError, OocGraphError
from oocgraph.memory import effective_budget_bytes, host_bytes, page_cache_bytes
from oocgraph.plan.residency import plan_residency
from oocgraph.store.arrays import PlainArray
from oocgraph.store.graph import CSRStore

MOST_BYTES = 1 << 30
"""What a disk delivers at the most until kernels are there."""

PIECE_BYTES = 1 << 20

READERS = 2
"""Threads, of which one can wait for the disk while the other copies."""

IMPORTED_BYTES = 80 << 20
"""What a process holds once kernels are there, beside what it holds when it has opened the store."""

Piece = tuple[PlainArray, int, int]
"""Elements ``start .. stop - 1`` of a chunk of an array."""


def read_ahead(store: CSRStore, memory_budget: str | int | None) -> list[threading.Thread]:
    """Begin to read what a search within a budget will load, if the files of `store` can be read directly; returns the threads."""
    limit = effective_budget_bytes(settings().memory_budget if memory_budget is None else memory_budget)
    pieces = deque(pieces_of(store, limit))
    threads = [threading.Thread(target=_read, args=(pieces,), name="oocgraph-ahead", daemon=True) for _ in range(READERS if pieces else 0)]
    for thread in threads:
        thread.start()
    return threads


def pieces_of(store: CSRStore, limit_bytes: int) -> list[Piece]:
    """Return what is read ahead of a search that may hold so many bytes, in the order in which it is loaded.

    Not more than half of what the page cache can hold now: what has been loaded from it is in memory twice until the system drops it.
    """
    room = min(MOST_BYTES, page_cache_bytes(host_bytes()) // 2)
    pieces: list[Piece] = []
    for name, length in _loaded(store, limit_bytes):
        array = store.array(name)
        if not isinstance(array, PlainArray):
            return []
        step = PIECE_BYTES // array.dtype.itemsize
        for _, first, end in array.chunk_ranges(0, min(length, room // array.dtype.itemsize)):
            pieces += [(array, start, min(end, start + step)) for start in range(first, end, step)]
        room -= min(length * array.dtype.itemsize, room)
    return pieces


def _loaded(store: CSRStore, limit_bytes: int) -> list[tuple[str, int]]:
    """Return arrays of which a search loads the first elements, and about how many."""
    groups = ["out", "in"] if store.attributes.directed else ["out"]
    indices = [store.array(f"{group}/indices") for group in groups]
    is_sorted = store.attributes.vertex_order == "degree"
    sizes = graph_sizes(store, indices, {groups[-1]: None} if is_sorted else {})
    available = limit_bytes - host_bytes() - IMPORTED_BYTES
    try:
        residency = plan_residency(sizes, available_bytes=available, limit_bytes=limit_bytes, io_threads=1, buffer_bytes=0, max_planes=None)
    except BudgetError:  # the search says so, once it has counted what it needs
        return []
    loaded = []
    for group, num_edges in zip(groups, residency.num_resident, strict=True):
        if not (is_sorted and group == groups[-1]):
            loaded.append((f"{group}/indptr", store.num_rows + 1))
        elif residency.num_planes:
            loaded.append((f"{group}/planes/indices", sizes.plane_edges[residency.num_planes]))
        loaded.append((f"{group}/indices", num_edges))
    return loaded


def _read(pieces: deque[Piece]) -> None:
    """Read pieces that are not in the page cache yet, as long as there are any."""
    buffer = memoryview(bytearray(PIECE_BYTES))
    with suppress(OocGraphError, OSError, IndexError):  # the load says what is wrong with a file; another thread has taken the last piece
        while pieces:
            array, start, stop = pieces.popleft()
            if not array.is_cached(start, stop):
                array.without_rule().read_into(start, np.frombuffer(buffer, array.dtype, stop - start))
