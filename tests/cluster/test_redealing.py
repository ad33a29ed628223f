"""Shares of the edges are dealt again between searches when workers are unequally fast; what is searched and resumed stays right."""

from __future__ import annotations

import threading
import time
from functools import cache

import dask
import numpy as np
import pytest

import oocgraph
from oocgraph import Resources
from oocgraph.cluster import redealing, shard_cache, worker_device, worker_state
from oocgraph.cluster.events import SHARES
from oocgraph.cluster.placement import Placement
from oocgraph.cluster.searches import ClusterRuntime
from oocgraph.cluster.session import WorkersLostError
from oocgraph.cluster.worker import OocGraphPlugin, inventory
from oocgraph.errors import BudgetError
from oocgraph.store.search_store import SearchStore
from tests.cluster.test_interrupt import stop_at
from tests.engine.device_parts import use_shim
from tests.graphs import directed_original

SECONDS = 40.0
"""Work of a whole graph in one step, far above what a step really takes; nobody waits for it."""


class Clock:
    """Stands for `time` where steps measure their work: a thread's clock can be put forward."""

    def __init__(self):
        self._ahead = threading.local()

    def advance(self, seconds):
        self._ahead.seconds = getattr(self._ahead, "seconds", 0.0) + seconds

    def perf_counter(self):
        return time.perf_counter() + getattr(self._ahead, "seconds", 0.0)


@pytest.fixture
def slow(monkeypatch):
    """Let each step of partition p of a runtime seem to take `slowness[p]` times its share of the edges."""
    clock = Clock()
    monkeypatch.setattr(worker_state, "time", clock)

    def begin(runtime, slowness):
        def at(phase, _, partition):
            if phase == "transfer":
                clock.advance(SECONDS * slowness[partition] * runtime.shares.of_edges[partition])

        monkeypatch.setattr(OocGraphPlugin, "on_phase", staticmethod(at))

    return begin


@pytest.fixture(scope="module", params=["degree", "original order"])
def store(tmp_path_factory, request):
    """Return a graph dealt in blocks, or in ranges."""
    path = tmp_path_factory.mktemp("graph") / "g.zarr"
    if request.param == "degree":
        return oocgraph.generate_kronecker(13, path, seed=5)
    directed_original(path)
    return oocgraph.open_graph(path)


def search(store, **options):
    """Search with an exchange for each level, and judge the tree by Graph500's rules and the levels against one process."""
    source = int(store.read("vertices/id")[0])
    result = oocgraph.bfs(store, source, **options, direction="alpha-beta")
    oocgraph.verify_bfs(store, result)
    np.testing.assert_array_equal(result.level, levels_in_process(store.url, source))
    return result


@cache
def levels_in_process(url, source):
    return oocgraph.bfs(url, source, resources=Resources(client=False)).level


def shares_of(result):
    return result.summary()["edge_shares"]


def test_slow_worker_gets_fewer_edges(store, threads_client, slow):
    """Three times as slow: a quarter, within the granularity of the dealing; then all are as busy and shares stay."""
    with ClusterRuntime.open(store, client=threads_client) as runtime:
        slow(runtime, [3, 1])
        first, second, third = (search(store, runtime=runtime) for _ in range(3))
        assert shares_of(first) == pytest.approx((0.5, 0.5), abs=0.03)
        assert shares_of(second) == pytest.approx((0.25, 0.75), abs=0.03)
        assert shares_of(third) == shares_of(second)
        assert "has been measured" in first.summary()["shares_reason"]
        assert "dealt again by measured edges a second: busiest worker 1.5" in second.summary()["shares_reason"]
        assert "at most 1.25" in third.summary()["shares_reason"]
        assert all(len(said["parts"]) == 1 for said in threads_client.run(inventory).values())
        _, event = threads_client.get_events(SHARES)[-1]
        assert (tuple(event["edge_shares"]), event["lease"]) == (shares_of(second), runtime.lease)
        np.testing.assert_array_equal(first.level, second.level)  # read after the dealing, by the shares that its files have


def test_worker_that_is_slow_later_loses_edges_again(store, threads_client, slow, monkeypatch):
    """The other one, by then: shares change sides, once what was measured before is forgotten."""
    monkeypatch.setattr(redealing, "LAST_SEARCHES", 3)
    with ClusterRuntime.open(store, client=threads_client) as runtime:
        slow(runtime, [3, 1])
        search(store, runtime=runtime)
        assert shares_of(search(store, runtime=runtime))[0] < 0.3
        slow(runtime, [1, 3])
        for _ in range(6):
            result = search(store, runtime=runtime)
        assert shares_of(result) == pytest.approx((0.75, 0.25), abs=0.03)


@pytest.mark.one_in(3)
@pytest.mark.parametrize("how", ["client", "runtime of equal shares", "runtime of other shares"])
def test_search_of_unequal_shares_is_resumed(store, threads_client, slow, tmp_path, how):
    """Its logs hold local positions, so the search resumes with the shares that it began with."""
    with ClusterRuntime.open(store, client=threads_client) as runtime:
        slow(runtime, [3, 1])
        search(store, runtime=runtime)
        with pytest.raises(KeyboardInterrupt):
            search(store, runtime=runtime, result_store=tmp_path / "r.zarr", progress=stop_at(1))
    begun = SearchStore.open(tmp_path / "r.zarr")
    assert begun.shares == pytest.approx((8, 24), abs=1)
    if how == "client":
        result = search(store, client=threads_client, resume=begun.path)
    else:
        with ClusterRuntime.open(store, client=threads_client) as runtime:
            slow(runtime, [1, 1] if how == "runtime of equal shares" else [1, 5])
            search(store, runtime=runtime)
            search(store, runtime=runtime)
            result = search(store, runtime=runtime, resume=begun.path)
            assert SearchStore.open(begun.path).shares == begun.shares
            search(store, runtime=runtime)
    assert result.summary()["shares_reason"] == "those that the search was begun with"
    assert shares_of(result) == pytest.approx((0.25, 0.75), abs=0.03)
    assert result.summary()["resumed_after_step"] is not None
    again = search(store, client=threads_client, resume=begun.path)  # it is complete: what its files hold
    np.testing.assert_array_equal(again.parent, result.parent)


def test_shares_stay_equal_when_switched_off(store, threads_client, slow):
    with dask.config.set({"oocgraph.redeal-shares": "off"}), ClusterRuntime.open(store, client=threads_client) as runtime:
        slow(runtime, [3, 1])
        results = [search(store, runtime=runtime) for _ in range(3)]
    assert shares_of(results[0]) == shares_of(results[2])
    assert results[2].summary()["shares_reason"] == "kept: oocgraph.redeal-shares is off"


def test_workers_with_several_partitions_say_nothing_of_speed(store, threads_client, slow):
    """Their partitions take steps at the same time."""
    with ClusterRuntime.open(store, client=threads_client, num_partitions=4) as runtime:
        slow(runtime, [3, 1, 3, 1])
        results = [search(store, runtime=runtime) for _ in range(3)]
    assert shares_of(results[0]) == shares_of(results[2])
    assert "of workers with one partition each" in results[2].summary()["shares_reason"]


def test_shares_that_do_not_fit_are_given_up(store, threads_client, slow, monkeypatch):
    """Both workers load the old ones again, and it is not tried a second time."""
    plan, tried = shard_cache._plan, []

    def refuse(graph, vertex_partition, partition, *others):
        if partition == 1 and vertex_partition.num_edges[1] > 1.2 * vertex_partition.num_edges[0]:
            tried.append(partition)
            raise BudgetError("the edges need 9 GiB; set memory_budget to at least 10G")
        return plan(graph, vertex_partition, partition, *others)

    monkeypatch.setattr(shard_cache, "_plan", refuse)
    with ClusterRuntime.open(store, client=threads_client) as runtime:
        slow(runtime, [3, 1])
        results = [search(store, runtime=runtime) for _ in range(3)]
        assert all(len(said["parts"]) == 1 for said in threads_client.run(inventory).values())
    assert tried == [1]
    assert shares_of(results[0]) == shares_of(results[1]) == shares_of(results[2])
    for result in results[1:]:
        assert "kept: shares by measured edges a second cannot be held: " in result.summary()["shares_reason"]
        assert "set memory_budget to at least 10G" in result.summary()["shares_reason"]


def test_worker_lost_while_shares_are_dealt(store, threads_client, slow, monkeypatch):
    """Partitions are placed again, with the new shares."""
    acquire, lost = Placement.acquire, []

    def lose(placement, partitions):
        if placement.spec.shares is not None and not lost:
            lost.append(1)
            raise WorkersLostError("worker tcp://gone was lost")
        acquire(placement, partitions)

    monkeypatch.setattr(Placement, "acquire", lose)
    with ClusterRuntime.open(store, client=threads_client) as runtime:
        slow(runtime, [3, 1])
        search(store, runtime=runtime)
        assert shares_of(search(store, runtime=runtime)) == pytest.approx((0.25, 0.75), abs=0.03)
    assert lost == [1]


def test_two_runtimes_have_shares_of_their_own(store, threads_client, slow):
    """They share a graph on the workers only as long as they have the same shares."""
    with ClusterRuntime.open(store, client=threads_client) as one, ClusterRuntime.open(store, client=threads_client) as other:
        slow(one, [3, 1])
        search(store, runtime=one)
        search(store, runtime=one)
        assert all(len(said["parts"]) == 2 for said in threads_client.run(inventory).values())
        assert shares_of(search(store, runtime=other)) == pytest.approx((0.5, 0.5), abs=0.03)
        assert shares_of(search(store, runtime=one)) == pytest.approx((0.25, 0.75), abs=0.03)


@pytest.mark.shim
def test_devices_get_shares_too(store, threads_client, slow, monkeypatch):
    """A partition on a device is dealt as any other."""
    monkeypatch.setattr(worker_device, "open_device", worker_device.open_device)
    use_shim()
    with ClusterRuntime.open(store, client=threads_client) as runtime:
        slow(runtime, [3, 1])
        results = [search(store, runtime=runtime) for _ in range(2)]
        assert all(part["device_bytes"] for part in runtime.parts)
    assert shares_of(results[1]) == pytest.approx((0.25, 0.75), abs=0.03)
