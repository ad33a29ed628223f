"""Core numbers, out of core: vertices are peeled off, and blocks of edges in memory are worked on before one is read.

1. At a level, every vertex that has no more edges than that to vertices that are left is removed, and its lists are pending.
2. The block of edges with the most pending lists is taken, of those in memory first. Each edge in them takes one from the vertex at its
   other end; one that comes down to the level is removed in turn.
3. When nothing is pending, the next level is the fewest edges that any vertex has left. The level of its removal is the core number of a
   vertex. Every list is used once, so the edges are read once where those that are needed next are in memory.

Seidman, "Network structure and minimum degree", Social Networks 5, 1983; in parallel: Kabir, Madduri, "Parallel k-core decomposition on
multicore platforms", IPDPS Workshops 2017. Differs in: what is scheduled is a block of edges on disk, not a vertex.
"""

from __future__ import annotations

import os
from dataclasses import replace
from functools import partial
from time import perf_counter
from typing import TYPE_CHECKING

import numpy as np

from oocgraph.algorithms.relaxing import charge_paths, run_fields
from oocgraph.algorithms.runtimes import Runtime, check_runtime, opened_of
from oocgraph.allocator import returned_memory
from oocgraph.arguments import known_keywords
from oocgraph.engine.blocks import Run, Schedule, degree_dtype, load_loop, new_values, total_degrees
from oocgraph.engine.opened import OpenedGraph, Unopened
from oocgraph.errors import ArgumentError
from oocgraph.kernels import relax
from oocgraph.kernels.blocks import HELD_FIRST
from oocgraph.memory import SLACK_BYTES, Budget, PeakSampler, device_bytes_read
from oocgraph.progress import watched
from oocgraph.resources import Resources, resources_of
from oocgraph.results.cores import CoreResult
from oocgraph.results.writer import writing_bytes
from oocgraph.store.graph import CSRStore, open_graph
from oocgraph.store.libraries import load_libraries
from oocgraph.store.rows import BLOCK_ROWS
from oocgraph.store.vertices import VertexIds
from oocgraph.types import Array, Progress, ProgressOption

if TYPE_CHECKING:
    from distributed import Client

SCHEDULES: dict[str, Schedule] = {"auto": "async", "async": "async", "rounds": "rounds"}
"""What `core_numbers` takes."""

NUM_TABLES = 2
"""Core numbers and ranks of all vertices that this process holds, where workers find them, while they come."""


@known_keywords
def core_numbers(
    graph: CSRStore | str | os.PathLike[str],
    *,
    schedule: str = "auto",
    runtime: Runtime | None = None,
    resources: Resources | None = None,
    memory_budget: str | int | None = None,
    client: Client | None = None,
    progress: ProgressOption = None,
) -> CoreResult:
    """Find the core number of every vertex: the largest k of which it belongs to a part of the graph where all have k neighbours in it.

    Parameters
    ----------
    graph
        A graph store or its path, without self-loops. In a directed graph the edges of a vertex are those from it and those to it, and an
        edge in both directions counts twice, as with NetworkX; so do duplicates that the build has kept.
    schedule
        ``auto`` and ``async``: blocks of edges in memory before others. ``rounds``: blocks in order, again and again. The numbers are
        the same. A cluster has ``async`` alone.
    runtime
        The graph opened before (`oocgraph.open_runtime`); it has its own resources. Of one on a cluster the workers are used, not what they
        have loaded.
    resources
        Threads, memory and cluster; see `oocgraph.Resources`.
    memory_budget
        Bytes that the process, or each worker, may hold (text such as ``"640M"``); the same as in `resources`.
    client
        A `distributed.Client` whose workers share the edges; the same as in `resources`. By default the current client, if there is one.
    progress
        Called with ("edges followed", how many, 0); True draws a bar.

    Returns
    -------
    CoreResult

    Raises
    ------
    ArgumentError
        An argument is invalid; the graph has self-loops.
    BudgetError
        The budget is too small; the message names the smallest that works.
    ClusterError
        The client is closed, no worker comes in time, workers have another version or do not see the graph, or are lost again and again.
    StoreError, CorruptStoreError
        The store cannot be opened or read.

    Notes
    -----
    Host memory: about 10.4 bytes a vertex (12.7 of a directed graph), and as many blocks of 64 KiB of neighbours as the budget has room
    for, at least one for each of 8 threads that read and of those that compute. On a worker of a cluster about 100 bytes a vertex, and 12
    for each share of the edges.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> from oocgraph import build_csr
    >>> with TemporaryDirectory() as folder:
    ...     result = core_numbers(build_csr(([1, 1, 2, 3], [2, 3, 3, 4]), f"{folder}/g.zarr"))
    ...     result.vertices.tolist(), result.core_number.tolist(), result.degeneracy
    ([1, 2, 3, 4], [2, 2, 2, 1], 2)
    """
    asked = resources_of("core_numbers", resources, memory_budget=memory_budget, client=client, runtime=runtime, graph=graph)
    if runtime is not None:
        check_runtime(runtime, graph)
        graph, asked = runtime.store, replace(runtime.resources, client=runtime.client)
    return find_cores(open_graph(graph), schedule, asked, progress=progress, runtime=runtime)


def check_task(store: CSRStore, schedule: str, *, is_on_cluster: bool = False) -> None:
    """Refuse arguments that make no sense."""
    if schedule not in SCHEDULES:
        raise ArgumentError(f"schedule is {schedule!r}; it must be one of {', '.join(SCHEDULES)}")
    if SCHEDULES[schedule] != "async" and is_on_cluster:
        raise ArgumentError(f"schedule is {schedule!r}; a cluster has async alone: leave it out, or run in this process")
    if store.attributes.num_self_loops:
        raise ArgumentError(
            f"{store.url} has {store.attributes.num_self_loops} self-loops, and no core number counts these; "
            "build it with keep_self_loops=False"
        )


def find_cores(
    store: CSRStore, schedule: str, resources: Resources, *, progress: ProgressOption, following_bytes: int = 0,
    runtime: Runtime | None = None,
) -> CoreResult:  # fmt: skip
    """Find core numbers; what is done next needs up to `following_bytes`, for which a refusal names a budget, too."""
    started = perf_counter()
    check_task(store, schedule, is_on_cluster=bool(resources.client))
    here = replace(resources, memory_budget=None) if resources.client else resources  # of this process, where workers' numbers come to
    is_opened = runtime is not None and not resources.client
    opened = opened_of(runtime, store, resources) if is_opened else Unopened(here.limit_bytes, following_bytes)
    load_libraries(store)
    with watched(progress) as shown, PeakSampler() as sampler, returned_memory():
        if resources.client:
            core_number, rank, run = opened.within(partial(_on_cluster, store, resources, shown))
        else:
            load_loop(relax.peel, degree_dtype(store), store, None)
            core_number, rank, run = opened.within(partial(_in_process, store, opened, resources.num_threads, SCHEDULES[schedule], shown))
    return CoreResult(
        stored_core_number=core_number, stored_rank=rank, schedule=SCHEDULES[schedule], ids=VertexIds(store),
        edge_bytes=store.edge_bytes, **run_fields(run, started, sampler, here),
    )  # fmt: skip


def _in_process(
    store: CSRStore, opened: OpenedGraph | Unopened, threads: int, schedule: Schedule, progress: Progress, budget: Budget
) -> tuple[Array, Array, Run]:  # fmt: skip
    """Find core numbers and ranks, in this process."""
    n, kind = store.num_rows, degree_dtype(store)
    vertex_bytes = n * (kind.itemsize + store.index_dtype.itemsize)
    budget.alternatively("the result, when it is written,", vertex_bytes + SLACK_BYTES + writing_bytes(store))
    beside = {"degrees and ranks": vertex_bytes + n // 8 + 16 * BLOCK_ROWS}
    with opened.blocks(store, None, budget, threads=threads, beside=beside, in_lists=True) as engine:
        degree, rank = total_degrees(store), np.empty(n, store.index_dtype)
        values, device = new_values(degree, rank, -1, num_left=n), device_bytes_read()
        none = np.empty(0, np.int64), np.empty(0, np.int32)
        work = engine.run(relax.peel, values, *none, schedule=schedule, slack=HELD_FIRST, progress=progress)
        return degree, rank, Run(engine.num_blocks, work, device_bytes_read() - device)


def _on_cluster(store: CSRStore, resources: Resources, progress: Progress, budget: Budget) -> tuple[Array, Array, Run]:
    """As `_in_process`, on workers; imports nothing of Dask before."""
    from oocgraph.cluster.block_rounds import run_on_cluster
    from oocgraph.cluster.worker_cores import CoresSpec

    charge_paths(store, budget, NUM_TABLES * store.num_rows * (degree_dtype(store).itemsize + store.index_dtype.itemsize))
    found = run_on_cluster(store, resources, CoresSpec, title="the peeling", label="core-step", merge=None, progress=progress)
    degree, rank = (array if array.flags.writeable else array.copy() for array in found.table[:2])
    return degree, rank, found.run
