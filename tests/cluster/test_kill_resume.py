"""A search whose last worker, client or scheduler is killed ends with a clear error in seconds, and goes on where its logs end."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from contextlib import contextmanager

import pytest

import oocgraph
from oocgraph.cluster import placement
from oocgraph.cluster import worker as tasks
from oocgraph.cluster.searches import ClusterRuntime
from oocgraph.errors import ClusterError
from oocgraph.store.search_store import SearchStore
from tests.cluster import clusters
from tests.cluster.clusters import PATIENCE, Cluster, Trap, in_background
from tests.cluster.kill_fifty import SOURCE, judge

pytestmark = pytest.mark.kill

SECONDS = 15
"""Within which a search must have failed: workers without a nanny are waited for during five."""


@contextmanager
def failing(seconds=SECONDS):
    """Expect a ClusterError that tells how to go on, soon."""
    began = time.monotonic()
    with pytest.raises(ClusterError) as error:
        yield error
    assert time.monotonic() - began < seconds
    assert "resume" in str(error.value)


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    """Three workers without nannies; who kills one refills."""
    with Cluster(tmp_path_factory.mktemp("cluster")) as cluster:
        yield cluster


@pytest.fixture
def hasty(monkeypatch):
    """Wait for lost workers a moment only."""
    monkeypatch.setattr(placement, "NO_NANNY_SECONDS", 0.5)


def search_until(cluster, store, path, step, stop):
    """Begin a search whose workers all wait in `step`, then stop it; returns the future."""
    with ClusterRuntime.open(store, client=cluster.client) as runtime, Trap(cluster.client, "kernel", step) as trap:
        found = trap.watch(in_background(oocgraph.bfs, store, SOURCE, runtime=runtime, direction="alpha-beta", result_store=path))
        for _ in runtime.addresses:
            trap.wait()
        stop()
        with failing() as error:
            found.result(timeout=PATIENCE)
        assert str(error.value).endswith(f"go on with resume={path}, nothing that was found is lost")


def resume(cluster, kron, path, *first_step):
    """Go on with a search, and judge it; the first step that it takes is one of `first_step`."""
    store, levels = kron
    cluster.refill()
    cluster.client.run(clusters.note_phases)
    result = oocgraph.bfs(store, SOURCE, client=cluster.client, direction="alpha-beta", resume=path)
    assert min(step for noted in cluster.client.run(clusters.noted_phases).values() for _, step, _ in noted) in first_step
    judge(store, result, levels)
    assert SearchStore.open(path).complete


def nothing_held(cluster):
    """Whether no worker holds anything of a search or a graph."""
    return all(not any(held.values()) for held in cluster.client.run(tasks.inventory).values())


@pytest.mark.parametrize("step", [0, 4])
def test_all_workers(cluster, kron, tmp_path, step):
    """No worker is left and none comes back: an error within seconds; others go on from the last complete step."""
    path = tmp_path / "result.zarr"
    cluster.refill()
    search_until(cluster, kron[0], path, step, lambda: cluster.kill(*cluster.workers()))
    assert clusters.last_step(kron[0], SearchStore.open(path)) == step - 1
    resume(cluster, kron, path, step)
    assert nothing_held(cluster)


@pytest.mark.usefixtures("hasty")
def test_torn_last_record(cluster, kron, tmp_path):
    """A record that was not written to its end is found by its checksum; its step is taken again."""
    path = tmp_path / "result.zarr"
    cluster.refill()
    search_until(cluster, kron[0], path, 3, lambda: cluster.kill(*cluster.workers()))
    stored = SearchStore.open(path)
    log = stored.log_path(1, stored.epochs(1)[-1])
    os.truncate(log, log.stat().st_size - 5)
    assert clusters.last_step(kron[0], stored) == 1
    resume(cluster, kron, path, 2)


@pytest.mark.usefixtures("hasty")
def test_all_workers_as_they_write_their_results(cluster, kron, tmp_path):
    """Every step is in the logs: only the results are written again."""
    store, _ = kron
    path = tmp_path / "result.zarr"
    cluster.refill()
    with ClusterRuntime.open(store, client=cluster.client) as runtime, Trap(cluster.client, "finish") as trap:
        found = trap.watch(in_background(oocgraph.bfs, store, SOURCE, runtime=runtime, direction="alpha-beta", result_store=path))
        for _ in runtime.addresses:
            trap.wait()
        cluster.kill(*cluster.workers())
        with failing():
            found.result(timeout=PATIENCE)
    last = clusters.last_step(kron[0], SearchStore.open(path))
    assert last >= 5
    resume(cluster, kron, path, last + 1)


CLIENT = """if True:
    import sys
    import oocgraph
    from distributed import Client
    address, graph, source, path = sys.argv[1:]
    with Client(address) as client:
        oocgraph.bfs(graph, int(source), client=client, direction="alpha-beta", result_store=path)
"""


def no_other_client(scheduler, ours):
    """Whether the clients of the scheduler are ours."""
    return {name for name in scheduler.clients if name.startswith("Client-")} == {ours}


def test_client(cluster, kron, tmp_path):
    """The process that runs the search is killed: its workers give back what they hold, and another client goes on."""
    store, _ = kron
    path = tmp_path / "result.zarr"
    cluster.refill()
    with Trap(cluster.client, "kernel", 3) as trap:
        process = subprocess.Popen([sys.executable, "-c", CLIENT, cluster.address, store.url, str(SOURCE), str(path)])
        for _ in range(cluster.num_workers):
            trap.wait()
        process.kill()
        process.wait()
        cluster.on_scheduler(no_other_client, cluster.client.id)
    resume(cluster, kron, path, *range(3, 10))  # meanwhile its workers may have taken the steps of the hop that they were in
    assert nothing_held(cluster)


@pytest.mark.parametrize("when", ["idle", "noticed", "searching"])
def test_scheduler(kron, tmp_path, when):
    """The scheduler is killed in a search or before (has the client noticed?): an error in seconds; a new cluster goes on."""
    store, _ = kron
    path = tmp_path / "result.zarr"
    folders = [tmp_path / "one", tmp_path / "two"]
    for folder in folders:
        folder.mkdir()
    with Cluster(folders[0]) as cluster:
        if when != "searching":
            with ClusterRuntime.open(store, client=cluster.client) as runtime:
                os.kill(cluster.scheduler.pid, signal.SIGKILL)
                while when == "noticed" and cluster.client.status == "running":
                    time.sleep(0.005)
                with failing():
                    oocgraph.bfs(store, SOURCE, runtime=runtime, result_store=path)
            return
        search_until(cluster, store, path, 3, lambda: os.kill(cluster.scheduler.pid, signal.SIGKILL))
    with Cluster(folders[1]) as cluster:
        resume(cluster, kron, path, 3)
