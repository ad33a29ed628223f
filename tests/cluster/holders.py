"""Workers without Dask: what each holds, and searches whose steps are taken one by one."""

from __future__ import annotations

import itertools
from types import SimpleNamespace

import numpy as np

from oocgraph.cluster.ledger import WorkerLedger
from oocgraph.cluster.specs import GraphSpec, SearchSpec
from oocgraph.cluster.worker import OocGraphPlugin
from oocgraph.cluster.worker_state import WorkerState
from oocgraph.config import settings
from oocgraph.engine.cpu_engine import TinyLimits
from oocgraph.engine.levels import search
from oocgraph.engine.local import LocalRuntime
from oocgraph.engine.part import SearchOptions
from oocgraph.plan.residency import QUEUE_CAPACITY
from oocgraph.store.fingerprint import graph_fingerprint
from oocgraph.store.graph import open_graph
from oocgraph.store.search_store import SearchStore
from oocgraph.types import LEVEL_UNREACHED
from tests.reference_build import reference_build

NOTHING = {"parts": [], "searches": [], "reserved_bytes": 0}
"""What is held when nothing is."""

_names = (f"search-{i}" for i in itertools.count())


def bare_worker(limit=0, threads=1):
    """Return what a plugin takes for Dask's worker."""
    return SimpleNamespace(
        address="tcp://worker:1", memory_manager=SimpleNamespace(memory_limit=limit), state=SimpleNamespace(nthreads=threads), handlers={}
    )


def worker(*, limit=0, threads=1):
    """Return what one worker holds."""
    made = bare_worker(limit, threads)
    return WorkerState(made, WorkerLedger(made), OocGraphPlugin().at)


def plugin():
    """Return the plugin of a worker."""
    made = OocGraphPlugin()
    made.setup(bare_worker())
    return made


def graph_spec(store, num_partitions=1, **options):
    """Say what to load."""
    return GraphSpec(url=store.url, fingerprint=graph_fingerprint(store), num_partitions=num_partitions, settings=settings(), **options)


class Steps:
    """A search, in all partitions of which one worker holds each."""

    def __init__(self, folder, workers, spec, lease="lease", sources=(0,), direction="pull"):
        self.name, self.workers, self.graph, self.index, self.parts = next(_names), workers, (spec.fingerprint, spec.num_partitions), -1, []
        self.reports = []
        self.store = SearchStore.create(folder / f"{self.name}.zarr", {"num_partitions": spec.num_partitions, "epoch": 0})
        self.spec = SearchSpec(
            search=self.name, lease=lease, result_store=str(self.store.path), sources=np.array(sources, np.int64),
            options=SearchOptions(direction, 2**31 - 2, TinyLimits(QUEUE_CAPACITY, QUEUE_CAPACITY)), epoch=0, last_step=-1,
        )  # fmt: skip

    def step(self):
        """Take the next step in every partition; returns whether there was anything left to find."""
        self.index += 1
        spec = (self.name, 0) if self.index else self.spec
        before = self.parts
        options = {"is_first": not self.index}
        taken = [holder.step(spec, self.graph, p, self.index, before, **options) for p, holder in enumerate(self.workers)]
        self.parts = [one.message for one in taken]
        self.reports.append([one.report for one in taken])
        return any(part.vertices.size for part in self.parts)

    def finish(self):
        """Take all steps that are left, write the result and return the figures of each partition."""
        while self.step():
            continue
        return [holder.finish(self.name, self.graph, p) for p, holder in enumerate(self.workers)]

    def levels(self, vertex_partition):
        """Return the levels that were written, in store order; -1 where unreached."""
        found = np.full(vertex_partition.num_vertices, -2)
        owner, local = vertex_partition.locate(np.arange(vertex_partition.num_vertices))
        for p in range(vertex_partition.num_partitions):
            level = self.store.part(p, "level").read(0, int(vertex_partition.num_owned[p])).astype(np.int64)
            found[owner == p] = np.where(level == LEVEL_UNREACHED, -1, level)[local[owner == p]]
        return found


def levels_in_process(store, source=0):
    """Return the levels that one process finds; -1 where unreached."""
    with LocalRuntime.open(store) as runtime:
        level = search(runtime, np.array([source])).level
    return np.where(level == LEVEL_UNREACHED, -1, level.astype(np.int64))


def two_graphs(folder):
    """Build two graphs of 20,000 vertices and 800,000 stored entries."""
    for seed in (1, 2):
        rng = np.random.default_rng(seed)
        reference_build((20_000 * rng.random(400_000) ** 2).astype(np.int64), rng.integers(0, 20_000, 400_000), folder / f"{seed}.zarr")
    return [open_graph(folder / f"{seed}.zarr") for seed in (1, 2)]
