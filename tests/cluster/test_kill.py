"""Workers are killed with SIGKILL at a chosen place of a search, which finishes with the right answer."""

from __future__ import annotations

import os
import signal

import dask
import numpy as np
import pytest

import oocgraph
from oocgraph.cluster.searches import ClusterRuntime
from oocgraph.cluster.worker_memory import WorkerMemory
from oocgraph.errors import BudgetError
from tests.cluster import clusters
from tests.cluster.clusters import PATIENCE, Cluster, Trap, in_background
from tests.cluster.kill_fifty import RESIDENT, SOURCE, judge, killed_run, places
from tests.processes import free_ports

pytestmark = pytest.mark.kill

NUM_KILLS = int(os.environ.get("OOCGRAPH_KILLS", "10"))
"""Kills over every iteration and phase, half of them under nannies; 50 takes four minutes."""


@pytest.fixture(scope="module", params=[False, True], ids=["alone", "nanny"])
def cluster(request, tmp_path_factory):
    """Three workers; who kills one refills."""
    with Cluster(tmp_path_factory.mktemp("cluster"), nanny=request.param) as cluster:
        yield cluster


alone = pytest.mark.parametrize("cluster", [False], indirect=True, ids=["alone"])
"""For what is the same when a nanny starts another worker meanwhile."""


@pytest.fixture
def exchange():
    """Return what messages go through."""
    return "auto"


@pytest.fixture
def three(cluster, kron, exchange):
    """Return the cluster, an open runtime, and a search that is judged."""
    store, levels = kron
    cluster.refill()
    cluster.client.run(clusters.cramp, RESIDENT)
    with dask.config.set({"oocgraph.exchange": exchange}), ClusterRuntime.open(store, client=cluster.client) as runtime:

        def search(direction="alpha-beta"):
            result = oocgraph.bfs(store, SOURCE, runtime=runtime, direction=direction)
            judge(store, result, levels)
            return result

        yield cluster, runtime, search


@pytest.mark.timeout(60 + 30 * NUM_KILLS)
def test_every_phase_of_every_iteration(cluster, kron):
    """Read, kernel, transfer, finish: a worker that dies there changes nothing in the result; in turn with each kind of exchange."""
    store, levels = kron
    cluster.client.run(clusters.cramp, RESIDENT)
    found = places(cluster, store)
    assert {place.phase for place in found} == {"read", "kernel", "transfer", "finish"}
    assert {place.step for place in found} == {None, *range(6)}
    count = min(NUM_KILLS // 2, len(found)) if NUM_KILLS < 50 else NUM_KILLS // 2
    for i in range(count):
        place = found[(i * len(found) // count + cluster.nanny) % len(found)] if count < len(found) else found[i % len(found)]
        with dask.config.set({"oocgraph.exchange": ("auto", "messages")[i % 2]}):
            row = killed_run(cluster, store, levels, place, i // 2 % cluster.num_workers)
        assert row.moved == 1
        assert row.seconds < PATIENCE


@alone
@pytest.mark.parametrize("stopped", [False, True], ids=["computing", "stopped"])
def test_one_that_others_wait_for(three, stopped):
    """In shared memory, while it computes or when it has been stopped: they notice, and go on from the logs."""
    cluster, runtime, search = three
    victim = runtime.addresses[0]
    with Trap(cluster.client, "kernel", 3, workers=[victim]) as trap:
        found = trap.watch(in_background(search))
        trap.wait()
        pid = cluster.pid(victim)
        if stopped:
            os.kill(pid, signal.SIGSTOP)
        os.kill(pid, signal.SIGKILL)
        result = found.result(timeout=PATIENCE)
    assert victim not in runtime.addresses
    assert result.summary()["exchange"].startswith("messages of Dask: worker")  # one thread, two partitions


@alone
@pytest.mark.parametrize("exchange", ["messages"])
@pytest.mark.parametrize("stopped", [False, True], ids=["complete", "fetched"])
def test_result_that_nobody_has_fetched(three, stopped):
    """A step is complete and its worker dies: before a peer has asked for the result, or while one waits for it."""
    cluster, runtime, search = three
    victim, *peers = runtime.addresses
    with Trap(cluster.client, "kernel", 2, workers=peers) as trap:
        found = trap.watch(in_background(search))
        assert {trap.wait()["worker"] for _ in peers} == set(peers)
        cluster.on_scheduler(clusters.finished, 2, 0)
        pid = cluster.pid(victim)
        if stopped:
            os.kill(pid, signal.SIGSTOP)
            trap.let_go()
            cluster.on_worker(peers[0], clusters.fetching, victim)
        os.kill(pid, signal.SIGKILL)
        cluster.on_scheduler(clusters.gone, [victim])
        trap.let_go()
        found.result(timeout=PATIENCE)
    assert victim not in runtime.addresses


@pytest.mark.one_in(2)
@pytest.mark.parametrize("noticed", [True, False])
def test_idle_worker(three, noticed):
    """Before the first search and between two; whether or not the scheduler knows already."""
    cluster, runtime, search = three
    for _ in range(2):
        victim = runtime.addresses[0]
        if noticed:
            cluster.kill(victim)
        else:
            os.kill(cluster.pid(victim), signal.SIGKILL)
        search()
        assert victim not in runtime.addresses


def test_two_in_one_search(three):
    """The second dies in a later step than the first; the last one holds everything."""
    cluster, runtime, search = three
    first, *others = runtime.addresses
    with (
        Trap(cluster.client, "kernel", 1, workers=[first]) as early,
        Trap(cluster.client, "kernel", 3, workers=others) as late,
    ):
        found = early.watch(late.watch(in_background(search)))
        early.kill()
        second = late.kill()["worker"]
        found.result(timeout=PATIENCE)
    assert not {first, second} & set(runtime.addresses)
    assert runtime.num_moves >= 2


@alone
def test_two_at_once(three):
    """Both have to be placed again, together."""
    cluster, runtime, search = three
    *victims, last = runtime.addresses
    with Trap(cluster.client, "kernel", 2, workers=[last]) as trap:
        found = trap.watch(in_background(search))
        trap.wait()
        cluster.kill(*victims)
        trap.let_go()
        found.result(timeout=PATIENCE)
    assert not set(victims) & set(runtime.addresses)


@alone
def test_one_that_takes_over(three):
    """A worker dies, and the one that loads its partition dies while it does."""
    cluster, runtime, search = three
    first, *others = runtime.addresses
    cluster.client.run(clusters.tell_of_loads)
    with (
        Trap(cluster.client, "kernel", 1, workers=[first]) as early,
        Trap(cluster.client, "load", workers=others) as late,
    ):
        found = early.watch(late.watch(in_background(search)))
        early.kill()
        second = late.kill()
        assert second["at"] == ["load", -1, 0]
        found.result(timeout=PATIENCE)
    assert not {first, second["worker"]} & set(runtime.addresses)


@alone
def test_two_that_write_their_results(three):
    """The second dies as it writes the same partition's result again."""
    cluster, runtime, search = three
    first, *others = runtime.addresses
    with Trap(cluster.client, "finish", workers=[first]) as early, Trap(cluster.client, "finish", partition=0, workers=others) as late:
        found = early.watch(late.watch(in_background(search)))
        early.kill()
        late.kill()
        found.result(timeout=PATIENCE)


def hold_one_at_most():
    """Run on a worker: refuse a second partition."""
    share_out = WorkerMemory.share_out

    def refused(self, spec, plans, held, *charges):
        if len(held) + len(plans) > 1:
            raise BudgetError("no room")
        return share_out(self, spec, plans, held, *charges)

    WorkerMemory.share_out = refused


def test_others_have_no_room(three):
    """They refuse the partition: an error in seconds that names one, or it waits for the worker that a nanny starts."""
    cluster, runtime, search = three
    first, *others = runtime.addresses
    cluster.client.run(hold_one_at_most)
    cluster.kill(first)
    if cluster.nanny:
        search()
        assert runtime.addresses[0] not in (first, *others)
    else:
        with pytest.raises(BudgetError, match=r"worker tcp.* cannot take partition 0 of 3: no room"):
            search()
    cluster.kill(*others)  # they would refuse for ever


def test_worker_that_comes_back_under_its_address(kron, tmp_path):
    """A nanny starts it again on the same port: it answers, but holds nothing."""
    store, levels = kron
    with (
        Cluster(tmp_path, workers=2, nanny=True, ports=free_ports(2)) as cluster,
        ClusterRuntime.open(store, client=cluster.client) as runtime,
    ):
        addresses = cluster.workers()
        cluster.kill(addresses[0])
        cluster.refill()
        assert cluster.workers() == addresses
        result = oocgraph.bfs(store, SOURCE, runtime=runtime)
        judge(store, result, levels)
        with Trap(cluster.client, "kernel", 1, workers=addresses[:1]) as trap:
            found = trap.watch(in_background(oocgraph.bfs, store, SOURCE, runtime=runtime))
            trap.kill()
            result = found.result(timeout=PATIENCE)
        assert np.asarray(result.search.level).tolist() == levels.tolist()
