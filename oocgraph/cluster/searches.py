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
from typing import Any, Self, get_args

from oocgraph.arguments import is_whole
from oocgraph.clients import check_client
from oocgraph.closing import Closing
from oocgraph.cluster import worker as tasks
from oocgraph.cluster.events import Watch
from oocgraph.cluster.logged_search import LoggedSearch, Outcome
from oocgraph.cluster.placement import Placement
from oocgraph.cluster.preflight import device_sharers, results_folder
from oocgraph.cluster.redealing import MeasuredShares
from oocgraph.cluster.session import ClusterSession
from oocgraph.cluster.specs import GraphSpec, SearchSpec
from oocgraph.cluster.supersteps import Supersteps
from oocgraph.config import settings
from oocgraph.engine.cpu_engine import TinyLimits
from oocgraph.engine.levels import MAX_DEPTH_LIMIT
from oocgraph.engine.part import SearchOptions, tiny_limits
from oocgraph.errors import ArgumentError
from oocgraph.partition.vertex_partition import VertexPartition, partition_vertices
from oocgraph.plan.residency import QUEUE_CAPACITY
from oocgraph.resources import Resources
from oocgraph.store.fingerprint import graph_fingerprint
from oocgraph.store.graph import CSRStore, open_graph
from oocgraph.store.search_fields import damaged
from oocgraph.store.search_store import SearchStore
from oocgraph.types import Array, DeviceKind, Direction, Progress, ignore_progress

logger = logging.getLogger(__name__)


class ClusterRuntime(Closing):
    """A graph on the workers of a cluster, ready for searches. Use `ClusterRuntime.open` in a ``with`` statement."""

    only_searches = False
    """Whether `oocgraph.bfs` alone takes it."""

    @property
    def view(self) -> CSRStore:
        """The graph as it is searched."""
        return self.store

    def __init__(self, session: ClusterSession, store: CSRStore, spec: GraphSpec, workers: dict[str, dict[str, Any]]) -> None:
        self.session, self.client, self.store = session, session.client, store
        self.lease = session.lease
        self.resources = Resources(
            memory_budget=spec.memory_budget, threads=spec.threads, device=spec.device, device_memory_budget=spec.device_memory_budget,
            client=session.client,
        )  # fmt: skip
        self.placement = Placement(session, spec, workers)
        self.shares = MeasuredShares(self.placement)
        self._dealt: dict[tuple[int, ...] | None, VertexPartition] = {}
        self.load_seconds = 0.0
        self.searching = threading.Lock()
        self._open = ExitStack()  # one watch from first to last: to subscribe before each search would delay its first message by 10 ms

    @classmethod
    def open(
        cls,
        graph: CSRStore | str | os.PathLike[str],
        *,
        client: Any,
        num_partitions: int | None = None,
        memory_budget: str | int | None = None,
        threads: int | None = None,
        max_planes: int | None = None,
        check_pages: bool = False,
        device: DeviceKind | None = None,
        device_memory_budget: str | int | None = None,
        result_folder: str | os.PathLike[str] | None = None,
        shares: tuple[int, ...] | None = None,
    ) -> Self:
        """Check the workers and load the graph on them.

        Parameters
        ----------
        graph
            A store or its path, which means the same on every worker.
        client
            A `distributed.Client`.
        num_partitions
            Into how many the vertices are divided; by default one for each worker.
        memory_budget
            Bytes of each worker (text such as ``640M``); by default what Dask's memory limit leaves before it spills.
        threads
            Compute threads of each worker; by default as many as Dask gave it.
        max_planes, check_pages
            As in `LocalRuntime.open`.
        device
            ``auto``: each worker searches on its GPU, or on the processor where it has none that can be used. ``cuda``: every one on a GPU,
            or an error that names the worker. ``cpu``: none. By default as configured. With dask-cuda each worker has a GPU of its own;
            other workers of a machine share what is there.
        device_memory_budget
            Bytes of device memory of each worker (text such as ``4G``); by default most of what is free, divided by those who share it.
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
        store = open_graph(graph, check_pages=check_pages)
        knobs = settings()
        n = max(1, store.num_rows)
        if num_partitions is not None and not is_whole(num_partitions, 1, n):
            raise ArgumentError(
                f"num_partitions is {num_partitions!r}, of {store.num_rows:,} vertices with edges: give a whole number from 1 to {n:,}"
            )
        with ExitStack() as opened:
            session = opened.enter_context(ClusterSession(client))
            fingerprint = graph_fingerprint(store)
            workers = session.find_workers(store.place, fingerprint, results_folder(result_folder))
            spec = GraphSpec(
                url=store.place,
                fingerprint=fingerprint,
                num_partitions=int(num_partitions or min(n, len(workers))),
                shares=shares,
                settings=knobs,
                memory_budget=memory_budget,
                threads=threads,
                max_planes=max_planes,
                check_pages=store.check_pages,
                device=_device_kind(device or knobs.device),
                device_memory_budget=device_memory_budget,
                device_sharers=device_sharers(workers),
            )
            runtime = cls(session, store, spec, workers)
            opened.callback(runtime.close)
            with session.loss_reported():
                runtime._load()
            opened.pop_all()
        runtime.load_seconds = time.perf_counter() - began
        for part in {part["worker"]: part for part in runtime.parts}.values():
            logger.info("worker %s: device %s (%s)", part["worker"], part["device"], part["device_reason"])
        return runtime

    def _load(self) -> None:
        """Load the graph on the workers."""
        self.placement.load(self._open.enter_context(Watch(self.client, self.session.lease)))
        self._check_device_is_used()

    def check(self) -> None:
        """Refuse to do anything once it is closed."""
        self.session.check_open()
        check_client(self.client)
        self.session.check()

    def close(self) -> None:
        """Give back what the workers hold for this runtime."""
        self._open.close()
        self.session.close()

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
    def device_metrics(self) -> dict[str, Any]:
        """``device``: the names of the workers' devices; and what of their memory is used."""
        parts = [part for part in self.parts if part]
        return {
            "device": ", ".join(sorted({part["device"] for part in parts})) or "cpu",
            "device_memory_budget": sum({part["worker"]: part["device_memory_budget"] for part in parts}.values()),
            "device_bytes": sum(part["device_bytes"] for part in parts),
        }

    @property
    def metrics(self) -> dict[str, Any]:
        """What a result says of the runtime: fields of `oocgraph.BFSResult`."""
        return {
            "load_seconds": self.load_seconds + self.shares.seconds,
            "memory_budget": self.memory_budget,
            "planes_resident": self.planes_resident,
            **self.device_metrics,
        }

    def _check_device_is_used(self) -> None:
        """Refuse a budget of device memory that no worker can heed."""
        if self.spec.device_memory_budget is not None and not any(part["device_bytes"] for part in self.parts):
            raise ArgumentError(
                "device_memory_budget was given, but no worker would search on a GPU; worker "
                f"{self.parts[0]['worker']}: {self.parts[0]['device_reason']}"
            )

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


def _device_kind(kind: DeviceKind) -> DeviceKind:
    if kind not in get_args(DeviceKind):
        raise ArgumentError(f"device is {kind!r}; on a cluster it must be one of {', '.join(get_args(DeviceKind))}")
    return kind
