"""Calls inside tasks of the cluster that they compute on: a worker of one thread runs what its own task waits for."""

from __future__ import annotations

import dask.array as da
import distributed
import numpy as np
import pytest
from distributed import Client, LocalCluster

import oocgraph
from oocgraph import Resources
from oocgraph.resources import seceded
from tests.cluster.clusters import PATIENCE, Cluster
from tests.cluster.conftest import QUIET, held

SOURCE = 4
EDGES = np.arange(600).reshape(-1, 2) % 97


@pytest.fixture(scope="module", params=["processes", "threads"])
def one_thread(request, tmp_path_factory):
    """Client, the current one, of one worker of one thread."""
    if request.param == "processes":
        with Cluster(tmp_path_factory.mktemp("one"), workers=1) as cluster, Client(cluster.address) as client:
            yield client
    else:
        with LocalCluster(n_workers=1, threads_per_worker=1, processes=False, **QUIET) as cluster, Client(cluster) as client:
            yield client


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    """Return the path of a small graph."""
    return oocgraph.generate_kronecker(10, tmp_path_factory.mktemp("graph") / "graph.zarr", seed=3).url


@pytest.fixture(scope="module")
def num_reached(path):
    found = oocgraph.bfs(path, SOURCE, resources=Resources(client=False)).num_reached
    assert found > 100
    return found


def in_task(client, compute, *arguments):
    """Run a function in a task of the cluster."""
    found = client.submit(compute, *arguments, pure=False).result(timeout=PATIENCE)
    assert held(client) == []
    return found


def leaves_once_more():
    """Run in a task: whether its thread is one of its worker's again, and can leave them."""
    distributed.secede()
    distributed.rejoin()
    return True


def search(path, **where):
    found = oocgraph.bfs(path, SOURCE, **where)
    return len(found.to_pandas()), found.num_reached


COMPUTATIONS = {
    "search": search,
    "search over partitions": lambda path, **where: oocgraph.bfs(path, SOURCE, partition="2d", **where).num_reached,
    "blocks": lambda path, **where: int(oocgraph.core_numbers(path, **where).core_number.max()),
    "forest": lambda path, **where: oocgraph.connected_components(path, **where).num_components,
    "ranks": lambda path, **where: round(float(oocgraph.pagerank(path, **where).rank.max()), 9),
    "sweeps": lambda path, **where: round(float(oocgraph.hits(path, **where).hub.max()), 9),
    "product": lambda path, **where: float(oocgraph.spmv(path, np.ones(oocgraph.open_graph(path).num_vertices), **where).sum()),
    "build": lambda _, **where: oocgraph.build_csr(da.from_array(EDGES, chunks=(50, 2)), **where).num_edges,
}


def with_client(name, path):
    return COMPUTATIONS[name](path, client=distributed.get_client()), leaves_once_more()


@pytest.mark.parametrize("name", COMPUTATIONS)
def test_a_task_waits_for_what_its_own_worker_runs(one_thread, path, name):
    """It leaves the worker's threads meanwhile."""
    expected = COMPUTATIONS[name](path, resources=Resources(client=False))
    assert in_task(one_thread, with_client, name, path) == (expected, True)


def with_the_current_client(path):
    client = distributed.get_client()
    found = oocgraph.bfs(path, SOURCE)
    return found.client is client, found.num_reached


def test_the_current_client_of_a_task_is_taken(one_thread, path, num_reached):
    """No client is given."""
    assert in_task(one_thread, with_the_current_client, path) == (True, num_reached)


def with_a_runtime(path):
    with oocgraph.open_runtime(path, client=distributed.get_client()) as runtime:
        return oocgraph.bfs(path, SOURCE, runtime=runtime).num_reached, leaves_once_more()


def test_an_opened_graph(one_thread, path, num_reached):
    """The task is among the worker's threads again between two calls."""
    assert in_task(one_thread, with_a_runtime, path) == (num_reached, True)


def with_a_worker_client(path):
    with distributed.worker_client() as client:
        return oocgraph.bfs(path, SOURCE, client=client).num_reached, is_outside()


def is_outside():
    """Run in a task: whether its thread has left those of its worker."""
    try:
        distributed.secede()
    except KeyError:
        return True
    return False


def test_a_task_that_has_left_stays_outside(one_thread, path, num_reached):
    assert in_task(one_thread, with_a_worker_client, path) == (num_reached, True)


def returned(path):
    return oocgraph.bfs(path, SOURCE, client=distributed.get_client())


def test_a_result_that_a_task_returns(one_thread, path, num_reached):
    """It comes with its values: the temporary result store goes with the result of the worker."""
    assert (in_task(one_thread, returned, path).level >= 0).sum() == num_reached


def test_nothing_is_left_outside_of_tasks():
    with seceded(), seceded():
        pass
