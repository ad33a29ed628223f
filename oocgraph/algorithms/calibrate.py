"""Measures the constants of `oocgraph.plan.timing` on this machine, by searches like those that they are to predict.

In: a client of two workers. Out: `Constants`. On the two workers, round after round:

- a path is searched in 2, 4 and 8 parts: a message and hardly an edge in each level, so its time is that of hops;
- a Kronecker graph is searched in 2 parts: the time its parts are busy, less that of a step that has nothing to do, is that of edges
  and vertices, with both workers at it at the same time;
- messages of 8 bytes and of 8 MiB go from one worker to the other.

Messages go through Dask, as they do between hosts; workers of one host, which exchange them through memory, are quicker.
Of each, the median of all rounds counts. What else runs on the machine meanwhile is measured too. Both graphs are made first, in a
temporary folder; all together takes about 20 s.
"""

from __future__ import annotations

import tempfile
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from oocgraph.algorithms.partitioned_bfs import open_partitioned
from oocgraph.closing import Closing
from oocgraph.cluster.exchange_probe import measure_exchange
from oocgraph.cluster.start import local_cluster
from oocgraph.config import setting
from oocgraph.ingest.build import build_csr
from oocgraph.ingest.generators.kronecker import generate_kronecker
from oocgraph.parts.traffic_counts import TrafficCounter
from oocgraph.plan.forecast import iteration_load, shape_of
from oocgraph.plan.timing import STORED, Constants, busiest, fit, fit_hops
from oocgraph.resources import Resources
from oocgraph.types import Array, Progress, ignore_progress

NUM_WORKERS = 2

PATH_VERTICES = 40
"""Of the path: about so many levels."""

NUM_PARTS = (2, 4, 8)
"""On two workers: a step of a part that is not alone on its worker waits for the others."""

SCALE = 19
"""Of the Kronecker graph: 8 M stored edges for each worker, 10 ms in the largest level, beside a hop's 5 to 15."""

LARGE_SHARE = 1 / 100
"""Steps with fewer edges, as a share of the largest, tell nothing of them."""

NUM_ROUNDS = 5

PHASE = "calibrating"


def calibrate(progress: Progress = ignore_progress) -> Constants:
    """Measure this machine, with two worker processes of one thread.

    Parameters
    ----------
    progress
        Called with ("calibrating", rounds done, rounds).

    Raises
    ------
    ClusterError
        Two workers cannot be started.
    BudgetError
        The memory of this machine does not do.
    """
    progress(PHASE, 0, NUM_ROUNDS)
    with local_cluster(workers=NUM_WORKERS, threads_per_worker=1) as client, Calibration(client) as calibration:
        for done in range(NUM_ROUNDS):
            calibration.measure()
            progress(PHASE, done + 1, NUM_ROUNDS)
        return calibration.constants()


class Calibration(Closing):
    """Two graphs on two workers, searched as often as is asked. Use it in a ``with`` statement.

    Parameters
    ----------
    client
        A `distributed.Client` of at least two workers.
    scale
        Of the Kronecker graph.
    """

    def __init__(self, client: Any, *, scale: int = SCALE) -> None:
        self._client, self._open = client, ExitStack()
        self._first: list[list[float]] = []
        self._hops: list[list[float]] = []
        self._idle: list[float] = []
        self._busy: list[Array] = []
        self._exchange: list[tuple[float, float]] = []
        try:
            self._open.enter_context(setting("exchange", "messages"))
            folder = Path(self._open.enter_context(tempfile.TemporaryDirectory(prefix="oocgraph-calibrate-")))
            path = build_csr((np.arange(PATH_VERTICES - 1), np.arange(1, PATH_VERTICES)), folder / "path.zarr")
            self._paths = [
                self._open.enter_context(open_partitioned(path, "1d", Resources(num_partitions=number, client=client)))
                for number in NUM_PARTS
            ]
            kron = generate_kronecker(scale, folder / "kron.zarr")
            self._kron = self._open.enter_context(open_partitioned(kron, "1d", Resources(num_partitions=NUM_WORKERS, client=client)))
            self._terms = self._work_terms()
            for one in self._paths:
                one.search(np.array([0]))  # connections are made
        except BaseException:
            self._open.close()
            raise

    def close(self) -> None:
        """Close both graphs, and remove them."""
        self._open.close()

    def _work_terms(self) -> Array:
        """Edges, vertices, messages and bytes of the busiest part in each iteration on the Kronecker graph: (n, 4)."""
        store, found = self._kron.store, self._kron.search(np.array([0]))
        counter = TrafficCounter(store, found.level, found.depth + 1)
        counts = counter.count(NUM_WORKERS)
        load = iteration_load(counts.candidates, None, counter.level_vertices, counter.level_edges, parent_bytes=store.index_dtype.itemsize)
        return busiest(load, shape_of(counts.edges[1], counts.set_vertices), 1).T

    def measure(self) -> None:
        """Search each once more."""
        paths = [path.search(np.array([0])).iterations for path in self._paths]
        self._first.append([iterations[0].seconds for iterations in paths])
        self._hops.append([float(np.mean([one.seconds for one in iterations[1:]])) for iterations in paths])
        self._idle.append(float(np.median([part.seconds for one in paths[0] for part in one.parts])))
        self._busy.append(np.array([max(part.seconds for part in one.parts) for one in self._kron.search(np.array([0])).iterations]))
        self._exchange.append(measure_exchange(self._client))

    def constants(self) -> Constants:
        """Fit the medians of all rounds."""
        hops, first = np.median(self._hops, axis=0), np.median(self._first, axis=0)
        message, byte = np.median(self._exchange, axis=0).tolist()
        large = self._terms[:, 0] > self._terms[:, 0].max() * LARGE_SHARE
        busy = np.median(self._busy, axis=0)[large] - np.median(self._idle) - byte * self._terms[large, 3]
        edge, vertex = fit(self._terms[large, :2], np.maximum(busy, 1e-6))
        found = replace(
            STORED, edge_seconds=edge, vertex_seconds=vertex, message_seconds=message, byte_seconds=byte,
            start_hops=max(0.0, float(np.median(first / hops)) - 1),
        )  # fmt: skip
        return fit_hops(np.array(NUM_PARTS, np.float64), np.maximum(hops - message, 1e-6), found)
