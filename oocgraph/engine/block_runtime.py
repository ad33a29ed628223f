"""Searches by blocks of edges, where a wave front that is read level by level would read the same blocks again and again.

In: a store whose vertices are ordered by locality, so that a block of edges is a neighbourhood, and a budget that does not hold all of
them. Out: `BlockRuntime`: levels are shortest paths with weights of 1, so a block that is in memory is used as long as its levels are among
the next (`oocgraph.engine.blocks`). Levels are exact; of parents that are one level before, the smallest is taken.
"""

from __future__ import annotations

from time import perf_counter
from typing import Any, Self

import numpy as np

from oocgraph.closing import Closing
from oocgraph.compiled.load import load_kernel
from oocgraph.config import settings
from oocgraph.engine.afterwards import allow_for_result
from oocgraph.engine.blocks import LEVEL_SLACK, BlockEngine, forget_beyond, load_loop, new_values
from oocgraph.engine.lifetime import Lifetime
from oocgraph.engine.whole import WholeGraph
from oocgraph.errors import ArgumentError
from oocgraph.kernels import blocks as kernels
from oocgraph.kernels import relax
from oocgraph.memory import Budget, device_bytes_read, limit_bytes_of
from oocgraph.progress import watched
from oocgraph.results.search import Iteration, Search
from oocgraph.store.graph import CSRStore
from oocgraph.store.libraries import load_libraries
from oocgraph.types import UNREACHED, Array, Direction, Progress, ProgressOption, ignore_progress, no_parent

NOT_REACHED = np.int32(2**31 - 1)


class BlockRuntime(WholeGraph, Closing):
    """A graph ready for searches by blocks. Use `BlockRuntime.open` in a ``with`` statement."""

    planes_resident = 0

    def __init__(self, store: CSRStore, budget: Budget, *, threads: int) -> None:
        began = perf_counter()
        self.store, self.budget, self.lifetime = store, budget, Lifetime(store.url)
        beside = {"levels and parents": store.num_rows * (4 + store.index_dtype.itemsize)}
        self._engine = BlockEngine(store, None, budget, threads=threads, beside=beside)
        self.load_seconds = perf_counter() - began

    @classmethod
    def open(
        cls, store: CSRStore, *, memory_budget: str | int | None = None, threads: int | None = None, following_bytes: int = 0,
        progress: ProgressOption = None, **_: Any,
    ) -> Self:  # fmt: skip
        """Check the budget and find out where rows are; arguments as of `oocgraph.engine.local.LocalRuntime.open`.

        Raises
        ------
        BudgetError
            The budget is too small; names the smallest that works.
        """
        load_libraries(store)
        with watched(progress):
            load_loop(relax.levels, np.dtype(np.int32), store, None)
            rows = kernels.empty_rows()
            load_kernel(kernels.count_reached, (rows, np.empty(0, np.int32), NOT_REACHED))
        knobs = settings()
        budget = Budget(limit_bytes_of(memory_budget), following_bytes=following_bytes)
        allow_for_result(budget, store)
        return cls(store, budget, threads=threads or knobs.threads)

    def close(self) -> None:
        """Close files; closing again does nothing."""
        with self.lifetime.ending() as was_open:
            if was_open:
                self._engine.close()

    def search(
        self, sources: Array, *, direction: Direction = "auto", depth_limit: int | None = None, targets: Array | None = None,
        progress: Progress = ignore_progress,
    ) -> Search:  # fmt: skip
        """Traverse from `sources`, (num_sources,) int64 store numbers, distinct, perhaps none, until all of `targets` are found, if given.

        The result is in store order.

        Raises
        ------
        ArgumentError
            A direction is asked for.
        """
        self.lifetime.check()
        if direction != "auto":
            raise ArgumentError(
                f"direction is {direction!r}, but {self.store.url} is in locality order and its edges do not fit the memory budget, so "
                "that it is searched by blocks; take direction auto, raise memory_budget, or build it with the vertex order degree"
            )
        with self.lifetime.searching:
            return self._search(sources, depth_limit, np.empty(0, np.int64) if targets is None else targets, progress)

    def _search(self, sources: Array, depth_limit: int | None, targets: Array, progress: Progress) -> Search:
        store, began, device = self.store, perf_counter(), device_bytes_read()
        level = np.full(store.num_rows, NOT_REACHED)
        parent = np.full(store.num_rows, no_parent(store.index_dtype), store.index_dtype)
        level[sources], parent[sources] = 0, sources
        values = new_values(level, parent, NOT_REACHED if depth_limit is None else depth_limit, targets=targets)
        buckets = np.zeros(sources.size, np.int32)
        work = self._engine.run(
            relax.levels, values, sources, buckets, schedule="async", slack=LEVEL_SLACK, progress=progress, loads_all=False
        )  # fmt: skip
        if targets.size:
            forget_beyond(level[targets].max(), level, parent, NOT_REACHED)
        num_reached, num_entries, depth = kernels.count_reached(self._engine.rows, level, NOT_REACHED)

        def is_reached(vertices: Array) -> Array:
            reached: Array = level[vertices] != UNREACHED
            return reached

        num_entries -= store.count_dead_edges(is_reached)
        loops = store.count_self_loops(is_reached)
        seconds, num_bytes = perf_counter() - began, max(work.bytes_read, device_bytes_read() - device)
        reason = f"by blocks of edges, those in memory first: {work.num_read} blocks read, {self._engine.num_blocks} in the graph"
        return Search(
            sources=sources, parent=parent, level=level, num_reached=num_reached,
            num_reached_edges=num_entries if store.attributes.directed else (num_entries + loops) // 2, depth=depth, seconds=seconds,
            bytes_requested=work.bytes_read, bytes_read=num_bytes,
            iterations=(Iteration(depth, "push", reason, sources.size, 0, seconds, work.bytes_read),) if depth else (),
        )  # fmt: skip
