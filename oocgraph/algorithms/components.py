"""Connected components, out of core: a few neighbours of each vertex find nearly all of them, the lists of the rest are read.

1. Every vertex is linked with its first neighbours, one plane of the store after the other, until another plane is more to read than the
   lists of all vertices outside of the largest component found so far.
2. Those lists are read and linked. An edge between two vertices of the largest component joins nothing, and any other is in the list of
   a vertex outside of it: of a directed graph in its out- or its in-list, and components are the weakly connected ones.
3. Each component is named after its vertex with the smallest id, so the result does not depend on threads or memory.

By a condition on edges, vertices with the shortest lists come first, planes and lists, then those with longer ones: most hubs have been
joined with the largest component by then, and the condition is not evaluated for their lists.

Sutton, Ben-Nun, Barak, "Optimizing Parallel Graph Connectivity Computation via Subgraph Sampling" (Afforest), IPDPS 2018. Differs from the
paper in: neighbours are taken hub first, planes are read in order from disk, and how many is decided by what is left to read.
"""

from __future__ import annotations

import os
from dataclasses import replace
from functools import partial
from time import perf_counter
from typing import TYPE_CHECKING, NamedTuple

from oocgraph.algorithms.runtimes import Runtime, check_runtime, opened_of
from oocgraph.algorithms.search_options import on_processor
from oocgraph.allocator import returned_memory
from oocgraph.arguments import known_keywords
from oocgraph.compiled.load import load_kernels
from oocgraph.engine.forest import Forest, charge_forest, kernel_calls
from oocgraph.engine.opened import Unopened
from oocgraph.memory import SLACK_BYTES, Budget, PeakSampler, device_bytes_read, with_threads_that_fit
from oocgraph.progress import watched
from oocgraph.resources import Resources, resources_of
from oocgraph.results.components import ComponentsResult
from oocgraph.results.writer import writing_bytes
from oocgraph.store.graph import CSRStore, open_graph
from oocgraph.store.libraries import load_libraries
from oocgraph.store.vertices import VertexIds
from oocgraph.store.views import view_of
from oocgraph.types import Array, ProgressOption

if TYPE_CHECKING:
    from distributed import Client


@known_keywords
def connected_components(
    graph: CSRStore | str | os.PathLike[str],
    *,
    where: str | None = None,
    runtime: Runtime | None = None,
    resources: Resources | None = None,
    memory_budget: str | int | None = None,
    client: Client | None = None,
    progress: ProgressOption = None,
) -> ComponentsResult:
    """Find the connected components of a graph; of a directed one, the weakly connected ones.

    Parameters
    ----------
    graph
        A graph store or its path.
    where
        Condition on edge columns that edges must meet to connect anything; see `oocgraph.bfs`. In this process only.
    runtime
        The graph opened before (`oocgraph.open_runtime`): what it has in memory is not read again. It has its own resources.
    resources
        Threads, memory and cluster; see `oocgraph.Resources`.
    memory_budget
        Bytes that the process, or each worker, may hold (text such as ``"640M"``); the same as in `resources`.
    client
        A `distributed.Client` whose workers share the edges; the same as in `resources`. By default the current client, if there is one.
    progress
        Called with ("planes" or "lists", done, all); True draws a bar.

    Returns
    -------
    ComponentsResult

    Raises
    ------
    ArgumentError
        An argument is invalid.
    BudgetError
        The budget is too small; the message names the smallest that works.
    ClusterError
        The client is closed, no worker comes in time, workers have another version or do not see the graph, or are lost again and again.
    StoreError, CorruptStoreError
        The store cannot be opened or read.

    Notes
    -----
    Host memory: 9 or 17 bytes (twice the size of a vertex number, and 1) for each vertex that has edges, a few pieces of 1 MiB a thread;
    on a worker of a cluster 13 or 25 bytes where workers share memory, else 29 or 57.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> from oocgraph import build_csr
    >>> with TemporaryDirectory() as folder:
    ...     result = connected_components(build_csr(([5, 1, 9], [3, 5, 7]), f"{folder}/g.zarr"))
    ...     result.vertices.tolist(), result.component.tolist(), result.num_components
    ([1, 3, 5, 7, 9], [1, 1, 1, 7, 7], 2)
    """
    asked = resources_of(
        "connected_components", resources, memory_budget=memory_budget, client=client, runtime=runtime, graph=graph,
        take_current=where is None,  # in this process alone
    )  # fmt: skip
    if runtime is None:
        view = view_of(open_graph(graph), where=where)
        return find_components(view, on_processor(asked, {"where": where}), progress=progress)
    check_runtime(runtime, graph, where=where)
    return find_components(runtime.view, replace(runtime.resources, client=runtime.client), progress=progress, runtime=runtime)


def find_components(
    store: CSRStore, resources: Resources, *, progress: ProgressOption, following_bytes: int = 0, runtime: Runtime | None = None
) -> ComponentsResult:  # fmt: skip
    """Find the components of a graph or a view; what follows needs up to `following_bytes`, for which a refusal names a budget, too."""
    started, client = perf_counter(), resources.client or None
    limit = resources.limit_bytes if client is None else Resources().limit_bytes  # of this process, in which workers put their trees
    opened = Unopened(limit, following_bytes) if client is not None or runtime is None else opened_of(runtime, store, resources)
    load_libraries(store)
    with watched(progress) as shown, PeakSampler() as sampler, returned_memory():
        load_kernels(kernel_calls(store))

        def found_within(threads: int, budget: Budget) -> _Found:
            _charge(store, budget, threads, num_vectors=2 if client is None else 3)
            began, device = perf_counter(), device_bytes_read()
            with Forest(store, threads, shown, resident=opened.resident) as forest:
                on_workers, exchange = _link(forest, resources)
                component, num_linked = forest.named()
            read = max(forest.num_bytes, device_bytes_read() - device + on_workers)
            load_seconds, seconds = began - started, perf_counter() - began
            return _Found(component, num_linked, forest.num_bytes, forest.plane_bytes, read, load_seconds, seconds, exchange)

        most = resources.num_threads
        found = with_threads_that_fit(lambda threads: opened.within(partial(found_within, threads)), most, 1 if client is None else most)
    return ComponentsResult(
        stored_component=found.component, num_linked=found.num_linked, ids=VertexIds(store.stored), where=store.where,
        seconds=found.seconds,
        bytes_requested=found.num_bytes, bytes_read=found.bytes_read, plane_bytes=found.plane_bytes, edge_bytes=store.edge_bytes,
        load_seconds=found.load_seconds, peak_host_bytes=sampler.peak_bytes, memory_budget=limit, exchange=found.exchange,
    )  # fmt: skip


class _Found(NamedTuple):
    component: Array
    num_linked: int
    num_bytes: int
    plane_bytes: int
    bytes_read: int
    load_seconds: float
    seconds: float
    exchange: str


def _link(forest: Forest, resources: Resources) -> tuple[int, str]:
    """Link all edges, here or on workers; returns what these have read from block devices, and what they have exchanged trees through."""
    if not resources.client:
        forest.link_planes()
        forest.link_lists()
        return 0, ""
    from oocgraph.algorithms.components_on_cluster import link_on_cluster

    found, exchange = link_on_cluster(forest.store, resources, forest.progress)
    forest.parent = found.parent.copy()  # what has come from a worker may not be changed
    forest.num_bytes, forest.plane_bytes = found.num_bytes, found.plane_bytes
    return int(found.device_bytes), exchange


def _charge(store: CSRStore, budget: Budget, threads: int, *, num_vectors: int) -> None:
    """Reserve all that is held; the result is written when the trees are gone."""
    vertex_bytes = store.num_rows * store.index_dtype.itemsize
    budget.alternatively("the result, when it is written,", vertex_bytes + SLACK_BYTES + writing_bytes(store))
    with budget.all_or_none():
        charge_forest(store, budget, threads, num_vectors=num_vectors)
