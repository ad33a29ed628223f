"""Edges that host threads bring to a device: the rows of a batch come down, their edges go up.

In: a batch of rows in device memory. Out: launches of kernels on pieces of its edges in staging buffers, and the metrics of that. All
pinned memory of a search is here.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

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

Look = Callable[[list[Array], int, int], None]
"""Launches kernels on a piece of a batch's edges; see `StagedEdges.run`."""


def source_of(adjacency: DeviceAdjacency) -> EdgeSource:
    """Return where the edges of a graph or a part come from that its device has not."""
    in_memory = adjacency.host.size == adjacency.num_edges
    return EdgeSource(adjacency.host, adjacency.files, None if in_memory or adjacency.files is not None else adjacency.stored)


def bits(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """Return the dtype by which elements of a size are gathered: unsigned integers; int64 of 8 bytes, as numbers of vertices are."""
    return np.dtype(np.int64) if dtype.itemsize == 8 else np.dtype(f"u{dtype.itemsize}")


class StagedEdges:
    """Pinned memory, staging buffers and reading threads of a worker.

    Parameters
    ----------
    residency
        Says how large the buffers are, and how many rows a batch has.
    io_threads, scratch_bytes
        Reading threads, and the scratch buffer of each.
    dtypes
        Of what an edge has: of its neighbour, and of more, such as a weight; by default the former alone.

    Attributes
    ----------
    edge_bytes : int
        Of all that an edge has.
    """

    def __init__(
        self, device: Device, kernels: GpuKernels, residency: DeviceResidency | PathsResidency, *, io_threads: int, scratch_bytes: int,
        dtypes: Sequence[np.dtype[Any]] | None = None,
    ) -> None:  # fmt: skip
        self._device, self._kernels, self._dtypes = device, kernels, dtypes or [kernels.dtype]
        sizes = [dtype.itemsize for dtype in self._dtypes]
        self.edge_bytes, self._order = sum(sizes), sorted(range(len(sizes)), key=lambda i: -sizes[i])
        rows = residency.row_capacity
        self._start = device.pinned(8 * rows).view(np.int64)
        self._offset = device.pinned(8 * (rows + 1)).view(np.int64)
        self._transfers = Transfers(device, kernels.stream)
        self._stager = Stager(
            device,
            buffer_bytes=residency.buffer_bytes // self.edge_bytes * self.edge_bytes,
            num_buffers=residency.num_buffers,
            dtype=np.uint8,
            compute_stream=kernels.stream,
        )
        self._gatherer = Gatherer(io_threads, scratch_bytes)

    def fetch(self, rows: DependencySubgraph, most: int) -> None:
        """Copy the first rows of a batch to the host, at most `most`, in the stream's turn."""
        self._device.copy(rows.start[:most], self._start[:most], self._kernels.stream)
        self._device.copy(rows.offset[: most + 1], self._offset[: most + 1], self._kernels.stream)

    def run(self, sources: Sequence[EdgeSource], num_stored: int, num_rows: int, num_edges: int, look: Look) -> StagingMetrics:
        """Gather the edges of the rows that were fetched, and call `look` for each piece of them in a staging buffer.

        Parameters
        ----------
        sources
            Where what an edge has comes from, in the order of `dtypes`; as unsigned integers, or int64, of as many bytes.
        num_stored
            Edges that are stored: a batch of many of them is read as a stream.
        look
            Called with what edges ``e0 .. e1 - 1`` of the batch have, in device memory, e0 and e1.

        Raises
        ------
        CorruptStoreError
            A chunk cannot be read, or a page differs from its checksum; all threads and streams have ended by then.
        DeviceError
            The device failed.
        """
        start, offset, size = self._start[:num_rows], self._offset[: num_rows + 1], self.edge_bytes
        dense = num_edges > DENSE_SHARE * num_stored
        gap = DENSE_GAP_PAGES if dense else SPARSE_GAP_PAGES
        gathers = [RowGatherer(self._gatherer, source, start, offset, gap_pages=gap, stream=dense) for source in sources]

        def gather(b0: int, b1: int, out: Array) -> int:
            e0, e1 = b0 // size, b1 // size
            return sum(one(e0, e1, part.view(bits(part.dtype))) for one, part in zip(gathers, self._parts(out), strict=True))

        def consume(buffer: Array, b0: int, b1: int) -> None:
            look(self._parts(buffer[: b1 - b0]), b0 // size, b1 // size)

        return self._stager.run(num_edges * size, gather, consume)

    def _parts(self, buffer: Array) -> list[Array]:
        """Return what edges have, in a buffer that is full of it: first what has the larger dtype, so that all is aligned."""
        count, at, parts = buffer.size // self.edge_bytes, 0, [buffer] * len(self._dtypes)
        for i in self._order:
            stop = at + count * self._dtypes[i].itemsize
            parts[i], at = buffer[at:stop].view(self._dtypes[i]), stop
        return parts

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
