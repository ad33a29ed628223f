"""One partition's part in a search, on a worker with a GPU.

The same partition as `oocgraph.engine.part`, whose large levels are found on the device: planes, edges, and what is noted of the
partition's vertices are there. Bitmaps cross the link in each iteration (an eighth of a byte a vertex), because frontier parts
cross workers through host memory, and logs are written there. Parents and levels that the device notes stay on it until another
search needs the device's arrays, or the search ends: `flush`. Tiny levels are taken by the host, as in every partition.
"""

from __future__ import annotations

import logging
import weakref
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from typing import Any, Self

import numpy as np

from oocgraph.config import Settings
from oocgraph.engine.device_engine import DeviceEngine
from oocgraph.engine.device_part_load import FLUSH_VERTICES, DevicePartPlan, DevicePartResidency
from oocgraph.engine.device_state import DeviceArrays
from oocgraph.engine.part import PartRuntime, PartState
from oocgraph.engine.shard import Adjacency, Shard
from oocgraph.engine.state import SearchState
from oocgraph.errors import DeviceError
from oocgraph.kernels import cpu
from oocgraph.kernels import partition as bits
from oocgraph.kernels.gpu import GpuKernels, marks
from oocgraph.plan.direction import Facts
from oocgraph.results.search import Iteration
from oocgraph.types import LEVEL_UNREACHED, PAGE_BYTES, Array

logger = logging.getLogger(__name__)


class PartOnDevice:
    """A partition's search as the steps on a device see it: the state of the host, with the device's arrays."""

    def __init__(self, state: SearchState, arrays: DeviceArrays) -> None:
        self._state, self.arrays = state, arrays
        self.num_vertices, self.level = state.num_vertices, state.level
        self.frontier_size, self.frontier_edges = state.frontier_size, state.frontier_edges

    @property
    def marks(self) -> tuple[Any, ...]:
        """Where kernels note what this iteration finds."""
        a = self.arrays
        return marks(a.parent, a.level8, a.level32, wide=self._state.wide, level=self._state.level + 1)


class DevicePartRuntime(PartRuntime):
    """A partition ready for searches on a device.

    Parameters
    ----------
    plan
        Which partition of which graph, and how many threads.
    graph
        What the host has.
    gpu
        What the device has, and the means to bring it more; it is closed with this.
    knobs
        The configuration that holds for its searches.
    """

    def __init__(self, plan: DevicePartPlan, graph: Shard[Adjacency], gpu: DeviceEngine, *, knobs: Settings) -> None:
        store, loading = plan.store, plan.loading
        super().__init__(
            store, plan.vertex_partition, plan.partition, graph, threads=loading.threads, io_threads=loading.io_threads, knobs=knobs
        )
        if self._gatherer is not None:  # one set of reading threads
            self._gatherer.close()
            self._gatherer = gpu.staged.gatherer
        self.gpu = gpu
        self.outside_byte_cost, self.outside_page_bytes = gpu.outside_byte_cost, gpu.outside_page_bytes
        device, dtype = gpu.device, gpu.kernels.dtype
        self._arrays = DeviceArrays(device, dtype, store.num_rows, self.num_owned)
        owned, rank = device.empty(self.owned.size, self.owned.dtype), device.empty(self.rank.size, dtype)
        gpu.staged.upload(self.owned, owned)
        gpu.staged.upload(self.rank.astype(dtype, copy=False), rank)
        gpu.owners = (owned, rank)
        self._holder: weakref.ref[PartState] | None = None
        self._noted = np.zeros(max(1, -(-self.num_owned // 64)), np.uint64)

    @classmethod
    def open(cls, plan: DevicePartPlan, residency: DevicePartResidency, limit_bytes: int, knobs: Settings) -> Self:
        """Load what `residency` says to both memories.

        Raises
        ------
        CorruptStoreError
            A chunk is missing or truncated, or a page differs from its checksum.
        DeviceError
            The device does not give what the plan asks for.
        """
        try:
            with ExitStack() as undo:
                graph = plan.load(residency, limit_bytes)
                undo.callback(graph.close)
                on_device = plan.load_on_device(graph, residency.on_device)
                scratch = PAGE_BYTES if graph.push.all_resident and graph.pull.all_resident else plan.loading.buffer_bytes
                gpu = DeviceEngine(
                    plan.store, on_device, plan.device, GpuKernels(plan.device, plan.store.index_dtype),
                    io_threads=plan.loading.io_threads, scratch_bytes=scratch, knobs=knobs, partition=plan.partition,
                )  # fmt: skip
                undo.callback(gpu.staged.close)
                runtime = cls(plan, graph, gpu, knobs=knobs)
                undo.pop_all()
                return runtime
        except DeviceError as error:
            raise DeviceError(f"partition {plan.partition}, as it was loaded: {error}") from error

    @property
    def planes_resident(self) -> int:
        """Planes in device memory."""
        return self.gpu.planes_resident

    @property
    def has_failed(self) -> bool:
        """Whether the device has failed."""
        return self.gpu.has_failed

    def close(self) -> None:
        """End the threads, close the files, give the device's memory back."""
        holder = self._holder() if self._holder is not None else None
        if holder is not None:
            try:
                self.flush(holder)
            except DeviceError as error:
                holder.lost = True
                logger.warning("what a search has noted on the device is lost: %s", str(error))
        super().close()
        del self._arrays
        self.gpu.close()

    # What is where.

    def _on_device(self, state: SearchState) -> PartOnDevice:
        """Let the device's arrays be those of `state`; what they hold of another search goes to the host."""
        assert isinstance(state, PartState)
        holder = self._holder() if self._holder is not None else None
        if holder is not state:
            if holder is not None:
                self.flush(holder)
            self._noted[:] = 0
            self._holder = weakref.ref(state)
        return PartOnDevice(state, self._arrays)

    @contextmanager
    def _moving(self, state: SearchState) -> Iterator[PartOnDevice]:
        """Name partition and level in what goes wrong as arrays of `state` cross the link."""
        on_device = self._on_device(state)
        with self.gpu.naming(on_device):
            yield on_device

    def _upload(self, state: SearchState) -> None:
        """Bring frontier and visited bits to the device, and begin counters and what is found again."""
        with self._moving(state) as on_device:
            self.gpu.staged.upload(state.frontier, self._arrays.frontier)
            self.gpu.staged.upload(state.visited, self._arrays.visited)
        self.gpu.begin(on_device)

    def _take_visited(self, state: SearchState, visited: Array) -> None:
        """Visit on the host what the device has visited and noted."""
        self._noted |= visited & ~state.visited
        state.visited[:] = visited

    def _fetch_visited(self, state: SearchState) -> None:
        with self._moving(state):
            visited = self.gpu.staged.download(self._arrays.visited)
        self._take_visited(state, visited)

    def flush(self, state: PartState) -> None:
        """Bring parents and levels that the device has noted to the host."""
        if self._holder is None or self._holder() is not state:
            return
        a = self._arrays
        levels = a.level32 if state.wide else a.level8
        with self.gpu.naming(PartOnDevice(state, a)):
            for first in range(0, self.num_owned, FLUSH_VERTICES):
                stop = min(self.num_owned, first + FLUSH_VERTICES)
                words = self._noted[first // 64 : -(-stop // 64)]
                if words.any():
                    noted = np.unpackbits(words.view(np.uint8), count=stop - first, bitorder="little").view(np.bool_)
                    parent, level = self.gpu.staged.download_all(a.parent[first:stop], levels[first:stop])
                    np.copyto(state.parent[first:stop], parent, where=noted)
                    np.copyto(state.levels[first:stop], level, where=noted)
        self._holder = None

    # The steps that the device takes.

    def _pull(self, state: PartState) -> None:
        """Find the unvisited vertices that have a neighbour in the frontier; their parents come to the host."""
        self._upload(state)
        super()._pull(state)
        self.flush(state)

    def begin_iteration(self, state: SearchState) -> None:
        """Remember what is visited, and make room for the next level."""
        assert isinstance(state, PartState)
        if not state.wide and state.level + 1 >= LEVEL_UNREACHED:  # levels on the device are not widened
            self.flush(state)
        super().begin_iteration(state)
        self._upload(state)

    def facts(self, state: SearchState, *, with_costs: bool) -> Facts:
        """Measure what the direction rules compare."""
        n, m = self.store.num_rows, self.store.attributes.num_stored_edges
        if not with_costs:
            return state.facts(n, m)
        pages, sample = self.gpu.costs(self._on_device(state))
        return state.facts(n, m, frontier_pages=pages, sample=sample, disk_pages=self.gpu.graph.pull.disk_pages)

    def pull_heads(self, state: SearchState) -> int:
        """Pull over what is in device memory; returns how many vertices that leaves undecided."""
        left = self.gpu.pull_heads(self._on_device(state))
        self._fetch_visited(state)
        return left

    def undecided_pages(self, state: SearchState) -> int:
        """Count the first pages (or lines) that the undecided vertices need."""
        return self.gpu.undecided_pages(self._on_device(state))

    def frontier_pages(self, state: SearchState) -> int:
        """Count the pages (or lines) that the frontier's rows need."""
        return self.gpu.frontier_pages(self._on_device(state))

    def pull_tails(self, state: SearchState) -> int:
        """Pull what the undecided vertices' lists hold outside of device memory; returns bytes read from files."""
        self.on_phase("read")
        num_bytes = self.gpu.pull_tails(self._on_device(state))
        self.gpu.kernels.fetch()  # it tells what kernels have read of host memory
        self._fetch_visited(state)
        return num_bytes

    def push(self, state: SearchState) -> int:
        """Push the frontier's rows, keeping the targets owned; returns bytes read from files."""
        staged, closed = self.gpu.staged, state.closed
        np.bitwise_not(self.owned, out=closed)
        bits.scatter_bits(*self.own_blocks, state.visited, closed)
        with self._moving(state) as on_device:
            staged.upload(closed, self._arrays.closed)
        self.on_phase("read")
        num_bytes = self.gpu.push(on_device)
        with self._moving(state):
            closed[:] = staged.download(self._arrays.closed)
        visited = np.zeros_like(state.visited)
        bits.gather_bits(*self.own_blocks, closed, visited)
        self._take_visited(state, visited)
        return num_bytes

    def annotate(self, metrics: Iteration) -> Iteration:
        """Add how edges came to the device that are not in its memory."""
        return replace(metrics, reason="; ".join([metrics.reason, *self.gpu.accesses()]), device=self.gpu.moved())

    def finish(self, state: SearchState) -> None:
        """Bring what the device has noted to the host; set parent and level of what was not reached."""
        assert isinstance(state, PartState)
        self.flush(state)
        super().finish(state)

    def _listed(self, state: PartState, rows: Array) -> tuple[Array, Array]:
        """List marked vertices and their parents, which are on the device where that has found them in this step."""
        if self._holder is None or self._holder() is not state or not (rows & self._noted).any():
            return super()._listed(state, rows)
        if (rows & ~self._noted).any():
            self.flush(state)
            return super()._listed(state, rows)
        vertices = np.empty(int(np.bitwise_count(rows).sum()), self.store.index_dtype)
        cpu.list_vertices(rows, vertices)
        return vertices, self._parents_on_device(state, rows, vertices.size)

    def _parents_on_device(self, state: PartState, rows: Array, count: int) -> Array:
        """Return the parents of marked vertices from the device, ascending; batch by batch."""
        a, subgraph, kernels, staged = self._arrays, self.gpu.subgraph, self.gpu.kernels, self.gpu.staged
        out = np.empty(count, kernels.dtype)
        with self._moving(state):
            staged.upload(rows, a.active)
            subgraph.activate(a.active)
            for row0 in range(0, count, subgraph.capacity):
                subgraph.list_rows(row0)
                size = min(subgraph.capacity, count - row0)
                values = subgraph.start.view(kernels.dtype)[:size]
                kernels.take(subgraph.vertex, size, a.parent, values)
                out[row0 : row0 + size] = staged.download(values)
        return out
