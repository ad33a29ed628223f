"""What a search knows of its workers may be old, late, or lost: tasks of an epoch before, events, results, workers that only seem dead."""

from __future__ import annotations

import os
import signal
from dataclasses import replace

import dask
import numpy as np
import pytest

import oocgraph
from oocgraph.cluster import placement
from oocgraph.cluster import worker as tasks
from oocgraph.cluster.searches import ClusterRuntime
from oocgraph.cluster.session import ClusterSession
from oocgraph.cluster.specs import SearchSpec, StateLostError
from oocgraph.cluster.worker_state import SearchSteps
from oocgraph.cluster.worker_steps import Hop, HopResult, take_hop
from oocgraph.engine.part import SearchOptions
from oocgraph.exchange.parts import FrontierPart
from oocgraph.store.search_store import SearchStore
from tests.cluster import clusters
from tests.cluster.clusters import PATIENCE, Cluster, Trap, in_background
from tests.cluster.kill_fifty import SOURCE, judge

pytestmark = pytest.mark.kill

TTL_SECONDS = 6
"""Silence of a worker after which the scheduler gives it up; Dask takes no less than ten heartbeats, 5 s, and by default 5 minutes."""


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    """Three workers of two threads without nannies, given up after some seconds of silence; who kills one refills."""
    with Cluster(tmp_path_factory.mktemp("cluster"), threads=2, DASK_DISTRIBUTED__SCHEDULER__WORKER_TTL=f"{TTL_SECONDS}s") as cluster:
        yield cluster


@pytest.fixture
def runtime(cluster, kron):
    """Open a graph on all workers."""
    cluster.refill()
    with ClusterRuntime.open(kron[0], client=cluster.client) as runtime:
        yield runtime


def test_tasks_of_an_older_epoch_are_refused(runtime, tmp_path):
    """They come late, and must neither replace the state of a newer one nor go on with it; nor may an epoch begin twice."""
    stored = SearchStore.create(tmp_path / "result.zarr", {"num_partitions": 3, "epoch": -1})
    spec = SearchSpec(
        search="one",
        lease=runtime.session.lease,
        result_store=str(stored.path),
        sources=np.array([0]),
        options=SearchOptions("alpha-beta", 99, runtime.few),
        epoch=1,
        last_step=-1,
    )

    def step(spec, index):
        name, epoch = (spec.search, spec.epoch) if index == 0 else spec
        hop = Hop(
            name=name, epoch=epoch, lease=runtime.session.lease, number=index, after=-1 if index == 0 else None, last=None, most_steps=1,
            seconds=0, every=None, group=None,
        )  # fmt: skip
        before = () if index == 0 else (HopResult(0, FrontierPart(1, False, np.zeros(1, np.uint32)), "", ()),)
        arguments = take_hop, 0, SearchSteps(spec if index == 0 else None, runtime.placement.graph), hop, *before
        return runtime.client.submit(tasks.with_plugin, *arguments, workers=runtime.addresses[:1], pure=False).result(timeout=PATIENCE)

    assert step(spec, 0).message.level == 1
    for late in (spec, replace(spec, epoch=0)):
        with pytest.raises(StateLostError, match="has begun epoch 1 of the search"):
            step(late, 0)
    for epoch in (0, 2):
        with pytest.raises(StateLostError, match="is not at step 1"):
            step(("one", epoch), 1)
    runtime.client.run(tasks.forget, "one")


def lose_event(dask_worker=None):
    """Run on a worker: do not tell of one hop."""
    plugin = dask_worker.plugins["oocgraph"]

    def told(event, **_):
        del plugin.tell

    plugin.tell = told


@pytest.mark.parametrize("exchange", ["windows", "messages"])
def test_lost_event(cluster, kron, exchange):
    """A hop that is done, but not heard of, is taken again; no partition moves."""
    store, levels = kron
    cluster.refill()
    with dask.config.set({"oocgraph.exchange": exchange}), ClusterRuntime.open(store, client=cluster.client) as runtime:
        runtime.client.run(lose_event, workers=runtime.addresses[:1])
        result = in_background(oocgraph.bfs, store, SOURCE, runtime=runtime, direction="alpha-beta").result(timeout=PATIENCE)
        judge(store, result, levels)
        assert runtime.num_moves == 0
        assert result.summary()["num_epochs"] == 2


def test_results_that_go_before_they_are_fetched(cluster, runtime, kron, monkeypatch):
    """All have written what they found, and one dies before the client has asked for its figures."""
    store, levels = kron
    victim, killed = runtime.addresses[0], []
    fetch = ClusterSession._result

    def late(self, future, *arguments):
        if "write" in str(future.key) and not killed:
            killed.append(victim)
            cluster.kill(victim)
        return fetch(self, future, *arguments)

    monkeypatch.setattr(ClusterSession, "_result", late)
    result = in_background(oocgraph.bfs, store, SOURCE, runtime=runtime).result(timeout=PATIENCE)
    assert killed
    judge(store, result, levels)
    assert victim not in runtime.addresses


def test_worker_lost_while_a_graph_is_opened(cluster, kron):
    """Its partition goes to another one."""
    store, levels = kron
    cluster.refill()
    cluster.client.run(clusters.tell_of_loads)
    with Trap(cluster.client, "load") as trap:
        opened = trap.watch(in_background(ClusterRuntime.open, store, client=cluster.client))
        victim = trap.kill()["worker"]
        with opened.result(timeout=PATIENCE) as runtime:
            assert victim not in runtime.addresses
            judge(store, oocgraph.bfs(store, SOURCE, runtime=runtime), levels)


def test_worker_that_only_seems_dead(cluster, runtime, kron):
    """It hangs until the scheduler gives it up; when it wakes, in the middle of the next search, it does no harm."""
    store, levels = kron
    victim = runtime.addresses[0]
    with Trap(cluster.client, "kernel", 2, workers=[victim]) as trap:
        found = trap.watch(in_background(oocgraph.bfs, store, SOURCE, runtime=runtime, direction="alpha-beta"))
        pid = trap.wait()["pid"]
        os.kill(pid, signal.SIGSTOP)
        trap.let_go()
        judge(store, found.result(timeout=PATIENCE), levels)
    assert victim not in runtime.addresses
    with Trap(cluster.client, "kernel", 1) as trap:
        found = trap.watch(in_background(oocgraph.bfs, store, SOURCE, runtime=runtime, direction="alpha-beta"))
        trap.wait()
        os.kill(pid, signal.SIGCONT)
        trap.let_go()
        judge(store, found.result(timeout=PATIENCE), levels)


def test_nobody_can_take_over(cluster, runtime, kron, monkeypatch):
    """Workers that die one after the other as they load a partition: an error, and no further attempt."""
    monkeypatch.setattr(placement, "MAX_IDLE_EPOCHS", 1)
    store, _ = kron
    first, *others = runtime.addresses
    cluster.client.run(clusters.tell_of_loads)
    with Trap(cluster.client, "kernel", 1, workers=[first]) as early, Trap(cluster.client, "load", workers=others) as late:
        found = early.watch(late.watch(in_background(oocgraph.bfs, store, SOURCE, runtime=runtime)))
        early.kill()
        late.kill()
        with pytest.raises(oocgraph.errors.ClusterError, match=r"in vain: worker .* was lost"):
            found.result(timeout=PATIENCE)
