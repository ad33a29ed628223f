"""A computation in steps on a cluster: one Dask task for each partition and step, several steps ahead, begun again when a worker is lost.

In: a `Placement` that holds what the tasks work on, a `Program`. Out: what the program makes of it. A step depends on the steps before of
all partitions, so it costs one hop of the scheduler; steps after the end do nothing. Each task reports in an event (`OocGraphPlugin.tell`).
When a worker is lost, what had been submitted is dropped, the placement places its partitions again, and a new *epoch* begins where the
program can go on: after the last step in the logs (searches), after the last one whose results a worker has (PageRank), or at the beginning
(traversals over parts).
"""

from __future__ import annotations

import logging
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from oocgraph.cluster.events import Watch
from oocgraph.cluster.placement import MAX_IDLE_EPOCHS, Placement
from oocgraph.cluster.session import WorkersLostError
from oocgraph.errors import ClusterError

logger = logging.getLogger(__name__)

KEPT_STEPS = 2
"""Complete steps whose results are kept: peers may have to fetch them."""

MOST_AHEAD = 32
"""Steps submitted ahead at most, of programs that set no limit of their own."""

Task = tuple[Callable[..., Any], tuple[Any, ...]]
"""Function and first arguments of a step; the results of the step before follow, in the order of the partitions."""

Made = TypeVar("Made")


@dataclass(frozen=True, slots=True)
class Step:
    """A step that was submitted.

    Attributes
    ----------
    number
        -1: before the first.
    futures
        One for each partition; empty where the next step needs no results.
    """

    number: int
    futures: Sequence[Any] = ()

    @property
    def is_taken(self) -> bool:
        """Whether all tasks have ended."""
        return all(future.status == "finished" for future in self.futures)


class Program(ABC, Generic[Made]):
    """What is computed.

    Attributes
    ----------
    title, label
        In messages; of its tasks on the dashboard.
    name
        Unique: of its events and tasks.
    epoch
        Number of the epoch; `begin` raises it.
    final_step
        The last step that there may be; None: no limit.
    idle_epochs
        Times in a row that it may begin again without having got further.
    most_ahead
        Steps submitted ahead at most.
    """

    title: str
    label: str
    name: str
    epoch: int
    final_step: int | None = None
    idle_epochs: int = MAX_IDLE_EPOCHS
    most_ahead: int = MOST_AHEAD

    @abstractmethod
    def begin(self) -> Step:
        """Begin an epoch after the step that is returned, whose results the next one takes."""

    @abstractmethod
    def task(self, partition: int, step: int, *, is_first: bool) -> Task:
        """Return what a partition does in a step, the first of an epoch or a later one."""

    @abstractmethod
    def complete(self, step: Step, reports: Sequence[dict[str, Any]]) -> bool:
        """Take what all partitions have reported of a step; steps come in order. Returns whether it was the last."""

    @abstractmethod
    def finish(self) -> Made:
        """Make the result; the results of the last step are still there."""

    def hear(self, report: dict[str, Any]) -> None:
        """Take what a partition reports of a step, as it comes."""


@dataclass(slots=True)
class _Epoch:
    """The steps of one epoch as far as they are submitted and complete."""

    first: int
    steps: deque[Step]
    done: int
    reports: dict[int, dict[int, dict[str, Any]]] = field(default_factory=dict)
    ended: set[int] = field(default_factory=set)

    @property
    def submitted(self) -> int:
        return self.steps[-1].number

    def next_is_taken(self) -> bool:
        """Whether all tasks of the first step that is not complete have ended."""
        return any(step.number == self.done + 1 and step.is_taken for step in self.steps)


class Supersteps:
    """Takes the steps of a program on the workers of `placement`; `watch` has its events."""

    def __init__(self, placement: Placement, watch: Watch) -> None:
        self._placement, self._session, self._watch = placement, placement.session, watch
        self._ahead = placement.spec.settings.steps_ahead

    def run(self, program: Program[Made]) -> Made:
        """Take steps until the program has ended, and return its result.

        Raises
        ------
        ClusterError
            Workers were lost again and again, none is left, or the scheduler is lost.
        BudgetError
            What a lost worker held does not fit on those that are left.
        """
        idle, furthest = 0, None
        while True:
            epoch = _Epoch(-1, deque(), -1)
            try:
                start = program.begin()
                idle = 0 if furthest is not None and start.number > furthest else idle
                furthest = max(start.number, -1 if furthest is None else furthest)
                epoch = _Epoch(start.number, deque([start]), start.number)
                self._take_steps(program, epoch)
                self._drop(epoch, after=epoch.done)  # what was submitted ahead
                return program.finish()
            except WorkersLostError as error:
                if idle >= program.idle_epochs:
                    found = f"{program.title} does not get on after {idle} attempts: {error}"
                    raise ClusterError(f"{found}; look at the workers' logs") from error
                idle += 1
                logger.warning("%s; its partitions are placed again", error)
            finally:
                self._drop(epoch)
            self._placement.place_again(self._watch)

    def _drop(self, epoch: _Epoch, after: int = -2) -> None:
        """Have the scheduler forget the steps after one."""
        self._session.drop(future for step in epoch.steps if step.number > after for future in step.futures)

    def _take_steps(self, program: Program[Any], epoch: _Epoch) -> None:
        """Submit steps, some ahead, until every partition has ended."""
        addresses, partitions = set(self._placement.addresses), len(self._placement.addresses)
        silences = 0
        while len(epoch.ended) < partitions:
            while epoch.submitted < epoch.done + min(self._ahead, program.most_ahead) and epoch.submitted != program.final_step:
                self._submit(program, epoch)
            kind, message = self._session.next_event(self._watch, addresses)
            if kind == "done" and any(message in step.futures for step in epoch.steps):
                self._session.raise_failure(message, addresses)
            elif kind == "event" and message["epoch"] == program.epoch:
                self._take_report(program, epoch, message)
            silences = silences + 1 if kind == "nothing" and epoch.next_is_taken() else 0
            if silences > 1:
                raise WorkersLostError(f"step {epoch.done + 1} was taken, but not all of its events came")

    def _submit(self, program: Program[Any], epoch: _Epoch) -> None:
        """Submit the next step of every partition."""
        before = epoch.steps[-1]
        number, futures = before.number + 1, []
        for p, address in enumerate(self._placement.addresses):
            function, arguments = program.task(p, number, is_first=before.number == epoch.first)
            key = (f"{program.label}-{program.name}-{program.epoch}", number, p)
            future = self._session.submit(address, function, *arguments, *before.futures, key=key)
            future.add_done_callback(lambda done: self._watch.put("done", done) if done.status != "finished" else None)
            futures.append(future)
        epoch.steps.append(Step(number, futures))

    def _take_report(self, program: Program[Any], epoch: _Epoch, report: dict[str, Any]) -> None:
        """Note what a partition has done in a step, and what all have done in the steps that this completes."""
        partitions, partition = len(self._placement.addresses), int(report["partition"])
        program.hear(report)
        epoch.reports.setdefault(int(report["step"]), {})[partition] = report
        if report["ended"]:
            epoch.ended.add(partition)
        while len(epoch.reports.get(epoch.done + 1, ())) == partitions:
            reports = epoch.reports.pop(epoch.done + 1)
            epoch.done += 1
            step = next(one for one in epoch.steps if one.number == epoch.done)
            if program.complete(step, [reports[p] for p in range(partitions)]):
                epoch.ended |= set(range(partitions))
            self._ahead = min(MOST_AHEAD, max(self._ahead, 2 * (epoch.done - epoch.first)))
            while epoch.steps[0].number <= epoch.done - KEPT_STEPS:
                self._session.drop(epoch.steps.popleft().futures)
