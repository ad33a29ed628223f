"""Breadth-first search on a device: the whole way, on the CPU in several orders of threads and streams, and on a GPU where there is one."""

from __future__ import annotations

import gc
import re
import time

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import oocgraph
from oocgraph import ArgumentError, Resources, open_runtime
from oocgraph.arrays import DeviceChoice, cuda, drivers
from oocgraph.engine import device_levels, device_load
from oocgraph.engine.device import DeviceRuntime
from oocgraph.engine.device_levels import TINY
from oocgraph.engine.device_load import device_sizes
from oocgraph.engine.in_process import open_in_process
from oocgraph.errors import BudgetError, CorruptStoreError, DeviceError, OocGraphError
from oocgraph.kernels.gpu import kernel_names
from oocgraph.plan import device_residency
from oocgraph.store.graph import open_graph
from oocgraph.store.row_lookup import sorted_lookup
from oocgraph.verify import verify_bfs
from tests.algorithms.test_bfs import DIRECTIONS, graphs, in_store_order, scipy_levels
from tests.cuda_on_cpu.device import CpuDevice
from tests.engine.device_graphs import cramped  # noqa: F401
from tests.processes import open_files, own_threads
from tests.reference_build import reference_build
from tests.stores import rewrite

ANY_FIXTURE = [HealthCheck.function_scoped_fixture]


def devices():
    """Devices that every search is tested on."""
    shim = [pytest.param((seed, deferred), marks=pytest.mark.shim, id=f"order-{seed}{'-deferred' * deferred}") for seed, deferred in
            [(0, False), (1, True), (2, True)]]  # fmt: skip
    return [*shim, pytest.param(None, marks=pytest.mark.gpu, id="gpu")]


@pytest.fixture(params=devices())
def device(request):
    """Open each device in turn."""
    if request.param is None:
        return request.getfixturevalue("cuda_device")
    return CpuDevice(seed=request.param[0], deferred=request.param[1])


@pytest.fixture(scope="module")
def kron(tmp_path_factory):
    """Build a Kronecker graph of scale 12."""
    return oocgraph.generate_kronecker(12, tmp_path_factory.mktemp("kron") / "kron12.zarr", seed=3)


SOURCES = (5, 17, 255)


@pytest.mark.one_in(2)
@given(case=graphs(), direction=st.sampled_from(DIRECTIONS), seed=st.integers(0, 2**32))
@settings(deadline=None, max_examples=25, suppress_health_check=ANY_FIXTURE)
def test_levels_equal_scipy_and_the_tree_is_valid(case, direction, seed, tmp_path_factory, cramped, device):  # noqa: F811
    """Any graph, however little of it is where: planes, resident edges, pinned edges, files, batches, pieces."""
    n, src, dst, options, rng = case
    path = tmp_path_factory.mktemp("g") / "graph.zarr"
    reference_build(src, dst, path, implied=(0, n), **options)
    store = open_graph(path)
    cramped(seed)
    with DeviceRuntime.open(store, device=device, io_threads=2, threads=2, check_pages=bool(rng.integers(2))) as runtime:
        for _ in range(2):
            source = int(rng.integers(n))
            result = oocgraph.bfs(store, source, runtime=runtime, direction=direction)
            number = int(result.ids.vertices_of([source])[0])
            if number < 0:
                assert (result.num_reached, result.depth) == (1, 0)
                continue
            expected = scipy_levels(store, number)
            np.testing.assert_array_equal(in_store_order(result.search), expected)
            assert result.num_reached == np.count_nonzero(expected >= 0)
            assert result.depth == expected.max()
            assert sum(i.bytes_read for i in result.iterations) == result.bytes_requested
            verify_bfs(store, result)


@pytest.mark.one_in(4)
@pytest.mark.parametrize("share", [None, 0.25, 0.1])
def test_the_whole_way_on_kron12(share, kron, device, monkeypatch):
    """Subgraph, gathering, kernels, search: within budgets of device memory, what is held is what was promised."""
    small_plans(monkeypatch)
    budget = None if share is None else least_budget(kron) + int(share * kron.edge_bytes)
    with DeviceRuntime.open(kron, device=device, device_memory_budget=budget, io_threads=2) as runtime:
        assert runtime.graph.push.all_resident == (share is None)
        promised = runtime.device_bytes
        for source in SOURCES:
            for direction in DIRECTIONS:
                result = oocgraph.bfs(kron, source, runtime=runtime, direction=direction)
                np.testing.assert_array_equal(result.level, oocgraph.bfs(kron, source, resources=Resources(device="cpu")).level)
                verify_bfs(kron, result)
                assert result.device == device.name
                assert (result.link_bytes > 0) <= (share is not None)
                assert result.summary()["device_bytes"] == promised <= runtime.device_limit
        if isinstance(device, CpuDevice):
            assert device.peak_bytes <= promised


def small_plans(monkeypatch):
    """Make what a plan takes whatever the graph's size small, so that a small graph does not fit."""
    monkeypatch.setattr(device_residency, "MIN_ROWS", 512)
    monkeypatch.setattr(device_residency, "MIN_BUFFER_BYTES", 16384)
    monkeypatch.setattr(device_residency, "MAX_BUFFER_BYTES", 16384)


def least_budget(store):
    """Return the smallest budget of device memory that is not refused."""
    groups = ["out", "in"] if store.attributes.directed else ["out"]
    sizes = device_sizes(store, [store.array(f"{group}/indices") for group in groups], {store.pull_group: sorted_lookup(store)})
    return device_residency.least_bytes(sizes)


def test_nothing_is_allocated_while_searching(kron, monkeypatch):
    """Neither device memory nor pinned memory, whatever the search does."""
    small_plans(monkeypatch)
    device = CpuDevice()
    with DeviceRuntime.open(kron, device=device, device_memory_budget=least_budget(kron) + kron.edge_bytes // 10) as runtime:
        before = device.num_allocations, device.num_pinned_allocations
        for direction in DIRECTIONS:
            oocgraph.bfs(kron, SOURCES[0], runtime=runtime, direction=direction)
        assert (device.num_allocations, device.num_pinned_allocations) == before
    del runtime
    assert (device.allocated_bytes, device.pinned_bytes) == (0, 0), "closing gives everything back"


LAUNCHED = {
    "tiny levels, a pull and its tails in host memory": "fill_words clear_words begin_search finish_search push_levels add_vertices "
    "list_subgraph count_edges measure_frontier pull_planes pull_resident pull_mapped",
    "a pull and its tails on disk": "copy_words pull_tails close_rows",
    "pushes": "expand push_heads",
    "a path longer than a byte counts": "widen_levels",
}
"""Which search launches each kernel first."""

ELSEWHERE = {
    "take": "tests/engine/test_device_part.py: a partition's log lists parents",
    "sample_heads": "tests/engine/test_device_part.py: a partition counts its frontier on the host",
}


@pytest.mark.shim
def test_every_kernel_is_launched_by_a_search(kron, tmp_path, monkeypatch):
    """Of each search the kernels; together, and with those that something else launches, they are all there are."""
    small_plans(monkeypatch)
    launched = {}
    budget = least_budget(kron) + kron.edge_bytes // 4
    for name, most, directions in (
        ("tiny levels, a pull and its tails in host memory", None, ["auto", "pull"]),
        ("a pull and its tails on disk", 0, ["pull"]),
        ("pushes", None, ["alpha-beta", "push"]),
    ):
        device = CpuDevice()
        with DeviceRuntime.open(kron, device=device, device_memory_budget=budget, max_host_edges=most) as runtime:
            for direction in directions:
                oocgraph.bfs(kron, SOURCES[0], runtime=runtime, direction=direction)
        launched[name] = kernels_of(device)
    reference_build(np.arange(300), np.arange(1, 301), tmp_path / "path", vertex_order="original")
    device = CpuDevice()
    with DeviceRuntime.open(tmp_path / "path", device=device) as runtime:
        runtime.road = False
        oocgraph.bfs(tmp_path / "path", 0, runtime=runtime)
    launched["a path longer than a byte counts"] = kernels_of(device)
    seen = set()
    for name, kernels in launched.items():
        told = set(LAUNCHED[name].split())
        assert told <= kernels, f"{name}: {sorted(told - kernels)} not launched"
        seen |= kernels
    everything = {name.partition("<")[0] for name in kernel_names(np.dtype(np.uint32))}
    assert seen | set(ELSEWHERE) == everything


class CountedRuntime(DeviceRuntime):
    """A search that notes launches and waits of each of its levels that are not tiny."""

    def begin_iteration(self, state):
        self.began = self.device.launched.total(), self.device.waits["stream"]
        super().begin_iteration(state)

    def advance(self, state, choice, **figures):
        super().advance(state, choice, **figures)
        launches, waits = (now - before for now, before in zip(self.counted(), self.began, strict=True))
        moved = self.moved()
        self.levels.append((choice.direction, moved.access.partition(":")[0], launches, waits, max(1, moved.num_batches), moved.num_pieces))

    def counted(self):
        return self.device.launched.total(), self.device.waits["stream"]


@pytest.mark.shim
@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize("place", ["device", "host", "disk"])
def test_launches_and_waits_of_a_level(place, directed, tmp_path, monkeypatch):
    """All resident: at most 5 launches and one wait; with edges outside, at most 15 and 3.

    Of edges that come from disk, a page of each list first, each further window takes 4 launches and a wait, and each further piece of its
    edges a launch.
    """
    small_plans(monkeypatch)
    monkeypatch.setattr(device_residency, "MIN_ROWS", 4096)
    rng = np.random.default_rng(4)
    src, dst = (np.minimum(rng.zipf(1.6, 40000) * rng.integers(1, 30, 40000), 3999) for _ in range(2))
    reference_build(src, dst, tmp_path / "g", directed=directed)
    store = open_graph(tmp_path / "g")
    budget = None if place == "device" else least_budget(store) + store.edge_bytes // 10 + (1 << 16)
    with CountedRuntime.open(
        store, device=CpuDevice(), device_memory_budget=budget, max_host_edges=0 if place == "disk" else None, io_threads=2
    ) as runtime:
        assert (runtime.graph.push.all_resident, runtime.graph.push.in_host_memory) == (place == "device", place != "disk")
        seen = set()
        for direction in DIRECTIONS:
            runtime.levels = []
            result = oocgraph.bfs(store, int(src[0]), runtime=runtime, direction=direction)
            verify_bfs(store, result)
            for taken, access, launches, waits, batches, pieces in runtime.levels:
                seen.add((taken, access))
                most = (5, 1) if place == "device" else (15, 3)
                if access == "gather":
                    most = (most[0] + 3 * (batches - 1) + pieces - 1, most[1] + batches - 1)
                assert all(np.less_equal((launches, waits), most)), (direction, taken, access, launches, waits)
        reads = {"device": "resident", "host": "zero-copy", "disk": "gather"}[place]
        assert {("pull", reads), ("push", reads)} <= seen


def kernels_of(device):
    return {name.partition("<")[0] for name, count in device.launched.items() if count}


@pytest.mark.one_in(8)
@pytest.mark.parametrize("direction", ["auto", "pull", "alpha-beta", "gemini"])
@pytest.mark.parametrize("road", [False, True])
def test_long_paths(direction, road, tmp_path, device):
    """Levels outgrow a byte; tiny frontiers are pushed in few launches."""
    reference_build(np.arange(300), np.arange(1, 301), tmp_path / "g")
    with DeviceRuntime.open(tmp_path / "g", device=device) as runtime:
        runtime.road = road
        result = oocgraph.bfs(tmp_path / "g", 3, runtime=runtime, direction=direction)
    np.testing.assert_array_equal(result.level, abs(np.arange(301) - 3))
    verify_bfs(open_graph(tmp_path / "g"), result)
    assert result.depth == 297


def test_tiny_frontiers_take_few_launches(tmp_path):
    """A grid of 80 x 80 has 159 levels; a launch for each would be more than this many."""
    at = np.arange(6400).reshape(80, 80)
    src, dst = np.concatenate([at[:, :-1].ravel(), at[:-1].ravel()]), np.concatenate([at[:, 1:].ravel(), at[1:].ravel()])
    reference_build(src, dst, tmp_path / "grid")
    device = CpuDevice()
    with DeviceRuntime.open(tmp_path / "grid", device=device) as runtime:
        result = oocgraph.bfs(tmp_path / "grid", 0, runtime=runtime)
    assert result.depth == 158
    assert device.calls["launch"] < 60
    assert TINY.vertices >= 80


def test_tiny_levels_from_host_memory_are_counted(tmp_path, monkeypatch):
    """What a kernel reads of pinned memory crosses the link, however little that is: at least the edges."""
    small_plans(monkeypatch)
    reference_build(np.arange(3000), np.arange(1, 3001), tmp_path / "g")
    store = open_graph(tmp_path / "g")
    with DeviceRuntime.open(store, device=CpuDevice(), device_memory_budget=least_budget(store)) as runtime:
        assert not runtime.graph.push.all_resident
        result = oocgraph.bfs(store, 0, runtime=runtime)
        assert {i.device.access for i in result.iterations} == {"zero-copy: few edges"}
        assert store.edge_bytes <= result.link_bytes <= store.edge_bytes + 128 * 3001
    with DeviceRuntime.open(store, device=CpuDevice()) as runtime:
        assert oocgraph.bfs(store, 0, runtime=runtime).link_bytes == 0


@pytest.mark.shim
@pytest.mark.parametrize(("most", "usual"), [(100, 64), (100, 7), (40, 64)])
def test_the_log_of_tiny_levels_comes_in_one_piece_or_in_several(most, usual, tmp_path, monkeypatch):
    """A level is in the figures once, however many launches and copies it took to hear of them."""
    monkeypatch.setattr(device_levels, "LOG_LEVELS", most)
    monkeypatch.setattr(device_levels, "USUAL_LEVELS", min(most, usual))
    reference_build(np.arange(230), np.arange(1, 231), tmp_path / "path", vertex_order="original")
    device = CpuDevice()
    with DeviceRuntime.open(tmp_path / "path", device=device) as runtime:
        result = oocgraph.bfs(tmp_path / "path", 0, runtime=runtime)
    assert result.search.level.tolist() == list(range(231))
    assert [(one.level, one.frontier) for one in result.iterations] == [(level, 1) for level in range(1, 232)]
    assert device.launched["push_levels<unsigned int>"] == -(-231 // most)


@pytest.mark.shim
def test_results_are_part_of_the_time(kron, monkeypatch):
    """A search ends when parent and level are in host memory, as on the processor; it says how much of its time they took to come."""
    come = DeviceRuntime.results

    def results(runtime, state):
        time.sleep(0.05)
        return come(runtime, state)

    monkeypatch.setattr(DeviceRuntime, "results", results)
    with DeviceRuntime.open(kron, device=CpuDevice()) as runtime:
        search = oocgraph.bfs(kron, SOURCES[0], runtime=runtime).search
    assert search.seconds > search.results_seconds >= 0.05
    assert oocgraph.bfs(kron, SOURCES[0], resources=Resources(device="cpu")).search.results_seconds < 0.05


def test_depth_limits_and_several_sources(tmp_path, device):
    reference_build(np.arange(999), np.arange(1, 1000), tmp_path / "g")
    with DeviceRuntime.open(tmp_path / "g", device=device) as runtime:
        for limit in (0, 1, 7, 400):
            result = oocgraph.bfs(tmp_path / "g", [0, 999, 50], runtime=runtime, depth_limit=limit)
            distance = np.minimum.reduce([abs(np.arange(1000) - s) for s in (0, 999, 50)])
            np.testing.assert_array_equal(result.level, np.where(distance <= limit, distance, -1))
            assert result.depth == min(limit, distance.max())


def test_more_sources_than_go_to_the_device_at_once(tmp_path, device, monkeypatch):
    monkeypatch.setattr("oocgraph.engine.device.SOURCES", 16)
    reference_build(np.arange(99), np.arange(1, 100), tmp_path / "g")
    with DeviceRuntime.open(tmp_path / "g", device=device) as runtime:
        result = oocgraph.bfs(tmp_path / "g", list(range(0, 100, 2)), runtime=runtime)
    np.testing.assert_array_equal(result.level, np.arange(100) % 2)


def test_a_graph_without_edges(tmp_path, device):
    reference_build([], [], tmp_path / "g", implied=(0, 3))
    with DeviceRuntime.open(tmp_path / "g", device=device) as runtime:
        assert oocgraph.bfs(tmp_path / "g", 1, runtime=runtime).level.tolist() == [-1, 0, -1]


@pytest.mark.parametrize("codec", ["blosc", "zstd"])
def test_compressed_stores_are_gathered_in_windows(codec, kron, tmp_path, device, monkeypatch):
    small_plans(monkeypatch)
    store = rewrite(kron.url, tmp_path / "c.zarr", codec=codec)
    with DeviceRuntime.open(store, device=device, device_memory_budget=least_budget(store) + 1000, max_host_edges=0) as runtime:
        for direction in ("pull", "push"):
            result = oocgraph.bfs(store, SOURCES[0], runtime=runtime, direction=direction)
            np.testing.assert_array_equal(result.level, oocgraph.bfs(kron, SOURCES[0], resources=Resources(device="cpu")).level)


# What goes wrong.


def test_a_corrupt_chunk_found_while_the_device_works(kron, tmp_path, monkeypatch):
    """A page that a gathering thread finds damaged: the error names partition, level and file; no thread is left, the next search works."""
    small_plans(monkeypatch)
    store = rewrite(kron.url, tmp_path / "bad.zarr")
    chunk = tmp_path / "bad.zarr" / "out" / "indices" / "c" / "0"
    budget = least_budget(store) + 1000
    before = own_threads()
    with DeviceRuntime.open(store, device=CpuDevice(), device_memory_budget=budget, max_host_edges=0, check_pages=True) as runtime:
        content = chunk.read_bytes()
        chunk.write_bytes(content[:-200] + bytes(100) + content[-100:])
        with pytest.raises(CorruptStoreError, match=r"partition 0, level \d+: .*out/indices"):
            oocgraph.bfs(store, SOURCES[0], runtime=runtime, direction="pull")
        chunk.write_bytes(content)
        verify_bfs(store, oocgraph.bfs(store, SOURCES[0], runtime=runtime, direction="pull"))
    assert own_threads() == before


@pytest.mark.parametrize("deferred", [False, True])
def test_a_device_that_disappears(kron, monkeypatch, deferred):
    """At any moment: an error that names partition and level, nothing hangs, and later searches are told at once."""
    small_plans(monkeypatch)
    budget = least_budget(kron) + kron.edge_bytes // 10
    before = own_threads()
    opened = CpuDevice(deferred=deferred)
    with DeviceRuntime.open(kron, device=opened, device_memory_budget=budget, max_host_edges=0) as runtime:
        start = opened.calls.total()
        oocgraph.bfs(kron, SOURCES[0], runtime=runtime, direction="pull")
        num_calls = opened.calls.total() - start
    for k in np.linspace(1, num_calls, 12).astype(int).tolist():
        device = CpuDevice(deferred=deferred)
        with DeviceRuntime.open(kron, device=device, device_memory_budget=budget, max_host_edges=0) as runtime:
            device.fail_after = device.calls.total() + k
            with pytest.raises(DeviceError, match=r"partition 0, level \d+: .*lost"):
                oocgraph.bfs(kron, SOURCES[0], runtime=runtime, direction="pull")
            with pytest.raises(DeviceError, match="earlier search"):
                oocgraph.bfs(kron, SOURCES[0], runtime=runtime)
    assert own_threads() == before


def test_budgets_that_are_too_small(kron, monkeypatch):
    """The message names the smallest that works, and that one does."""
    small_plans(monkeypatch)
    device = CpuDevice()
    with pytest.raises(BudgetError, match="device_memory_budget") as told:
        DeviceRuntime.open(kron, device=device, device_memory_budget=1000)
    least = re.search(r"at least (\d+M)", str(told.value)).group(1)
    with DeviceRuntime.open(kron, device=device, device_memory_budget=least) as runtime:
        verify_bfs(kron, oocgraph.bfs(kron, SOURCES[0], runtime=runtime))
    with pytest.raises(BudgetError, match="memory budget"):
        DeviceRuntime.open(kron, device=device, memory_budget="120M")
    with pytest.raises(BudgetError, match=r"free.*device_memory_budget"):
        DeviceRuntime.open(kron, device=CpuDevice(total_bytes=1 << 20), device_memory_budget="2M")


def test_a_device_that_gives_less_than_it_says(kron, monkeypatch):
    """Out of memory in spite of the plan: a clear message."""
    device = CpuDevice(total_bytes=1 << 21)
    monkeypatch.setattr("oocgraph.engine.device.device_limit_bytes", lambda _device, _requested: 1 << 30)
    with pytest.raises(DeviceError, match="device_memory_budget"):
        DeviceRuntime.open(kron, device=device)


def test_device_memory_without_a_device(kron):
    with pytest.raises(OocGraphError, match="processor"):
        open_runtime(kron, resources=Resources(device="cpu", device_memory_budget="1G"))


@pytest.mark.shim
@pytest.mark.parametrize("directed", [False, True])
def test_progress_of_page_locking_and_reading(directed, tmp_path, monkeypatch):
    """Loading says that it locks memory before it does, and how much it has read."""
    small_plans(monkeypatch)
    monkeypatch.setattr(device_load, "HOST_READ_BYTES", 4096)
    rng = np.random.default_rng(1)
    reference_build(*rng.integers(0, 500, (2, 9000)), tmp_path / "g", directed=directed)
    store, told, device = open_graph(tmp_path / "g"), [], CpuDevice()

    def note(phase, done, total):
        told.append((phase, done, total, device.pinned_bytes))

    with DeviceRuntime.open(store, device=device, device_memory_budget=least_budget(store) + 9000, progress=note):
        pass
    locking = [one for one in told if one[0] == device_load.LOCKING]
    assert len(locking) == 2 * (1 + directed)
    for before, after in zip(locking[::2], locking[1::2], strict=True):
        assert before[1:3] == (0, store.edge_bytes // (1 + directed))
        assert after[1] == after[2] == before[2] == after[3] - before[3]
    for group in ("out", "in")[: 1 + directed]:
        read = [done for phase, done, _, _ in told if phase == f"reading {group}/indices into host memory"]
        assert len(read) > 3
        assert (read, read[-1]) == (sorted(read), store.edge_bytes // (1 + directed))


def test_a_given_device_is_used(kron):
    device = CpuDevice()
    with open_in_process(oocgraph.open_graph(kron), Resources(device_memory_budget="100M"), device=device) as runtime:
        assert oocgraph.bfs(kron, SOURCES[0], runtime=runtime).device == device.name


def test_a_search_opens_and_closes_the_device(kron, monkeypatch):
    """Without a runtime: the figures are those of the device, and everything is given back; no memory is locked for the result."""
    device = CpuDevice()
    monkeypatch.setattr("oocgraph.engine.in_process.device_choice", lambda _kind, **_: DeviceChoice(device, "of the test"))
    result = oocgraph.bfs(kron, SOURCES[0], resources=Resources(device="cuda", device_memory_budget="100M"))
    verify_bfs(kron, result)
    assert (result.device, result.summary()["device_memory_budget"]) == (device.name, 100 << 20)
    assert result.device_reason == result.summary()["device_reason"] == "of the test"
    assert (device.allocated_bytes, device.pinned_bytes) == (0, 0)


def test_auto_is_the_processor_where_the_device_is_too_small(kron, monkeypatch):
    """A graph whose state does not fit is searched all the same; who asked for the device is told."""
    device = CpuDevice(total_bytes=1 << 20)
    monkeypatch.setattr("oocgraph.engine.in_process.device_choice", lambda _kind, **_: DeviceChoice(device, "of the test"))
    result = oocgraph.bfs(kron, SOURCES[0], resources=Resources(device="auto"))
    assert result.device == "cpu"
    assert result.device_reason.startswith(f"this graph does not fit the memory of {device.name}: ")
    for options in ({"device": "cuda"}, {"device": "auto", "device_memory_budget": "1M"}):
        with pytest.raises(BudgetError, match="device_memory_budget"):
            oocgraph.bfs(kron, SOURCES[0], resources=Resources(**options))


def test_auto_does_not_start_a_gpu_for_a_small_graph(kron, monkeypatch):
    """Whether for one search or for many; the result says why. A budget of device memory is a wish for a GPU."""
    monkeypatch.setattr(drivers, "driver_version", lambda: 13000)
    started = []

    def refuse(_ordinal):
        started.append(1)
        raise DeviceError("of the test")

    monkeypatch.setattr(cuda, "usable_cupy", refuse)
    result = oocgraph.bfs(kron, SOURCES[0], resources=Resources(device="auto"))
    with open_runtime(kron, resources=Resources(device="auto")) as runtime:
        again = oocgraph.bfs(kron, SOURCES[0], runtime=runtime)
    for one in (result, again):
        assert (one.device, started) == ("cpu", [])
        assert one.device_reason.startswith("to start a GPU takes about 0.41 s, the work on the processor less than 0.01 s")
    for options in ({"device": "cuda"}, {"device": "auto", "device_memory_budget": "1G"}):
        with pytest.raises(OocGraphError, match="of the test"):
            oocgraph.bfs(kron, SOURCES[0], resources=Resources(**options))
    assert started == [1, 1]
    monkeypatch.setattr("oocgraph.engine.in_process.EDGE_SECONDS", 1.0)
    assert oocgraph.bfs(kron, SOURCES[0], resources=Resources(device="auto")).device_reason == "of the test"


@pytest.mark.parametrize("options", [{"device": "cuda"}, {"device_memory_budget": "1G"}])
def test_a_runtime_has_its_device(options, kron):
    """Another wish is refused, not passed over."""
    with (
        open_runtime(kron, resources=Resources(device="cpu")) as runtime,
        pytest.raises(ArgumentError, match=r"has its own resources.* give them to open_runtime"),
    ):
        oocgraph.bfs(kron, SOURCES[0], runtime=runtime, resources=Resources(**options))


def test_a_closed_runtime(kron):
    """Closing twice is no harm; a search is refused with what to do."""
    runtime = DeviceRuntime.open(kron, device=CpuDevice())
    runtime.close()
    runtime.close()
    with pytest.raises(OocGraphError, match="is closed; open another one"):
        oocgraph.bfs(kron, SOURCES[0], runtime=runtime)


def test_an_opening_that_fails_leaves_nothing(kron, monkeypatch):
    """Whichever call fails: no open file, no thread, no memory."""
    small_plans(monkeypatch)
    budget = least_budget(kron) + kron.edge_bytes // 10
    device = CpuDevice()
    with DeviceRuntime.open(kron, device=device, device_memory_budget=budget, max_host_edges=0):
        num_calls = device.calls.total()
    for k in range(1, num_calls + 1, 3):
        device = CpuDevice(fail_after=k)
        with pytest.raises(DeviceError, match="lost"):
            DeviceRuntime.open(kron, device=device, device_memory_budget=budget, max_host_edges=0)
        assert (open_files(kron.url), own_threads()) == ([], [])
        gc.collect()
        assert (device.allocated_bytes, device.pinned_bytes) == (0, 0)


@pytest.mark.usefixtures("steady_memory")
@pytest.mark.parametrize("memory", ["1M", "60M"])
def test_the_host_budget_that_a_message_names_works(kron, memory):
    """At once: not one that only the next message would find too small."""
    with pytest.raises(BudgetError, match="set memory_budget") as told:
        DeviceRuntime.open(kron, device=CpuDevice(), memory_budget=memory, check_pages=True)
    least = re.search(r"at least (\d+)M", str(told.value)).group(1)
    with DeviceRuntime.open(
        kron, device=CpuDevice(), memory_budget=f"{int(least) + 4}M", check_pages=True
    ) as runtime:  # the process may have grown
        verify_bfs(kron, oocgraph.bfs(kron, SOURCES[0], runtime=runtime))


def test_windows_are_charged(kron, tmp_path):
    """Each reading thread may hold a chunk of a compressed store as it is stored, and decoded."""
    store = rewrite(kron.url, tmp_path / "c.zarr", codec="zstd")
    promised = []
    for one in (kron, store):
        with DeviceRuntime.open(one, device=CpuDevice(), io_threads=8) as runtime:
            promised.append(runtime.budget.reserved_bytes)
    assert promised[1] - promised[0] >= 8 * 2 * store.array("out/indices").chunk_length * 4
