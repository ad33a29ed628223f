"""What every computation on a cluster keeps to, whatever it computes: lost workers cost time, never a wrong result; nothing is left."""

from __future__ import annotations

import os
import signal
from contextlib import contextmanager

import dask
import pytest
from distributed import Client

from oocgraph.cluster import worker as tasks
from oocgraph.cluster.worker import inventory
from oocgraph.errors import ClusterError
from tests.cluster.clusters import PATIENCE, Cluster, Trap, in_background


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    """Three workers that may be killed; each test begins with three."""
    with Cluster(tmp_path_factory.mktemp("cluster")) as cluster:
        yield cluster


def kept(client):
    """Return what workers hold."""
    return [said[key] for said in client.run(inventory).values() for key in said if said[key]]


class ClusterContract:
    """Tests of one computation; a subclass says what it is.

    Attributes
    ----------
    place : (phase, step)
        Where a worker is killed: as the phase begins.
    """

    place: tuple[str, int | None]

    @contextmanager
    def opened(self, store, client, folder):
        """Yield a function without arguments that computes, and may be called again."""
        raise NotImplementedError

    def check(self, store, found):
        """Compare a result with what does not come from a cluster."""
        raise NotImplementedError

    @pytest.fixture(autouse=True)
    def three_workers(self, cluster):
        """Begin with three, and with nothing on them at the end."""
        cluster.refill()
        yield
        if cluster.client.status == "running" and cluster.workers():
            assert kept(cluster.client) == []

    def test_is_right_and_leaves_nothing(self, cluster, kron, tmp_path):
        """Twice with what was opened once."""
        store, _ = kron
        with self.opened(store, cluster.client, tmp_path) as compute:
            self.check(store, compute())
            self.check(store, compute())

    def test_a_client_that_has_gone(self, cluster, kron, tmp_path):
        """One clear error, even for a graph that was open; the next client's session frees what the first has left on the workers."""
        store, _ = kron
        client = Client(cluster.address, set_as_default=False)

        def use():
            with self.opened(store, client, tmp_path) as compute:
                client.close()
                compute()

        with pytest.raises(ClusterError, match="the client is closed; connect a new one"):
            use()
        with self.opened(store, cluster.client, tmp_path) as compute:
            self.check(store, compute())

    @pytest.mark.kill
    def test_a_worker_lost_before(self, cluster, kron, tmp_path):
        """After the graph was opened, before anything is computed."""
        store, _ = kron
        with self.opened(store, cluster.client, tmp_path) as compute:
            cluster.kill(cluster.workers()[0])
            self.check(store, compute())

    @pytest.mark.kill
    @pytest.mark.parametrize("num_lost", [1, 2])
    def test_workers_lost_meanwhile(self, cluster, kron, tmp_path, num_lost):
        """One at the place, or that and another at once; and then it computes again with those that are left."""
        store, _ = kron
        pids = {address: cluster.pid(address) for address in cluster.workers()}
        with self.opened(store, cluster.client, tmp_path) as compute, Trap(cluster.client, *self.place) as trap:
            found = trap.watch(in_background(compute))
            caught = trap.wait()
            others = [pid for address, pid in pids.items() if address != caught["worker"]]
            for pid in [caught["pid"], *others[: num_lost - 1]]:
                os.kill(pid, signal.SIGKILL)
            trap.let_go()
            self.check(store, found.result(timeout=PATIENCE))
            self.check(store, compute())
            assert len(cluster.workers()) == 3 - num_lost

    @pytest.mark.kill
    def test_all_workers_lost(self, cluster, kron, tmp_path):
        """One clear error, within the time that workers are waited for; those that come then compute again."""
        store, _ = kron
        pids = [cluster.pid(address) for address in cluster.workers()]
        with (
            dask.config.set({"oocgraph.worker-timeout": 1}),
            Trap(cluster.client, *self.place) as trap,
            self.opened(store, cluster.client, tmp_path) as compute,
        ):
            found = trap.watch(in_background(compute))
            trap.wait()
            for pid in pids:
                os.kill(pid, signal.SIGKILL)
            with pytest.raises(ClusterError, match=r"no workers, and none came within|no worker is left|has lost its workers"):
                found.result(timeout=PATIENCE)
        cluster.refill()
        with self.opened(store, cluster.client, tmp_path) as compute:
            self.check(store, compute())
        assert not any(cluster.client.run(tasks.leases).values())
