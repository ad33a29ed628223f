"""Shortest paths from eight sources at once, counted and passed back, out of core: what betweenness is made of.

In: sweeps over a graph, sources as store numbers. Out: of each vertex what depends on it, added up. A sweep against the edges finds a level
and adds up numbers of paths; levels are stored, and a sweep along the edges finds what depends on a level from those on the next one.
Levels of few vertices are listed and passed in one call, by one thread, where the rows stay in memory: see
`oocgraph.algorithms.source_words`; rows that do not are read by themselves (`oocgraph.algorithms.path_rows`). Where sources share little,
each goes on alone (`oocgraph.algorithms.lone_paths`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from oocgraph.algorithms.lone_paths import LonePaths, too_long_paths
from oocgraph.algorithms.path_rows import PathRows
from oocgraph.algorithms.path_scales import PathScales, over_vertices
from oocgraph.engine.sweeps import Lists, Sweeps
from oocgraph.kernels import betweenness as kernels
from oocgraph.kernels.betweenness import LANES, WORD
from oocgraph.kernels.lone_paths import count_found
from oocgraph.kernels.piece_rows import DONE, MISSING
from oocgraph.types import Array

UNSEEN = np.iinfo(np.uint16).max
"""Level of a vertex that has not been found; others are below."""

MARKED_SHARE = 1 / 32
"""Share of all edges below which those of a level mark its neighbours, so that only these rows, and pieces that have any, are looked at."""

LISTED_SHARE, LEAST_LISTED = 4, 1 << 14
"""Of the vertices one in so many, or so many, are the vertices and edges of a level that is listed at the most."""

ALONE_LEVELS, ALONE_SHARE = 64, 2
"""Levels after which it is seen whether sources share few rows: of those that are found, fewer than so many sources find each."""

LISTED_LEVELS, LEAST_LEVELS = 1 << 10, 4
"""Levels that are passed in one call, at the most; on the way back, from how many on that is done."""


def most_listed(num_vertices: int) -> int:
    """Return how many vertices and edges a level that is listed has at the most."""
    return max(LEAST_LISTED, num_vertices // LISTED_SHARE)


class PathCounts:
    """Shortest paths from the sources that have been added.

    Attributes
    ----------
    centrality : (num_vertices,) float64
        Sum of what depends on each vertex.
    depth : int
        The last level that any vertex is on.
    """

    def __init__(self, sweeps: Sweeps) -> None:
        n = sweeps.store.num_rows
        self._sweeps, self._rows, self._most, self.depth = sweeps, PathRows(sweeps), most_listed(n), 0
        self._paths: Array = np.zeros((n, LANES))
        self._level: Array = np.zeros((LANES, n), np.uint16)
        self._front, self._next, self._unseen = (np.zeros(n, WORD) for _ in range(3))
        self.centrality: Array = np.zeros(n)
        self._sizes: Array = np.zeros((UNSEEN + 1, 2), np.int64)  # of each level: vertices, and entries of their rows
        self._scales = PathScales(sweeps, UNSEEN + 1)
        self._out = sweeps.table("out")
        self._in = sweeps.table("in") if sweeps.store.attributes.directed else self._out
        self._vertices, self._words = np.empty((2, self._most), np.int64), np.empty(2 * self._most, WORD)
        self._alone: LonePaths | None = None
        self._may_part = sweeps.num_spared > 0

    def add(self, sources: Array, *, endpoints: bool) -> None:
        """Add those from at most `LANES` sources."""
        used = WORD((1 << sources.size) - 1)
        depth = self._add_together(sources, used) if self._alone is None else None
        if depth is None:
            self._alone = self._alone or LonePaths(self._sweeps, (self._out, self._in), UNSEEN)
            depth = self._alone.add(sources, self._level, self._paths.reshape(LANES, -1), self.centrality)
            if endpoints:
                over_vertices(self._sweeps, kernels.find_level, self._level, UNSEEN, self._unseen)
        self.depth = max(self.depth, depth)
        if endpoints:
            counts = over_vertices(self._sweeps, kernels.count_ends, self._unseen, used, self.centrality)
            self.centrality[sources] += np.sum(counts, axis=0)[: sources.size] - 2  # all begin there; it was counted as an end of one

    def _add_together(self, sources: Array, used: Any) -> int | None:
        """Add those from sources that go from level to level together; returns the last one, or None if each had better go alone."""
        lanes = np.arange(sources.size)
        for array, value in ((self._level, UNSEEN), (self._front, 0), (self._next, 0), (self._unseen, used)):
            array.fill(value)
        self._front[sources] = 1 << lanes
        self._unseen[sources] ^= self._front[sources]
        self._paths[sources, lanes] = 1
        self._scales.lanes.fill(0)
        self._sizes[0] = sources.size, 0
        depth = self._count(sources.size)
        if depth is not None:
            self._accumulate(depth)
        return depth

    def rescale(self, factor: float) -> None:
        """Multiply `centrality` by a factor."""
        over_vertices(self._sweeps, kernels.rescale, self.centrality, factor)

    def _count(self, num_sources: int) -> int | None:
        """Count shortest paths, level by level; returns the last one, whose lanes are in `_front`. Of each level notes the size.

        None, if after some levels each source had better go alone.
        """
        depth = 0
        while depth < UNSEEN:
            if self._may_part and depth >= ALONE_LEVELS:
                self._may_part = False
                found = sum(over_vertices(self._sweeps, count_found, self._level[:num_sources], UNSEEN))
                if found < ALONE_SHARE * self._sizes[1 : depth + 1, 0].sum():
                    return None
            if depth and self._is_small(depth):  # the neighbours of sources are often many
                num, is_over = self._count_listed(depth)
                depth += num
                if is_over:
                    return depth
            if depth < UNSEEN and not self._count_level(depth + 1):
                return depth
            depth += 1
        raise too_long_paths(self._sweeps.store, UNSEEN)

    def _count_level(self, depth: int) -> bool:
        """Find a level by sweeps; returns whether it has any vertices."""
        if self._sizes[depth - 1, 1] < self._sweeps.store.attributes.num_stored_edges * MARKED_SHARE:
            self._next.fill(0)
            self._pull(kernels.mark_neighbours, [self._unseen, self._next], [self._front], lists="out", only=self._front)
        else:
            np.copyto(self._next, self._unseen)
        whole, mine = [self._front, self._paths], [self._next, self._unseen]
        calls = self._pull(kernels.count_paths, whole, mine, [self._level, depth], only=self._next)
        self._sizes[depth] = [sum(call[i] for call in calls) for i in range(2)]
        if self._sizes[depth, 0]:
            self._front, self._next = self._next, self._front
            self._scales.keep_small(depth, self._front, self._paths, are_small=all(are_small for *_, are_small in calls))
        return bool(self._sizes[depth, 0])

    def _count_listed(self, depth: int) -> tuple[int, bool]:
        """Find the levels after one that are small; returns how many, and whether there are no more at all."""
        most, num = min(UNSEEN, depth + (ALONE_LEVELS if self._may_part else LISTED_LEVELS)) - depth, 0
        self._next.fill(0)
        num_front = kernels.list_front(self._front, self._vertices[0])
        while num < most:
            more, why, is_out, piece, are_small, num_front = kernels.count_listed(
                self._out.pieces, self._in.pieces, self._front, self._paths, self._next, self._unseen, self._level, depth + num + 1,
                self._vertices, num_front, self._sizes[depth + num + 1 :], most - num,
            )  # fmt: skip
            num, table = num + more, self._out if is_out else self._in
            self._scales.keep_small(depth + num, self._front, self._paths, are_small=are_small)
            if are_small and why != MISSING:
                return num, why == DONE
            if more:
                for one in {self._out, self._in}:
                    one.found(int(self._sizes[depth + num - more + 1 : depth + num + 1, 0].sum()))
            if are_small and not table.bring(piece):
                more, is_over, are_small = self._rows.count(
                    self._front, self._paths, self._next, self._unseen, self._level, depth + num + 1, self._vertices,
                    self._sizes[depth + num : depth + most + 1],
                )  # fmt: skip
                self._scales.keep_small(depth + num + more, self._front, self._paths, are_small=are_small)
                return num + more, is_over
        return num, False

    def _accumulate(self, last: int) -> None:
        """Add up dependencies, from the last level but one to the first; on the sources themselves none counts."""
        over_vertices(self._sweeps, kernels.invert_last, self._front, self._paths)
        self._scales.match(last, self._front, self._paths)
        depth = last - 1
        while depth > 0:
            num, is_done = self._add_listed(depth)
            depth -= num
            if num:
                self._scales.match(depth + 1, self._front, self._paths)
            if not is_done:
                over_vertices(self._sweeps, kernels.find_level, self._level, depth, self._next)
                mine = [self._next, self.centrality]
                self._pull(kernels.add_dependencies, [self._front, self._paths], mine, lists="out", only=self._next)
                self._front, self._next = self._next, self._front
                self._scales.match(depth, self._front, self._paths)
                depth -= 1

    def _add_listed(self, depth: int) -> tuple[int, bool]:
        """Add up dependencies on a level and those before it that are small; returns how many, and whether all of these are done."""
        if depth < LEAST_LEVELS or not all(self._is_small(depth - i) for i in range(LEAST_LEVELS)):
            return 0, False
        vertices, table, sizes = self._vertices.reshape(-1), self._out, self._sizes[depth : max(0, depth - LISTED_LEVELS) : -1]
        num = self._scales.num_together(depth, (sizes.sum(axis=1) > self._most) | (np.cumsum(sizes[:, 0]) > vertices.size))
        ends = np.append(0, np.cumsum(sizes[num - 1 :: -1, 0]))
        kernels.list_levels(self._level, depth - num + 1, vertices, self._words, ends)
        done, why = 0, MISSING
        self._next.fill(0)
        while why == MISSING and done < num:
            more, why, piece = kernels.add_listed(
                table.pieces, self._front, self._paths, self._next, self.centrality, vertices, self._words, ends[: num - done + 1],
                self._most,
            )  # fmt: skip
            if more:
                self._front, self._next = self._next, self._front
                self._next.fill(0)
                table.found(int(ends[num - done] - ends[num - done - more]))
            done += more
            if why == MISSING and not table.bring(piece):
                one = slice(*ends[num - done - 1 : num - done + 1].tolist())
                if not self._rows.add(vertices[one], self._words[one], self._front, self._paths, self.centrality):
                    break
                done += 1
        return done, done == num

    def _pull(
        self, kernel: Any, whole: list[Array], mine: list[Array], scalars: Sequence[Any] = (), *, lists: Lists = "in", only: Array
    ) -> list[Any]:  # fmt: skip
        """`Sweeps.pull` of pieces with rows that have a lane in `only`."""
        return self._sweeps.pull(kernel, whole, mine, scalars, lists=lists, only=lambda a, z: bool(only[a:z].any()))

    def _is_small(self, depth: int) -> bool:
        return bool(self._sizes.item(depth, 0) + self._sizes.item(depth, 1) <= self._most)
