"""Breadth-first search over partitions of a graph: 1D, 2D, or any vertex cut; top-down, level by level.

In: a graph, and ``1d``, ``2d`` or partitions that were made before. Out: a `PartitionedGraph`, a runtime like others, whose searches also
count messages.
`oocgraph.parts.loaded_part` is the algorithm; it runs in this process (`oocgraph.parts.partitioned`) or on a Dask cluster
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
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from oocgraph.algorithms.devices import on_devices
from oocgraph.algorithms.partition_graph import partition_options, partition_with_report
from oocgraph.arrays import Device
from oocgraph.closing import Closing
from oocgraph.config import settings
from oocgraph.engine.afterwards import allow_for_result
from oocgraph.engine.device_load import device_limit_bytes
from oocgraph.engine.in_process import MANY_SEARCHES, search_work
from oocgraph.engine.opened import Unopened
from oocgraph.errors import ArgumentError, ArgumentTypeError, StoreError, StoreNotFoundError
from oocgraph.kernels.warm_traverse import load_traverse_kernels
from oocgraph.lazy import cached_property
from oocgraph.memory import Budget, with_threads_that_fit
from oocgraph.partition.cusp_spec import COMPILER_BYTES
from oocgraph.partition.policies import DIMENSIONS, Dimension, named_policy
from oocgraph.partition.vertex_partition import VertexPartition, partition_vertices
from oocgraph.parts.part_sizes import most_search_bytes
from oocgraph.parts.partitioned import PartitionedRuntime
from oocgraph.resources import Resources
from oocgraph.results.search import Search
from oocgraph.results.store_order import StoreOrder
from oocgraph.store.atomic_output import AtomicOutput
from oocgraph.store.beside import folder_beside
from oocgraph.store.fingerprint import graph_fingerprint
from oocgraph.store.graph import CSRStore
from oocgraph.store.libraries import load_libraries
from oocgraph.store.partitions import Partitions, open_partitions
from oocgraph.store.rows import BLOCK_ROWS
from oocgraph.store.search_store import SearchStore
from oocgraph.types import Array, Direction, Progress, ignore_progress

IN_PROCESS_PARTITIONS = 4
"""Partitions of ``1d`` and ``2d`` in process, if none are asked for: the smallest grid that has rows and columns."""

RESULT_FOLDER_REMEDY = "set oocgraph.result-folder to a folder that every worker sees"
"""End of the message about a worker that does not see where ``1d`` and ``2d`` are made."""

PARTITIONS_REMEDY = "pass the folder of partitions that oocgraph partition made as partition, or set oocgraph.result-folder"
"""End of the message about a graph beside which ``1d`` and ``2d`` cannot be made."""


@dataclass(frozen=True, kw_only=True)
class PartitionedGraph(Closing):
    """A graph whose partitions are loaded, for many searches: see `open_partitioned`. Use it in a ``with`` statement.

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
    client
        The Dask client on whose workers the partitions are; None: they are in this process.
    resources
        What it was opened with.
    label
        As of `label_of`.
    """

    store: CSRStore
    runtime: Any
    name: str
    num_partitions: int
    setup_seconds: float
    memory_budget: int
    client: Any
    resources: Resources
    label: str | None
    _open: ExitStack

    def close(self) -> None:
        """Give back what is loaded, and remove partitions that were made for this."""
        self._open.close()

    def search(
        self, sources: Array, *, direction: Direction = "push", depth_limit: int | None = None, progress: Progress = ignore_progress
    ) -> Search:
        """Traverse from `sources`, (num_sources,) int64 store numbers, distinct, perhaps none; the result is in this process."""
        check_top_down(direction)
        run = self.runtime.search if isinstance(self.runtime, PartitionedRuntime) else self.runtime.search_here
        found: Search = run(sources, depth_limit=depth_limit, progress=progress)
        return replace(found, num_reached_edges=reached_edges(self.store, found, found.level, depth_limit))

    def search_into(
        self, result_store: SearchStore, sources: Array, *, direction: Direction, depth_limit: int | None, progress: Progress
    ) -> Any:
        """Traverse on a cluster, with the result in a result store of one partition; see `oocgraph.cluster.parts`."""
        check_top_down(direction)
        found = self.runtime.search(sources, result_store, depth_limit=depth_limit, progress=progress)
        level = StoreOrder(result_store, self.vertex_partition, "level")
        return replace(found, num_reached_edges=reached_edges(self.store, found, level, depth_limit))

    lease = None
    """Name under which workers keep edges for it: it is for searches."""

    only_searches = True
    """Whether `oocgraph.bfs` alone takes it."""

    @property
    def view(self) -> CSRStore:
        """The graph as it is searched."""
        return self.store

    def check(self) -> None:
        """Refuse to do anything once it is closed."""
        self.runtime.check()

    @property
    def metrics(self) -> dict[str, Any]:
        """What a result says of the partitions: fields of `oocgraph.BFSResult`."""
        return {
            "load_seconds": self.runtime.load_seconds, "partition": self.name, "num_partitions": self.num_partitions,
            "setup_seconds": self.setup_seconds, "memory_budget": self.memory_budget, **self.runtime.device_metrics,
        }  # fmt: skip

    @cached_property
    def vertex_partition(self) -> VertexPartition:
        """Where each vertex is in a result store: in store order."""
        return partition_vertices(self.store, 1)


def open_partitioned(
    store: CSRStore,
    partition: Dimension | Partitions | str | os.PathLike[str],
    resources: Resources,
    *,
    result_folder: Path | None = None,
    num_searches: int = MANY_SEARCHES,
    progress: Progress = ignore_progress,
) -> PartitionedGraph:
    """Make partitions if need be, and load them: in this process, or on the workers of the client that the resources name.

    Parameters
    ----------
    store
        The graph.
    partition
        ``1d`` or ``2d``: made now, and removed at the end. Or partitions, or where they are.
    resources
        Its `num_partitions` are those of ``1d`` and ``2d``; by default one for each worker, in process `IN_PROCESS_PARTITIONS`.
    result_folder
        Where results of `PartitionedGraph.search_into` are going to be, on a cluster; None: only `search` is used.
    num_searches
        Searches that the start of a GPU has to pay for, in this process.

    Raises
    ------
    ArgumentError
        Device memory is given, and no GPU can be used.
    DeviceError
        Device ``cuda``, and no GPU can be used.
    StoreError
        Partitions cannot be opened, or are of another graph.
    BudgetError
        The budget is too small; the message names the smallest that works.
    """
    began, client = time.perf_counter(), resources.client
    with ExitStack() as opened:
        found = opened.enter_context(_partitions(store, partition, resources, progress))
        if client is None or found is None:
            load_libraries(store)
            load_traverse_kernels(store.index_dtype.name, store.index_dtype.name, progress)  # before the budget looks at the process
            budget = Budget(resources.limit_bytes)
            allow_for_result(budget, store)
            runtime: Any = _opened_here(store, [] if found is None else list(found), budget, resources, num_searches)
            limit = runtime.budget.limit_bytes
        else:
            from oocgraph.cluster.parts import PartitionedClusterRuntime

            runtime = PartitionedClusterRuntime(found, store, resources, result_folder=result_folder)
            limit = runtime.memory_budget
        opened.enter_context(runtime)
        graph = PartitionedGraph(
            store=store, runtime=runtime, name="none" if found is None else found.policy, memory_budget=limit,
            num_partitions=0 if found is None else len(found), setup_seconds=time.perf_counter() - began,
            client=None if found is None else client, resources=resources, label=label_of(partition), _open=opened.pop_all(),
        )  # fmt: skip
    return graph


def _opened_here(
    store: CSRStore, parts: Sequence[Any], budget: Budget, resources: Resources, num_searches: int
) -> PartitionedRuntime:  # fmt: skip
    """Load partitions in this process: on a GPU where one is to be used, else for its processor."""
    options: dict[str, Any] = {
        "num_vertices": store.num_rows, "dtype": store.index_dtype, "directed": store.attributes.directed, "budget": budget,
        "io_threads": settings().io_threads,
    }  # fmt: skip

    def opened(threads: int, **more: Any) -> PartitionedRuntime:
        with budget.unless_it_fails():
            return PartitionedRuntime(parts, threads=threads, **options, **more)

    def opened_on(devices: Sequence[Device], requested: str | int | None) -> PartitionedRuntime:
        (device,) = devices
        limit = device_limit_bytes(device, requested)
        return with_threads_that_fit(partial(opened, device=device, device_limit=limit), resources.num_threads)

    work = partial(search_work, store, resources.num_threads, num_searches)
    found = on_devices("search", Unopened(budget.limit_bytes), resources, opened_on, work=work, alone=True)
    return with_threads_that_fit(opened, resources.num_threads) if found is None else found


def label_of(partition: Any) -> str | None:
    """Return what a result store records of `partition`: searches of which it differs are not resumed.

    Examples
    --------
    >>> label_of("2D"), label_of("graph.parts"), label_of(None)
    ('2d', 'as given', None)
    """
    if partition is None:
        return None
    return partition.lower() if isinstance(partition, str) and partition.lower() in DIMENSIONS else "as given"


def check_top_down(direction: Direction) -> None:
    """Refuse a direction that a search over partitions cannot take.

    Raises
    ------
    ArgumentError
        It is not ``auto`` or ``push``.
    """
    if direction not in ("auto", "push"):
        raise ArgumentError(
            f"direction is {direction!r}, but a partition holds the edges that leave its vertices, so searches over partitions are "
            "top-down (push); leave it out, or leave out partition"
        )


@contextmanager
def _partitions(store: CSRStore, partition: Any, resources: Resources, progress: Progress) -> Iterator[Partitions | None]:
    """Open partitions that are there, or make some for as long as they are needed; None of a graph without edges."""
    num_partitions, client, threads = resources.num_partitions, resources.client, resources.threads
    if label_of(partition) not in DIMENSIONS:
        found = partition if isinstance(partition, Partitions) else _open_given(partition)
        _check_same(found, store, num_partitions)
        yield found.checked(store.check_pages or found.check_pages)
        return
    if not store.num_rows:
        yield None
        return
    if num_partitions is None:
        num_partitions = min(store.num_rows, IN_PROCESS_PARTITIONS if client is None else _num_workers(client))
    with AtomicOutput(folder_beside(store, PARTITIONS_REMEDY) / f".{partition.lower()}") as staged:
        policy = named_policy(partition, vertex_order=store.attributes.vertex_order)
        options = partition_options(
            store, num_partitions, policy, columns=(), threads=threads, memory_budget=resources.memory_budget,
            following_bytes=0 if client is not None else following_bytes(store, num_partitions),
        )  # fmt: skip
        parts, _ = partition_with_report(
            store, staged.folder / "parts", options, client, durable=False, remedy=RESULT_FOLDER_REMEDY, progress=progress
        )
        yield parts.checked(store.check_pages)


def _open_given(partition: Any) -> Partitions:
    if not isinstance(partition, str | os.PathLike):
        raise ArgumentTypeError(f"partition is {partition!r}; give '1d', '2d', what partition_graph returns, or its path")
    try:
        return open_partitions(partition)
    except StoreNotFoundError as error:
        raise StoreNotFoundError(f"partition is neither '1d' nor '2d', and {error}") from error


def following_bytes(store: CSRStore, num_partitions: int) -> int:
    """Return what a search over partitions needs, in the process that has just made them, beside the interpreter, at the most."""
    parts = max(1, min(num_partitions, store.num_rows))
    return COMPILER_BYTES + most_search_bytes(store, parts, threads=1, io_threads=settings().io_threads)


def _num_workers(client: Any) -> int:
    from oocgraph.clients import check_client, wait_for_worker, workers_of

    check_client(client)
    wait_for_worker(client, settings().worker_timeout)
    return len(workers_of(client))


def _check_same(partitions: Partitions, store: CSRStore, num_partitions: int | None) -> None:
    """Refuse partitions of another graph, or another number of them than asked for."""
    if partitions.attributes.graph_fingerprint != graph_fingerprint(store):
        raise StoreError(
            f"{partitions.url} holds partitions of another graph ({partitions.attributes.graph}, {partitions.num_vertices:,} vertices) "
            f"than {store.url} ({store.num_rows:,} vertices), or of one that was built again since; partition it again"
        )
    if num_partitions not in (None, partitions.num_partitions):
        raise ArgumentError(f"{partitions.url} has {partitions.num_partitions} partitions, not {num_partitions}; leave num_partitions out")


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
    for first in range(0, store.num_rows, BLOCK_ROWS):
        stop = min(store.num_rows, first + BLOCK_ROWS)
        entries += int(np.diff(pointers.read(first, stop + 1))[level[first:stop] == wanted].sum())
    return entries
