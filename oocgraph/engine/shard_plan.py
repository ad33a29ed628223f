"""What a shard keeps in host memory: planes and row lookup of the vertices it owns, and the first edges of the whole graph.

In: a store, for a part of it a vertex_partition, the bytes that a budget leaves. Out: what of them goes to what, and then the `Shard`.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from oocgraph.engine import resident as whole
from oocgraph.engine.shard import Adjacency, Shard, close_files
from oocgraph.engine.take_over import new_planes, planes_bytes, planes_in
from oocgraph.engine.windows import reader_bytes
from oocgraph.errors import OocGraphError
from oocgraph.exchange.shared_memory import SharedMemory
from oocgraph.kernels import partition as kernels
from oocgraph.kernels.rows import Planes, RowLookup, explicit_rows, no_planes
from oocgraph.memory import Budget, page_cache_bytes
from oocgraph.partition.vertex_partition import VertexPartition, local_lookup
from oocgraph.plan.residency import GraphSizes, Residency, plan_residency
from oocgraph.pool import Pool
from oocgraph.store.arrays import PlainArray, StoredArray
from oocgraph.store.degrees import plane_lengths
from oocgraph.store.fetched import LOADING_THREADS, RangeArray
from oocgraph.store.gather import EdgeFiles
from oocgraph.store.graph import CSRStore
from oocgraph.store.row_lookup import sorted_lookup
from oocgraph.types import Array


@dataclass(frozen=True, slots=True)
class Loading:
    """How to load: threads, what of it, and whether planes go to memory that other processes may map."""

    threads: int
    io_threads: int
    buffer_bytes: int
    max_planes: int | None
    shares_planes: bool = False


class ShardPlan:
    """What a shard would hold; made before anything large is read.

    Parameters
    ----------
    store
        The graph.
    vertex_partition, partition
        Which of its vertices the shard owns; None: all.
    """

    def __init__(self, store: CSRStore, vertex_partition: VertexPartition | None, partition: int, loading: Loading) -> None:
        self.store, self.vertex_partition, self.partition, self.loading = store, vertex_partition, partition, loading
        self.verified = whole.for_loading(store)
        self.groups = ["out", "in"] if store.attributes.directed else ["out"]
        self.indices = [store.array(f"{group}/indices") for group in self.groups]
        self.sorted = store.attributes.vertex_order == "degree"
        self.num_owned = store.num_rows if vertex_partition is None else int(vertex_partition.num_owned[partition])
        self.lookup: RowLookup | None = None
        self.lengths = np.full(1, self.num_owned, np.int64)
        if self.sorted:
            self.lookup = sorted_lookup(self.verified)
            if vertex_partition is not None:
                self.lookup = RowLookup(self.lookup.indptr, *local_lookup(vertex_partition, partition, *self.lookup[1:]))
            self.lengths = plane_lengths(self.lookup.value, self.lookup.first, self.num_owned, store.attributes.num_planes)

    def sizes(self) -> GraphSizes:
        """Return what the residency plan needs to know."""
        of_graph = whole.graph_sizes(self.store, self.indices, {self.groups[-1]: None} if self.sorted else {})
        if self.vertex_partition is None:
            return of_graph
        n, words = self.store.num_rows, self.store.num_rows // 8 + 8
        lookup_bytes = 24 * self.lookup.first.size if self.lookup is not None else 0
        explicit = (n + 1 if not self.sorted or self.store.attributes.directed else 0) + (0 if self.sorted else self.num_owned + 1)
        return GraphSizes(
            num_vertices=n,
            itemsize=of_graph.itemsize,
            num_edges=of_graph.num_edges,
            indptr_bytes=8 * explicit,
            plane_edges=(0, *(int(x) for x in np.cumsum(self.lengths[:-1]))),
            skew=of_graph.skew,
            checksum_bytes=of_graph.checksum_bytes,
            part_bytes=2 * words + lookup_bytes + self.vertex_partition.num_bytes,
        )

    def residency(self, *, available_bytes: int, limit_bytes: int, shares: int = 1, least_bytes: int = 0) -> Residency:
        """Divide `available_bytes`, which is one of several equal shares of what there is; see `plan_residency`.

        Raises
        ------
        BudgetError
            They are too few; the message names the budget that would do.
        """
        return plan_residency(
            self.sizes(),
            available_bytes=available_bytes,
            limit_bytes=limit_bytes,
            io_threads=self.loading.io_threads,
            buffer_bytes=reader_bytes(self.indices[0], self.loading.io_threads, self.loading.buffer_bytes),
            max_planes=self.loading.max_planes,
            shares=shares,
            least_bytes=least_bytes,
        )

    def load_within(self, budget: Budget, meanwhile: Callable[[Residency], None] | None = None) -> Shard[Adjacency]:
        """Divide what a budget leaves, charge it, and read; see `load`.

        Raises
        ------
        BudgetError
            Before anything is read: it is too small for the vertex state.
        CorruptStoreError
            A chunk is missing or truncated, or a page differs from its checksum.
        """
        for name, num_bytes in self.store.mask_charges(self.groups).items():
            budget.hold(name, num_bytes)
        residency = self.residency(available_bytes=budget.available_bytes, limit_bytes=budget.limit_bytes, least_bytes=budget.named_bytes)
        budget.check_alternatives()
        for name, num_bytes in (
            ("vertex state", residency.vertex_bytes),
            ("planes", residency.plane_bytes),
            ("resident edges", residency.resident_bytes),
            ("staging", residency.staging_bytes),
            ("page cache", residency.cache_bytes),
        ):
            budget.reserve(name, num_bytes)
        return self.load(residency, budget.limit_bytes, meanwhile)

    def load(
        self, residency: Residency, limit_bytes: int, meanwhile: Callable[[Residency], None] | None = None
    ) -> Shard[Adjacency]:  # fmt: skip
        """Read what `residency` says, while a thread calls `meanwhile`.

        Raises
        ------
        CorruptStoreError
            A chunk is missing or truncated, or a page differs from its checksum.
        """
        began = time.perf_counter()
        adjacencies: list[Adjacency] = []
        planes: SharedMemory | None = None
        self._expect(residency)
        try:
            with Pool(self._num_loading, "oocgraph-load") as pool:
                other = None if meanwhile is None else pool.submit(meanwhile, residency)
                for group, array, num_resident in zip(self.groups, self.indices, residency.num_resident, strict=True):
                    num_planes = residency.num_planes if self.vertex_partition is None and group == self.groups[-1] else 0
                    adjacencies.append(self._whole_rows(group, array, num_planes, num_resident, limit_bytes, pool))
                own = adjacencies[-1]
                if self.vertex_partition is not None:
                    own, planes = self._own_rows(self.vertex_partition, own, residency, pool)
                if other is not None:
                    other.result()
        except BaseException:
            close_files(adjacencies)
            raise
        return Shard(adjacencies[0], own, residency, time.perf_counter() - began, planes)

    @property
    def _num_loading(self) -> int:
        """Threads that load."""
        return LOADING_THREADS if isinstance(self.indices[0], RangeArray) else max(whole.LOAD_THREADS, self.loading.threads)

    def _expect(self, residency: Residency) -> None:
        """Tell an object store what will be read, so that its answers come at the same time."""
        edges = {f"{group}/indices": num for group, num in zip(self.groups, residency.num_resident, strict=True)}
        planes = {f"{self.groups[-1]}/planes/indices": int(self.lengths[: residency.num_planes].sum())} if residency.num_planes else {}
        self.verified.expect(planes | edges)

    def _whole_rows(
        self, group: str, array: StoredArray, num_planes: int, num_resident: int, limit_bytes: int, pool: Pool
    ) -> Adjacency:  # fmt: skip
        """Take all rows of a group; its first planes and edges resident."""
        store, n = self.store, self.store.num_rows
        if group == self.groups[-1] and self.sorted:
            lookup = self.lookup if self.vertex_partition is None and self.lookup is not None else sorted_lookup(self.verified)
        elif group == "out" or self.vertex_partition is None:
            lookup = whole.explicit_lookup(self.verified, group, pool)
        else:  # in original order, of in/: only the partition's rows are looked up
            lookup = explicit_rows(np.empty(0, np.int64))
        heads = no_planes(store.index_dtype, n)
        if num_planes:
            lengths, offsets = self._plane_bounds(num_planes)
            planes = whole.read_parallel(self.verified.array(f"{group}/planes/indices"), 0, int(offsets[-1]), pool)
            heads = Planes(planes, offsets, lengths)
        resident = self._read_edges(self.verified.array(f"{group}/indices"), num_resident, pool)
        files = None
        if num_resident < array.length and isinstance(array, PlainArray):
            on_disk = (array.length - num_resident) * array.dtype.itemsize
            files = EdgeFiles(array, stream_direct=on_disk > page_cache_bytes(limit_bytes))
        return Adjacency(array, lookup, heads, resident, files, n)

    def _plane_bounds(self, num_planes: int) -> tuple[Array, Array]:
        """Vertices that each of the first planes covers, and behind them those with a tail; where each plane begins in memory."""
        lengths = self.lengths[: num_planes + 1]
        return lengths, np.concatenate([[0], np.cumsum(lengths[:-1])]).astype(np.int64)

    def _read_edges(self, array: StoredArray, num_edges: int, pool: Pool) -> Array:
        """Read the first edges of a group."""
        return whole.read_parallel(array, 0, num_edges, pool)

    def _own_rows(
        self, vertex_partition: VertexPartition, rows: Adjacency, residency: Residency, pool: Pool
    ) -> tuple[Adjacency, SharedMemory | None]:
        """Take the rows of the vertices owned, at local positions, with planes; edges and files are those of `rows`."""
        store, p, k = self.store, self.partition, residency.num_planes
        lengths, offsets = self._plane_bounds(k)
        share = float(vertex_partition.num_edges[p]) / max(1, int(vertex_partition.num_edges.sum()))
        shares = self.loading.shares_planes and self.lookup is not None
        planes, memory = (
            new_planes(int(offsets[-1]), store.index_dtype) if shares else (np.empty(int(offsets[-1]), store.index_dtype), None)
        )
        if self.lookup is not None:
            lookup = self.lookup
            try:
                if k:
                    self._take_planes(vertex_partition, planes, offsets, k, pool)
            except BaseException:
                if memory is not None:
                    memory.close()
                raise
        else:
            first, stop, _ = vertex_partition.blocks_of(p)
            v0, v1 = (int(first[0]), int(stop[-1])) if first.size else (0, 0)
            indptr = rows.lookup.indptr
            own = indptr[v0 : v1 + 1] if indptr.size else self.verified.array(f"{self.groups[-1]}/indptr").read(v0, v1 + 1)
            lookup = explicit_rows(np.ascontiguousarray(own))
            if first.size > 1:
                raise OocGraphError(f"{store.url} is in original order; its partitions must be contiguous ranges")
        heads = Planes(planes, offsets, lengths)
        return Adjacency(rows.stored, lookup, heads, rows.resident, rows.files, self.num_owned, share), memory

    def shared_planes_bytes(self, num_planes: int) -> int | None:
        """Bytes of the memory that has so many planes of the vertices owned; None: there are not so many."""
        if not 0 <= num_planes < self.lengths.size:
            return None
        return planes_bytes(int(self.lengths[:num_planes].sum()), self.store.index_dtype)

    def heads_in(self, memory: SharedMemory, num_planes: int) -> Planes:
        """Return the first planes of the vertices owned, which are in memory of another process."""
        lengths, offsets = self._plane_bounds(num_planes)
        return Planes(planes_in(memory, int(offsets[-1]), self.store.index_dtype), offsets, lengths)

    def _take_planes(self, vertex_partition: VertexPartition, planes: Array, offsets: Array, num_planes: int, pool: Pool) -> None:
        """Copy the partition's entries out of the stored planes, which are read once, in order."""
        stored = self.verified.array(f"{self.groups[-1]}/planes/indices")
        starts = self.store.plane_offsets
        blocks = vertex_partition.blocks_of(self.partition)
        step = max(stored.unit, whole.LOAD_BYTES // stored.dtype.itemsize)

        def take(piece: tuple[int, int, int]) -> None:
            k, a, z = piece
            values = stored.read(a, z).astype(planes.dtype, copy=False)
            kernels.take_runs(*blocks, values, a - int(starts[k]), planes[offsets[k] : offsets[k + 1]])

        pieces = [
            (k, a, min(int(starts[k + 1]), a + step)) for k in range(num_planes) for a in range(int(starts[k]), int(starts[k + 1]), step)
        ]
        for _ in pool.map(take, pieces):
            continue
