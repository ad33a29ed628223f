"""Predicts what a 1D or 2D partitioned breadth-first search would send, how long it would take, and what its workers would hold.

In: a graph, numbers of workers, memory of each. Out: `BFSPlan`. Nothing is partitioned and no cluster is needed:

1. One real search in this process gives every vertex its level, so the frontier of every iteration.
2. For each number of sets, vertices are put into the sets of the real partitions, and what each pair of parts would exchange at each
   level is counted in the lists of all vertices (`oocgraph.parts.traffic_counts`).
3. Bytes and messages follow by the formulas of real messages (`oocgraph.plan.traffic`), time by measured constants
   (`oocgraph.plan.timing`), memory by the charges of real parts (`oocgraph.parts.part_sizes`).

The volumes are those of Buluç and Madduri, "Parallel Breadth-First Search on Distributed Memory Systems", SC 2011, section 5, which models
them for random graphs. Differs from it in: what is modelled is this graph, hubs and all, and this implementation.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from oocgraph.allocator import returned_memory
from oocgraph.arguments import is_whole, known_keywords
from oocgraph.config import parse_bytes, settings
from oocgraph.engine.in_process import open_in_process
from oocgraph.errors import ArgumentError, BudgetError
from oocgraph.memory import SPARE_BYTES, Budget, effective_budget_bytes, format_bytes
from oocgraph.partition.policies import DIMENSIONS, Dimension, grid_columns
from oocgraph.parts.part_sizes import worker_bytes
from oocgraph.parts.traffic_counts import TrafficCounter, TrafficCounts, reading_bytes
from oocgraph.plan.fitting import check_fit
from oocgraph.plan.forecast import BFSPlan, PlannedBFS, iteration_load, plan_case, shape_of
from oocgraph.plan.timing import STORED, Constants, IterationLoad, Shape
from oocgraph.progress import watched
from oocgraph.resources import Resources, resources_of
from oocgraph.store.graph import CSRStore, open_graph
from oocgraph.store.rows import longest_row
from oocgraph.store.vertices import VertexIds
from oocgraph.types import Array, Progress, ProgressOption

VERTEX_BYTES = 16
"""Bytes of a vertex while it is counted: level as found and as int32, set, keys of a block."""

COUNT_BYTES = 8
"""Bytes of a pair of workers at a level: what it exchanges."""

LIST_BYTES = 12 * 8
"""Bytes of a pair of workers: lengths of lists and edges, and what follows from them."""

COUNTING_BYTES = 20 << 20
"""Bytes of threads, compiled kernels and policies while counting; measured 16 MiB."""

USUAL_LEVELS = 16
"""Levels that counts are expected to have before the search has found how many there are."""

MAX_WORKERS = 1 << 13
"""Workers at most: the lengths of the lists of all pairs of them are held, 8 bytes each, a few times."""

SEARCH_LEAVES_BYTES = 24 << 20
"""What the search leaves behind in the process before the counts begin: levels, kernels, decoded chunks in the allocator (14 MiB)."""


@known_keywords
def plan_bfs(
    graph: CSRStore | str | os.PathLike[str],
    workers: int | Iterable[int],
    *,
    source: Any = None,
    constants: Constants = STORED,
    resources: Resources | None = None,
    memory_budget: str | int | None = None,
    progress: ProgressOption = None,
) -> BFSPlan:
    """Predict bytes, messages, time and memory of breadth-first searches over 1D and 2D partitions.

    Parameters
    ----------
    graph
        A graph store or its path.
    workers
        Numbers of workers, each with one partition.
    source
        User id; by default the vertex that has most edges.
    constants
        By default those measured on the project's machine; `oocgraph.algorithms.calibrate.calibrate` measures this one.
    resources
        Threads and memory of each worker; by default one thread, and what a process of this machine may hold.
    memory_budget
        Bytes that each worker may hold (text such as ``"16G"``); the same as in `resources`.
    progress
        Called with ("planning", cases done, cases); True draws a bar.

    Returns
    -------
    BFSPlan

    Raises
    ------
    ArgumentError
        A number of workers is not a whole one from 1 to the number of vertices, or the graph has no edges.
    VertexNotFoundError
        The source does not occur in the graph's input.
    BudgetError
        The counts do not fit this process: 8 bytes for each level and pair of workers.
    StoreError, CorruptStoreError
        The store cannot be opened or read.

    Notes
    -----
    Host memory: that of a search, then 16 bytes a vertex, and 96 bytes for each pair of workers with 8 more for each level.

    Examples
    --------
    >>> plan = plan_bfs("graph.zarr", [4, 16], memory_budget="2G")  # doctest: +SKIP
    >>> [(case.dimension, case.num_workers, case.num_bytes) for case in plan.cases]  # doctest: +SKIP
    """
    store = open_graph(graph)
    numbers = _checked_workers(workers, store)
    asked = resources_of("plan_bfs", resources, memory_budget=memory_budget, graph=graph)
    memory_bytes = effective_budget_bytes(None) if asked.memory_budget is None else parse_bytes(asked.memory_budget)
    threads = asked.threads or 1
    source, vertex = _source(store, source)
    with watched(progress) as shown, returned_memory():
        following_bytes = SEARCH_LEAVES_BYTES + sum(_charges(store, numbers).values()) + _count_bytes(numbers, USUAL_LEVELS)
        level, num_reached, depth = _levels(store, vertex, following_bytes, shown)
        _reserve(store, numbers, depth + 1)
        counter = TrafficCounter(store, level, depth + 1)
        del level
        found = _count(store, counter, numbers, threads, shown)
    cases = tuple(_case(one, found, counter.level_vertices, memory_bytes, threads=threads, constants=constants) for one in found)
    return BFSPlan(
        graph=store.url, source=source, num_reached=num_reached, depth=depth, memory_bytes=memory_bytes, threads=threads,
        constants=constants, cases=cases,
    )  # fmt: skip


class _Found(NamedTuple):
    """What was counted of one case."""

    dimension: Dimension
    shape: Shape
    load: IterationLoad
    needed: tuple[int, int]


def _charges(store: CSRStore, numbers: Sequence[int]) -> dict[str, int]:
    """Bytes that are held beside the counts, by name."""
    return {
        "levels and sets": VERTEX_BYTES * store.num_rows,
        "lengths of lists": LIST_BYTES * max(numbers) ** 2,
        "rows in reading": reading_bytes(store),
        "threads and compiled code": COUNTING_BYTES,
    }


def _count_bytes(numbers: Sequence[int], num_levels: int) -> int:
    """Bytes of the counts of the number of sets that has most pairs."""
    return COUNT_BYTES * num_levels * max(rows * (rows + sum(columns)) for rows, columns in _columns_of_rows(numbers).items())


def _reserve(store: CSRStore, numbers: Sequence[int], num_levels: int) -> None:
    """Refuse what does not fit this process, before anything is counted."""
    charges, needed = _charges(store, numbers), _count_bytes(numbers, num_levels)
    budget = Budget(effective_budget_bytes(settings().memory_budget), following_bytes=sum(charges.values()) + needed)
    with budget.all_or_none():
        for name, num_bytes in charges.items():
            budget.reserve(name, num_bytes)
    if needed > budget.available_bytes:
        fitting = [number for number in numbers if _count_bytes([number], num_levels) <= budget.available_bytes]
        fewer = f"at most {max(fitting):,} workers" if fitting else f"fewer workers than {min(numbers):,}"
        raise BudgetError(
            f"counts of {num_levels:,} levels and {needed // (COUNT_BYTES * num_levels):,} pairs of workers need {format_bytes(needed)}, "
            f"but only {format_bytes(budget.available_bytes)} of the memory budget {format_bytes(budget.limit_bytes)} are left; plan for "
            f"{fewer}, or set memory_budget in the configuration (DASK_OOCGRAPH__MEMORY_BUDGET) to at least "
            f"{-(-(budget.promised_bytes + needed + SPARE_BYTES) >> 20)}M"
        )


def _columns_of_rows(numbers: Sequence[int]) -> dict[int, set[int]]:
    """Return the numbers of columns, without 1, that each number of sets is counted for."""
    wanted: dict[int, set[int]] = {}
    for number in numbers:
        for dimension in DIMENSIONS:
            rows, columns = _grid(number, dimension)
            wanted.setdefault(rows, set()).update({columns} - {1})
    return wanted


def _count(store: CSRStore, counter: TrafficCounter, numbers: Sequence[int], threads: int, progress: Progress) -> list[_Found]:
    """Count for each number of workers, 1D and 2D; sets that both have are counted once."""
    grids = {(number, dimension): _grid(number, dimension) for number in numbers for dimension in DIMENSIONS}
    wanted, found = _columns_of_rows(numbers), {}
    for done, (rows, columns) in enumerate(wanted.items()):
        progress("planning", done, len(wanted))
        counts = counter.count(rows, sorted(columns))
        for key, grid in grids.items():
            if grid[0] == rows:
                found[key] = _found_of(store, counter, key[1], grid[1], counts, threads)
        del counts  # or it would be held beside the next one
    progress("planning", len(wanted), len(wanted))
    return [found[key] for key in grids]


def _grid(number: int, dimension: Dimension) -> tuple[int, int]:
    """Return rows and columns."""
    columns = grid_columns(number) if dimension == "2d" else 1
    return number // columns, columns


def _found_of(store: CSRStore, counter: TrafficCounter, dimension: Dimension, columns: int, counts: TrafficCounts, threads: int) -> _Found:
    needed = worker_bytes(counts, columns, dtype=store.index_dtype, threads=threads, io_threads=settings().io_threads)
    load = iteration_load(
        counts.candidates,
        counts.broadcasts.get(columns),
        counter.level_vertices,
        counter.level_edges,
        parent_bytes=store.index_dtype.itemsize,
    )
    return _Found(dimension, shape_of(counts.edges[columns], counts.set_vertices), load, (needed.resident, needed.least))


def _case(
    one: _Found, found: Sequence[_Found], level_vertices: Array, memory_bytes: int, *, threads: int, constants: Constants
) -> PlannedBFS:
    """Predict one case, and compare its memory with that of the others of its dimension."""
    others = {other.shape.num_parts: other.needed for other in found if other.dimension == one.dimension}
    verdict = check_fit(memory_bytes, *one.needed, others)
    return plan_case(
        one.dimension, one.shape, one.load, level_vertices, constants=constants, threads=threads, needed=one.needed, verdict=verdict
    )


def _checked_workers(workers: int | Iterable[int], store: CSRStore) -> list[int]:
    """Validate the numbers of workers."""
    given = list(workers) if isinstance(workers, Iterable) else [workers]
    n = store.num_rows
    if not n:
        raise ArgumentError(f"{store.url} has no edges, so there is nothing to partition")
    if not given:
        raise ArgumentError("no number of workers was given; name at least one, such as 4")
    most = min(n, MAX_WORKERS)
    for one in given:
        if not is_whole(one, 1, most):
            limit = f"{store.url} has {n:,} vertices with edges" if n <= MAX_WORKERS else f"{MAX_WORKERS:,} is the most that is planned for"
            raise ArgumentError(f"a number of workers is {one!r}; {limit}: give whole numbers from 1 to {most:,}")
    return sorted({int(one) for one in given})


def _source(store: CSRStore, source: Any) -> tuple[Any, int]:
    """Return id and store number of the source; by default of the vertex with most out-edges."""
    ids = VertexIds(store)
    if source is not None:
        (vertex,) = ids.vertices_of([source]).tolist()
        if vertex < 0:
            raise ArgumentError(f"source {source!r} has no edge, so its search sends nothing; choose another, or leave source out")
        return source, vertex
    best, _ = longest_row(store, "out")
    (name,) = ids.ids_of(np.array([best])).tolist()
    return name, best


def _levels(store: CSRStore, vertex: int, following_bytes: int, progress: Progress) -> tuple[Array, int, int]:
    """Search: levels in store order, vertices reached, depth."""
    with open_in_process(store, Resources(device="cpu"), following_bytes=following_bytes, progress=progress) as runtime:
        found = runtime.search(np.array([vertex]), progress=progress)
        return np.array(found.level), found.num_reached, found.depth
