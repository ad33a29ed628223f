"""Traversals over the parts of a graph on a Dask cluster: each part's state stays in one worker, messages go from worker to worker.

In: a client, partitions that every worker sees. Out: `PartitionedClusterRuntime`, loaded once, that runs any number of searches. There may
be more parts than workers. An iteration is two steps of every part (`oocgraph.cluster.supersteps`), or one where nothing is broadcast
(`oocgraph.cluster.worker_parts`). Nothing is logged: when a worker is lost, its parts are placed again and the search begins again.
"""

from __future__ import annotations

import threading
import time
import uuid
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np

from oocgraph.clients import check_client
from oocgraph.closing import Closing
from oocgraph.cluster import worker_parts
from oocgraph.cluster.events import Watch
from oocgraph.cluster.logged_search import Outcome
from oocgraph.cluster.placement import placed
from oocgraph.cluster.preflight import results_folder
from oocgraph.cluster.session import ATTEMPTS, ClusterSession
from oocgraph.cluster.supersteps import Program, Step, Supersteps
from oocgraph.cluster.worker import forget
from oocgraph.cluster.worker_parts import PartsSpec, PartSteps, StepReport
from oocgraph.config import settings
from oocgraph.memory import Budget, effective_budget_bytes
from oocgraph.partition.message_size import ALL_TO_ALL, BROADCAST, GATHER
from oocgraph.parts.loaded_part import ASKED_VERTICES
from oocgraph.progress import LEVEL, REACHED
from oocgraph.resources import Resources
from oocgraph.results.search import Exchanged, Iteration, PartMetrics, Search, by_worker
from oocgraph.store.graph import CSRStore
from oocgraph.store.partitions import Partitions
from oocgraph.store.search_store import SearchStore
from oocgraph.types import UNREACHED, Array, Progress, ignore_progress, no_parent


def piece_bytes(num_vertices: int, itemsize: int) -> int:
    """Bytes that a client holds of the parents and levels of some vertices as they arrive and are put in order."""
    return min(num_vertices, ASKED_VERTICES) * (3 * itemsize + 16)


class PartitionedClusterRuntime(Closing):
    """The parts of a graph on the workers of a cluster. Use it in a ``with`` statement.

    Parameters
    ----------
    partitions
        Where every worker sees them.
    store
        Their graph.
    resources
        Client; memory, threads and device of each worker.
    result_folder
        Where results are going to be written; checked to be the same folder on every worker. None: only `search_here` is used.

    Raises
    ------
    ClusterError
        The client is closed, no worker comes in time, workers have another version, or do not see the graph.
    StoreError
        A worker cannot open the partitions.
    BudgetError
        A worker cannot hold its parts, which the message names, or the client not the result.
    """

    def __init__(self, partitions: Partitions, store: CSRStore, resources: Resources, *, result_folder: Path | None = None) -> None:
        began = time.perf_counter()
        self.client, self.num_vertices, self.dtype = resources.client, store.num_rows, store.index_dtype
        session = ClusterSession(self.client)
        self.budget = Budget(effective_budget_bytes(settings().memory_budget))  # of the client, which puts the result together
        held = 0 if result_folder is not None else store.num_rows * (store.index_dtype.itemsize + 4)
        self.budget.reserve("result", held + piece_bytes(store.num_rows, store.index_dtype.itemsize))
        self.session, self.searching = session, threading.Lock()
        with ExitStack() as opened:
            opened.enter_context(session)
            with session.loss_reported():
                watch = opened.enter_context(Watch(self.client, session.lease))
                self.placement = placed(
                    session, store, resources, watch, PartsSpec, worker_parts.acquire, divide=lambda _: partitions.num_partitions,
                    folder=results_folder(result_folder), check_pages=partitions.check_pages, partitions=partitions.place,
                    dtype=store.index_dtype.name, directed=store.attributes.directed,
                )  # fmt: skip
            self.placement.check_device_is_used("search")
            self._open = opened.pop_all()
        self.has_broadcast = any(part["has_broadcast"] for part in self.placement.parts)
        self.load_seconds = time.perf_counter() - began

    @property
    def device_metrics(self) -> dict[str, Any]:
        """See `Placement.device_metrics`."""
        return self.placement.device_metrics

    @property
    def memory_budget(self) -> int:
        """Bytes of all workers' budgets."""
        return self.placement.memory_budget

    def check(self) -> None:
        """Refuse to do anything once it is closed."""
        check_client(self.client)
        self.session.check()

    def close(self) -> None:
        """Give back what the workers hold."""
        self._open.close()

    def search(
        self, sources: Array, result_store: SearchStore, *, depth_limit: int | None = None, progress: Progress = ignore_progress
    ) -> Outcome:
        """Traverse from `sources`, (num_sources,) int64 store numbers, distinct, perhaps none; the result is written as one partition.

        `Outcome.num_reached_edges` is the number of stored entries of the rows that were expanded: of all reached vertices but those at
        a depth limit.

        Raises
        ------
        ClusterError
            The scheduler was lost, or workers again and again.
        """

        def write(pieces: Iterable[tuple[Array, Array]]) -> None:
            result_store.write_part(0, pieces)

        return self._run(_Traversal(self, sources, write, depth_limit, progress))

    def search_here(self, sources: Array, *, depth_limit: int | None = None, progress: Progress = ignore_progress) -> Search:
        """Traverse as `search`; the result is put together in the memory of this process."""
        parent, level = np.empty(self.num_vertices, self.dtype), np.empty(self.num_vertices, np.int32)

        def keep(pieces: Iterable[tuple[Array, Array]]) -> None:
            for first, (levels, parents) in zip(range(0, self.num_vertices, ASKED_VERTICES), pieces, strict=True):
                level[first : first + levels.size], parent[first : first + levels.size] = levels, parents

        done = self._run(_Traversal(self, sources, keep, depth_limit, progress))
        return Search(
            sources=sources, parent=parent, level=level, num_reached=done.num_reached, num_reached_edges=done.num_reached_edges,
            depth=done.depth, seconds=done.seconds, bytes_requested=done.bytes_requested, bytes_read=done.bytes_requested,
            iterations=done.iterations,
        )  # fmt: skip

    def _run(self, traversal: _Traversal) -> Outcome:
        self.check()
        with self.searching, self.session.loss_reported(), Watch(self.client, traversal.name) as watch:
            try:
                return Supersteps(self.placement, watch).run(traversal)
            finally:
                traversal.forget()


class _Traversal(Program[Outcome]):
    """One search over parts, whose steps are logged nowhere: when a worker is lost it begins again.

    Parameters
    ----------
    take
        Called with levels and parents, in store order, in pieces of `ASKED_VERTICES`.
    """

    title, label, idle_epochs = "the traversal", "bfs-hop", ATTEMPTS - 1

    def __init__(
        self, runtime: PartitionedClusterRuntime, sources: Array, take: Callable[[Iterable[tuple[Array, Array]]], None],
        depth_limit: int | None, progress: Progress,
    ) -> None:  # fmt: skip
        self._runtime, self._placement, self._session = runtime, runtime.placement, runtime.session
        self._sources, self._progress = sources, progress
        self._take, self._num_moves = take, runtime.placement.num_moves
        self._last_level = np.iinfo(np.int32).max - 1 if depth_limit is None else depth_limit
        self.final_step = None if depth_limit is None else depth_limit * (2 if runtime.has_broadcast else 1)
        self.name, self.epoch = uuid.uuid4().hex, 0

    @property
    def search(self) -> str:
        """Name of the search in this epoch, on the workers: `Hop.run`."""
        return f"{self.name}-{self.epoch}"

    def begin(self) -> Step:
        """Begin at the sources, where the workers drop what they had of it."""
        self.forget()
        self.epoch += 1
        self._iterations: list[Iteration] = []
        self._stored_edges = self._reached = self._frontier = self._num_steps = 0
        self._hops: set[tuple[int, int]] = set()
        self._began = self._started = time.perf_counter()
        self._expanding, self._expanded, self._sent = 0.0, list[StepReport](), list[StepReport]()
        return Step(-1)

    def forget(self) -> None:
        """Have the workers drop what they have of the search in this epoch."""
        if self.epoch:
            self._session.tell_all(forget, self.search)

    def steps(self, *, is_first: bool) -> PartSteps:
        """Return what a part does: `worker_parts.PartSteps`."""
        return PartSteps(
            sources=self._sources if is_first else None, last_level=self._last_level, has_broadcast=self._runtime.has_broadcast
        )  # fmt: skip

    def complete(self, number: int, reports: Sequence[dict[str, Any]], hop: Step) -> bool:
        """Put together the metrics of a level; True of the last."""
        sent = [StepReport(*report["report"]) for report in reports]
        self._num_steps += 1
        self._hops.add((self.epoch, hop.number))
        has_broadcast = self._runtime.has_broadcast
        if has_broadcast and number % 2:
            self._expanded, self._sent = sent, self._expanded
            return False
        took, self._started = time.perf_counter() - self._started, time.perf_counter()
        if number:
            spent = took if has_broadcast else self._expanding  # the step that has applied has expanded the next level already
            self._iterations.append(self._iteration(sent, spent))
            self._stored_edges += sum(one.num_edges for one in self._expanded)
        self._frontier = sum(one.num_new for one in sent)
        self._reached += self._frontier
        self._expanded, self._expanding = sent, took
        if number:
            self._progress(LEVEL, len(self._iterations), 0)
            self._progress(REACHED, self._reached, self._runtime.num_vertices)
        return not self._frontier or len(self._iterations) >= self._last_level

    def finish(self) -> Outcome:
        """Have the parts send what they have found."""
        seconds = time.perf_counter() - self._began
        self._take(self._pieces())
        busy = {worker: one.busy_seconds for worker, one in by_worker(self._iterations).items()}
        return Outcome(
            iterations=tuple(self._iterations), busy_seconds=busy,
            bytes_requested=sum(one.bytes_read for one in self._iterations), device_bytes=0, seconds=seconds,
            result_seconds=time.perf_counter() - self._began - seconds,
            depth=max(0, len(self._iterations) - (not self._frontier)), num_reached=self._reached, num_reached_edges=self._stored_edges,
            num_hops=len(self._hops), num_steps=self._num_steps, exchange=self._placement.exchange,
            exchanged=self.counters._asdict(), num_epochs=self.epoch,
            num_moves=self._placement.num_moves - self._num_moves, resumed_after_step=None,
        )  # fmt: skip

    def _iteration(self, applied: list[StepReport], seconds: float) -> Iteration:
        """Put together the metrics of a level, which `applied` found; what was sent before has brought the frontier to mirrors."""
        has_broadcast, expanded = self._runtime.has_broadcast, self._expanded
        edges = sum(one.num_edges for one in expanded)
        exchanged = [_count(GATHER if has_broadcast else ALL_TO_ALL, expanded)] + ([_count(BROADCAST, self._sent)] if has_broadcast else [])
        parts = tuple(
            PartMetrics(one.part, one.address, "push", one.busy_seconds + (two.busy_seconds if has_broadcast else 0.0), one.bytes_read,
                        one.sent + (self._sent[i].sent if has_broadcast else 0), two.num_new)
            for i, (one, two) in enumerate(zip(expanded, applied, strict=True))
        )  # fmt: skip
        reason = f"{edges:,} edges of {len(expanded)} parts"
        read = sum(one.bytes_read for one in expanded)
        level = len(self._iterations) + 1
        return Iteration(level, "push", reason, self._frontier, 0, seconds, read, parts=parts, exchanged=tuple(exchanged))

    def _pieces(self) -> Iterator[tuple[Array, Array]]:
        """Fetch levels and parents of some vertices of all parts at once, and put them in store order."""
        runtime = self._runtime
        for first in range(0, runtime.num_vertices, ASKED_VERTICES):
            stop = min(runtime.num_vertices, first + ASKED_VERTICES)
            level, parent = np.full(stop - first, UNREACHED, np.int32), np.full(stop - first, no_parent(runtime.dtype), runtime.dtype)
            asked = {
                self._session.call(address, worker_parts.collect, p, self.search, self._session.lease, first, stop): address
                for p, address in enumerate(self._placement.addresses)
            }
            for ids, parents, levels in self._session.gather(asked):
                at = ids.astype(np.int64) - first
                level[at], parent[at] = levels, parents
            yield level, parent


def _count(kind: str, reports: Iterable[StepReport]) -> Exchanged:
    every = list(reports)
    return Exchanged(kind, sum(one.sent for one in every), sum(len(one.receivers) for one in every))
