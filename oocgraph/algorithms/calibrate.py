"""Measures the constants of `oocgraph.plan.timing` on this machine, by the searches that they are to predict.

In: nothing. Out: `Constants`. A path has a message and hardly an edge in each level: with several numbers of members on two worker
processes it tells what hops take. A Kronecker graph in this process, by one thread, tells what edges and vertices take. Both are made, in a
temporary folder. It takes about 15 s, and what else runs on the machine meanwhile is measured too.
"""

from __future__ import annotations

import tempfile
from dataclasses import replace
from pathlib import Path

import numpy as np

from oocgraph.algorithms.partitioned_bfs import open_partitioned
from oocgraph.ingest.build import build_csr
from oocgraph.ingest.generators.kronecker import generate_kronecker
from oocgraph.plan.forecast import iteration_load
from oocgraph.plan.timing import STORED, Constants, fit, fit_hops
from oocgraph.runtime.cluster import local_cluster
from oocgraph.runtime.exchange_probe import measure_exchange
from oocgraph.runtime.meetings import MeetingCounter
from oocgraph.store.graph import CSRStore
from oocgraph.types import Progress, ignore_progress

NUM_WORKERS = 2

PATH_VERTICES = 60
"""Of the path: so many levels from its one end."""

NUM_MEMBERS = (2, 6, 12)
"""On two workers: a step of a member that is not alone on its worker waits for the others, as it does where there are more workers."""

SCALE, NUM_SOURCES, NUM_TRIES = 17, 3, 5
"""Of the Kronecker graph, sources, and searches from each, of which the quickest iterations count: 4 M stored edges."""

PHASE = "calibrating"


def calibrate(progress: Progress = ignore_progress) -> Constants:
    """Measure this machine.

    Parameters
    ----------
    progress
        Called with ("calibrating", steps done, steps).

    Raises
    ------
    ClusterError
        Two workers cannot be started.
    BudgetError
        The memory of this machine does not do.
    """
    steps = 2 + len(NUM_MEMBERS)
    with tempfile.TemporaryDirectory(prefix="oocgraph-calibrate-") as folder:
        progress(PHASE, 0, steps)
        constants = measure_work(generate_kronecker(SCALE, Path(folder) / "kron.zarr"), STORED)
        path = build_csr((np.arange(PATH_VERTICES - 1), np.arange(1, PATH_VERTICES)), Path(folder) / "path.zarr")
        with local_cluster(workers=NUM_WORKERS, threads_per_worker=1) as client:
            progress(PHASE, 1, steps)
            message, byte = measure_exchange(client)
            constants = replace(constants, message_seconds=message, byte_seconds=byte)
            first, hops = [], []
            for done, number in enumerate(NUM_MEMBERS):
                progress(PHASE, 2 + done, steps)
                with open_partitioned(path, "1d", num_partitions=number, client=client) as opened:
                    opened.search(np.array([0]))  # connections are made
                    seconds = [one.seconds for one in opened.search(np.array([0])).iterations]
                first.append(seconds[0])
                hops.append(max(float(np.mean(seconds[1:])) - message, 1e-6))
    progress(PHASE, steps, steps)
    started = float(np.mean([max(0.0, one / hop - 1) for one, hop in zip(first, hops, strict=True)]))
    return fit_hops(np.array(NUM_MEMBERS, np.float64), np.array(hops), replace(constants, start_hops=started))


def measure_work(store: CSRStore, constants: Constants) -> Constants:
    """Measure what edges and vertices take: two members of a graph, one after the other, one thread."""
    terms, seconds = [], []
    with open_partitioned(store, "1d", num_partitions=2, threads=1) as opened:
        for number in range(NUM_SOURCES):
            source = np.array([number * store.num_vertices // NUM_SOURCES])
            searches = [opened.search(source) for _ in range(NUM_TRIES)]
            found = searches[0]
            with MeetingCounter(store, found.level, found.depth + 1, max_edges=store.attributes.num_stored_edges, io_threads=1) as counter:
                load = iteration_load(
                    counter.count(2).candidates, None, counter.level_vertices, counter.level_edges, parent_bytes=store.index_dtype.itemsize
                )
            terms.append(np.stack([np.ones(found.depth + 1), load.edges, load.found + 2 * load.candidates], axis=1))
            seconds.append(np.min([[one.seconds for one in search.iterations] for search in searches], axis=0))
    _, edge, vertex = fit(np.concatenate(terms), np.concatenate(seconds))
    return replace(constants, edge_seconds=edge, vertex_seconds=vertex)
