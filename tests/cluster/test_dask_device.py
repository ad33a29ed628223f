"""Searches on a cluster whose workers have devices: real processes, each with a device of its own, or two that share one."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from distributed import Client, LocalCluster

import oocgraph
from oocgraph import ArgumentError, BudgetError, Resources
from oocgraph.arrays import device_choice, drivers
from oocgraph.clients import workers_of
from oocgraph.cluster import worker_device
from oocgraph.cluster.searches import ClusterRuntime
from oocgraph.cluster.worker import PLUGIN, inventory
from oocgraph.errors import DeviceError, OocGraphError
from oocgraph.verify import verify_bfs
from tests.cluster.clusters import PATIENCE, Cluster, Trap, in_background
from tests.cluster.conftest import QUIET
from tests.engine import device_parts

pytestmark = pytest.mark.shim


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    """Return a Kronecker graph of scale 12, and the levels that one process finds."""
    store = oocgraph.generate_kronecker(12, tmp_path_factory.mktemp("kron") / "graph.zarr", seed=3)
    return store, oocgraph.bfs(store, 5, resources=Resources(device="cpu")).level


@pytest.fixture(scope="module")
def large(tmp_path_factory):
    """Return a Kronecker graph of scale 16: 7 MiB of edges."""
    return oocgraph.generate_kronecker(16, tmp_path_factory.mktemp("large") / "graph.zarr", seed=3)


def with_shim(client, **options):
    """Let every worker have a device."""
    client.run(device_parts.use_shim, **options)


def lose_device():
    """Run on a worker: its device is lost at the next call."""
    device_parts.opened[-1].fail_after = 1


def keep_device():
    """Run on a worker: its device is not lost, unless it has been already."""
    device_parts.opened[-1].fail_after = None


def told():
    """Run on a worker: what its devices have done."""
    return [(device.launched.total(), device.peak_bytes, device.allocated_bytes) for device in device_parts.opened]


@pytest.fixture
def two_workers(tmp_path):
    """Client of two worker processes that no other test has used."""
    with Cluster(tmp_path, workers=2) as cluster:
        yield cluster.client


@pytest.fixture
def devices_client(two_workers):
    """Client of two worker processes, each with a device."""
    with_shim(two_workers, total_bytes=256 << 20)
    yield two_workers
    assert [said for said in two_workers.run(inventory).values() if any(said.values())] == []


def test_workers_search_on_their_devices(devices_client, small):
    """Every direction, from the user's ids to a validated result that names the devices."""
    client, (store, expected) = devices_client, small
    for direction in ("pull", "alpha-beta", "auto"):
        result = oocgraph.bfs(store, 5, client=client, direction=direction, resources=Resources(device_memory_budget="16M"))
        assert (result.level.compute() == expected).all()
        verify_bfs(store, result)
        assert (result.device, result.device_memory_budget) == ("CPU (shim)", 32 << 20)
        assert 0 < result.device_bytes <= 32 << 20
        assert result.link_bytes == sum(part.link_bytes for one in result.iterations for part in one.parts)
        if direction == "pull":
            assert all(one.device is not None for one in result.iterations)
    assert all(launched and peak <= 16 << 20 and not left for said in client.run(told).values() for launched, peak, left in said)
    assert oocgraph.bfs(store, 5, client=client, resources=Resources(device="cpu")).device == "cpu"
    assert len(result.to_pandas()) == store.attributes.num_input_vertices


def test_two_clients_and_more_partitions_than_workers(devices_client, small):
    """Their searches interleave on the partitions that they share."""
    client, (store, expected) = devices_client, small
    with (
        Client(client.scheduler.address, set_as_default=False) as second,
        ClusterRuntime.open(store, client=client, num_partitions=3) as one,
        ClusterRuntime.open(store, client=second, num_partitions=3) as other,
    ):
        searches = [in_background(oocgraph.bfs, store, 5, runtime=runtime, direction="pull") for runtime in (one, other) * 2]
        for search in searches:
            assert (search.result(timeout=PATIENCE).level.compute() == expected).all()


def test_a_device_that_is_lost_ends_the_search_not_the_worker(devices_client, small):
    """The message names worker, partition and level; the next search finds a device that was opened again."""
    client, (store, expected) = devices_client, small
    with ClusterRuntime.open(store, client=client) as runtime:
        lost = runtime.addresses[1]
        client.run(lose_device, workers=[lost])
        with pytest.raises(DeviceError, match=rf"worker {lost}: partition 1, level 1: CPU \(shim\): the device was lost"):
            oocgraph.bfs(store, 5, runtime=runtime, direction="pull")
    assert (oocgraph.bfs(store, 5, client=client, direction="pull").level.compute() == expected).all()
    assert sorted(len(said) for said in client.run(told).values()) == [1, 2]


def test_a_worker_that_is_killed(tmp_path, small):
    """Its partition goes to the other, whose own is loaded again with less of the device; its state comes from the logs."""
    store, expected = small
    with Cluster(tmp_path, workers=2) as cluster:
        with_shim(cluster.client)
        with ClusterRuntime.open(store, client=cluster.client, device_memory_budget="14M") as runtime:
            with Trap(cluster.client, "kernel", step=2, partition=1) as trap:
                search = trap.watch(in_background(oocgraph.bfs, store, 5, runtime=runtime, direction="pull"))
                trap.kill()
                result = search.result(timeout=PATIENCE)
            assert (result.level.compute() == expected).all()
            verify_bfs(store, result)
            assert runtime.num_moves == 1
            assert sum(part["device_bytes"] for part in runtime.parts) <= 14 << 20
            said = cluster.client.run(told)
            assert [peak <= 14 << 20 for devices in said.values() for _, peak, _ in devices] == [True]


def without_driver():
    """Run on a worker: there is no driver here, whatever there is."""
    drivers.DRIVER_LIBRARY = "libcuda-that-is-not-there.so.1"


def test_workers_without_a_gpu(two_workers, small):
    """`cuda` is refused in the name of one, `auto` takes what each worker has, a device budget that nobody heeds is refused."""
    client, (store, expected) = two_workers, small
    client.run(without_driver)
    with pytest.raises(DeviceError, match=r"worker tcp://.*: no NVIDIA driver is found"):
        oocgraph.bfs(store, 5, client=client, resources=Resources(device="cuda"))
    with pytest.raises(OocGraphError, match=r"device_memory_budget is given.* on a GPU; worker tcp://.*no NVIDIA driver"):
        oocgraph.bfs(store, 5, client=client, resources=Resources(device_memory_budget="1G"))
    with pytest.raises(OocGraphError, match="device is 'tpu'"):
        oocgraph.bfs(store, 5, client=client, resources=Resources(device="tpu"))
    client.run(device_parts.use_shim, workers=list(workers_of(client))[:1])
    result = oocgraph.bfs(store, 5, client=client, direction="pull")
    assert result.device == "CPU (shim), cpu"
    assert (result.level.compute() == expected).all()


def test_workers_of_one_machine_share_its_device(small):
    """Without a budget each gets an equal part of what there is."""
    store, expected = small
    with (
        LocalCluster(n_workers=2, threads_per_worker=1, processes=False, **QUIET) as cluster,
        Client(cluster, set_as_default=False) as client,
    ):
        before = device_parts.use_shim()
        try:
            with ClusterRuntime.open(store, client=client) as runtime:
                assert runtime.placement.device_metrics["device_memory_budget"] <= 0.9 * (1 << 30) + 2
                result = oocgraph.bfs(store, 5, runtime=runtime, direction="alpha-beta")
            assert (result.level.compute() == expected).all()
        finally:
            device_parts.worker_device.open_device = before
            device_parts.opened.clear()


@pytest.fixture(scope="module")
def weighted(tmp_path_factory):
    """Return a directed graph with weights, and what one process makes of it: products and ranks."""
    rng = np.random.default_rng(8)
    ends = rng.integers(0, 3000, (2, 40_000)) ** 2 // 3000
    table = pd.DataFrame({"source": ends[0], "target": ends[1], "weight": rng.random(40_000)})
    store = oocgraph.build_csr(table, tmp_path_factory.mktemp("weighted") / "g.zarr", weight="weight", directed=True, duplicates="min")
    return store, rng.random(store.num_vertices)


def kept(client):
    """Ask what workers keep of matrices."""
    return [one for said in client.run(inventory).values() for one in said["matrices"]]


@pytest.mark.one_in(4)
@pytest.mark.parametrize("transpose", [False, True])
@pytest.mark.parametrize("semiring", ["plus_times", "min_plus", "or_and", "plus_second"])
def test_workers_multiply_on_their_devices(devices_client, weighted, transpose, semiring):
    """A graph's parts are read by workers, a matrix's are sent; cut rows are put together."""
    store, x = weighted
    x = x > 0.5 if semiring == "or_and" else x
    for operand, column in ((store, x), (store.to_scipy(dtype=np.float64), x), (store.to_scipy(dtype=np.float64).tocsc(), x)):
        options = {"transpose": transpose, "semiring": semiring}
        expected = oocgraph.spmv(operand, column, **options, resources=Resources(device="cpu", client=False))
        before = [sum(one[0] for one in said) for said in devices_client.run(told).values()]
        found = oocgraph.spmv(operand, column, **options, client=devices_client, resources=Resources(device="cuda"))
        assert all(sum(one[0] for one in said) > count for said, count in zip(devices_client.run(told).values(), before, strict=True))
        np.testing.assert_allclose(found, expected, rtol=1e-12)
        assert kept(devices_client) == []


def test_workers_keep_their_parts_on_devices_while_a_runtime_is_open(devices_client, weighted):
    """The second product reads nothing; searches, products and ranks share the device; a budget that nothing can heed is refused."""
    store, x = weighted
    expected = oocgraph.spmv(store, x, resources=Resources(device="cpu", client=False))
    with oocgraph.open_runtime(store, client=devices_client, resources=Resources(device="cuda", device_memory_budget="16M")) as runtime:
        for _ in range(2):
            np.testing.assert_allclose(oocgraph.spmv(store, x, runtime=runtime), expected, rtol=1e-12)
            (first, size), (second, _) = kept(devices_client)
            assert first == second == runtime.lease
            assert size > 0
        levels = oocgraph.bfs(store, 5, runtime=runtime).level.compute()
        assert (levels == oocgraph.bfs(store, 5, resources=Resources(device="cpu", client=False)).level).all()
        ranked = oocgraph.pagerank(store, runtime=runtime)
        alone = oocgraph.pagerank(store, resources=Resources(device="cpu", client=False))
        np.testing.assert_allclose(ranked.rank, alone.rank, atol=1e-10)
        assert len(kept(devices_client)) == 4
    assert kept(devices_client) == []
    assert all(not left for said in devices_client.run(told).values() for _, _, left in said)


@pytest.mark.parametrize("weight", [True, False])
def test_workers_rank_on_their_devices(devices_client, weighted, weight):
    """As one process does, but for rounding; with a personalization, too."""
    store, _ = weighted
    for personalization in (None, {int(vertex): 1.0 for vertex in range(7)}):
        options = {"weight": weight, "personalization": personalization, "tol": 1e-12}
        expected = oocgraph.pagerank(store, **options, resources=Resources(device="cpu", client=False))
        found = oocgraph.pagerank(store, **options, client=devices_client, resources=Resources(device="cuda"))
        np.testing.assert_allclose(found.rank, expected.rank, atol=1e-10)
        assert found.kept_bytes == 0  # nothing is kept without a runtime
    assert all(launched and not left for said in devices_client.run(told).values() for launched, _, left in said)


def test_products_and_ranks_with_too_small_a_device(devices_client, weighted):
    """`cuda` names the worker and the budget that works, `auto` computes on the processor; a device that is lost is named."""
    store, x = weighted
    expected = oocgraph.spmv(store, x, resources=Resources(device="cpu", client=False))
    small = Resources(device="cuda", device_memory_budget="16K")
    with pytest.raises(BudgetError, match=r"worker tcp://.*device_memory_budget"):
        oocgraph.spmv(store, x, client=devices_client, resources=small)
    with pytest.raises(BudgetError, match=r"worker tcp://.*device_memory_budget"):
        oocgraph.pagerank(store, client=devices_client, resources=small)
    devices_client.run(lose_device)
    with pytest.raises(DeviceError, match=r"worker tcp://.*the device was lost"):
        oocgraph.spmv(store, x, client=devices_client, resources=Resources(device="cuda"))
    devices_client.run(keep_device)  # of the worker that had not come to it
    np.testing.assert_allclose(oocgraph.spmv(store, x, client=devices_client), expected, rtol=1e-12)


def test_other_computations_of_workers_without_a_gpu(two_workers, weighted):
    """`cuda` is refused in the name of a worker, a device budget that nobody heeds is refused, `auto` computes on the processors."""
    store, x = weighted
    two_workers.run(without_driver)
    calls = (
        oocgraph.pagerank,
        lambda graph, **options: oocgraph.spmv(graph, x, **options),
        lambda graph, **options: oocgraph.bfs(graph, 5, partition="1d", **options),
    )
    for call in calls:
        with pytest.raises(DeviceError, match=r"worker tcp://.*: no NVIDIA driver is found"):
            call(store, client=two_workers, resources=Resources(device="cuda"))
        with pytest.raises(ArgumentError, match=r"device_memory_budget is given.* on a GPU; worker tcp://.*no NVIDIA driver"):
            call(store, client=two_workers, resources=Resources(device_memory_budget="1G"))


@pytest.mark.parametrize("partition", ["1d", "2d", "cvc"])
def test_workers_expand_parts_on_their_devices(devices_client, small, partition, tmp_path):
    """The levels are those of one process, the result names the devices; they are given back."""
    store, expected = small
    parts = oocgraph.partition_graph(store, 3, policy="cvc", path=tmp_path / "parts") if partition == "cvc" else partition
    result = oocgraph.bfs(store, 5, client=devices_client, partition=parts, resources=Resources(device="cuda"))
    assert (np.asarray(result.level) == expected).all()
    verify_bfs(store, result)
    assert result.device == "CPU (shim)"
    assert 0 < result.device_bytes <= result.device_memory_budget
    assert all(launched and not left for said in devices_client.run(told).values() for launched, _, left in said)
    with pytest.raises(BudgetError, match=r"worker tcp://.*device_memory_budget"):
        oocgraph.bfs(store, 5, client=devices_client, partition=parts, resources=Resources(device="cuda", device_memory_budget="64K"))


def forget_device(dask_worker=None):
    """Run on a worker: its device is no longer there."""
    without_driver()
    worker_device.open_device = device_choice
    dask_worker.plugins[PLUGIN].worker_state.device._opened = None


@pytest.mark.parametrize(("budget", "finds_room"), [(12, False), (16, True)])
def test_products_and_ranks_of_a_runtime_keep_to_its_device_budget(devices_client, large, budget, finds_room):
    """Where they find no room beside searches they are computed on the processor, even if a GPU was asked for."""
    x = np.random.default_rng(3).random(large.num_vertices)
    here = Resources(device="cpu", client=False)
    product, ranks = oocgraph.spmv(large, x, resources=here), oocgraph.pagerank(large, resources=here)
    resources = Resources(device="cuda", device_memory_budget=budget << 20)
    with oocgraph.open_runtime(large, client=devices_client, resources=resources) as runtime:
        assert runtime.resources == replace(resources, client=devices_client)
        np.testing.assert_allclose(oocgraph.spmv(large, x, runtime=runtime), product, rtol=1e-12)
        assert len(kept(devices_client)) == (2 if finds_room else 0)
        np.testing.assert_allclose(oocgraph.pagerank(large, runtime=runtime).rank, ranks.rank, atol=1e-10)
        assert len(kept(devices_client)) == (2 if finds_room else 0)  # the ranks' matrices take the room of the product's
    peaks = [peak for said in devices_client.run(told).values() for _, peak, _ in said]
    assert 0 < max(peaks) <= budget << 20


def test_a_product_of_a_runtime_on_gpus_that_have_gone(devices_client, weighted):
    """The device that was asked for is not replaced by the processor in silence."""
    store, x = weighted
    with oocgraph.open_runtime(store, client=devices_client, resources=Resources(device="cuda")) as runtime:
        devices_client.run(forget_device)
        for call in (oocgraph.pagerank, lambda graph, **options: oocgraph.spmv(graph, x, **options)):
            with pytest.raises(DeviceError, match=r"worker tcp://.*: no NVIDIA driver is found"):
                call(store, runtime=runtime)
