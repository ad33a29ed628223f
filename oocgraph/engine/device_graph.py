"""What a GPU worker holds of a graph: planes, row lookup and the first edges in device memory, more edges in pinned host memory.

In: arrays, stored or in memory. Out: those of a `DeviceAdjacency`. Everything goes to the device through two pinned buffers, so that the
host never holds a second copy.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from oocgraph.arrays import Device
from oocgraph.engine.resident import read_into
from oocgraph.engine.shard import Adjacency
from oocgraph.errors import DeviceError
from oocgraph.kernels.gpu import PLANE_ALIGNMENT, Lookup
from oocgraph.kernels.rows import Planes, RowLookup
from oocgraph.pool import Pool
from oocgraph.store.arrays import StoredArray
from oocgraph.types import PAGE_BYTES, Array

logger = logging.getLogger(__name__)

UPLOAD_BYTES = 4 << 20
"""One pinned buffer for loading."""

READ_BYTES = 1 << 20
"""One read of a loading thread."""

LINE_BYTES = 128
"""What the link moves at least when a kernel reads host memory (Min et al., "EMOGI", VLDB 2020, section 3)."""


@dataclass(slots=True, kw_only=True)
class DeviceAdjacency(Adjacency):
    """One direction of the graph, as kernels on a device take it.

    Attributes
    ----------
    lookup, heads, resident
        In device memory; planes each from a multiple of 32 entries on.
    host : (num_host,) index dtype
        The first edges, in pinned host memory; length 0 for none.
    mapped
        `host` as kernels take it.
    """

    host: Array
    mapped: Array

    @property
    def in_host_memory(self) -> bool:
        """Whether kernels can read all edges, on the device or in host memory."""
        return self.all_resident or int(self.host.size) == self.stored.length

    @property
    def page_bytes(self) -> int:
        """What is moved at least of the edges that are not on the device."""
        return LINE_BYTES if self.in_host_memory else PAGE_BYTES


class Uploader:
    """Brings arrays to the device through two pinned buffers. Use it in a ``with`` statement, whose end waits until all have arrived.

    After a failure, too: memory that is let go while a copy to it is under way goes to whatever is allocated next.

    Parameters
    ----------
    pool
        Threads that read.
    """

    def __init__(self, device: Device, pool: Pool) -> None:
        self._device, self._pool = device, pool
        self._stream = device.stream()
        self._buffers = [device.pinned(UPLOAD_BYTES) for _ in range(2)]
        self._free = [device.event() for _ in range(2)]
        self._count = 0

    def array(self, values: Array) -> Array:
        """Return a copy of a host array in device memory."""
        target = self._device.empty(values.size, values.dtype)
        self.fill(target, lambda a, out: np.copyto(out, values[a : a + out.size]))
        return target

    def first(self, array: StoredArray, count: int) -> Array:
        """Return the first elements of a stored array in device memory."""
        target = self._device.empty(count, array.dtype.newbyteorder("="))
        self.stored(array, 0, target)
        return target

    def stored(self, array: StoredArray, start: int, target: Array) -> None:
        """Read elements from `start` on into a device array."""
        self.fill(target, lambda a, out: read_into(array, start + a, out, self._pool, READ_BYTES))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, _kind: object, error: BaseException | None, _where: object) -> None:
        try:
            self._device.synchronize(self._stream)
        except DeviceError as other:
            if error is None:
                raise
            logger.warning("after a failure the device does not end its work: %s", str(other))

    def fill(self, target: Array, fill: Callable[[int, Array], None]) -> None:
        """Fill a device array piece by piece: ``fill(a, out)`` writes its elements from `a` on to pinned memory."""
        step = UPLOAD_BYTES // target.dtype.itemsize
        for a in range(0, target.size, step):
            slot, z = self._count % 2, min(target.size, a + step)
            if self._count >= 2:
                self._device.synchronize(self._free[slot])
            out = self._buffers[slot].view(target.dtype)[: z - a]
            fill(a, out)
            self._device.copy(out, target[a:z], self._stream)
            self._device.record(self._free[slot], self._stream)
            self._count += 1


def aligned_offsets(lengths: Array) -> Array:
    """Offsets of planes of the given lengths, each at a multiple of 32 entries: (num_planes + 1,) int64.

    Examples
    --------
    >>> aligned_offsets(np.array([40, 3])).tolist()
    [0, 64, 96]
    """
    padded = -(-np.asarray(lengths, np.int64) // PLANE_ALIGNMENT) * PLANE_ALIGNMENT
    return np.concatenate([[0], np.cumsum(padded)]).astype(np.int64)


def upload_lookup(uploader: Uploader, lookup: RowLookup) -> Lookup:
    """Bring a row lookup (see `oocgraph.kernels.rows`) to the device."""
    return Lookup(*(uploader.array(np.ascontiguousarray(part)) for part in lookup))


def upload_pointers(uploader: Uploader, indptr: StoredArray | Array) -> Lookup:
    """Bring explicit row pointers to the device, (num_rows + 1,) int64, from a store or from memory."""
    there = uploader.array(indptr) if isinstance(indptr, np.ndarray) else uploader.first(indptr, indptr.length)
    zero = uploader.array(np.zeros(1, np.int64))
    return Lookup(there, zero, zero, zero)


def upload_planes(device: Device, uploader: Uploader, lengths: Array, dtype: np.dtype[Any], read: Callable[[int, Array], None]) -> Planes:
    """Return planes on the device.

    Parameters
    ----------
    lengths : (num_planes + 1,) int64
        Vertices that each plane covers, and behind them those with a tail.
    read
        Called as ``read(k, target)`` to fill plane k's part of device memory.
    """
    offsets = aligned_offsets(lengths[:-1])
    planes = device.empty(int(offsets[-1]), dtype)
    for k, length in enumerate(lengths[:-1].tolist()):
        read(k, planes[int(offsets[k]) : int(offsets[k]) + length])
    return Planes(planes, uploader.array(offsets), uploader.array(np.asarray(lengths, np.int64)))
