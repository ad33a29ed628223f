"""Searches on a Dask cluster: iterations as Dask graphs, one `step` task for each partition.

In: a client, a store. Out: a `ClusterRuntime`, loaded once on the workers, that runs any number of searches. A step depends on the steps
before of all partitions, so an iteration costs one hop of the scheduler; several are submitted ahead, and steps after the end
do nothing. Steps are pinned to the worker that holds their partition. When that worker is lost the driver drops what it had
submitted and begins a new *epoch*: it places the partitions anew, and each makes its state again from the logs, which is also
how a search is resumed after everything was lost.
"""

from __future__ import annotations

import logging
import os
import queue
import threading
import time
import uuid
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field, replace
from types import TracebackType
from typing import Any, Self

import numpy as np

from oocgraph.config import settings
from oocgraph.errors import BudgetError, ClusterError, OocGraphError
from oocgraph.progress import LEVEL, REACHED
from oocgraph.runtime import worker as tasks
from oocgraph.runtime.engine import Few
from oocgraph.runtime.events import Watch
from oocgraph.runtime.figures import Figures
from oocgraph.runtime.part import SearchOptions, few_of
from oocgraph.runtime.scheduler import workers_of
from oocgraph.runtime.survey import check_client, clients_of, survey_workers, wait_for_workers
from oocgraph.runtime.worker import GraphSpec, OocGraphPlugin, SearchSpec, StateLostError
from oocgraph.store.graph import CSRStore, open_graph
from oocgraph.store.search_store import SearchStore, graph_fingerprint
from oocgraph.types import Array, Direction, Progress, ignore_progress

logger = logging.getLogger(__name__)

POLL_SECONDS = 0.5
"""How often the driver looks whether scheduler and workers are still there, when nothing happens."""

KEPT_STEPS = 3
"""Steps whose results are kept: a peer may still have to fetch them."""

MOST_AHEAD = 32
"""Steps submitted ahead at most."""

NO_NANNY_SECONDS = 5.0
"""How long a lost worker is waited for that no nanny restarts."""

MAX_IDLE_EPOCHS = 8
"""Epochs in a row without a step taken, after which something is wrong that placing anew does not mend."""


class WorkersLostError(ClusterError):
    """A worker that holds a partition has gone; the driver places its partitions anew."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a search on a cluster has done.

    Attributes
    ----------
    figures
        Of all levels and workers.
    seconds
        From the sources to levels and parents of all partitions in their workers' memory.
    result_seconds
        Writing them to the result store.
    depth, num_reached, num_reached_edges
        Of the search.
    num_hops
        Steps taken, each one hop of the scheduler.
    num_epochs
        1, and one more for each time that partitions were placed anew.
    num_moves
        Partitions that went to another worker.
    resumed_after_step
        Last step that was in the logs already; None of a search that began here.
    """

    figures: Figures
    seconds: float
    result_seconds: float
    depth: int
    num_reached: int
    num_reached_edges: int
    num_hops: int
    num_epochs: int
    num_moves: int
    resumed_after_step: int | None


class ClusterRuntime:
    """A graph on the workers of a cluster, ready for searches. Use `ClusterRuntime.open` in a ``with`` statement."""

    def __init__(self, client: Any, store: CSRStore, spec: GraphSpec, placement: list[str], nannies: dict[str, bool]) -> None:
        self.client, self.store, self.spec = client, store, spec
        self.placement = placement
        self._nannies = nannies
        self._lease = f"{client.id}/{uuid.uuid4().hex}"
        self._graph = (spec.fingerprint, spec.num_partitions)
        self.parts: list[dict[str, Any]] = [{} for _ in placement]
        self.load_seconds = 0.0
        self.num_moves = 0
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
        result_folder: str | os.PathLike[str] | None = None,
    ) -> Self:
        """Check the workers and load the graph on them.

        Parameters
        ----------
        graph
            A store or its path, which means the same on every worker.
        client
            A `distributed.Client`.
        num_partitions
            Into how many the vertices are dealt; by default one for each worker.
        memory_budget
            Bytes of each worker (text such as ``640M``); by default what Dask's memory limit leaves before it spills.
        threads
            Compute threads of each worker; by default as many as Dask gave it.
        max_planes, check_pages
            As in `LocalRuntime.open`.
        result_folder
            Where results are going to be written; checked to be the same folder on every worker.

        Raises
        ------
        ClusterError
            The client is closed, no worker comes in time, workers have another version, or do not see the store.
        BudgetError
            A worker cannot hold its share; the message names it.
        """
        began = time.perf_counter()
        store = graph if isinstance(graph, CSRStore) else open_graph(graph)
        knobs = settings()
        n = max(1, store.num_vertices)
        if num_partitions is not None and not (isinstance(num_partitions, (int, np.integer)) and 1 <= num_partitions <= n):
            raise OocGraphError(
                f"num_partitions is {num_partitions!r}, of {store.num_vertices:,} vertices with edges: give a whole number from 1 to {n:,}"
            )
        check_client(client)
        wait_for_workers(client, knobs.worker_timeout)
        fingerprint = graph_fingerprint(store)
        workers = survey_workers(client, store.url, fingerprint, result_folder)
        spec = GraphSpec(
            url=os.path.abspath(store.url) if "://" not in store.url else store.url,
            fingerprint=fingerprint,
            num_partitions=int(num_partitions or min(n, len(workers))),
            settings=knobs,
            memory_budget=memory_budget,
            threads=threads,
            max_planes=max_planes,
            check_pages=check_pages,
        )
        addresses = sorted(workers)
        placement = [addresses[p % len(addresses)] for p in range(spec.num_partitions)]
        _release_what_is_left(client)
        runtime = cls(client, store, spec, placement, {address: info["nanny"] for address, info in workers.items()})
        client.register_plugin(OocGraphPlugin())
        try:
            watch = runtime._open.enter_context(Watch(client, runtime._lease))
            try:
                runtime._acquire(range(spec.num_partitions), watch)
            except WorkersLostError:
                runtime.place_anew(watch)
        except BaseException:
            runtime.close()
            raise
        runtime.load_seconds = time.perf_counter() - began
        return runtime

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """Give back what the workers hold for this runtime."""
        self._open.close()
        self._on_all(tasks.release, self._lease)

    @property
    def memory_budget(self) -> int:
        """Bytes of all workers' budgets."""
        return sum({part["worker"]: part["memory_budget"] for part in self.parts if part}.values())

    @property
    def planes_resident(self) -> int:
        """Planes in memory on every worker."""
        return min((part["planes_resident"] for part in self.parts if part), default=0)

    @property
    def few(self) -> Few:
        """What a search that begins now is told (`oocgraph.runtime.part.few_of`), and one that goes on later must be told again."""
        return few_of(self.store, in_memory=all(part["in_memory"] for part in self.parts))

    def search(
        self,
        sources: Array,
        result_store: SearchStore,
        *,
        iterate: Callable[..., None],
        direction: Direction = "auto",
        depth_limit: int | None = None,
        progress: Progress = ignore_progress,
    ) -> Outcome:
        """Traverse from `sources`, or go on where `result_store` ends; the workers write the result there.

        Parameters
        ----------
        sources : (num_sources,) int64
            Store numbers, distinct.
        result_store
            New, or of a search that was interrupted.
        iterate
            Finds one level: `oocgraph.algorithms.bfs.iterate`.

        Raises
        ------
        ClusterError
            The scheduler or the last worker was lost; the message says how to resume.
        BudgetError
            What a lost worker held does not fit on those that are left.
        """
        check_client(self.client)
        few = Few(*result_store.fields.get("few", self.few))
        options = SearchOptions(direction, 2**31 - 2 if depth_limit is None else depth_limit, few)
        name = uuid.uuid4().hex
        driver = _Driver(self, name, progress)
        spec = SearchSpec(
            search=name,
            lease=self._lease,
            result_store=os.path.abspath(result_store.path),
            sources=sources,
            options=options,
            iterate=iterate,
            epoch=int(result_store.fields["epoch"]),
            last_step=-1,
        )
        with self.searching:  # memory is reserved for one search at a time
            try:
                with Watch(self.client, name) as watch:
                    return driver.run(spec, result_store, watch)
            finally:
                self._on_all(tasks.forget, name)

    def _on_all(self, call: Callable[..., Any], name: str) -> None:
        """Call on every worker, as far as they can be reached: what is gone holds nothing."""
        if self.client.status != "running":
            return
        try:
            self.client.run(call, name, on_error="ignore")
        except OSError as error:  # the scheduler has just gone, and this must not hide what is told of that
            logger.info("workers were not told to drop %s: %s", name, error)

    # Which worker holds what.

    def _acquire(self, partitions: Iterable[int], watch: Watch) -> None:
        """Have the workers of some partitions load them, as far as they do not hold them."""
        mine: dict[str, list[int]] = {}
        for p in partitions:
            mine.setdefault(self.placement[p], []).append(p)
        futures = {}
        for address, numbers in mine.items():
            key = f"load-partitions-{uuid.uuid4().hex}"
            futures[self._submit(key, address, tasks.acquire, self._lease, self.spec, numbers)] = address
        for figures in self._gather(futures, watch):
            for part in figures:
                self.parts[part["partition"]] = part

    def _submit(self, key: Any, address: str, task: Callable[..., Any], *arguments: Any) -> Any:
        """Submit a task that only one worker may run."""
        return self.client.submit(task, *arguments, workers=[address], allow_other_workers=False, key=key, pure=False, retries=0)

    def _gather(self, futures: Mapping[Any, str], watch: Watch) -> list[Any]:
        """Wait for tasks, each with its worker, and return their results; the first failure, of a task or of a worker, is raised."""
        addresses = set(futures.values())
        for future in futures:
            future.add_done_callback(lambda done: watch.put("done", done))
        waiting = set(futures)
        try:
            while waiting:
                kind, message = self._next(watch, addresses)
                if kind == "done" and message in waiting:
                    self._raise_failure(message)
                    waiting.discard(message)
            return [self._result(future, watch, addresses) for future in futures]
        except BaseException:
            self._drop(futures)
            raise

    def _result(self, future: Any, watch: Watch, addresses: set[str]) -> Any:
        """Fetch what a task has returned; until then its worker may go, and Dask would wait for another like it."""
        while True:
            try:
                return future.result(timeout=POLL_SECONDS)
            except TimeoutError:
                self._next(watch, addresses)
            except Exception:
                self._check_scheduler()
                self._raise_failure(future)
                raise

    def _next(self, watch: Watch, addresses: set[str]) -> tuple[str, Any]:
        """Return what happens next; if the scheduler is lost, or one of the workers at `addresses`, that is an error."""
        try:
            kind, message = watch.queue.get(timeout=POLL_SECONDS)
        except queue.Empty:
            if gone := sorted(addresses - set(self._workers())):  # a worker may have gone before anybody listened
                raise WorkersLostError(f"worker {gone[0]} was lost") from None
            return "nothing", None
        if kind == "workers" and message["action"] == "remove-worker" and message["worker"] in addresses:
            raise WorkersLostError(f"worker {message['worker']} was lost")
        return kind, message

    def _workers(self) -> dict[str, dict[str, Any]]:
        """Return the workers that the scheduler knows, by address."""
        self._check_scheduler()
        try:
            return workers_of(self.client)
        except ClusterError:
            self._check_scheduler()
            raise

    def _check_scheduler(self) -> None:
        if self.client.status != "running":
            raise ClusterError(
                f"the connection to the scheduler was lost (client {self.client.status}); start a cluster again and resume the search "
                "(--resume with the search's --result-store)"
            )

    def _raise_failure(self, future: Any) -> None:
        """Raise what a task has raised."""
        if future.status == "finished":
            return
        self._check_scheduler()
        if future.status == "error":
            error = future.exception()
            if isinstance(error, StateLostError):
                raise WorkersLostError(str(error)) from error
            if isinstance(error, OocGraphError):
                raise error
            raise ClusterError(f"a task failed on its worker: {error!r}") from error
        raise WorkersLostError(f"a task was {future.status}")

    def _drop(self, futures: Iterable[Any]) -> None:
        """Have the scheduler forget tasks; what runs already ends, and is not heard of any more."""
        for future in futures:
            future.release()

    def place_anew(self, watch: Watch) -> None:
        """Give the partitions of lost workers to others, loading what those do not hold.

        Raises
        ------
        ClusterError
            No worker is left, and none comes back in time.
        BudgetError
            The workers that are left cannot hold them.
        """
        patience = self.spec.settings.worker_timeout
        began, attempts = time.monotonic(), 0
        refused: OocGraphError | None = None
        while True:
            alive = self._workers()
            self._nannies |= {address: bool(info.get("nanny")) for address, info in alive.items()}
            lost = [p for p, address in enumerate(self.placement) if address not in alive]
            if alive:
                attempts += 1
                try:
                    self._move(lost, sorted(alive), watch)
                    return
                except WorkersLostError as error:
                    if attempts < MAX_IDLE_EPOCHS:
                        continue
                    raise ClusterError(
                        f"partitions were placed anew {attempts} times, in vain: {error}; look at the workers' logs"
                    ) from error
                except BudgetError as error:
                    refused = error
            if not any(self._nannies.get(self.placement[p], False) for p in lost):
                patience = min(patience, NO_NANNY_SECONDS)
            if time.monotonic() - began > patience:
                raise refused or ClusterError(
                    f"no worker is left, and none came back within {patience:g} s; start workers and resume the search "
                    "(--resume with the search's --result-store)"
                )
            with suppress(queue.Empty):
                watch.queue.get(timeout=POLL_SECONDS)

    def _move(self, lost: Sequence[int], workers: Sequence[str], watch: Watch) -> None:
        """Place `lost` partitions on those of `workers` that hold fewest; try all before it is refused."""
        for p in lost:
            refused = None
            for address in sorted(workers, key=lambda one: (self.placement.count(one), one)):
                before, self.placement[p] = self.placement[p], address
                try:
                    self._acquire([p], watch)
                    self.num_moves += 1
                    refused = None
                    break
                except BudgetError as error:
                    self.placement[p], refused = before, error
            if refused is not None:
                raise refused
        self._acquire(range(len(self.placement)), watch)  # a worker that came back under its old address holds nothing


def _release_what_is_left(client: Any) -> None:
    """Give back what clients hold that are gone without having closed their runtimes."""
    told = client.run(tasks.leases, on_error="ignore")
    if held := {lease for leases in told.values() for lease in leases}:
        there = clients_of(client)  # asked after the workers: who holds something and is not there has gone
        for lease in sorted(held):
            if lease.partition("/")[0] not in there:
                client.run(tasks.release, lease, on_error="ignore")


@dataclass(slots=True)
class _Epoch:
    """The steps of one epoch as far as they are submitted and done."""

    spec: SearchSpec
    submitted: int
    steps: deque[list[Any]] = field(default_factory=deque)
    done: dict[int, int] = field(default_factory=dict)
    found: dict[int, int] = field(default_factory=dict)
    ended: set[int] = field(default_factory=set)

    def has_taken(self, step: int) -> bool:
        """Whether all tasks of a step, one of the last that were submitted, are finished."""
        return all(future.status == "finished" for future in self.steps[step - self.submitted - 1])


class _Driver:
    """Runs one search: submits steps, reads events, begins a new epoch when a worker is lost."""

    def __init__(self, runtime: ClusterRuntime, name: str, progress: Progress) -> None:
        self.runtime, self.name, self.progress = runtime, name, progress
        self.figures = Figures(runtime.spec.num_partitions)
        self.ahead = runtime.spec.settings.steps_ahead
        self.num_hops = 0

    def run(self, spec: SearchSpec, store: SearchStore, watch: Watch) -> Outcome:
        began, moves_before, epochs, idle = time.perf_counter(), self.runtime.num_moves, 0, 0
        seconds = 0.0
        first_step = last_step = store.last_step(parents=True)
        while True:
            epochs += 1
            spec = replace(spec, epoch=spec.epoch + 1, last_step=last_step)
            store.update(epoch=spec.epoch, few=list(spec.options.few))
            try:
                self._take_steps(spec, watch)
                seconds = time.perf_counter() - began
                parts = self._finish(watch)
                break
            except WorkersLostError as error:
                if idle >= MAX_IDLE_EPOCHS:
                    raise ClusterError(f"the search does not get on after {idle} attempts: {error}; look at the workers' logs") from error
                self.runtime.place_anew(watch)
                idle = idle + 1 if store.last_step() == last_step else 0
                last_step = store.last_step()
        return Outcome(
            figures=self.figures,
            seconds=seconds,
            result_seconds=time.perf_counter() - began - seconds,
            depth=max(part["depth"] for part in parts),
            num_reached=sum(part["num_reached"] for part in parts),
            num_reached_edges=sum(part["num_reached_edges"] for part in parts),
            num_hops=self.num_hops,
            num_epochs=epochs,
            num_moves=self.runtime.num_moves - moves_before,
            resumed_after_step=first_step if first_step >= 0 else None,
        )

    def _take_steps(self, spec: SearchSpec, watch: Watch) -> None:
        """Submit steps, some ahead, until every partition has ended."""
        epoch = _Epoch(spec, spec.last_step)
        partitions = len(self.runtime.placement)
        done, addresses = spec.last_step, set(self.runtime.placement)
        silences = 0
        try:
            while len(epoch.ended) < partitions:
                while epoch.submitted < done + self.ahead:
                    self._submit_step(epoch, watch)
                kind, message = self.runtime._next(watch, addresses)
                if kind == "done" and any(message in step for step in epoch.steps):
                    self.runtime._raise_failure(message)
                elif kind == "event" and message["epoch"] == spec.epoch:
                    done = max(done, self._take_event(epoch, message))
                silences = silences + 1 if kind == "nothing" and epoch.has_taken(done + 1) else 0
                if silences > 1:
                    raise WorkersLostError(f"step {done + 1} was taken, but not all of its events came")
        finally:
            self.runtime._drop(future for step in epoch.steps for future in step)

    def _submit_step(self, epoch: _Epoch, watch: Watch) -> None:
        """Submit the next step of every partition."""
        runtime, index = self.runtime, epoch.submitted + 1
        before = epoch.steps[-1] if epoch.steps else []
        spec: SearchSpec | tuple[str, int] = (epoch.spec.search, epoch.spec.epoch) if before else epoch.spec
        futures = []
        for p, address in enumerate(runtime.placement):
            key = (f"bfs-step-{self.name}-{epoch.spec.epoch}", index, p)  # on the dashboard: bfs-step
            future = runtime._submit(key, address, tasks.step, spec, runtime._graph, p, index, *before)
            future.add_done_callback(lambda done: watch.put("done", done) if done.status != "finished" else None)
            futures.append(future)
        epoch.steps.append(futures)
        epoch.submitted = index

    def _take_event(self, epoch: _Epoch, message: dict[str, Any]) -> int:
        """Note what a step has done; returns the last step that all partitions have taken."""
        step = int(message["step"])
        self.figures.add(message)
        epoch.done[step] = epoch.done.get(step, 0) + 1
        epoch.found[step] = epoch.found.get(step, 0) + int(message["num_found"])
        if message["ended"]:
            epoch.ended.add(int(message["partition"]))
        if epoch.done[step] < len(self.runtime.placement):
            return epoch.spec.last_step
        if not epoch.found[step] or int(message["level"]) >= epoch.spec.options.last_level:
            epoch.ended |= set(range(len(self.runtime.placement)))  # the next step would find it out
        self.num_hops += 1
        self.progress(LEVEL, int(message["level"]), 0)
        self.progress(REACHED, self.figures.num_reached, self.runtime.store.num_vertices)
        self.ahead = min(MOST_AHEAD, max(self.ahead, 2 * (step - epoch.spec.last_step)))
        while len(epoch.steps) > self.ahead + KEPT_STEPS:
            epoch.steps.popleft()
        return step

    def _finish(self, watch: Watch) -> list[dict[str, Any]]:
        """Have every partition write its result; returns their figures."""
        runtime = self.runtime
        futures = {}
        for p, address in enumerate(runtime.placement):
            key = (f"bfs-write-{uuid.uuid4().hex}", p)
            futures[runtime._submit(key, address, tasks.finish, self.name, runtime._graph, p)] = address
        return runtime._gather(futures, watch)
