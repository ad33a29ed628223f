"""Connected components, out of core: a few neighbours of each vertex find nearly all of them, the lists of the rest are read.

1. Every vertex is linked with its first neighbours, one plane of the store after the other, until another plane is more to read than the
   lists of all vertices outside of the largest component found so far.
2. Those lists are read and linked. An edge between two vertices of the largest component joins nothing, and any other is in the list of
   a vertex outside of it: of a directed graph in its out- or its in-list, and components are the weakly connected ones.
3. Each component is named after its vertex with the smallest id, so the result does not depend on threads or memory.

Sutton, Ben-Nun, Barak, "Optimizing Parallel Graph Connectivity Computation via Subgraph Sampling" (Afforest), IPDPS 2018. Differs from the
paper in: neighbours are taken hub first, planes are read in order from disk, and how many is decided by what is left to read.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from itertools import pairwise
from time import perf_counter
from typing import Any

import numpy as np

from oocgraph.allocator import returned_memory
from oocgraph.config import check_threads, settings
from oocgraph.errors import CorruptStoreError
from oocgraph.kernels import components as kernels
from oocgraph.kernels.load import load_kernels
from oocgraph.memory import SLACK_BYTES, Budget, PeakSampler, device_bytes_read, effective_budget_bytes
from oocgraph.progress import watched
from oocgraph.results.components import ComponentsResult
from oocgraph.results.writer import writing_bytes
from oocgraph.store.arrays import REMEDY, decoded_bytes
from oocgraph.store.graph import CSRStore, open_graph
from oocgraph.store.layout import ORDER
from oocgraph.store.libraries import load_libraries
from oocgraph.store.rows import BLOCK_ROWS, map_bounded, offset_blocks
from oocgraph.store.vertices import VertexIds
from oocgraph.types import Array, Progress, ProgressOption, no_parent

PIECE_BYTES = 1 << 20
"""Neighbours that a thread reads at once."""

GAP_BYTES = 32 << 10
"""Neighbours that are read, though not needed, to join two reads."""

MAX_RANGES = 1 << 14
"""Ranges of entries that are found at once."""

SAMPLED_VERTICES = 1024
"""Vertices among which the component of most is taken for the largest."""


def connected_components(
    graph: CSRStore | str | os.PathLike[str],
    *,
    memory_budget: str | int | None = None,
    threads: int | None = None,
    check_pages: bool = False,
    progress: ProgressOption = None,
) -> ComponentsResult:
    """Find the connected components of a graph; of a directed one, the weakly connected ones.

    Parameters
    ----------
    graph
        A graph store or its path.
    memory_budget
        Bytes that the whole process may hold (text such as ``"640M"``); by default most of what the machine leaves.
    threads
        Compute threads; by default the cores this process may use.
    check_pages
        Compare what is read of the store with its checksums.
    progress
        Called with ("planes" or "lists", done, all); True draws a bar.

    Returns
    -------
    ComponentsResult

    Raises
    ------
    OocGraphError
        An argument is invalid.
    BudgetError
        The budget is too small; the message names the smallest that works.
    StoreError, CorruptStoreError
        The store cannot be opened or read.

    Notes
    -----
    Host memory: 9 or 17 bytes (twice the size of a vertex number, and 1) for each vertex that has edges, a few pieces of 1 MiB a thread.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> from oocgraph import build_csr
    >>> with TemporaryDirectory() as folder:
    ...     result = connected_components(build_csr(([5, 1, 9], [3, 5, 7]), f"{folder}/g.zarr"))
    ...     result.vertices.tolist(), result.component.tolist(), result.num_components
    ([1, 3, 5, 7, 9], [1, 1, 1, 7, 7], 2)
    """
    return find_components(
        open_graph(graph, check_pages=check_pages), memory_budget=memory_budget, threads=threads, progress=progress
    )  # fmt: skip


def find_components(
    store: CSRStore, *, memory_budget: str | int | None, threads: int | None, progress: ProgressOption, following_bytes: int = 0
) -> ComponentsResult:
    """Find the components of a graph; what is done next needs up to `following_bytes`, for which a refusal names a budget, too."""
    check_threads(threads)
    knobs, started = settings(), perf_counter()
    limit = effective_budget_bytes(memory_budget if memory_budget is not None else knobs.memory_budget)
    threads = threads or knobs.threads
    load_libraries(store)
    with watched(progress) as shown, PeakSampler() as sampler, returned_memory():
        load_kernels(_kernel_calls(store.index_dtype))
        _charge(store, Budget(limit, following_bytes=following_bytes), threads)
        began, device = perf_counter(), device_bytes_read()
        run = _Run(store, threads, shown)
        run.link_planes()
        run.link_lists()
        component, num_linked = run.named()
        seconds, device = perf_counter() - began, device_bytes_read() - device
    return ComponentsResult(
        stored_component=component, num_linked=num_linked, ids=VertexIds(store), seconds=seconds, bytes_requested=run.num_bytes,
        bytes_read=max(run.num_bytes, device), plane_bytes=run.plane_bytes, edge_bytes=store.edge_bytes, load_seconds=began - started,
        peak_host_bytes=sampler.peak_bytes, memory_budget=limit,
    )  # fmt: skip


def _kernel_calls(dtype: np.dtype[Any]) -> list[tuple[Any, tuple[Any, ...]]]:
    vertices, numbers = np.empty(0, dtype), np.empty(0, np.int64)
    return [
        (kernels.link_plane, (vertices, 0, vertices)),
        (kernels.link_rows, (vertices, 0, 0, numbers, 0, 0, vertices)),
        (kernels.cut_rows, (vertices, 0, 0, numbers, 0, 0, 0, np.empty((0, 2), np.int64))),
        (kernels.compress, (vertices, 0, 0)),
        (kernels.name_components, (vertices, numbers, vertices, 0)),
    ]


def _charge(store: CSRStore, budget: Budget, threads: int) -> None:
    """Reserve all that is held; the result is written when the trees are gone."""
    vertex_bytes = store.num_vertices * store.index_dtype.itemsize
    indices = [store.array(f"{group}/indices") for group in _groups(store)]
    budget.alternatively("the result, when it is written,", vertex_bytes + SLACK_BYTES + writing_bytes(store))
    with budget.together():
        budget.reserve("components", 2 * vertex_bytes + store.num_vertices)
        budget.reserve("pieces", 2 * threads * (PIECE_BYTES + max(decoded_bytes(array) for array in indices)))
        budget.reserve("row starts", 2 * threads * 8 * (BLOCK_ROWS + 1) + 16 * MAX_RANGES)
        budget.reserve("threads and compiled code", SLACK_BYTES)


def _groups(store: CSRStore) -> list[str]:
    return ["out", "in"] if store.attributes.directed else ["out"]


class _Run:
    """The trees of one run, and what has been read."""

    def __init__(self, store: CSRStore, threads: int, progress: Progress) -> None:
        self.store, self.threads, self.progress = store, threads, progress
        self.parent = np.arange(store.num_vertices, dtype=store.index_dtype)
        self.giant, self.num_planes, self.num_bytes, self.plane_bytes = -1, 0, 0, 0

    def link_planes(self) -> None:
        """Link every vertex with its first neighbours, as long as a plane is less than what is left without it."""
        store = self.store
        sizes = np.diff(store.plane_offsets).tolist() if store.attributes.vertex_order == "degree" else []
        for plane, size in enumerate(sizes):
            if plane > 1 and self._entries_left() <= size:
                break
            array, first = store.array(f"{store.pull_group}/planes/indices"), int(store.plane_offsets[plane])
            step = PIECE_BYTES // array.dtype.itemsize

            def read(start: int, array: Any = array, first: int = first, size: int = size, step: int = step) -> int:
                neighbours = array.read(first + start, first + min(size, start + step))
                kernels.link_plane(self.parent, start, neighbours.astype(self.parent.dtype, copy=False))
                return int(neighbours.nbytes)

            self.plane_bytes += sum(map_bounded(read, range(0, size, step), self.threads))
            self.num_planes += 1
            self._compress()
            self.progress("planes", plane + 1, len(sizes))
        self.num_bytes = self.plane_bytes

    def link_lists(self) -> None:
        """Link the vertices outside of the largest component with the neighbours that no plane had."""
        self._find_giant()
        groups = _groups(self.store)
        for i, group in enumerate(groups):
            self.progress("lists", i, len(groups))
            array, skip = self.store.array(f"{group}/indices"), self.num_planes if group == self.store.pull_group else 0

            def read(piece: tuple[int, Array, int, int], array: Any = array, skip: int = skip) -> int:
                first, offsets, begin, end = piece
                entries = array.read(begin, end)
                kernels.link_rows(self.parent, self.giant, first, offsets, skip, begin, entries.astype(self.parent.dtype, copy=False))
                return int(entries.nbytes)

            self.num_bytes += sum(map_bounded(read, self._ranges(group, skip, array.dtype.itemsize), self.threads))
        self.progress("lists", len(groups), len(groups))
        self._compress()

    def named(self) -> tuple[Array, int]:
        """Name each component after its vertex with the smallest id: (num_vertices,) store numbers, and how many there are."""
        none = no_parent(self.store.index_dtype)
        named, count = np.full(self.parent.size, none, self.parent.dtype), 0
        order = self.store.array(ORDER)  # store numbers by ascending id
        blocks = [(start, min(start + BLOCK_ROWS, self.parent.size)) for start in range(0, self.parent.size, BLOCK_ROWS)]
        for block in blocks:
            count += int(kernels.name_components(self.parent, order.read(*block).astype(np.int64), named, int(none)))
        for start, stop in blocks:
            self.parent[start:stop] = named[self.parent[start:stop]]
            if (self.parent[start:stop] == none).any():
                raise CorruptStoreError(f"{self.store.url}: {ORDER} names some vertices twice, and others not at all; {REMEDY}")
        return self.parent, count

    def _ranges(self, group: str, skip: int, itemsize: int) -> Iterator[tuple[int, Array, int, int]]:
        """Yield the ranges of entries that are needed, each with the first of some rows and where they begin."""
        ranges = np.empty((MAX_RANGES, 2), np.int64)
        for first_row, all_offsets in offset_blocks(self.store, group):
            first, offsets = first_row, all_offsets
            while offsets.size > 1:
                rows, count = kernels.cut_rows(
                    self.parent, self.giant, first, offsets, skip, GAP_BYTES // itemsize, PIECE_BYTES // itemsize, ranges
                )
                for begin, end in ranges[:count].tolist():
                    low = int(np.searchsorted(offsets, begin, side="right")) - 1
                    high = int(np.searchsorted(offsets, end))
                    yield first + low, offsets[low : high + 1], begin, end
                first, offsets = first + rows, offsets[rows:]

    def _compress(self) -> None:
        cuts = np.linspace(0, self.parent.size, self.threads + 1).astype(np.int64).tolist()
        for _ in map_bounded(lambda cut: kernels.compress(self.parent, *cut), pairwise(cuts), self.threads):
            continue

    def _find_giant(self) -> None:
        """Take the component of most vertices of a sample for the largest; without planes there is none yet."""
        if self.num_planes and self.parent.size:
            sample = self.parent[np.random.default_rng(0).integers(0, self.parent.size, SAMPLED_VERTICES)]
            roots, counts = np.unique(sample, return_counts=True)
            self.giant = int(roots[counts.argmax()])

    def _entries_left(self) -> int:
        """Entries of the lists outside of the largest component that no plane had."""
        self._find_giant()
        value, first = self.store.degrees
        outside = np.add.reduceat(self.parent != self.giant, first, dtype=np.int64)
        return int(np.dot(outside, np.maximum(value - self.num_planes, 0)))
