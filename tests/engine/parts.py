"""Runs a search in P partitions in this process, without a cluster: the steps that workers would take, one after the other."""

from __future__ import annotations

import dataclasses

import numpy as np

from oocgraph.config import settings
from oocgraph.engine.part import PartRuntime, SearchOptions, tiny_limits
from oocgraph.engine.shard_plan import Loading, ShardPlan
from oocgraph.partition.vertex_partition import partition_vertices

GENEROUS = 1 << 40


def cramped(planned, seed, whole=()):
    """Replace `ShardPlan.residency` by one that keeps a random small part of planes and edges in memory; all in partitions `whole`."""

    def residency(plan, **options):
        rng, sizes = np.random.default_rng([seed, plan.partition]), plan.sizes()
        if plan.partition in whole:
            return planned(plan, available_bytes=GENEROUS, limit_bytes=GENEROUS)
        return dataclasses.replace(
            planned(plan, **options),
            num_planes=int(rng.integers(0, len(sizes.plane_edges))),
            num_resident=tuple(int(rng.integers(0, m)) if m else 0 for m in sizes.num_edges),
            cache_slots=int(rng.integers(1, 9)),
            num_kept=int(rng.integers(0, 200)),
            road=bool(seed % 2),  # of the graph, not of a partition
        )

    return residency


def open_parts(store, num_partitions, *, cramp=None, whole=(), threads=1, shares=None):
    """Load every partition, with some shares of the edges; `cramp` (a seed) keeps a random small part in memory, not in those `whole`."""
    vertex_partition = partition_vertices(store, num_partitions, shares)
    loading = Loading(threads=threads, io_threads=2, buffer_bytes=1 << 16, max_planes=None)
    parts = []
    for p in range(num_partitions):
        plan = ShardPlan(store, vertex_partition, p, loading)
        planned = ShardPlan.residency if cramp is None else cramped(ShardPlan.residency, cramp, whole)
        residency = planned(plan, available_bytes=GENEROUS, limit_bytes=GENEROUS)
        graph = plan.load(residency, GENEROUS)
        parts.append(PartRuntime(store, vertex_partition, p, graph, threads=threads, io_threads=2, knobs=settings()))
    return parts


def run_parts(parts, sources, *, direction="auto", last_level=2**31 - 2, logs=None, stop_after=None, states=None, few=None):
    """Take steps until every partition has ended; returns states and the number of steps. `logs[p]` collects records."""
    few = few or tiny_limits(parts[0].store, in_memory=all(part.graph.push.all_resident for part in parts))
    options = SearchOptions(direction, last_level, few)
    begun = states is not None
    states = states or [part.start(np.asarray(sources, np.int64)) for part in parts]
    found, step = None, -1 if not begun else max(record.step for record in logs[0])
    while not all(state.ended for state in states):
        if step == stop_after:
            return states, step
        step += 1
        found = [part.step(state, options, found) for part, state in zip(parts, states, strict=True)]
        if logs is not None:
            for part, state, log in zip(parts, states, logs, strict=True):
                log.append(part.record(state, step))
    return states, step


def gather(parts, states):
    """Finish every partition and put levels and parents into store order."""
    n, vertex_partition = parts[0].store.num_rows, parts[0].vertex_partition
    level, parent = np.full(n, -2, np.int64), np.zeros(n, parts[0].store.index_dtype)
    owner, local = vertex_partition.locate(np.arange(n))
    for p, (part, state) in enumerate(zip(parts, states, strict=True)):
        part.finish(state)
        own = owner == p
        got = state.levels[local[own]].astype(np.int64)
        if state.levels.dtype == np.uint8:
            got[got == 255] = -1
        level[own] = got
        parent[own] = state.parent[local[own]]
    return level.astype(np.int32), parent
