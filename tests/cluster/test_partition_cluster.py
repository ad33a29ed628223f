"""A graph is partitioned by the workers of Dask clusters: the same bytes as in one process, whatever is lost; nothing is left on them."""

from __future__ import annotations

import errno
import gc
import os
import signal
import threading

import dask
import numpy as np
import pytest
from distributed import Client

from oocgraph import Resources, bfs
from oocgraph.cluster import worker as tasks
from oocgraph.errors import BudgetError, ClusterError, OutputError, PolicyError
from oocgraph.partition.policy import Policy
from oocgraph.store.graph import open_graph
from tests import every_knob
from tests.cluster.clusters import Cluster, in_background
from tests.partition.cusp_cases import Readers, assert_same_bytes, assert_sound, partition_with
from tests.processes import PATIENCE_SECONDS
from tests.reference_build import reference_build
from tests.stores import random_edges

OPTIONS = {"transpose": True, "compiled": False, "round_vertices": 16}


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    path = tmp_path_factory.mktemp("graph") / "g"
    reference_build(*random_edges(1, 100, 500), path, directed=True)
    return open_graph(path)


@pytest.fixture(scope="module")
def expected(store, tmp_path_factory):
    """Return, by policy and number of readers, the partitions of one process."""
    folder, made = tmp_path_factory.mktemp("expected"), {}

    def of(name, readers):
        if (name, readers) not in made:
            place = folder / f"{name}-{readers}"
            made[name, readers] = partition_with(Readers(readers), store, 4, name, place, **OPTIONS)
        return made[name, readers].url

    return of


slow = {}


def slow_master(prop, v):
    """Do what a test of workers in this process has put into `slow`."""
    return slow["get_master"](prop, v)


def kept(client):
    """Return what workers keep for partitionings."""
    return [lease for leases in client.run(tasks.leases).values() for lease in leases]


@pytest.mark.parametrize("name", ["CVC", "FEC", "SVC"])
def test_two_processes(store, expected, client, tmp_path, name):
    made = every_knob.partition(store, 4, name, tmp_path / "p", client, **OPTIONS)
    assert_sound(made, store)
    assert_same_bytes(expected(name, 2), made.url)
    assert kept(client) == []
    if name == "CVC":
        assert_same_bytes(expected(name, 1), made.url)


@pytest.mark.parametrize("name", ["HVC", "GVC"])
def test_workers_of_two_threads_in_one_process(store, expected, threads_client, tmp_path, name):
    """More calls than workers, so that a worker is given several at once: they take turns with what it keeps."""
    made = every_knob.partition(store, 4, name, tmp_path / "p", threads_client, **OPTIONS)
    assert_same_bytes(expected(name, 2), made.url)
    assert kept(threads_client) == []


def test_compiled_policy_of_a_user(store, client, tmp_path):
    """Functions that workers cannot import travel by value, and what they name with them."""
    offset = 2
    policy = Policy("mine", lambda prop, v: (v + offset) % prop.num_partitions, lambda prop, src, dst, a, b: max(a, b))
    made = every_knob.partition(store, 3, policy, tmp_path / "p", client)
    np.testing.assert_array_equal(made.masters.read(0, store.num_rows), (np.arange(store.num_rows) + 2) % 3)
    assert_sound(made, store)


@pytest.mark.parametrize("how", ["client", "threads_client"])
def test_mistakes_of_a_policy_are_told_as_in_one_process(store, tmp_path, request, how):
    client = request.getfixturevalue(how)
    policy = Policy("mine", lambda prop, v: v // 40, lambda prop, src, dst, a, b: a, compiled=False)
    with pytest.raises(PolicyError, match=r"get_master returned 2 for vertex 80 \(id \d+\), but partitions are 0 to 1"):
        every_knob.partition(store, 2, policy, tmp_path / "p", client)
    policy = Policy("mine", lambda prop, v: 0, lambda prop, src, dst, a, b: 1 // int(src), compiled=False)
    with pytest.raises(PolicyError, match=r"raised ZeroDivisionError for the edge from vertex 0 \(id \d+\)"):
        every_knob.partition(store, 2, policy, tmp_path / "p", client)
    assert kept(client) == []
    assert list(tmp_path.iterdir()) == []


def test_budget_of_a_worker(store, client, tmp_path):
    with pytest.raises(BudgetError, match=r"partitioning .* memory budget 10\.0 MiB .* set memory_budget to at least \d+M"):
        every_knob.partition(store, 2, "EEC", tmp_path / "p", client, memory_budget="10M")
    assert list(tmp_path.iterdir()) == []
    assert kept(client) == []


def test_disk_of_a_worker_is_full(store, threads_client, tmp_path, monkeypatch):
    def full(fd, data, offset):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "pwrite", full)
    with pytest.raises(OutputError, match="the disk is full"):
        every_knob.partition(store, 2, "EEC", tmp_path / "p", threads_client, compiled=False)
    assert list(tmp_path.iterdir()) == []


def test_output_that_exists_is_refused_before_workers_are_asked(store, client, tmp_path):
    (tmp_path / "p").mkdir()
    with pytest.raises(OutputError, match="exists already"):
        every_knob.partition(store, 2, "EEC", tmp_path / "p", client)


@pytest.mark.parametrize("phase", ["masters", "construct"])
def test_interrupt_leaves_nothing_on_workers(store, client, tmp_path, phase):
    def stop(name, done, total):
        if name == phase and done == 0:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        every_knob.partition(store, 4, "CVC", tmp_path / "p", client, progress=stop, **OPTIONS)
    assert kept(client) == []
    assert list(tmp_path.iterdir()) == []


def test_interrupt_waits_for_the_block_at_work_and_no_longer(store, threads_client, tmp_path, monkeypatch):
    """A worker in the middle of a block: it ends that block, writes nothing afterwards, and only then the folder goes."""
    at_work, go_on = threading.Event(), threading.Event()

    def get_master(prop, v):
        at_work.set()
        go_on.wait(PATIENCE_SECONDS)
        return 0

    monkeypatch.setitem(slow, "get_master", get_master)
    policy = Policy("slow", slow_master, lambda prop, s, d, a, b: a, compiled=False)

    def stop(name, done, total):
        at_work.wait(PATIENCE_SECONDS)
        raise KeyboardInterrupt

    found = in_background(every_knob.partition, store, 2, policy, tmp_path / "p", threads_client, progress=stop)
    assert at_work.wait(PATIENCE_SECONDS)
    [folder] = [path for path in tmp_path.iterdir() if path.name.startswith(".oocgraph")]
    assert not found.done()
    assert folder.exists()
    go_on.set()
    with pytest.raises(KeyboardInterrupt):
        found.result(timeout=PATIENCE_SECONDS)
    assert list(tmp_path.iterdir()) == []
    assert kept(threads_client) == []


def test_client_that_is_gone_leaves_what_the_next_removes(store, process_cluster, client, tmp_path):
    """It can neither cancel nor drop anything; what workers keep for it goes when somebody partitions again."""
    own = Client(process_cluster, set_as_default=False)

    def leave(name, done, total):
        if name == "edges" and done == total:
            own.close()

    with pytest.raises(ClusterError, match="the client is closed; connect a new one"):
        every_knob.partition(store, 4, "CVC", tmp_path / "p", own, progress=leave, **OPTIONS)
    assert kept(client)
    assert list(tmp_path.iterdir()) == []
    every_knob.partition(store, 4, "CVC", tmp_path / "p", client, **OPTIONS)
    assert kept(client) == []


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    """Two workers that may be killed; who kills one refills."""
    with Cluster(tmp_path_factory.mktemp("cluster"), workers=2) as cluster:
        yield cluster


@pytest.mark.kill
@pytest.mark.parametrize(
    ("name", "phase"),
    [
        ("CVC", "masters"),
        ("SVC", "masters"),
        ("SVC", "edges"),
        ("CVC", "allocate"),
        ("SVC", "construct"),
        ("CVC", "transpose"),
        ("CVC", "seal"),
    ],
)
def test_lost_worker(store, expected, cluster, tmp_path, name, phase):
    """The other does its share, from the files and from what the client knows: the same bytes."""
    cluster.refill()
    victim = cluster.workers()[-1]
    pid = cluster.pid(victim)
    killed = []

    def kill(step, done, total):
        if step == phase and not killed:
            killed.append(victim)
            os.kill(pid, signal.SIGKILL)

    made = every_knob.partition(store, 4, name, tmp_path / "p", cluster.client, progress=kill, **OPTIONS)
    assert killed
    assert_same_bytes(expected(name, 2), made.url)
    assert kept(cluster.client) == []


@pytest.mark.kill
def test_all_workers_lost(store, cluster, tmp_path):
    """Nobody comes in their place: an error within the time that workers are waited for."""
    cluster.refill()
    pids = [cluster.pid(address) for address in cluster.workers()]

    def kill(step, done, total):
        if step == "edges" and pids:
            os.kill(pids.pop(), signal.SIGKILL)
            os.kill(pids.pop(), signal.SIGKILL)

    with dask.config.set({"oocgraph.worker-timeout": 1}), pytest.raises(ClusterError, match=r"has no workers, and none came within 1 s"):
        every_knob.partition(store, 4, "CVC", tmp_path / "p", cluster.client, progress=kill, **OPTIONS)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.kill
@pytest.mark.parametrize("workers", [1, 2])
def test_workers_that_nannies_start_again(store, tmp_path, caplog, workers):
    """All are lost at once: Dask looks for workers at the old addresses for ever. So does the check before a call, for those it knows."""
    (tmp_path / "cluster").mkdir()
    with Cluster(tmp_path / "cluster", workers=workers, nanny=True) as cluster:
        pids = [cluster.pid(address) for address in cluster.workers()]

        def kill(step, done, total):
            while pids:
                os.kill(pids.pop(), signal.SIGKILL)

        made = in_background(every_knob.partition, store, 4, "CVC", tmp_path / "p", cluster.client, progress=kill, **OPTIONS)
        assert_sound(made.result(timeout=PATIENCE_SECONDS), store)
        cluster.kill(*cluster.workers())
        assert reached(store, cluster.client) == reached(store, False)
    gc.collect()
    assert "never retrieved" not in caplog.text  # what was waited for before


def reached(store, client):
    return bfs(store, 0, resources=Resources(client=client)).num_reached
