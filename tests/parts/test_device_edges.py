"""Searches over partitions whose edges are on a device: levels are those of the processor, in several orders of threads and streams."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import oocgraph
from oocgraph import ArgumentError, BudgetError, Resources, open_runtime
from oocgraph.algorithms import devices as devices_module
from oocgraph.arrays import DeviceChoice
from oocgraph.engine.cpu_engine import BUFFER_BYTES
from oocgraph.engine.device_graph import UPLOAD_BYTES
from oocgraph.memory import Budget
from oocgraph.parts import local_parts
from oocgraph.parts.partitioned import PartitionedRuntime
from oocgraph.verify import verify_bfs
from tests.cuda_on_cpu.device import CpuDevice
from tests.engine.test_device import device, devices  # noqa: F401

ON_CPU, ON_DEVICE = Resources(device="cpu"), Resources(device="cuda", num_partitions=4)

SMALLEST = (0, 7, 64)
"""No edges on the device, batches of 7 rows, buffers of 64 bytes."""


@pytest.fixture
def use(monkeypatch):
    """Let searches find a device; returns a function that is given it."""

    def use(one):
        monkeypatch.setattr(devices_module, "device_choice", lambda kind, **_: DeviceChoice(one if kind != "cpu" else None, "a test"))
        return one

    return use


@pytest.fixture
def cramped(monkeypatch):
    """Make every plan a small one: few edges on the device, small batches and buffers."""
    original = local_parts.plan_equal_shares

    def cramp(share, row_capacity, buffer_bytes):
        def plan(sizes, **options):
            return [
                replace(found, num_resident=int(share * one.num_edges), row_capacity=row_capacity, buffer_bytes=buffer_bytes)
                for one, found in zip(sizes, original(sizes, **options), strict=True)
            ]

        monkeypatch.setattr(local_parts, "plan_equal_shares", plan)

    return cramp


def with_hubs(folder, scale):
    """Build a Kronecker graph, and a directed one with about as many vertices."""
    num_vertices, rng = 1 << scale, np.random.default_rng(1)
    ends = rng.integers(0, num_vertices, (2, 7 * num_vertices)) ** 2 // num_vertices
    ends = np.concatenate([ends, [[5, 17], [0, 0]]], axis=1)
    directed = oocgraph.build_csr(tuple(ends), folder / "directed.zarr", directed=True)
    return [oocgraph.generate_kronecker(scale, folder / "kron.zarr", seed=3), directed]


@pytest.fixture(scope="module")
def graphs(tmp_path_factory):
    """Return graphs with hubs, with 4,096 vertices."""
    return with_hubs(tmp_path_factory.mktemp("graphs"), 12)


@pytest.fixture(scope="module")
def small_graphs(tmp_path_factory):
    """Return graphs with hubs whose edges fill hundreds of buffers of 64 bytes."""
    return with_hubs(tmp_path_factory.mktemp("small"), 9)


@pytest.fixture(scope="module")
def uneven(tmp_path_factory):
    """Build a directed graph with a hub, and 3 partitions of it."""
    folder, rng = tmp_path_factory.mktemp("uneven"), np.random.default_rng(1)
    source, target = rng.integers(0, 200_000, (2, 400_000))
    store = oocgraph.build_csr((source * rng.integers(0, 2, source.size), target), folder / "g.zarr", directed=True)
    return store, oocgraph.partition_graph(store, 3, policy="eec", path=folder / "parts")


@pytest.mark.one_in(6)
@pytest.mark.parametrize("cramp", [None, (0.5, 100, 4096), SMALLEST])
@pytest.mark.parametrize("partition", ["1d", "2d", "hvc"])
def test_levels_are_those_of_the_processor(graphs, small_graphs, partition, cramp, use, cramped, device, tmp_path):  # noqa: F811
    """However many edges are on the device; the tree is valid, and nothing is left there."""
    use(device)
    if cramp is not None:
        cramped(*cramp)
    for store in small_graphs if cramp == SMALLEST else graphs:
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
    with open_runtime(graphs[0], partition="2d") as there, open_runtime(graphs[0], partition="2d", resources=ON_CPU) as asked:
        assert there.runtime.budget.reservations == asked.runtime.budget.reservations
    assert small.allocated_bytes == 0
    use(None)
    with pytest.raises(ArgumentError, match="device_memory_budget is given, but the search would run on the processor"):
        oocgraph.bfs(graphs[0], 5, partition="2d", resources=Resources(device_memory_budget="1G"))


def opened(store, parts, memory_budget=1 << 40, device_limit=1 << 30, io_threads=2):
    """Load parts for a device with budgets of so many bytes."""
    return PartitionedRuntime(
        list(parts), num_vertices=store.num_rows, dtype=store.index_dtype, directed=True, budget=Budget(memory_budget, baseline_bytes=0),
        threads=2, io_threads=io_threads, device=CpuDevice(), device_limit=device_limit,
    )  # fmt: skip


@pytest.mark.shim
@pytest.mark.parametrize("name", ["memory_budget", "device_memory_budget"])
def test_a_budget_that_a_refusal_names_holds_parts_of_different_sizes(uneven, name):
    """The largest of them has twice as many vertices as the others."""
    budget = "device_limit" if name == "device_memory_budget" else name
    with pytest.raises(BudgetError, match=f" set {name} to at least") as refused:
        opened(*uneven, **{budget: 1 << 20})
    needed = int(str(refused.value).rpartition("at least ")[2].removesuffix("M")) << 20
    with opened(*uneven, **{budget: needed}) as runtime:
        assert (runtime.search(np.arange(2)).level >= 0).any()


@pytest.mark.shim
def test_reading_threads_of_each_part_are_charged(uneven):
    """As on the processor, where all parts have the same ones; with what passes on the way to the device and back."""
    charged = []
    for io_threads in (2, 12):
        with opened(*uneven, io_threads=io_threads) as runtime:
            charged.append(runtime.budget.reservations["edges being read"])
    assert charged[1] - charged[0] == 3 * 10 * BUFFER_BYTES
    vertices = sum(part.num_vertices for part in uneven[1])
    assert charged[0] >= 3 * 2 * BUFFER_BYTES + 2 * UPLOAD_BYTES + 2 * 4 * vertices
