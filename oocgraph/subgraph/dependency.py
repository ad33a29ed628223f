"""Dependency subgraphs on a GPU: which rows an iteration needs from outside of device memory, compacted there without the host.

In: a bitmap of active vertices. Out: batches of rows, as ``vertex, start, degree, offset`` in device memory (``kernels/cuda/subgraph.cu``),
whose edges host threads then gather or kernels read where they are. Reference: Sabet, Zhao, Gupta, "Subway", EuroSys 2020, section 3.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from oocgraph.arrays import Device
from oocgraph.kernels.gpu import SCAN_TILE, GpuKernels, Lookup
from oocgraph.types import Array


class DependencySubgraph:
    """Room for one batch of rows, made once.

    Parameters
    ----------
    kernels
        Of the device.
    num_words
        Words of 64 bits of the longest bitmap.
    capacity
        Rows in a batch.

    Attributes
    ----------
    positions : (2 * num_words + 1,) int64
        Vertices active before each 32-bit word.
    vertex : (capacity,) index dtype
        Rows of the batch; the kernels' counter NUM_ROWS says how many.
    start, degree : (capacity,) int64
        Where in ``indices`` the part of each row begins that is asked for; its length.
    offset : (capacity + 1,) int64
        Exclusive prefix sums of `degree`.
    """

    def __init__(self, device: Device, kernels: GpuKernels, num_words: int, capacity: int) -> None:
        self._kernels, self.capacity = kernels, capacity
        self.positions = device.empty(2 * num_words + 1, np.int64)
        self.vertex = device.empty(capacity, kernels.dtype)
        self.start = device.empty(capacity, np.int64)
        self.degree = device.empty(capacity, np.int64)
        self.offset = device.empty(capacity + 1, np.int64)
        self._tile_sum = device.empty(num_tiles(num_words, capacity), np.int64)

    def activate(self, active: Array) -> None:
        """Find the position of each active vertex: (num_words,) uint64, which must not change before the last batch is listed."""
        self._active = active
        self._kernels.exclusive_sum_marked(active, self._tile_sum, self.positions)

    def list_rows(self, row0: int) -> None:
        """List the active vertices from the `row0`-th on, as many as there is room for."""
        self._kernels.list_rows(self._active, self.positions, row0, self.capacity, self.vertex)

    def ask(self, most: int, lookup: Lookup, **part: Any) -> None:
        """Ask for a part of each listed row (at most `most` of them): see `GpuKernels.mask_degrees`."""
        self._kernels.mask_degrees(self.vertex, most, lookup, self.start, self.degree, **part)
        self._kernels.exclusive_sum(self.degree, most, self._tile_sum, self.offset)


def num_tiles(num_words: int, capacity: int) -> int:
    """Entries that the first pass of a prefix sum needs."""
    return max(1, -(-2 * num_words // SCAN_TILE), -(-capacity // SCAN_TILE))


def subgraph_bytes(num_words: int, capacity: int, itemsize: int) -> int:
    """Device bytes of a `DependencySubgraph`."""
    return 8 * (2 * num_words + 1) + capacity * (itemsize + 24) + 8 + 8 * num_tiles(num_words, capacity)
