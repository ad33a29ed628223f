"""Dask collections become stores: workers compute the partitions, and the client takes one at a time."""

from __future__ import annotations

import asyncio
import threading
import time
import weakref
from contextlib import contextmanager

import dask
import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from distributed import Client, LocalCluster, get_worker
from distributed.core import Status

from oocgraph import Resources, bfs, build_csr
from oocgraph.clients import wait_for_workers, wanted
from oocgraph.errors import ArgumentError, BudgetError, ClusterError, InputError
from oocgraph.ingest.sources import dask_collections
from tests.cluster.clusters import PATIENCE
from tests.ingest.helpers_build import assert_same_store, budget_of


@pytest.fixture
def edges(tmp_path):
    """Return a Parquet file of edges with weights and text, of 16 row groups."""
    rng = np.random.default_rng(3)
    source, target = rng.integers(0, 2000, (2, 16_000))
    table = pa.table({"source": source, "target": target, "weight": rng.random(16_000), "kind": rng.choice(["a", "b"], 16_000)})
    pq.write_table(table, tmp_path / "edges.parquet", row_group_size=1000)
    return tmp_path / "edges.parquet"


@pytest.fixture
def fetched(monkeypatch):
    """Record the partitions that the client fetches; each must have gone when the next one comes."""
    references = []
    original = dask_collections._fetched

    def fetch(*arguments):
        assert not any(one() is not None for one in references)
        values = original(*arguments)
        references.extend(weakref.ref(one) for one in values)
        return values

    monkeypatch.setattr(dask_collections, "_fetched", fetch)
    return references


def test_a_frame_gives_the_store_of_its_parquet_file(client, edges, fetched, tmp_path):
    options = {"columns": (None, None, "kind"), "weight": "weight", "duplicates": "first"}
    build_csr(edges, tmp_path / "expected", **options)
    with client.as_current():
        build_csr(dd.read_parquet(edges, split_row_groups=True), tmp_path / "found", **options)
    assert_same_store(tmp_path / "expected", tmp_path / "found")
    assert len(fetched) == 16


def test_arrays_are_computed_on_workers(client, fetched, tmp_path):
    def block(block_info=None):
        get_worker()  # raises in any other process
        start = block_info[None]["array-location"][0][0]
        return np.stack([np.arange(start, start + 100), np.arange(start, start + 100) + 1], axis=1)

    with client.as_current():
        graph = build_csr(da.map_blocks(block, chunks=((100,) * 5, (2,)), dtype=int), tmp_path / "g")
    assert (graph.num_vertices, graph.num_edges, len(fetched)) == (501, 500, 5)


def test_numbers_in_the_byte_order_of_other_processors_are_taken(client):
    """As of arrays in memory."""
    source, target = np.array([1, 2, 3], ">i8"), np.array([2, 3, 5], ">i4")
    frame = dd.from_pandas(pd.DataFrame({"source": source, "target": target}), npartitions=2)
    for given in (frame, (da.from_array(source), da.from_array(target))):
        graph = build_csr(given, client=client)
        assert graph.neighbors(3).tolist() == [2, 5]


def test_persisted_partitions_are_taken_from_the_workers(client, fetched, tmp_path):
    frame = pd.DataFrame({"source": np.arange(100), "target": np.arange(100)[::-1]})
    with client.as_current():
        graph = build_csr(dd.from_pandas(frame, npartitions=4).persist(), tmp_path / "g")
    assert (graph.num_edges, len(fetched)) == (50, 4)


COMPUTED = []
"""Partitions that workers in this process have computed."""


def load_and_count(index):
    COMPUTED.append(index)
    return pd.DataFrame({"source": [index], "target": [index + 1]})


def test_few_partitions_are_computed_ahead(threads_client, tmp_path):
    """Those that wait on workers are bounded by the threads that these have, and one more."""
    ahead = []
    COMPUTED.clear()

    def progress(step, done, total):
        if step == "copy edges":
            ahead.append(len(COMPUTED) - done)

    with threads_client.as_current():
        build_csr(
            dd.from_map(load_and_count, range(40), meta=pd.DataFrame({"source": [1], "target": [2]})), tmp_path / "g", progress=progress
        )
    assert sorted(COMPUTED) == list(range(40))
    assert 1 <= max(ahead) <= sum(threads_client.nthreads().values()) + 1


def test_a_failing_partition_is_named_and_nothing_is_left(client, tmp_path):
    def load(index):
        if index == 3:
            raise RuntimeError("no such tape")
        return pd.DataFrame({"source": [1], "target": [2]})

    with client.as_current(), pytest.raises(InputError, match=r"partition 3 of the 5 of the Dask DataFrame.*RuntimeError: no such tape"):
        build_csr(dd.from_map(load, range(5), meta=load(0)), tmp_path / "g")
    assert not (tmp_path / "g").exists()


def test_a_partition_is_refused_before_it_is_fetched(client, fetched, tmp_path):
    edges = da.random.default_rng(1).integers(0, 1000, (8_000_000, 2), chunks=(4_000_000, 2))
    build_csr(([0], [1]), tmp_path / "first")  # what this process imports and compiles counts
    with client.as_current(), pytest.raises(BudgetError, match=r"partition 0 of the 2.*needs 61\.0 MiB.*or make it smaller"):
        build_csr(edges, tmp_path / "g", memory_budget=budget_of(tmp_path, 20))
    assert not fetched


def test_the_client_may_be_given_or_left_aside(client, fetched, tmp_path):
    frame = dd.from_pandas(pd.DataFrame({"source": np.arange(100), "target": np.arange(100)[::-1]}), npartitions=4)
    build_csr(frame, tmp_path / "a", client=client)
    assert len(fetched) == 4
    with client.as_current():
        build_csr(frame, tmp_path / "b", resources=Resources(client=False))
        build_csr(([0], [1]), tmp_path / "c")
    assert len(fetched) == 4
    assert_same_store(tmp_path / "a", tmp_path / "b")
    with pytest.raises(ArgumentError, match="Dask collections only, not tuple"):
        build_csr(([0], [1]), tmp_path / "d", client=client)
    with pytest.raises(TypeError, match=r"give a distributed\.Client"):
        build_csr(frame, tmp_path / "d", client="tcp://localhost:1")
    assert not (tmp_path / "d").exists()


EDGES = pd.DataFrame({"source": np.arange(60), "target": np.arange(60) + 1})


def slowly(frame):
    time.sleep(0.5)
    return frame


@contextmanager
def threads(num_workers):
    """Yield a cluster of threads, and its client, which is the current one."""
    options = {"threads_per_worker": 1, "processes": False, "dashboard_address": None, "scheduler_kwargs": {"dashboard_address": ":0"}}
    with LocalCluster(n_workers=num_workers, **options) as cluster, Client(cluster) as client:
        yield cluster, client


def test_a_client_without_workers_is_refused(tmp_path):
    with (
        threads(0),
        dask.config.set({"oocgraph.worker-timeout": "300ms"}),
        pytest.raises(ClusterError, match=r"no workers, and none came within 0\.3 s"),
    ):
        build_csr(da.ones((4, 2), dtype=int), tmp_path / "g")


@pytest.mark.parametrize(
    ("happens", "said"),
    [
        (lambda cluster, _: cluster.scale(0), r"has no workers, and none came within 1 s"),
        (lambda _, client: client.restart(wait_for_workers=False), r"has been cancelled, by client\.restart"),
    ],
    ids=["all workers go for good", "the tasks are cancelled"],
)
def test_what_will_never_be_computed_is_not_waited_for(tmp_path, happens, said):
    """Dask would wait for it for ever, or raise an error of its own."""
    frame = dd.from_pandas(EDGES, npartitions=6).map_partitions(slowly, meta=EDGES)
    with threads(1) as (cluster, client), dask.config.set({"oocgraph.worker-timeout": "1s"}):
        happening = threading.Timer(0.7, happens, [cluster, client])
        happening.start()
        with pytest.raises(ClusterError, match=said):
            build_csr(frame, tmp_path / "g")
        happening.join()
    assert list(tmp_path.iterdir()) == []


def until(condition):
    deadline = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def count_slowly(frame):
    COMPUTED.append(int(frame["source"].iloc[0]))
    return slowly(frame)


def test_workers_that_are_replaced_compute_what_was_lost(tmp_path):
    """With what they have computed and nobody has fetched; a client that takes its time is not told that nobody came."""
    frame = dd.from_pandas(EDGES, npartitions=6).map_partitions(count_slowly, meta=EDGES)
    COMPUTED.clear()
    with threads(1) as (cluster, _), dask.config.set({"oocgraph.worker-timeout": "1s"}):
        first, taken = set(cluster.scheduler.workers), []

        def progress(step, done, total):
            if step == "copy edges" and not taken:
                taken.append(done)
                until(lambda: len(COMPUTED) >= 2)
                cluster.scale(0)
                until(lambda: not cluster.scheduler.workers)
                threading.Timer(0.3, cluster.scale, [1]).start()
                time.sleep(1.5)

        assert build_csr(frame, tmp_path / "g", progress=progress).num_edges == 60
        assert taken
        assert not first & set(cluster.scheduler.workers)
    assert len(COMPUTED) > 6


def test_an_adaptive_cluster_that_begins_without_workers(tmp_path):
    """It starts one for tasks that wait, more as long as some do, and retires them when they have had nothing to do for a while."""
    frame = dd.from_pandas(EDGES, npartitions=12).map_partitions(count_slowly, meta=EDGES)
    with threads(0) as (cluster, _):
        cluster.adapt(minimum=0, maximum=2, interval="200ms", wait_count=10, target_duration="100ms")
        graph, most = None, []

        def progress(step, done, total):
            most.append(len(cluster.scheduler.workers))

        graph = build_csr(frame, tmp_path / "g", progress=progress)
        assert graph.num_edges == 60
        assert max(most) == 2
        until(lambda: not cluster.scheduler.workers)
        assert bfs(graph, 0, result_store=tmp_path / "r").depth == 60


def test_a_worker_that_is_closing_is_none():
    """The scheduler lists it until it has gone, and gives it no tasks: another must be asked for."""
    with threads(1) as (cluster, client):
        (worker,) = cluster.scheduler.workers.values()
        worker.status = Status.closing_gracefully
        with wanted(client):
            until(lambda: any(key.startswith("oocgraph-waits") for key in cluster.scheduler.tasks))
            assert wait_for_workers(client, 1, 0) == 0
        until(lambda: not cluster.scheduler.tasks)
        worker.status = Status.running
        assert wait_for_workers(client, 1, 0) == 1


def test_clients_that_cannot_be_used_are_refused(tmp_path):
    frame = dd.from_pandas(EDGES, npartitions=3)

    async def build(address, *, is_current):
        async with Client(address, asynchronous=True, set_as_default=is_current) as client:
            return build_csr(frame, tmp_path / "here") if is_current else build_csr(frame, tmp_path / "g", client=client)

    with dask.config.set(scheduler="threads"), threads(1) as (cluster, client):  # Dask leaves that of an asynchronous client in place
        client.close()
        with pytest.raises(ClusterError, match="the client is closed"):
            build_csr(frame, tmp_path / "g", client=client)
        with pytest.raises(ClusterError, match="the client is asynchronous"):
            asyncio.run(build(cluster.scheduler_address, is_current=False))
        assert asyncio.run(build(cluster.scheduler_address, is_current=True)).num_edges == 60
    assert not (tmp_path / "g").exists()
