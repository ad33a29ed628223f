"""A breadth-first search on a Dask cluster, from user ids to a result whose arrays stay with the workers.

In: a graph, sources, a client, and where the result goes: a result store of the user's, one to go on with, or a temporary one. Out: a
`DaskBFSResult`. The traversal is `oocgraph.engine.levels.iterate`, run by `oocgraph.cluster.searches`; over partitions it is
`oocgraph.parts.loaded_part`, run by `oocgraph.cluster.parts`.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

from oocgraph.algorithms.partitioned_bfs import check_top_down, label_of
from oocgraph.algorithms.runtimes import open_where
from oocgraph.cluster.logged_search import Outcome
from oocgraph.errors import ArgumentError, ClusterError, OutputExistsError
from oocgraph.memory import PeakSampler
from oocgraph.resources import Resources
from oocgraph.results.dask import DaskBFSResult, TemporaryStore, vertex_partition_of
from oocgraph.results.search import Search
from oocgraph.results.store_order import StoreOrder
from oocgraph.store.beside import folder_beside
from oocgraph.store.columns import distinct
from oocgraph.store.fingerprint import graph_fingerprint
from oocgraph.store.graph import CSRStore
from oocgraph.store.search_store import SearchStore
from oocgraph.store.vertices import VertexIds
from oocgraph.types import Direction, Progress

ALGORITHM = "bfs"


def bfs_on_cluster(
    store: CSRStore, source: Any, sources: Sequence[Any], *, resources: Resources, runtime: Any, partition: Any,
    result_store: str | os.PathLike[str] | None, resume: str | os.PathLike[str] | None, direction: Direction, depth_limit: int | None,
    progress: Progress,
) -> DaskBFSResult:  # fmt: skip
    """Search on the workers of the client of `resources`, or of a runtime that is open already; see `oocgraph.bfs`."""
    if partition is not None:
        check_top_down(direction)
    ids = VertexIds(store)
    numbers = ids.vertices_of(sources)
    reached = distinct(numbers[numbers >= 0])
    isolated = [given for given, number in zip(sources, numbers, strict=True) if number < 0]
    asked = {
        "algorithm": ALGORITHM,
        "graph_fingerprint": graph_fingerprint(store),
        "sources": reached.tolist(),
        "isolated_sources": sorted(set(ids.parse(isolated).tolist())),
        "depth_limit": depth_limit,
        "partition": label_of(partition) if runtime is None else getattr(runtime, "label", None),
    }
    stored, path, keep = _result_place(store, asked, resume, result_store, resources.num_partitions if partition is None else None)
    result_folder = path.parent if keep is None else path.parent.parent
    with _removed_on_failure(keep), PeakSampler() as sampler, ExitStack() as owned:
        if stored is not None:
            owned.enter_context(stored.owned())
        opened: Any = nullcontext(runtime)
        if runtime is None:
            if stored is not None and partition is None:
                resources = replace(resources, num_partitions=stored.num_partitions)
            shares = None if stored is None else stored.shares
            opened = open_where(store, resources, partition=partition, shares=shares, result_folder=result_folder, progress=progress)
        with opened as loaded:
            if stored is None:
                begun = {
                    "graph": store.place,
                    "num_partitions": loaded.vertex_partition.num_partitions,
                    "direction": direction,
                    "epoch": -1,
                }
                stored = _created(path, {**asked, **begun, "temporary": keep is not None})
                owned.enter_context(stored.owned())
            elif int(stored.fields["num_partitions"]) != loaded.vertex_partition.num_partitions:
                raise ArgumentError(
                    f"{path} is of {stored.fields['num_partitions']} partitions, the runtime of {loaded.vertex_partition.num_partitions}; "
                    "open one with as many, or pass client="
                )
            with _way_on_told(stored):
                found, cluster = _search(loaded, stored, reached, direction, depth_limit, progress)
        return DaskBFSResult(
            search=found, ids=ids, source=source, isolated_sources=isolated, depth_limit=depth_limit, edge_bytes=store.edge_bytes,
            peak_host_bytes=sampler.peak_bytes, **loaded.metrics, result_store=os.fspath(path), client=loaded.client, cluster=cluster,
            owned=keep is not None,
        )  # fmt: skip


def _result_place(
    store: CSRStore, asked: dict[str, Any], resume: str | os.PathLike[str] | None, result_store: str | os.PathLike[str] | None,
    num_partitions: int | None,
) -> tuple[SearchStore | None, Path, TemporaryStore | None]:  # fmt: skip
    """Return the search to go on with, if there is one; where the result store is; and what keeps it where it goes with the result."""
    stored = None
    if resume is not None and Path(resume).exists():
        stored = SearchStore.open(resume)
        _check_same(stored, asked, num_partitions, os.fspath(resume))
    if resume is not None and result_store is not None and os.path.abspath(resume) != os.path.abspath(result_store):
        raise ArgumentError(f"resume is {os.fspath(resume)} and result_store {os.fspath(result_store)}; give one of them")
    if stored is not None:
        return stored, stored.path, None
    return None, *_place(store, resume if resume is not None else result_store)


def _created(path: Path, fields: dict[str, Any]) -> SearchStore:
    """Make the result store, whose place was free when this search began, and own it."""
    try:
        return SearchStore.create(path, fields, is_owned=True)
    except OutputExistsError as error:
        raise OutputExistsError(
            f"another search has begun in {path} meanwhile: wait for it, and go on with resume={path}, or give another result_store"
        ) from error


@contextmanager
def _way_on_told(stored: SearchStore) -> Iterator[None]:
    """Add to the error of a cluster that was lost how to go on with the search."""
    try:
        yield
    except ClusterError as error:
        raise ClusterError(f"{error}; {stored.way_on}") from error


@contextmanager
def _removed_on_failure(keep: TemporaryStore | None) -> Iterator[None]:
    """Remove a temporary result store if what is done meanwhile fails or is interrupted."""
    try:
        yield
    except BaseException:
        if keep is not None:
            keep.remove()
        raise


def _search(
    runtime: Any, stored: SearchStore, sources: Any, direction: Direction, depth_limit: int | None,
    progress: Progress,
) -> tuple[Search, dict[str, Any]]:  # fmt: skip
    """Run the search, or take over what a finished one has left; returns it, and how it went on the cluster."""
    outcome: Outcome | None = None
    if not stored.fields["complete"]:
        outcome = runtime.search_into(stored, sources, direction=direction, depth_limit=depth_limit, progress=progress)
        stored.finish(
            depth=outcome.depth, num_reached=outcome.num_reached, num_reached_edges=outcome.num_reached_edges, seconds=outcome.seconds
        )
    requested = outcome.bytes_requested if outcome else 0
    names = [
        "num_hops",
        "num_steps",
        "exchange",
        "exchanged",
        "num_epochs",
        "num_moves",
        "resumed_after_step",
        "edge_shares",
        "shares_reason",
    ]
    cluster = {name: getattr(outcome, name) for name in names} if outcome else {}
    vertex_partition = vertex_partition_of(runtime.store, stored)
    found = Search(
        sources=sources,
        parent=StoreOrder(stored, vertex_partition, "parent"),
        level=StoreOrder(stored, vertex_partition, "level"),
        num_reached=int(stored.field("num_reached")),
        num_reached_edges=int(stored.field("num_reached_edges")),
        depth=int(stored.field("depth")),
        seconds=float(stored.field("seconds")),
        bytes_requested=requested,
        bytes_read=max(requested, outcome.device_bytes if outcome else 0),
        iterations=outcome.iterations if outcome else (),
    )
    return found, cluster


def _place(store: CSRStore, path: str | os.PathLike[str] | None) -> tuple[Path, TemporaryStore | None]:
    """Where the result store is, and what keeps it where it goes with the result."""
    if path is not None:
        return SearchStore.new_place(path), None
    keep = TemporaryStore.make(folder_beside(store, "name a folder that workers can write to, by result_store or oocgraph.result-folder"))
    return Path(keep.path), keep


def _check_same(stored: SearchStore, asked: dict[str, Any], num_partitions: int | None, path: str) -> None:
    """Refuse to go on with another search than the one asked for."""
    differ = [name.replace("_", " ") for name, value in asked.items() if stored.fields.get(name) != value]
    if differ:
        raise ArgumentError(
            f"{path} holds another search: {' and '.join(differ)} differ from what is asked for; resume with the same graph, sources, "
            "depth limit and partition, or name another result store"
        )
    if num_partitions is not None and num_partitions != stored.fields["num_partitions"]:
        raise ArgumentError(
            f"{path} was begun with {stored.fields['num_partitions']} partitions, not {num_partitions}; leave out num_partitions"
        )
