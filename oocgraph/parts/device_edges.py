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
from oocgraph.engine.device_graph import Uploader, upload_pointers
from oocgraph.engine.device_state import num_words
from oocgraph.engine.staged import SplitEdges, StagedEdges, source_behind
from oocgraph.kernels import cpu
from oocgraph.kernels.gpu import GpuKernels
from oocgraph.kernels.gpu_parts import PartKernels
from oocgraph.plan.paths_residency import PathsResidency
from oocgraph.store.arrays import StoredArray
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
    """Whether no host thread needs an array for edges that it reads."""

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
            lookup, resident = upload_pointers(uploader, indptr), uploader.first(array, residency.num_resident)
        source = source_behind(array, residency.num_resident, stream_direct=False)
        self._edges, self._files = SplitEdges(lookup, [resident], [source], array.length), source.files
        try:
            self._staged = StagedEdges(device, kernels, residency, io_threads=io_threads, scratch_bytes=BUFFER_BYTES)
        except BaseException:
            self._close_files()
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
        subgraph, frontier, own = self._rows, np.zeros(self._frontier.size, np.uint64), seen[: self._seen.size]
        cpu.mark_vertices(rows, rows.size, frontier)
        self._staged.upload(frontier, self._frontier)
        self._staged.upload(own, self._seen)
        self._kernels.reset()
        subgraph.activate(self._frontier)

        def look(begin: Array, parts: list[Array], base: int, e0: int, e1: int) -> None:
            self._part.expand(subgraph, begin, e0, e1, parts[0], base, self._seen, self._found, self._found_from)

        self.num_bytes_read += self._staged.follow(subgraph, rows.size, self._edges, look).metrics.bytes_read
        count = self._part.num_found()
        found, found_from, now = self._staged.download_all(self._found[:count], self._found_from[:count], self._seen)
        own[:] = now
        return found, found_from

    def close(self) -> None:
        """End the threads, close the files, give device memory back; closing again does nothing."""
        if "_staged" in self.__dict__:
            device = self._device
            self._staged.close()
            self._close_files()
            self.__dict__.clear()
            device.close()

    def _close_files(self) -> None:
        if self._files is not None:
            self._files.close()
