"""Shortest paths from one source, out of core: blocks of edges are worked on by priority, those in memory first.

1. The distance of the source is 0, and its blocks of edges are pending at bucket 0; the bucket of a distance is that distance by `delta`.
2. The block with the earliest bucket is taken: one that is in memory, unless one on disk is more than `slack` buckets earlier. The edges
   of its pending vertices are relaxed, up to `slack` buckets ahead; what that improves is pending from then on.
3. When nothing is pending, no distance gets better, and they are the shortest.

Meyer, Sanders, "Delta-stepping: a parallelizable shortest path algorithm", J. Algorithms 49, 2003, and its asynchronous form: Nguyen,
Lenharth, Pingali, "A Lightweight Infrastructure for Graph Analytics", SOSP 2013. Differs in: what is scheduled is a block of edges on disk,
not a vertex, so that a block that is in memory is used for as long as its priority is good.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from functools import partial
from math import floor
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np

from oocgraph.algorithms.relaxing import Relaxed, Relaxing, checked_runtime, checked_schedule, widths
from oocgraph.algorithms.runtimes import Runtime, opened_of
from oocgraph.allocator import returned_memory
from oocgraph.arguments import known_keywords
from oocgraph.engine.blocks import EdgeError, load_loop
from oocgraph.engine.opened import Unopened
from oocgraph.errors import ArgumentError
from oocgraph.kernels import relax
from oocgraph.kernels.blocks import OVERFLOW
from oocgraph.memory import Budget, PeakSampler
from oocgraph.progress import watched
from oocgraph.resources import Resources, resources_of
from oocgraph.results.paths import SSSPResult
from oocgraph.store.graph import CSRStore, open_graph
from oocgraph.store.libraries import load_libraries
from oocgraph.store.scipy import weight_column
from oocgraph.store.vertices import VertexIds
from oocgraph.types import ProgressOption


@known_keywords
def sssp(
    graph: CSRStore | str | os.PathLike[str],
    source: Any,
    *,
    weight: str | None = None,
    schedule: str = "auto",
    delta: float | None = None,
    target: Any = None,
    distance_limit: float | None = None,
    runtime: Runtime | None = None,
    resources: Resources | None = None,
    memory_budget: str | int | None = None,
    progress: ProgressOption = None,
) -> SSSPResult:
    """Find the shortest paths from a vertex to all others.

    Parameters
    ----------
    graph
        A graph store or its path. Of a directed graph, paths follow the edges.
    source
        User id of the source.
    weight
        Edge column of the weights, numbers of 0 or more; by default the graph's.
    schedule
        ``auto`` and ``async``: by priority, block by block. ``buckets``: in sweeps over the earliest bucket (delta-stepping). ``rounds``:
        in sweeps over all that is pending (Bellman-Ford). The distances and parents are the same.
    delta
        Width of a bucket, as a distance; by default chosen by the weights and the degrees.
    target
        User id of a vertex: only vertices that are not farther away are found.
    distance_limit
        Only vertices up to this distance are found.
    runtime
        The graph opened before (`oocgraph.open_runtime`), in this process; it has its own resources.
    resources
        Threads and memory; see `oocgraph.Resources`.
    memory_budget
        Bytes that the process may hold (text such as ``"640M"``); the same as in `resources`.
    progress
        Called with ("edges followed", how many, 0); True draws a bar.

    Returns
    -------
    SSSPResult

    Raises
    ------
    ArgumentError
        An argument is invalid; the graph has no weights; a weight is negative or no number, or distances do not fit into 62 bits.
    VertexNotFoundError
        `source` or `target` does not occur in the graph's input.
    BudgetError
        The budget is too small; the message names the smallest that works.
    StoreError, CorruptStoreError
        The store cannot be opened or read.

    Notes
    -----
    Host memory: about 10.3 bytes a vertex (14.3 where distances are floats or do not fit into 31 bits), and as many blocks of 64 KiB of
    neighbours and their weights as the budget has room for, at least one for each of 8 threads that read and of those that compute.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> import pandas as pd
    >>> from oocgraph import build_csr
    >>> streets = pd.DataFrame({"source": [1, 1, 2], "target": [2, 3, 3], "length": [4, 9, 3]})
    >>> with TemporaryDirectory() as folder:
    ...     result = sssp(build_csr(streets, f"{folder}/g.zarr", weight="length"), 1)
    ...     result.distance.tolist(), result.path(3).tolist()
    ([0, 4, 7], [1, 2, 3])
    """
    asked = resources_of("sssp", resources, memory_budget=memory_budget, runtime=runtime)
    if runtime is not None:
        runtime = checked_runtime(runtime, graph, "shortest paths are found")
        graph, asked = runtime.store, runtime.resources
    task = Task(source, weight, schedule, delta, target, distance_limit)
    return find_paths(open_graph(graph), task, asked, progress=progress, runtime=runtime)


class Task(NamedTuple):
    """What is asked for: arguments of `sssp`."""

    source: Any
    weight: str | None
    schedule: str
    delta: float | None
    target: Any
    distance_limit: float | None


def find_paths(
    store: CSRStore, task: Task, resources: Resources, *, progress: ProgressOption, following_bytes: int = 0, runtime: Runtime | None = None
) -> SSSPResult:  # fmt: skip
    """Find shortest paths; what is done next needs up to `following_bytes`, for which a refusal names a budget, too."""
    started, column = perf_counter(), checked_task(store, task)
    ids = VertexIds(store)
    source, target = (_number_of(ids, name, one) for name, one in (("source", task.source), ("target", task.target)))
    opened = Unopened(resources.limit_bytes, following_bytes) if runtime is None else opened_of(runtime, store, resources)
    load_libraries(store)
    with watched(progress) as shown, PeakSampler() as sampler, returned_memory():
        delta, slack = widths(store, column)
        delta = task.delta or delta
        relaxing = Relaxing(opened, store, column, checked_schedule(task.schedule), slack, 1 / delta, resources.num_threads, shown)
        numbers = np.full(int(source >= 0), source)

        def within(budget: Budget, loop: Any, unreached: Any) -> Relaxed:
            zero = np.zeros(numbers.size, np.int32)
            limit = 0 if source == target else task.distance_limit
            bound = None if limit is None else limit if unreached.dtype.kind == "f" else min(int(unreached), floor(min(limit, 2.0**62)))
            return relaxing.within(budget, loop, unreached, numbers, zero, zero, bound=bound, target=target)

        try:
            for loop, unreached in _loops_of(store, column):
                load_loop(loop, unreached.dtype, store, column)
                try:
                    found = opened.within(partial(within, loop=loop, unreached=unreached))
                    break
                except EdgeError as error:
                    if error.why != OVERFLOW or unreached.dtype == np.int64:
                        raise
        except EdgeError as error:
            raise _refusal(store, column, error) from None
        fields = relaxing.fields_of(found, unreached, started, sampler, resources)
    return SSSPResult(
        **fields, ids=ids, source=task.source, isolated={} if source >= 0 else {task.source: 0}, delta=delta, target=task.target,
        distance_limit=task.distance_limit,
    )  # fmt: skip


def _loops_of(store: CSRStore, column: str) -> Iterator[tuple[Any, Any]]:
    """Yield loops for the weights of a column, and the distance of vertices that are not reached: of 31 bits, then of 62; or floats."""
    if store.array(f"out/{column}").dtype.kind == "f":
        yield relax.shortest_float, np.float64(np.inf)
    else:
        yield relax.shortest_narrow, np.int32(2**31 - 1)
        yield relax.shortest_wide, np.int64(2**63 - 1)


def checked_task(store: CSRStore, task: Task) -> str:
    """Refuse arguments that make no sense; return the column of the weights."""
    checked_schedule(task.schedule)
    for name, value, least in (("delta", task.delta, "above 0"), ("distance_limit", task.distance_limit, "0 or more")):
        is_number = isinstance(value, int | float | np.number) and not isinstance(value, bool)
        if value is not None and not (is_number and (value > 0 or (value == 0 and name == "distance_limit"))):
            raise ArgumentError(f"{name} is {value!r}; it must be a number, {least}")
    column = weight_column(store, task.weight)
    if column is None:
        raise ArgumentError(f"{store.url} has no weights; give weight, the name of an edge column, or count edges by oocgraph.bfs")
    if store.array(f"out/{column}").dtype == np.uint64:
        raise ArgumentError(f"{column!r} is uint64, and distances are int64; build the graph with weights of another dtype")
    return column


def _number_of(ids: VertexIds, name: str, given: Any) -> int:
    """Return the store number of a vertex; -1: it has no edges; -2: it is not given."""
    if given is None and name == "target":
        return -2
    if isinstance(given, list | tuple | set | dict) or getattr(given, "ndim", 0) != 0:
        raise ArgumentError(f"{name} is {given!r}; give one vertex")
    return int(ids.vertices_of(given)[0])


def _refusal(store: CSRStore, column: str, error: EdgeError) -> ArgumentError:
    source, target = VertexIds(store).ids_of([error.source, error.target]).tolist()
    if error.why == OVERFLOW:
        return ArgumentError(
            f"{store.url}: distances do not fit into 62 bits, at the edge from {source!r} to {target!r}; "
            f"build the graph with a smaller {column}"
        )
    return ArgumentError(
        f"{store.url}: {column} of the edge from {source!r} to {target!r} is negative or no number; shortest paths need 0 or more"
    )
