"""Traversals over the parts of a graph on a Dask cluster: each member's state stays in one worker, messages go from worker to worker.

In: a client, partitions that every worker sees. Out: `PartitionedClusterRuntime`, loaded once, that runs any number of searches. There may
be more members than workers. A *hop* is one step of every member; it depends on what all have told in the hop before, and several hops
are submitted ahead (steps after the end do nothing). An iteration is two hops, or one where nothing is broadcast
(`oocgraph.cluster.worker_members`). Nothing is logged: when a worker is lost, its members are placed again and the search begins again.
"""

from __future__ import annotations

import os
import threading
import time
import uuid
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from types import TracebackType
from typing import Any, Self

import numpy as np

from oocgraph.cluster import worker_members as members
from oocgraph.cluster.crew import Crew
from oocgraph.cluster.events import Watch
from oocgraph.cluster.session import ClusterSession
from oocgraph.cluster.survey import check_client
from oocgraph.cluster.worker import forget, with_plugin
from oocgraph.cluster.worker_members import MembersSpec, Step, Told
from oocgraph.config import settings
from oocgraph.memory import Budget, effective_budget_bytes
from oocgraph.partition.message_size import ALL_TO_ALL, BROADCAST, GATHER
from oocgraph.progress import LEVEL, REACHED
from oocgraph.results.search import Exchanged, Iteration, PartFigures, Search
from oocgraph.store.fingerprint import graph_fingerprint
from oocgraph.store.graph import CSRStore
from oocgraph.store.partitions import Partitions
from oocgraph.types import UNREACHED, Array, Progress, ignore_progress, no_parent

LEVEL_BYTES = 4
"""Of a level in a result."""

KEPT_HOPS = 2
"""Hops whose tasks are kept: those of the next still depend on them."""


def acquire(lease: str, spec: MembersSpec, numbers: Sequence[int]) -> list[dict[str, Any]]:
    """Load members on the worker of this task: `worker_members.acquire`."""
    return with_plugin(members.acquire, lease, spec, numbers) or []


def result_bytes(num_vertices: int, num_masters: int, itemsize: int) -> int:
    """Bytes that a client holds of a result: parents and levels in store order, and what the member with most masters has sent."""
    return num_vertices * (itemsize + LEVEL_BYTES) + num_masters * (2 * itemsize + LEVEL_BYTES)


class PartitionedClusterRuntime:
    """The parts of a graph on the workers of a cluster. Use it in a ``with`` statement.

    Parameters
    ----------
    partitions
        Where every worker sees them.
    store
        Their graph.
    client
        A `distributed.Client`.
    memory_budget, threads
        Of each worker; by default as Dask gave them.

    Raises
    ------
    ClusterError
        The client is closed, no worker comes in time, workers have another version, or do not see the graph.
    StoreError
        A worker cannot open the partitions.
    BudgetError
        A worker cannot hold its members, which the message names, or the client not the result.
    """

    def __init__(
        self, partitions: Partitions, store: CSRStore, client: Any, *, memory_budget: str | int | None = None, threads: int | None = None
    ) -> None:
        began = time.perf_counter()
        knobs, self.client, self.num_vertices, self.dtype = settings(), client, store.num_vertices, store.index_dtype
        session = ClusterSession(client)
        self.budget = Budget(effective_budget_bytes(knobs.memory_budget))  # of the client, which puts the result together
        most = max(part.num_masters + part.num_isolated for part in partitions)
        self.budget.reserve("result", result_bytes(store.num_vertices, most, store.index_dtype.itemsize))
        self.session, self._open = session, ExitStack()
        self._open.enter_context(session)
        fingerprint = graph_fingerprint(store)
        spec = MembersSpec(
            url=os.path.abspath(store.url) if "://" not in store.url else store.url, fingerprint=fingerprint,
            num_partitions=partitions.num_partitions, settings=knobs, memory_budget=memory_budget, threads=threads, device="cpu",
            check_pages=partitions.check_pages,
            partitions=os.path.abspath(partitions.url), dtype=store.index_dtype.name, directed=store.attributes.directed,
        )  # fmt: skip
        self.searching = threading.Lock()
        try:
            with session.loss_told():
                self.crew = Crew(session, spec, session.find_workers(store.url, fingerprint), acquire)
                self._watch = self._open.enter_context(Watch(client, session.lease))
                self.crew.load(self._watch)
        except BaseException:
            self.close()
            raise
        self.has_broadcast = any(part["has_broadcast"] for part in self.crew.parts)
        self.load_seconds = time.perf_counter() - began

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    @property
    def memory_budget(self) -> int:
        """Bytes of all workers' budgets."""
        return self.crew.memory_budget

    def close(self) -> None:
        """Give back what the workers hold."""
        self._open.close()

    def search(self, sources: Array, *, depth_limit: int | None = None, progress: Progress = ignore_progress) -> Search:
        """Traverse as `oocgraph.parts.partitioned.PartitionedRuntime.search`; the result is put together here.

        Raises
        ------
        ClusterError
            The scheduler was lost, or workers again and again.
        """
        check_client(self.client)
        self.session.check()
        last_level = np.iinfo(np.int32).max - 1 if depth_limit is None else depth_limit

        def attempt() -> Search:
            name = uuid.uuid4().hex
            try:
                with Watch(self.client, name) as watch:  # its own: the tasks of an attempt before may yet be heard of
                    return _Run(self, name, watch, progress).search(sources, last_level)
            finally:
                self.session.tell_all(forget, name)

        with self.searching:
            return self.session.rerun(attempt, lambda: self.crew.place_again(self._watch))


class _Run:
    """One attempt of a search."""

    def __init__(self, runtime: PartitionedClusterRuntime, name: str, watch: Watch, progress: Progress) -> None:
        self.runtime, self.crew, self.session, self.name = runtime, runtime.crew, runtime.session, name
        self.watch, self.progress = watch, progress
        self.hops: deque[list[Any]] = deque()
        self.summaries: deque[Any] = deque()
        self.submitted = -1

    def search(self, sources: Array, last_level: int) -> Search:
        began = time.perf_counter()
        iterations: list[Iteration] = []
        stored_edges = 0
        try:
            hops = self._told(sources, last_level)
            before = sent_before = next(hops)
            frontier = reached = sum(one.num_new for one in before)
            expanding, started = time.perf_counter() - began, time.perf_counter()
            while frontier and len(iterations) < last_level:
                if self.runtime.has_broadcast:
                    sent_before, before = before, next(hops)
                after = next(hops)
                took = time.perf_counter() - started
                spent = took if self.runtime.has_broadcast else expanding  # the hop that has applied has expanded the next level already
                iterations.append(self._iteration(len(iterations) + 1, frontier, before, after, sent_before, spent))
                stored_edges += sum(one.num_edges for one in before)
                started, before, expanding = time.perf_counter(), after, took
                frontier = sum(one.num_new for one in after)
                reached += frontier
                self.progress(LEVEL, len(iterations), 0)
                self.progress(REACHED, reached, self.runtime.num_vertices)
        finally:
            self.session.drop([future for hop in self.hops for future in hop] + list(self.summaries))
        seconds = time.perf_counter() - began
        parent, level = self._collect()
        requested = sum(one.bytes_read for one in iterations)
        return Search(
            sources=sources, parent=parent, level=level, num_reached=reached, num_reached_edges=stored_edges,
            depth=max(0, len(iterations) - (not frontier)), seconds=seconds, bytes_requested=requested, bytes_read=requested,
            iterations=tuple(iterations),
        )  # fmt: skip

    def _step(self, hop: int, sources: Array, last_level: int) -> Step | None:
        """Return what members do in a hop; None behind the last level."""
        if self.runtime.has_broadcast:
            level, expand = (hop + 1) // 2, hop % 2 == 1
            apply, cast = hop > 0 and not expand, not expand and level < last_level
        else:
            level, apply, cast = hop, hop > 0, False
            expand = level < last_level
        if level > last_level:
            return None
        first = sources if hop == 0 else None
        return Step(search=self.name, lease=self.session.lease, hop=hop, sources=first, apply=apply, expand=expand, cast=cast)

    def _told(self, sources: Array, last_level: int) -> Iterator[list[Told]]:
        """Yield what members have told, hop by hop, with some hops submitted ahead."""
        hop = 0
        while True:
            while self.submitted < hop + self.crew.spec.settings.steps_ahead:
                step = self._step(self.submitted + 1, sources, last_level)
                if step is None:
                    break
                self._submit(step)
            yield self._wait(self.summaries.popleft())
            hop += 1
            while len(self.hops) > self.submitted - hop + 1 + KEPT_HOPS:
                self.session.drop(self.hops.popleft())

    def _submit(self, step: Step) -> None:
        """Submit one step of every member, and a task that puts together what they tell."""
        before = self.hops[-1] if self.hops else []
        futures = []
        for p, address in enumerate(self.crew.placement):
            key = (f"bfs-hop-{self.name}", step.hop, p)  # on the dashboard: bfs-hop
            future = self.session.submit(address, with_plugin, members.take_step, p, step, *before, key=key)
            future.add_done_callback(lambda done: self.watch.put("done", done) if done.status != "finished" else None)
            futures.append(future)
        summary = self.session.submit(self.crew.placement[0], _together, *futures, key=(f"bfs-told-{self.name}", step.hop))
        summary.add_done_callback(lambda done: self.watch.put("done", done))
        self.hops.append(futures)
        self.summaries.append(summary)
        self.submitted = step.hop

    def _wait(self, summary: Any) -> list[Told]:
        """Wait for a hop; the first failure, of a task or of a worker, is raised."""
        addresses = set(self.crew.placement)
        while not summary.done():
            kind, message = self.session.next_event(self.watch, addresses)
            if kind == "done":
                self.session.raise_failure(message)
        (told,) = self.session.gather({summary: self.crew.placement[0]}, needed=addresses)
        return list(told)

    def _iteration(
        self, level: int, frontier: int, expanded: list[Told], applied: list[Told], cast: list[Told], seconds: float
    ) -> Iteration:
        """Put together the figures of a level: `expanded` were its candidates, `cast` told of its frontier, `applied` found it."""
        has_broadcast = self.runtime.has_broadcast
        edges = sum(one.num_edges for one in expanded)
        exchanged = [_count(GATHER if has_broadcast else ALL_TO_ALL, expanded)] + ([_count(BROADCAST, cast)] if has_broadcast else [])
        took = [(one, two) for one, two in zip(expanded, applied, strict=True)]
        parts = tuple(
            PartFigures(one.part, one.address, "push", one.busy_seconds + (two.busy_seconds if has_broadcast else 0.0), one.bytes_read,
                        one.sent + (out.sent if has_broadcast else 0), two.num_new)
            for (one, two), out in zip(took, cast, strict=True)
        )  # fmt: skip
        read = sum(one.bytes_read for one in expanded)
        reason = f"{edges:,} edges of {len(expanded)} parts"
        return Iteration(level, "push", reason, frontier, 0, seconds, read, parts=parts, exchanged=tuple(exchanged))

    def _collect(self) -> tuple[Array, Array]:
        """Fetch parents and levels, member by member, and put them in store order."""
        runtime = self.runtime
        parent = np.full(runtime.num_vertices, no_parent(runtime.dtype), runtime.dtype)
        level = np.full(runtime.num_vertices, UNREACHED, np.int32)
        for p, address in enumerate(self.crew.placement):
            future = self.session.submit(address, with_plugin, members.collect, p, self.name, self.session.lease)
            ((ids, parents, levels),) = self.session.gather({future: address})
            parent[ids], level[ids] = parents, levels
        return parent, level


def _together(*told: Told) -> list[Told]:
    """Return what members have told as one result: a task."""
    return list(told)


def _count(kind: str, told: Iterable[Told]) -> Exchanged:
    every = list(told)
    return Exchanged(kind, sum(one.sent for one in every), sum(len(one.receivers) for one in every))
