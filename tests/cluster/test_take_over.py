"""Workers that wait take over work of the one they wait for: the same levels, at most the share that is set, nothing where none may be."""

from __future__ import annotations

import dask
import pytest

import oocgraph
from oocgraph.bench.cluster import MeasuredRuntime
from oocgraph.engine import part as parts
from oocgraph.engine import shard_plan
from tests.cluster.kill_fifty import SOURCE, judge


def slow_down(seconds, dask_worker=None):
    """Run on a worker: each piece of a step takes so much longer, and all steps are offered."""
    import time

    original = parts.PartRuntime.spread

    def spread(self, state, job, call, pieces):
        def slowly(piece, buffer):
            time.sleep(seconds)
            return call(piece, buffer)

        return original(self, state, job, slowly, pieces)

    parts.LEAST_SECONDS, parts.before = 0.0, (parts.LEAST_SECONDS, original)
    parts.PartRuntime.spread = spread


def as_before(dask_worker=None):
    """Run on a worker: undo `slow_down`."""
    parts.LEAST_SECONDS, parts.PartRuntime.spread = parts.before


def hold_little(dask_worker=None):
    """Run on a worker: half of the edges, and of the planes, stay on disk."""
    import dataclasses

    original = shard_plan.plan_residency

    def plan(sizes, **options):
        found = original(sizes, **options)
        held = tuple(m // 2 for m in sizes.num_edges)
        return dataclasses.replace(found, num_planes=min(2, found.num_planes), num_resident=held, cache_slots=64)

    shard_plan.plan_residency, shard_plan.before = plan, original


def hold_as_before(dask_worker=None):
    """Run on a worker: undo `hold_little`."""
    shard_plan.plan_residency = shard_plan.before


@pytest.fixture
def unequal(client):
    """One of two workers is slow."""
    slow, quick = sorted(client.scheduler_info()["workers"])
    client.run(slow_down, 0.02, workers=[slow])
    client.run(slow_down, 0.0, workers=[quick])
    yield client
    client.run(as_before)


def search(store, client, direction, share):
    with (
        dask.config.set({"oocgraph.take-over": share, "oocgraph.exchange": "windows"}),
        MeasuredRuntime.open(store, client=client) as runtime,
    ):
        result = oocgraph.bfs(store, SOURCE, runtime=runtime, direction=direction)
        return result, runtime.outcome


@pytest.mark.parametrize("direction", ["push", "pull", "alpha-beta", "auto"])
@pytest.mark.parametrize("share", [0.1, 1.0])
def test_levels_are_the_same(kron, unequal, direction, share):
    store, levels = kron
    result, outcome = search(store, unequal, direction, share)
    judge(store, result, levels)
    iterations = sum(part.worker is not None for one in result.iterations for part in one.parts)
    most = share * (store.num_vertices // 2 + 1) * iterations
    assert 0 < outcome.exchanged["taken"] <= most or direction == "push"
    assert result.summary()["exchanged"] == outcome.exchanged
    assert max(part.idle_seconds for one in result.iterations for part in one.parts) > 0
    assert (outcome.exchanged["taken_pieces"] > 0) == (outcome.exchanged["helped_seconds"] > 0)


@pytest.mark.parametrize("direction", ["push", "pull"])
def test_edges_on_disk(kron, unequal, direction):
    """Who takes a piece reads its pages from the store."""
    store, levels = kron
    unequal.run(hold_little)
    try:
        with dask.config.set({"oocgraph.io-threads": 1}):
            result, outcome = search(store, unequal, direction, 1.0)
    finally:
        unequal.run(hold_as_before)
    judge(store, result, levels)
    assert outcome.exchanged["taken"] > 0


def test_none_is_taken_where_none_may_be(kron, unequal):
    store, levels = kron
    result, outcome = search(store, unequal, "alpha-beta", 0)
    judge(store, result, levels)
    assert outcome.exchanged["taken_pieces"] == outcome.exchanged["helped_seconds"] == 0


def test_many_searches_of_one_graph(kron, unequal):
    """The memory of a state is lent again; two searches at a time do not share it."""
    store, levels = kron
    with dask.config.set({"oocgraph.take-over": 1.0}), MeasuredRuntime.open(store, client=unequal) as runtime:
        for _ in range(5):
            judge(store, oocgraph.bfs(store, SOURCE, runtime=runtime, direction="alpha-beta"), levels)
            assert runtime.outcome.exchanged["taken"] > 0
