"""What a GPU worker holds of a partition: on the device its planes, row lookups and first edges; on the host the first edges, page-locked.

In: a store, a vertex_partition, shares of the worker's two budgets. Out: a `Shard` in either memory. As in `oocgraph.engine.shard_plan` the
pull adjacency has the partition's rows at local positions and the push adjacency all rows. Both memories hold first edges, because both
search: the device large levels, the host tiny ones; and where the device's end, its kernels read on in the host's.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np

from oocgraph.arrays import Device
from oocgraph.engine.device_graph import READ_BYTES, UPLOAD_BYTES, DeviceAdjacency, Uploader, upload_lookup, upload_planes
from oocgraph.engine.resident import LOAD_BYTES, read_into
from oocgraph.engine.shard import Adjacency, Shard
from oocgraph.engine.shard_plan import Loading, ShardPlan
from oocgraph.kernels import partition as kernels
from oocgraph.partition.vertex_partition import VertexPartition
from oocgraph.plan.device_residency import DeviceResidency, host_least_bytes, plan_device_residency, whole_pages
from oocgraph.plan.residency import MIN_CACHE_SLOTS, SLOT_BYTES, GraphSizes, Residency
from oocgraph.pool import Pool
from oocgraph.store.arrays import StoredArray
from oocgraph.store.graph import CSRStore
from oocgraph.store.row_gatherer import held_window_bytes
from oocgraph.types import PAGE_BYTES, Array

FLUSH_VERTICES = 1 << 18
"""Vertices whose parents and levels come from the device at once: a multiple of 64, and 1 MiB of parents."""


def host_bytes(num_vertices: int, num_owned: int) -> int:
    """Host bytes of a search on a device beside those of one on the processor: bitmaps on their way, and a piece of what was noted."""
    return 3 * (num_owned // 8 + 8) + (num_vertices // 8 + 8) + 16 * min(FLUSH_VERTICES, num_owned)


@dataclass(frozen=True, slots=True)
class Share:
    """One of several equal shares of what is left of a budget."""

    available_bytes: int
    limit_bytes: int
    shares: int


@dataclass(frozen=True, slots=True)
class DevicePartResidency(Residency):
    """What the host holds of a partition (page-locked memory is in `staging_bytes` and `resident_bytes`), and what the device."""

    on_device: DeviceResidency


class DevicePartPlan(ShardPlan):
    """What a partition would hold on a worker's host and device; made before anything large is read.

    Parameters
    ----------
    store, vertex_partition, partition, loading
        As of `ShardPlan`; ``max_planes`` are those on the device.
    device
        Of the worker.
    """

    vertex_partition: VertexPartition

    def __init__(self, store: CSRStore, vertex_partition: VertexPartition, partition: int, loading: Loading, device: Device) -> None:
        super().__init__(store, vertex_partition, partition, replace(loading, max_planes=0))
        self.device, self._max_planes = device, loading.max_planes

    def sizes(self) -> GraphSizes:
        """Return what the residency plan needs to know of the host's part."""
        sizes = super().sizes()
        return replace(sizes, part_bytes=(sizes.part_bytes or 0) + host_bytes(self.store.num_rows, self.num_owned))

    def device_sizes(self) -> GraphSizes:
        """Return what it needs to know of the device's."""
        n = self.store.num_rows
        own = 24 * self.lookup.first.size if self.lookup is not None else 8 * (self.num_owned + 1)
        explicit = self.store.attributes.directed or not self.sorted
        every = 8 * (n + 1) if explicit else 24 * max(1, self.store.degree_classes[0].size)
        return replace(super().sizes(), lookup_bytes=own + every + PAGE_BYTES, num_owned=self.num_owned)

    def residency_in(self, host: Share, device: Share) -> DevicePartResidency:
        """Divide shares of both memories.

        Raises
        ------
        BudgetError
            One of them is too small; the message names the budget that would do.
        """
        sizes, minimum = self.device_sizes(), 2 * MIN_CACHE_SLOTS * SLOT_BYTES
        fewest, windows = host_least_bytes(sizes), 0
        first = self._on_host(host, max(fewest, 2 * UPLOAD_BYTES))
        if first.num_resident == sizes.num_edges:
            spare = host.available_bytes - max(fewest, 2 * UPLOAD_BYTES) - first.num_bytes
        else:
            windows = self.loading.io_threads * max(held_window_bytes(array) for array in self.indices)
            first = self._on_host(host, max(fewest, 2 * UPLOAD_BYTES) + windows)
            spare = max(0, first.resident_bytes - minimum)
        on_device = plan_device_residency(
            sizes,
            available_bytes=device.available_bytes,
            limit_bytes=device.limit_bytes,
            host_available_bytes=fewest + spare,
            host_limit_bytes=host.limit_bytes,
            max_planes=self._max_planes,
            shares=device.shares,
        )
        staging = max(on_device.host_staging_bytes, 2 * UPLOAD_BYTES) + windows  # loading is over before there is staging
        on_host = self._on_host(host, staging)
        resident = tuple(whole_pages(m, edges, sizes.itemsize) for m, edges in zip(on_host.num_resident, sizes.num_edges, strict=True))
        values = {field.name: getattr(on_host, field.name) for field in fields(on_host)} | {
            "num_resident": resident,
            "resident_bytes": sum(resident) * sizes.itemsize,
            "num_kept": 0,  # tails are kept by the processor's pulls alone
            "cache_bytes": on_host.cache_slots * SLOT_BYTES,
            "staging_bytes": on_host.staging_bytes + staging,
        }
        return DevicePartResidency(**values, on_device=on_device)

    def _on_host(self, host: Share, staging_bytes: int) -> Residency:
        available = host.available_bytes - staging_bytes
        return self.residency(available_bytes=available, limit_bytes=host.limit_bytes, shares=host.shares)

    def load_on_device(self, graph: Shard[Adjacency], residency: DeviceResidency) -> Shard[DeviceAdjacency]:
        """Bring to the device what `residency` says; `graph` is what the host holds, whose files both read.

        Raises
        ------
        CorruptStoreError
            A chunk is missing or truncated, or a page differs from its checksum.
        DeviceError
            The device does not give what the plan asks for.
        """
        device, dtype = self.device, self.store.index_dtype
        num_resident = dict(zip(self.groups, residency.num_resident, strict=True))
        threads = max(2, self.loading.threads)
        with Pool(threads, "oocgraph-load") as pool, Uploader(device, pool) as uploader:
            out, into = graph.push, graph.pull
            nothing = np.full(1, self.store.num_rows, np.int64)
            resident, edges = self._edges_on_device(uploader, out, num_resident[self.groups[0]])
            heads = upload_planes(device, uploader, nothing, dtype, _no_plane)
            push = DeviceAdjacency(out.stored, upload_lookup(uploader, out.lookup), heads, resident, out.files, out.num_rows, 1.0, **edges)
            if self.store.attributes.directed:
                resident, edges = self._edges_on_device(uploader, into, num_resident[self.groups[-1]])
            lengths = self.lengths[: residency.num_planes + 1]
            heads = upload_planes(device, uploader, lengths, dtype, lambda k, target: self._take_plane(uploader, pool, k, target))
            lookup = upload_lookup(uploader, into.lookup)
            pull = DeviceAdjacency(into.stored, lookup, heads, resident, into.files, into.num_rows, into.share, **edges)
        return Shard(push, pull, residency, graph.load_seconds)

    def _read_edges(self, array: StoredArray, num_edges: int, pool: Pool) -> Array:
        """Read the first edges of a group into page-locked memory."""
        dtype = array.dtype.newbyteorder("=")
        out = self.device.pinned(num_edges * dtype.itemsize).view(dtype)
        read_into(array, 0, out, pool, READ_BYTES)
        return out

    def _edges_on_device(self, uploader: Uploader, adjacency: Adjacency, num_resident: int) -> tuple[Array, dict[str, Array]]:
        """Return the first edges in device memory, and those in host memory as host and kernels see them, if they are more."""
        array, host = adjacency.stored, adjacency.resident
        resident = self.device.empty(num_resident, host.dtype)
        common = min(num_resident, host.size)
        uploader.fill(resident[:common], lambda a, out: np.copyto(out, host[a : a + out.size]))
        uploader.stored(self.verified.array(array.name), common, resident[common:])
        further = host if host.size > num_resident else self.device.pinned(0).view(host.dtype)
        return resident, {"host": further, "mapped": self.device.mapped(further)}

    def _take_plane(self, uploader: Uploader, pool: Pool, plane: int, target: Array) -> None:
        """Copy the partition's entries out of a stored plane, through pinned memory."""
        stored = self.verified.array(f"{self.groups[-1]}/planes/indices")
        start = int(self.store.plane_offsets[plane])
        step = max(stored.unit, LOAD_BYTES // stored.dtype.itemsize)
        blocks = self.vertex_partition.blocks_of(self.partition)

        def fill(position: int, out: Array) -> None:
            runs = clip_runs(*blocks, position, position + out.size)
            first, stop, _ = runs

            def take(v: int) -> None:
                values = stored.read(start + v, start + min(int(stop[-1]), v + step)).astype(out.dtype, copy=False)
                kernels.take_runs(*runs, values, v, out)

            for _ in pool.map(take, range(int(first[0]), int(stop[-1]), step)):
                continue

        uploader.fill(target, fill)


def clip_runs(first: Array, stop: Array, local: Array, begin: int, end: int) -> tuple[Array, Array, Array]:
    """Return the part of some runs whose local positions are ``begin .. end - 1``, counted from `begin`.

    Parameters
    ----------
    first, stop, local : (num_runs,) int64
        First vertex of each run, that behind its last, and local position of its first; see `VertexPartition.blocks_of`.

    Examples
    --------
    >>> runs = np.array([0, 8]), np.array([4, 12]), np.array([0, 4])
    >>> [part.tolist() for part in clip_runs(*runs, 3, 6)]
    [[3, 8], [4, 10], [0, 1]]
    """
    i, j = int(np.searchsorted(local, begin, side="right")) - 1, int(np.searchsorted(local, end, side="left"))
    first, stop, local = first[i:j].copy(), stop[i:j].copy(), local[i:j] - begin
    first[0], local[0] = first[0] - local[0], 0
    stop[-1] = min(int(stop[-1]), int(first[-1]) + end - begin - int(local[-1]))
    return first, stop, local


def _no_plane(_plane: int, _target: Any) -> None:
    """Fill none of no planes."""
