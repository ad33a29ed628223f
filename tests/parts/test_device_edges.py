"""Searches over partitions whose edges are on a device: levels are those of the processor, in several orders of threads and streams."""

from __future__ import annotations

import numpy as np
import pytest

import oocgraph
from oocgraph import ArgumentError, BudgetError, Resources, open_runtime
from oocgraph.algorithms import partitioned_bfs
from oocgraph.arrays import DeviceChoice
from oocgraph.parts import local_parts
from oocgraph.plan.paths_residency import PathsResidency
from oocgraph.verify import verify_bfs
from tests.cuda_on_cpu.device import CpuDevice
from tests.engine.test_device import device, devices  # noqa: F401

ON_CPU, ON_DEVICE = Resources(device="cpu"), Resources(device="cuda", num_partitions=4)


@pytest.fixture
def use(monkeypatch):
    """Let searches find a device; returns a function that is given it."""

    def use(one):
        monkeypatch.setattr(partitioned_bfs, "device_choice", lambda kind, **_: DeviceChoice(one if kind != "cpu" else None, "a test"))
        return one

    return use


@pytest.fixture
def cramped(monkeypatch):
    """Make every plan a small one: few edges on the device, small batches and buffers."""
    original = local_parts.plan_paths_residency

    def cramp(share, row_capacity, buffer_bytes):
        def plan(sizes, **options):
            found = original(sizes, **options)
            return PathsResidency(
                num_resident=int(share * sizes.num_edges), row_capacity=row_capacity, buffer_bytes=buffer_bytes,
                device_bytes=found.device_bytes, host_bytes=found.host_bytes,
            )  # fmt: skip

        monkeypatch.setattr(local_parts, "plan_paths_residency", plan)

    return cramp


@pytest.fixture(scope="module")
def graphs(tmp_path_factory):
    """Build a Kronecker graph of scale 12, and a directed one with hubs."""
    folder, rng = tmp_path_factory.mktemp("graphs"), np.random.default_rng(1)
    ends = rng.integers(0, 4000, (2, 30_000)) ** 2 // 4000
    ends = np.concatenate([ends, [[5, 17], [0, 0]]], axis=1)
    directed = oocgraph.build_csr(tuple(ends), folder / "directed.zarr", directed=True)
    return [oocgraph.generate_kronecker(12, folder / "kron.zarr", seed=3), directed]


@pytest.mark.parametrize("cramp", [None, (0.5, 100, 4096), (0, 7, 64)])
@pytest.mark.parametrize("partition", ["1d", "2d", "hvc"])
def test_levels_are_those_of_the_processor(graphs, partition, cramp, use, cramped, device, tmp_path):  # noqa: F811
    """However many edges are on the device; the tree is valid, and nothing is left there."""
    use(device)
    if cramp is not None:
        cramped(*cramp)
    for store in graphs:
        parts, resources = partition, ON_DEVICE
        if partition == "hvc":
            parts = oocgraph.partition_graph(store, 3, policy="hvc", path=tmp_path / f"{store.attributes.directed}.parts")
            resources = Resources(device="cuda")
        with open_runtime(store, partition=parts, resources=resources) as runtime:
            for source in (5, 17):
                result = oocgraph.bfs(store, source, runtime=runtime)
                np.testing.assert_array_equal(result.level, oocgraph.bfs(store, source, resources=ON_CPU).level)
                verify_bfs(store, result)
                assert result.device == device.name
                assert 0 < result.device_bytes <= result.device_memory_budget
                assert (result.bytes_requested > 0) == (cramp is not None)
        if isinstance(device, CpuDevice):
            assert device.launched["expand_part<unsigned int>"]
            assert (device.allocated_bytes, device.pinned_bytes) == (0, 0)


@pytest.mark.shim
def test_where_they_are(graphs, use):
    """A device that is too small is refused where it was asked for; `auto` searches on the processor."""
    small = use(CpuDevice(total_bytes=1 << 20))
    with pytest.raises(BudgetError, match=r"a search over a part of .* set device_memory_budget"):
        oocgraph.bfs(graphs[0], 5, partition="2d", resources=ON_DEVICE)
    assert oocgraph.bfs(graphs[0], 5, partition="2d").device == "cpu"
    assert small.allocated_bytes == 0
    use(None)
    with pytest.raises(ArgumentError, match="device_memory_budget is given, but the search would run on the processor"):
        oocgraph.bfs(graphs[0], 5, partition="2d", resources=Resources(device_memory_budget="1G"))
