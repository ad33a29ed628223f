"""What messages between workers go through, and how many steps a task takes: chosen with a reason, the same result with each."""

from __future__ import annotations

import contextlib
import errno
import os
import subprocess
import sys
import time
from pathlib import Path

import dask
import numpy as np
import pytest
from distributed import Client, LocalCluster

import oocgraph
from oocgraph.cluster.searches import ClusterRuntime
from oocgraph.errors import ClusterError
from oocgraph.exchange.windows import window_bytes
from tests.cluster.clusters import ROOT
from tests.cluster.conftest import QUIET
from tests.cluster.kill_fifty import SOURCE, judge
from tests.processes import PATIENCE_SECONDS, program

UNSHARE = ["unshare", "--pid", "--fork", "--mount-proc", "--kill-child"]

WAYS = [("windows", None), ("windows", 1), ("windows", 3), ("messages", None)]


@pytest.fixture(params=WAYS, ids=lambda way: f"{way[0]}-{way[1]}")
def way(request):
    """Have messages go one way, and a task take so many steps; yields the latter."""
    exchange, steps = request.param
    with dask.config.set({"oocgraph.exchange": exchange, "oocgraph.steps-per-task": steps}):
        yield 1 if exchange == "messages" else steps


@pytest.fixture(scope="module")
def weighted(tmp_path_factory):
    """Return a graph with weights."""
    return oocgraph.generate_kronecker(12, tmp_path_factory.mktemp("weighted") / "graph.zarr", seed=4, weights=(1, 255))


def test_a_search_takes_as_many_hops_as_it_must(kron, client, way):
    """Every exchanged level is a step, and a task takes as many as it may."""
    store, levels = kron
    result = oocgraph.bfs(store, SOURCE, client=client, direction="alpha-beta")
    judge(store, result, levels)
    found = result.summary()
    assert found["num_steps"] >= len(result.iterations)
    expected = 1 if way is None else -(-found["num_steps"] // way)
    assert expected <= found["num_hops"] <= expected + (way is None)


@pytest.mark.one_in(3)
@pytest.mark.parametrize("partition", ["1d", "2d"])
def test_a_search_over_parts(kron, client, way, partition):
    """Of two parts, each at a worker of its own."""
    store, _ = kron
    with oocgraph.open_runtime(store, partition=partition, client=client) as runtime:
        result = oocgraph.bfs(store, SOURCE, runtime=runtime)
        oocgraph.verify_bfs(store, result)
        np.testing.assert_array_equal(result.level, oocgraph.bfs(store, SOURCE).level)


def test_other_computations(weighted, client, way):
    """Distances and core numbers are those of one process, ranks too but for rounding."""
    graph = weighted
    np.testing.assert_array_equal(
        oocgraph.sssp(graph, 1, weight="weight", client=client).distance[:], oocgraph.sssp(graph, 1, weight="weight").distance
    )
    np.testing.assert_array_equal(oocgraph.core_numbers(graph, client=client).core_number, oocgraph.core_numbers(graph).core_number)
    ranks = [oocgraph.pagerank(graph, tol=1e-12, **options).rank for options in ({"client": client}, {})]
    np.testing.assert_allclose(*ranks, rtol=0, atol=1e-10)


def test_the_iterations_of_pagerank_are_all_noted(weighted, client, way, tmp_path):
    """Also where a task takes many; checkpoints are written where they are due, and gone on with."""
    with dask.config.set({"oocgraph.checkpoint-every": 4}):
        rank = oocgraph.pagerank(weighted, tol=1e-13, client=client)
        again = oocgraph.pagerank(weighted, tol=1e-13, client=client, checkpoint=tmp_path / "saved.zarr")
    np.testing.assert_array_equal(rank.rank, again.rank)
    assert rank.iterations == again.iterations > 4


def chosen(store, client, exchange="auto", num_partitions=None):
    """Return what is chosen, and why."""
    setting = dask.config.set({"oocgraph.exchange": exchange})
    with setting, ClusterRuntime.open(store, client=client, num_partitions=num_partitions) as runtime:
        return runtime.placement.exchange


def test_the_reason_is_told(kron, client, threads_client):
    """Of what is chosen, and of a choice that cannot be."""
    store, _ = kron
    assert chosen(store, client) == "windows in shared memory: workers of one host"
    assert chosen(store, client, "messages") == "messages of Dask: as asked"
    assert "has more partitions than threads (2 and 1)" in chosen(store, client, num_partitions=3)
    with pytest.raises(ClusterError, match=r"exchange is windows, but they cannot be used: worker tcp://.* has more partitions"):
        chosen(store, client, "windows", 3)
    assert chosen(store, threads_client, num_partitions=4) == "windows in shared memory: workers of one host"


def no_memory(dask_worker=None):
    """Run on a worker: it has no memory for windows."""
    from oocgraph.exchange.windows import Window

    def create(num_members):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    Window.create_before, Window.create = Window.create, create


def memory_again(dask_worker=None):
    """Run on a worker: undo `no_memory`."""
    from oocgraph.exchange.windows import Window

    Window.create = Window.create_before


def test_a_worker_without_memory_for_windows(kron, client):
    """Messages go through Dask, and it is said why."""
    store, levels = kron
    one = sorted(client.scheduler_info()["workers"])[0]
    client.run(no_memory, workers=[one])
    try:
        result = oocgraph.bfs(store, SOURCE, client=client)
    finally:
        client.run(memory_again, workers=[one])
    judge(store, result, levels)
    expected = f"messages of Dask: worker {one} cannot share memory ({window_bytes(2) >> 20} MiB: No space left on device)"
    assert result.summary()["exchange"] == expected


def sleep(seconds):
    """Keep a worker busy."""
    time.sleep(seconds)


def test_a_worker_that_is_busy_with_another_task(kron, client):
    """The others do not wait for long: until it is free each step goes through Dask."""
    store, levels = kron
    with ClusterRuntime.open(store, client=client) as runtime:
        busy = client.submit(sleep, 4, workers=runtime.addresses[:1], pure=False)
        while not client.processing()[runtime.addresses[0]]:
            time.sleep(0.01)
        result = oocgraph.bfs(store, SOURCE, runtime=runtime, direction="alpha-beta")
        busy.result()
        judge(store, result, levels)
        assert result.summary()["num_hops"] > 1
        assert oocgraph.bfs(store, SOURCE, runtime=runtime, direction="alpha-beta").summary()["num_hops"] == 1


def mapped(dask_worker=None):
    """Run on a worker: the windows that it maps."""
    with open("/proc/self/maps") as file:
        return sum("memfd:oocgraph" in line for line in file)


def named(dask_worker=None):
    """Run on a worker: what it maps or has open by a name of its own in shared memory, but for the semaphores of Python."""
    with open("/proc/self/maps") as file:
        paths = {line.split(maxsplit=5)[5].strip() for line in file if "/dev/shm/" in line}
    for fd in os.listdir("/proc/self/fd"):
        with contextlib.suppress(FileNotFoundError):
            paths.add(os.readlink(f"/proc/self/fd/{fd}"))
    return sorted(path for path in paths if path.startswith("/dev/shm/") and path.count("/") == 3 and not path.startswith("/dev/shm/sem."))


def test_nothing_is_left(kron, client):
    """No window is mapped once a graph is closed, and nothing has a name."""
    store, _ = kron
    with ClusterRuntime.open(store, client=client) as runtime:
        oocgraph.bfs(store, SOURCE, runtime=runtime)
        assert min(client.run(mapped).values()) >= 2
        assert set(map(len, client.run(named).values())) == {0}, client.run(named)
    client.run(lambda: __import__("gc").collect())
    assert set(client.run(mapped).values()) == {0}


@pytest.mark.namespaces
@pytest.mark.timeout(PATIENCE_SECONDS)
def test_workers_that_do_not_see_each_other(kron, tmp_path):
    """As on two hosts: their messages go through Dask, and windows cannot be asked for."""
    if os.geteuid() or subprocess.run([*UNSHARE, "true"], check=False, capture_output=True).returncode:
        pytest.skip("needs root and unshare")
    store, levels = kron
    env = {**os.environ, "PYTHONPATH": str(ROOT), "DASK_LOGGING__DISTRIBUTED": "error"}
    with LocalCluster(n_workers=1, threads_per_worker=1, **QUIET) as cluster, Client(cluster, set_as_default=False) as client:
        options = ["--no-nanny", "--nthreads", "1", "--memory-limit", "0", "--no-dashboard", "--local-directory", str(tmp_path)]
        worker = [*UNSHARE, sys.executable, "-m", "distributed.cli.dask_worker", cluster.scheduler_address, *options]
        with open(Path(tmp_path, "log"), "w") as log, program(worker, env=env, stdout=log, stderr=log):
            client.wait_for_workers(2, timeout=PATIENCE_SECONDS)
            result = oocgraph.bfs(store, SOURCE, client=client, direction="alpha-beta")
            judge(store, result, levels)
            assert "are on two hosts, or do not see each other's processes" in result.summary()["exchange"]
            with dask.config.set({"oocgraph.exchange": "windows"}), pytest.raises(ClusterError, match="are on two hosts"):
                oocgraph.bfs(store, SOURCE, client=client)
