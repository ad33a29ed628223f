"""Counts, beside each choice of direction, the exact pages that each direction would have read. For benchmarks only.

It knows the future: a pull's pages are found by carrying the pull out on copies, window after window, marking each page
until the first hit. That reads all of ``indices`` in every iteration, outside of the measured search time.
"""

from __future__ import annotations

import numpy as np

from oocgraph.kernels import cpu
from oocgraph.plan.residency import QUEUE_CAPACITY
from oocgraph.runtime.buffers import BufferPool
from oocgraph.runtime.resident import LOAD_BYTES, Adjacency
from oocgraph.runtime.state import SearchState
from oocgraph.store.graph import CSRStore
from oocgraph.types import PAGE_BYTES, Array


def oracle_bytes(store: CSRStore) -> int:
    """Host bytes that a `PageOracle` takes: a state of its own, two windows, and a byte per page."""
    n, itemsize = store.num_vertices, store.index_dtype.itemsize
    num_pages = store.attributes.num_stored_edges * itemsize // PAGE_BYTES
    return n * (itemsize + 4) + 4 * (n // 8 + 8) + 4 * QUEUE_CAPACITY * 8 + 2 * LOAD_BYTES + num_pages


class PageOracle:
    """Measures one state after the other with scratch arrays of its own (about 8.5 bytes a vertex).

    Parameters
    ----------
    pull
        The adjacency that a pull walks; must be a plain local array.
    """

    def __init__(self, pull: Adjacency, num_vertices: int) -> None:
        self._pull = pull
        self._scratch = SearchState(num_vertices, pull.resident.dtype, BufferPool())

    def pull_pages(self, state: SearchState) -> int:
        """Distinct pages that a pull of this iteration reads behind planes and resident edges."""
        pull, scratch = self._pull, self._scratch
        scratch.visited[:] = state.visited
        words = state.num_words
        cpu.pull_heads(
            0, words, state.num_vertices, *pull.lookup, *pull.heads, pull.resident, 0,
            state.frontier, scratch.visited, scratch.undecided, *scratch.marks,
        )  # fmt: skip
        if not scratch.undecided.any():
            return 0
        num_pages = -(-pull.num_edges >> pull.page_shift()) + 1
        touched = np.zeros(num_pages, np.bool_)
        size = LOAD_BYTES // pull.stored.dtype.itemsize
        for start in range(pull.resident.size // size * size, pull.num_edges, size):
            window = pull.stored.read(start, min(pull.num_edges, start + size))
            self._touch(start, window, state, touched)
        return int(np.count_nonzero(touched))

    def _touch(self, start: int, window: Array, state: SearchState, touched: Array) -> None:
        pull = self._pull
        cpu.touch_pages(
            *pull.lookup,
            pull.num_planes,
            pull.resident.size,
            window,
            start,
            pull.page_shift(),
            state.frontier,
            self._scratch.undecided,
            touched,
        )
