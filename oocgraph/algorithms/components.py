"""Connected components, out of core: a few neighbours of each vertex find nearly all of them, the lists of the rest are read.

1. Every vertex is linked with its first neighbours, one plane of the store after the other, until another plane is more to read than the
   lists of all vertices outside of the largest component found so far.
2. Those lists are read and linked. An edge between two vertices of the largest component joins nothing, and any other is in the list of
   a vertex outside of it: of a directed graph in its out- or its in-list, and components are the weakly connected ones.
3. Each component is named after its vertex with the smallest id, so the result does not depend on threads or memory.

Sutton, Ben-Nun, Barak, "Optimizing Parallel Graph Connectivity Computation via Subgraph Sampling" (Afforest), IPDPS 2018. Differs from the
paper in: neighbours are taken hub first, planes are read in order from disk, and how many is decided by what is left to read.
"""

from __future__ import annotations

import os
from time import perf_counter
from typing import Any

from oocgraph.allocator import returned_memory
from oocgraph.config import check_threads, settings
from oocgraph.engine.forest import Forest, charge_forest, kernel_calls
from oocgraph.kernels.load import load_kernels
from oocgraph.memory import SLACK_BYTES, Budget, PeakSampler, device_bytes_read, effective_budget_bytes
from oocgraph.progress import watched
from oocgraph.results.components import ComponentsResult
from oocgraph.results.writer import writing_bytes
from oocgraph.store.graph import CSRStore, open_graph
from oocgraph.store.libraries import load_libraries
from oocgraph.store.vertices import VertexIds
from oocgraph.types import ProgressOption


def connected_components(
    graph: CSRStore | str | os.PathLike[str],
    *,
    memory_budget: str | int | None = None,
    threads: int | None = None,
    client: Any = None,
    check_pages: bool = False,
    progress: ProgressOption = None,
) -> ComponentsResult:
    """Find the connected components of a graph; of a directed one, the weakly connected ones.

    Parameters
    ----------
    graph
        A graph store or its path.
    memory_budget
        Bytes that the whole process may hold (text such as ``"640M"``); by default most of what the machine leaves.
    threads
        Compute threads; by default the cores this process may use.
    client
        A `distributed.Client`: its workers share the edges, and `memory_budget` and `threads` are of each of them.
    check_pages
        Compare what is read of the store with its checksums.
    progress
        Called with ("planes" or "lists", done, all); True draws a bar.

    Returns
    -------
    ComponentsResult

    Raises
    ------
    OocGraphError
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
    on a worker of a cluster 29 or 57 bytes.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> from oocgraph import build_csr
    >>> with TemporaryDirectory() as folder:
    ...     result = connected_components(build_csr(([5, 1, 9], [3, 5, 7]), f"{folder}/g.zarr"))
    ...     result.vertices.tolist(), result.component.tolist(), result.num_components
    ([1, 3, 5, 7, 9], [1, 1, 1, 7, 7], 2)
    """
    return find_components(
        open_graph(graph, check_pages=check_pages), memory_budget=memory_budget, threads=threads, progress=progress, client=client
    )  # fmt: skip


def find_components(
    store: CSRStore, *, memory_budget: str | int | None, threads: int | None, progress: ProgressOption, client: Any = None,
    following_bytes: int = 0,
) -> ComponentsResult:  # fmt: skip
    """Find the components of a graph; what is done next needs up to `following_bytes`, for which a refusal names a budget, too."""
    check_threads(threads)
    knobs, started = settings(), perf_counter()
    budget_of_all = memory_budget if memory_budget is not None else knobs.memory_budget
    limit = effective_budget_bytes(budget_of_all if client is None else knobs.memory_budget)
    load_libraries(store)
    with watched(progress) as shown, PeakSampler() as sampler, returned_memory():
        load_kernels(kernel_calls(store.index_dtype))
        _charge(store, Budget(limit, following_bytes=following_bytes), threads or knobs.threads, num_vectors=2 if client is None else 3)
        began, device = perf_counter(), device_bytes_read()
        on_workers = 0
        with Forest(store, threads or knobs.threads, shown) as forest:
            if client is None:
                forest.link_planes()
                forest.link_lists()
            else:
                from oocgraph.algorithms.components_on_cluster import link_on_cluster

                found = link_on_cluster(store, client, shown, memory_budget=budget_of_all, threads=threads)
                forest.parent = found.parent.copy()  # what has come from a worker may not be changed
                forest.num_bytes, forest.plane_bytes, on_workers = found.num_bytes, found.plane_bytes, found.device_bytes
                del found
            component, num_linked = forest.named()
        seconds, device = perf_counter() - began, device_bytes_read() - device + on_workers
    return ComponentsResult(
        stored_component=component, num_linked=num_linked, ids=VertexIds(store), seconds=seconds,
        bytes_requested=forest.num_bytes, bytes_read=max(forest.num_bytes, device), plane_bytes=forest.plane_bytes,
        edge_bytes=store.edge_bytes, load_seconds=began - started, peak_host_bytes=sampler.peak_bytes, memory_budget=limit,
    )  # fmt: skip


def _charge(store: CSRStore, budget: Budget, threads: int, *, num_vectors: int) -> None:
    """Reserve all that is held; the result is written when the trees are gone."""
    vertex_bytes = store.num_vertices * store.index_dtype.itemsize
    budget.alternatively("the result, when it is written,", vertex_bytes + SLACK_BYTES + writing_bytes(store))
    with budget.together():
        charge_forest(store, budget, threads, num_vectors=num_vectors)
