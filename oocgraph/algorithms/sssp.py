"""Shortest paths from a source, or the nearest of several, out of core: blocks are worked on by priority, those in memory first.

1. The distance of a source is 0, and its blocks of edges are pending at bucket 0; the bucket of a distance is that distance by `delta`.
2. The block with the earliest bucket is taken: one that is in memory, unless one on disk is more than `slack` buckets earlier. The edges
   of its pending vertices are relaxed, up to `slack` buckets ahead; what that improves is pending from then on.
3. When nothing is pending, no distance gets better, and they are the shortest.

Meyer, Sanders, "Delta-stepping: a parallelizable shortest path algorithm", J. Algorithms 49, 2003, and its asynchronous form: Nguyen,
Lenharth, Pingali, "A Lightweight Infrastructure for Graph Analytics", SOSP 2013. Differs in: what is scheduled is a block of edges on disk,
not a vertex, so that a block that is in memory is used for as long as its priority is good.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from time import perf_counter
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import numpy as np

from oocgraph.algorithms.devices import on_devices
from oocgraph.algorithms.relaxing import Relaxed, Relaxing, charge_paths, checked_schedule, widths
from oocgraph.algorithms.runtimes import Runtime, check_runtime, opened_of
from oocgraph.algorithms.search_options import on_processor, sources_of, target_numbers
from oocgraph.algorithms.sssp_in_small import bound_of, shortest_in_small
from oocgraph.algorithms.sssp_on_device import find_on_device, paths_work, width_on_device
from oocgraph.allocator import returned_memory
from oocgraph.arguments import is_number, known_keywords
from oocgraph.arrays import Device
from oocgraph.config import settings
from oocgraph.engine.blocks import EdgeError, forget_beyond, load_loop
from oocgraph.engine.few import is_small
from oocgraph.engine.opened import OpenedGraph, Unopened
from oocgraph.errors import ArgumentError
from oocgraph.kernels import relax
from oocgraph.kernels.blocks import OVERFLOW
from oocgraph.memory import Budget, PeakSampler
from oocgraph.progress import watched
from oocgraph.resources import Resources, resources_of
from oocgraph.results.paths import SSSPResult
from oocgraph.store.columns import distinct
from oocgraph.store.graph import CSRStore, open_graph
from oocgraph.store.libraries import load_libraries
from oocgraph.store.scipy import weight_column
from oocgraph.store.vertices import VertexIds
from oocgraph.store.views import view_of
from oocgraph.types import Array, ProgressOption

if TYPE_CHECKING:
    from distributed import Client

Found = TypeVar("Found")

NUM_TABLES = 2
"""Distances and parents of all vertices that this process holds, where workers find them, while they come."""


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
    where: str | None = None,
    reverse: bool = False,
    runtime: Runtime | None = None,
    resources: Resources | None = None,
    memory_budget: str | int | None = None,
    client: Client | None = None,
    progress: ProgressOption = None,
) -> SSSPResult:
    """Find the shortest paths from a vertex, or from the nearest of several, to all others.

    Parameters
    ----------
    graph
        A graph store or its path. Of a directed graph, paths follow the edges.
    source
        User id of the source; of a list of ids, the paths are those from the nearest.
    weight
        Edge column of the weights, numbers of 0 or more; by default the graph's. An infinite one, or a sum that is, leads nowhere.
    schedule
        ``auto`` and ``async``: by priority, block by block. ``buckets``: in sweeps over the earliest bucket (delta-stepping). ``rounds``:
        in sweeps over all that is pending (Bellman-Ford). The distances are the same, and without weights of 0 the parents. A cluster
        has ``async`` alone: each worker by priority, all of them in steps of some buckets. A GPU has ``auto`` alone: near and far piles
        (Davidson et al. 2014).
    delta
        Width of a bucket, as a distance; by default chosen by the weights and the degrees.
    target
        User id of a vertex, or a list of them: only vertices that are not farther away than the last of them are found.
    distance_limit
        Only vertices up to this distance are found.
    where
        Condition on edge columns that edges must meet; see `oocgraph.bfs`. In this process only.
    reverse
        Follow edges from their targets to their sources. In this process only.
    runtime
        The graph opened before (`oocgraph.open_runtime`); it has its own resources. Of one on a cluster the workers are used, not what they
        have loaded; of one on a GPU the GPU, whose memory is shared with what was loaded, or given back for this.
    resources
        Threads, device, memory and cluster; see `oocgraph.Resources`. On a GPU of this process edges that do not fit its memory come from
        the store; workers of a cluster search on their processors.
    memory_budget
        Bytes that the process, or each worker, may hold (text such as ``"640M"``); the same as in `resources`.
    client
        A `distributed.Client` whose workers share the edges; the same as in `resources`. By default the current client, if there is one.
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
        A source or target does not occur in the graph's input.
    BudgetError
        The budget is too small; the message names the smallest that works.
    DeviceError
        Device ``cuda``, and no GPU can be used; or it failed.
    ClusterError
        The client is closed, no worker comes in time, workers have another version or do not see the graph, or are lost again and again.
    StoreError, CorruptStoreError
        The store cannot be opened or read.

    Notes
    -----
    Host memory: about 10.3 bytes a vertex (14.3 where distances are floats or do not fit into 31 bits), and as many blocks of 64 KiB of
    neighbours and their weights as the budget has room for, at least one for each of 8 threads that read and of those that compute. On a
    worker of a cluster that is about 110 bytes a vertex. Device memory: about 8.4 bytes a vertex (12.4), 20 bytes for each row of a batch,
    and as many edges with their weights as fit.

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
    is_here = where is not None or reverse  # whatever client there is
    asked = resources_of(
        "sssp", resources, memory_budget=memory_budget, client=client, runtime=runtime, graph=graph, take_current=not is_here
    )  # fmt: skip
    if runtime is not None:
        check_runtime(runtime, graph, where=where, reverse=reverse)
        view, asked = runtime.view, replace(runtime.resources, client=runtime.client)
    else:
        view = view_of(open_graph(graph), where=where, reverse=reverse)
        asked = on_processor(asked, {"where": view.where, "reverse": view.reverse})
        if asked.client:
            check_on_workers(asked)
    return find_paths(view, Task(source, weight, schedule, delta, target, distance_limit), asked, progress=progress, runtime=runtime)


class Task(NamedTuple):
    """What is asked for: arguments of `sssp`; `source` is one id or a list."""

    source: Any
    weight: str | None
    schedule: str
    delta: float | None
    target: Any
    distance_limit: float | None


def find_paths(
    store: CSRStore, task: Task, resources: Resources, *, progress: ProgressOption, following_bytes: int = 0,
    runtime: Runtime | None = None,
) -> SSSPResult:  # fmt: skip
    """Find shortest paths in a graph or a view; what follows needs up to `following_bytes`, for which a refusal names a budget, too."""
    started, column = perf_counter(), checked_task(store, task, is_on_cluster=bool(resources.client))
    ids = VertexIds(store.stored)
    source, source_ids = sources_of(task.source)
    numbers = ids.vertices_of(source_ids)
    sources, targets = distinct(numbers[numbers >= 0]), target_numbers(ids, task.target, numbers, source_ids)
    limit = 0 if targets.size and np.isin(targets, sources).all() else task.distance_limit
    given: dict[str, Any] = {
        "ids": ids, "source": source, "isolated": {one: 0 for one, number in zip(source_ids, numbers, strict=True) if number < 0},
        "target": task.target, "distance_limit": task.distance_limit, "where": store.where, "reverse": store.reverse,
    }  # fmt: skip
    here = replace(resources, memory_budget=None) if resources.client else resources  # of this process, where workers' paths come to
    is_opened = runtime is not None and not resources.client
    opened = opened_of(runtime, store, resources) if is_opened else Unopened(here.limit_bytes, following_bytes)
    if task.schedule == "auto" and task.delta is None and not resources.client and is_small(store) and not _wants_device(resources, opened):
        fields = shortest_in_small(store, column, sources, targets, limit, resources.limit_bytes)
        if fields is not None:
            return SSSPResult(**_without_infinite(fields), **given)
    load_libraries(store)
    with watched(progress) as shown, PeakSampler() as sampler, returned_memory():
        delta, slack = widths(store, column)
        delta = task.delta or delta
        relaxing = Relaxing(opened, store, column, checked_schedule(task.schedule), slack, 1 / delta, resources.num_threads, shown)
        compute = partial(_on_cluster, resources) if resources.client else _in_process
        try:
            if not resources.client:
                fields = _on_device(relaxing, task, resources, sources, targets, limit)
                if fields is not None:
                    return SSSPResult(**_without_infinite(fields), **given)
            unreached, found = _first_that_fits(store, column, lambda kind: compute(relaxing, kind, sources, targets, limit))
        except EdgeError as error:
            raise _refusal(store, column, error) from None
        fields = relaxing.fields_of(found, unreached, started, sampler, here)
    return SSSPResult(**_without_infinite(fields), **given, delta=delta)


def _without_infinite(fields: dict[str, Any]) -> dict[str, Any]:
    """Leave out what only infinite distances lead to: vertices that have one are not reached, and have no parent."""
    unreached = fields["unreached"]
    if unreached.dtype.kind == "f":
        forget_beyond(np.finfo(unreached.dtype).max, fields["stored_value"], fields["stored_parent"], unreached)
    return fields


def _first_that_fits(store: CSRStore, column: str, compute: Callable[[str], Found]) -> Found:
    """Return what is computed with distances of the narrowest kind that they fit."""
    if store.array(f"out/{column}").dtype.kind == "f":
        return compute("float")
    try:
        return compute("narrow")
    except EdgeError as error:
        if error.why != OVERFLOW:
            raise
    return compute("wide")


def _wants_device(resources: Resources, opened: OpenedGraph | Unopened) -> bool:
    """Whether paths are to be found on a GPU however little there is to do."""
    is_open_there = isinstance(opened, OpenedGraph) and opened.device is not None
    return is_open_there or (resources.device or settings().device) == "cuda" or resources.device_memory_budget is not None


def _on_device(
    relaxing: Relaxing, task: Task, resources: Resources, sources: Array, targets: Array, limit: float | None
) -> dict[str, Any] | None:  # fmt: skip
    """Find paths on a GPU where one is to be used; returns arguments of `SSSPResult`, or None where the processor is to find them."""
    store, column = relaxing.store, relaxing.column
    assert column is not None
    if task.schedule != "auto":
        if resources.device == "cuda" or resources.device_memory_budget is not None:
            remedy = "leave it out, or use device='cpu'" if resources.device_memory_budget is None else "leave out device_memory_budget"
            raise ArgumentError(f"schedule is {task.schedule!r}, which only the processor has; {remedy}")
        return None

    def compute(devices: Sequence[Device], requested: str | int | None) -> dict[str, Any]:
        width = task.delta or width_on_device(store, column)

        def with_distances(kind: str) -> dict[str, Any]:
            unreached = relax.SHORTEST[kind][1]
            return find_on_device(
                devices[0], store, column, unreached, resources, relaxing.opened, sources=sources, delta=width,
                bound=bound_of(limit, unreached), targets=targets, requested=requested, progress=relaxing.progress,
            )  # fmt: skip

        return _first_that_fits(store, column, with_distances)

    work = partial(paths_work, store, column, resources.num_threads)
    return on_devices("search for shortest paths", relaxing.opened, resources, compute, work=work, alone=True)


def _in_process(relaxing: Relaxing, kind: str, sources: Array, targets: Array, limit: float | None) -> tuple[Any, Relaxed]:
    """Find paths in this process, with distances of one kind; returns that of vertices that are not reached, and what was found."""
    loop, unreached = relax.SHORTEST[kind]
    load_loop(loop, unreached.dtype, relaxing.store, relaxing.column)
    zero, bound = np.zeros(sources.size, np.int32), bound_of(limit, unreached)
    begin = unreached, sources, zero, zero
    found = relaxing.opened.within(lambda budget: relaxing.within(budget, loop, *begin, bound=bound, targets=targets))
    return unreached, found


def _on_cluster(
    resources: Resources, relaxing: Relaxing, kind: str, sources: Array, targets: Array, limit: float | None
) -> tuple[Any, Relaxed]:  # fmt: skip
    """As `_in_process`, on workers; imports nothing of Dask before."""
    from oocgraph.cluster.block_rounds import run_on_cluster
    from oocgraph.cluster.worker_paths import PathsSpec, merged

    unreached, store = relax.SHORTEST[kind][1], relaxing.store

    def within(budget: Budget) -> Relaxed:
        charge_paths(store, budget, NUM_TABLES * store.num_rows * (unreached.dtype.itemsize + store.index_dtype.itemsize))
        found = run_on_cluster(
            store, resources, PathsSpec, title="the search for shortest paths", label="sssp-step", merge=merged, progress=relaxing.progress,
            column=relaxing.column, kind=kind, scale=relaxing.scale, slack=relaxing.slack, sources=tuple(sources.tolist()),
            targets=tuple(targets.tolist()), bound=bound_of(limit, unreached),
        )  # fmt: skip
        distance, parent = (array if array.flags.writeable else array.copy() for array in found.table)
        if targets.size:
            forget_beyond(distance[targets].max(), distance, parent, unreached)
        return Relaxed(distance, parent, found.run)

    return unreached, relaxing.opened.within(within)


def check_on_workers(resources: Resources) -> None:
    """Refuse resources that workers of a cluster have no use for."""
    if resources.device == "cuda" or resources.device_memory_budget is not None:
        name = "device" if resources.device == "cuda" else "device_memory_budget"
        raise ArgumentError(
            f"{name} is given, but workers of a cluster find shortest paths on their processors, by blocks of edges in memory that they "
            "share; leave it out, or search in this process with client=False"
        )


def checked_task(store: CSRStore, task: Task, *, is_on_cluster: bool = False) -> str:
    """Refuse arguments that make no sense; return the column of the weights."""
    if checked_schedule(task.schedule) != "async" and is_on_cluster:
        raise ArgumentError(f"schedule is {task.schedule!r}; a cluster has async alone: leave it out, or run in this process")
    for name, value, least in (("delta", task.delta, "above 0"), ("distance_limit", task.distance_limit, "0 or more")):
        if value is not None and not (is_number(value) and (value > 0 or (value == 0 and name == "distance_limit"))):
            raise ArgumentError(f"{name} is {value!r}; it must be a number, {least}")
    column = weight_column(store, task.weight)
    if column is None:
        if isinstance(task.weight, bool):
            raise ArgumentError(f"weight is {task.weight}; name a column of weights, or count edges by oocgraph.bfs")
        raise ArgumentError(f"{store.url} has no weights; give weight, the name of an edge column, or count edges by oocgraph.bfs")
    if store.array(f"out/{column}").dtype == np.uint64:
        named = store.attributes.input_column(column)
        raise ArgumentError(f"{named!r} is uint64, and distances are int64; build the graph with weights of another dtype")
    return column


def _refusal(store: CSRStore, column: str, error: EdgeError) -> ArgumentError:
    source, target = VertexIds(store).ids_of([error.source, error.target]).tolist()
    column = store.attributes.input_column(column)
    if error.why == OVERFLOW:
        return ArgumentError(
            f"{store.url}: distances do not fit into 62 bits, at the edge from {source!r} to {target!r}; "
            f"build the graph with a smaller {column}"
        )
    return ArgumentError(
        f"{store.url}: {column} of the edge from {source!r} to {target!r} is negative or no number; shortest paths need 0 or more"
    )
