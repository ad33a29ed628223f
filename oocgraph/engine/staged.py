"""Edges that host threads bring to a device: the rows of a batch come down, their edges go up.

In: a batch of rows in device memory. Out: launches of kernels on pieces of its edges in staging buffers, and the metrics of that; or on
all edges of some rows, wherever they are. All pinned memory of a search is here.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from oocgraph.arrays import Device
from oocgraph.engine.cpu_engine import DENSE_GAP_PAGES, DENSE_SHARE, SPARSE_GAP_PAGES
from oocgraph.engine.device_graph import DeviceAdjacency
from oocgraph.engine.transfers import Transfers
from oocgraph.kernels.gpu import Counter, GpuKernels, Lookup
from oocgraph.plan.device_residency import DeviceResidency
from oocgraph.plan.paths_residency import PathsResidency
from oocgraph.store.arrays import PlainArray, StoredArray
from oocgraph.store.gather import EdgeFiles, Gatherer
from oocgraph.store.row_gatherer import EdgeSource, RowGatherer
from oocgraph.subgraph.dependency import DependencySubgraph
from oocgraph.subgraph.staging import Stager, StagingMetrics
from oocgraph.types import Array

Look = Callable[[list[Array], int, int], None]
"""Launches kernels on a piece of a batch's edges; see `StagedEdges.run`."""


class SplitEdges(NamedTuple):
    """The edges of a graph or a part, of which the device has the first.

    Attributes
    ----------
    lookup
        Where each row begins.
    resident
        What the first edges have, in device memory; in the order of the `dtypes` of `StagedEdges`.
    sources
        Where what the others have comes from, in the same order.
    num_edges
        Number of edges, on the device or not.
    """

    lookup: Lookup
    resident: Sequence[Array]
    sources: Sequence[EdgeSource]
    num_edges: int


class Followed(NamedTuple):
    """What following rows took: edges, bytes that were brought to the device for it, metrics of that."""

    num_edges: int
    link_bytes: int
    metrics: StagingMetrics


LookAt = Callable[[Array, list[Array], int, int, int], None]
"""Launches kernels on edges of the rows that are listed; see `StagedEdges.follow`."""


def source_of(adjacency: DeviceAdjacency) -> EdgeSource:
    """Return where the edges of a graph or a part come from that its device has not."""
    in_memory = adjacency.host.size == adjacency.num_edges
    return EdgeSource(adjacency.host, adjacency.files, None if in_memory or adjacency.files is not None else adjacency.stored)


def source_behind(array: StoredArray, num_resident: int, *, stream_direct: bool) -> EdgeSource:
    """Return where the elements of an array come from that a device has only the first of; `stream_direct` as of `EdgeFiles`.

    The caller closes the files.
    """
    none = np.empty(0, bits(array.dtype))
    if array.is_held:
        return EdgeSource(array.held.view(none.dtype))
    if num_resident == array.length:
        return EdgeSource(none)
    if isinstance(array, PlainArray):
        return EdgeSource(none, EdgeFiles(array, stream_direct=stream_direct))
    return EdgeSource(none, None, array)


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
    fetches_rows
        Whether rows come to the host: not where the device has all edges.

    Attributes
    ----------
    edge_bytes : int
        Of all that an edge has.
    """

    def __init__(
        self, device: Device, kernels: GpuKernels, residency: DeviceResidency | PathsResidency, *, io_threads: int, scratch_bytes: int,
        dtypes: Sequence[np.dtype[Any]] | None = None, fetches_rows: bool = True,
    ) -> None:  # fmt: skip
        self._device, self._kernels, self._dtypes = device, kernels, dtypes or [kernels.dtype]
        sizes = [dtype.itemsize for dtype in self._dtypes]
        self.edge_bytes, self._order = sum(sizes), sorted(range(len(sizes)), key=lambda i: -sizes[i])
        rows = residency.row_capacity if fetches_rows else 0
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

    def follow(self, rows: DependencySubgraph, count: int, edges: SplitEdges, look: LookAt) -> Followed:
        """Call `look` for all edges of the vertices that `rows` was activated with: of each batch those on the device, then the others.

        The host waits once for the counts of either, and for the rows where any edges have to be gathered.

        Parameters
        ----------
        count
            Vertices at most.
        look
            Called as ``look(begin, parts, base, e0, e1)`` for edges ``e0 .. e1 - 1`` of the batch that `rows` holds: what edge e of its
            i-th row has is at ``begin[i] + e - rows.offset[i] - base`` of each of `parts`.

        Raises
        ------
        CorruptStoreError, DeviceError
            See `run`.
        """
        num_resident, num_followed, link_bytes, metrics = edges.resident[0].size, 0, 0, StagingMetrics()
        for row0 in range(0, count, rows.capacity):
            if num_resident:
                rows.ask(edges.lookup, row0=row0, high=num_resident)
                num_edges = int(self._kernels.read()[Counter.NUM_EDGES])
                if num_edges:
                    look(rows.start, list(edges.resident), 0, 0, num_edges)
                num_followed += num_edges
            if num_resident < edges.num_edges:
                rows.ask(edges.lookup, row0=row0, low=num_resident)
                counts = self._kernels.read()
                num_rows, num_edges = int(counts[Counter.NUM_ROWS]), int(counts[Counter.NUM_EDGES])
                if num_edges:
                    self.fetch(rows, num_rows)
                    self._device.synchronize(self._kernels.stream)
                    metrics += self.run(
                        edges.sources, edges.num_edges, num_rows, num_edges,
                        lambda parts, e0, e1: look(rows.offset, parts, e0, e0, e1),
                    )  # fmt: skip
                num_followed, link_bytes = num_followed + num_edges, link_bytes + num_edges * self.edge_bytes
        return Followed(num_followed, link_bytes, metrics)

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
