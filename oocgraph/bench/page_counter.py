"""Searches that count, before each iteration, the exact pages that either direction would read in it.

In: a store, as for `LocalRuntime`. Out: a `CountingRuntime`, whose searches leave a pair of counts for each iteration. It knows the future:
a pull's pages are found by carrying the pull out on copies, window after window, marking each page until the first hit. That reads
all of ``indices`` in every iteration; its time and its reads are kept apart, so that they can be taken off the search's.
"""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from oocgraph.engine.buffers import BufferPool
from oocgraph.engine.cpu_engine import TinyLimits
from oocgraph.engine.local import LocalRuntime
from oocgraph.engine.resident import LOAD_BYTES
from oocgraph.engine.state import SearchState
from oocgraph.kernels import cpu
from oocgraph.kernels.rows import NO_LONG_ROWS
from oocgraph.memory import Budget, device_bytes_read
from oocgraph.plan.direction import Choice
from oocgraph.plan.residency import QUEUE_CAPACITY
from oocgraph.results.search import Search
from oocgraph.store.graph import CSRStore
from oocgraph.types import PAGE_BYTES, Array


class PageCounts(NamedTuple):
    """Pages of 4 KiB that a push and a pull of one iteration would read."""

    push_pages: int
    pull_pages: int


def counting_bytes(store: CSRStore) -> int:
    """Host bytes that counting takes: a state of its own, two windows, and a byte per page."""
    n, itemsize = store.num_rows, store.index_dtype.itemsize
    num_pages = store.attributes.num_stored_edges * itemsize // PAGE_BYTES
    return n * (itemsize + 4) + 4 * (n // 8 + 8) + 4 * QUEUE_CAPACITY * 8 + 2 * LOAD_BYTES + num_pages


class CountingRuntime(LocalRuntime):
    """A graph in this process whose searches count pages between their iterations; slow. Open and use it as a `LocalRuntime`.

    Attributes
    ----------
    pages : list of PageCounts
        Of the last search: of each of its iterations, and of one more where its depth was limited.
    """

    def __init__(self, store: CSRStore, budget: Budget, **options: Any) -> None:
        budget.reserve("counting pages", counting_bytes(store))
        super().__init__(store, budget, **options)
        self._scratch = SearchState(store.num_rows, store.index_dtype, BufferPool())
        self._restart()

    def start(self, sources: Array) -> SearchState:
        """Return the first state; see `LocalRuntime.start`."""
        self._restart()
        state = super().start(sources)
        self._count_pages(state)
        return state

    def little_levels(self, state: SearchState, last_level: int, *, may_pull: bool) -> bool:
        """Push a tiny frontier; see `push_levels`."""
        return self.push_levels(state, last_level)

    def push_levels(self, state: SearchState, last_level: int, *, few: TinyLimits | None = None) -> bool:
        """Push a tiny frontier; one level at a time, so that each is counted."""
        is_larger = super().push_levels(state, min(last_level, state.level + 1), few=few)
        self._count_pages(state)
        return is_larger

    def advance(self, state: SearchState, choice: Choice, *, frontier: int, undecided: int, began: float, num_bytes: int) -> None:
        """End the iteration and count for the next."""
        super().advance(state, choice, frontier=frontier, undecided=undecided, began=began, num_bytes=num_bytes)
        self._count_pages(state)

    def without_counting(self, search: Search) -> Search:
        """Take the time and the reads of counting off the last search's."""
        num_bytes = max(search.bytes_requested, search.bytes_read - self._num_bytes)
        return replace(search, seconds=search.seconds - self._seconds, bytes_read=num_bytes)

    def _restart(self) -> None:
        self.pages: list[PageCounts] = []
        self._seconds, self._num_bytes = 0.0, 0

    def _count_pages(self, state: SearchState) -> None:
        if not state.frontier_size or len(self.pages) > state.level:
            return
        began, device_began = time.perf_counter(), device_bytes_read()
        self._to_bitmap(state)
        self.pages.append(PageCounts(self.frontier_pages(state), self._pull_pages(state)))
        self._seconds += time.perf_counter() - began
        self._num_bytes += device_bytes_read() - device_began

    def _pull_pages(self, state: SearchState) -> int:
        """Count the distinct pages that a pull reads behind planes and resident edges."""
        pull, scratch = self.graph.pull, self._scratch
        scratch.visited[:] = state.visited
        cpu.pull_heads(
            0, state.num_words, state.num_vertices, pull.lookup, pull.heads, pull.resident, 0,
            state.frontier, scratch.visited, scratch.undecided, scratch.marks, NO_LONG_ROWS,
        )  # fmt: skip
        if not scratch.undecided.any():
            return 0
        touched = np.zeros(-(-pull.num_edges >> pull.page_shift) + 1, np.bool_)
        size = LOAD_BYTES // pull.stored.dtype.itemsize
        for start in range(pull.resident.size // size * size, pull.num_edges, size):
            window = pull.stored.read(start, min(pull.num_edges, start + size))
            cpu.touch_pages(
                pull.lookup, pull.num_planes, pull.resident.size, window, start, pull.page_shift,
                state.frontier, scratch.undecided, touched,
            )  # fmt: skip
        return int(np.count_nonzero(touched))
