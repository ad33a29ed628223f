"""Searches on a cluster whose workers have devices: real processes, each with a device of its own, or two that share one."""

from __future__ import annotations

import pytest
from distributed import Client, LocalCluster

import oocgraph
from oocgraph import Resources
from oocgraph.arrays import drivers
from oocgraph.cluster.scheduler import workers_of
from oocgraph.cluster.searches import ClusterRuntime
from oocgraph.cluster.worker import inventory
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


def with_shim(client, **options):
    """Let every worker have a device."""
    client.run(device_parts.use_shim, **options)


def lose_device():
    """Run on a worker: its device is lost at the next call."""
    device_parts.opened[-1].fail_after = 1


def told():
    """Run on a worker: what its devices have done."""
    return [(device.launched.total(), device.peak_bytes, device.allocated_bytes) for device in device_parts.opened]


@pytest.fixture
def devices_client():
    """Client of two worker processes, each with a device."""
    with LocalCluster(n_workers=2, threads_per_worker=1, **QUIET) as cluster, Client(cluster, set_as_default=False) as client:
        with_shim(client, total_bytes=256 << 20)
        yield client
        assert [said for said in client.run(inventory).values() if any(said.values())] == []


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


def test_workers_without_a_gpu(small):
    """`cuda` is refused in the name of one, `auto` takes what each worker has, a device budget that nobody heeds is refused."""
    store, expected = small
    with LocalCluster(n_workers=2, threads_per_worker=1, **QUIET) as cluster, Client(cluster, set_as_default=False) as client:
        client.run(without_driver)
        with pytest.raises(DeviceError, match=r"worker tcp://.*: no NVIDIA driver is found"):
            oocgraph.bfs(store, 5, client=client, resources=Resources(device="cuda"))
        with pytest.raises(OocGraphError, match=r"device_memory_budget was given.* on a GPU; worker tcp://.*no NVIDIA driver"):
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
                assert runtime.device_metrics["device_memory_budget"] <= 0.9 * (1 << 30) + 2
                result = oocgraph.bfs(store, 5, runtime=runtime, direction="alpha-beta")
            assert (result.level.compute() == expected).all()
        finally:
            device_parts.worker_device.open_device = before
            device_parts.opened.clear()
