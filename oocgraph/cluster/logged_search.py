"""One search on a cluster, whose steps are logged: what its partitions do, and what becomes of it when a worker is lost.

In: a `Placement` that holds the graph, a `SearchSpec`, a result store. Out: a `LoggedSearch` for `oocgraph.cluster.supersteps`, which makes
an `Outcome`. After a loss each partition makes its state again from the logs, up to the last step that all have logged; that is also how a
search is resumed after everything was lost.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from oocgraph.cluster import worker as tasks
from oocgraph.cluster.metrics import Metrics
from oocgraph.cluster.placement import Placement
from oocgraph.cluster.specs import SearchSpec
from oocgraph.cluster.supersteps import Program, Step
from oocgraph.cluster.worker_state import SearchSteps
from oocgraph.engine.part import bounds_of
from oocgraph.partition.vertex_partition import VertexPartition
from oocgraph.progress import LEVEL, REACHED
from oocgraph.results.search import Iteration
from oocgraph.store.search_store import SearchStore
from oocgraph.types import Progress


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a search on a cluster has done.

    Attributes
    ----------
    iterations, busy_seconds
        Metrics of all levels; time that each worker, by address, spent on steps.
    bytes_requested, device_bytes
        Asked of the store's files; read from block devices.
    seconds
        From the sources to levels and parents of all partitions in their workers' memory.
    result_seconds
        Writing them to the result store.
    depth, num_reached, num_reached_edges
        Of the search.
    num_hops
        Tasks of each partition, one after the other: hops of the scheduler.
    num_steps
        Exchanges between partitions.
    exchange
        What messages between workers go through, and why.
    exchanged
        What went through shared memory: fields of `oocgraph.exchange.windows.Counters`.
    num_epochs
        1, and one more for each time that partitions were placed again.
    num_moves
        Partitions that went to another worker.
    resumed_after_step
        Last step that was in the logs already; None of a search that began here.
    edge_shares, shares_reason
        Part of all edges that each partition owned; why (`oocgraph.cluster.redealing`). None of traversals over parts.
    """

    iterations: tuple[Iteration, ...]
    busy_seconds: dict[str, float]
    bytes_requested: int
    device_bytes: int
    seconds: float
    result_seconds: float
    depth: int
    num_reached: int
    num_reached_edges: int
    num_hops: int
    num_steps: int
    exchange: str
    exchanged: dict[str, float]
    num_epochs: int
    num_moves: int
    resumed_after_step: int | None
    edge_shares: tuple[float, ...] | None = None
    shares_reason: str | None = None


class LoggedSearch(Program[Outcome]):
    """The steps of one search.

    Parameters
    ----------
    spec
        With the epoch before the first.
    vertex_partition
        Who owns which vertices.
    """

    title, label = "the search", "bfs-step"

    def __init__(
        self, placement: Placement, vertex_partition: VertexPartition, spec: SearchSpec, store: SearchStore, progress: Progress
    ) -> None:
        self._placement, self._session, self._store, self._spec, self._progress = placement, placement.session, store, spec, progress
        self.name, self.epoch = spec.search, spec.epoch
        self._num_vertices, self._bounds = vertex_partition.num_vertices, bounds_of(vertex_partition)
        self.metrics = Metrics(placement.spec.num_partitions)
        self._first_step: int | None = None
        self._began, self._num_moves = 0.0, placement.num_moves
        self._num_steps = self._num_epochs = 0
        self._hops: set[tuple[int, int]] = set()

    def begin(self) -> Step:
        """Begin an epoch after the last step that all partitions have logged."""
        is_first = self._first_step is None
        self._num_epochs += 1
        last_step = self._store.last_step(self._bounds, parents=is_first)
        self.epoch += 1
        self._spec = replace(self._spec, epoch=self.epoch, last_step=last_step)
        self._store.update(epoch=self.epoch, few=list(self._spec.options.few))
        if is_first:
            self._first_step, self._began = last_step, time.perf_counter()  # making the store ready is no part of the search
        return Step(last_step)

    def steps(self, *, is_first: bool) -> SearchSteps:
        """Return what a partition does: `oocgraph.cluster.worker_state.WorkerState.step`."""
        return SearchSteps(self._spec if is_first else None, self._placement.graph)

    def hear(self, number: int, partition: int, worker: str, report: dict[str, Any]) -> None:
        """Note the metrics of a step."""
        self.metrics.add({**report, "step": number, "partition": partition, "worker": worker})

    def complete(self, number: int, reports: Sequence[dict[str, Any]], hop: Step) -> bool:
        """Whether nothing was found: the next step would find that out; after a last level it is needed, to hear what others have found."""
        self._num_steps += 1
        self._hops.add((self.epoch, hop.number))
        self._progress(LEVEL, int(reports[-1]["level"]), 0)
        self._progress(REACHED, self.metrics.num_reached, self._num_vertices)
        return not any(int(report["num_found"]) for report in reports)

    def finish(self) -> Outcome:
        """Have every partition write its result."""
        seconds = time.perf_counter() - self._began
        futures = {}
        for p, address in enumerate(self._placement.addresses):
            key = (f"bfs-write-{uuid.uuid4().hex}", p)
            futures[self._session.submit(address, tasks.finish, self.name, self._placement.graph, p, key=key)] = address
        parts = self._session.gather(futures)
        return Outcome(
            iterations=self.metrics.iterations(),
            busy_seconds=self.metrics.busy_seconds(),
            bytes_requested=self.metrics.bytes_requested,
            device_bytes=self.metrics.device_bytes,
            seconds=seconds,
            result_seconds=time.perf_counter() - self._began - seconds,
            depth=max(part["depth"] for part in parts),
            num_reached=sum(part["num_reached"] for part in parts),
            num_reached_edges=sum(part["num_reached_edges"] for part in parts),
            num_hops=len(self._hops),
            num_steps=self._num_steps,
            exchange=self._placement.exchange,
            exchanged=self.counters._asdict(),
            num_epochs=self._num_epochs,
            num_moves=self._placement.num_moves - self._num_moves,
            resumed_after_step=self._first_step if self._first_step is not None and self._first_step >= 0 else None,
        )
