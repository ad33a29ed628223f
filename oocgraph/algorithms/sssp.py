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
from collections.abc import Callable
from time import perf_counter
from typing import Any, NamedTuple, get_args

import numpy as np

from oocgraph.algorithms.runtimes import Runtime, check_runtime, opened_of
from oocgraph.allocator import returned_memory
from oocgraph.arguments import known_keywords
from oocgraph.engine.blocks import EdgeError, Schedule, Work, load_loop, new_values
from oocgraph.engine.opened import OpenedGraph, Unopened
from oocgraph.errors import ArgumentError
from oocgraph.kernels import relax
from oocgraph.kernels.blocks import OVERFLOW
from oocgraph.memory import SLACK_BYTES, Budget, PeakSampler, device_bytes_read
from oocgraph.progress import watched
from oocgraph.resources import Resources, resources_of
from oocgraph.results.paths import SSSPResult
from oocgraph.results.writer import writing_bytes
from oocgraph.store.graph import CSRStore, open_graph
from oocgraph.store.libraries import load_libraries
from oocgraph.store.scipy import weight_column
from oocgraph.store.vertices import VertexIds
from oocgraph.types import Array, Progress, ProgressOption, no_parent

SAMPLED_WEIGHTS = 1 << 16
"""Weights, of 16 places, that `delta` is chosen by."""

WIDTHS = 32
"""Buckets of the mean weight, on graphs with hubs or many edges. (Kronecker graph of scale 22, weights 1 .. 255, a quarter of the edges in
memory: 1.3 to 1.5 times the edges are read with 32, 1.5 to 1.6 times with 16.)"""


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
        check_runtime(runtime, graph)
        if runtime.client is not None:
            raise ArgumentError("shortest paths run in this process only, and the runtime is on a cluster; open one without client")
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
    started, threads = perf_counter(), resources.num_threads
    column = checked_task(store, task)
    ids = VertexIds(store)
    source, target = (_number_of(ids, name, one) for name, one in (("source", task.source), ("target", task.target)))
    opened = Unopened(resources.limit_bytes, following_bytes) if runtime is None else opened_of(runtime, store, resources)
    schedule: Schedule = "async" if task.schedule == "auto" else task.schedule  # type: ignore[assignment]
    load_libraries(store)
    with watched(progress) as shown, PeakSampler() as sampler, returned_memory():
        delta, slack = _widths(store, column)
        loop, kind = _loop_of(store, column, wide=False)
        load_loop(loop, kind, store, column)
        search = _Search(opened, store, column, source, target, task.distance_limit, schedule, task.delta or delta, slack, threads, shown)
        try:
            try:
                found = opened.within(lambda budget: search.within(budget, wide=False))
            except EdgeError as error:
                if error.why != OVERFLOW or kind.kind == "f":
                    raise
                load_loop(*_loop_of(store, column, wide=True), store, column)
                found = opened.within(lambda budget: search.within(budget, wide=True))
        except EdgeError as error:
            raise _refusal(store, column, error) from None
    return SSSPResult(
        stored_distance=found.distance, stored_parent=found.parent, source=task.source, is_isolated=source < 0, weight=column,
        schedule=schedule, delta=search.delta, slack=slack, target=task.target, distance_limit=task.distance_limit,
        num_relaxed=found.work.num_followed, num_again=found.work.num_again, num_blocks=found.num_blocks,
        num_blocks_read=found.work.num_read, seconds=found.work.seconds, bytes_requested=found.work.bytes_read,
        bytes_read=max(found.work.bytes_read, found.device_bytes), ids=ids, edge_bytes=store.array("out/indices").length
        * (store.index_dtype.itemsize + store.array(f"out/{column}").dtype.itemsize),
        load_seconds=perf_counter() - started - found.work.seconds, peak_host_bytes=sampler.peak_bytes, memory_budget=resources.limit_bytes,
    )  # fmt: skip


class _Found(NamedTuple):
    distance: Array
    parent: Array
    num_blocks: int
    work: Work
    device_bytes: int


class _Search(NamedTuple):
    opened: OpenedGraph | Unopened
    store: CSRStore
    column: str
    source: int
    target: int
    distance_limit: float | None
    schedule: Schedule
    delta: float
    slack: int
    threads: int
    progress: Progress

    def within(self, budget: Budget, *, wide: bool) -> _Found:
        """Search within a budget, with distances of 31 bits, or of 62."""
        store = self.store
        loop, kind = _loop_of(store, self.column, wide=wide)
        vertex_bytes = store.num_vertices * (kind.itemsize + store.index_dtype.itemsize)
        budget.alternatively("the result, when it is written,", vertex_bytes + SLACK_BYTES + writing_bytes(store))
        with self.opened.blocks(store, self.column, budget, threads=self.threads, beside={"distances and parents": vertex_bytes}) as engine:
            most = np.inf if kind.kind == "f" else np.iinfo(kind).max
            distance = np.full(store.num_vertices, most, kind)
            parent = np.full(store.num_vertices, no_parent(store.index_dtype), store.index_dtype)
            values = new_values(distance, parent, most, target=self.target, scale=1 / self.delta)
            if self.distance_limit is not None:
                values.bound[0] = min(most, self.distance_limit if kind.kind == "f" else np.floor(min(self.distance_limit, float(2**62))))
            device, pending = device_bytes_read(), []
            if self.source >= 0:
                values.value[self.source], values.parent[self.source] = 0, self.source
                pending = [(self.source, 0)]
            if self.source == self.target:
                values.bound[0] = 0
            work = engine.run(
                loop, values, pending, schedule=self.schedule, slack=self.slack, progress=self.progress,
                loads_all=self.target < 0 and self.distance_limit is None,
            )  # fmt: skip
            if self.target >= 0:
                for start in range(0, store.num_vertices, 1 << 20):  # what was found on the way, perhaps not by a shortest path
                    distance, parent = (array[start : start + (1 << 20)] for array in (values.value, values.parent))
                    parent[distance > values.bound[0]] = no_parent(store.index_dtype)
                    distance[distance > values.bound[0]] = most
            return _Found(values.value, values.parent, engine.num_blocks, work, device_bytes_read() - device)


def _loop_of(store: CSRStore, column: str, *, wide: bool) -> tuple[Callable[..., Any], np.dtype[Any]]:
    """Return the loop for the weights of a column, and the dtype of distances."""
    if store.array(f"out/{column}").dtype.kind == "f":
        return relax.shortest_float, np.dtype(np.float64)
    return (relax.shortest_wide, np.dtype(np.int64)) if wide else (relax.shortest_narrow, np.dtype(np.int32))


def checked_task(store: CSRStore, task: Task) -> str:
    """Refuse arguments that make no sense; return the column of the weights."""
    schedules = ("auto", *get_args(Schedule))
    if task.schedule not in schedules:
        raise ArgumentError(f"schedule is {task.schedule!r}; it must be one of {', '.join(schedules)}")
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
    """Return the store number of a vertex; -1: it has no edges, or is not given."""
    if given is None and name == "target":
        return -1
    if isinstance(given, list | tuple | set | dict) or getattr(given, "ndim", 0) != 0:
        raise ArgumentError(f"{name} is {given!r}; give one vertex")
    return int(ids.vertices_of(given)[0])


def _widths(store: CSRStore, column: str) -> tuple[float, int]:
    """Choose the width of a bucket and the slack: by the weights, and by whether there are hubs or many edges."""
    array = store.array(f"out/{column}")
    step, size = max(1, array.length // 16), SAMPLED_WEIGHTS // 16
    places = [array.read(at, min(array.length, at + size)) for at in range(0, array.length, step)]
    sample = np.concatenate([np.abs(place[np.isfinite(place)].astype(np.float64)) for place in places] or [np.ones(1)])
    mean, most = float(sample.mean()) if sample.size else 1.0, float(sample.max(initial=0.0))
    degree, _ = store.degrees if store.attributes.vertex_order == "degree" else (np.zeros(1), None)
    mean_degree = array.length / max(1, store.num_vertices)
    if mean_degree > 16 or int(degree.max(initial=0)) > 8 * mean_degree:
        return (mean / WIDTHS or 1.0), 8
    return (2 * most or 1.0), 2


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
