"""What cannot work on a cluster is refused before anything is loaded, with one clear error, and nothing is left behind."""

from __future__ import annotations

import importlib
import logging
import threading
import time
from contextlib import contextmanager
from types import SimpleNamespace

import dask
import numpy as np
import pytest
from distributed import Client, LocalCluster

import oocgraph
from oocgraph import Resources
from oocgraph.clients import is_running, wait_for_tasks, why_lost, workers_of
from oocgraph.cluster import preflight
from oocgraph.cluster.preflight import check_device_is_used, check_workers
from oocgraph.cluster.searches import ClusterRuntime
from oocgraph.errors import ArgumentError, ArgumentTypeError, BudgetError, ClusterError, OocGraphError, OutputError, StoreError
from oocgraph.store.graph import open_graph
from tests.cluster.conftest import QUIET
from tests.processes import PATIENCE_SECONDS
from tests.reference_build import reference_build


@pytest.fixture
def graph(tmp_path):
    """Return a path of ten vertices; afterwards the folder is as before."""
    (tmp_path / "data").mkdir()
    reference_build(np.arange(9), np.arange(1, 10), tmp_path / "data" / "g.zarr")
    yield open_graph(tmp_path / "data" / "g.zarr")
    assert [path.name for path in (tmp_path / "data").iterdir()] == ["g.zarr"]


@pytest.fixture(autouse=True)
def patient():
    """Give workers an hour to come, so that nothing but a decision ends a search."""
    with dask.config.set({"oocgraph.worker-timeout": "1h"}):
        yield


@contextmanager
def changed(client, name, value, *, one=True):
    """Replace something (``package.module:name``) in the process of the last worker, or in all."""
    workers = sorted(workers_of(client))[-1:] if one else None
    saved = client.run(put, name, value, workers=workers)
    try:
        yield next(iter(saved))
    finally:
        client.run(put, name, None, workers=workers)


def put(name, value, dask_worker=None):
    """Run on a worker: set a name of a module; None brings back what was there."""
    module, _, attribute = name.partition(":")
    owner = importlib.import_module(module)
    if value is not None:
        dask_worker.saved = getattr(owner, attribute)
    setattr(owner, attribute, dask_worker.saved if value is None else value)
    return dask_worker.address


def refused(kind, match, graph, client, **options):
    """Search, and expect an error long before a worker that does not come would be given up."""
    began = time.monotonic()
    with pytest.raises(kind, match=match):
        oocgraph.bfs(graph, 0, client=client, **options)
    assert time.monotonic() - began < 60


def test_closed_client(graph, process_cluster):
    client = Client(process_cluster, set_as_default=False)
    client.close()
    refused(ClusterError, r"the client is closed; connect a new one: distributed\.Client", graph, client)


def test_client_closed_under_a_runtime(graph, process_cluster, client):
    """The runtime says the same; what workers hold for it goes when the next one opens a graph."""
    own = Client(process_cluster, set_as_default=False)
    runtime = ClusterRuntime.open(graph, client=own)
    own.close()
    with pytest.raises(ClusterError, match="the client is closed"):
        oocgraph.bfs(graph, 0, runtime=runtime)
    runtime.close()
    ClusterRuntime.open(graph, client=client).close()


def test_asynchronous_client(graph):
    """It cannot be waited for here; as the current one it is passed over."""

    async def search():
        async with Client(processes=False, n_workers=1, asynchronous=True, **QUIET) as client:
            refused(ClusterError, "asynchronous=False", graph, client)
            assert type(oocgraph.bfs(graph, 0)).__name__ == "BFSResult"

    import asyncio

    asyncio.run(search())


def test_not_a_client(graph):
    refused(ArgumentTypeError, "client is 'tcp://here:8786'; give a distributed.Client", graph, "tcp://here:8786")


def test_no_workers_in_time(graph):
    """The message names the setting, and how to start one."""
    with (
        LocalCluster(n_workers=0, **QUIET) as empty,
        Client(empty, set_as_default=False) as client,
        dask.config.set({"oocgraph.worker-timeout": "300ms"}),
    ):
        refused(ClusterError, r"none came within 0\.3 s \(oocgraph\.worker-timeout\); start some: dask worker tcp://", graph, client)


def test_workers_that_are_paused(graph):
    """They are there: the message says for what Dask gives them nothing to do, and none of it waits for ever."""
    with (
        LocalCluster(
            n_workers=2, threads_per_worker=1, memory_limit="500MiB", config={"distributed.worker.memory.pause": 0.05}, **QUIET
        ) as cluster,
        Client(cluster, set_as_default=False) as client,
        dask.config.set({"oocgraph.worker-timeout": "300ms"}),
    ):
        while any(map(is_running, workers_of(client).values())):
            time.sleep(0.05)
        said = (
            r"Dask has paused 2 workers for the memory held .*, the fullest at \d+\.\d MiB of 500\.0 MiB, .* give each worker more memory"
        )
        refused(ClusterError, said, graph, client)
        with pytest.raises(ClusterError, match=said):
            wait_for_tasks(client, [client.submit(int)], 0.3)


def hoard():
    """Run in a task: hold more memory than the worker may, until it is ended."""
    held = np.ones(60 << 20)
    threading.Event().wait()
    return held


def test_workers_that_nannies_have_ended_for_their_memory(graph):
    """Before a search and in it: the message says so, how much the last one held, and what to do."""
    with (
        LocalCluster(n_workers=1, threads_per_worker=1, memory_limit="400MiB", **QUIET) as cluster,
        Client(cluster, set_as_default=False) as client,
        dask.config.set({"oocgraph.worker-timeout": "300ms"}),
        ClusterRuntime.open(graph, client=client) as runtime,
    ):
        assert why_lost(client) == ""
        noted = threading.Event()
        client.subscribe_topic("worker-restart-memory", lambda event: noted.set())
        hoarding = client.submit(hoard)
        assert noted.wait(PATIENCE_SECONDS)
        hoarding.cancel()
        cluster.scale(0)
        while workers_of(client):
            pass
        ended = r"nannies have ended \d workers? in the last 5 minutes for the memory .* \d+\.\d MiB .*: give each worker more memory"
        refused(ClusterError, rf"none came within .*; {ended}", graph, client)
        with pytest.raises(ClusterError, match=rf"no worker is left, .*; {ended}"):
            oocgraph.bfs(graph, 0, runtime=runtime)


@pytest.mark.parametrize(
    ("name", "value", "match"),
    [
        ("oocgraph:__version__", "0.0.7", r"worker tcp://\S+ on 127.0.0.1 has oocgraph 0\.0\.7 .* the client has \S+ .*; install the same"),
        ("oocgraph.store.layout:FORMAT", 99, r"has oocgraph \S+ \(store format 99\), the client has \S+ \(format 1\)"),
    ],
)
def test_workers_of_another_version(graph, client, name, value, match):
    """One of them is enough."""
    with changed(client, name, value):
        refused(ClusterError, match, graph, client)


def test_workers_without_oocgraph(graph, client):
    """They cannot even be asked by its own functions."""

    def hide(dask_worker=None):
        import sys

        dask_worker.hidden = sys.modules["oocgraph"]
        sys.modules["oocgraph"] = None

    def show(dask_worker=None):
        import sys

        sys.modules["oocgraph"] = dask_worker.hidden

    client.run(hide)
    try:
        refused(ClusterError, r"it cannot import oocgraph .*; install oocgraph \S+ there", graph, client)
    finally:
        client.run(show)


def test_a_path_that_only_the_client_sees(graph, client):
    """The error of the worker is in the message, with its address and the path."""

    def fail(url):
        raise StoreError(f"{url}: no such store")

    with changed(client, "oocgraph.store.graph:open_graph", fail):
        refused(ClusterError, rf"cannot open the graph at {graph.url}: .*no such store.*every worker sees", graph, client)


def test_a_path_that_means_another_graph_there(graph, client):
    """Its fingerprint is another."""
    with changed(client, "oocgraph.store.fingerprint:graph_fingerprint", lambda _: "another"):
        refused(ClusterError, rf"sees another graph at {graph.url} than the client", graph, client)


@pytest.mark.parametrize("partitions", [0, -1, 2.0, "2", True])
def test_a_number_of_partitions_that_is_none(partitions):
    with pytest.raises(ValueError, match=r"num_partitions is .*; it must be a whole number, 1 or more"):
        Resources(num_partitions=partitions)


def test_a_number_of_partitions_that_cannot_be(graph, client):
    many = Resources(num_partitions=11)
    refused(ValueError, r"num_partitions is 11, of 10 vertices.*whole number from 1 to 10", graph, client, resources=many)


def test_partitions_that_do_not_fit_the_memory(graph, client):
    """Each takes some megabytes, however small; the message names a worker and a budget."""
    refused(BudgetError, r"worker tcp://\S+ cannot take partition .* of 10: .*set memory_budget .*at least \d+M; or use more workers",
            graph, client, resources=Resources(num_partitions=10), memory_budget="160M")  # fmt: skip


def test_a_budget_that_is_no_size(graph, client):
    """StepReport as in one process."""
    refused(OocGraphError, "'much' is not a size", graph, client, memory_budget="much")


def test_a_result_store_that_is_there_already(graph, client, tmp_path):
    """It is not touched."""
    (tmp_path / "r.zarr").mkdir()
    refused(OutputError, r"r\.zarr: exists already; go on with its search with resume=", graph, client, result_store=tmp_path / "r.zarr")
    refused(OutputError, "there is no folder", graph, client, result_store=tmp_path / "no" / "r.zarr")
    refused(OutputError, "local file systems only; give a path", graph, client, result_store="s3://bucket/r.zarr")
    refused(OocGraphError, "give one of them", graph, client, result_store=tmp_path / "a.zarr", resume=tmp_path / "b.zarr")
    assert list((tmp_path / "r.zarr").iterdir()) == []


def test_a_folder_that_the_client_cannot_write(graph, client):
    """The message names what else to set."""
    refused(OutputError, r"^/proc: results cannot be written here .*oocgraph\.result-folder", graph, client, result_store="/proc/r.zarr")


@pytest.mark.parametrize(("name", "what"), [("os.path:exists", "does not see"), ("os:access", "cannot write to")])
def test_a_folder_that_workers_do_not_see_or_cannot_write(graph, client, tmp_path, name, what):
    """It is tried with a file that the client leaves there for a moment."""
    (tmp_path / "results").mkdir()
    with changed(client, name, lambda *_: False):
        match = rf"{what} the folder of results {tmp_path / 'results'}; set oocgraph\.result-folder"
        refused(ClusterError, match, graph, client, result_store=tmp_path / "results" / "r.zarr")
    assert list((tmp_path / "results").iterdir()) == []


@pytest.mark.parametrize(("name", "what"), [("os.path:exists", "does not see"), ("os:access", "cannot write to")])
def test_a_folder_of_partitions_that_workers_do_not_see_or_cannot_write(graph, client, tmp_path, name, what):
    """One error names the folder and the remedy: another path, or the setting where they are made for a search. Nothing is left."""
    (tmp_path / "out").mkdir()
    folder = rf"worker tcp://\S+ on 127\.0\.0\.1 {what} the folder of partitions"
    with changed(client, name, lambda *_: False):
        with pytest.raises(ClusterError, match=rf"{folder} {tmp_path / 'out'}; choose another path, .*every worker sees"):
            oocgraph.partition_graph(graph, 2, policy="EEC", path=tmp_path / "out" / "parts", client=client)
        with dask.config.set({"oocgraph.result-folder": str(tmp_path / "out")}):
            refused(ClusterError, rf"{folder} {tmp_path / 'out'}/\S+; set oocgraph\.result-folder", graph, client, partition="1d")
    assert list((tmp_path / "out").iterdir()) == []


def test_a_folder_for_results_that_is_not_there(graph, client, tmp_path):
    with dask.config.set({"oocgraph.result-folder": str(tmp_path / "no")}):
        refused(OutputError, "results cannot be written here", graph, client)


@pytest.mark.parametrize(
    ("answers", "match"),
    [
        ({}, "the scheduler at tcp://there has lost its workers"),
        ({"w": OSError("gone")}, "worker w could not be asked what it sees: OSError"),
    ],
)
def test_workers_that_do_not_answer(graph, monkeypatch, answers, match):
    """They went between the question and the answer."""
    client = SimpleNamespace(run=None, scheduler=SimpleNamespace(address="tcp://there"))
    monkeypatch.setattr(preflight, "ask", lambda *_, **__: answers)
    monkeypatch.setattr(preflight, "wait_for_worker", lambda *_: None)
    with pytest.raises(ClusterError, match=match):
        check_workers(client, graph.url, "f", None)


@pytest.mark.parametrize("protocol", ["ucx", "ucxx"])
def test_a_cluster_that_speaks_ucx(graph, protocol):
    """Refused with one message, before workers are asked."""
    client = SimpleNamespace(
        scheduler_info=None,
        submit=None,
        asynchronous=False,
        status="running",
        scheduler=SimpleNamespace(address=f"{protocol}://10.0.0.1:1"),
    )
    with pytest.raises(ClusterError, match=f"the cluster's protocol is {protocol}.* protocol='tcp'"):
        oocgraph.bfs(graph, 0, client=client)


def test_a_device_budget_that_no_worker_heeds():
    """The message names what was asked for, the first worker and its reason; one worker on a GPU is enough."""
    on_processors = [("tcp://a:1", "cpu", "there is none"), ("tcp://b:1", "cpu", "another reason")]
    message = "no worker would rank on a GPU; worker tcp://a:1: there is none; leave it out"
    with pytest.raises(ArgumentError, match=f"^device_memory_budget is given, but {message}$"):
        check_device_is_used("1G", "rank", on_processors)
    check_device_is_used("1G", "rank", [*on_processors, ("tcp://c:1", "a GPU", "it is free")])
    check_device_is_used(None, "rank", on_processors)
    check_device_is_used("1G", "rank", [])


class Kept(logging.Handler):
    """Keeps what is logged."""

    def __init__(self):
        super().__init__(logging.ERROR)
        self.said = []

    def emit(self, record):
        self.said.append(record.getMessage())


def test_refusals_are_not_logged_beside_the_error(graph, threads_client):
    """Of a budget that is too small Dask would log a traceback for each time that it is tried; whatever else fails it logs."""
    kept, logger = Kept(), logging.getLogger("distributed.worker")
    logger.addHandler(kept)
    try:
        with pytest.raises(BudgetError, match="too small"), dask.config.set({"oocgraph.worker-timeout": "1s"}):
            oocgraph.bfs(graph, 0, client=threads_client, memory_budget="1M")
        assert not kept.said
        with pytest.raises(ValueError, match="of our own"):
            threads_client.submit(fail, "of our own").result()
        assert "ValueError" in kept.said[0]
    finally:
        logger.removeHandler(kept)


def fail(why):
    raise ValueError(why)
