"""A worker that stays silent is lost after a while: it is stopped, but its connections are open, and nobody else would notice."""

from __future__ import annotations

import os
import select
import signal
from types import SimpleNamespace

import dask
import numpy as np
import pytest

import oocgraph
from oocgraph.cluster import silence
from oocgraph.cluster.searches import ClusterRuntime
from oocgraph.cluster.silence import SilenceWatch
from tests import every_knob
from tests.cluster.clusters import PATIENCE, Cluster, Trap, in_background
from tests.cluster.kill_fifty import SOURCE, judge

SECONDS = 3
"""How long a worker may be silent here; a heartbeat comes every half a second."""


@pytest.fixture(autouse=True)
def soon():
    with dask.config.set({"oocgraph.silent-worker-timeout": f"{SECONDS}s"}):
        yield


@pytest.fixture(scope="module", params=[False, True], ids=["alone", "nanny"])
def cluster(request, tmp_path_factory):
    """Three workers; who stops one refills."""
    with Cluster(tmp_path_factory.mktemp("cluster"), nanny=request.param) as cluster:
        yield cluster


alone = pytest.mark.parametrize("cluster", [False], indirect=True, ids=["alone"])


class Stopped:
    """A worker that is stopped for as long as the context lasts; afterwards, when it wakes up, it ends."""

    def __init__(self, cluster, address):
        self.address, self.pid = address, cluster.pid(address)

    def __enter__(self):
        os.kill(self.pid, signal.SIGSTOP)
        return self

    def __exit__(self, *_):
        try:
            os.kill(self.pid, signal.SIGCONT)
            end = os.pidfd_open(self.pid)
        except ProcessLookupError:  # its nanny was quicker
            return
        ended = select.select([end], [], [], PATIENCE)[0]
        os.close(end)
        assert ended, "a worker that was given up is there again"


@pytest.mark.kill
def test_a_worker_that_is_stopped_in_a_step_is_lost(cluster, kron, tmp_path):
    """The search goes on without it, and when it wakes up it does no harm: not to the search's result, nor to the next search."""
    store, levels = kron
    cluster.refill()
    with ClusterRuntime.open(store, client=cluster.client) as runtime:
        with Trap(cluster.client, "kernel", 2) as trap:
            found = trap.watch(
                in_background(oocgraph.bfs, store, SOURCE, runtime=runtime, direction="alpha-beta", result_store=tmp_path / "r.zarr")
            )
            victim = trap.wait()["worker"]
            with Stopped(cluster, victim):
                trap.let_go()
                result = found.result(timeout=PATIENCE)
        assert victim not in runtime.addresses
        judge(store, result, levels)
        judge(store, oocgraph.bfs(store, SOURCE, runtime=runtime), levels)


@alone
@pytest.mark.kill
@pytest.mark.parametrize("what", ["open", "product", "partition"])
def test_a_worker_that_is_stopped_before_it_is_asked_is_lost(cluster, kron, tmp_path, what):
    """Whatever is begun then: a search, a product, a partitioning."""
    store, levels = kron
    cluster.refill()
    with Stopped(cluster, cluster.workers()[0]):
        if what == "open":
            judge(store, oocgraph.bfs(store, SOURCE, client=cluster.client), levels)
        elif what == "product":
            ones = np.ones(store.attributes.num_input_vertices)
            assert oocgraph.spmv(store, ones, client=cluster.client).sum() == store.attributes.num_stored_edges
        else:
            parts = every_knob.partition(store, 2, "1D-vertex", tmp_path / "parts", client=cluster.client)
            assert sum(part.num_edges for part in parts) == store.attributes.num_stored_edges


# When a worker counts as silent.


@pytest.fixture
def clock(monkeypatch):
    """Return a clock that can be set, of what has passed and of the day."""
    clock = SimpleNamespace(passed=0.0, day=1e9)
    monkeypatch.setattr(silence, "time", SimpleNamespace(monotonic=lambda: clock.passed))
    return clock


def look(watch, clock, seconds, heard):
    """Let time pass, and return who has been silent for too long; `heard` send a heartbeat."""
    clock.passed += seconds
    clock.day += seconds
    clock.seen = {**getattr(clock, "seen", {}), **dict.fromkeys(heard, clock.day)}
    return watch.silent(clock.seen)


def test_only_a_worker_without_heartbeats_is_silent(clock):
    watch = SilenceWatch(None, 60)
    assert look(watch, clock, 0, ["a", "b"]) == []
    silent = [look(watch, clock, 2, ["a"]) for _ in range(31)]
    assert silent == [[]] * 30 + [["b"]]
    assert look(watch, clock, 2, ["a", "b"]) == []


@pytest.mark.parametrize("jump", [-1e6, 1e6])
def test_a_clock_that_is_set_makes_nobody_silent(clock, jump):
    """Back or forward: what counts is that the scheduler's time of the last heartbeat changes."""
    watch = SilenceWatch(None, 60)
    look(watch, clock, 0, ["a", "b"])
    clock.day += jump
    assert [look(watch, clock, 2, ["a"]) for _ in range(31)] == [[]] * 30 + [["b"]]


def test_a_client_that_was_stopped_itself_blames_nobody(clock):
    """It has seen no heartbeat for an hour, but it has not looked either."""
    watch = SilenceWatch(None, 60)
    look(watch, clock, 0, ["a"])
    assert look(watch, clock, 3600, []) == []
    assert look(watch, clock, 2, ["a"]) == []
