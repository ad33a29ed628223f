"""Searches from up to 64 sources that share little: each goes on alone, some levels at a time, in memory.

In: a front of few vertices, listed with the sources that found them. Out: the next levels of all sources. On a grid or a road two sources
rarely find a vertex on the same level. Then a word for all of them saves nothing, and what 64 fronts touch is in no cache; that of one is.
A source that finds more than there is room for on a level ends this: `oocgraph.algorithms.source_words` goes on with words.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from oocgraph.engine.sweeps import Sweeps
from oocgraph.kernels import lanes as kernels
from oocgraph.kernels.piece_rows import empty_pieces
from oocgraph.sparse.piece_table import PieceTable
from oocgraph.store.graph import CSRStore
from oocgraph.types import Array

NUM_BYTES = 8
"""Of a word: so many threads may search at a time."""

LEAST_ROOM = 1 << 16
"""Vertices of all queues, at the least; at the most as many as there are."""

FIRST_LEVELS = 16
"""Levels that are tried first; then as many as there was room for, or more."""

EDGE_SECONDS = 5e-9
"""About what an edge takes."""


def lone_bytes(store: CSRStore, most_levels: int) -> int:
    """Return what `LoneSources` holds."""
    return max(LEAST_ROOM, store.num_rows) * store.index_dtype.itemsize + 8 * NUM_BYTES * 8 * (most_levels + 4)


def lone_kernels(store: CSRStore) -> list[tuple[Any, ...]]:
    """Return calls of all kernels, to load them."""
    table, words, numbers = np.empty((0, 0), np.int64), np.empty(0, np.uint64), np.empty(0, np.int64)
    queue, seen = np.empty((0, 0), store.index_dtype), np.empty((0, 0), np.uint8)
    return [
        (kernels.split, numbers, words, queue, table), (kernels.keep_front, queue, table, 0), (kernels.join, queue, table, words),
        (kernels.search, empty_pieces(store.index_dtype), seen, 0, queue, 0, table, table, numbers, 0),
        (kernels.forget_levels, seen, 0, queue, table, 0, 0), (kernels.list_levels, queue, table, 0, words, numbers, words, numbers),
    ]  # fmt: skip


class LoneSources:
    """Queues of all sources.

    Parameters
    ----------
    sweeps
        Whose threads are used.
    seen : (num_vertices,) uint64
        Bits of the sources that have seen a vertex; updated.
    counts : (most_levels, 64) int64
        Where the vertices that are found are counted.
    """

    def __init__(self, sweeps: Sweeps, seen: Array, counts: Array) -> None:
        self._sweeps, self._counts = sweeps, counts
        self._seen = seen.view(np.uint8).reshape(seen.size, NUM_BYTES)
        self._queue: Array = np.empty((8 * NUM_BYTES, max(LEAST_ROOM, seen.size) // (8 * NUM_BYTES)), sweeps.store.index_dtype)
        self._ends: Array = np.zeros((8 * NUM_BYTES, counts.shape[0] + 2), np.int64)
        self._reached: Array = np.zeros(8 * NUM_BYTES, np.int64)
        self._num_levels = FIRST_LEVELS

    def begin(self, vertices: Array, words: Array) -> bool:
        """Begin with a front that is listed; returns whether there is room for it."""
        self._num_levels = FIRST_LEVELS
        return bool(kernels.split(vertices, words, self._queue, self._ends))

    def search(self, table: PieceTable, most_levels: int, room: int) -> int:
        """Find the next levels, at most so many and `room` vertices, and count what is found; returns how many.

        None, where a source needs more room, or rows that do not stay in memory. Where all sources have ended, the last level is one on
        which nothing is found.
        """
        most = min(room // self._queue.shape[0], self._queue.shape[1])
        while True:
            num, missing = self._search(table, min(self._num_levels, most_levels, self._counts.shape[0]), most)
            are_here = [table.stays(piece) and table.bring(piece) for piece in missing]
            if num or not missing or not all(are_here):
                return num

    def _search(self, table: PieceTable, wanted: int, most: int) -> tuple[int, set[int]]:
        """Find as many levels as all sources have room for; returns how many, and which pieces are missing for more."""
        self._counts[:wanted] = 0
        missing = self._on_each(
            lambda byte: kernels.search(table.pieces, self._seen, byte, self._queue, most, self._ends, self._counts, self._reached, wanted)
        )
        num = int(self._reached.min())
        self._num_levels = 2 * num if num == wanted else num + num // 4 + 1
        if num and not self._counts[num - 1].any():  # all have ended
            num = int(np.argmin(self._counts[:num].any(axis=1))) + 1
        self._on_each(lambda byte: kernels.forget_levels(self._seen, byte, self._queue, self._ends, num, wanted))
        return num, {*missing} - {-1}

    def keep(self, num: int) -> None:
        """Have the last of `num` levels be the front of all sources."""
        kernels.keep_front(self._queue, self._ends, num)

    def list_found(self, num: int, found: Array, vertices: Array, words: Array, ends: Array) -> None:
        """List what was found on `num` levels; see `oocgraph.kernels.lanes.list_levels`."""
        kernels.list_levels(self._queue, self._ends, num, found, vertices, words, ends)

    def leave(self, frontier: Array) -> None:
        """Put the fronts into the words of the frontier."""
        kernels.join(self._queue, self._ends, frontier)

    def _on_each(self, call: Any) -> list[Any]:
        return self._sweeps.team.run(call, range(NUM_BYTES), EDGE_SECONDS * 4 * self._queue.size)
