"""Searches that pay for what they reach: of small graphs in memory, and of large ones as long as few vertices are found.

A queue and a table of what is in it hold a search (`oocgraph.kernels.few`). In a graph that is `is_small` a search is one call of a kernel, by
one thread, and opening one costs nothing (`SmallRuntime`). In a large graph in memory every search begins so (`search_few`), and is made again
by the engines of large levels once it has come to its limits: those cost a few percent of such a search at the most.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

import numpy as np

from oocgraph.closing import Closing
from oocgraph.config import settings
from oocgraph.engine.afterwards import allow_for_result
from oocgraph.engine.levels import MAX_DEPTH_LIMIT
from oocgraph.engine.lifetime import Lifetime
from oocgraph.engine.local import LocalRuntime
from oocgraph.engine.whole import WholeGraph
from oocgraph.kernels import few as kernels
from oocgraph.kernels.load import load_kernel
from oocgraph.kernels.rows import explicit_rows
from oocgraph.memory import Budget, effective_budget_bytes
from oocgraph.results.few import levels_and_parents
from oocgraph.results.search import Iteration, Search
from oocgraph.store.graph import CSRStore
from oocgraph.types import Array, Direction, Progress, ignore_progress

SMALL_ROWS, SMALL_EDGES = 1 << 16, 1 << 17
"""Vertices and stored edges up to which a graph is small: its search takes 2 ms at the most, by one thread."""

ROOM_BYTES = 48
"""What a search holds for each vertex that it has room for: while its tables grow, and as a result."""

_NOBODY = np.empty(0, np.int64)


def is_small(store: CSRStore) -> bool:
    """Whether a graph is in memory, with all of its edges, and small."""
    attributes = store.attributes
    return (
        not store.stored.is_shared
        and store.where is None
        and attributes.num_vertices <= SMALL_ROWS
        and attributes.num_stored_edges <= SMALL_EDGES
    )


class SmallRuntime(WholeGraph, Closing):
    """A small graph in memory, ready for searches.

    Parameters
    ----------
    store
        The graph, or a view of it.
    memory_budget
        Bytes of the whole process; by default as of `LocalRuntime.open`.
    following_bytes
        As for `Budget`.
    **options
        Of `LocalRuntime.open`, for searches whose direction is given.
    """

    load_seconds = 0.0
    planes_resident = 0
    device_metrics: Mapping[str, Any] = {}

    def __init__(self, store: CSRStore, *, memory_budget: str | int | None = None, following_bytes: int = 0, **options: Any) -> None:
        self.store, self.lifetime = store, Lifetime(store.url)
        self.budget = Budget(
            effective_budget_bytes(memory_budget if memory_budget is not None else settings().memory_budget), following_bytes=following_bytes
        )
        allow_for_result(self.budget, store)
        self.budget.reserve_all({"searches": ROOM_BYTES * max(kernels.FIRST_ROOM, store.num_rows)})
        self._rows, self._near = explicit_rows(store.array("out/indptr").held), store.array("out/indices").held
        self._options = {"memory_budget": memory_budget, **options}
        self._large: LocalRuntime | None = None

    @property
    def memory_budget(self) -> int:
        """Bytes the process may hold."""
        return self.budget.limit_bytes

    @property
    def resident(self) -> Mapping[str, Array]:
        """Arrays of the store that are in host memory, by name."""
        return {"out/indices": self._near}

    def close(self) -> None:
        """End what was begun; closing again does nothing."""
        with self.lifetime.ending() as was_open:
            if was_open and self._large is not None:
                self._large.close()

    def search(
        self, sources: Array, *, direction: Direction = "auto", depth_limit: int | None = None, targets: Array | None = None,
        progress: Progress = ignore_progress,
    ) -> Search:  # fmt: skip
        """Traverse from `sources`; see `WholeGraph.search`."""
        self.lifetime.check()
        if direction in ("auto", "push"):
            limits = MAX_DEPTH_LIMIT if depth_limit is None else depth_limit, self.store.num_rows, self.store.attributes.num_stored_edges
            found = search_few(self.store, self._rows, self._near, sources, targets, limits, dense=True)
            assert found is not None
            return found
        with self.lifetime.searching:
            if self._large is None:
                self._large = LocalRuntime.open(self.store, **self._options)
        return self._large.search(sources, direction=direction, depth_limit=depth_limit, targets=targets, progress=progress)


def search_few(
    store: CSRStore, lookup: Any, near: Array, sources: Array, targets: Array | None, limits: tuple[int, int, int], *, dense: bool
) -> Search | None:  # fmt: skip
    """Search from some vertices, whose rows are all in memory, unless that finds too much: then None.

    Parameters
    ----------
    store
        The graph, or a view of it.
    lookup, near, sources, targets, limits
        See `oocgraph.kernels.few.search_few`.
    dense
        Whether parent and level are arrays as long as the graph.
    """
    called = lookup, near, store.num_rows, sources, _NOBODY if targets is None else targets, np.array(limits, np.int64)
    load_few(near.dtype, called)
    began = time.perf_counter()
    status, begin, edges, vertices, parents, log = kernels.search_few(*called)
    if status == kernels.GIVEN_UP:
        return None
    bounds = np.append(log[:, 0], (begin, vertices.size))
    level, parent = levels_and_parents(vertices, parents, bounds, store.num_rows, store.index_dtype, dense=dense)
    num_edges = int(log[:, 1].sum()) + edges
    if not store.attributes.directed:
        num_loops = store.count_self_loops(lambda some: level[some] != level.dtype.type(-1)) if store.attributes.num_self_loops else 0
        num_edges = (num_edges + num_loops) // 2
    sizes = np.diff(bounds).tolist()
    return Search(
        sources=sources,
        parent=parent,
        level=level,
        num_reached=vertices.size,
        num_reached_edges=num_edges,
        depth=len(sizes) - 1 if sizes[-1] else max(0, len(sizes) - 2),
        seconds=time.perf_counter() - began,
        bytes_requested=0,
        bytes_read=0,
        iterations=tuple(
            Iteration(number + 1, "push", "few vertices: all levels in one call", size, 0, nanoseconds / 1e9, 0)
            for number, (size, nanoseconds) in enumerate(zip(sizes, log[:, 2].tolist(), strict=False))
        ),
    )


def load_few(dtype: np.dtype[Any], arguments: tuple[Any, ...]) -> None:
    """Bring the kernel of these searches into memory."""
    if dtype not in _loaded:
        load_kernel(kernels.search_few, arguments)
        _loaded.add(dtype)


_loaded: set[np.dtype[Any]] = set()
