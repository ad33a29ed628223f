"""One search on a cluster: submits steps, reads their events, begins a new epoch when a worker is lost.

In: a `Crew` that holds the graph, a `SearchSpec`, a result store. Out: an `Outcome`. A step depends on the steps before of all
partitions, so an iteration costs one hop of the scheduler; several are submitted ahead, and steps after the end do nothing. When a
worker is lost the driver drops what it had submitted and begins a new *epoch*: the partitions are placed again, and each makes its
state again from the logs, which is also how a search is resumed after everything was lost.
"""

from __future__ import annotations

import time
import uuid
from collections import deque
from dataclasses import dataclass, field, replace
from typing import Any

from oocgraph.cluster import worker as tasks
from oocgraph.cluster.crew import MAX_IDLE_EPOCHS, Crew
from oocgraph.cluster.events import Watch
from oocgraph.cluster.figures import Figures
from oocgraph.cluster.session import WorkersLostError
from oocgraph.cluster.specs import SearchSpec
from oocgraph.engine.part import bounds_of
from oocgraph.errors import ClusterError
from oocgraph.partition.dealing import Dealing
from oocgraph.progress import LEVEL, REACHED
from oocgraph.store.search_store import SearchStore
from oocgraph.types import Progress

KEPT_STEPS = 3
"""Steps whose results are kept: a peer may still have to fetch them."""

MOST_AHEAD = 32
"""Steps submitted ahead at most."""


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
        1, and one more for each time that partitions were placed again.
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


class Driver:
    """Runs one search on the workers of `crew`.

    Parameters
    ----------
    dealing
        Who owns which vertices.
    name
        Of the search, in tasks and events.
    """

    def __init__(self, crew: Crew, dealing: Dealing, name: str, progress: Progress) -> None:
        self.crew, self.session, self.num_vertices, self.name, self.progress = crew, crew.session, dealing.num_vertices, name, progress
        self.bounds = bounds_of(dealing)
        self.figures = Figures(crew.spec.num_partitions)
        self.ahead = crew.spec.settings.steps_ahead
        self.num_hops = 0

    def run(self, spec: SearchSpec, store: SearchStore, watch: Watch) -> Outcome:
        """Take steps until the search has ended, and have the workers write the result."""
        moves_before, epochs, idle = self.crew.num_moves, 0, 0
        began = seconds = 0.0
        first_step = last_step = store.last_step(self.bounds, parents=True)
        while True:
            epochs += 1
            spec = replace(spec, epoch=spec.epoch + 1, last_step=last_step)
            store.update(epoch=spec.epoch, few=list(spec.options.few))
            began = began or time.perf_counter()  # making the store ready is no part of the search
            try:
                self._take_steps(spec, watch)
                seconds = time.perf_counter() - began
                parts = self._finish()
                break
            except WorkersLostError as error:
                if idle >= MAX_IDLE_EPOCHS:
                    raise ClusterError(f"the search does not get on after {idle} attempts: {error}; look at the workers' logs") from error
                self.crew.place_again(watch)
                idle, before = idle + 1, last_step
                last_step = store.last_step(self.bounds)
                idle = idle if last_step == before else 0
        return Outcome(
            figures=self.figures,
            seconds=seconds,
            result_seconds=time.perf_counter() - began - seconds,
            depth=max(part["depth"] for part in parts),
            num_reached=sum(part["num_reached"] for part in parts),
            num_reached_edges=sum(part["num_reached_edges"] for part in parts),
            num_hops=self.num_hops,
            num_epochs=epochs,
            num_moves=self.crew.num_moves - moves_before,
            resumed_after_step=first_step if first_step >= 0 else None,
        )

    def _take_steps(self, spec: SearchSpec, watch: Watch) -> None:
        """Submit steps, some ahead, until every partition has ended."""
        epoch = _Epoch(spec, spec.last_step)
        partitions = len(self.crew.placement)
        done, addresses = spec.last_step, set(self.crew.placement)
        silences = 0
        try:
            while len(epoch.ended) < partitions:
                while epoch.submitted < done + self.ahead:
                    self._submit_step(epoch, watch)
                kind, message = self.session.next_event(watch, addresses)
                if kind == "done" and any(message in step for step in epoch.steps):
                    self.session.raise_failure(message)
                elif kind == "event" and message["epoch"] == spec.epoch:
                    done = max(done, self._take_event(epoch, message))
                silences = silences + 1 if kind == "nothing" and epoch.has_taken(done + 1) else 0
                if silences > 1:
                    raise WorkersLostError(f"step {done + 1} was taken, but not all of its events came")
        finally:
            self.session.drop(future for step in epoch.steps for future in step)

    def _submit_step(self, epoch: _Epoch, watch: Watch) -> None:
        """Submit the next step of every partition."""
        crew, index = self.crew, epoch.submitted + 1
        before = epoch.steps[-1] if epoch.steps else []
        spec: SearchSpec | tuple[str, int] = (epoch.spec.search, epoch.spec.epoch) if before else epoch.spec
        futures = []
        for p, address in enumerate(crew.placement):
            key = (f"bfs-step-{self.name}-{epoch.spec.epoch}", index, p)  # on the dashboard: bfs-step
            future = self.session.submit(address, tasks.step, spec, crew.graph, p, index, *before, key=key)
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
        if epoch.done[step] < len(self.crew.placement):
            return epoch.spec.last_step
        if not epoch.found[step]:  # the next step would find it out; after a last level it is needed, to hear what others have found
            epoch.ended |= set(range(len(self.crew.placement)))
        self.num_hops += 1
        self.progress(LEVEL, int(message["level"]), 0)
        self.progress(REACHED, self.figures.num_reached, self.num_vertices)
        self.ahead = min(MOST_AHEAD, max(self.ahead, 2 * (step - epoch.spec.last_step)))
        while len(epoch.steps) > self.ahead + KEPT_STEPS:
            epoch.steps.popleft()
        return step

    def _finish(self) -> list[dict[str, Any]]:
        """Have every partition write its result; returns their figures."""
        crew = self.crew
        futures = {}
        for p, address in enumerate(crew.placement):
            key = (f"bfs-write-{uuid.uuid4().hex}", p)
            futures[self.session.submit(address, tasks.finish, self.name, crew.graph, p, key=key)] = address
        return self.session.gather(futures)
