"""Units in which levels count shortest paths: numbers of paths may be more than float64 can tell.

In: levels as they are found, one after the other, and on the way back. Out: numbers of paths that are not huge, and what depends on a level
in the unit of the one before it. Only the ratios of numbers of paths on levels that are next to each other are used.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from oocgraph.algorithms.lone_paths import too_many_paths
from oocgraph.engine.sweeps import Sweeps
from oocgraph.kernels import betweenness as kernels
from oocgraph.kernels.betweenness import WORD
from oocgraph.types import Array


class PathScales:
    """The levels that are scaled.

    Parameters
    ----------
    sweeps
    over_vertices
        Calls a kernel for ranges of vertices, and returns what it returns.
    num_levels
        Levels that there may be.

    Attributes
    ----------
    lanes : (num_levels,) uint8
        Those in which a level is scaled.
    """

    def __init__(self, sweeps: Sweeps, over_vertices: Callable[..., list[Any]], num_levels: int) -> None:
        self._sweeps, self._over_vertices = sweeps, over_vertices
        self.lanes: Array = np.zeros(num_levels, WORD)

    def keep_small(self, depth: int, front: Array, paths: Array, are_small: bool) -> None:
        """Scale the numbers of paths of a level, which is the front, in the lanes in which any is huge, unless they are small.

        Raises
        ------
        ArgumentError
            Others on this level would be too small.
        """
        if are_small:
            return
        self.lanes[depth] = np.bitwise_or.reduce(self._over_vertices(kernels.find_huge, front, paths))
        if not all(self._over_vertices(kernels.scale_down, front, paths, WORD(self.lanes[depth]))):
            raise too_many_paths(self._sweeps.store)

    def match(self, depth: int, front: Array, paths: Array) -> None:
        """Scale what depends on a level, which is the front, as its numbers of paths are: those before it are not."""
        if self.lanes[depth]:
            self._over_vertices(kernels.scale_down, front, paths, WORD(self.lanes[depth]))

    def num_together(self, depth: int, are_too_many: Array) -> int:
        """Return how many levels, from one down, can be passed together: up to the next that is scaled.

        Parameters
        ----------
        are_too_many : (num_levels,) bool
            Whether levels up to there are too large, from `depth` down.
        """
        scaled = self.lanes[depth : depth - are_too_many.size : -1] if depth > are_too_many.size else self.lanes[depth:0:-1]
        is_behind = np.append(False, np.logical_or.accumulate(scaled[:-1] != 0))
        return int(np.argmax(np.append(are_too_many | is_behind, True)))
