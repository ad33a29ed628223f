"""Dependency subgraphs on a GPU: which rows an iteration needs from outside of device memory, compacted there without the host.

In: a bitmap of active vertices. Out: batches of rows, as ``vertex, start, offset`` in device memory (``kernels/cuda/subgraph.cu``), each in
one launch; their edges are then gathered by host threads, or read by kernels where they are. Reference: Sabet, Zhao, Gupta, "Subway",
EuroSys 2020, section 3.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from oocgraph.arrays import Device
from oocgraph.kernels.gpu import LAUNCH_BITS, TILE_WORDS, Counter, GpuKernels, Lookup, Part
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
    vertex : (capacity,) index dtype
        Rows of the batch; the kernels' counter NUM_ROWS says how many.
    start : (capacity,) int64
        Where in ``indices`` the part of each row begins that is asked for.
    offset : (capacity + 1,) int64
        Exclusive prefix sums of the lengths of these parts.
    """

    def __init__(self, device: Device, kernels: GpuKernels, num_words: int, capacity: int) -> None:
        self._kernels, self.capacity = kernels, capacity
        self.vertex = device.empty(capacity, kernels.dtype)
        self.start = device.empty(capacity, np.int64)
        self.offset = device.empty(capacity + 1, np.int64)
        self._tiles = device.empty(1 + 3 * max(1, -(-2 * num_words // TILE_WORDS)), np.uint64)
        kernels.clear_all(self._tiles)
        self._launches = 0
        self._active: Array = self._tiles[:0]
        self._row0 = 0

    def activate(self, active: Array) -> None:
        """Take the batches of these vertices from now on: (num_words,) uint64, which must not change before the last batch is listed."""
        self._active, self._row0 = active, 0

    def list_rows(self, row0: int, vertex: Array | None = None) -> None:
        """List the active vertices from the `row0`-th on, as many as there is room for, in the batch or in another array."""
        self._row0, into = row0, self.vertex if vertex is None else vertex
        self._list(row0=row0, capacity=into.size, vertex=into)

    def ask(self, lookup: Lookup, *, row0: int | None = None, count_shift: int = 0, **part: Any) -> None:
        """List the rows from the `row0`-th active vertex on, by default those listed last, and ask for a part of each (see `Part`).

        NUM_PAGES gets the distinct pages of ``1 << count_shift`` edges that the parts lie in.
        """
        row0 = self._row0 if row0 is None else row0
        self._list(
            row0=row0, capacity=self.capacity, vertex=self.vertex, rows=(self.start, self.offset), lookup=lookup, part=Part(**part),
            count_shift=count_shift,
        )  # fmt: skip

    def count_pages(self, active: Array, lookup: Lookup, *, count_shift: int, first_pages_only: bool = False, slot: Counter,
                    most: int = -1, **part: Any) -> None:  # fmt: skip
        """Count the pages that parts of the rows of all `active` vertices lie in, listing nothing; see `GpuKernels.list_subgraph`."""
        self.activate(active)
        self._list(lookup=lookup, part=Part(**part), count_shift=count_shift, first_pages_only=first_pages_only, most=most, page_slot=slot)

    def _list(self, **options: Any) -> None:
        self._launches += 1
        if self._launches == 1 << LAUNCH_BITS:  # numbers are used again
            self._kernels.clear_all(self._tiles)
            self._launches = 1
        self._kernels.list_subgraph(self._active, self._tiles, self._launches, **options)
