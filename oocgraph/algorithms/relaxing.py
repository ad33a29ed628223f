"""Values handed on along edges, out of core: what shortest paths and operators of a user share, and core numbers in part.

In: a graph, where values begin, a loop that hands them on (`oocgraph.kernels.relax`). Out: `Relaxed`, the values of all vertices and where
each came from. Blocks of edges are worked on by priority, those in memory first (`oocgraph.engine.blocks`).
"""

from __future__ import annotations

from time import perf_counter
from typing import Any, NamedTuple, get_args

import numpy as np

from oocgraph.engine.blocks import LEVEL_SLACK, NO_TARGETS, Run, Schedule, forget_beyond, has_many_edges, new_values
from oocgraph.engine.opened import OpenedGraph, Unopened
from oocgraph.engine.packages import filled
from oocgraph.errors import ArgumentError
from oocgraph.memory import SLACK_BYTES, Budget, PeakSampler, device_bytes_read
from oocgraph.resources import Resources
from oocgraph.results.writer import writing_bytes
from oocgraph.store.graph import CSRStore
from oocgraph.types import Array, Progress, no_parent

SAMPLED_WEIGHTS = 1 << 16
"""Weights, of 16 places, that the width of a bucket is chosen by."""

LEAST_WIDTH = float(np.finfo(np.float64).tiny)
"""Of a bucket that is chosen: one has to be divided by it."""

WIDTHS = 32
"""Buckets of the mean weight, on graphs with hubs or many edges. (Kronecker graph of scale 22, weights 1 .. 255, a quarter of the edges in
memory: 1.3 to 1.5 times the edges are read with 32, 1.5 to 1.6 times with 16.)"""


class Relaxed(NamedTuple):
    """What has come of it.

    Attributes
    ----------
    value, parent : (num_vertices,)
    run : Run
    """

    value: Array
    parent: Array
    run: Run


class Relaxing(NamedTuple):
    """How values are handed on.

    Attributes
    ----------
    opened : OpenedGraph or Unopened
    store : CSRStore
    column : str or None
        Edge column of the weights; None: all are one.
    schedule : Schedule
    slack : int
        See `oocgraph.kernels.blocks.Rules`.
    scale : float
        Buckets in a step of priority.
    threads : int
    progress : Progress
    """

    opened: OpenedGraph | Unopened
    store: CSRStore
    column: str | None
    schedule: Schedule
    slack: int
    scale: float
    threads: int
    progress: Progress

    def within(
        self, budget: Budget, loop: Any, unreached: Any, numbers: Array, initial: Array, buckets: Array, *,
        bound: Any = None, targets: Array = NO_TARGETS,
    ) -> Relaxed:  # fmt: skip
        """Hand values on within a budget until none gets better.

        Parameters
        ----------
        budget
            Charged first.
        loop
            A `oocgraph.kernels.relax.Loop`.
        unreached
            A value of the dtype that is computed with: of vertices that no value has come to.
        numbers, initial, buckets : (n,) int64, values, int32
            Store numbers of the vertices that values begin at, the values, and their buckets.
        bound
            Values beyond it are not kept; None: any are.
        targets : (n,) int64
            Store numbers, ascending, of vertices: values beyond the largest of theirs are not kept; none: all are.
        """
        store, kind = self.store, unreached.dtype
        vertex_bytes = store.num_rows * (kind.itemsize + store.index_dtype.itemsize)
        budget.alternatively("the result, when it is written,", vertex_bytes + SLACK_BYTES + writing_bytes(store))
        beside = {"values and parents": vertex_bytes, "initial values": 32 * numbers.size}
        with self.opened.blocks(store, self.column, budget, threads=self.threads, beside=beside) as engine:
            value = filled(store.num_rows, unreached, kind, engine.places)
            parent = filled(store.num_rows, no_parent(store.index_dtype), store.index_dtype, engine.places)
            values = new_values(value, parent, unreached if bound is None else bound, targets=targets, scale=self.scale)
            value[numbers], parent[numbers] = initial, numbers
            device = device_bytes_read()
            work = engine.run(
                loop, values, numbers, buckets, schedule=self.schedule, slack=self.slack, progress=self.progress,
                loads_all=bound is None and not targets.size,
            )  # fmt: skip
            if targets.size:
                forget_beyond(min(values.bound[0], value[targets].max()), value, parent, unreached)
            return Relaxed(value, parent, Run(engine.num_blocks, work, device_bytes_read() - device))

    def fields_of(self, found: Relaxed, unreached: Any, started: float, sampler: PeakSampler, resources: Resources) -> dict[str, Any]:
        """Return arguments of `oocgraph.results.paths.PathsResult`."""
        work, store = found.run.work, self.store
        itemsize = store.index_dtype.itemsize + (store.array(f"out/{self.column}").dtype.itemsize if self.column else 0)
        return {
            "stored_value": found.value, "stored_parent": found.parent, "unreached": unreached, "weight": self.column,
            "schedule": self.schedule, "slack": self.slack, "num_relaxed": work.num_followed, "num_again": work.num_again,
            "edge_bytes": store.array("out/indices").length * itemsize, **run_fields(found.run, started, sampler, resources),
        }  # fmt: skip


def run_fields(run: Run, started: float, sampler: PeakSampler, resources: Resources) -> dict[str, Any]:
    """Return the fields of a result that say what a run cost."""
    work = run.work
    return {
        "num_blocks": run.num_blocks, "num_blocks_read": work.num_read, "seconds": work.seconds, "idle_seconds": work.idle_seconds,
        "bytes_requested": work.bytes_read, "bytes_read": max(work.bytes_read, run.device_bytes),
        "load_seconds": perf_counter() - started - work.seconds, "peak_host_bytes": sampler.peak_bytes,
        "memory_budget": resources.limit_bytes,
    }  # fmt: skip


def charge_paths(store: CSRStore, budget: Budget, num_bytes: int) -> None:
    """Reserve the paths that workers have found; they are written when nothing else is held."""
    budget.alternatively("the result, when it is written,", num_bytes + SLACK_BYTES + writing_bytes(store))
    with budget.all_or_none():
        budget.reserve("values and parents", num_bytes)
        budget.reserve("threads and compiled code", SLACK_BYTES)


def checked_schedule(schedule: Any) -> Schedule:
    """Return the schedule that is meant."""
    schedules = ("auto", *get_args(Schedule))
    if schedule not in schedules:
        raise ArgumentError(f"schedule is {schedule!r}; it must be one of {', '.join(schedules)}")
    return "async" if schedule == "auto" else schedule


def widths(store: CSRStore, column: str | None) -> tuple[float, int]:
    """Choose the width of a bucket and the slack: by the weights, and by whether there are hubs or many edges.

    Where there are few edges, paths are made of the lighter ones: of weights that spread over orders of magnitude the largest say nothing
    (a grid of 900 x 900, lognormal weights with a sigma of 2: 249 relaxations an edge by twice the largest, 1.7 by four times the median).
    """
    if column is None:
        return 1.0, LEVEL_SLACK
    sample = sampled_weights(store, column)
    if has_many_edges(store):
        return (max(LEAST_WIDTH, float(sample.mean()) / WIDTHS) if sample.any() else 1.0), 8
    positive = sample[sample > 0]
    widest = max(LEAST_WIDTH, min(2 * float(positive.max()), 4 * float(np.median(positive)))) if positive.size else 1.0
    return widest, 2


def sampled_weights(store: CSRStore, column: str) -> Array:
    """Return the finite weights, without their signs, of 16 places of a column, at least one number."""
    array = store.stored.array(f"out/{column}")
    step, size = max(1, array.length // 16), SAMPLED_WEIGHTS // 16
    places = [array.read(at, min(array.length, at + size)) for at in range(0, array.length, step)]
    sample: Array = np.concatenate([np.abs(place[np.isfinite(place)].astype(np.float64)) for place in places] or [np.ones(1)])
    return sample
