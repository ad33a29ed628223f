"""What a GPU worker holds of a graph: planes, row lookup and the first edges in device memory, more edges in pinned host memory.

In: a store and a `DeviceResidency`. Out: `DeviceGraph`. Everything goes to the device through two pinned buffers, so that the host never
holds a second copy.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from oocgraph.arrays import Device
from oocgraph.kernels.gpu import PLANE_ALIGNMENT, Lookup
from oocgraph.store.arrays import PlainArray, StoredArray
from oocgraph.store.fetched import ZarrArray
from oocgraph.subgraph.gather import EdgeFiles
from oocgraph.types import PAGE_BYTES, Array

UPLOAD_BYTES = 4 << 20
"""One pinned buffer for loading."""

READ_BYTES = 1 << 20
"""One read of a loading thread."""

LINE_BYTES = 128
"""What the link moves at least when a kernel reads host memory (Min et al., "EMOGI", VLDB 2020, section 3)."""


@dataclass(slots=True)
class DeviceAdjacency:
    """One direction of the graph, as kernels on a device take it.

    Attributes
    ----------
    stored
        ``indices`` on disk.
    lookup
        Of the rows, in device memory.
    planes : index dtype
        In device memory, each from a multiple of 32 entries on.
    plane_offset, plane_length : (num_planes + 1,) int64
        In device memory.
    resident : (num_resident,) index dtype
        The first edges, in device memory.
    host : (num_host,) index dtype
        The first edges, in pinned host memory; length 0 for none.
    mapped
        `host` as kernels take it.
    files
        Open chunk files; None when nothing is read from them.
    num_rows
        Rows that the lookup covers.
    share
        Their share of the edges.
    """

    stored: StoredArray
    lookup: Lookup
    planes: Array
    plane_offset: Array
    plane_length: Array
    resident: Array
    host: Array
    mapped: Array
    files: EdgeFiles | None
    num_rows: int
    share: float = 1.0

    @property
    def heads(self) -> tuple[Array, Array, Array]:
        """``planes, plane_offset, plane_length``."""
        return self.planes, self.plane_offset, self.plane_length

    @property
    def num_planes(self) -> int:
        """Planes resident."""
        return int(self.plane_length.size) - 1

    @property
    def num_edges(self) -> int:
        """Stored entries."""
        return self.stored.length

    @property
    def all_resident(self) -> bool:
        """Whether all edges are in device memory."""
        return int(self.resident.size) == self.stored.length

    @property
    def in_host_memory(self) -> bool:
        """Whether kernels can read all edges, on the device or in host memory."""
        return self.all_resident or int(self.host.size) == self.stored.length

    @property
    def page_bytes(self) -> int:
        """What is moved at least of the edges that are not on the device."""
        return LINE_BYTES if self.in_host_memory else PAGE_BYTES

    @property
    def page_shift(self) -> int:
        """Binary logarithm of the edges in it."""
        return (self.page_bytes // self.stored.dtype.itemsize).bit_length() - 1

    @property
    def disk_pages(self) -> int:
        """Such pages that the edges outside of device memory fill."""
        return -int(-(self.stored.length - self.resident.size) * self.stored.dtype.itemsize * self.share // self.page_bytes)


@dataclass(slots=True)
class DeviceGraph:
    """Both directions; one adjacency serves both when the graph is undirected."""

    push: DeviceAdjacency
    pull: DeviceAdjacency
    load_seconds: float
    held: list[DeviceAdjacency] = field(default_factory=list)

    def close(self) -> None:
        """Close the files and let go of the memory."""
        for adjacency in {id(one): one for one in (*self.held, self.push, self.pull)}.values():
            if adjacency.files is not None:
                adjacency.files.close()
        self.held.clear()


class Uploader:
    """Brings arrays to the device through two pinned buffers.

    Parameters
    ----------
    pool
        Threads that read.
    """

    def __init__(self, device: Device, pool: ThreadPoolExecutor) -> None:
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

    def stored(self, array: StoredArray, start: int, target: Array) -> None:
        """Read elements from `start` on into a device array."""
        self.fill(target, lambda a, out: read_into(array, start + a, out, self._pool))

    def finish(self) -> None:
        """Wait until everything has arrived."""
        self._device.synchronize(self._stream)

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


def read_into(array: StoredArray, start: int, out: Array, pool: ThreadPoolExecutor) -> None:
    """Read elements from `start` on, with several threads."""
    step = max(1, READ_BYTES // array.dtype.itemsize)
    if isinstance(array, ZarrArray):  # which decodes whole chunks
        step = max(step, array.chunk_length)

    def load(a: int) -> None:
        z = min(out.size, a + step)
        if isinstance(array, PlainArray):
            array.read_into(start + a, out[a:z])
        else:
            out[a:z] = array.read(start + a, start + z)

    for _ in pool.map(load, range(0, out.size, step)):
        continue


def aligned_offsets(lengths: Array) -> Array:
    """Offsets of planes of the given lengths, each at a multiple of 32 entries: (num_planes + 1,) int64.

    Examples
    --------
    >>> aligned_offsets(np.array([40, 3])).tolist()
    [0, 64, 96]
    """
    padded = -(-np.asarray(lengths, np.int64) // PLANE_ALIGNMENT) * PLANE_ALIGNMENT
    return np.concatenate([[0], np.cumsum(padded)]).astype(np.int64)


def upload_lookup(uploader: Uploader, lookup: tuple[Array, Array, Array, Array]) -> Lookup:
    """Bring a row lookup (see `oocgraph.kernels.rows`) to the device."""
    return Lookup(*(uploader.array(np.ascontiguousarray(part)) for part in lookup))


def upload_planes(
    device: Device, uploader: Uploader, lengths: Array, dtype: np.dtype[Any], read: Callable[[int, Array], None]
) -> tuple[Array, Array, Array]:
    """Return ``planes, plane_offset, plane_length`` on the device.

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
    return planes, uploader.array(offsets), uploader.array(np.asarray(lengths, np.int64))
