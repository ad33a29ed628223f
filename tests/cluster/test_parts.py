"""Traversals over parts on Dask clusters: what is found and counted is what a search in process finds and counts; lost workers."""

from __future__ import annotations

import gc
from pathlib import Path

import dask
import dask.array as da
import numpy as np
import pytest
from distributed import Client

import oocgraph
from oocgraph import Resources
from oocgraph.arrays import drivers
from oocgraph.clients import workers_of
from oocgraph.cluster import parts as cluster_parts
from oocgraph.cluster.parts import PartitionedClusterRuntime
from oocgraph.cluster.worker import PLUGIN
from oocgraph.errors import BudgetError, OocGraphError
from oocgraph.memory import Budget
from oocgraph.partition.policies import named_policy
from oocgraph.parts.partitioned import PartitionedRuntime
from oocgraph.store.search_store import SearchStore
from oocgraph.verify import verify_search
from tests import every_knob
from tests.cluster.clusters import Cluster


def in_process(store, partitions, sources, depth_limit=None):
    """Search in process."""
    with PartitionedRuntime(
        list(partitions), num_vertices=store.num_rows, dtype=store.index_dtype, directed=store.attributes.directed,
        budget=Budget(1 << 40), threads=2, io_threads=2,
    ) as runtime:  # fmt: skip
        return runtime.search(sources, depth_limit=depth_limit)


def left(client):
    """Return what workers hold and what they have not sent."""

    def look(dask_worker=None):
        plugin = dask_worker.plugins.get(PLUGIN)
        return [] if plugin is None else [*plugin.resident, *plugin.exchange.outbox]

    return [one for found in client.run(look).values() for one in found]


def partitions_of(store, folder, name, num_parts):
    """Partition a graph by one of the policies that there are."""
    order = store.attributes.vertex_order
    policy = named_policy(name, vertex_order=order)
    return every_knob.partition(store, num_parts, policy, folder / f"{name}-{num_parts}")


@pytest.mark.one_in(2)
@pytest.mark.parametrize(("name", "num_parts"), [("1d", 4), ("2d", 4), ("2d", 6), ("HVC", 3)])
def test_a_search_is_the_same_as_in_process(kron, threads_client, tmp_path, name, num_parts):
    """Levels, messages and bytes of every level, with a depth limit too; more parts than workers; nothing is left behind."""
    store, _ = kron
    partitions = partitions_of(store, tmp_path, name, num_parts)
    sources = np.array([5, 77])
    with PartitionedClusterRuntime(partitions, store, Resources(client=threads_client)) as runtime:
        for depth_limit in (None, 2, 0):
            found = runtime.search_here(sources, depth_limit=depth_limit)
            here = in_process(store, partitions, sources, depth_limit)
            np.testing.assert_array_equal(found.level, here.level)
            verify_search(store, sources, found.parent, found.level, depth_limit=depth_limit)
            assert [one.exchanged for one in found.iterations] == [one.exchanged for one in here.iterations]
            facts = ("num_reached", "num_reached_edges", "depth")
            assert [getattr(found, fact) for fact in facts] == [getattr(here, fact) for fact in facts]
    assert left(threads_client) == []


def test_four_parts_on_four_worker_processes(kron, tmp_path):
    """Each part has a process of its own, and every message goes from one to another: through connections, or shared memory."""
    store, _ = kron
    partitions = partitions_of(store, tmp_path, "2d", 4)
    with Cluster(tmp_path, workers=4) as cluster:
        for exchange in ("messages", "windows"):
            with (
                dask.config.set({"oocgraph.exchange": exchange}),
                PartitionedClusterRuntime(partitions, store, Resources(client=cluster.client)) as runtime,
            ):
                found = runtime.search_here(np.array([0]))
                assert sorted(set(runtime.placement.addresses)) == sorted(runtime.placement.addresses)
            assert {part.worker for part in found.iterations[0].parts} == set(runtime.placement.addresses)
            np.testing.assert_array_equal(found.level, in_process(store, partitions, np.array([0])).level)


def test_a_worker_without_memory_is_named(kron, threads_client, tmp_path):
    store, _ = kron
    with pytest.raises(BudgetError, match=r"worker .* cannot take 2 of 4 parts: .* needs .* or use more workers"):
        PartitionedClusterRuntime(partitions_of(store, tmp_path, "1d", 4), store, Resources(client=threads_client, memory_budget="1M"))
    assert left(threads_client) == []


@pytest.mark.parametrize("partition", ["1d", "2d"])
def test_partitions_made_on_the_fly_on_a_cluster(kron, threads_client, partition):
    """`oocgraph.bfs` with a client: valid, one part for each worker, nothing left beside the graph or on the workers."""
    store, _ = kron
    found = oocgraph.bfs(store, 5, client=threads_client, partition=partition)
    oocgraph.verify_bfs(store, found)
    assert (found.partition, found.num_partitions) == (partition, 2)
    assert set(found.workers) == set(workers_of(threads_client))
    assert left(threads_client) == []
    del found
    gc.collect()
    assert not list(Path(store.url).parent.glob(".*"))


def test_the_result_is_of_dask_arrays_in_a_result_store(kron, threads_client, tmp_path, monkeypatch):
    """Put together piece by piece; what has ended is taken over, what has not begins again, another search is refused."""
    store, _ = kron
    monkeypatch.setattr(cluster_parts, "ASKED_VERTICES", 10_000)
    made = partitions_of(store, tmp_path, "2d", 4)
    options = {"client": threads_client, "partition": made}
    found = oocgraph.bfs(store, 5, **options, result_store=tmp_path / "result.zarr", depth_limit=3)
    here = oocgraph.bfs(store, 5, depth_limit=3)
    assert isinstance(found.level, da.Array)
    np.testing.assert_array_equal(found.level, here.level)
    oocgraph.verify_bfs(store, found)
    facts = ("num_reached", "num_reached_edges", "depth")
    assert [getattr(found, fact) for fact in facts] == [getattr(here, fact) for fact in facts]
    assert found.summary()["num_steps"] > len(found.iterations)
    again = oocgraph.bfs(store, 5, **options, resume=tmp_path / "result.zarr", depth_limit=3)
    assert (again.iterations, again.num_reached) == ((), found.num_reached)
    np.testing.assert_array_equal(again.level, here.level)
    SearchStore.open(tmp_path / "result.zarr").update(complete=False)
    again = oocgraph.bfs(store, 5, **options, resume=tmp_path / "result.zarr", depth_limit=3)
    assert len(again.iterations) == len(found.iterations)
    for other in ({"partition": "1d"}, {"partition": None}, {"depth_limit": 2}):
        with pytest.raises(OocGraphError, match=r"holds another search: (partition|depth limit)"):
            oocgraph.bfs(store, 5, **{**options, "depth_limit": 3, **other}, resume=tmp_path / "result.zarr")


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ({"direction": "pull"}, "searches over partitions are top-down"),
        ({"resources": Resources(device="cuda")}, "no NVIDIA driver is found"),
    ],
)
def test_what_is_not_taken_is_told_with_the_reason(kron, given, why, monkeypatch):
    monkeypatch.setattr(drivers, "DRIVER_LIBRARY", "libcuda-that-is-not-there.so.1")
    with pytest.raises(OocGraphError, match=why):
        oocgraph.bfs(kron[0], 5, partition="2d", **given)


def test_a_result_store_needs_a_cluster(kron):
    with pytest.raises(OocGraphError, match="resume is given, but the search runs in this process; pass client"):
        oocgraph.bfs(kron[0], 5, partition="2d", resume="r")


def test_what_a_client_has_left_is_given_back(kron, thread_cluster, threads_client, tmp_path):
    """A client that goes without a word leaves its parts on the workers until the next comes."""
    store, _ = kron
    partitions = partitions_of(store, tmp_path, "1d", 2)
    with Client(thread_cluster, set_as_default=False) as other:
        PartitionedClusterRuntime(partitions, store, Resources(client=other))
    assert left(threads_client)
    with PartitionedClusterRuntime(partitions, store, Resources(client=threads_client)) as runtime:
        assert set(left(threads_client)) == {runtime.session.lease}
    assert left(threads_client) == []
