"""Shortest paths on a GPU: near vertices hand their distances on, far ones wait until all that are nearer have.

In: a graph with weights, sources, the width of a bucket. Out: distances and parents of all vertices, on the host. What is pending is a
bitmap on the device; those of it that are nearer than a limit are the near pile, whose rows are listed, batch by batch
(`oocgraph.subgraph.dependency`). Edges that are in device memory are followed there, others come with their weights through staging
buffers (`oocgraph.subgraph.staging`). When no pending vertex is near, the limit moves to the end of the bucket of the nearest.

Davidson, Baxter, Garland, Owens, "Work-Efficient Parallel GPU Methods for Single-Source Shortest Paths", IPDPS 2014. What of it is done
otherwise: ``kernels/cuda/paths.cu``.
"""

from __future__ import annotations

import time
from contextlib import ExitStack
from math import ceil, floor, inf, nextafter
from typing import Any, NamedTuple, Self

import numpy as np

from oocgraph.arrays import Device
from oocgraph.closing import Closing
from oocgraph.config import Settings
from oocgraph.engine import resident as host
from oocgraph.engine.blocks import EdgeError, forget_beyond
from oocgraph.engine.cpu_engine import BUFFER_BYTES
from oocgraph.engine.device_graph import UPLOAD_BYTES, Uploader, upload_lookup, upload_pointers
from oocgraph.engine.device_state import num_words
from oocgraph.engine.staged import SplitEdges, StagedEdges, source_behind
from oocgraph.kernels import gpu_paths
from oocgraph.kernels.blocks import NOT_MONOTONE, OVERFLOW
from oocgraph.kernels.gpu import Counter, GpuKernels, Lookup
from oocgraph.kernels.gpu_paths import NOTHING_LEFT, PathKernels, Told, weight_kind
from oocgraph.memory import SLACK_BYTES, Budget, page_cache_bytes
from oocgraph.plan.paths_residency import PathsResidency, PathsSizes, plan_paths_residency
from oocgraph.pool import Pool
from oocgraph.results.writer import writing_bytes
from oocgraph.store.arrays import StoredArray
from oocgraph.store.gather import checksum_bytes
from oocgraph.store.graph import CSRStore
from oocgraph.store.row_gatherer import EdgeSource, held_window_bytes
from oocgraph.store.row_lookup import sorted_lookup
from oocgraph.subgraph.dependency import DependencySubgraph
from oocgraph.subgraph.staging import StagingMetrics
from oocgraph.types import Array, Progress, ignore_progress

FAILURES = {gpu_paths.OVERFLOWS: OVERFLOW, gpu_paths.NO_LENGTH: NOT_MONOTONE}
"""Why an edge cannot be followed, as kernels on a device and on the processor name it."""


class DeviceWork(NamedTuple):
    """What a search on a device has done.

    Attributes
    ----------
    num_followed, num_again
        Edges followed; of these, edges of vertices that had been followed before.
    num_steps
        Near piles worked on.
    link_bytes, bytes_read
        Brought to the device; read for that from the store.
    seconds
        Wall time, until distances and parents are on the host.
    """

    num_followed: int
    num_again: int
    num_steps: int
    link_bytes: int
    bytes_read: int
    seconds: float


class DevicePaths(Closing):
    """A graph with weights on a device. Use `DevicePaths.open` in a ``with`` statement.

    Parameters
    ----------
    store, column
        The graph, and the edge column of its weights.
    device
        Where distances are.
    unreached
        A distance of the dtype that is computed with: of vertices that are not reached.
    residency
        What is where; charged by the caller.
    io_threads, threads
        Threads that gather edges, and that load.
    limit_bytes
        Bytes that the process may hold.
    """

    def __init__(
        self, store: CSRStore, column: str, device: Device, unreached: Any, residency: PathsResidency, *,
        num_sources: int, num_targets: int, knobs: Settings, threads: int, limit_bytes: int,
    ) -> None:  # fmt: skip
        self.store, self.device, self.residency, self.unreached = store, device, residency, unreached
        n, dtype, words = store.num_rows, store.index_dtype, num_words(store.num_rows)
        kernels = self.kernels = GpuKernels(device, dtype)
        self.paths = PathKernels(device, dtype, unreached.dtype, kernels.stream, kernels.counters)
        self.distance, self.parent = device.empty(n, unreached.dtype), device.empty(n, dtype)
        self.pending, self.near, self.orphans = (device.empty(words, np.uint64) for _ in range(3))
        self.sources, self.targets = device.empty(num_sources, np.int64), device.empty(num_targets, np.int64)
        self.rows = DependencySubgraph(device, kernels, words, residency.row_capacity)
        self._stack, checked = ExitStack(), host.for_loading(store)
        with ExitStack() as undo:
            undo.callback(self._stack.close)
            with Pool(max(2, threads), "oocgraph-load") as pool, Uploader(device, pool) as uploader:
                self.lookup = _upload_lookup(checked, uploader)
                names = "out/indices", f"out/{column}"
                resident = [uploader.first(checked.array(name), residency.num_resident) for name in names]
            arrays = [store.array(name) for name in names]
            self.kind = weight_kind(arrays[1].dtype)
            self.edges = SplitEdges(self.lookup, resident, [self._source_of(array, limit_bytes) for array in arrays], arrays[0].length)
            dtypes = [array.dtype.newbyteorder("=") for array in arrays]
            self.staged = StagedEdges(
                device, kernels, residency, io_threads=knobs.io_threads, scratch_bytes=BUFFER_BYTES, dtypes=dtypes
            )  # fmt: skip
            self._stack.callback(self.staged.close)
            undo.pop_all()

    def _source_of(self, array: StoredArray, limit_bytes: int) -> EdgeSource:
        """Return where elements come from that are not on the device."""
        on_disk = (array.length - self.residency.num_resident) * array.dtype.itemsize
        source = source_behind(array, self.residency.num_resident, stream_direct=on_disk > page_cache_bytes(limit_bytes))
        if source.files is not None:
            self._stack.callback(source.files.close)
        return source

    @classmethod
    def open(
        cls, store: CSRStore, column: str, device: Device, budget: Budget, unreached: Any, *, device_limit: int, num_sources: int,
        num_targets: int, threads: int, knobs: Settings,
    ) -> Self:  # fmt: skip
        """Plan, charge what the host holds to `budget`, and load.

        Raises
        ------
        BudgetError
            Before anything is read: one of the budgets is too small.
        CorruptStoreError
            A chunk is missing or truncated, or a page differs from its checksum.
        DeviceError
            The device does not give what the plan asks for.
        """
        arrays = [store.array(name) for name in ("out/indices", f"out/{column}")]
        lookup_bytes = 24 * max(1, store.degree_classes[0].size) if _is_sorted(store) else 8 * (store.num_rows + 1) + 24
        sizes = PathsSizes(
            num_vertices=store.num_rows, num_edges=arrays[0].length, index_bytes=arrays[0].dtype.itemsize,
            weight_bytes=arrays[1].dtype.itemsize, distance_bytes=unreached.dtype.itemsize, lookup_bytes=lookup_bytes,
            num_listed=num_sources + num_targets,
        )  # fmt: skip
        result = store.num_rows * (unreached.dtype.itemsize + store.index_dtype.itemsize)
        budget.alternatively("the result, when it is written,", result + SLACK_BYTES + writing_bytes(store))
        reading = knobs.io_threads * (BUFFER_BYTES + max(map(held_window_bytes, arrays))) + sum(map(checksum_bytes, arrays))
        fixed = result + reading + 2 * UPLOAD_BYTES + SLACK_BYTES
        with budget.all_or_none():
            budget.reserve("distances, parents and reading threads", fixed)
            residency = plan_paths_residency(
                sizes, available_bytes=device_limit, limit_bytes=device_limit, host_available_bytes=budget.available_bytes,
                host_limit_bytes=budget.limit_bytes,
            )  # fmt: skip
            budget.reserve("page-locked staging", residency.host_bytes)
        return cls(
            store, column, device, unreached, residency, num_sources=num_sources, num_targets=num_targets, knobs=knobs, threads=threads,
            limit_bytes=budget.limit_bytes,
        )  # fmt: skip

    def close(self) -> None:
        """End the threads, close the files, give the memory back; closing again does nothing."""
        if "device" in self.__dict__:
            device = self.device
            self._stack.close()
            self.__dict__.clear()  # the arrays with it
            device.close()

    def run(
        self, sources: Array, *, delta: float, bound: Any = None, targets: Array, progress: Progress = ignore_progress
    ) -> tuple[Array, Array, DeviceWork]:  # fmt: skip
        """Find the shortest paths from the nearest of some vertices; returns distances and parents in store order, and what was done.

        Parameters
        ----------
        sources : (n,) int64
            Store numbers.
        delta
            Width of a bucket.
        bound
            Distances beyond it are not kept; None: any are.
        targets : (n,) int64
            Store numbers: distances beyond the largest of theirs are not kept; none: all are.

        Raises
        ------
        EdgeError
            A weight is negative or no number, or a distance is too large for the dtype.
        CorruptStoreError
            Edges cannot be read, or differ from their checksums.
        DeviceError
            The device failed.
        """
        began, kind = time.perf_counter(), self.unreached.dtype.type
        self._bound = kind(self.unreached if bound is None else bound)
        self._metrics, self._link_bytes, num_followed, steps = StagingMetrics(), 0, 0, 0
        self.staged.upload(sources.astype(np.int64, copy=False), self.sources)
        self.staged.upload(targets.astype(np.int64, copy=False), self.targets)
        self.paths.begin(self.sources, self.distance, self.unreached, self.parent, self.pending)
        limit = kind(0)
        while (there := self._select(limit)) is not None:
            count, nearest = there
            if count:
                steps += 1
                num_followed += self._look(count, gpu_paths.DISTANCES, gpu_paths.PARENTS)
                progress("edges followed", num_followed, 0)
            else:
                limit = _end_of_bucket(nearest, delta, self.unreached)
        reached_edges = self._find_parents()
        distance, parent = self.staged.download_all(self.distance, self.parent)
        if targets.size:
            forget_beyond(min(self._bound, distance[targets].max()), distance, parent, self.unreached)
        again, seconds = max(0, num_followed - reached_edges), time.perf_counter() - began
        return distance, parent, DeviceWork(num_followed, again, steps, self._link_bytes, self._metrics.bytes_read, seconds)

    def _select(self, limit: Any) -> tuple[int, Any] | None:
        """Make the pending vertices nearer than a limit near; returns how many and how near the others are, or None when all is done."""
        self.paths.select_near(self.pending, self.near, self.distance, limit, self._bound)
        if self.targets.size:
            self.paths.find_farthest(self.targets, self.distance)
        told = self.paths.read()
        if told[Told.WHY]:
            raise EdgeError(FAILURES[int(told[Told.WHY])], int(told[Told.FROM]), int(told[Told.TO]))
        if self.targets.size:
            self._bound = min(self._bound, self._distance_of(told[Told.FARTHEST]))
        count, nearest = int(told[Told.NUM_NEAR]), int(told[Told.NEAREST])
        return (count, self._distance_of(nearest)) if count or nearest != NOTHING_LEFT else None

    def _distance_of(self, bits: Any) -> Any:
        """Return a distance from bits that are in the same order."""
        dtype = self.unreached.dtype
        if dtype.kind == "f":
            return np.array(bits, np.int64).view(np.float64)[()]
        return dtype.type(min(int(bits), int(self.unreached)))

    def _find_parents(self) -> int:
        """Give parents to those that have none, as only edges of no length lead to them; returns the edges of all that were reached."""
        paths, kernels = self.paths, self.kernels
        paths.find_orphans(self.distance, self.unreached, self._bound, self.parent, self.near, self.orphans)
        kernels.reset()
        for marked in (self.near, self.orphans):
            kernels.count_edges(self.lookup, marked, Counter.FOUND, Counter.NUM_EDGES)
        reached_edges = int(kernels.read()[Counter.NUM_EDGES])
        if paths.read()[Told.NUM_NEAR]:
            kernels.fill(self.pending, 0)
            num_near = self.store.num_rows
            while num_near:
                self._look(num_near, gpu_paths.ORPHANS)
                paths.adopt(self.pending, self.orphans, self.near)
                num_near = int(paths.read()[Told.NUM_NEAR])
        return reached_edges

    def _look(self, count: int, *looks: int) -> int:
        """Look at the edges of the near vertices, of which there are up to `count`, once for each purpose; returns how many there are."""

        def look(begin: Array, parts: list[Array], base: int, e0: int, e1: int) -> None:
            edges, weights = parts
            for purpose in looks:
                self.paths.relax(
                    purpose, self.rows, begin, e0, e1, edges, weights, self.kind, base, self.distance, self.parent, self.orphans,
                    self.pending, self._bound, num_edges=e1 - e0,
                )  # fmt: skip

        self.rows.activate(self.near)
        followed = self.staged.follow(self.rows, count, self.edges, look)
        self._metrics, self._link_bytes = self._metrics + followed.metrics, self._link_bytes + followed.link_bytes
        return followed.num_edges


def _end_of_bucket(nearest: Any, delta: float, unreached: Any) -> Any:
    """Return the end of the bucket of a distance: larger than it.

    Examples
    --------
    >>> _end_of_bucket(np.int32(7), 2.5, np.int32(2**31 - 1)), _end_of_bucket(np.float64(1e300), 1e-9, np.float64(np.inf))
    (np.int32(8), np.float64(1.0000000000000002e+300))
    """
    number = float(nearest) / float(delta)
    end = (floor(number) + 1) * delta if np.isfinite(number) else 0.0
    if unreached.dtype.kind == "f":
        return unreached.dtype.type(max(end, nextafter(nearest, inf)))
    return unreached.dtype.type(min(max(ceil(min(end, 2.0**62)), int(nearest) + 1), int(unreached)))


def _is_sorted(store: CSRStore) -> bool:
    """Whether rows of the lists that are followed are found by their degree."""
    return store.attributes.vertex_order == "degree" and not store.attributes.directed


def _upload_lookup(store: CSRStore, uploader: Uploader) -> Lookup:
    return upload_lookup(uploader, sorted_lookup(store)) if _is_sorted(store) else upload_pointers(uploader, store.array("out/indptr"))
