"""Levels of few vertices of shortest paths from several sources, whose rows do not stay in memory and are read by themselves.

In: the front of `oocgraph.algorithms.path_counts`, as a list. Out: the levels behind it, or what depends on one. To read all edges for a
level would take longer. A row adds its neighbours up as in a sweep, so that no bit of a result depends on how it was read.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from oocgraph.engine.sweeps import LEAST_READ, READ_ENTRIES, READ_ROWS, READ_SHARE, Lists, Sweeps, longest_list
from oocgraph.kernels import betweenness as kernels
from oocgraph.lazy import cached_property
from oocgraph.types import Array

LEVEL_BYTES = 40
"""For each vertex of a level: its number in three lists (the front, its neighbours, those that are found), sorting and comparing these."""

Read = tuple[Array, Array, Array]
"""Vertices, and their rows: ``indices[offset[i]:offset[i + 1]]`` is that of the i-th."""


def rows_bytes(num_vertices: int) -> int:
    """Return what a level holds that is read by rows, beside these."""
    return LEVEL_BYTES * max(LEAST_READ, num_vertices // READ_SHARE)


class PathRows:
    """Reads rows of levels.

    Parameters
    ----------
    sweeps
        Of the lists ``out`` and ``in``, with `Needs.selects`.
    """

    def __init__(self, sweeps: Sweeps) -> None:
        self._sweeps, self._is_directed = sweeps, sweeps.store.attributes.directed

    def count(
        self, front: Array, paths: Array, new: Array, unseen: Array, level: Array, depth: int, vertices: Array,
        sizes: Array,
    ) -> tuple[int, bool, bool]:  # fmt: skip
        """Find levels, as `oocgraph.kernels.betweenness.count_listed` does, one after the other.

        Parameters
        ----------
        front, paths, new, unseen, level, depth, vertices
            As there; the front is listed here.
        sizes : (num_levels + 1, 2) int64
            As there, but that of the front comes first.

        Returns
        -------
        (num, is_over, are_small): levels that are found; whether there are no more at all, and else all levels were found, or rows are too
        many, or a number of paths is huge, which comes last.
        """
        here, room = vertices[0, : kernels.list_front(front, vertices[0])], vertices[1]
        held: list[Read] = []
        for num in range(len(sizes) - 1):
            if not self._may_read(here.size, "out") or self._work(here, sizes[num]) > room.size:
                return num, False, True
            top = 0
            for those, offset, indices in held or self._read(here, "out"):
                top = kernels.mark_read(those, offset, indices, front, unseen, new, room, top)
            if not self._may_read(top, "in"):
                new[room[:top]] = 0
                return num, False, True
            there = np.sort(room[:top])
            num_edges, are_small, num_read, held = 0, True, 0, []
            for one in self._read(there, "in"):
                more, those_are = kernels.count_read(*one, front, paths, new, unseen, level, depth + num)
                num_edges, are_small, num_read, held = num_edges + more, are_small and those_are, num_read + 1, [one]
            if num_read > 1 or self._is_directed:
                held = []  # else these rows are those of the next front, and of others that have no lane there
            found = there[new[there] != 0]
            if not found.size:
                return num, True, True
            front[here] = 0
            front[found] = new[found]
            new[found] = 0
            sizes[num + 1] = found.size, num_edges
            if not are_small:
                return num + 1, False, False
            here = found
        return len(sizes) - 1, False, True

    def add(self, vertices: Array, words: Array, front: Array, paths: Array, centrality: Array) -> bool:
        """Find how much depends on a level, as `oocgraph.kernels.betweenness.add_listed` does, and make it the front.

        Returns False if rows are too many.
        """
        if not self._may_read(vertices.size, "out"):
            return False
        start = 0
        for those, offset, indices in self._read(vertices, "out"):
            kernels.add_read(those, words[start : start + those.size], offset, indices, front, paths, centrality)
            start += those.size
        front.fill(0)
        front[vertices] = words
        return True

    def _may_read(self, num_rows: int, lists: Lists) -> bool:
        """Whether rows are few, and none of the graph is too long."""
        return num_rows <= self._sweeps.most_rows(lists) and self._longest <= READ_ENTRIES

    def _work(self, here: Array, size: Array) -> int:
        """Return how many vertices a level lists at the most: its own, and one for each edge that leaves it."""
        num_edges = self._sweeps.row_lengths(here, "out").sum() if self._is_directed else size[1]  # `sizes` counts rows ``in``
        return here.size + int(num_edges)

    def _read(self, vertices: Array, lists: Lists) -> Iterator[Read]:
        """Read rows, each once, in order, empty ones too."""
        for start in range(0, vertices.size, READ_ROWS):
            block = vertices[start : start + READ_ROWS]
            for which, offset, indices in self._sweeps.rows(block, lists, whole_rows=True):
                yield block[which], offset, indices

    @cached_property
    def _longest(self) -> int:
        return max(longest_list(self._sweeps.store, lists) for lists in ("out", "in"))
