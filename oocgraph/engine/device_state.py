"""The state of one search in device memory: visited bits, parents, levels and the frontier.

One set of arrays, made when the graph is loaded and used by one search after the other: nothing is allocated while searching.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from oocgraph.arrays import Device
from oocgraph.engine.device_graph import LINE_BYTES
from oocgraph.engine.state import SearchProgress
from oocgraph.kernels.gpu import GpuKernels, marks
from oocgraph.results.search import DeviceMetrics
from oocgraph.types import LEVEL_UNREACHED


def num_words(num_vertices: int) -> int:
    """Words of 64 bits of a bitmap."""
    return max(1, -(-num_vertices // 64))


class DeviceArrays:
    """The arrays of a search.

    Parameters
    ----------
    num_vertices
        Of the graph.
    num_owned
        Of the partition; `num_vertices` of a whole graph.

    Attributes
    ----------
    frontier : (num_words of all vertices,) uint64
        Active vertices, in store numbers.
    visited, undecided, active, found : (num_words of the owned,) uint64
        At the partition's positions: visited; what a pull has left; a copy of it from which rows are listed; what a pull has found.
    closed, pushed : (num_words of all vertices,) uint64
        In store numbers: what a push may not find; what it has found. Of a whole graph they are `visited` and `found`.
    parent : (num_owned,) index dtype
        Unset where not visited.
    level8, level32
        Views of one buffer, of which the search's `wide` says which is in use.
    """

    def __init__(self, device: Device, dtype: np.dtype[Any], num_vertices: int, num_owned: int | None = None) -> None:
        n, words = num_vertices, num_words(num_vertices)
        own = n if num_owned is None else num_owned
        own_words = num_words(own)
        self.frontier = device.empty(words, np.uint64)
        self.visited, self.undecided, self.active, self.found = (device.empty(own_words, np.uint64) for _ in range(4))
        self.closed, self.pushed = self.visited, self.found
        if num_owned is not None:
            self.closed, self.pushed = device.empty(words, np.uint64), device.empty(words, np.uint64)
        self.parent = device.empty(own, dtype)
        levels = device.empty(4 * max(1, own), np.uint8)
        self.level8, self.level32 = levels, levels.view(np.int32)


class DeviceState(SearchProgress):
    """How far a search on a device is; kernels write its arrays.

    Attributes
    ----------
    arrays
        In device memory.
    wide : bool
        Whether levels are int32 or one byte each.
    sample : tuple of int
        Vertices sampled, neighbours looked at for them, found, undecided: what a pull of this frontier would do.
    num_queued : int
        Vertices that the last push has listed in its queue; -1 or less than the frontier when that does not hold it.
    frontier_pull_edges : int
        Sum of the frontier's in-degrees.
    frontier_pages : int
        Pages (or lines) that a push of the frontier reads outside of device memory; None where they are not counted.
    tiny_from_host : bool
        Whether levels of few edges read them in host memory.
    """

    def __init__(self, kernels: GpuKernels, arrays: DeviceArrays, num_vertices: int, *, wide: bool) -> None:
        super().__init__(num_vertices)
        self._kernels, self.arrays, self.wide = kernels, arrays, wide
        self.sample = (0, 0, 0, 0)
        self.num_queued = -1
        self.frontier_pull_edges = 0
        self.frontier_pages: int | None = None
        self.tiny_from_host = False

    def clear(self) -> None:
        """Begin with nothing visited, and all counters 0; of a whole graph."""
        a = self.arrays
        self._kernels.clear_all(a.frontier, a.visited, a.found, self._kernels.counters)

    @property
    def marks(self) -> tuple[Any, ...]:
        """Where kernels note what this iteration finds."""
        a = self.arrays
        return marks(a.parent, a.level8, a.level32, wide=self.wide, level=self.level + 1)

    def widen_if_needed(self) -> None:
        """Turn to int32 levels before one appears that a byte cannot hold."""
        if not self.wide and self.level + 1 >= LEVEL_UNREACHED:
            self._kernels.widen_levels(self.arrays.level8, self.arrays.level32, self.num_vertices)
            self.wide = True

    def moved_in_tiny_level(self, num_vertices: int, num_edges: int) -> DeviceMetrics | None:
        """Return what kernels read of host memory in a level of few edges, a line for both ends of each row."""
        if not self.tiny_from_host:
            return None
        num_bytes = num_edges * self.arrays.parent.dtype.itemsize + num_vertices * LINE_BYTES
        return DeviceMetrics(access="zero-copy: few edges", link_bytes=num_bytes)

    def swap_frontier(self) -> None:
        """Make what has been found the frontier; of a whole graph."""
        a = self.arrays
        a.frontier, a.found = a.found, a.frontier
        a.pushed = a.found
