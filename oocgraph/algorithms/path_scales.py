"""Scales of the levels of a search, so that float64 holds numbers of shortest paths above its largest value.

In: each level as it is found, and again on the way back. Out: the level's numbers of paths, multiplied by a power of two if one of them is
huge, and its dependencies in the scale of the level before. Betweenness needs only ratios of numbers of paths on adjacent levels.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from oocgraph.algorithms.lone_paths import too_many_paths
from oocgraph.engine.sweeps import Sweeps
from oocgraph.kernels import betweenness as kernels
from oocgraph.kernels.betweenness import WORD
from oocgraph.types import Array

VERTEX_SECONDS = 1e-8
"""About what a vertex takes when its levels or paths are looked at."""


def over_vertices(sweeps: Sweeps, kernel: Any, *arguments: Any) -> list[Any]:
    """Return what a kernel makes of ranges of all vertices."""
    return sweeps.vertices(lambda start, stop: kernel(*arguments, start, stop), VERTEX_SECONDS * sweeps.store.num_rows)


class PathScales:
    """Scales of the levels of one search from several sources.

    Parameters
    ----------
    sweeps
        Over the graph that is searched.
    num_levels
        Largest number of levels.

    Attributes
    ----------
    lanes : (num_levels,) uint8
        Lanes in which each level is scaled.
    """

    def __init__(self, sweeps: Sweeps, num_levels: int) -> None:
        self._sweeps = sweeps
        self.lanes: Array = np.zeros(num_levels, WORD)

    def keep_small(self, depth: int, front: Array, paths: Array, *, are_small: bool) -> None:
        """Scale the numbers of paths of a level, which is the front, in the lanes that have a huge one, unless `are_small`.

        Raises
        ------
        ArgumentError
            The smallest numbers of the level would become too small.
        """
        if are_small:
            return
        self.lanes[depth] = np.bitwise_or.reduce(over_vertices(self._sweeps, kernels.find_huge, front, paths))
        if not all(over_vertices(self._sweeps, kernels.scale_down, front, paths, WORD(self.lanes[depth]))):
            raise too_many_paths(self._sweeps.store)

    def match(self, depth: int, front: Array, paths: Array) -> None:
        """Bring the dependencies of a level, which is the front, to the scale of the level before it."""
        if self.lanes[depth]:
            over_vertices(self._sweeps, kernels.scale_down, front, paths, WORD(self.lanes[depth]))

    def num_together(self, depth: int, are_too_many: Array) -> int:
        """Return how many levels, counted down from `depth`, one call may pass: the first scaled one is the last of them.

        Parameters
        ----------
        are_too_many : (num_levels,) bool
            For each level from `depth` down, whether the levels up to it are too large for one call.
        """
        scaled = self.lanes[depth : depth - are_too_many.size : -1] if depth > are_too_many.size else self.lanes[depth:0:-1]
        is_behind = np.append(False, np.logical_or.accumulate(scaled[:-1] != 0))
        return int(np.argmax(np.append(are_too_many | is_behind, True)))
