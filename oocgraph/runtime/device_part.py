"""One partition's part in a search, on a worker with a GPU.

The same partition as `oocgraph.runtime.part`, whose large levels are found on the device: planes, edges, and what is noted of the
partition's vertices are there. Bitmaps cross the link in each iteration (an eighth of a byte a vertex), because frontier parts
cross workers through host memory, and logs are written there. Parents and levels that the device notes stay on it until another
search needs the device's arrays, or the search ends: `flush`. Tiny levels are taken by the host, as in every partition.
"""

from __future__ import annotations

import weakref
from typing import Any

import numpy as np

from oocgraph.arrays import Device
from oocgraph.config import Settings
from oocgraph.kernels import partition as bits
from oocgraph.kernels.gpu import Counter, GpuKernels, marks
from oocgraph.partition.dealing import Dealing
from oocgraph.plan.direction import Choice, Facts
from oocgraph.runtime.device_engine import SAMPLE_EDGES, DeviceEngine
from oocgraph.runtime.device_graph import DeviceGraph
from oocgraph.runtime.device_state import DeviceArrays
from oocgraph.runtime.engine import SAMPLE_WORDS
from oocgraph.runtime.part import PartRuntime, PartState
from oocgraph.runtime.resident import ResidentGraph
from oocgraph.runtime.staged import StagedEdges
from oocgraph.runtime.state import SearchState
from oocgraph.store.graph import CSRStore
from oocgraph.subgraph.dependency import DependencySubgraph
from oocgraph.types import LEVEL_UNREACHED, Array


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
    store, dealing, partition, graph, threads, io_threads, knobs
        As of `PartRuntime`: `graph` is what the host has.
    on_device, device, kernels, subgraph, staged
        What the device has, and the means to bring it more; see `DeviceEngine`.
    """

    def __init__(
        self, store: CSRStore, dealing: Dealing, partition: int, graph: ResidentGraph, on_device: DeviceGraph, device: Device,
        kernels: GpuKernels, subgraph: DependencySubgraph, staged: StagedEdges, *, threads: int, io_threads: int, knobs: Settings,
    ) -> None:  # fmt: skip
        super().__init__(store, dealing, partition, graph, threads=threads, io_threads=io_threads, knobs=knobs)
        self.gpu = DeviceEngine(store, on_device, device, kernels, subgraph, staged, knobs=knobs, partition=partition)
        self.outside_byte_cost, self.outside_page_bytes = self.gpu.outside_byte_cost, self.gpu.outside_page_bytes
        self._arrays = DeviceArrays(device, store.index_dtype, store.num_vertices, self.num_owned)
        owned, rank = device.empty(self.owned.size, self.owned.dtype), device.empty(self.rank.size, self.rank.dtype)
        staged.upload(self.owned, owned)
        staged.upload(self.rank, rank)
        self.gpu.owners = (owned, rank)
        self._holder: weakref.ref[PartState] | None = None
        self._noted = np.zeros(max(1, -(-self.num_owned // 64)), np.uint64)

    @property
    def planes_resident(self) -> int:
        """Planes in device memory."""
        return self.gpu.planes_resident

    def close(self) -> None:
        """End the threads, close the files, give the device's memory back."""
        holder = self._holder() if self._holder is not None else None
        if holder is not None:
            self.flush(holder)
        super().close()
        self.gpu.close()
        del self._arrays

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

    def _upload(self, state: SearchState) -> PartOnDevice:
        """Bring frontier and visited bits to the device."""
        on_device = self._on_device(state)
        self.gpu.staged.upload(state.frontier, self._arrays.frontier)
        self.gpu.staged.upload(state.visited, self._arrays.visited)
        return on_device

    def _take_visited(self, state: SearchState, visited: Array) -> None:
        """Visit on the host what the device has visited and noted."""
        self._noted |= visited & ~state.visited
        state.visited[:] = visited

    def flush(self, state: PartState) -> None:
        """Bring parents and levels that the device has noted to the host."""
        if self._holder is None or self._holder() is not state:
            return
        noted = np.unpackbits(self._noted.view(np.uint8), count=self.num_owned, bitorder="little").view(np.bool_)
        if noted.any():
            a, n = self._arrays, self.num_owned
            np.copyto(state.parent, self.gpu.staged.download(a.parent[:n]), where=noted)
            np.copyto(state.levels, self.gpu.staged.download(a.level32[:n] if state.wide else a.level8[:n]), where=noted)
        self._holder = None

    # The steps that the device takes.

    def begin_iteration(self, state: SearchState) -> None:
        """Remember what is visited, and make room for the next level."""
        assert isinstance(state, PartState)
        if not state.wide and state.level + 1 >= LEVEL_UNREACHED:
            self.flush(state)
        super().begin_iteration(state)
        on_device = self._upload(state)
        self.gpu.begin(on_device)

    def facts(self, state: SearchState) -> Facts:
        """Measure what the direction rules compare."""
        on_device, kernels = self._on_device(state), self.gpu.kernels
        pull, a = self.gpu.graph.pull, self._arrays
        pages = 0 if self.gpu.graph.push.all_resident else self.gpu.frontier_pages(on_device)
        kernels.reset()
        step = max(1, state.num_words // SAMPLE_WORDS)
        kernels.sample_heads(step, state.num_vertices, pull.lookup, *pull.heads, pull.resident, a.frontier, a.visited, most=SAMPLE_EDGES)
        counts = kernels.read()
        slots = Counter.SAMPLED, Counter.PROBES, Counter.SAMPLE_FOUND, Counter.SAMPLE_UNDECIDED
        sampled, probes, found, left = (int(counts[slot]) for slot in slots)
        return Facts(
            frontier=state.frontier_size,
            frontier_edges=state.frontier_edges,
            frontier_pages=pages,
            unvisited=state.num_unvisited,
            unvisited_edges=state.unvisited_edges,
            num_vertices=self.store.num_vertices,
            sampled=sampled,
            sampled_probes=probes,
            sampled_found=found,
            sampled_undecided=left,
            disk_pages=pull.disk_pages,
            pulled=state.pulled,
        )

    def pull_heads(self, state: SearchState) -> int:
        """Pull over what is in device memory; returns how many vertices that leaves undecided."""
        left = self.gpu.pull_heads(self._upload(state))
        self._take_visited(state, self.gpu.staged.download(self._arrays.visited))
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
        self._take_visited(state, self.gpu.staged.download(self._arrays.visited))
        return num_bytes

    def push(self, state: SearchState) -> int:
        """Push the frontier's rows, keeping the targets owned; returns bytes read from files."""
        on_device, staged = self._on_device(state), self.gpu.staged
        np.bitwise_not(self.owned, out=state.closed)
        bits.scatter_bits(*self.own_blocks, state.visited, state.closed)
        staged.upload(state.closed, self._arrays.closed)
        self.on_phase("read")
        num_bytes = self.gpu.push(on_device)
        state.closed[:] = staged.download(self._arrays.closed)
        visited = np.zeros_like(state.visited)
        bits.gather_bits(*self.own_blocks, state.closed, visited)
        self._take_visited(state, visited)
        return num_bytes

    def advance(self, state: SearchState, choice: Choice, *, frontier: int, undecided: int, began: float, num_bytes: int) -> None:
        """Count the own vertices found in this iteration, and record its figures."""
        told = Choice(choice.direction, "; ".join([choice.reason, *self.gpu.accesses()]))
        super().advance(state, told, frontier=frontier, undecided=undecided, began=began, num_bytes=num_bytes)

    def finish(self, state: SearchState) -> None:
        """Bring what the device has noted to the host; set parent and level of what was not reached."""
        assert isinstance(state, PartState)
        self.flush(state)
        super().finish(state)

    def _listed(self, rows: Array, parent: Array, dtype: np.dtype[np.generic]) -> tuple[Array, Array]:
        """List marked vertices and their parents, some of which may be on the device."""
        vertices, parents = super()._listed(rows, parent, dtype)
        noted = (self._noted[vertices >> 6] >> (vertices & 63).astype(np.uint64)) & np.uint64(1) if vertices.size else vertices
        if noted.any():
            where = np.flatnonzero(noted)
            parents[where] = self._parents_on_device(rows & self._noted, where.size)
        return vertices, parents

    def _parents_on_device(self, rows: Array, count: int) -> Array:
        """Return the parents of marked vertices from the device, ascending; batch by batch."""
        a, subgraph, kernels = self._arrays, self.gpu.subgraph, self.gpu.kernels
        self.gpu.staged.upload(rows, a.active)
        out = np.empty(count, kernels.dtype)
        subgraph.activate(a.active)
        for row0 in range(0, count, subgraph.capacity):
            subgraph.list_rows(row0)
            size = min(subgraph.capacity, count - row0)
            values = subgraph.start.view(kernels.dtype)[:size]
            kernels.take(subgraph.vertex, size, a.parent, values)
            out[row0 : row0 + size] = self.gpu.staged.download(values)
        return out
