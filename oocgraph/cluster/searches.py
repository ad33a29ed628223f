"""Searches on a Dask cluster: a graph that is held by its workers.

In: a client, a store. Out: a `ClusterRuntime`, loaded once on the workers, that runs any number of searches. `oocgraph.cluster.placement`
knows which worker holds what, `oocgraph.cluster.supersteps` runs a `LoggedSearch`, `oocgraph.cluster.worker` is what a worker does.
"""

from __future__ import annotations

import logging
import os
import threading
import time
import uuid
from contextlib import ExitStack
from dataclasses import replace
from typing import Any, Self

from oocgraph.clients import check_client
from oocgraph.closing import Closing
from oocgraph.cluster import worker as tasks
from oocgraph.cluster.events import Watch
from oocgraph.cluster.logged_search import LoggedSearch, Outcome
from oocgraph.cluster.placement import Placement, placed
from oocgraph.cluster.preflight import results_folder
from oocgraph.cluster.redealing import MeasuredShares
from oocgraph.cluster.session import ClusterSession
from oocgraph.cluster.specs import GraphSpec, SearchSpec
from oocgraph.cluster.supersteps import Supersteps
from oocgraph.engine.cpu_engine import TinyLimits
from oocgraph.engine.levels import MAX_DEPTH_LIMIT
from oocgraph.engine.part import SearchOptions, tiny_limits
from oocgraph.errors import ArgumentError
from oocgraph.partition.vertex_partition import VertexPartition, partition_vertices
from oocgraph.plan.residency import QUEUE_CAPACITY
from oocgraph.resources import Resources
from oocgraph.store.graph import CSRStore, open_graph
from oocgraph.store.search_fields import damaged
from oocgraph.store.search_store import SearchStore
from oocgraph.types import Array, Direction, Progress, ignore_progress

logger = logging.getLogger(__name__)


class ClusterRuntime(Closing):
    """A graph on the workers of a cluster, ready for searches. Use `ClusterRuntime.open` in a ``with`` statement."""

    only_searches = False
    """Whether `oocgraph.bfs` alone takes it."""

    @property
    def view(self) -> CSRStore:
        """The graph as it is searched."""
        return self.store

    def __init__(self, store: CSRStore, resources: Resources, placement: Placement, opened: ExitStack) -> None:
        self.session, self.client, self.store = placement.session, placement.session.client, store
        self.lease = self.session.lease
        self.resources = replace(resources, device=placement.spec.device, num_partitions=None)
        self.placement = placement
        self.shares = MeasuredShares(self.placement)
        self._dealt: dict[tuple[int, ...] | None, VertexPartition] = {}
        self.load_seconds = 0.0
        self.searching = threading.Lock()
        self._open = opened

    @classmethod
    def open(
        cls,
        graph: CSRStore | str | os.PathLike[str],
        *,
        resources: Resources | None = None,
        max_planes: int | None = None,
        check_pages: bool = False,
        result_folder: str | os.PathLike[str] | None = None,
        shares: tuple[int, ...] | None = None,
        **asked: Any,
    ) -> Self:
        """Check the workers and load the graph on them.

        Parameters
        ----------
        graph
            A store or its path, which means the same on every worker.
        resources
            Client; memory, threads and device of each worker; into how many partitions the vertices are divided, by default one for each
            worker. Else `asked` are its fields. On device ``auto`` each worker searches on its GPU, or on the processor where it has none
            that can be used; on ``cuda`` every one on a GPU, or an error names the worker. With dask-cuda each worker has a GPU of its own;
            other workers of a machine share what is there.
        max_planes, check_pages
            As in `LocalRuntime.open`.
        result_folder
            Where results are going to be written; checked to be the same folder on every worker.
        shares
            Edges that each partition owns at first, as parts of their sum; by default equal ones.

        Raises
        ------
        ClusterError
            The client is closed, no worker comes in time, workers have another version, or do not see the store.
        BudgetError
            A worker cannot hold its share; the message names it.
        DeviceError, MissingDependencyError
            ``cuda``, and a worker has no GPU that can be used.
        """
        began = time.perf_counter()
        found = resources or Resources(**asked)
        store = open_graph(graph, check_pages=check_pages)
        n = max(1, store.num_rows)
        if (num_partitions := found.num_partitions) is not None and num_partitions > n:
            raise ArgumentError(
                f"num_partitions is {num_partitions!r}, of {store.num_rows:,} vertices with edges: give a whole number from 1 to {n:,}"
            )
        with ExitStack() as opened:
            session = opened.enter_context(ClusterSession(found.client))
            with session.loss_reported():
                # one watch from first to last: to subscribe before each search would delay its first message by 10 ms
                watch = opened.enter_context(Watch(session.client, session.lease))
                placement = placed(
                    session, store, found, watch, GraphSpec, divide=lambda workers: num_partitions or min(n, workers),
                    folder=results_folder(result_folder), shares=shares, max_planes=max_planes,
                )  # fmt: skip
                placement.check_device_is_used("search")
            runtime = cls(store, found, placement, opened.pop_all())
        runtime.load_seconds = time.perf_counter() - began
        for part in {part["worker"]: part for part in runtime.parts}.values():
            logger.info("worker %s: device %s (%s)", part["worker"], part["device"], part["device_reason"])
        return runtime

    def check(self) -> None:
        """Refuse to do anything once it is closed."""
        self.session.check_open()
        check_client(self.client)
        self.session.check()

    def close(self) -> None:
        """Give back what the workers hold for this runtime."""
        self._open.close()

    @property
    def spec(self) -> GraphSpec:
        """What the workers hold."""
        return self.placement.spec

    @property
    def vertex_partition(self) -> VertexPartition:
        """Who owns which vertices, with the shares in use."""
        spec = self.spec
        found = self._dealt.get(spec.shares) or partition_vertices(self.store, spec.num_partitions, spec.shares)
        self._dealt = {spec.shares: found}
        return found

    @property
    def addresses(self) -> list[str]:
        """Address of the worker of each partition."""
        return self.placement.addresses

    @property
    def parts(self) -> list[dict[str, Any]]:
        """What each partition's worker has said of it: planes, bytes, vertices, edges."""
        return self.placement.parts

    @property
    def num_moves(self) -> int:
        """Partitions that went to another worker."""
        return self.placement.num_moves

    @property
    def memory_budget(self) -> int:
        """Bytes of all workers' budgets."""
        return self.placement.memory_budget

    @property
    def metrics(self) -> dict[str, Any]:
        """What a result says of the runtime: fields of `oocgraph.BFSResult`."""
        return {
            "load_seconds": self.load_seconds + self.shares.seconds,
            "memory_budget": self.memory_budget,
            "planes_resident": self.planes_resident,
            **self.placement.device_metrics,
        }

    @property
    def planes_resident(self) -> int:
        """Planes in memory on every worker."""
        return min((part["planes_resident"] for part in self.parts if part), default=0)

    @property
    def few(self) -> TinyLimits:
        """Limits of tiny levels for a search that begins now (`tiny_limits`); one that is resumed must reuse its own."""
        return tiny_limits(self.store, in_memory=all(part["in_memory"] for part in self.parts))

    def search_into(
        self,
        result_store: SearchStore,
        sources: Array,
        *,
        direction: Direction = "auto",
        depth_limit: int | None = None,
        progress: Progress = ignore_progress,
    ) -> Outcome:
        """Traverse from `sources`, or go on where `result_store` ends; the workers write the result there.

        Before that the shares of the edges may be dealt again (`oocgraph.cluster.redealing`).

        Parameters
        ----------
        result_store
            New, or of a search that was interrupted.
        sources : (num_sources,) int64
            Store numbers, distinct.

        Raises
        ------
        ClusterError
            The scheduler or the last worker was lost; the message says how to resume.
        BudgetError
            What a lost worker held does not fit on those that are left.
        """
        self.check()
        name = uuid.uuid4().hex
        with self.searching:  # memory is reserved for one search at a time
            try:
                with self.session.loss_reported(), Watch(self.client, name) as watch:
                    reason = self.shares.deal(result_store, watch)
                    spec = self._search_spec(name, result_store, sources, direction, depth_limit)
                    program = LoggedSearch(self.placement, self.vertex_partition, spec, result_store, progress)
                    outcome = Supersteps(self.placement, watch).run(program)
                    self.shares.measure(outcome)
                    return replace(outcome, edge_shares=self.shares.of_edges, shares_reason=reason)
            finally:
                self.session.tell_all(tasks.forget, name)

    def _search_spec(
        self, name: str, result_store: SearchStore, sources: Array, direction: Direction, depth_limit: int | None
    ) -> SearchSpec:  # fmt: skip
        """Return what workers receive of a search; one that goes on keeps its limits of tiny levels."""
        few = TinyLimits(*result_store.fields.get("few", self.few))
        if max(few) > QUEUE_CAPACITY:
            raise damaged(result_store.path, "few")
        return SearchSpec(
            search=name,
            lease=self.session.lease,
            result_store=os.path.abspath(result_store.path),
            sources=sources,
            options=SearchOptions(
                direction, MAX_DEPTH_LIMIT if depth_limit is None else depth_limit, few, take_over=self.spec.settings.take_over
            ),
            epoch=int(result_store.field("epoch")),
            last_step=-1,
        )
