"""What `oocgraph.plan_bfs` predicts beside what real searches over real partitions send, and on two workers how long they take.

In: a graph. Out: a `Report` with a row for each case. Bytes and messages do not depend on where parts are, so those searches run
in this process. Times are of two worker processes of one thread, by constants that are measured on the same two, in turn with the searches.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import asdict
from typing import Any

import numpy as np

from oocgraph.algorithms.calibrate import NUM_WORKERS, Calibration
from oocgraph.algorithms.partitioned_bfs import open_partitioned
from oocgraph.algorithms.plan_bfs import plan_bfs
from oocgraph.bench.harness import Report, in_turn
from oocgraph.cluster.start import local_cluster
from oocgraph.partition.policies import DIMENSIONS
from oocgraph.plan.forecast import PlannedBFS
from oocgraph.plan.timing import Constants
from oocgraph.resources import Resources
from oocgraph.results.search import Search
from oocgraph.store.graph import CSRStore
from oocgraph.store.vertices import VertexIds
from oocgraph.types import Progress

PHASE = "comparing"


def bench_plan(
    store: CSRStore,
    *,
    workers: Sequence[int],
    source: Any,
    timed: bool,
    num_searches: int,
    progress: Progress,
) -> Report:
    """Compare.

    Parameters
    ----------
    store
        The graph.
    workers
        Numbers of parts whose messages are counted.
    source
        User id; None: the vertex that has most edges.
    timed
        Whether two workers are started, for the time.
    num_searches
        Timed searches, of which the median counts.
    progress
        Called with ("comparing", cases done, cases).
    """
    plan = plan_bfs(store, workers, source=source)
    (vertex,) = VertexIds(store).vertices_of([plan.source]).tolist()
    num_cases = len(plan.cases) + timed
    cases: list[dict[str, Any]] = []
    for case in plan.cases:
        progress(PHASE, len(cases), num_cases)
        with open_partitioned(store, case.dimension, Resources(num_partitions=case.num_workers)) as opened:
            cases.append(_compare(case, [opened.search(np.array([vertex]))], timed=False))
    constants = None
    if timed:
        progress(PHASE, len(cases), num_cases)
        constants, found = _timed(store, vertex, num_searches, progress)
        again = plan_bfs(store, NUM_WORKERS, source=plan.source, constants=constants)
        cases.append(_compare(again.cases[0], found, timed=True))
    progress(PHASE, num_cases, num_cases)
    times = None if constants is None else asdict(constants)
    return Report(title=repr(store), metrics={"graph": store.url, "source": plan.source, "constants": times, "cases": cases})


def _timed(store: CSRStore, vertex: int, num_searches: int, progress: Progress) -> tuple[Constants, list[Search]]:
    """Measure constants and searches in turn, so that other load on the machine slows down both alike."""
    with ExitStack() as stack:
        client = stack.enter_context(local_cluster(workers=NUM_WORKERS, threads_per_worker=1))
        calibration = stack.enter_context(Calibration(client))
        opened = stack.enter_context(open_partitioned(store, DIMENSIONS[0], Resources(num_partitions=NUM_WORKERS, client=client)))
        opened.search(np.array([vertex]))
        subjects = {"constants": lambda _: calibration.measure(), "search": lambda _: opened.search(np.array([vertex]))}
        found = in_turn(subjects, range(num_searches), progress, phase="searching with two workers")
        return calibration.constants(), found["search"]


def _compare(case: PlannedBFS, searches: Sequence[Search], *, timed: bool) -> dict[str, Any]:
    """Put a prediction beside the median of some searches; seconds are None where only messages were counted."""
    rows = [
        {
            "level": one.level,
            "frontier": real[0].frontier,
            "predicted_bytes": one.num_bytes,
            "measured_bytes": sum(kind.num_bytes for kind in real[0].exchanged),
            "predicted_messages": one.num_messages,
            "measured_messages": sum(kind.num_messages for kind in real[0].exchanged),
            "predicted_seconds": one.seconds if timed else None,
            "measured_seconds": statistics.median(each.seconds for each in real) if timed else None,
        }
        for one, *real in zip(case.iterations, *(search.iterations for search in searches), strict=True)
    ]
    seconds = statistics.median(search.seconds for search in searches)
    return {
        "dimension": case.dimension,
        "num_workers": case.num_workers,
        "bytes_ratio": _ratio(case.num_bytes, sum(one["measured_bytes"] for one in rows)),
        "messages_ratio": _ratio(case.num_messages, sum(one["measured_messages"] for one in rows)),
        "seconds_ratio": _ratio(case.seconds, seconds) if timed else None,
        "iterations": rows,
    }


def _ratio(predicted: float, measured: float) -> float | None:
    """Return predicted by measured; None where nothing was sent."""
    return predicted / measured if measured else None
