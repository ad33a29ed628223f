"""A computation in steps on a cluster: Dask tasks for each partition, some submitted ahead, begun again when a worker is lost.

In: a `Placement` that holds what the tasks work on, a `Program`. Out: what the program makes of it. A task depends on those before of
all partitions, which costs a hop of the scheduler. So a hop is many steps where all workers share a host's memory, and exchange what
they find there (`oocgraph.cluster.worker_steps`); elsewhere it is one step, and Dask brings messages from worker to worker. Tasks after the
end do nothing. Each task reports in an event (`OocGraphPlugin.tell`).
When a worker is lost, what had been submitted is dropped, the placement places its partitions again, and a new *epoch* begins where the
program can go on: after the last step in the logs (searches), after the last one whose results a worker has (PageRank), or at the beginning
(traversals over parts, components).
"""

from __future__ import annotations

import logging
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Generic, TypeVar

from oocgraph.clients import why_lost
from oocgraph.cluster.events import Watch
from oocgraph.cluster.placement import MAX_IDLE_EPOCHS, Placement
from oocgraph.cluster.session import WorkersLostError
from oocgraph.cluster.worker import abort
from oocgraph.cluster.worker_steps import Hop, Steps, take_hop
from oocgraph.cluster.worker_windows import Group
from oocgraph.errors import ClusterError
from oocgraph.exchange.windows import Counters

logger = logging.getLogger(__name__)

KEPT_HOPS = 2
"""Complete hops whose results are kept: peers may have to fetch them."""

MOST_AHEAD = 32
"""Hops submitted ahead at most, of programs that set no limit of their own."""

MOST_STEPS = 1 << 16
"""Steps of a hop at most: their reports are one event."""

TOGETHER_AHEAD = 2
"""Hops submitted ahead where they have many steps: the one that is taken, and the next; at first one, which may be all."""

HOP_SECONDS = 0.5
"""How long partitions take steps without going back to the scheduler: a hop costs 10 to 20 ms, 2 to 4 % of it, and as often
progress is shown."""

Made = TypeVar("Made")


@dataclass(frozen=True, slots=True)
class Step:
    """The step that an epoch begins after, or a hop that was submitted.

    Attributes
    ----------
    number
        Of the step, -1: before the first; or of the hop.
    futures
        One for each partition; empty where the next hop needs no results.
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
        Hops submitted ahead at most.
    counters
        What members of groups have exchanged through shared memory, summed up.
    every
        A hop ends after steps whose number, counted from 1, is a multiple of this: their results are fetched. None: after any.
    """

    title: str
    label: str
    name: str
    epoch: int
    final_step: int | None = None
    idle_epochs: int = MAX_IDLE_EPOCHS
    most_ahead: int = MOST_AHEAD
    counters: Counters = Counters()
    every: int | None = None

    @abstractmethod
    def begin(self) -> Step:
        """Begin an epoch after the step that is returned, whose results the next one takes."""

    @abstractmethod
    def steps(self, *, is_first: bool) -> Steps:
        """Return what partitions do in the first hop of an epoch, or in a later one."""

    @abstractmethod
    def complete(self, number: int, reports: Sequence[dict[str, Any]], hop: Step) -> bool:
        """Take what all partitions have reported of a step; steps come in order. Returns whether it was the last.

        The futures of the hop have the messages of its last step (`oocgraph.cluster.worker_steps.HopResult`).
        """

    @abstractmethod
    def finish(self) -> Made:
        """Make the result; the results of the last step are still there."""

    def hear(self, number: int, partition: int, worker: str, report: dict[str, Any]) -> None:
        """Take what a partition, at a worker, reports of a step, as it comes."""


@dataclass(slots=True)
class _Epoch:
    """The hops of one epoch as far as they are submitted and complete; `step` is the last complete step."""

    first: int
    group: Group | None
    step: int
    hops: deque[Step]
    done: int = -1
    events: dict[int, dict[int, dict[str, Any]]] = field(default_factory=dict)
    is_over: bool = False

    @property
    def submitted(self) -> int:
        return self.hops[-1].number

    def next_is_taken(self) -> bool:
        """Whether all tasks of the first hop that is not complete have ended."""
        return any(hop.number == self.done + 1 and hop.is_taken for hop in self.hops)


class Supersteps:
    """Takes the steps of a program on the workers of `placement`; `watch` has its events."""

    def __init__(self, placement: Placement, watch: Watch) -> None:
        self._placement, self._session, self._watch = placement, placement.session, watch
        knobs = placement.spec.settings
        self._ahead, self._most_steps = knobs.steps_ahead, knobs.steps_per_task or MOST_STEPS

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
            epoch: _Epoch | None = None
            try:
                start = program.begin()
                idle = 0 if furthest is not None and start.number > furthest else idle
                furthest = max(start.number, -1 if furthest is None else furthest)
                epoch = _Epoch(start.number, self._placement.next_group(), start.number, deque([replace(start, number=-1)]))
                self._take_steps(program, epoch)
                self._drop(epoch, after=epoch.done)  # what was submitted ahead
                return program.finish()
            except WorkersLostError as error:
                if idle >= program.idle_epochs:
                    found = f"{program.title} does not get on after {idle} attempts: {error}"
                    raise ClusterError(f"{found}; look at the workers' logs{why_lost(self._session.client)}") from error
                idle += 1
                logger.warning("%s; its partitions are placed again", error)
            finally:
                self._drop(epoch)
            self._session.tell_all(abort, program.name)  # those that wait for what was lost
            self._placement.place_again(self._watch)

    def _drop(self, epoch: _Epoch | None, after: int = -2) -> None:
        """Have the scheduler forget the hops after one."""
        if epoch is not None:
            self._session.drop(future for hop in epoch.hops if hop.number > after for future in hop.futures)

    def _take_steps(self, program: Program[Any], epoch: _Epoch) -> None:
        """Submit hops, some ahead, until a step was the last."""
        addresses = set(self._placement.addresses)
        silences = 0
        while not epoch.is_over:
            together = TOGETHER_AHEAD if epoch.done >= 0 else 1
            ahead = min(self._ahead, program.most_ahead, MOST_AHEAD if epoch.group is None else together)
            while epoch.submitted < epoch.done + ahead and not self._is_enough(program, epoch):
                self._submit(program, epoch)
            kind, message = self._session.next_event(self._watch, addresses)
            if kind == "done" and any(message in hop.futures for hop in epoch.hops):
                self._session.raise_failure(message, addresses)
            elif kind == "event" and message["epoch"] == program.epoch:
                self._take_event(program, epoch, message)
            silences = silences + 1 if kind == "nothing" and epoch.next_is_taken() else 0
            if silences > 1:
                raise WorkersLostError(f"hop {epoch.done + 1} was taken, but not all of its events came")

    def _is_enough(self, program: Program[Any], epoch: _Epoch) -> bool:
        """Whether the hops that are submitted reach the last step, if each of them has no more than one."""
        return program.final_step is not None and epoch.step + epoch.submitted - epoch.done >= program.final_step

    def _submit(self, program: Program[Any], epoch: _Epoch) -> None:
        """Submit the next hop of every partition."""
        before = epoch.hops[-1]
        number, is_first = before.number + 1, before.number < 0
        steps = program.steps(is_first=is_first)
        hop = Hop(
            name=program.name, epoch=program.epoch, lease=self._session.lease, number=number, after=epoch.first if is_first else None,
            last=program.final_step, most_steps=self._most_steps, seconds=HOP_SECONDS, every=program.every, group=epoch.group,
        )  # fmt: skip

        def submit() -> list[Any]:
            name = f"{program.label}-{program.name}-{program.epoch}"
            return [
                self._session.call(address, take_hop, p, steps, hop, *before.futures, key=(name, number, p))
                for p, address in enumerate(self._placement.addresses)
            ]

        futures = self._session.at_once(submit)
        for future in futures:
            future.add_done_callback(lambda done: self._watch.put("done", done) if done.status != "finished" else None)
        epoch.hops.append(Step(number, futures))

    def _take_event(self, program: Program[Any], epoch: _Epoch, event: dict[str, Any]) -> None:
        """Note what a partition has done in a hop, and what all have done in the hops that this completes."""
        partitions, partition, reports = len(self._placement.addresses), int(event["partition"]), event["reports"]
        program.counters = program.counters.plus(Counters(*event["counters"]))
        first = int(event["step"]) - len(reports) + 1
        for i, report in enumerate(reports):
            program.hear(first + i, partition, event["worker"], report)
        epoch.events.setdefault(int(event["hop"]), {})[partition] = event
        while not epoch.is_over and len(epoch.events.get(epoch.done + 1, ())) == partitions:
            events = epoch.events.pop(epoch.done + 1)
            epoch.done += 1
            hop = next(one for one in epoch.hops if one.number == epoch.done)
            for together in zip(*(events[p]["reports"] for p in range(partitions)), strict=True):
                epoch.step += 1
                epoch.is_over = epoch.is_over or program.complete(epoch.step, together, hop)
            self._ahead = min(MOST_AHEAD, max(self._ahead, 2 * (epoch.done + 1)))
            while epoch.hops[0].number <= epoch.done - KEPT_HOPS:
                self._session.drop(epoch.hops.popleft().futures)
