"""What the tests of clusters search, and clusters that they share; after each test nothing may be left on their workers."""

from __future__ import annotations

import pytest
from distributed import Client, LocalCluster

import oocgraph
from oocgraph.cluster.worker import inventory
from tests.cluster import kill_fifty
from tests.cluster.clusters import Cluster

QUIET = {"dashboard_address": None, "scheduler_kwargs": {"dashboard_address": ":0"}}


@pytest.fixture(scope="session")
def kron(tmp_path_factory):
    """Return a store and the levels of its vertices."""
    store = oocgraph.generate_kronecker(kill_fifty.SCALE, tmp_path_factory.mktemp("kron") / "graph.zarr", seed=3)
    return store, kill_fifty.expected_levels(store)


@pytest.fixture(scope="session")
def process_cluster(tmp_path_factory):
    """Address of two workers of one thread, each a process."""
    with Cluster(tmp_path_factory.mktemp("cluster"), workers=2) as cluster:
        yield cluster.address


@pytest.fixture(scope="session")
def thread_cluster():
    """Two workers of two threads, in this process."""
    with LocalCluster(n_workers=2, threads_per_worker=2, processes=False, **QUIET) as cluster:
        yield cluster


def held(client):
    """Return what workers hold: partitions, searches, reserved bytes."""
    return [said[key] for said in client.run(inventory).values() if said for key in said if said[key]]


@pytest.fixture
def client(process_cluster):
    """Client of worker processes; not the current one."""
    with Client(process_cluster, set_as_default=False) as client:
        yield client
        assert held(client) == []


@pytest.fixture
def threads_client(thread_cluster):
    """Client of workers in this process; not the current one."""
    with Client(thread_cluster, set_as_default=False) as client:
        yield client
        assert held(client) == []
