"""Edges that host threads bring to a device: the rows of a batch come down, their edges go up.

In: a batch of rows in device memory. Out: launches of kernels on pieces of its edges in staging buffers, and the metrics of that. All
pinned memory of a search is here.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from oocgraph.arrays import Device
from oocgraph.engine.cpu_engine import DENSE_GAP_PAGES, DENSE_SHARE, SPARSE_GAP_PAGES
from oocgraph.engine.device_graph import DeviceAdjacency
from oocgraph.engine.transfers import Transfers
from oocgraph.kernels.gpu import GpuKernels
from oocgraph.plan.device_residency import DeviceResidency
from oocgraph.plan.paths_residency import PathsResidency
from oocgraph.store.gather import Gatherer
from oocgraph.store.row_gatherer import EdgeSource, RowGatherer
from oocgraph.subgraph.dependency import DependencySubgraph
from oocgraph.subgraph.staging import Stager, StagingMetrics
from oocgraph.types import Array


class StagedEdges:
    """Pinned memory, staging buffers and reading threads of a worker.

    Parameters
    ----------
    residency
        Says how large the buffers are, and how many rows a batch has.
    io_threads, scratch_bytes
        Reading threads, and the scratch buffer of each.
    """

    def __init__(
        self, device: Device, kernels: GpuKernels, residency: DeviceResidency | PathsResidency, *, io_threads: int, scratch_bytes: int
    ) -> None:
        self._device, self._kernels = device, kernels
        rows = residency.row_capacity
        self._start = device.pinned(8 * rows).view(np.int64)
        self._offset = device.pinned(8 * (rows + 1)).view(np.int64)
        self._transfers = Transfers(device, kernels.stream)
        self._stager = Stager(
            device,
            buffer_bytes=residency.buffer_bytes,
            num_buffers=residency.num_buffers,
            dtype=kernels.dtype,
            compute_stream=kernels.stream,
        )
        self._gatherer = Gatherer(io_threads, scratch_bytes)

    def fetch(self, rows: DependencySubgraph, most: int) -> None:
        """Copy the first rows of a batch to the host, at most `most`, in the stream's turn."""
        self._device.copy(rows.start[:most], self._start[:most], self._kernels.stream)
        self._device.copy(rows.offset[: most + 1], self._offset[: most + 1], self._kernels.stream)

    def run(self, adjacency: DeviceAdjacency, num_rows: int, num_edges: int, look: Callable[[Array, int, int], None]) -> StagingMetrics:
        """Gather the edges of the rows that were fetched, and call ``look(buffer, e0, e1)`` for each piece of them in a staging buffer.

        Raises
        ------
        CorruptStoreError
            A chunk cannot be read, or a page differs from its checksum; all threads and streams have ended by then.
        DeviceError
            The device failed.
        """
        start, offset = self._start[:num_rows], self._offset[: num_rows + 1]
        in_memory = adjacency.host.size == adjacency.num_edges
        stored = None if in_memory or adjacency.files is not None else adjacency.stored
        dense = num_edges > DENSE_SHARE * adjacency.num_edges
        gather = RowGatherer(
            self._gatherer,
            EdgeSource(adjacency.host, adjacency.files, stored),
            start,
            offset,
            gap_pages=DENSE_GAP_PAGES if dense else SPARSE_GAP_PAGES,
            stream=dense,
        )
        return self._stager.run(num_edges, gather, look)

    @property
    def gatherer(self) -> Gatherer:
        """The reading threads."""
        return self._gatherer

    def upload(self, source: Array, target: Array) -> None:
        """Bring a host array to the device, in the stream's turn."""
        self._transfers.upload(source, target)

    def download(self, source: Array) -> Array:
        """Return a device array on the host."""
        return self._transfers.download(source)[0]

    def download_all(self, *sources: Array) -> list[Array]:
        """Return device arrays on the host, their pieces one behind the other on the link."""
        return self._transfers.download(*sources)

    def close(self) -> None:
        """End the threads."""
        self._transfers.close()
        self._stager.close()
        self._gatherer.close()
        self.__dict__.clear()
