"""The edges of one part of a partitioned graph on a GPU, which expands its frontiers.

In: ``indices`` of a part, its row pointers, device memory. Out: `DeviceLocalEdges`, in place of `oocgraph.parts.local_edges.LocalEdges`:
as many edges as fit are in device memory, the others come through staging buffers when rows in a frontier have them. Bitmaps of what has
been seen and of the frontier go to the device for each level, what it finds comes back as a list, with the row of each: who is a master,
and where messages to the others go, the host knows alone.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from oocgraph.arrays import Device
from oocgraph.engine.cpu_engine import BUFFER_BYTES
from oocgraph.engine.device_graph import DeviceAdjacency, Uploader
from oocgraph.engine.device_state import num_words
from oocgraph.engine.shard import close_files
from oocgraph.engine.staged import StagedEdges, source_of
from oocgraph.kernels import cpu
from oocgraph.kernels.gpu import Counter, GpuKernels, Lookup
from oocgraph.kernels.gpu_parts import PartKernels
from oocgraph.kernels.rows import Planes
from oocgraph.plan.paths_residency import PathsResidency
from oocgraph.store.arrays import PlainArray, StoredArray
from oocgraph.store.gather import EdgeFiles
from oocgraph.subgraph.dependency import DependencySubgraph
from oocgraph.types import Array


class DeviceLocalEdges:
    """Edges of one part, on a device.

    Parameters
    ----------
    array
        ``indices`` of the part.
    indptr : (num_rows + 1,) int64
        Its row pointers.
    device
        Where they go.
    residency
        What is where; charged by the caller.
    pool
        Threads that read while they are loaded.
    io_threads
        Threads that read edges which do not fit.

    Attributes
    ----------
    num_bytes_read : int
        Bytes requested of the part's files by searches.
    device_bytes : int
        Held of the device's memory.
    """

    all_resident = True
    """Whether no host thread needs a `oocgraph.parts.local_edges.Staging`."""

    def __init__(
        self, array: StoredArray, indptr: Array, device: Device, residency: PathsResidency, *, pool: Any, io_threads: int
    ) -> None:  # fmt: skip
        self.device_bytes = residency.device_bytes
        self.dtype, self.num_bytes_read, self.indptr, self._device = array.dtype.newbyteorder("="), 0, indptr, device
        kernels = self._kernels = GpuKernels(device, self.dtype)
        num_rows = indptr.size - 1
        words = num_words(num_rows)
        self._part = PartKernels(device, kernels)
        self._seen, self._frontier = (device.empty(words, np.uint64) for _ in range(2))
        self._found, self._found_from = (device.empty(max(1, num_rows), self.dtype) for _ in range(2))
        self._rows = DependencySubgraph(device, kernels, words, residency.row_capacity)
        with Uploader(device, pool) as uploader:
            there, zero = uploader.array(indptr), uploader.array(np.zeros(1, np.int64))
            resident = device.empty(residency.num_resident, self.dtype)
            uploader.stored(array, 0, resident)
        files = None
        if residency.num_resident < array.length and isinstance(array, PlainArray):
            files = EdgeFiles(array, stream_direct=False)
        none = device.pinned(0).view(self.dtype)
        no_planes = Planes(resident[:0], zero, zero)
        lookup = Lookup(there, zero, zero, zero)
        self._edges = DeviceAdjacency(array, lookup, no_planes, resident, files, num_rows, host=none, mapped=resident[:0])
        try:
            self._staged = StagedEdges(device, kernels, residency, io_threads=io_threads, scratch_bytes=BUFFER_BYTES)
        except BaseException:
            close_files([self._edges])
            raise

    def expand(self, rows: Array, seen: Array) -> tuple[Array, Array]:
        """Follow the edges of some rows; returns the vertices that were not seen, which are then, and the row of each.

        Parameters
        ----------
        rows : (n,) uint32
            Ascending.
        seen : (num_words,) uint64
            Bits of all vertices of the part; changed.
        """
        kernels, subgraph, resident = self._kernels, self._rows, self._edges.resident
        frontier, own = np.zeros(self._frontier.size, np.uint64), seen[: self._seen.size]
        cpu.mark_vertices(rows, rows.size, frontier)
        self._staged.upload(frontier, self._frontier)
        self._staged.upload(own, self._seen)
        kernels.reset()
        subgraph.activate(self._frontier)

        def look(begin: Array, e0: int, e1: int, edges: Array, base: int) -> None:
            self._part.expand(subgraph, begin, e0, e1, edges, base, self._seen, self._found, self._found_from)

        for row0 in range(0, rows.size, subgraph.capacity):
            if resident.size:
                subgraph.ask(self._edges.lookup, row0=row0, high=resident.size)
                num_edges = int(kernels.read()[Counter.NUM_EDGES])
                if num_edges:
                    look(subgraph.start, 0, num_edges, resident, 0)
            if resident.size < self._edges.stored.length:
                subgraph.ask(self._edges.lookup, row0=row0, low=resident.size)
                counts = kernels.read()
                num_rows, num_edges = int(counts[Counter.NUM_ROWS]), int(counts[Counter.NUM_EDGES])
                if num_edges:
                    self._staged.fetch(subgraph, num_rows)
                    self._device.synchronize(kernels.stream)
                    metrics = self._staged.run(
                        [source_of(self._edges)],
                        self._edges.num_edges,
                        num_rows,
                        num_edges,
                        lambda parts, e0, e1: look(subgraph.offset, e0, e1, parts[0], e0),
                    )
                    self.num_bytes_read += metrics.bytes_read
        count = self._part.num_found()
        found, found_from, now = self._staged.download_all(self._found[:count], self._found_from[:count], self._seen)
        own[:] = now
        return found, found_from

    def close(self) -> None:
        """End the threads, close the files, give device memory back; closing again does nothing."""
        if "_staged" in self.__dict__:
            device = self._device
            self._staged.close()
            close_files([self._edges])
            self.__dict__.clear()
            device.close()
