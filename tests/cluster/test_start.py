"""Clusters of this machine: worker processes as asked for, ended with the context, quiet."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

import dask
import pytest
from distributed import Client, LocalCluster

from oocgraph.clients import workers_of
from oocgraph.cluster import start as cluster
from oocgraph.cluster.start import cuda_cluster, local_cluster, open_client
from oocgraph.errors import ClusterError, MissingDependencyError
from oocgraph.memory import default_budget_bytes
from tests.processes import PATIENCE_SECONDS


def running(pid):
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def limits(client):
    return {worker["memory_limit"] for worker in workers_of(client).values()}


@pytest.fixture(scope="module")
def pair():
    """Client of two workers of one thread and 300 MiB; not to be disturbed."""
    with local_cluster(workers=2, threads_per_worker=1, worker_memory="300M") as client:
        yield client


def test_workers_are_processes_with_threads_and_limit(pair):
    """As many as asked for, each with its own process and memory limit."""
    pids = set(pair.run(os.getpid).values())
    assert len(pids | {os.getpid()}) == 3
    assert set(pair.nthreads().values()) == {1}
    assert limits(pair) == {300 << 20}


def test_workers_leave_interrupts_to_the_client(pair):
    """SIGINT reaches every process of a terminal; workers block it, and their parent stops them."""
    masks = pair.run(lambda: signal.pthread_sigmask(signal.SIG_BLOCK, []))
    assert all(signal.SIGINT in mask for mask in masks.values())
    assert signal.SIGINT not in signal.pthread_sigmask(signal.SIG_BLOCK, [])


def test_workers_are_not_paused_for_data_that_cannot_be_spilled(pair):
    """Dask's thresholds below the limit are off at the workers, and untouched here."""
    keys = [f"distributed.worker.memory.{name}" for name in ("target", "spill", "pause", "terminate")]
    at_workers = pair.run(lambda: [dask.config.get(key) for key in keys])
    assert all(found == [False, False, False, 0.95] for found in at_workers.values())
    assert [dask.config.get(key) for key in keys] == [0.6, 0.7, 0.8, 0.95]


def test_configured_thresholds_stay():
    """What the user has set is not overridden."""
    with dask.config.set({"distributed.worker.memory.pause": 0.9}), local_cluster(workers=1) as client:
        (pause,) = client.run(lambda: dask.config.get("distributed.worker.memory.pause")).values()
    assert pause == 0.9


@pytest.mark.parametrize(
    ("options", "workers", "threads"),
    [({}, 4, 1), ({"workers": 2}, 2, 2), ({"threads_per_worker": 4}, 1, 4), ({"workers": 3}, 3, 1), ({"workers": 8}, 8, 1)],
)
def test_cores_are_shared_out(monkeypatch, options, workers, threads):
    """On four cores: one worker each by default; threads fill what fewer workers leave."""
    asked = []

    def made(**options):
        asked.append(options)
        return LocalCluster(n_workers=0, dashboard_address=None, scheduler_kwargs=options["scheduler_kwargs"])

    monkeypatch.setattr(cluster, "num_cores", lambda: 4)
    monkeypatch.setattr("distributed.LocalCluster", made)
    with local_cluster(**options):
        pass
    (found,) = asked
    assert (found["n_workers"], found["threads_per_worker"]) == (workers, threads)
    assert 0.5 * default_budget_bytes() < workers * found["memory_limit"] < 1.5 * default_budget_bytes()


@pytest.mark.parametrize(
    ("memory", "words"),
    [
        ("100M", ["100.0 MiB", "at least 288.0 MiB", "--worker-memory"]),
        ("900T", ["2 workers of 900.0 TiB", "1800.0 TiB"]),
    ],
)
def test_memory_that_cannot_be_is_refused(memory, words):
    """Too little for a worker to live, or more than the machine has: refused before anything starts."""
    with pytest.raises(ClusterError) as refused, local_cluster(workers=2, worker_memory=memory):
        pytest.fail("started")
    assert all(word in str(refused.value) for word in words)


def test_processes_end_with_the_context():
    """Also when the body raises."""
    pids = []

    def fail():
        with local_cluster(workers=1) as client:
            pids.extend(client.run(os.getpid).values())
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert len(pids) == 1
    assert not running(pids[0])


KILL = """
import os, signal
from oocgraph.cluster.start import local_cluster

with local_cluster(workers=1) as client:
    (pid,) = client.run(os.getpid).values()
    os.kill(pid, signal.SIGKILL)
    while not any(isinstance(now, int) and now != pid for now in client.run(os.getpid, on_error="return").values()):
        pass
    print("back")
"""


@pytest.mark.kill
@pytest.mark.parametrize("logs", ["", "warning"])
def test_killed_worker_is_told_only_to_those_who_asked(logs):
    """A worker that is killed comes back under its nanny; Dask's log of it is held back unless logging is configured."""
    env = {**os.environ, **({"DASK_LOGGING__DISTRIBUTED": logs} if logs else {})}
    done = subprocess.run([sys.executable, "-c", KILL], env=env, capture_output=True, text=True, check=False, timeout=PATIENCE_SECONDS)
    assert (done.returncode, done.stdout) == (0, "back\n"), done.stderr
    assert ("Restarting worker" in done.stderr) == bool(logs)
    assert logs or done.stderr == ""


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({}, ["no cluster", "--scheduler", "--cluster"]),
        ({"scheduler": "a:1", "cluster": "local"}, ["--scheduler a:1", "--cluster local", "one of them"]),
        ({"scheduler": "a:1", "threads_per_worker": 2}, ["--threads-per-worker", "run already"]),
        ({"scheduler": "a:1", "worker_memory": "1G"}, ["--worker-memory", "run already"]),
        ({"cluster": "cloud"}, ["cloud", "local or cuda"]),
        ({"cluster": "local", "workers": 0}, ["--workers is 0"]),
        ({"cluster": "local", "workers": True}, ["--workers is True"]),
        ({"cluster": "local", "threads_per_worker": 1.5}, ["--threads-per-worker is 1.5"]),
    ],
)
def test_contradictions_are_refused(options, words):
    """The message names the options."""
    with pytest.raises(ClusterError) as refused, open_client(**options):
        pytest.fail("opened")
    assert all(word in str(refused.value) for word in words)


@pytest.fixture
def hasty(monkeypatch):
    """Wait a moment for workers that do not come, whatever the setting; for the scheduler as long as it takes."""
    wait = cluster.wait_for_workers
    monkeypatch.setattr(cluster, "wait_for_workers", lambda client, num_workers, _: wait(client, num_workers, 0.1))
    with dask.config.set({"oocgraph.worker-timeout": "10 minutes"}):
        yield


@pytest.mark.usefixtures("hasty")
def test_client_of_a_running_cluster_waits_for_its_workers(pair):
    """`workers` with a scheduler: how many must be there."""
    with open_client(scheduler=pair.scheduler.address, workers=2) as client:
        assert len(client.nthreads()) == 2
    with (
        pytest.raises(ClusterError, match=r"2 of 3 workers are there after 600 s"),
        open_client(scheduler=pair.scheduler.address, workers=3),
    ):
        pytest.fail("opened")


@pytest.mark.usefixtures("hasty")
def test_scheduler_without_workers_is_told():
    """A search there would wait for ever."""
    with (
        LocalCluster(n_workers=0, dashboard_address=None, scheduler_kwargs={"dashboard_address": ":0"}) as empty,
        pytest.raises(ClusterError, match=r"0 of 1 workers"),
        open_client(scheduler=empty.scheduler_address),
    ):
        pytest.fail("opened")


def test_missing_packages_are_named(monkeypatch):
    """Without distributed, or without dask-cuda: what to install."""
    monkeypatch.setitem(sys.modules, "dask_cuda", None)
    with pytest.raises(MissingDependencyError, match=r"oocgraph\[cuda13\].*--cluster local works without a GPU"), cuda_cluster():
        pytest.fail("opened")
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(MissingDependencyError, match=r"dask\[distributed\]"), local_cluster():
        pytest.fail("opened")


def test_client_is_the_current_one(pair):
    """`oocgraph.bfs` without a client finds it."""
    assert isinstance(Client.current(), Client)
    assert Client.current() is pair
