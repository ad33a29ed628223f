"""Shortest paths on a device: distances and parents are the processor's, in several orders of threads and streams."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

import oocgraph
from oocgraph import ArgumentError, BudgetError, CorruptStoreError, Resources, open_runtime, sssp, verify_sssp
from oocgraph.algorithms import devices as algorithms_devices
from oocgraph.arrays import DeviceChoice
from oocgraph.engine.staged import StagedEdges
from oocgraph.errors import DeviceError
from oocgraph.kernels.gpu_paths import path_names
from oocgraph.plan import paths_residency
from tests.cuda_on_cpu.device import CpuDevice
from tests.engine.test_device import device, devices  # noqa: F401
from tests.stores import rewrite

NO_SHRINKING = [Phase.explicit, Phase.reuse, Phase.generate]
ON_CPU, ON_DEVICE = Resources(device="cpu"), Resources(device="cuda", threads=2)
WEIGHTS = ["uint8", "int64", "float64"]  # of others tests/kernels/test_cuda_paths.py


@pytest.fixture
def use(monkeypatch):
    """Let searches find a device; returns a function that is given it."""

    def use(one):
        monkeypatch.setattr(algorithms_devices, "device_choice", lambda kind, **_: DeviceChoice(one if kind != "cpu" else None, "a test"))
        return one

    return use


@pytest.fixture
def cramped(monkeypatch):
    """Make every plan a small one: few edges on the device, small batches and buffers."""
    monkeypatch.setattr(paths_residency, "PAGE_BYTES", 1)

    def cramp(rng):
        original = paths_residency.plan_paths_residency

        def plan(sizes, **options):
            found = original(sizes, **options)
            small = {
                "num_resident": int(rng.integers(0, sizes.num_edges + 1)),
                "row_capacity": int(rng.choice([1, 7, 100, 1000])),
                "buffer_bytes": int(rng.choice([64, 4096, 1 << 20])),
            }
            return paths_residency.PathsResidency(**{name: getattr(found, name) for name in ("device_bytes", "host_bytes")}, **small)

        monkeypatch.setattr("oocgraph.engine.device_paths.plan_paths_residency", plan)

    return cramp


def table_of(rng, num_ids, num_edges, dtype, low):
    hubs = rng.integers(0, num_ids, num_edges) ** 2 // num_ids
    weight = rng.random(num_edges) * 10 + low if dtype.startswith("f") else rng.integers(low, 100, num_edges)
    return pd.DataFrame({"source": hubs * 3 + 1, "target": rng.integers(0, num_ids, num_edges) * 3 + 1, "weight": weight.astype(dtype)})


@pytest.mark.one_in(2)
@given(
    seed=st.integers(0, 2**32), dtype=st.sampled_from(WEIGHTS), directed=st.booleans(), order=st.sampled_from(["degree", "original"]),
    low=st.sampled_from([0, 1]), delta=st.sampled_from([None, 1e-3, 7, 1e9]),
)  # fmt: skip
@settings(deadline=None, max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture], phases=NO_SHRINKING)
def test_paths_are_those_of_the_processor(seed, dtype, directed, order, low, delta, tmp_path_factory, use, cramped, device):  # noqa: F811
    """Any weights, however little is where; where no weight is 0 the parents, too, are the processor's."""
    rng = np.random.default_rng(seed)
    table = table_of(rng, int(rng.integers(1, 150)), int(rng.integers(1, 1200)), dtype, low)
    path = tmp_path_factory.mktemp("g") / "graph.zarr"
    with oocgraph.config.setting("vertex-order", order):
        store = oocgraph.build_csr(table, path, weight="weight", directed=directed, duplicates="min")
    use(device)
    cramped(rng)
    source = rng.choice(table.source, int(rng.integers(1, 4))).tolist()
    result = sssp(store, source, delta=delta, resources=ON_DEVICE)
    expected = sssp(store, source, resources=ON_CPU)
    assert (result.device, result.schedule) == (device.name, "near-far")
    np.testing.assert_array_equal(result.distance, expected.distance)
    if low:
        np.testing.assert_array_equal(result.parent, expected.parent)
    verify_sssp(store, result)


@pytest.fixture(scope="module")
def kron(tmp_path_factory):
    """Build a Kronecker graph of scale 12 with weights."""
    return oocgraph.generate_kronecker(12, tmp_path_factory.mktemp("kron") / "kron12.zarr", seed=3, weights=(1, 255))


def small_plans(monkeypatch):
    """Make what a plan takes whatever the graph's size small."""
    for name in ("MIN_ROWS", "MIN_BUFFER_BYTES", "MAX_BUFFER_BYTES"):
        monkeypatch.setattr(paths_residency, name, 512 if name == "MIN_ROWS" else 16384)


@pytest.mark.shim
def test_nothing_is_fetched_where_all_edges_of_a_batch_are_on_the_device(kron, use, monkeypatch):
    """Rows come to the host, which waits for them, only where edges have to be gathered for them."""
    original, gathered = paths_residency.plan_paths_residency, []
    monkeypatch.setattr(
        "oocgraph.engine.device_paths.plan_paths_residency",
        lambda sizes, **options: replace(original(sizes, **options), num_resident=sizes.num_edges - 1, row_capacity=50),
    )
    run = StagedEdges.run
    monkeypatch.setattr(StagedEdges, "run", lambda self, *args: gathered.append(args[3]) or run(self, *args))
    use(CpuDevice())
    result = sssp(kron, 5, resources=ON_DEVICE)
    np.testing.assert_array_equal(result.distance, sssp(kron, 5, resources=ON_CPU).distance)
    assert set(gathered) == {1}


@pytest.mark.parametrize("share", [None, 0.5, 0.0])
def test_within_a_budget(share, kron, use, device, monkeypatch):  # noqa: F811
    """What is held is what was promised; edges cross the link only where they are not on the device."""
    small_plans(monkeypatch)
    use(device)
    budget = None
    if share is not None:
        asked = []
        original = paths_residency.plan_paths_residency
        monkeypatch.setattr(
            "oocgraph.engine.device_paths.plan_paths_residency", lambda sizes, **options: asked.append(sizes) or original(sizes, **options)
        )
        with pytest.raises(BudgetError, match=r"device_memory_budget to at least \d+M") as caught:
            sssp(kron, 5, resources=Resources(device="cuda", device_memory_budget=4096))
        least = asked[0].least_bytes
        assert int(re.search(r"at least (\d+)M", str(caught.value))[1]) == -(-least >> 20)
        budget = least + int(share * asked[0].num_edges * asked[0].edge_bytes)
    result = sssp(kron, 5, resources=Resources(device="cuda", device_memory_budget=budget))
    expected = sssp(kron, 5, resources=ON_CPU)
    np.testing.assert_array_equal(result.distance, expected.distance)
    np.testing.assert_array_equal(result.parent, expected.parent)
    assert result.num_relaxed - result.num_again == expected.num_relaxed - expected.num_again
    assert (result.link_bytes > 0) == (result.bytes_requested > 0) == (share is not None)
    assert result.summary()["device_bytes"] == result.device_bytes <= result.device_memory_budget
    if isinstance(device, CpuDevice):
        assert device.peak_bytes <= result.device_bytes
        assert (device.allocated_bytes, device.pinned_bytes) == (0, 0)


def test_a_limit_and_targets_leave_out_what_is_farther(kron, use, device):  # noqa: F811
    """As on the processor."""
    use(device)
    whole = sssp(kron, 5, resources=ON_CPU)
    far = int(whole.vertices[whole.distance == whole.eccentricity][0])
    near = int(whole.vertices[whole.distance == np.sort(whole.distance[whole.distance > 0])[50]][0])
    for options in ({"target": near}, {"target": [near, far]}, {"distance_limit": 40.5}, {"distance_limit": 0}, {"target": 5}):
        result, expected = (sssp(kron, 5, resources=resources, **options) for resources in (ON_DEVICE, ON_CPU))
        np.testing.assert_array_equal(result.distance, expected.distance)
        np.testing.assert_array_equal(result.parent, expected.parent)
        verify_sssp(kron, result)


@pytest.mark.shim
@pytest.mark.parametrize("order", range(6))
def test_vertices_that_only_edges_of_no_length_lead_to(order, tmp_path, use):
    """Chains and circles of such edges, before and behind others; and weights that are lost in rounding: the same parents in any order."""
    for name, lost in (("zeros", 0.0), ("rounded", 1e-9)):
        edges = [
            (0, 1, 1e12),
            (0, 2, 1e12 + 1),
            (1, 3, lost),
            (3, 4, lost),
            (4, 1, lost),
            (4, 5, lost),
            (5, 6, 2.0),
            (6, 7, lost),
            (7, 6, lost),
        ]
        table = pd.DataFrame(edges, columns=["source", "target", "weight"])
        store = oocgraph.build_csr(table, tmp_path / name, weight="weight", directed=True)
        use(CpuDevice(seed=order))
        result = sssp(store, 0, resources=ON_DEVICE)
        np.testing.assert_array_equal(result.distance, sssp(store, 0, resources=ON_CPU).distance)
        assert result.parent.tolist() == [0, 0, 0, 1, 3, 4, 5, 6]


@pytest.mark.shim
def test_distances_that_do_not_fit_into_31_bits(tmp_path, use):
    """Are searched again with 63; those that do not fit into 62 are refused, as are weights that are no lengths."""
    use(CpuDevice())
    for name, weights, dtype in (
        ("wide", [2**31 - 3, 1, 2**31 - 1], "int64"), ("most", [2**62 - 3, 2, 1], "int64"), ("tiny", [1e-45, 1e-45, 3e-45], "float32"),
    ):  # fmt: skip
        table = pd.DataFrame({"source": [0, 1, 2], "target": [1, 2, 3], "weight": np.array(weights, dtype)})
        store = oocgraph.build_csr(table, tmp_path / name, weight="weight", directed=True)
        np.testing.assert_array_equal(sssp(store, 0, resources=ON_DEVICE).distance, sssp(store, 0, resources=ON_CPU).distance)
    for name, weights, words in (
        ("huge", [2**62, 1, 1], "do not fit into 62 bits, at the edge from 1 to 2"), ("less", [1, -1, 1], "from 1 to 2 is negative"),
        ("none", [1.0, 2.0, 1.0], "from 1 to 2 is negative or no number"),
    ):  # fmt: skip
        table = pd.DataFrame({"source": [0, 1, 2], "target": [1, 2, 3], "weight": weights})
        store = oocgraph.build_csr(table, tmp_path / name, weight="weight", directed=True)
        if name == "none":  # which no build lets in
            store = rewrite(store.url, tmp_path / "nan", arrays={"out/weight": np.where(store.read("out/weight") == 2, np.nan, 1)})
        with pytest.raises(ArgumentError, match=words):
            sssp(store, 0, resources=ON_DEVICE)
        assert sssp(store, 3, resources=ON_DEVICE).num_reached == 1


@pytest.mark.shim
def test_every_kernel_is_launched(kron, tmp_path, use):
    """By a search with a target in a graph with a weight of 0."""
    found = use(CpuDevice())
    store = oocgraph.build_csr(pd.DataFrame({"source": [0, 1], "target": [1, 2], "weight": [0, 3]}), tmp_path / "g", weight="weight")
    sssp(store, 0, target=2, resources=ON_DEVICE)
    assert {name for name, count in found.launched.items() if count} >= set(path_names(np.dtype(np.uint32), np.dtype(np.int32)))


@pytest.mark.shim
def test_where_it_runs(kron, use, tmp_path):
    """What only the processor has is refused with a device, or found there; a runtime's device is used, and its memory."""
    there = use(CpuDevice())
    assert sssp(kron, 5, resources=Resources(device="auto")).device == there.name
    assert sssp(kron, 5, schedule="rounds").device == "cpu"
    with pytest.raises(ArgumentError, match="schedule is 'rounds', which only the processor has"):
        sssp(kron, 5, schedule="rounds", resources=ON_DEVICE)
    with pytest.raises(ArgumentError, match="where is given, which only a search on the processor takes"):
        sssp(kron, 5, where="weight < 5", resources=ON_DEVICE)
    small = CpuDevice(total_bytes=1 << 20)
    use(small)
    with pytest.raises(BudgetError, match="set device_memory_budget"):
        sssp(kron, 5, resources=ON_DEVICE)
    assert sssp(kron, 5).device == "cpu"


@pytest.mark.shim
def test_a_device_by_configuration_is_used_however_small_the_graph(use):
    """As it is where the call names it."""
    there = use(CpuDevice())
    store = oocgraph.build_csr(pd.DataFrame({"source": [0, 1], "target": [1, 2], "weight": [5, 3]}), weight="weight")
    assert sssp(store, 0).device == "cpu"
    with oocgraph.config.setting("device", "cuda"):
        assert sssp(store, 0).device == there.name


@pytest.mark.shim
@pytest.mark.parametrize("configured", ["auto", "cuda"])
def test_a_runtime_that_is_on_a_device_without_being_asked_for_it(kron, use, monkeypatch, configured):
    """Paths are found where it is."""
    there = use(CpuDevice())
    monkeypatch.setattr("oocgraph.engine.in_process.device_choice", lambda kind, **_: DeviceChoice(there, "a test"))
    with oocgraph.config.setting("device", configured), open_runtime(kron) as runtime:
        assert sssp(kron, 5, runtime=runtime).device == there.name


@pytest.mark.shim
def test_a_runtime_on_the_processor_says_why_paths_are_found_there(kron, use, caplog):
    """Not that the processor was asked for."""
    use(CpuDevice())
    with caplog.at_level("INFO"), open_runtime(kron) as runtime:
        assert sssp(kron, 5, runtime=runtime).device == "cpu"
    assert "device: cpu (the graph is open on the processor)" in caplog.text


@pytest.mark.shim
def test_a_runtime_on_a_device(kron, use, monkeypatch):
    """What it has loaded for searches is given back where both do not fit."""
    there = use(CpuDevice(total_bytes=13 << 20))
    monkeypatch.setattr("oocgraph.engine.in_process.device_choice", lambda kind, **_: DeviceChoice(there, "a test"))
    with open_runtime(kron, resources=ON_DEVICE) as runtime:
        before = oocgraph.bfs(kron, 5, runtime=runtime).level
        result = sssp(kron, 5, runtime=runtime)
        assert result.device == there.name
        np.testing.assert_array_equal(result.distance, sssp(kron, 5, resources=ON_CPU).distance)
        np.testing.assert_array_equal(oocgraph.bfs(kron, 5, runtime=runtime).level, before)
    assert there.allocated_bytes == 0


@pytest.mark.shim
def test_a_runtime_and_its_paths_share_a_budget(kron, use, monkeypatch):
    """Of device memory: what is loaded for searches is in it already."""
    there, budget = use(CpuDevice()), 6 << 20
    monkeypatch.setattr("oocgraph.engine.in_process.device_choice", lambda kind, **_: DeviceChoice(there, "a test"))
    with open_runtime(kron, resources=Resources(device="cuda", device_memory_budget=budget, threads=2)) as runtime:
        result = sssp(kron, 5, runtime=runtime)
        assert (result.device, result.device_memory_budget) == (there.name, budget)
        assert there.peak_bytes <= budget


@pytest.mark.shim
def test_what_fails_is_named_and_nothing_is_left(kron, use, tmp_path):
    """A device that is lost at any call; a store that was damaged."""
    calls = use(CpuDevice())
    sssp(kron, 5, resources=ON_DEVICE)
    for at in np.linspace(1, 0.9 * calls.calls.total(), 6).astype(int):  # the last calls close what has been used
        lost = use(CpuDevice(fail_after=int(at)))
        with pytest.raises(DeviceError, match="the device was lost"):
            sssp(kron, 5, resources=ON_DEVICE)
        assert lost.allocated_bytes == 0
    for name in ("indices", "weight"):
        broken = rewrite(kron.url, tmp_path / name)
        chunk = tmp_path / name / "out" / name / "c" / "0"
        content = chunk.read_bytes()
        chunk.write_bytes(content[:-200] + bytes(100) + content[-100:])
        there = use(CpuDevice())
        with pytest.raises(CorruptStoreError, match=f"out/{name}.*checksum"):
            sssp(broken, 5, resources=ON_DEVICE)
        assert there.allocated_bytes == 0
