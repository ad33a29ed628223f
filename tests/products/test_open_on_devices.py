"""A graph that is open on devices: what stays there, what crosses the link, what is allocated; products and ranks are the processor's."""

from __future__ import annotations

import os
from itertools import pairwise
from types import SimpleNamespace

import numpy as np
import pytest

import oocgraph
from oocgraph import (
    ArgumentError,
    BudgetError,
    DeviceError,
    Resources,
    bfs,
    build_csr,
    generate_kronecker,
    open_graph,
    open_runtime,
    pagerank,
    spmv,
)
from oocgraph.algorithms import devices as devices_module
from oocgraph.algorithms import spmv_on_device
from oocgraph.algorithms.operands import matrix_operand
from oocgraph.algorithms.spmv_on_device import device_rooms, multiply_on
from oocgraph.arrays import DeviceChoice
from oocgraph.engine import in_process
from oocgraph.engine.opened import OpenedGraph, Unopened
from oocgraph.kernels.semirings import SEMIRINGS, semiring_of
from oocgraph.products import device_product
from oocgraph.products.device_matrix import DeviceMatrix, _part_of
from oocgraph.products.device_ranking import RankVectors
from oocgraph.sparse.balanced import balanced_partition
from oocgraph.sparse.edge_stream import stored_matrix
from oocgraph.sparse.placement import cores_near, topology, topology_of_devices
from tests.algorithms.test_spmv import vector_for
from tests.cuda_on_cpu.device import CpuDevice
from tests.ingest.helpers_build import ArraySource
from tests.reference_build import reference_build
from tests.sparse.matrices import FORMATS, in_format, of_rows
from tests.stores import random_edges

pytestmark = pytest.mark.shim

ON_PROCESSOR = Resources(device="cpu")


@pytest.fixture(scope="module")
def kron(tmp_path_factory):
    return generate_kronecker(9, tmp_path_factory.mktemp("graph") / "kron.zarr")


@pytest.fixture(scope="module")
def weighted(tmp_path_factory):
    src, dst = random_edges(6)
    values = np.random.default_rng(0).integers(1, 9, src.size).astype(np.float32)
    source = ArraySource(src, dst, {"w": values}, weight="w")
    return build_csr(source, tmp_path_factory.mktemp("graph") / "g.zarr", directed=True, duplicates="sum")


@pytest.fixture
def given(monkeypatch):
    """Let everything find these devices."""

    def call(*devices):
        monkeypatch.setattr(devices_module, "devices_choice", lambda kind, **_: ((), "asked for") if kind == "cpu" else (devices, "given"))
        monkeypatch.setattr(in_process, "device_choice", lambda kind, **_: DeviceChoice(None if kind == "cpu" else devices[0], "given"))
        return devices

    return call


def close(y, expected, tolerance=1e-12):
    np.testing.assert_allclose(y, expected, rtol=tolerance, atol=tolerance)


class Counts:
    """What devices have been asked for since the last look."""

    def __init__(self, *devices):
        self.devices = devices
        self.look()

    def look(self):
        """Return link bytes by direction, launches, waits and allocations since the last time."""
        now = [
            {
                **{name: device.copied_bytes[name] for name in ("to_device", "to_host", "on_device")},
                "launches": device.launched.total(), "waits": device.calls["synchronize"],
                "allocations": device.num_allocations + device.num_pinned_allocations,
            }
            for device in self.devices
        ]  # fmt: skip
        before = getattr(self, "before", now)
        self.before = now
        return {name: sum(a[name] - b[name] for a, b in zip(now, before, strict=True)) for name in now[0]}


def test_second_product_of_a_graph_moves_its_vectors_and_allocates_nothing(given, kron):
    """Edges that searches have on the device are not brought there again."""
    (device,) = given(CpuDevice())
    x, n = np.random.default_rng(0).random(kron.attributes.num_input_vertices), kron.num_rows
    expected = spmv(kron, x, resources=ON_PROCESSOR)
    with open_runtime(kron, resources=Resources(device="cuda")) as runtime:
        counts = Counts(device)
        close(spmv(kron, x, runtime=runtime), expected)
        first = counts.look()
        pointers = 8 * (n + 1)
        assert first["to_device"] <= pointers + 8 * n + 64
        for name in ("plus_times", "min_plus"):
            close(spmv(kron, x, semiring=name, runtime=runtime), spmv(kron, x, semiring=name, resources=ON_PROCESSOR))
            assert counts.look() == {"to_device": 8 * n, "to_host": 8 * n, "on_device": 0, "launches": 2, "waits": 1, "allocations": 0}
        assert bfs(kron, 0, runtime=runtime).num_reached > 1
        close(spmv(kron, x, runtime=runtime), expected)
    assert device.allocated_bytes == device.pinned_bytes == 0


def test_first_device_is_that_of_the_runtime(given, kron, monkeypatch):
    """Whichever is current for CuPy when a product is made."""
    (device,) = given(CpuDevice())
    device.ordinal, asked = 2, []
    monkeypatch.setattr(devices_module, "devices_choice", lambda _kind, *, ordinal, **_: (asked.append(ordinal), ((device,), "given"))[1])
    x = np.ones(kron.attributes.num_input_vertices)
    with open_runtime(kron, resources=Resources(device="cuda")) as runtime:
        spmv(kron, x, runtime=runtime)
    spmv(kron, x, resources=Resources(device="cuda"))
    assert asked == [2, None]


@pytest.mark.parametrize(("num_devices", "room"), [(1, None), (2, None), (1, 12_000), (2, 8_000)])
def test_every_semiring_and_direction_with_edges_resident_and_streamed(given, weighted, monkeypatch, num_devices, room):
    monkeypatch.setattr(device_product, "PIECE_ENTRIES", 50)
    monkeypatch.setattr(device_product, "MIN_PIECE_ENTRIES", 20)
    given(*(CpuDevice(seed=i, deferred=i > 0) for i in range(num_devices)))
    if room is not None:
        monkeypatch.setattr(spmv_on_device, "device_rooms", lambda devices, _opened, _requested: [room] * len(devices))
        monkeypatch.setattr(OpenedGraph, "first_indices", lambda _self, _group: None)
    with open_runtime(weighted, resources=Resources(device="cuda")) as runtime:
        for _ in range(2):
            for name in SEMIRINGS:
                for transpose in (False, True):
                    x = vector_for(weighted.attributes.num_input_vertices, name)
                    options = {"semiring": name, "transpose": transpose}
                    close(spmv(weighted, x, runtime=runtime, **options), spmv(weighted, x, resources=ON_PROCESSOR, **options))
        kept = [matrix.kept_bytes == matrix.edge_bytes for matrix in runtime._on_devices._kept.values()]
        assert all(kept) == (room is None)


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize("num_devices", [1, 2, 3])
@pytest.mark.parametrize("resident", [True, False], ids=["resident", "streamed"])
def test_matrices_of_every_format(form, num_devices, resident, monkeypatch):
    """Resident and partly streamed; the second product reads no more than what does not stay."""
    monkeypatch.setattr(device_product, "PIECE_ENTRIES", 100)
    monkeypatch.setattr(device_product, "MIN_PIECE_ENTRIES", 50)
    matrix, x = in_format(of_rows([3, 0, 700, 0, 20, *[5] * 30, 0, 0]), form), np.random.default_rng(1).random(50)
    devices, ring = [CpuDevice(seed=i) for i in range(num_devices)], semiring_of("plus_times")
    options = {"dtype": np.dtype(float), "semiring": ring, "keep": True}
    room = max(DeviceMatrix(devices, matrix, device_limits=[1 << 20] * num_devices, **options).device_bytes.values())
    room = room if resident else room * 6 // 10
    with DeviceMatrix(devices, matrix, device_limits=[room] * num_devices, **options) as product:
        product.open()
        assert (product.kept_bytes == product.edge_bytes) == resident
        counts = Counts(*devices)
        for _ in range(2):
            product.x[:, 0] = x
            close(product.multiply(ring)[:, 0], matrix @ x)
            moved = counts.look()
            assert moved["allocations"] == 0
            by_row = product.by_row
            vectors = 8 * (50 * num_devices if by_row else 50)
            streamed = moved["to_device"] - vectors
            if resident:
                assert streamed <= 8 * num_devices  # columns that two devices share
                assert moved["to_host"] <= 8 * (matrix.shape[0] + (num_devices if by_row else 0))
            else:
                assert 0 < product.edge_bytes - product.kept_bytes <= streamed
        assert all(device.peak_bytes <= room for device in devices)
    assert all(device.allocated_bytes == device.pinned_bytes == 0 for device in devices)


@pytest.mark.parametrize("peers", [True, False])
@pytest.mark.parametrize("num_devices", [2, 3, 5])
def test_sums_of_columns_are_added_on_a_device(num_devices, peers, monkeypatch, caplog):
    """One vector comes to the host; the others go from device to device, or by the host where they cannot."""
    monkeypatch.setattr("oocgraph.products.device_matrix.THROUGH_BYTES", 64)
    matrix, ring = of_rows([9] * 60).tocsc(), semiring_of("min_plus")
    devices = [CpuDevice(seed=i, peers=peers) for i in range(num_devices)]
    with (
        caplog.at_level("DEBUG", "oocgraph"),
        DeviceMatrix(devices, matrix, np.dtype(float), ring, device_limits=[1 << 20] * num_devices, keep=True) as product,
    ):
        planned = product.device_bytes[0]
        product.open()
        counts, product.x[:] = Counts(*devices), 1
        found = product.multiply(ring)[:, 0]
        close(found, spmv(matrix, np.ones(50), semiring="min_plus", resources=ON_PROCESSOR))
        moved, vector = counts.look(), 8 * 60
        assert moved["on_device"] == (num_devices - 1) * vector * peers
        assert moved["to_host"] == vector * (1 if peers else num_devices)
        assert ("directly" if peers else "by the host") in caplog.text
        assert devices[0].peak_bytes <= planned


def test_dense_right_sides_are_multiplied_in_one_pass(given, kron):
    """As many columns as there is room for; another product of as many allocates nothing."""
    (device,) = given(CpuDevice())
    n, rng = kron.num_rows, np.random.default_rng(5)
    with open_runtime(kron, resources=Resources(device="cuda")) as runtime:
        for width in (1, 5, 1, 32, 40):
            x = rng.random((kron.attributes.num_input_vertices, width))
            expected, counts = kron.to_scipy(dtype=np.float64) @ x, Counts(device)
            close(spmv(kron, x, runtime=runtime), expected)
            counts.look()
            close(spmv(kron, x, runtime=runtime), expected)
            assert counts.look() == {
                "to_device": 8 * n * width, "to_host": 8 * n * width, "on_device": 0, "launches": 2, "waits": 1, "allocations": 0
            }  # fmt: skip


@pytest.mark.parametrize("form", FORMATS)
def test_a_matrix_is_brought_there_once(given, form):
    """For all products of one kind; its own transpose is another."""
    devices = given(CpuDevice(), CpuDevice(seed=1))
    matrix, x = in_format(of_rows([40, 0, 3] * 9), form), np.random.default_rng(0).random(50)
    with open_runtime(matrix, resources=Resources(device="cuda")) as runtime:
        close(spmv(matrix, x, runtime=runtime), matrix @ x)
        counts = Counts(*devices)
        for name in ("plus_times", "min_plus"):
            close(spmv(matrix, x, semiring=name, runtime=runtime), spmv(matrix, x, semiring=name, resources=ON_PROCESSOR))
            moved = counts.look()
            assert moved["allocations"] == 0
            assert moved["to_device"] <= 8 * 2 * 51
        y = np.ones(27)
        close(spmv(matrix, y, transpose=True, runtime=runtime), matrix.T @ y)
        close(spmv(matrix, np.stack([x, x], axis=1), runtime=runtime)[:, 1], matrix @ x)
        with pytest.raises(ArgumentError, match="opened with something else"):
            spmv(matrix.copy(), x, runtime=runtime)
    assert all(device.allocated_bytes == device.pinned_bytes == 0 for device in devices)
    with pytest.raises(ArgumentError, match="is closed"):
        spmv(matrix, x, runtime=runtime)


def test_a_matrix_that_is_open_on_the_processor(kron):
    matrix = of_rows([3, 5])
    with open_runtime(matrix, resources=ON_PROCESSOR) as runtime:
        close(spmv(matrix, np.ones(50), runtime=runtime), matrix @ np.ones(50))
        with pytest.raises(ArgumentError, match="the runtime has a matrix, of which products alone are made"):
            pagerank(kron, runtime=runtime)
    for options in ({"where": "w > 1"}, {"reverse": True}, {"partition": "2d"}):
        with pytest.raises(ArgumentError, match=r"which is of a graph, and this is a matrix; leave it out"):
            open_runtime(matrix, **options)
    with pytest.raises(ArgumentError, match="a matrix is open in this process; leave out client"):
        open_runtime(matrix, client="a client")


def test_as_many_vectors_at_once_as_the_host_has_room_for(given):
    """Where it lacks room for all of them, for fewer; one is the least."""
    (device,) = given(CpuDevice())
    matrix, ring, num_vectors = of_rows([40] * 30), semiring_of("plus_times"), 32
    wide = np.random.default_rng(0).random((50, num_vectors))
    one = DeviceMatrix([device], matrix, np.dtype(float), ring, device_limits=[1 << 20])
    operand = matrix_operand(matrix, wide, ring, transpose=False)
    least = operand.result_bytes + one.host_bytes

    def multiplied(limit_bytes):
        y = multiply_on([device], operand, Unopened(limit_bytes, baseline_bytes=0), device_memory_budget=None)
        return device.launched.total(), y

    launches = []
    for num_more in (num_vectors, 9, 0):
        before, (after, y) = device.launched.total(), multiplied(least + num_more * one.host_vector_bytes)
        close(y, matrix @ wide)
        launches.append(after - before)
    assert launches[0] < launches[1] < launches[2]
    with pytest.raises(BudgetError, match="pinned vectors and pieces"):
        multiplied(least - 1)


def test_a_matrix_for_which_a_device_has_no_room_is_brought_there_again(given, monkeypatch):
    """What the failure leaves is not kept."""
    (device,) = given(CpuDevice())
    matrix, wide = of_rows([3, 5, 2]), np.random.default_rng(0).random((50, 4))
    with open_runtime(matrix, resources=Resources(device="cuda")) as runtime:
        close(spmv(matrix, wide[:, 0], runtime=runtime), matrix @ wide[:, 0])
        with monkeypatch.context() as full:
            full.setattr(device, "empty", refuse_memory)
            with pytest.raises(DeviceError, match="no room, in the test"):
                spmv(matrix, wide, runtime=runtime)
        assert device.allocated_bytes == 0
        close(spmv(matrix, wide, runtime=runtime), matrix @ wide)
        close(spmv(matrix, wide[:, 0], runtime=runtime), matrix @ wide[:, 0])


def refuse_memory(_shape, _dtype):
    raise DeviceError("no room, in the test")


@pytest.mark.one_in(4)
@pytest.mark.parametrize("personalized", [False, True])
@pytest.mark.parametrize("weight", [None, False])
@pytest.mark.parametrize("num_devices", [1, 2, 3])
@pytest.mark.parametrize("name", ["kron", "weighted"])
def test_ranks_are_the_processors(request, given, monkeypatch, name, num_devices, weight, personalized):
    monkeypatch.setattr(device_product, "PIECE_ENTRIES", 1000)
    graph = request.getfixturevalue(name)
    weight = weight if graph.attributes.weighted else None
    given(*(CpuDevice(seed=i, deferred=i == 1, peers=i != 2) for i in range(num_devices)))
    wanted = np.random.default_rng(2).random(graph.attributes.num_input_vertices) if personalized else None
    options = {"tol": 1e-11, "weight": weight, "personalization": wanted}
    expected = pagerank(graph, resources=ON_PROCESSOR, **options)
    found = pagerank(graph, resources=Resources(device="cuda"), **options)
    close(found.rank, expected.rank)
    assert abs(found.iterations - expected.iterations) <= 1
    with open_runtime(graph, resources=Resources(device="cuda")) as runtime:
        for _ in range(2):
            close(pagerank(graph, runtime=runtime, **options).rank, expected.rank)


@pytest.mark.parametrize("num_devices", [1, 3])
def test_an_iteration_brings_two_numbers_back(given, kron, num_devices):
    """Of each device; edges and vectors stay, and devices give each other their shares."""
    devices = given(*(CpuDevice() for _ in range(num_devices)))
    per_run = []
    with open_runtime(kron, resources=Resources(device="cuda")) as runtime:
        pagerank(kron, tol=0, max_iter=1, runtime=runtime)
        for iterations in (1, 5):
            counts = Counts(*devices)
            pagerank(kron, tol=0, max_iter=iterations, runtime=runtime)
            per_run.append(counts.look())
    each = {name: (per_run[1][name] - per_run[0][name]) / 4 for name in per_run[0]}
    assert each["to_device"] == each["allocations"] == 0
    assert each["to_host"] == 16 * num_devices
    assert each["on_device"] == (num_devices - 1) * 8 * kron.num_rows
    assert each["launches"] == 4 * num_devices
    assert each["waits"] == num_devices * (1 if num_devices == 1 else 2)


def test_room_for_ranks_is_free_until_they_are_there(kron):
    """Both fit what others leave of a card: the room that is set aside, and what is held beside it."""
    device, opened = CpuDevice(), Unopened(1 << 30)
    _others = device.empty(device.total_bytes - (10 << 20), np.uint8)
    rooms = device_rooms([device], opened, None)
    with opened.on_devices("ranks", lambda: RankVectors([device], kron.num_rows, rooms, [0])):
        beside = device_rooms([device], opened, None)[0]
        assert opened.held_on_device(0) + beside <= rooms[0]
        with opened.on_devices("a matrix", lambda: SimpleNamespace(device_bytes={0: 1 << 20}, is_allocated=True, close=device.close)):
            _matrix = device.empty(1 << 20, np.uint8)
            assert device_rooms([device], opened, None)[0] <= beside - (1 << 20)


def test_ranks_of_a_graph_larger_than_the_device(given, kron, monkeypatch):
    monkeypatch.setattr(device_product, "PIECE_ENTRIES", 1000)
    monkeypatch.setattr(device_product, "MIN_PIECE_ENTRIES", 500)
    monkeypatch.setattr("oocgraph.products.device_ranking.PARTIAL_BYTES", 1000)
    (device,) = given(CpuDevice())
    asked = Resources(device="cuda", device_memory_budget=70_000)
    found = pagerank(kron, tol=1e-10, resources=asked)
    close(found.rank, pagerank(kron, tol=1e-10, resources=ON_PROCESSOR).rank)
    assert 0 < found.kept_bytes < found.edge_bytes
    assert all(step.bytes_requested >= found.edge_bytes - found.kept_bytes for step in found.steps)
    assert device.peak_bytes <= 70_000
    assert (device.allocated_bytes, device.pinned_bytes) == (0, 0)
    with pytest.raises(BudgetError, match=r"CPU \(shim\) needs .* beside .* that are held .* device_memory_budget"):
        pagerank(kron, resources=Resources(device="cuda", device_memory_budget=9_000))


@pytest.mark.parametrize("budget", [70_000, 1_200_000])
def test_the_budget_that_a_refusal_of_ranks_names_holds_them(given, tmp_path, budget):
    """Matrix and vectors together, whichever does not fit."""
    graph = generate_kronecker(12, tmp_path / "g.zarr")
    given(CpuDevice())
    with pytest.raises(BudgetError, match=r"device_memory_budget to at least \d+M") as refused:
        pagerank(graph, resources=Resources(device="cuda", device_memory_budget=budget))
    named = int(str(refused.value).rpartition("at least ")[2].partition("M")[0]) << 20
    assert named > budget
    (device,) = given(CpuDevice(total_bytes=named))
    found = pagerank(graph, tol=0, max_iter=2, resources=Resources(device="cuda", device_memory_budget=named))
    close(found.rank, pagerank(graph, tol=0, max_iter=2, resources=ON_PROCESSOR).rank)
    assert device.peak_bytes <= named


@pytest.fixture
def fills(monkeypatch):
    """Note each piece that is read."""
    read, fill = [], device_product.DeviceShare._fill

    def noted(self, piece, pinned):
        read.append((piece.start, sorted(pinned)))
        return fill(self, piece, pinned)

    monkeypatch.setattr(device_product.DeviceShare, "_fill", noted)
    monkeypatch.setattr(device_product, "PIECE_ENTRIES", 50)
    monkeypatch.setattr(device_product, "MIN_PIECE_ENTRIES", 20)
    return read


@pytest.mark.parametrize("num_devices", [1, 2])
@pytest.mark.parametrize("name", ["kron", "weighted"])
@pytest.mark.parametrize("has_indices", [False, True])
def test_what_no_device_has_room_for_is_read_once(request, given, fills, monkeypatch, name, num_devices, has_indices):
    """Of a graph that is open, into page-locked memory; the neighbours that searches have there are not read for it again."""
    store, column = request.getfixturevalue(name), "weight" if name == "weighted" else None
    devices = given(*(CpuDevice(seed=i, deferred=i > 0) for i in range(num_devices)))
    room, share = 8 * (1 + 1 / num_devices) * store.num_rows + 3500, store.edge_bytes // (1 + store.attributes.directed)
    indices = devices[0].pinned(share).view(np.uint32)
    indices[:] = store.read("out/indices")
    monkeypatch.setattr(spmv_on_device, "device_rooms", lambda devices, _opened, _requested: [room] * len(devices))
    monkeypatch.setattr(OpenedGraph, "first_indices", lambda _self, _group: None)
    monkeypatch.setattr(OpenedGraph, "host_indices", lambda _self, _group: indices if has_indices else None)
    x = np.random.default_rng(0).random(store.attributes.num_input_vertices)
    expected = spmv(store, x, weight=column, resources=ON_PROCESSOR)
    with open_runtime(store, resources=Resources(device="cuda")) as runtime:
        searched = devices[0].pinned_bytes
        close(spmv(store, x, weight=column, runtime=runtime), expected)
        pinned = sum(device.pinned_bytes for device in devices) - searched
        (matrix,) = runtime._on_devices._kept.values()
        assert all(one.num_resident + one.num_held == len(one.pieces) for one in matrix.shares)
        assert all(one.num_held for one in matrix.shares)
        assert pinned <= matrix.host_bytes
        held = [fields for one in matrix.shares for start, fields in fills if start >= one.pieces[one.num_resident].start]
        assert held
        assert len({start for start, _ in fills}) == len(fills)
        fills.clear()
        before = matrix.bytes_requested
        for _ in range(2):
            close(spmv(store, x, weight=column, runtime=runtime), expected)
        assert fills == []
        assert matrix.bytes_requested - before >= 2 * (matrix.edge_bytes - matrix.kept_bytes)
        sizes = [sum(one._to_read(piece).values()) for one in matrix.shares for piece in one.pieces[one.num_resident :]]
        assert (sum(sizes) < matrix.edge_bytes - matrix.kept_bytes) == has_indices or column
    assert [device.pinned_bytes for device in devices][1:] == [0] * (num_devices - 1)


def test_pieces_stay_on_the_host_as_far_as_it_has_room(fills):
    """A piece that follows one that does not fit is read for each product, as before; all products are the same."""
    matrix, x = of_rows([30, 500, 0, 7, 900, 3], seed=1), np.random.default_rng(0).random(50)
    (part,), ring, device = balanced_partition(matrix, 1), semiring_of("plus_times"), CpuDevice()
    least = DeviceMatrix([device], part, np.dtype(float), ring, device_limits=[1 << 30]).device_bytes[0]
    for room in (0, 1500, 3000, 10_000, 1 << 20):
        with DeviceMatrix([device], part, np.dtype(float), ring, device_limits=[least], keep=True) as there:
            (share,) = there.shares
            before = there.host_bytes
            held = share.hold(room)
            assert held <= room
            assert there.host_bytes == before + held
            there.open()
            assert device.pinned_bytes <= there.host_bytes
            fills.clear()
            there.x[:, 0] = x
            for _ in range(2):
                np.testing.assert_allclose(there.multiply(ring)[:, 0], matrix @ x, rtol=1e-12)
            assert len(fills) == 2 * (len(share.pieces) - share.num_resident - share.num_held)
        assert device.pinned_bytes == 0
    assert share.num_held == len(share.pieces) - share.num_resident > 3


def test_checkpoint_goes_on_where_it_was_made(given, kron, tmp_path):
    """On the processor what a device has begun, and the other way round."""
    given(CpuDevice())
    there, here = Resources(device="cuda"), ON_PROCESSOR
    expected = pagerank(kron, tol=0, max_iter=9, resources=here).rank
    for number, (first, then) in enumerate(((there, here), (here, there))):
        pagerank(kron, tol=0, max_iter=4, checkpoint=tmp_path / str(number), resources=first)
        found = pagerank(kron, tol=0, max_iter=9, checkpoint=tmp_path / str(number), resources=then)
        assert len(found.steps) == 5
        close(found.rank, expected)


def test_what_does_not_fit_beside_a_search_has_it_given_back(given, tmp_path, monkeypatch):
    """And the search comes back in its turn."""
    graph = generate_kronecker(12, tmp_path / "g.zarr")
    monkeypatch.setattr("oocgraph.products.device_ranking.PARTIAL_BYTES", 1000)
    monkeypatch.setattr(device_product, "PIECE_ENTRIES", 4096)
    (device,) = given(CpuDevice())
    x = np.ones(graph.attributes.num_input_vertices)
    expected = spmv(graph, x, resources=ON_PROCESSOR), pagerank(graph, resources=ON_PROCESSOR).rank
    with open_runtime(graph, resources=Resources(device="cuda")) as runtime:
        levels = bfs(graph, 0, runtime=runtime).level
        limit = runtime.held_on_device(0) + 20_000
        monkeypatch.setattr(spmv_on_device, "device_limit_bytes", lambda *_, **__: limit)
        for _ in range(2):
            close(spmv(graph, x, runtime=runtime), expected[0])
            close(pagerank(graph, runtime=runtime).rank, expected[1], 1e-8)
            assert runtime.held_on_device(0) == runtime._on_devices.bytes_on(0)  # no search
            np.testing.assert_array_equal(bfs(graph, 0, runtime=runtime).level, levels)
            assert not runtime._on_devices
        assert device.peak_bytes <= limit


@pytest.mark.parametrize("edges", [([], []), ([0], [1]), ([0] * 50, list(range(1, 51)))])
def test_tiny_graphs(given, tmp_path, edges):
    reference_build(*edges, tmp_path / "g", implied=(0, 60))
    graph = open_graph(tmp_path / "g")
    given(CpuDevice(), CpuDevice())
    x = np.arange(60.0)
    expected = spmv(graph, x, resources=ON_PROCESSOR), pagerank(graph, resources=ON_PROCESSOR).rank
    with open_runtime(graph, resources=Resources(device="cuda")) as runtime:
        for _ in range(2):
            close(spmv(graph, x, runtime=runtime), expected[0])
            close(pagerank(graph, runtime=runtime).rank, expected[1])


class TestPlacement:
    def test_threads_stay_on_the_node_of_their_device(self, monkeypatch):
        """Devices of one node have neighbouring parts; what reads for a device runs where its thread does."""
        cores, seen = sorted(os.sched_getaffinity(0)), {}
        near = {0: cores[:1], 1: cores[-1:], 2: cores[:1]}
        monkeypatch.setattr("oocgraph.products.device_matrix.topology_of_devices", lambda _ids: topology({0: [0, 2], 1: [1]}))
        devices = [CpuDevice() for _ in range(3)]
        matrix, ring = of_rows([40] * 30), semiring_of("plus_times")

        def read(piece, _buffers):
            seen.setdefault(piece.start, sorted(os.sched_getaffinity(0)))
            return piece

        with DeviceMatrix(
            devices, matrix, np.dtype(float), ring, device_limits=[1 << 20] * 3, keep=True, read=read, cores=near
        ) as product:  # fmt: skip
            product.open()
            assert [share.device for share in product.shares] == [devices[0], devices[2], devices[1]]
            found = product.on_each(lambda _share: sorted(os.sched_getaffinity(0)))
            assert found == [cores[:1], cores[:1], cores[-1:]]
            assert seen == {0: cores[:1], 400: cores[:1], 800: cores[-1:]}
        assert sorted(os.sched_getaffinity(0)) == cores

    def test_where_devices_are_attached(self, tmp_path):
        for bus_id, node in (("0000:3b:00.0", "1"), ("0000:5e:00.0", "0"), ("0000:86:00.0", "-1")):
            (tmp_path / bus_id).mkdir()
            (tmp_path / bus_id / "numa_node").write_text(f"{node}\n")
        nodes = topology_of_devices(["0000:3B:00.0", "0000:5e:00.0", "0000:86:00.0", None, "0000:aa:00.0"], tmp_path)
        assert [(node.number, node.workers) for node in nodes] == [(0, (1, 2, 3, 4)), (1, (0,))]
        machine = topology({0: [0, 1], 1: [2, 3]})
        assert cores_near(nodes, machine) == {0: (2, 3), 1: (0, 1), 2: (0, 1), 3: (0, 1), 4: (0, 1)}
        assert cores_near(nodes, machine[:1]) == {}


def test_parts_are_cut_as_all_at_once(weighted):
    """Each thread finds its own part: together they are those that one cut makes."""
    for matrix in (*(in_format(of_rows([3, 0, 0, 50, 40, 1, 0]), form) for form in FORMATS), of_rows([0, 0]), of_rows([2]),
                   stored_matrix(weighted, transpose=True, column=None)):  # fmt: skip
        (whole,) = balanced_partition(matrix, 1)
        for count in (1, 2, 5):
            for whole_rows in (False, True) if hasattr(whole, "pointers") else (False,):
                parts = [_part_of(whole, g, count, whole_rows=whole_rows) for g in range(count)]
                assert [parts[0].start, parts[-1].stop] == [whole.start, whole.stop]
                assert all(a.stop == b.start for a, b in pairwise(parts))
                assert all(a.stop_line == b.first_line + b.first_line_partial for a, b in pairwise(parts))
                assert parts[-1].stop_line == whole.stop_line
                assert not whole_rows or not any(part.first_line_partial for part in parts)


class TestRefusals:
    def test_what_only_the_processor_has(self, given, kron):
        given(CpuDevice())
        with pytest.raises(ArgumentError, match="schedule is 'in-place', which the processor alone has"):
            pagerank(kron, schedule="in-place", resources=Resources(device="cuda"))
        limited = Resources(device_memory_budget="1G")
        with pytest.raises(ArgumentError, match="device_memory_budget is given, but schedule is 'in-place'"):
            pagerank(kron, schedule="in-place", resources=limited)
        with (
            oocgraph.config.setting("precision", "single"),
            pytest.raises(ArgumentError, match=r"device_memory_budget is given, but oocgraph.precision is single"),
        ):
            pagerank(kron, resources=limited)
        assert pagerank(kron, schedule="in-place").converged

    def test_auto_is_the_processor_where_ranks_do_not_fit(self, given, kron, caplog):
        given(CpuDevice(total_bytes=9_000))
        close(pagerank(kron).rank, pagerank(kron, resources=ON_PROCESSOR).rank)
        assert "device: cpu, because this ranking does not fit the memory of CPU (shim)" in caplog.text
