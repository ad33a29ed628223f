"""Breadth-first search, out of core: level-synchronous, push or pull in each iteration.

Beamer, Asanovic, Patterson, "Direction-Optimizing Breadth-First Search", SC 2012. Differs from the paper in: vertices are in
degree order and each list is hub first (Yasui et al. 2014), so that a pull over a few resident neighbours of each vertex
decides nearly all; only the rows of the rest are read, as in Subway (EuroSys 2020); and the direction is
chosen by the bytes that each would move, exactly counted where that pays (`oocgraph.plan.direction`).
"""

from __future__ import annotations

import os
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any, get_args

from oocgraph.algorithms.bfs_by_pages import answer, is_for_pages
from oocgraph.algorithms.runtimes import check_runtime, open_where
from oocgraph.algorithms.search_options import on_processor, refuse_elsewhere, sources_of, target_numbers
from oocgraph.arguments import check_whole, known_keywords
from oocgraph.engine.levels import MAX_DEPTH_LIMIT
from oocgraph.errors import ArgumentError
from oocgraph.memory import PeakSampler
from oocgraph.progress import watched
from oocgraph.resources import Resources, resources_of
from oocgraph.results.bfs import BFSResult
from oocgraph.results.search import Search
from oocgraph.store.columns import distinct
from oocgraph.store.graph import CSRStore, open_graph
from oocgraph.store.vertices import VertexIds
from oocgraph.store.views import view_of
from oocgraph.types import Direction, ProgressOption

if TYPE_CHECKING:
    from distributed import Client

    from oocgraph.algorithms.runtimes import Runtime
    from oocgraph.store.partitions import Partitions


@known_keywords
def bfs(
    graph: CSRStore | str | os.PathLike[str],
    source: Any,
    *,
    target: Any = None,
    depth_limit: int | None = None,
    where: str | None = None,
    reverse: bool = False,
    direction: Direction = "auto",
    partition: Partitions | str | os.PathLike[str] | None = None,
    result_store: str | os.PathLike[str] | None = None,
    resume: str | os.PathLike[str] | None = None,
    runtime: Runtime | None = None,
    resources: Resources | None = None,
    memory_budget: str | int | None = None,
    client: Client | None = None,
    progress: ProgressOption = None,
) -> BFSResult:
    """Breadth-first search from one vertex, or from a set of vertices.

    Parameters
    ----------
    graph
        A graph store or its path.
    source
        User id of the source; a list of ids is one traversal from the set.
    target
        User id of a vertex, or a list of them: the search ends with the level at which the last of them is found. In this process only.
    depth_limit
        Maximum depth; by default there is none.
    where
        Condition on edge columns, such as ``kind == "Depends" and year < 2020``: only edges that meet it are followed. Columns and values
        are compared by ``== != < <= > >=`` and ``in [...]``, and joined by ``and``, ``or``, ``not``. On this process's processor only.
    reverse
        Follow edges from their targets to their sources; those of an undirected graph lead both ways. On this process's processor only.
    direction
        ``auto``: by the bytes that each direction would move. ``push``, ``pull``: always. ``half``, ``alpha-beta``, ``gemini``:
        rules of the literature (`oocgraph.plan.direction`).
    partition
        Search top-down over partitions that send each other what they find: ``1d`` or ``2d``, made now and removed afterwards
        (`oocgraph.partition.policies`), or what `oocgraph.partition_graph` made, or its path. In this process or on a cluster.
    result_store
        On a cluster: new folder, which all workers see, where they write the result; by default a temporary one, removed with the result.
    resume
        On a cluster: the `result_store` of an interrupted search, which continues after its last complete step; if it does not exist, the
        search begins there. With `partition` a search keeps no logs, so an incomplete one begins again.
    runtime
        The graph opened before (`oocgraph.open_runtime`), for many searches; it has its own resources.
    resources
        Threads, device, memory and cluster; see `oocgraph.Resources`.
    memory_budget
        Bytes that the process, or each worker, may hold (text such as ``"640M"``); the same as in `resources`.
    client
        A `distributed.Client` on whose workers the search runs; the same as in `resources`. By default the current client, if there is one.
    progress
        Called with ("level", level, 0) and ("vertices reached", number, num_vertices) after levels of many vertices; True draws bars.

    Returns
    -------
    BFSResult
        On a cluster a `oocgraph.results.dask.DaskBFSResult`, whose arrays are dask arrays.

    Raises
    ------
    VertexNotFoundError
        A source does not occur in the graph's input.
    ArgumentError
        An argument is invalid, or contradicts another.
    BudgetError
        The budget is too small; the message names the smallest that works.
    StoreError, CorruptStoreError
        The store cannot be opened or read.
    DeviceError
        No GPU can be used, or it failed.
    ClusterError
        The cluster cannot be used, or was lost; the message says how to resume.
    OutputError
        The result store exists, cannot be written, or another search writes to it.

    Notes
    -----
    Host memory: about 8.7 bytes a vertex and what the budget allows of planes and edges. With `where` an eighth of a byte for each stored
    edge, and with `reverse` 16 bytes a vertex, more.
    """
    source, sources = sources_of(source)
    _check_arguments(depth_limit, direction)
    depth_limit = None if depth_limit is None else min(int(depth_limit), MAX_DEPTH_LIMIT)
    is_here = target is not None or where is not None or reverse  # whatever client there is
    asked = resources_of(
        "bfs", resources, memory_budget=memory_budget, client=client, runtime=runtime, graph=graph, take_current=not is_here
    )  # fmt: skip
    on_workers = asked.client
    if runtime is not None:
        check_runtime(runtime, graph, searches=True, where=where, reverse=reverse)
        if partition is not None:
            raise ArgumentError("partition and runtime are given; give partition to open_runtime")
        on_workers = runtime.client
    view = view_of(open_graph(graph), where=where, reverse=reverse) if runtime is None else runtime.view
    store, options = view.stored, {"target": target, "where": view.where, "reverse": view.reverse}
    if runtime is None:
        asked = on_processor(asked, options, partition=partition)
    elif target is not None:
        refuse_elsewhere(runtime, "target")
    if on_workers is not None and (partition is None or store.num_rows):
        from oocgraph.algorithms.bfs_on_cluster import bfs_on_cluster

        with watched(progress) as shown:
            return bfs_on_cluster(
                store, source, sources, resources=asked, runtime=runtime, partition=partition, result_store=result_store, resume=resume,
                direction=direction, depth_limit=depth_limit, progress=shown,
            )  # fmt: skip
    if on_workers is None and (result_store is not None or resume is not None):
        name = "result_store" if result_store is not None else "resume"
        raise ArgumentError(f"{name} is given, but the search runs in this process; pass client, or leave it out")
    with watched(progress) as shown, PeakSampler() as sampler:
        ids = VertexIds(store)
        numbers = ids.vertices_of(sources)
        begin = distinct(numbers[numbers >= 0])
        stop: dict[str, Any] = {} if target is None else {"targets": target_numbers(ids, target, numbers, sources)}

        def search() -> tuple[Search, dict[str, Any]]:
            opened: Any = (
                nullcontext(runtime)
                if runtime is not None
                else open_where(view, asked, partition=partition, num_searches=1, progress=shown)
            )
            with opened as loaded:
                found = loaded.search(begin, direction=direction, depth_limit=depth_limit, progress=shown, **stop)
                return found, loaded.metrics  # what is known as long as it is open

        is_question = runtime is None and partition is None and (depth_limit is not None or target is not None)
        if is_question and is_for_pages(view, asked, direction):
            found, metrics = answer(view, begin, stop.get("targets"), depth_limit, asked, search)
        else:
            found, metrics = search()
    return BFSResult(
        search=found,
        ids=ids,
        source=source,
        isolated_sources=[given for given, number in zip(sources, numbers, strict=True) if number < 0],
        depth_limit=depth_limit,
        target=target,
        where=view.where,
        reverse=view.reverse,
        edge_bytes=store.edge_bytes,
        peak_host_bytes=sampler.peak_bytes,
        **metrics,
    )


def _check_arguments(depth_limit: Any, direction: Any) -> None:
    """Validate the arguments before any I/O."""
    if depth_limit is not None:
        check_whole("depth_limit", depth_limit, least=0)
    if direction not in get_args(Direction):
        raise ArgumentError(f"direction is {direction!r}; it must be one of {', '.join(get_args(Direction))}")
