"""Breadth-first search over partitions of a graph: 1D, 2D, or any vertex cut; top-down, level by level.

In: a graph, sources, and ``1d``, ``2d`` or partitions that were made before. Out: a `BFSResult` like any other, which also counts messages;
on a cluster (`oocgraph.algorithms.bfs_on_cluster`) one of Dask arrays.
`oocgraph.parts.member` is the algorithm; it runs in this process (`oocgraph.parts.partitioned`) or on a Dask cluster
(`oocgraph.cluster.parts`). Partitions of ``1d`` and ``2d`` are made first, beside the graph, and go with the search.

References
----------
- Seed of the project, "parallel BFS": one- and two-dimensional partitions, candidates gathered down a column at the diagonal, the new
  frontier broadcast along a row.
- Buluç, Madduri: Parallel Breadth-First Search on Distributed Memory Systems. SC 2011.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from oocgraph.algorithms.partition_graph import partition_options, partition_with_report
from oocgraph.config import settings
from oocgraph.engine.afterwards import allow_for_result
from oocgraph.errors import OocGraphError, StoreError
from oocgraph.kernels.warm_traverse import load_traverse_kernels
from oocgraph.memory import Budget, PeakSampler, effective_budget_bytes
from oocgraph.partition.cusp_spec import COMPILER_BYTES
from oocgraph.partition.dealing import Dealing, deal
from oocgraph.partition.policies import DIMENSIONS, Dimension, named_policy
from oocgraph.parts.member_sizes import most_search_bytes
from oocgraph.parts.partitioned import PartitionedRuntime
from oocgraph.results.bfs import BFSResult
from oocgraph.results.search import Search
from oocgraph.results.store_order import StoreOrder
from oocgraph.store.fingerprint import graph_fingerprint
from oocgraph.store.graph import CSRStore
from oocgraph.store.libraries import load_libraries
from oocgraph.store.partitions import Partitions, open_partitions
from oocgraph.store.rows import BLOCK_ROWS
from oocgraph.store.search_store import SearchStore
from oocgraph.store.staging import Staging
from oocgraph.store.vertices import VertexIds
from oocgraph.types import Array, Progress, ignore_progress

IN_PROCESS_PARTITIONS = 4
"""Partitions of ``1d`` and ``2d`` in process, if none are asked for: the smallest grid that has rows and columns."""


@dataclass(frozen=True, kw_only=True)
class PartitionedGraph:
    """A graph whose partitions are loaded, for many searches: see `open_partitioned`.

    Attributes
    ----------
    store
        The graph.
    runtime
        `PartitionedRuntime`, or `oocgraph.cluster.parts.PartitionedClusterRuntime`.
    name
        ``1d``, ``2d``, or the policy of the partitions.
    num_partitions
        How many.
    setup_seconds
        Making partitions, and loading them.
    memory_budget
        Bytes allowed: of this process, or of all workers together.
    """

    store: CSRStore
    runtime: Any
    name: str
    num_partitions: int
    setup_seconds: float
    memory_budget: int

    def search(self, sources: Array, *, depth_limit: int | None = None, progress: Progress = ignore_progress) -> Search:
        """Traverse from `sources`, (num_sources,) int64 store numbers, distinct, perhaps none; the result is in this process."""
        run = self.runtime.search if isinstance(self.runtime, PartitionedRuntime) else self.runtime.search_here
        found: Search = run(sources, depth_limit=depth_limit, progress=progress)
        return replace(found, num_reached_edges=reached_edges(self.store, found, found.level, depth_limit))

    def search_into(self, result_store: SearchStore, sources: Array, *, depth_limit: int | None, progress: Progress) -> Any:
        """Traverse on a cluster, with the result in a result store of one partition; see `oocgraph.cluster.parts`."""
        found = self.runtime.search(sources, result_store, depth_limit=depth_limit, progress=progress)
        level = StoreOrder(result_store, self.dealing, "level")
        return replace(found, num_reached_edges=reached_edges(self.store, found, level, depth_limit))

    @property
    def figures(self) -> dict[str, Any]:
        """What a result tells of the partitions."""
        return {
            "load_seconds": self.runtime.load_seconds, "partition": self.name, "num_partitions": self.num_partitions,
            "setup_seconds": self.setup_seconds,
        }  # fmt: skip

    @cached_property
    def dealing(self) -> Dealing:
        """Where each vertex is in a result store: in store order."""
        return deal(self.store, 1)


@contextmanager
def open_partitioned(
    store: CSRStore,
    partition: Dimension | Partitions | str | os.PathLike[str],
    *,
    num_partitions: int | None = None,
    client: Any = None,
    memory_budget: str | int | None = None,
    threads: int | None = None,
    result_folder: Path | None = None,
    progress: Progress = ignore_progress,
) -> Iterator[PartitionedGraph]:
    """Make partitions if need be, load them here or on a cluster, and give all back at the end.

    Parameters
    ----------
    store
        The graph.
    partition
        ``1d`` or ``2d``: made now, and removed afterwards. Or partitions, or where they are.
    num_partitions
        Of ``1d`` and ``2d``; by default one for each worker, in process `IN_PROCESS_PARTITIONS`.
    client
        A `distributed.Client`; None: in this process.
    memory_budget, threads
        Of this process, or of each worker.
    result_folder
        Where results of `search_into` are going to be, on a cluster; None: only `search` is used.

    Raises
    ------
    StoreError
        Partitions cannot be opened, or are of another graph.
    BudgetError
        The budget is too small; the message names the smallest that works.
    """
    began = time.perf_counter()
    with _partitions(store, partition, num_partitions, client, memory_budget, threads, progress) as found:
        name = "none" if found is None else found.policy
        if client is None or found is None:
            load_libraries(store)
            load_traverse_kernels(store.index_dtype.name, store.index_dtype.name, progress)  # before the budget looks at the process
            requested = memory_budget if memory_budget is not None else settings().memory_budget
            budget = Budget(effective_budget_bytes(requested))
            allow_for_result(budget, store)
            budget.check_alternatives()
            runtime: Any = PartitionedRuntime(
                [] if found is None else list(found), num_vertices=store.num_vertices, dtype=store.index_dtype,
                directed=store.attributes.directed, budget=budget,
                threads=threads or settings().threads, io_threads=settings().io_threads,
            )  # fmt: skip
            limit = runtime.budget.limit_bytes
        else:
            from oocgraph.cluster.parts import PartitionedClusterRuntime

            runtime = PartitionedClusterRuntime(
                found, store, client, memory_budget=memory_budget, threads=threads, result_folder=result_folder
            )
            limit = runtime.memory_budget
        with runtime:
            yield PartitionedGraph(
                store=store, runtime=runtime, name=name, num_partitions=0 if found is None else len(found), memory_budget=limit,
                setup_seconds=time.perf_counter() - began,
            )  # fmt: skip


def bfs_over_partitions(
    store: CSRStore,
    source: Any,
    sources: Sequence[Any],
    *,
    partition: Dimension | Partitions | str | os.PathLike[str],
    depth_limit: int | None,
    progress: Progress,
    **options: Any,
) -> BFSResult:
    """Search over partitions in this process; see `oocgraph.bfs`. `options` are those of `open_partitioned`."""
    ids = VertexIds(store)
    numbers = ids.vertices_of(sources)
    with PeakSampler() as sampler, open_partitioned(store, partition, progress=progress, **options) as opened:
        found = opened.search(np.unique(numbers[numbers >= 0]), depth_limit=depth_limit, progress=progress)
    return BFSResult(
        search=found, ids=ids, source=source, depth_limit=depth_limit, edge_bytes=store.edge_bytes,
        isolated_sources=[given for given, number in zip(sources, numbers, strict=True) if number < 0],
        peak_host_bytes=sampler.peak_bytes, memory_budget=opened.memory_budget, **opened.figures,
    )  # fmt: skip


@contextmanager
def _partitions(
    store: CSRStore, partition: Any, num_partitions: int | None, client: Any, memory_budget: Any, threads: int | None, progress: Progress
) -> Iterator[Partitions | None]:
    """Open partitions that are there, or make some for as long as they are needed; None of a graph without edges."""
    if not (isinstance(partition, str) and partition.lower() in DIMENSIONS):
        found = partition if isinstance(partition, Partitions) else open_partitions(partition)
        _check_same(found, store, num_partitions)
        yield found.checked(store.check_pages or found.check_pages)
        return
    if not store.num_vertices:
        yield None
        return
    if num_partitions is None:
        num_partitions = min(store.num_vertices, IN_PROCESS_PARTITIONS if client is None else _num_workers(client))
    with Staging(_folder(store) / f".{partition.lower()}") as staged:
        policy = named_policy(partition, vertex_order=store.attributes.vertex_order)
        options = partition_options(
            store, num_partitions, policy, columns=(), threads=threads, memory_budget=memory_budget,
            following_bytes=0 if client is not None else following_bytes(store, num_partitions, threads),
        )  # fmt: skip
        parts, _ = partition_with_report(store, staged.folder / "parts", options, client, durable=False, progress=progress)
        yield parts.checked(store.check_pages)


def following_bytes(store: CSRStore, num_partitions: int, threads: int | None) -> int:
    """Return what a search over partitions needs, in the process that has just made them, beside the interpreter, at the most."""
    knobs, parts = settings(), max(1, min(num_partitions, store.num_vertices))
    return COMPILER_BYTES + most_search_bytes(store, parts, threads=threads or knobs.threads, io_threads=knobs.io_threads)


def _num_workers(client: Any) -> int:
    from oocgraph.cluster.scheduler import workers_of
    from oocgraph.cluster.survey import check_client, wait_for_worker

    check_client(client)
    wait_for_worker(client, settings().worker_timeout)
    return len(workers_of(client))


def _folder(store: CSRStore) -> Path:
    """Where partitions are made that go with the search: as results of searches on a cluster, every worker must see it."""
    folder = settings().result_folder
    if folder is None and "://" in store.url:
        raise OocGraphError(
            f"{store.url} is remote: pass the folder of partitions that oocgraph partition made as partition, or set oocgraph.result-folder"
        )
    return Path(os.path.abspath(store.url)).parent if folder is None else Path(os.path.abspath(folder))


def _check_same(partitions: Partitions, store: CSRStore, num_partitions: int | None) -> None:
    """Refuse partitions of another graph, or another number of them than asked for."""
    if partitions.attributes.graph_fingerprint != graph_fingerprint(store):
        raise StoreError(
            f"{partitions.url} holds partitions of another graph ({partitions.attributes.graph}, {partitions.num_vertices:,} vertices) "
            f"than {store.url} ({store.num_vertices:,} vertices), or of one that was built again since; partition it again"
        )
    if num_partitions not in (None, partitions.num_partitions):
        raise OocGraphError(
            f"{partitions.url} has {partitions.num_partitions} partitions, not {num_partitions}; leave num_partitions (--partitions) out"
        )


def reached_edges(store: CSRStore, found: Any, level: Any, depth_limit: int | None) -> int:
    """Edges of the reached part: out-edges when directed, else each edge once (a kept self-loop is stored once).

    A search (`found`, with its levels in store order) knows the entries of the rows that it expanded; the last level at a depth limit was
    not, and is counted here.
    """
    entries: int = found.num_reached_edges
    if depth_limit is not None and found.depth == depth_limit:
        entries += _entries_of(store, level, depth_limit)
    if store.attributes.directed:
        return entries
    return (entries + store.count_self_loops(lambda vertices: level[vertices] >= 0)) // 2


def _entries_of(store: CSRStore, level: Any, wanted: int) -> int:
    """Count the stored entries of the rows of all vertices at one level."""
    pointers, entries = store.array("out/indptr"), 0
    for first in range(0, store.num_vertices, BLOCK_ROWS):
        stop = min(store.num_vertices, first + BLOCK_ROWS)
        entries += int(np.diff(pointers.read(first, stop + 1))[level[first:stop] == wanted].sum())
    return entries
