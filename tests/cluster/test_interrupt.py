"""A search that is interrupted frees everything; what it has found stays only where the user named a place, and is gone on with there."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time

import dask
import numpy as np
import pytest
from distributed import Client

import oocgraph
from oocgraph import Resources
from oocgraph.cluster import worker as tasks
from oocgraph.cluster.searches import ClusterRuntime
from oocgraph.cluster.session import ClusterSession
from oocgraph.cluster.worker import OocGraphPlugin
from oocgraph.errors import ArgumentError, ClusterError, OocGraphError, OutputError, StoreError
from oocgraph.memory import host_bytes
from oocgraph.store.search_store import SearchStore
from tests.cluster import clusters
from tests.cluster.clusters import PATIENCE, ROOT, Trap
from tests.cluster.conftest import held
from tests.cluster.kill_fifty import SOURCE, judge
from tests.processes import program
from tests.reference_build import reference_build


def stop_at(level, error=KeyboardInterrupt):
    """Return a progress call that interrupts when a level is done."""

    def progress(kind, done, _):
        if kind == "level" and done >= level:
            raise error

    return progress


@pytest.fixture
def folder(kron):
    """Return the folder of the graph; afterwards no temporary store is there."""
    parent = os.path.dirname(kron[0].url)
    yield parent
    assert [name for name in os.listdir(parent) if name.startswith(".oocgraph")] == []


def no_tasks(client):
    """Wait until the scheduler has forgotten all tasks."""

    async def wait(dask_scheduler=None):
        import asyncio

        while dask_scheduler.tasks:
            await asyncio.sleep(0.01)

    client.run_on_scheduler(wait)


@pytest.mark.parametrize("error", [KeyboardInterrupt, ZeroDivisionError])
def test_a_runtime_can_be_used_after_an_interrupt(kron, client, folder, error):
    """Nothing of the search is left on its workers but the graph; the next search is right."""
    store, levels = kron
    with ClusterRuntime.open(store, client=client) as runtime:
        for level in (1, 3):
            with pytest.raises(error):
                oocgraph.bfs(store, SOURCE, runtime=runtime, direction="alpha-beta", progress=stop_at(level, error))
            no_tasks(client)
            assert all(said["searches"] == [] and len(said["parts"]) == 1 for said in client.run(tasks.inventory).values())
        judge(store, oocgraph.bfs(store, SOURCE, runtime=runtime), levels)


def interrupt_at(trap, send=lambda: os.kill(os.getpid(), signal.SIGINT)):
    """Press Ctrl-C when a worker has been stopped, then have it go on."""
    trap.wait()
    send()
    trap.let_go()


@pytest.mark.parametrize("phase", ["read", "kernel", "transfer", "finish"])
def test_an_interrupt_while_a_worker_is_busy(kron, client, folder, phase):
    """In any phase of a step, or while the result is written: the worker ends that step and forgets the search."""
    store, _ = kron
    oocgraph.bfs(store, SOURCE, client=client)  # workers have imported by then what they need
    budget = max(client.run(host_bytes).values()) + (45 << 20)  # most edges are on disk
    with Trap(client, phase) as trap:
        interrupting = clusters.in_background(interrupt_at, trap)
        with pytest.raises(KeyboardInterrupt):
            oocgraph.bfs(store, SOURCE, client=client, direction="pull", memory_budget=budget)
        interrupting.result(timeout=PATIENCE)
    client.run(untrap)
    no_tasks(client)


def untrap():
    """Run on a worker: do not stop again."""
    OocGraphPlugin.on_phase = None


def test_an_interrupt_while_the_graph_is_loaded(kron, client, folder, monkeypatch):
    """Loading goes on for a while on the workers; then what was loaded goes."""

    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(ClusterSession, "_result", interrupted)
    with pytest.raises(KeyboardInterrupt):
        oocgraph.bfs(kron[0], SOURCE, client=client)
    no_tasks(client)


def test_a_client_or_a_runtime_closed_under_a_search(kron, process_cluster, client, folder):
    """The search ends with an error that says so; workers have nothing left at the latest when the next one opens a graph."""
    store, levels = kron
    own = Client(process_cluster, set_as_default=False)
    with pytest.raises(ClusterError, match=r"was lost \(client closed\).*; what was found is lost, because the result store is temporary"):
        oocgraph.bfs(store, SOURCE, client=own, direction="alpha-beta", progress=lambda *_: own.close())
    with ClusterRuntime.open(store, client=client) as runtime:
        for _ in range(2):
            with pytest.raises(ArgumentError, match="the runtime is closed; open another one"):
                oocgraph.bfs(store, SOURCE, runtime=runtime, direction="alpha-beta", progress=lambda *_: runtime.close())
    judge(store, oocgraph.bfs(store, SOURCE, client=client), levels)


@pytest.mark.parametrize("level", [1, 3])
def test_a_named_store_is_gone_on_with(kron, client, folder, tmp_path, level):
    """By another runtime, with another number of threads: from its last step, to the right result."""
    store, levels = kron
    with dask.config.set({"oocgraph.steps-per-task": 1}), pytest.raises(KeyboardInterrupt):
        oocgraph.bfs(store, SOURCE, client=client, direction="alpha-beta", result_store=tmp_path / "r.zarr", progress=stop_at(level))
    assert held(client) == []
    stored = SearchStore.open(tmp_path / "r.zarr")
    assert not stored.complete
    *_, last = stored.records(0, clusters.last_step(kron[0], stored), clusters.bounds(kron[0], stored)[0])
    reached = last.level
    result = oocgraph.bfs(store, SOURCE, client=client, direction="alpha-beta", resume=tmp_path / "r.zarr")
    judge(store, result, levels)
    assert result.iterations[0].level == reached + 1 > level
    assert SearchStore.open(tmp_path / "r.zarr").complete


CHILD = """
import sys
from distributed import Client
import oocgraph

if __name__ == "__main__":
    address, graph, *place = sys.argv[1:]
    with Client(address) as client:
        print("ready", flush=True)
        try:
            oocgraph.bfs(graph, SOURCE, result_store=place[0] if place else None)
        except KeyboardInterrupt:
            print("interrupted", flush=True)
            raise
"""


@pytest.mark.parametrize("named", [False, True])
def test_ctrl_c_ends_a_program(kron, client, folder, tmp_path, named):
    """Its search is in the middle of a step; it ends soon, as interrupted programs do."""
    script = tmp_path / "search.py"
    script.write_text(CHILD.replace("SOURCE", str(SOURCE)))
    place = [str(tmp_path / "r.zarr")] if named else []
    command = [sys.executable, str(script), client.scheduler.address, kron[0].url, *place]
    with Trap(client, "kernel", 1) as trap:
        env = {**os.environ, "PYTHONPATH": str(ROOT)}
        with program(command, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as child:
            interrupt_at(trap, lambda: child.send_signal(signal.SIGINT))
            said, errors = child.communicate(timeout=PATIENCE)
    client.run(untrap)
    assert said.split() == ["ready", "interrupted"], errors
    assert child.returncode == -signal.SIGINT
    assert errors.rstrip().endswith("KeyboardInterrupt")
    assert held(client) == []
    if named:
        judge(kron[0], oocgraph.bfs(kron[0], SOURCE, client=client, resume=place[0]), kron[1])


# What is not gone on with.


@pytest.fixture
def begun(kron, client, tmp_path):
    """Return the store of a search that was interrupted."""
    options = {"client": client, "result_store": tmp_path / "begun.zarr", "depth_limit": 9, "direction": "alpha-beta"}
    with pytest.raises(KeyboardInterrupt):
        oocgraph.bfs(kron[0], [SOURCE, 3], **options, progress=stop_at(1))
    return tmp_path / "begun.zarr"


def test_another_search_is_not_gone_on_with(kron, client, folder, begun, tmp_path):
    """Other sources, depth, graph or partitions; the store stays as it is."""
    store, _ = kron
    reference_build(np.arange(9), np.arange(1, 10), tmp_path / "other.zarr", implied=(0, 10))
    before = {path: path.stat().st_mtime_ns for path in begun.rglob("*")}

    def refused(match, graph=store, source=(SOURCE, 3), **options):
        with pytest.raises(OocGraphError, match=match):
            oocgraph.bfs(graph, list(source), **{"client": client, "depth_limit": 9, "resume": begun, **options})

    refused(r"begun\.zarr holds another search: sources differ", source=[SOURCE])
    refused("depth limit differ", depth_limit=8)
    refused("graph fingerprint and sources differ from what is asked for; resume with the same graph", tmp_path / "other.zarr", (1, 3))
    refused("was begun with 2 partitions, not 3; leave out", resources=Resources(num_partitions=3))
    with ClusterRuntime.open(store, client=client, num_partitions=3) as runtime:
        refused("is of 2 partitions, the runtime of 3; open one with as many", client=None, runtime=runtime)
        refused("the runtime has its own resources", client=None, runtime=runtime, resources=Resources(num_partitions=2))
    assert {path: path.stat().st_mtime_ns for path in begun.rglob("*")} == before
    assert oocgraph.bfs(store, [3, SOURCE], client=client, depth_limit=9, resume=begun).num_reached > 2


def test_a_search_that_runs_is_not_gone_on_with(kron, client, folder, tmp_path):
    """The second one is refused before it asks anything of a worker, and the first one ends as if there had been none."""
    store, levels = kron
    place, refusals = tmp_path / "r.zarr", []

    def resume(kind, done, _):
        if kind == "level" and done == 1:
            with pytest.raises(OutputError) as refused:
                oocgraph.bfs(store, SOURCE, client=client, direction="alpha-beta", resume=place)
            refusals.append(str(refused.value))

    judge(store, oocgraph.bfs(store, SOURCE, client=client, direction="alpha-beta", result_store=place, progress=resume), levels)
    who = f"process {os.getpid()} of host {socket.gethostname()}"
    assert set(refusals) == {f"another search ({who}) writes to {place}: wait for it, or give another result_store"}
    assert sorted(path.name for path in place.iterdir()) == ["parts", "zarr.json"]
    judge(store, oocgraph.bfs(store, SOURCE, client=client, resume=place), levels)


def test_a_search_that_begins_where_another_has_begun_meanwhile_is_refused(kron, client, folder, tmp_path, monkeypatch):
    """Both found the place free, and have loaded the graph."""
    store, levels = kron
    create, place = SearchStore.create, tmp_path / "r.zarr"

    def late(*arguments, **options):
        monkeypatch.undo()
        judge(store, oocgraph.bfs(store, SOURCE, client=client, resume=place), levels)
        return create(*arguments, **options)

    monkeypatch.setattr(SearchStore, "create", late)
    with pytest.raises(OutputError, match=rf"another search has begun in {place} meanwhile: wait for it, and go on with resume={place}"):
        oocgraph.bfs(store, SOURCE, client=client, resume=place)


def test_what_holds_no_search_is_not_gone_on_with(kron, client, folder, tmp_path):
    with pytest.raises(StoreError, match="not the result store of a search"):
        oocgraph.bfs(kron[0], SOURCE, client=client, resume=tmp_path)


def test_a_complete_search_is_handed_back(kron, client, folder, tmp_path):
    """Nothing is searched again; where nothing is yet, the search begins."""
    store, levels = kron
    for first in (True, False):
        began = time.time_ns()
        result = oocgraph.bfs(store, SOURCE, client=client, resume=tmp_path / "r.zarr")
        judge(store, result, levels)
        assert bool(result.iterations) == first
        assert ((tmp_path / "r.zarr" / "zarr.json").stat().st_mtime_ns > began) == first
    assert result.seconds > 0
