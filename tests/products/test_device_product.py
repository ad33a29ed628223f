"""Products on devices: what the processor makes, from pieces of any size, on one device and on several; and what is told when it fails."""

from __future__ import annotations

import re

import numpy as np
import pytest

from oocgraph import BudgetError, CorruptStoreError, DeviceError, OocGraphError, Resources, build_csr, open_graph, spmv
from oocgraph.algorithms import devices as module
from oocgraph.algorithms.spmv_on_device import multiply_where_it_is
from oocgraph.kernels.semirings import SEMIRINGS, semiring_of
from oocgraph.memory import Budget, host_bytes
from oocgraph.products import device_product
from oocgraph.products.device_matrix import DeviceMatrix
from oocgraph.products.device_product import DeviceShare, device_dtype
from oocgraph.sparse.balanced import balanced_partition
from oocgraph.sparse.edge_stream import stored_matrix
from tests.algorithms.test_spmv import vector_for
from tests.cuda_on_cpu.device import CpuDevice
from tests.cuda_on_cpu.memory import DeviceArray
from tests.ingest.helpers_build import ArraySource
from tests.reference_build import reference_build
from tests.sparse.matrices import CASES, FORMATS, ForeignMatrix, in_format, of_rows
from tests.stores import random_edges, rewrite

SHIM = [pytest.param((seed, deferred), marks=pytest.mark.shim, id=f"order-{seed}{'-deferred' * deferred}") for seed, deferred in
        [(0, False), (1, True), (2, True)]]  # fmt: skip


@pytest.fixture(params=[*SHIM, pytest.param(None, marks=pytest.mark.gpu, id="gpu")])
def devices(request):
    """Three devices: the processor's, with an order of threads and streams each, or three times the same GPU."""
    if request.param is None:
        return [request.getfixturevalue("cuda_device")] * 3
    seed, deferred = request.param
    return [CpuDevice(seed=seed + i, deferred=deferred) for i in range(3)]


@pytest.fixture(autouse=True)
def small_pieces(monkeypatch):
    """Cut lines by devices and by pieces."""
    monkeypatch.setattr(device_product, "PIECE_ENTRIES", 7)
    monkeypatch.setattr(device_product, "MIN_PIECE_ENTRIES", 5)


@pytest.fixture
def given(monkeypatch):
    """Let `spmv` find these devices."""

    def call(devices, reason="they are there"):
        monkeypatch.setattr(module, "devices_choice", lambda kind, **_: ((), "asked for") if kind == "cpu" else (tuple(devices), reason))

    return call


def close(y, expected):
    tolerance = 1e-5 if y.dtype == np.float32 else 1e-12
    np.testing.assert_allclose(y, expected, rtol=tolerance, atol=tolerance)
    assert y.dtype == expected.dtype


@pytest.mark.one_in(4)
@pytest.mark.parametrize("form", FORMATS)
def test_matrices_of_every_format_and_semiring(devices, given, form):
    given(devices)
    for case in ("no size", "no nonzeros", "one", "one huge row", "huge row among others", "empty rows everywhere"):
        matrix = in_format(CASES[case], form)
        for name in SEMIRINGS:
            for transpose in (False, True):
                x = vector_for(matrix.shape[0 if transpose else 1], name)
                options = {"semiring": name, "transpose": transpose}
                close(spmv(matrix, x, **options), spmv(matrix, x, resources=Resources(device="cpu"), **options))


@pytest.mark.one_in(4)
@pytest.mark.parametrize("num_devices", [1, 2, 3])
def test_dtypes_and_numbers_of_devices(devices, given, num_devices):
    given(devices[:num_devices])
    matrix = abs(of_rows([3, 0, 50, 40, 1]))
    for values, vector in ((np.float32, np.float32), (np.int8, np.float32), (np.int64, np.int32), (np.bool_, np.uint8)):
        for kind in (np.int32, np.int64):
            typed = matrix.astype(values)
            typed.indices, typed.indptr = typed.indices.astype(kind), typed.indptr.astype(kind)
            x = np.arange(50).astype(vector)
            close(spmv(typed, x), spmv(typed, x, resources=Resources(device="cpu")))


@pytest.mark.one_in(4)
@pytest.mark.parametrize("codec", ["none", "zstd"])
@pytest.mark.parametrize("directed", [False, True])
def test_graphs_are_streamed(devices, given, tmp_path, directed, codec):
    given(devices[:2])
    src, dst = random_edges(6)
    values = np.random.default_rng(0).integers(-5, 9, src.size).astype(np.float32)
    build_csr(ArraySource(src, dst, {"w": values}, weight="w"), tmp_path / "g", directed=directed, duplicates="sum")
    store = rewrite(tmp_path / "g", tmp_path / "h", codec=codec)
    for name in SEMIRINGS:
        for transpose in (False, True):
            x = vector_for(store.attributes.num_input_vertices, name)
            options = {"semiring": name, "transpose": transpose}
            close(spmv(store, x, **options), spmv(store, x, resources=Resources(device="cpu"), **options))


@pytest.mark.parametrize("edges", [([], []), ([0], [1]), ([0] * 50, list(range(1, 51)))])
def test_tiny_graphs(devices, given, tmp_path, edges):
    given(devices)
    reference_build(*edges, tmp_path / "g", implied=(0, 60))
    for name in ("plus_times", "min_plus"):
        close(
            spmv(str(tmp_path / "g"), np.arange(60.0), semiring=name),
            spmv(str(tmp_path / "g"), np.arange(60.0), semiring=name, resources=Resources(device="cpu")),
        )


@pytest.mark.usefixtures("steady_memory")
def test_the_interpreters_share_of_a_graph_is_charged(devices, given, tmp_path):
    """As on the processor."""
    given(devices)
    reference_build([0, 1], [1, 2], tmp_path / "g")
    with pytest.raises(BudgetError, match=r"threads and compiled code"):
        spmv(str(tmp_path / "g"), np.ones(3), resources=Resources(device="cuda"), memory_budget=host_bytes() + (10 << 20))


@pytest.mark.shim
class TestMemory:
    @pytest.mark.usefixtures("steady_memory")
    @pytest.mark.parametrize("form", FORMATS)
    def test_what_is_held_is_what_was_promised(self, form):
        """Of device memory and of pinned memory, while the matrix is many times larger than its pieces."""
        matrix = in_format(of_rows([40] * 100), form)
        device, ring = CpuDevice(), semiring_of("plus_times")
        budget = Budget(host_bytes() + (64 << 20))
        with DeviceMatrix([device], matrix, np.dtype(float), ring, device_limits=[1 << 20]) as product:
            assert len(product.shares[0].pieces) > 100
            product.charge(budget)
            product.open()
            product.x[:] = 1
            close(product.multiply(ring)[:, 0], matrix @ np.ones(50))
            assert device.peak_bytes <= product.device_bytes[0] < 24_000
            assert device.peak_pinned_bytes <= product.host_bytes == budget.reservations["pinned vectors and pieces"]
        assert device.allocated_bytes == device.pinned_bytes == 0

    @pytest.mark.usefixtures("steady_memory")
    @pytest.mark.parametrize(("codec", "weight", "most_bytes"), [("none", "float64", 0), ("none", "float32", 4), ("zstd", "float64", 36)])
    def test_reading_takes_no_more_than_was_promised(self, tmp_path, codec, weight, most_bytes):
        """Values of the dtype that is computed with are read where they are copied from; others are converted, or decoded."""
        src, dst = random_edges(6)
        source = ArraySource(src, dst, {"w": np.ones(src.size, weight)}, weight="w")
        store = rewrite(build_csr(source, tmp_path / "g", directed=True, duplicates="sum").url, tmp_path / "h", codec=codec)
        (part,), buffers = balanced_partition(stored_matrix(store, transpose=False, column="weight"), 1), []

        def read(piece, given):
            buffers.append(set(given))
            return piece.load(given)

        device, dtype, ring = CpuDevice(), np.dtype(np.float64), semiring_of("plus_times")
        share = DeviceShare(device, part, dtype, ring, device_limit=1 << 20, read=read)
        share.open()
        pinned, length = device.pinned_bytes, max(piece.num_entries for piece in share.pieces)
        share.kernels.set_values(share.x, 1.0)
        share.submit(lambda: share.product(ring)).result()
        assert all(("values" in given) == (weight == "float64") for given in buffers)
        assert pinned + share.num_slots * length * most_bytes <= share.host_bytes
        assert (pinned == share.host_bytes) == (most_bytes == 0)
        share.close()

    def test_pieces_shrink_to_what_the_device_has(self, monkeypatch):
        monkeypatch.setattr(device_product, "PIECE_ENTRIES", 1 << 20)
        (part,) = balanced_partition(of_rows([40] * 100), 1)
        sizes = [
            len(DeviceShare(CpuDevice(), part, np.dtype(float), semiring_of("plus_times"), device_limit=limit).pieces)
            for limit in (1 << 20, 20_000)
        ]
        assert sizes[0] == 1 < sizes[1]

    def test_pieces_are_no_more_than_the_host_has_time_for(self, monkeypatch):
        """However little room there is; a refusal is as quick. Large ones are not made larger."""
        monkeypatch.setattr(device_product, "MAX_PIECES", 7)
        monkeypatch.setattr(device_product, "PIECE_ENTRIES", 1000)
        monkeypatch.setattr(device_product, "MIN_PIECE_ENTRIES", 10)
        (part,) = balanced_partition(of_rows([40] * 100), 1)
        share = DeviceShare(CpuDevice(), part, np.dtype(float), semiring_of("plus_times"), device_limit=30_000)
        assert len(share.pieces) == 7
        with pytest.raises(BudgetError, match="3 pieces of the matrix"):
            DeviceShare(CpuDevice(), part, np.dtype(float), semiring_of("plus_times"), device_limit=share.device_bytes - 1)
        monkeypatch.setattr(device_product, "PIECE_ENTRIES", 100)
        assert len(DeviceShare(CpuDevice(), part, np.dtype(float), semiring_of("plus_times"), device_limit=1 << 20).pieces) == 40

    @pytest.mark.parametrize("keep", [False, True])
    @pytest.mark.parametrize("form", FORMATS)
    def test_the_budget_that_a_refusal_names_works_where_most_lines_are_empty(self, monkeypatch, form, keep):
        """Larger pieces have pointers for more lines: they are chosen only where these fit as well."""
        monkeypatch.setattr(device_product, "PIECE_ENTRIES", 1 << 20)
        monkeypatch.setattr(device_product, "MIN_PIECE_ENTRIES", 1 << 8)
        matrix = in_format(of_rows([1, *[0] * 199] * 6000, num_columns=1_200_000), form)
        options = {"dtype": np.dtype(float), "semiring": semiring_of("plus_times"), "keep": keep}
        with pytest.raises(BudgetError, match="device_memory_budget") as caught:
            DeviceMatrix([CpuDevice()], matrix, **options, device_limits=[1000])
        named = int(re.search(r"to at least (\d+)M", str(caught.value))[1]) << 20
        for more in range(0, 9 << 20, 1 << 20):
            with DeviceMatrix([CpuDevice()], matrix, **options, device_limits=[named + more]) as planned:
                assert sum(planned.device_bytes.values()) <= named + more

    def test_device_that_is_too_small_is_refused_with_what_would_do(self, given):
        given([CpuDevice()])
        matrix, x = of_rows([3] * 1000), np.ones(50)
        with pytest.raises(
            BudgetError, match=r"needs .* of device memory .* raise device_memory_budget to at least 1M, or use device='cpu'"
        ):
            spmv(matrix, x, resources=Resources(device="cuda", device_memory_budget=8000))
        with pytest.raises(BudgetError, match="may hold"):
            spmv(matrix, x, resources=Resources(device_memory_budget=8000))

    def test_auto_is_the_processor_where_the_device_is_too_small(self, given, caplog):
        given([CpuDevice(total_bytes=6000)])
        matrix, x = of_rows([3] * 1000), np.ones(50)
        close(spmv(matrix, x), matrix @ x)
        assert "device: cpu, because this product does not fit the memory of CPU (shim)" in caplog.text
        with pytest.raises(BudgetError):
            spmv(matrix, x, resources=Resources(device="cuda"))

    @pytest.mark.usefixtures("steady_memory")
    def test_budget_of_the_host_holds_pinned_memory(self, given, monkeypatch):
        monkeypatch.setattr(device_product, "PIECE_ENTRIES", 1 << 20)
        given([CpuDevice()])
        with pytest.raises(BudgetError, match=r"pinned vectors and pieces needs"):
            spmv(of_rows([0] * (1 << 18)), np.ones(50), resources=Resources(device="cuda"), memory_budget=host_bytes() + (3 << 20))


@pytest.mark.shim
class TestFailures:
    @pytest.mark.parametrize("name", ["plus_times", "min_plus", "or_and"])
    def test_nan_is_refused_as_on_the_processor(self, given, tmp_path, name):
        given([CpuDevice(), CpuDevice(seed=1)])
        matrix = of_rows([3, 4, 5])
        matrix.data[7] = np.nan
        x = np.ones(50, bool if name == "or_and" else float)
        with pytest.raises(OocGraphError, match="weight 7 of the matrix is NaN"):
            spmv(matrix, x, semiring=name)
        source = ArraySource(np.arange(4), np.array([1, 2, 3, 0]), {"w": np.array([1, 2, np.nan, 4])}, weight="w")
        store = build_csr(source, tmp_path / "w", directed=True, duplicates="keep")
        with pytest.raises(OocGraphError, match=r"weight \d of w of .* is NaN"):
            spmv(store, x[:4], semiring=name)

    def test_neighbour_that_is_no_vertex_never_reaches_a_kernel(self, given, tmp_path):
        reference_build([0, 1], [1, 2], tmp_path / "g", implied=(0, 5))
        wrong = open_graph(tmp_path / "g").read("out/indices")
        wrong[-1] = 3
        given([CpuDevice()])
        with pytest.raises(CorruptStoreError, match="must be at least 0 and below 3"):
            spmv(rewrite(tmp_path / "g", tmp_path / "d", arrays={"out/indices": wrong}), np.ones(5))

    @pytest.mark.parametrize("call", [1, 5, 20, 60])
    def test_device_that_is_lost_is_told(self, given, call):
        given([CpuDevice(), CpuDevice(fail_after=call)])
        with pytest.raises(DeviceError, match="the device was lost"):
            spmv(of_rows([40] * 9), np.ones(50), resources=Resources(device="cuda"))

    def test_arguments_that_contradict_each_other(self):
        matrix, x = of_rows([3]), np.ones(50)
        with pytest.raises(OocGraphError, match="device is 'gpu'; it must be one of auto, cpu, cuda"):
            spmv(matrix, x, resources=Resources(device="gpu"))
        with pytest.raises(OocGraphError, match="device_memory_budget is given, but the product would run on the processor"):
            spmv(matrix, x, resources=Resources(device="cpu", device_memory_budget="1G"))


class LikeCupy(DeviceArray):
    """An array in a device's memory on which operators work there, as CuPy's do."""

    device = CpuDevice()

    def plain(self):
        return np.array(np.ndarray.view(self, np.ndarray))

    def __array_ufunc__(self, ufunc, method, *inputs, **options):
        return put(getattr(ufunc, method)(*(one.plain() if isinstance(one, LikeCupy) else one for one in inputs), **options))

    def __getitem__(self, key):
        return super().__getitem__(key) if isinstance(key, slice) else self.plain()[key]

    def astype(self, dtype, copy=True):
        return self if self.dtype == dtype and not copy else put(self.plain().astype(dtype))

    def all(self):
        return self.plain().all()

    def min(self):
        return self.plain().min()

    def argmax(self):
        return self.plain().argmax()


def put(array):
    """Bring an array there."""
    array = np.atleast_1d(np.ascontiguousarray(array))
    there = LikeCupy.device.empty(array.size, array.dtype).view(LikeCupy)
    np.ndarray.view(there, np.ndarray)[:] = array
    return there


@pytest.fixture
def there(monkeypatch):
    """Make a device whose arrays are like CuPy's."""
    empty = CpuDevice.empty
    monkeypatch.setattr(CpuDevice, "empty", lambda self, shape, dtype: empty(self, shape, dtype).view(LikeCupy))
    return LikeCupy.device


@pytest.mark.shim
class TestWhereItIs:
    @pytest.mark.parametrize("form", FORMATS)
    def test_nothing_is_copied_to_the_host(self, there, form):
        for case in ("no nonzeros", "one", "huge row among others", "empty rows everywhere"):
            matrix = in_format(CASES[case], form)
            arrays = ("data", "row", "col") if matrix.format == "coo" else ("data", "indices", "indptr")
            on_device = ForeignMatrix.of(matrix)
            for name in arrays:
                setattr(on_device, name, put(getattr(matrix, name)))
            for name in SEMIRINGS:
                for transpose in (False, True):
                    x = vector_for(matrix.shape[0 if transpose else 1], name)
                    expected = spmv(matrix, x, semiring=name, transpose=transpose, resources=Resources(device="cpu"))
                    before = there.copied_bytes.copy()
                    y = multiply_where_it_is(
                        there, on_device, put(x), semiring_of(name), transpose=transpose, device_memory_budget=None
                    )  # fmt: skip
                    assert isinstance(y, LikeCupy)
                    assert there.copied_bytes == before
                    close(y.plain(), expected)

    def test_what_cannot_be_multiplied_is_refused(self, there):
        matrix = of_rows([3, 4])
        on_device = ForeignMatrix.of(matrix)
        on_device.data, on_device.indices, on_device.indptr = put(matrix.data), put(matrix.indices), put(matrix.indptr)
        ring, options = semiring_of("plus_times"), {"transpose": False, "device_memory_budget": None}
        with pytest.raises(OocGraphError, match="x has 4 elements but the matrix has 50 columns"):
            multiply_where_it_is(there, on_device, put(np.ones(4)), ring, **options)
        with pytest.raises(OocGraphError, match="x is NaN at position 3; set a number there"):
            multiply_where_it_is(there, on_device, put(np.where(np.arange(50) == 3, np.nan, 1)), ring, **options)
        with pytest.raises(BudgetError, match="the product on CPU"):
            multiply_where_it_is(there, on_device, put(np.ones(50)), ring, transpose=False, device_memory_budget=39)
        with pytest.raises(BudgetError, match="the product on CPU"):  # 400 bytes more where integers have to be converted
            multiply_where_it_is(there, on_device, put(np.ones(50, np.int32)), ring, transpose=False, device_memory_budget=439)
        multiply_where_it_is(there, on_device, put(np.ones(50)), ring, transpose=False, device_memory_budget=40)
        multiply_where_it_is(there, on_device, put(np.ones(50, np.int32)), ring, transpose=False, device_memory_budget=440)
        on_device.data = put(np.where(np.arange(7) == 5, np.nan, 1))
        for name in ("plus_times", "min_plus", "or_and"):
            with pytest.raises(OocGraphError, match="weight 5 of the matrix is NaN"):
                multiply_where_it_is(there, on_device, put(np.ones(50, bool if name == "or_and" else float)), semiring_of(name), **options)


@pytest.mark.gpu
@pytest.mark.parametrize("form", FORMATS)
def test_cupy_matrices_give_cupy_vectors(cuda_device, form):
    cupy = pytest.importorskip("cupy")
    sparse = pytest.importorskip("cupyx.scipy.sparse")
    matrix = in_format(of_rows([1, 2, 3000, 1, 0, 3]), form)
    there = getattr(sparse, f"{matrix.format}_matrix")(matrix)
    for transpose in (False, True):
        x = vector_for(matrix.shape[0 if transpose else 1], "plus_times")
        y = spmv(there, cupy.asarray(x), transpose=transpose)
        assert isinstance(y, cupy.ndarray)
        close(y.get(), spmv(matrix, x, transpose=transpose, resources=Resources(device="cpu")))
    with pytest.raises(OocGraphError, match=r"give matrix\.get\(\)"):
        spmv(there, cupy.ones(50), resources=Resources(device="cpu"))


def test_booleans_are_floats_on_a_device():
    assert device_dtype(np.dtype(np.uint8), semiring_of("or_and")) == np.float32
    assert device_dtype(np.dtype(np.float64), semiring_of("min_plus")) == np.float64
