"""Searches of a whole graph on one GPU of this process.

In: a store, a budget of device memory and one of host memory. Out: a `DeviceRuntime`, loaded once, on which `oocgraph.engine.levels` runs
any number of searches. What is charged to either budget is in `plan.device_residency`. A search allocates nothing, unless earlier
results still use the memory set aside for results (`oocgraph.engine.result_memory`); then it allocates its own.
"""

from __future__ import annotations

import os
from typing import Any, Self

import numpy as np

from oocgraph.arrays import Device, device_choice
from oocgraph.config import settings
from oocgraph.engine.cpu_engine import BUFFER_BYTES
from oocgraph.engine.device_engine import DeviceEngine
from oocgraph.engine.device_load import device_limit_bytes, load_device_graph
from oocgraph.engine.device_state import DeviceArrays, DeviceState
from oocgraph.engine.result_memory import ResultMemory
from oocgraph.engine.whole import WholeGraph
from oocgraph.errors import OocGraphError
from oocgraph.kernels import warm
from oocgraph.kernels.gpu import GpuKernels
from oocgraph.memory import Budget, limit_bytes_of
from oocgraph.plan.direction import Choice
from oocgraph.progress import watched
from oocgraph.store.graph import CSRStore, open_graph
from oocgraph.types import Array, ProgressOption

SOURCES = 1 << 12
"""Sources brought to the device at once: fewer than a queue of tiny frontiers holds, which they are the first content of."""


class DeviceRuntime(WholeGraph, DeviceEngine):
    """A graph ready for searches on a GPU. Use `DeviceRuntime.open` in a ``with`` statement."""

    arrays: DeviceArrays
    result_memory: ResultMemory
    device_limit: int
    road: bool
    device_bytes: int

    @classmethod
    def open(
        cls,
        graph: CSRStore | str | os.PathLike[str],
        *,
        device: Device | None = None,
        device_memory_budget: str | int | None = None,
        memory_budget: str | int | None = None,
        threads: int | None = None,
        io_threads: int | None = None,
        max_planes: int | None = None,
        max_host_edges: int | None = None,
        max_results: int | None = None,
        check_pages: bool = False,
        progress: ProgressOption = None,
    ) -> Self:
        """Check both budgets and load what stays in memory.

        Parameters
        ----------
        graph
            A store or its path.
        device
            Where to search; by default the GPU that CuPy regards as current.
        device_memory_budget
            Bytes of device memory (text such as ``4G``): state, planes, prefix sums, staging; by default most of what is free. CUDA's
            context and the compiled kernels are not part of it.
        memory_budget
            Bytes of host memory of the whole process; by default most of what machine and control group leave.
        threads, io_threads
            Threads that load, and that gather edges; by default from the configuration.
        max_planes
            Planes on the device at most; by default as many as stored, where they pay and fit.
        max_host_edges
            Edges in pinned host memory at most; by default as many as fit. 0: all that is not on the device comes from the store.
        max_results
            Results that have page-locked memory of their own at most; by default two, if they fit.
        check_pages
            Compare every page read with its checksum.
        progress
            Called with kernels compiled, and with bytes of edges page-locked and read in host memory.

        Raises
        ------
        DeviceError
            No GPU can be used: the message says why.
        BudgetError
            One of the budgets is too small; names the smallest that works.
        StoreError
            `graph` is not a store that can be read.
        """
        store = open_graph(graph, check_pages=check_pages)
        knobs = settings()
        if device is None:
            device = device_choice("cuda").device
            assert device is not None
        _check_width(store)
        limit = device_limit_bytes(device, device_memory_budget if device_memory_budget is not None else knobs.device_memory_budget)
        budget = Budget(limit_bytes_of(memory_budget))
        io_threads = io_threads or knobs.io_threads
        with watched(progress) as shown:
            warm.load_search_kernels(store.attributes.index_dtype, shown, device=True)
            kernels = GpuKernels(device, store.index_dtype)
            loaded = load_device_graph(
                store, device, budget, device_limit=limit, threads=threads or knobs.threads, io_threads=io_threads,
                buffer_bytes=BUFFER_BYTES, max_planes=max_planes, max_host_edges=max_host_edges, max_results=max_results,
                progress=shown,
            )  # fmt: skip
        try:
            runtime = cls(store, loaded, device, kernels, io_threads=io_threads, scratch_bytes=BUFFER_BYTES, knobs=knobs)
            runtime.arrays = DeviceArrays(device, store.index_dtype, store.num_rows)
            runtime.result_memory = ResultMemory(device, loaded.residency.num_results, loaded.residency.result_bytes)
        except BaseException:
            loaded.close()
            raise
        runtime.budget, runtime.device_limit = budget, limit
        runtime.road, runtime.device_bytes = loaded.residency.road, loaded.residency.device_bytes
        return runtime

    @property
    def load_seconds(self) -> float:
        """What loading took."""
        return self.graph.load_seconds

    @property
    def device_metrics(self) -> dict[str, Any]:
        """Where searches run, and what they hold there."""
        return {"device": self.device.name, "device_memory_budget": self.device_limit, "device_bytes": self.device_bytes}

    def start(self, sources: Array) -> DeviceState:
        """Return the state in which `sources` (store numbers, distinct) are visited at level 0 and are the frontier."""
        self.lifetime.check()
        state = DeviceState(self.kernels, self.arrays, self.store.num_rows, wide=self.road)
        a = self.arrays
        with self.naming(state):
            state.clear()
            for first in range(0, sources.size, SOURCES):
                some = sources[first : first + SOURCES].astype(self.kernels.dtype)
                target = self.tiny.queues[0][: some.size]
                self.staged.upload(some, target)
                self.kernels.begin_search(target, a.frontier, a.visited, a.parent, a.level8, a.level32, wide=state.wide)
            self.measure_frontier(state)
        state.num_queued = sources.size if sources.size <= SOURCES else -1
        state.num_reached = state.frontier_size
        state.unvisited_edges = self.graph.pull.num_edges - state.frontier_pull_edges
        return state

    def results(self, state: DeviceState) -> tuple[Array, Array]:
        """Return parent and level on the host."""
        n, a = state.num_vertices, state.arrays
        sources = a.parent[:n], a.level32[:n] if state.wide else a.level8[:n]
        with self.naming(state):
            found = self.result_memory.download(self.kernels.stream, *sources)
            parent, level = self.staged.download_all(*sources) if found is None else found
        return parent, level

    def close(self) -> None:
        """End the threads, close the files, give the memory back, but that of results; closing again does nothing."""
        memory = self.__dict__.get("result_memory")
        super().close()
        if memory is not None:
            memory.close()

    def advance(self, state: DeviceState, choice: Choice, *, frontier: int, undecided: int, began: float, num_bytes: int) -> None:
        """Make the vertices found in this iteration the frontier, and record its metrics."""
        with self.naming(state):
            state.swap_frontier()
            self.measure_frontier(state)
        state.level += 1
        state.pulled = choice.direction == "pull"
        state.bytes_requested += num_bytes
        state.num_reached += state.frontier_size
        state.unvisited_edges -= state.frontier_pull_edges
        state.log.add(self.iteration(state, choice, frontier=frontier, undecided=undecided, began=began, num_bytes=num_bytes))


def _check_width(store: CSRStore) -> None:
    """Refuse ids that kernels of the store's width cannot hold."""
    if store.num_rows > np.iinfo(store.index_dtype).max - 1:
        raise OocGraphError(f"{store.url} has {store.num_rows:,} vertices, which ids of {store.index_dtype} cannot number")
