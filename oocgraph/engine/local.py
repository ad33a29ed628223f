"""Searches in this process: one partition, the whole graph.

In: a store, a budget. Out: a `LocalRuntime`, loaded once, on which `oocgraph.engine.levels` runs any number of searches.
Notes on memory: what is charged to the budget is in `plan.residency`; a search allocates new parents and levels
because the result keeps them.
"""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from typing import Any, Self

import numpy as np

from oocgraph.config import Settings, settings
from oocgraph.engine.afterwards import allow_for_result
from oocgraph.engine.buffers import BufferPool
from oocgraph.engine.cpu_engine import BUFFER_BYTES, WORD_SECONDS, Engine
from oocgraph.engine.few import FEW_ROOM, FOUND_BYTES, SMALL_ROWS, few_limits, search_few
from oocgraph.engine.levels import MAX_DEPTH_LIMIT
from oocgraph.engine.shard_plan import Loading, ShardPlan
from oocgraph.engine.state import SearchState
from oocgraph.engine.whole import WholeGraph
from oocgraph.errors import BudgetError
from oocgraph.kernels import cpu, serial_levels, warm
from oocgraph.kernels.rows import NO_LONG_ROWS
from oocgraph.kernels.serial_levels import LOG_COLUMNS
from oocgraph.memory import Budget, host_bytes, limit_bytes_of
from oocgraph.plan.direction import Choice
from oocgraph.plan.residency import QUEUE_CAPACITY, Residency
from oocgraph.progress import watched
from oocgraph.results.search import Iteration, Search
from oocgraph.store.graph import CSRStore, open_graph
from oocgraph.store.libraries import load_libraries
from oocgraph.types import LEVEL_UNREACHED, Array, Direction, Progress, ProgressOption, ignore_progress, no_parent

SMALL_EDGES, ROOM_BYTES = 1 << 20, 256 << 20
"""Of a graph of so few edges all levels may be tiny; kernels of others are loaded when there is one, if a budget leaves so much room."""

WAKING_SECONDS = 2e-4
"""What a level costs that threads share, beside its work: to choose how it is found, to hand it over, and to wait for the last of them."""

MOST_SERIAL_SECONDS = 5e-3
"""Largest work of a level that one thread does in a call which cannot be interrupted."""

SERIAL_LOG = 128
"""Levels in one call of the kernel for those that one thread finds, which cannot be interrupted: 0.6 s at the most."""

KERNEL_BYTES = 24 << 20
"""What those kernels take, and finding out whether they are cached; measured 12 MiB."""


def _may_load_later(store: CSRStore, limit_bytes: int) -> bool:
    """Whether kernels of large levels may wait until there is such a level: most of what a first search waits for is their compilation."""
    return store.attributes.num_stored_edges <= SMALL_EDGES and limit_bytes - host_bytes() >= ROOM_BYTES


def _has_table(store: CSRStore) -> bool:
    """Whether searches begin with a table of what they find: of fewer edges they gain little, and wait for its kernel to be compiled."""
    return store.num_rows > SMALL_ROWS and store.attributes.num_stored_edges > SMALL_EDGES


def _new_state(store: CSRStore, residency: Residency, buffers: BufferPool) -> SearchState:
    return SearchState(store.num_rows, store.index_dtype, buffers, num_kept=residency.num_kept, wide=residency.road)


class LocalRuntime(WholeGraph, Engine):
    """A graph ready for searches in this process. Use `LocalRuntime.open` in a ``with`` statement."""

    def __init__(
        self,
        store: CSRStore,
        budget: Budget,
        *,
        threads: int,
        io_threads: int,
        max_planes: int | None,
        knobs: Settings,
    ) -> None:
        began = time.perf_counter()
        if _has_table(store):
            budget.hold("tables of few vertices", FOUND_BYTES * FEW_ROOM)
        buffers = BufferPool()
        plan = ShardPlan(store, None, 0, Loading(threads, io_threads, BUFFER_BYTES, max_planes))
        graph = plan.load_within(budget, lambda residency: _new_state(store, residency, buffers).touch())
        super().__init__(store, graph, threads=threads, io_threads=io_threads, knobs=knobs)
        self.budget, self._buffers = budget, buffers
        self._serial_log = np.empty((SERIAL_LOG, LOG_COLUMNS)) if self._is_serial else np.empty((0, LOG_COLUMNS))
        gained = 1 - 1 / self.threads
        self._serial_nanoseconds = int(1e9 * min(MOST_SERIAL_SECONDS, WAKING_SECONDS / gained if gained else MOST_SERIAL_SECONDS))
        self.load_seconds = time.perf_counter() - began

    @classmethod
    def open(
        cls,
        graph: CSRStore | str | os.PathLike[str],
        *,
        memory_budget: str | int | None = None,
        threads: int | None = None,
        io_threads: int | None = None,
        max_planes: int | None = None,
        check_pages: bool = False,
        following_bytes: int = 0,
        progress: ProgressOption = None,
    ) -> Self:
        """Check the budget and load what stays in memory.

        Parameters
        ----------
        graph
            A store or its path.
        memory_budget
            Bytes of the whole process (text such as ``640M``); by default most of what machine and control group leave.
        threads, io_threads
            Compute and reading threads; by default from the configuration.
        max_planes
            Resident planes at most; by default as many as stored, where they pay and fit.
        check_pages
            Compare whatever is read during searches with its checksum; what is loaded before them always is, unless it is compressed.
        following_bytes
            What is done next needs so many bytes beside the interpreter, at the most: a refusal names a budget for both.

        Raises
        ------
        BudgetError
            The budget is too small; names the smallest that works.
        StoreError
            `graph` is not a store that can be read.
        """
        store = open_graph(graph, check_pages=check_pages)
        knobs = settings()
        load_libraries(store)
        with watched(progress) as shown:
            limit = limit_bytes_of(memory_budget)
            only_tiny = _may_load_later(store, limit)
            warm.load_search_kernels(store.attributes.index_dtype, shown, only_tiny=only_tiny)
        budget = Budget(limit, following_bytes=following_bytes)
        if only_tiny:
            budget.reserve("kernels of large levels", KERNEL_BYTES)
        allow_for_result(budget, store)
        return cls(
            store,
            budget,
            threads=threads or knobs.threads,
            io_threads=io_threads or knobs.io_threads,
            max_planes=max_planes,
            knobs=knobs,
        )

    @classmethod
    def holds_all(
        cls, store: CSRStore, *, memory_budget: str | int | None = None, threads: int | None = None, io_threads: int | None = None,
        max_planes: int | None = None, **_: Any,
    ) -> bool:  # fmt: skip
        """Whether a budget holds all edges, as of now; arguments as of `open`."""
        knobs = settings()
        load_libraries(store)
        limit = limit_bytes_of(memory_budget)
        warm.load_search_kernels(store.attributes.index_dtype, ignore_progress, only_tiny=_may_load_later(store, limit))
        budget = Budget(limit)
        loading = Loading(threads or knobs.threads, io_threads or knobs.io_threads, BUFFER_BYTES, max_planes)
        plan = ShardPlan(store, None, 0, loading)
        try:
            budget.reserve_all(store.mask_charges(plan.groups))
            residency = plan.residency(available_bytes=budget.available_bytes, limit_bytes=budget.limit_bytes)
        except BudgetError:
            return False
        return residency.num_resident == plan.sizes().num_edges

    def search(
        self, sources: Array, *, direction: Direction = "auto", depth_limit: int | None = None, targets: Array | None = None,
        progress: Progress = ignore_progress,
    ) -> Search:  # fmt: skip
        """Traverse from `sources`; see `WholeGraph.search`. Vertex state is touched only once many vertices are found."""
        push = self.graph.push
        if _has_table(self.store) and push.all_resident and self.store.where is None and direction in ("auto", "push"):
            self.lifetime.check()
            limits = few_limits(self.store, MAX_DEPTH_LIMIT if depth_limit is None else depth_limit)
            if (found := search_few(self.store, push.lookup, push.resident, sources, targets, limits, dense=False)) is not None:
                return found
        return super().search(sources, direction=direction, depth_limit=depth_limit, targets=targets, progress=progress)

    def load_large_levels(self) -> None:
        """Bring into memory the kernels that `open` has left out."""
        warm.load_search_kernels(self.store.attributes.index_dtype)

    @property
    def _is_serial(self) -> bool:
        """Whether one thread can find levels by itself, whichever direction they take."""
        return all(adjacency.all_resident for adjacency in self.graph.adjacencies)

    def little_levels(self, state: SearchState, last_level: int, *, may_pull: bool) -> bool:
        """Find levels that are little work, many in one call; returns whether one is left that is more."""
        if not self._is_serial:
            return super().little_levels(state, last_level, may_pull=may_pull)
        push, pull, log, began_at = self.graph.push, self.graph.pull, self._serial_log, state.level
        last_of_form = np.iinfo(np.int32).max if state.wide else LEVEL_UNREACHED - 1
        limits = np.array([last_level, last_of_form, self._serial_nanoseconds, may_pull], np.int64)
        progress = np.array(
            [state.frontier_size, state.frontier_edges, state.level, 0, state.counts[6], state.num_reached, 0, state.queued], np.int64
        )
        status = cpu.STATUS_LOG_FULL
        while status == cpu.STATUS_LOG_FULL:
            progress[serial_levels.ROWS], first = 0, int(progress[serial_levels.LEVEL])
            status = serial_levels.search_levels(
                push.lookup, push.resident, pull.lookup, pull.heads, pull.resident, progress, limits, state.queues, state.frontier,
                state.visited, state.before, state.undecided, state.marks, NO_LONG_ROWS, no_parent(self.store.index_dtype), state.targets,
                log,
            )  # fmt: skip
            state.log.add_serial(first + 1, log[: progress[serial_levels.ROWS]])
        size, edges, level, _, queue, state.num_reached, reached_edges, is_listed = progress.tolist()
        state.frontier_size, state.frontier_edges, state.level = size, edges, level
        state.counts[6], state.queued, state.pulled = queue, bool(is_listed), not is_listed
        state.is_finished = status == cpu.STATUS_DONE
        if state.is_finished and began_at == 0:
            state.reached_edges = reached_edges + edges
        elif not state.is_finished:
            self.measure(state)
        return not state.is_finished

    def finish(self, state: SearchState) -> None:
        """Set parent and level of what was not reached, unless they are."""
        if not state.is_finished:
            super().finish(state)

    @property
    def resident(self) -> Mapping[str, Array]:
        """Beginnings of arrays of the store that are in host memory, by name."""
        group, graph = self.store.pull_group, self.graph
        return {
            "out/indices": graph.push.resident,
            f"{group}/indices": graph.pull.resident,
            f"{group}/planes/indices": graph.pull.heads.edges,
        }

    def results(self, state: SearchState) -> tuple[Array, Array]:
        """Return parent and level."""
        return state.parent, state.levels

    def start(self, sources: Array) -> SearchState:
        """Return the state in which `sources` (store numbers, distinct) are visited at level 0 and are the frontier."""
        self.lifetime.check()
        state = self._new_state()
        state.unvisited_edges = self.graph.pull.num_edges
        cpu.mark_vertices(sources, sources.size, state.frontier)
        state.visited[:] = state.frontier
        state.parent[sources] = sources
        state.levels[sources] = 0
        state.frontier_size = sources.size
        self._measure_frontier(state)
        state.queued = sources.size <= QUEUE_CAPACITY
        if state.queued:
            state.queues[0, : sources.size] = sources
        return state

    def _new_state(self) -> SearchState:
        return _new_state(self.store, self.graph.residency, self._buffers)

    def begin_iteration(self, state: SearchState) -> None:
        """Remember what is visited, and make room for the next level."""
        self._to_bitmap(state)
        state.widen_if_needed()
        state.before[:] = state.visited

    def advance(self, state: SearchState, choice: Choice, *, frontier: int, undecided: int, began: float, num_bytes: int) -> None:
        """Make the vertices found in this iteration the frontier, and record its metrics."""

        def advance(a: int, z: int) -> int:
            return int(cpu.difference(a, z, state.visited, state.before, state.frontier))

        state.frontier_size = sum(self.team.run_range(advance, state.num_words, WORD_SECONDS * state.num_words))
        state.level += 1
        state.pulled = choice.direction == "pull"
        state.bytes_requested += num_bytes
        self._measure_frontier(state)
        seconds = time.perf_counter() - began
        state.log.add(Iteration(state.level, choice.direction, choice.reason, frontier, undecided, seconds, num_bytes))

    def measure(self, state: SearchState) -> None:
        """Count again what has been reached."""
        state.num_reached, edges = self._count_edges(self.graph.pull, state.visited, state.num_reached)
        state.unvisited_edges = self.graph.pull.num_edges - edges

    def _measure_frontier(self, state: SearchState) -> None:
        size = state.frontier_size
        edges = self._count_edges(self.graph.push, state.frontier, size)[1]
        pull_edges = edges if self.graph.pull is self.graph.push else self._count_edges(self.graph.pull, state.frontier, size)[1]
        state.frontier_edges = edges
        state.num_reached += size
        state.unvisited_edges -= pull_edges
