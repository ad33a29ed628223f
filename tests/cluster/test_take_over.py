"""Workers that wait take over work of the one they wait for: the same levels, at most the share that is set, nothing where none may be."""

from __future__ import annotations

import dask
import pytest

import oocgraph
from oocgraph.bench.cluster import MeasuredRuntime
from oocgraph.cluster import worker_memory
from oocgraph.cluster.worker import PLUGIN
from oocgraph.cluster.worker_state import WorkerState
from oocgraph.engine import part as parts
from oocgraph.engine import shard_plan
from oocgraph.errors import ClusterError
from tests.cluster.clusters import PATIENCE, in_background
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


def fail_once(step, dask_worker=None):
    """Run on a worker: the next search fails in a step."""
    original = WorkerState._take

    def take(self, running, runtime, partition, index, *rest):
        if index == step:
            WorkerState._take = original
            raise RuntimeError("a step has failed")
        return original(self, running, runtime, partition, index, *rest)

    WorkerState._take = take


def bytes_to_map(dask_worker=None):
    """Run on a worker: what it has reserved for what it may map of others, and as the difference to all that it has reserved otherwise."""
    cache = dask_worker.plugins[PLUGIN].worker_state
    mapped = sum(part.mapped_bytes for part in cache._parts.values() if part.mapped is not None)
    return mapped, cache.reserved_bytes() - sum(cache._charges.values()) - sum(part.residency.num_bytes for part in cache._parts.values())


def num_mapped(dask_worker=None):
    """Run on a worker: how many partitions' memory it maps."""
    return sum(len(part.mapped._found) for part in dask_worker.plugins[PLUGIN].worker_state._parts.values())


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
    most = share * (store.num_rows // 2 + 1) * iterations
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


def test_a_search_that_goes_on(kron, unequal, tmp_path):
    """What makes its states again is not offered: others, who are further, have another frontier."""
    store, levels = kron
    _, quick = sorted(unequal.scheduler_info()["workers"])
    with dask.config.set({"oocgraph.take-over": 1.0}), MeasuredRuntime.open(store, client=unequal) as runtime:
        for number in range(3):
            unequal.run(fail_once, 2, workers=[quick])
            path = tmp_path / f"{number}.zarr"
            with pytest.raises(ClusterError, match="a step has failed"):
                oocgraph.bfs(store, SOURCE, runtime=runtime, direction="alpha-beta", result_store=path)
            judge(store, oocgraph.bfs(store, SOURCE, runtime=runtime, direction="alpha-beta", resume=path), levels)


@pytest.mark.slow
def test_two_searches_at_a_time(kron, threads_client):
    """Of two opened graphs, on the same partitions: what each offers goes to those who have its frontier."""
    store, levels = kron
    threads_client.run(slow_down, 0.005, workers=sorted(threads_client.scheduler_info()["workers"])[:1])
    try:
        with (
            dask.config.set({"oocgraph.take-over": 1.0, "oocgraph.exchange": "windows"}),
            MeasuredRuntime.open(store, client=threads_client) as one,
            MeasuredRuntime.open(store, client=threads_client) as other,
        ):
            found = [
                in_background(lambda runtime: [oocgraph.bfs(store, SOURCE, runtime=runtime, direction="pull") for _ in range(6)], runtime)
                for runtime in (one, other)
            ]
            for results in found:
                for result in results.result(timeout=PATIENCE):
                    judge(store, result, levels)
    finally:
        threads_client.run(as_before, workers=sorted(threads_client.scheduler_info()["workers"])[:1])


def test_what_is_mapped_is_reserved_and_given_back(kron, unequal):
    """As long as the partition is held, by whomever; memory of others stays mapped for a hop only."""
    store, _ = kron
    with dask.config.set({"oocgraph.take-over": 1.0}):
        first = MeasuredRuntime.open(store, client=unequal)
        with MeasuredRuntime.open(store, client=unequal) as runtime:
            first.close()
            oocgraph.bfs(store, SOURCE, runtime=runtime, direction="alpha-beta")
            assert runtime.outcome.exchanged["taken"] > 0
            assert set(unequal.run(num_mapped).values()) == {0}
            runtime.placement.acquire(range(2))  # as after the loss of a worker
            for mapped, reserved in unequal.run(bytes_to_map).values():
                assert mapped == reserved > 0


def test_many_searches_of_one_graph(kron, unequal):
    """The memory of a state is lent again; two searches at a time do not share it."""
    store, levels = kron
    with dask.config.set({"oocgraph.take-over": 1.0}), MeasuredRuntime.open(store, client=unequal) as runtime:
        for _ in range(5):
            judge(store, oocgraph.bfs(store, SOURCE, runtime=runtime, direction="alpha-beta"), levels)
            assert runtime.outcome.exchanged["taken"] > 0


def have_no_room(dask_worker=None):
    """Run on a worker: it has reserved nothing for planes of others."""
    worker_memory.before = worker_memory.LEAST_TOUCHED_BYTES, worker_memory.LEAST_PIECES
    worker_memory.LEAST_TOUCHED_BYTES, worker_memory.LEAST_PIECES = 0, 1 << 40


def have_room_as_before(dask_worker=None):
    """Run on a worker: undo `have_no_room`."""
    worker_memory.LEAST_TOUCHED_BYTES, worker_memory.LEAST_PIECES = worker_memory.before


def test_pieces_that_touch_more_than_is_reserved_are_not_taken(kron, unequal):
    """Of a pull that is cut into few of them."""
    store, levels = kron
    unequal.run(have_no_room)
    try:
        result, outcome = search(store, unequal, "pull", 1.0)
    finally:
        unequal.run(have_room_as_before)
    judge(store, result, levels)
    assert outcome.exchanged["taken"] == 0
