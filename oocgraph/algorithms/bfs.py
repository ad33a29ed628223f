"""Breadth-first search, out of core: level-synchronous, push or pull in each iteration.

Beamer, Asanovic, Patterson, "Direction-Optimizing Breadth-First Search", SC 2012. Differs from the paper in: vertices are in
degree order and each list is hub first (Yasui et al. 2014), so that a pull over a few resident neighbours of each vertex
decides nearly all; only the rows of the rest are read, as in Subway (EuroSys 2020); and the direction is
chosen by the bytes that each would move, exactly counted where that pays (`oocgraph.plan.direction`).
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any, get_args

import numpy as np

from oocgraph.arrays import DeviceKind
from oocgraph.cluster.survey import current_client
from oocgraph.config import check_threads, settings
from oocgraph.engine.device_engine import DeviceEngine
from oocgraph.engine.in_process import open_runtime
from oocgraph.engine.levels import MAX_DEPTH_LIMIT, search
from oocgraph.engine.local import LocalRuntime
from oocgraph.engine.steps import InProcess
from oocgraph.errors import OocGraphError
from oocgraph.memory import PeakSampler
from oocgraph.progress import watched
from oocgraph.results.bfs import BFSResult
from oocgraph.store.graph import CSRStore, open_graph
from oocgraph.store.vertices import VertexIds
from oocgraph.types import Direction, Progress, ProgressOption

if TYPE_CHECKING:
    from distributed import Client

    from oocgraph.cluster.searches import ClusterRuntime
    from oocgraph.store.partitions import Partitions


def bfs(
    graph: CSRStore | str | os.PathLike[str],
    source: Any,
    *,
    memory_budget: str | int | None = None,
    depth_limit: int | None = None,
    direction: Direction = "auto",
    threads: int | None = None,
    check_pages: bool = False,
    device: DeviceKind | None = None,
    device_memory_budget: str | int | None = None,
    runtime: InProcess | ClusterRuntime | None = None,
    client: Client | None = None,
    num_partitions: int | None = None,
    result_store: str | os.PathLike[str] | None = None,
    resume: str | os.PathLike[str] | None = None,
    partition: Partitions | str | os.PathLike[str] | None = None,
    progress: ProgressOption = None,
) -> BFSResult:
    """Breadth-first search from one vertex, or from a set of vertices.

    Parameters
    ----------
    graph
        A graph store or its path.
    source
        User id of the source; a list of ids is one traversal from the set.
    memory_budget
        Bytes that the whole process may hold (text such as ``"640M"``); by default most of what the machine leaves.
    depth_limit
        Last level to find.
    direction
        ``auto``: by the bytes that each direction would move. ``push``, ``pull``: always. ``half``, ``alpha-beta``: classical rules.
    threads
        Compute threads; by default the cores this process may use.
    check_pages
        Compare every page read during the search with its checksum.
    device
        ``cuda``: on a GPU, or an error that says why not. ``cpu``: on the processor. ``auto``: on a GPU if one can be used. By default as
        configured (``auto``). On a cluster each worker uses its own.
    device_memory_budget
        Bytes of device memory that the search may hold, of each worker; by default most of what is free.
    runtime
        A graph that is loaded already (`open_runtime`, `LocalRuntime.open`, `DeviceRuntime.open`, `ClusterRuntime.open`), for many
        searches; the budgets and threads are then its own.
    client
        A `distributed.Client`: the search runs on its workers, and `memory_budget` and `threads` are of each. By default the current
        one, if there is one; else the search runs in this process.
    num_partitions
        On a cluster: parts into which the vertices are dealt; by default one for each worker. Of `partition` ``1d`` and ``2d``: how many
        are made; in process 4 by default.
    result_store
        On a cluster: new folder, which all workers see, where they write the result; by default a temporary one that goes with it.
    resume
        On a cluster: a `result_store` of the same search, which goes on from its last complete step; if it does not exist, it begins there.
        With `partition` a search keeps no logs: one that has not ended begins again.
    partition
        Search top-down over partitions whose members tell each other what they find: ``1d`` or ``2d``, made now and removed afterwards
        (`oocgraph.partition.policies`), or what `oocgraph.partition_graph` made, or its path. In process, or with `client`.
    progress
        Called with ("level", level, 0) as levels are found; True draws a bar.

    Returns
    -------
    BFSResult
        On a cluster a `oocgraph.results.dask.DaskBFSResult`, whose arrays are dask arrays.

    Raises
    ------
    VertexNotFoundError
        A source does not occur in the graph's input.
    BudgetError
        The budget is too small; the message names the smallest that works.
    StoreError, CorruptStoreError
        The store cannot be opened or read.
    DeviceError
        No GPU can be used, or it failed.
    ClusterError
        The cluster cannot be used, or was lost; the message says how to resume.

    Notes
    -----
    Host memory: about 8.7 bytes a vertex and what the budget allows of planes and edges.
    """
    sources = [source] if isinstance(source, (str, int, np.integer)) or not isinstance(source, Iterable) else _as_list(source)
    source = source if isinstance(source, (int, str, np.integer)) else sources
    _check_arguments(graph, sources, depth_limit, direction, threads, runtime)
    if runtime is not None and (device is not None or device_memory_budget is not None):
        raise OocGraphError("the runtime is on its device already; give device and device_memory_budget when it is opened (open_runtime)")
    depth_limit = None if depth_limit is None else min(int(depth_limit), MAX_DEPTH_LIMIT)
    client = client or (current_client() if runtime is None else None)
    of_clusters: dict[str, Any] = {"num_partitions": num_partitions, "result_store": result_store, "resume": resume}
    resources: dict[str, Any] = {
        "device": device, "device_memory_budget": device_memory_budget, "memory_budget": memory_budget, "threads": threads,
        "check_pages": check_pages,
    }  # fmt: skip
    with watched(progress) as shown:
        if partition is not None:
            _check_over_partitions({**of_clusters, **resources, "runtime": runtime, "direction": direction}, client)
            store = open_graph(graph, check_pages=check_pages)
            wanted = {name: resources[name] for name in ("memory_budget", "threads")}
            if client is None or not store.num_vertices:
                from oocgraph.algorithms.partitioned_bfs import bfs_over_partitions

                return bfs_over_partitions(
                    store, source, sources, partition=partition, depth_limit=depth_limit, progress=shown, client=client,
                    num_partitions=num_partitions, **wanted,
                )  # fmt: skip
            from oocgraph.algorithms.bfs_on_cluster import bfs_on_cluster

            return bfs_on_cluster(
                store, source, sources, client=client, runtime=None, direction="push", depth_limit=depth_limit, progress=shown,
                partition=partition, **of_clusters, **wanted,
            )  # fmt: skip
        if client is None and (runtime is None or isinstance(runtime, LocalRuntime | DeviceEngine)):
            if any(given is not None for given in of_clusters.values()):
                raise OocGraphError("num_partitions, result_store and resume are of searches on a cluster; pass client=")
            return _in_process(graph, source, sources, runtime, resources, direction, depth_limit, shown)
        from oocgraph.algorithms.bfs_on_cluster import bfs_on_cluster

        return bfs_on_cluster(
            open_graph(graph, check_pages=check_pages), source, sources, client=client, runtime=runtime, direction=direction,
            depth_limit=depth_limit, progress=shown, **of_clusters, **resources,
        )  # fmt: skip


def _in_process(
    graph: CSRStore | str | os.PathLike[str], source: Any, sources: list[Any], runtime: InProcess | None, options: dict[str, Any],
    direction: Direction, depth_limit: int | None, progress: Progress,
) -> BFSResult:  # fmt: skip
    """Search with the threads, or the GPU, of this process."""
    with PeakSampler() as sampler:
        opened = open_runtime(graph, progress=progress, **options) if runtime is None else nullcontext(runtime)
        with opened as loaded:
            ids = VertexIds(loaded.store)
            numbers = ids.vertices_of(sources)
            found = search(loaded, np.unique(numbers[numbers >= 0]), direction=direction, depth_limit=depth_limit, progress=progress)
            figures = {  # what is known as long as it is open
                "edge_bytes": loaded.store.edge_bytes,
                "load_seconds": loaded.load_seconds,
                "memory_budget": loaded.memory_budget,
                "planes_resident": loaded.planes_resident,
                **loaded.device_figures,
            }
    return BFSResult(
        search=found,
        ids=ids,
        source=source,
        isolated_sources=[given for given, number in zip(sources, numbers, strict=True) if number < 0],
        depth_limit=depth_limit,
        peak_host_bytes=sampler.peak_bytes,
        **figures,
    )


NOT_OVER_PARTITIONS = {
    "runtime": "it opens what it needs itself",
    "device": "its members are searched by processors",
    "device_memory_budget": "its members are searched by processors",
    "direction": "a member knows the edges that leave its vertices: all searches are top-down (push)",
}
"""What a search over partitions does not take, and why."""


def _check_over_partitions(given: dict[str, Any], client: Any) -> None:
    """Refuse what a search over partitions cannot heed."""
    device, direction = given["device"] or settings().device, given["direction"]
    given |= {"device": None if device in ("auto", "cpu") else device, "direction": None if direction in ("auto", "push") else direction}
    if client is None and (given["result_store"] is not None or given["resume"] is not None):
        raise OocGraphError("result_store and resume are of searches on a cluster; pass client=")
    for name, why in NOT_OVER_PARTITIONS.items():
        if given[name] is not None:
            raise OocGraphError(f"a search over partitions takes no {name}={given[name]!r}: {why}; leave it out, or leave out partition")


def _as_list(source: Iterable[Any]) -> list[Any]:
    """Turn any collection of ids (list, range, set, array, Series) into a list."""
    given: list[Any] = np.asarray(source).ravel().tolist() if hasattr(source, "dtype") else list(source)
    return given


def _check_arguments(
    graph: Any, sources: list[Any], depth_limit: Any, direction: Any, threads: Any, runtime: InProcess | ClusterRuntime | None
) -> None:
    """Refuse what cannot be meant, before anything is read."""
    if not sources:
        raise OocGraphError("no source was given; name at least one vertex id")
    if depth_limit is not None and (not isinstance(depth_limit, (int, np.integer)) or depth_limit < 0):
        raise OocGraphError(f"depth_limit is {depth_limit!r}; it must be a whole number, 0 or more")
    if direction not in get_args(Direction):
        raise OocGraphError(f"direction is {direction!r}; it must be one of {', '.join(get_args(Direction))}")
    check_threads(threads)
    if runtime is not None:
        if not hasattr(runtime, "store"):
            raise OocGraphError(f"runtime is {runtime!r}; give what open_runtime returns")
        url = graph.url if isinstance(graph, CSRStore) else os.fspath(graph)
        if os.path.abspath(url) != os.path.abspath(runtime.store.url):
            raise OocGraphError(f"the runtime has loaded {runtime.store.url}, not {url}; open another runtime for that graph")
