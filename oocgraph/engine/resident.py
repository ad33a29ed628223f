"""What a search keeps in memory of a graph: row lookups, planes, the first edges, open files. Loaded once, used by many searches.

In: a store and a memory budget. Out: `ResidentGraph`. Directed graphs have two adjacencies, ``push`` over ``out/`` and ``pull`` over
``in/``; undirected ones have one that serves both.
"""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from oocgraph.memory import Budget, page_cache_bytes
from oocgraph.plan.residency import GraphSizes, Residency, plan_residency
from oocgraph.store.arrays import PlainArray, StoredArray
from oocgraph.store.degrees import plane_lengths
from oocgraph.store.graph import CSRStore
from oocgraph.subgraph.gather import EdgeFiles, checksum_bytes
from oocgraph.types import PAGE_BYTES, Array

LOAD_BYTES = 4 << 20
"""One read while loading."""


@dataclass(slots=True)
class Adjacency:
    """One direction of the graph, as kernels take it.

    Attributes
    ----------
    stored
        ``indices`` on disk.
    lookup
        ``indptr, first, edge, value`` (see `oocgraph.kernels.rows`).
    heads
        ``planes, plane_offset, plane_length``.
    resident
        The first edges.
    files
        Open chunk files; None when all edges are resident or the store is not plain local files.
    num_rows
        Rows that the lookup covers.
    share
        Their share of the edges.
    """

    stored: StoredArray
    lookup: tuple[Array, Array, Array, Array]
    heads: tuple[Array, Array, Array]
    resident: Array
    files: EdgeFiles | None
    num_rows: int
    share: float = 1.0

    @property
    def num_planes(self) -> int:
        """Planes resident."""
        return int(self.heads[2].size) - 1

    @property
    def num_edges(self) -> int:
        """Stored entries."""
        return self.stored.length

    @property
    def all_resident(self) -> bool:
        """Whether nothing has to be read."""
        return int(self.resident.size) == self.stored.length

    @property
    def disk_pages(self) -> int:
        """Pages of the rows' edges that are not resident."""
        return -int(-(self.stored.length - self.resident.size) * self.stored.dtype.itemsize * self.share // PAGE_BYTES)

    def page_shift(self) -> int:
        """Binary logarithm of the neighbours in a page."""
        return (PAGE_BYTES // self.stored.dtype.itemsize).bit_length() - 1


@dataclass(slots=True)
class ResidentGraph:
    """Both directions and what they cost."""

    push: Adjacency
    pull: Adjacency
    residency: Residency
    load_seconds: float
    adjacencies: list[Adjacency] = field(default_factory=list)

    def close(self) -> None:
        """Close the files."""
        for adjacency in self.adjacencies:
            if adjacency.files is not None:
                adjacency.files.close()


def load_graph(
    store: CSRStore, budget: Budget, *, threads: int, io_threads: int, buffer_bytes: int, max_planes: int | None
) -> ResidentGraph:
    """Plan what stays in memory, charge it to `budget`, and read it.

    Raises
    ------
    BudgetError
        Before anything is read: the budget is too small for the vertex state.
    CorruptStoreError
        A chunk is missing or truncated.
    """
    began = time.perf_counter()
    groups = ["out", "in"] if store.attributes.directed else ["out"]
    verified = for_loading(store)
    indices = [store.array(f"{group}/indices") for group in groups]
    lookups = {
        group: sorted_lookup(verified) for group in groups if group == store.pull_group and store.attributes.vertex_order == "degree"
    }
    sizes = graph_sizes(store, indices, lookups)
    residency = plan_residency(
        sizes,
        available_bytes=budget.available_bytes,
        limit_bytes=budget.limit_bytes,
        io_threads=io_threads,
        buffer_bytes=buffer_bytes,
        max_planes=max_planes,
        least_bytes=budget.named_bytes,
    )
    budget.check_alternatives()
    for name, num_bytes in (
        ("vertex state", residency.vertex_bytes),
        ("planes", residency.plane_bytes),
        ("resident edges", residency.resident_bytes),
        ("staging", residency.staging_bytes),
        ("page cache", residency.cache_bytes),
    ):
        budget.reserve(name, num_bytes)
    adjacencies: list[Adjacency] = []
    try:
        with ThreadPoolExecutor(max(2, threads), thread_name_prefix="oocgraph-load") as pool:
            for group, array, num_resident in zip(groups, indices, residency.num_resident, strict=True):
                lookup = lookups[group] if group in lookups else explicit_lookup(verified, group, pool)
                num_planes = residency.num_planes if group == store.pull_group else 0
                heads = _load_heads(verified, group, num_planes, lookup, pool)
                resident = read_parallel(verified.array(array.name), 0, num_resident, pool)
                files = None
                if num_resident < array.length and isinstance(array, PlainArray):
                    on_disk = (array.length - num_resident) * array.dtype.itemsize
                    files = EdgeFiles(array, stream_direct=on_disk > page_cache_bytes(budget.limit_bytes))
                adjacencies.append(Adjacency(array, lookup, heads, resident, files, store.num_vertices))
    except BaseException:
        for adjacency in adjacencies:
            if adjacency.files is not None:
                adjacency.files.close()
        raise
    return ResidentGraph(adjacencies[0], adjacencies[-1], residency, time.perf_counter() - began, adjacencies)


def for_loading(store: CSRStore) -> CSRStore:
    """Return the store as what stays in memory is read from it: compared with its checksums.

    That costs a few percent of loading it, and each search uses it. (A compressed chunk would have to be read once more.)
    """
    return store.checked(store.check_pages or store.attributes.codec == "none")


def graph_sizes(store: CSRStore, indices: list[StoredArray], lookups: dict[str, Any]) -> GraphSizes:
    """Return what the residency plan needs to know of a graph; `lookups` names the group that has no explicit row starts."""
    n = store.num_vertices
    plane_edges: tuple[int, ...] = (0,)
    skew = 0.0
    if lookups:
        degree, first = store.degrees
        counts = np.diff(np.append(first, n)).astype(np.float64)
        mean = float((counts * degree).sum()) / max(1, n)
        skew = float((counts * degree.astype(np.float64) ** 2).sum()) / max(1, n) / mean**2 - 1 if mean else 0.0
        lengths = plane_lengths(degree, first, n, store.attributes.num_planes)
        plane_edges = (0, *(int(x) for x in np.cumsum(lengths[:-1])))
    return GraphSizes(
        num_vertices=n,
        itemsize=store.index_dtype.itemsize,
        num_edges=tuple(array.length for array in indices),
        indptr_bytes=8 * (n + 1) * (len(indices) - len(lookups)),
        plane_edges=plane_edges,
        skew=skew,
        checksum_bytes=sum(checksum_bytes(array) for array in indices),
    )


def sorted_lookup(store: CSRStore) -> tuple[Array, Array, Array, Array]:
    """Return the row lookup of the pull group of a degree-sorted store."""
    degree, first = store.degrees
    if not degree.size:
        degree, first = np.zeros(1, np.int64), np.zeros(1, np.int64)
    counts = np.diff(np.append(first, store.num_vertices))
    edge = np.concatenate([[0], np.cumsum(counts * degree)[:-1]]).astype(np.int64)
    return np.empty(0, np.int64), first.astype(np.int64), edge, degree.astype(np.int64)


def explicit_lookup(store: CSRStore, group: str, pool: ThreadPoolExecutor) -> tuple[Array, Array, Array, Array]:
    """Read the row lookup of a group whose row starts are explicit."""
    array = store.array(f"{group}/indptr")
    zero = np.zeros(1, np.int64)
    return read_parallel(array, 0, array.length, pool), zero, zero, zero


def _load_heads(store: CSRStore, group: str, num_planes: int, lookup: Any, pool: ThreadPoolExecutor) -> tuple[Array, Array, Array]:
    n = store.num_vertices
    if not num_planes:
        length = np.full(1, n, np.int64)
        return np.empty(0, store.index_dtype), np.zeros(1, np.int64), length
    offsets = store.plane_offsets[: num_planes + 1]
    planes = read_parallel(store.array(f"{group}/planes/indices"), 0, int(offsets[-1]), pool)
    return planes, offsets, plane_lengths(lookup[3], lookup[1], n, num_planes)


def read_parallel(array: StoredArray, start: int, stop: int, pool: ThreadPoolExecutor) -> Array:
    """Read elements ``start .. stop - 1`` with several threads into one array."""
    out = np.empty(stop - start, array.dtype.newbyteorder("="))
    step = max(1, LOAD_BYTES // array.dtype.itemsize)
    if not isinstance(array, PlainArray):
        step = max(step, array.chunk_length)

    def load(a: int) -> None:
        z = min(stop, a + step)
        if isinstance(array, PlainArray):
            array.read_into(a, out[a - start : z - start])
        else:
            out[a - start : z - start] = array.read(a, z)

    for _ in pool.map(load, range(start, stop, step)):
        continue
    return out
