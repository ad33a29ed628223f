"""PageRank on a Dask cluster: each worker makes the ranks of a range of vertices, and gets those of all others for the next iteration.

In: a `Placement` that holds the ranges, a `RankRun`. Out: `PowerIteration`, a program of `oocgraph.cluster.supersteps` that makes a
`RankState`. Ranks are the results of tasks, and each worker keeps those of all vertices that its last iteration began with: when a worker
is lost, its ranges go to others, and the run goes on from the last ranks that any of them has.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from oocgraph.cluster import worker_ranks
from oocgraph.cluster.placement import Placement
from oocgraph.cluster.supersteps import Program, Step
from oocgraph.cluster.worker_ranks import Effort, PastIteration, RankSlice, RankSteps, joined, report_of
from oocgraph.cluster.worker_steps import HopResult
from oocgraph.products.rank_run import RankRun
from oocgraph.products.ranking import RankState
from oocgraph.results.pagerank import RankIteration
from oocgraph.types import Array


class PowerIteration(Program[RankState]):
    """The iterations of one run.

    Parameters
    ----------
    placement
        Holds the graph.
    name
        Unique.
    run
        When it ends, and what takes note of its iterations.
    """

    title, label, most_ahead = "PageRank", "pagerank-step", 2

    def __init__(self, placement: Placement, name: str, run: RankRun) -> None:
        self._placement, self._session, self._run = placement, placement.session, run
        self.name, self.epoch, self.final_step, self.every = name, 0, run.max_iter - 1, run.saved_every
        self._ranges: list[tuple[int, int]] = [part["range"] for part in placement.parts]
        self._last, self._began, self._fetched = Step(-1), 0.0, (-1, np.empty(0))

    def begin(self) -> Step:
        """Go on from the last ranks that a worker has, or from the checkpoint, or begin."""
        self.epoch += 1
        before, self._began = self._began, time.perf_counter()
        addresses, lease = sorted(set(self._placement.addresses)), self._session.lease
        if self.epoch > 1:
            held = self._session.gather({self._session.call(a, worker_ranks.past_iterations, lease): a for a in addresses})
            past, address = max(((one or [], at) for one, at in zip(held, addresses, strict=True)), key=lambda one: len(one[0]))
            if past:
                return self._go_on(past, address, self._began - before)
        state = self._run.resumed()
        if state is None:
            return Step(-1)
        futures = []
        for p, (a, z) in enumerate(self._ranges):
            of_range = state if p == 0 else replace(state, dangling=0.0, change=0.0)
            futures.append(self._session.scatter(RankSlice(state.rank[a:z], report_of(of_range), (0, 0, state.single)), addresses))
        return Step(state.iteration - 1, futures)

    def _go_on(self, past: Sequence[PastIteration], address: str, seconds: float) -> Step:
        """Go on after the last iteration that a worker knows, and take note of those, in so many seconds, whose events were lost."""
        number = past[-1].number
        slices = [self._session.call(address, worker_ranks.held_slice, self._session.lease, number, p) for p in range(len(self._ranges))]
        lost = [one for one in past if one.number > self._last.number]
        for one in lost:
            self._run.record(self._metrics(joined(one.reports), one.efforts, seconds / len(lost)))
        self._last = Step(number)
        return Step(number, slices)

    def steps(self, *, is_first: bool) -> RankSteps:
        """Return what a worker does: `worker_ranks.RankSteps`."""
        return RankSteps(enough=self._run.enough)

    def complete(self, number: int, reports: Sequence[dict[str, Any]], hop: Step) -> bool:
        """Take note of an iteration; whether it was the last."""
        self._last, self._state = Step(number, hop.futures), joined([report["report"] for report in reports])
        now = time.perf_counter()
        together = [report["seconds"] for report in reports if "seconds" in report]
        took = max(together) if len(together) == len(reports) else now - self._began
        self._began = now
        return self._run.note(self._state, self._metrics(self._state, [report["effort"] for report in reports], took), self._ranks)

    @staticmethod
    def _metrics(state: RankState, efforts: Sequence[Effort], seconds: float) -> RankIteration:
        return RankIteration(
            iteration=state.iteration,
            change=state.change,
            seconds=seconds,
            bytes_requested=sum(one[0] for one in efforts),
            bytes_read=sum(one[1] for one in efforts),
            precision="single" if efforts[0][2] else "double",
        )

    def finish(self) -> RankState:
        """Return the last state, with its ranks."""
        return replace(self._state, rank=self._ranks())

    def _ranks(self) -> Array:
        """Fetch the ranks of the last iteration, once, range by range: (num_vertices,) float64."""
        number, rank = self._fetched
        if number != self._last.number:
            self._fetched = -1, np.empty(0)
            rank = np.empty(self._ranges[-1][1])

            def put(p: int, one: HopResult) -> None:
                rank[slice(*self._ranges[p])] = one.message.rank

            self._session.gather(dict(zip(self._last.futures, self._placement.addresses, strict=True)), put)
            self._fetched = self._last.number, rank
        return rank
