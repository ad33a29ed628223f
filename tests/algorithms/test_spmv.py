"""A graph or a matrix times a vector: SciPy's values, under the user's ids, within the budget, and clear refusals."""

from __future__ import annotations

import gc
import re
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp

from oocgraph import BudgetError, CorruptStoreError, OocGraphError, Resources, build_csr, open_graph, spmv
from oocgraph.kernels.semirings import SEMIRINGS, semiring_of
from oocgraph.memory import SLACK_BYTES, Budget, PeakSampler, host_bytes
from oocgraph.products.product import multiply_streamed
from oocgraph.sparse import edge_stream
from oocgraph.sparse.edge_stream import EdgeStream
from oocgraph.store.vertices import VertexIds
from tests.contracts.product import vector_for
from tests.ingest.helpers_build import ArraySource
from tests.oracles.products import dense_product
from tests.reference_build import reference_build
from tests.sparse.matrices import CASES, FORMATS, in_format, of_rows
from tests.stores import random_edges, rewrite, string_store


@pytest.fixture(autouse=True)
def small_pieces(monkeypatch):
    """Rows are cut many times, even of small graphs."""
    monkeypatch.setattr(edge_stream, "PIECE_BYTES", 60)


def expected_of(matrix, x, name, transpose):
    """Multiply with NumPy, from the identity on."""
    matrix = matrix.T if transpose else matrix
    semiring = semiring_of(name)
    x = x.view(np.uint8) if name == "or_and" else x
    return dense_product(matrix, x, np.full(matrix.shape[0], semiring.identity, x.dtype), name)


@pytest.mark.parametrize("transpose", [False, True])
@pytest.mark.parametrize("name", SEMIRINGS)
class TestGraphs:
    @pytest.mark.parametrize("order", ["degree", "original"])
    @pytest.mark.parametrize("directed", [False, True])
    @pytest.mark.parametrize("implied", [None, (0, 230)], ids=["listed", "range"])
    def test_equals_scipy_under_the_users_ids(self, tmp_path, name, transpose, order, directed, implied):
        src, dst = random_edges(4)
        reference_build(src, dst, tmp_path / "g", directed=directed, vertex_order=order, implied=implied, keep_self_loops=True)
        store = open_graph(tmp_path / "g")
        matrix = store.to_scipy(dtype=np.float64)
        x = vector_for(matrix.shape[1], name)
        y = spmv(store, x, semiring=name, transpose=transpose, resources=Resources(threads=2))
        np.testing.assert_allclose(y, expected_of(matrix, x, name, transpose), atol=1e-12)

    @pytest.mark.parametrize("codec", ["none", "zstd"])
    @pytest.mark.parametrize("directed", [False, True])
    def test_weights(self, tmp_path, name, transpose, directed, codec):
        src, dst = random_edges(6)
        values = np.random.default_rng(0).integers(-5, 9, src.size).astype(np.float32)
        build_csr(ArraySource(src, dst, {"w": values}, weight="w"), tmp_path / "g", directed=directed, duplicates="sum")
        store = rewrite(tmp_path / "g", tmp_path / "h", codec=codec)
        matrix = store.to_scipy()
        x = vector_for(matrix.shape[1], name)
        y = spmv(str(tmp_path / "h"), x, semiring=name, transpose=transpose)
        np.testing.assert_allclose(y, expected_of(matrix, x, name, transpose), rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("edges", [([], []), ([0], [1]), ([0] * 50, list(range(1, 51))), ([3, 4], [3, 5])])
@pytest.mark.parametrize("directed", [False, True])
def test_tiny_graphs(tmp_path, edges, directed):
    """No edge, one, a star, a self-loop; ids without edges before, between and behind."""
    reference_build(*edges, tmp_path / "g", implied=(0, 60), directed=directed, keep_self_loops=True)
    store = open_graph(tmp_path / "g")
    x = np.arange(60.0)
    for transpose in (False, True):
        np.testing.assert_allclose(spmv(store, x, transpose=transpose), expected_of(store.to_scipy(), x, "plus_times", transpose))
    assert np.isinf(spmv(store, x, semiring="min_plus")[-1])


def test_ids_that_are_strings(tmp_path):
    store = string_store(tmp_path / "g", ["b", "c", "b"], ["c", "a", "d"], others=["aa", "z"])
    ids = np.concatenate([ids for ids, _ in VertexIds(store).blocks()])
    assert ids.tolist() == ["a", "aa", "b", "c", "d", "z"]
    assert spmv(store, np.array([1, 2, 4, 8, 16, 32])).tolist() == [8, 0, 24, 5, 4, 0]


@pytest.mark.parametrize("transpose", [False, True])
@pytest.mark.parametrize("form", FORMATS)
def test_matrices_of_scipy(form, transpose):
    for case, matrix in CASES.items():
        for name in SEMIRINGS:
            x = vector_for(matrix.shape[0 if transpose else 1], name)
            y = spmv(in_format(matrix, form), x, semiring=name, transpose=transpose, resources=Resources(threads=2))
            np.testing.assert_allclose(y, expected_of(matrix, x, name, transpose), err_msg=f"{case}, {name}", atol=1e-12)


@pytest.mark.parametrize(
    ("values", "vector", "result"),
    [
        (np.float32, np.float32, np.float32), (np.float32, np.float16, np.float32), (np.int8, np.float32, np.float32),
        (np.float32, np.float64, np.float64), (np.int32, np.int64, np.float64), (np.bool_, np.uint8, np.float64),
        (np.uint64, np.bool_, np.float64),
    ],
)  # fmt: skip
def test_dtypes(values, vector, result):
    matrix = abs(of_rows([3, 0, 5, 40])).astype(values)
    x = np.arange(50).astype(vector)
    y = spmv(matrix, x)
    assert y.dtype == result
    np.testing.assert_allclose(y, matrix.astype(float) @ x.astype(float))


def test_x_may_be_of_the_other_byte_order():
    """Kernels take the machine's own."""
    matrix = sp.csr_array([[1.0, 2.0], [0.0, 3.0]])
    assert spmv(matrix, np.array([1.0, 10.0]).astype(">f8")).tolist() == [21, 30]


def test_x_may_be_any_sequence_and_is_not_changed():
    matrix = of_rows([3, 4])
    x = np.arange(100.0)[::2]
    x.flags.writeable = False
    np.testing.assert_allclose(spmv(matrix, x), matrix @ x)
    np.testing.assert_allclose(spmv(matrix, list(x)), matrix @ x)
    np.testing.assert_array_equal(x, np.arange(100.0)[::2])


@pytest.mark.parametrize("threads", [1, 2])
def test_progress_counts_the_edges_up_to_all(tmp_path, monkeypatch, threads):
    """A thread that is alone reports each piece; of several, the one that called does, and the end is reported in any case."""
    monkeypatch.setattr(edge_stream, "READ_AHEAD", 0)
    reference_build(*random_edges(4), tmp_path / "g")
    store, seen = open_graph(tmp_path / "g"), []
    spmv(store, np.ones(store.num_vertices), progress=lambda *call: seen.append(call), resources=Resources(threads=threads))
    edges = {phase for phase, _, _ in seen}, {total for _, _, total in seen}
    done = [done for _, done, _ in seen]
    assert edges == ({"edges"}, {store.attributes.num_stored_edges})
    assert (done, done[-1]) == (sorted(done), store.attributes.num_stored_edges)
    assert threads > 1 or len({*done}) > 10
    seen.clear()
    spmv(sp.eye_array(5, format="csc"), np.ones(5), progress=lambda *call: seen.append(call))
    assert seen == [("edges", 5, 5)]


class TestBadInput:
    @pytest.fixture
    def store(self, tmp_path):
        reference_build([0, 1], [1, 2], tmp_path / "g", implied=(0, 5))
        return open_graph(tmp_path / "g")

    @pytest.mark.parametrize(
        ("x", "options", "message"),
        [
            (np.ones(4), {}, "x has 4 elements but .* has 5 vertices, isolated ones included"),
            (np.ones((5, 1, 1)), {}, "x has 3 dimensions; it must be a vector, or a matrix whose columns are vectors"),
            (np.array(1.0), {}, "x has 0 dimensions"),
            (np.ones((4, 5)), {}, "x has 4 rows but .* has 5 vertices, isolated ones included"),
            (np.array([[1, 2], [3, np.nan], [0, 0], [0, 0], [0, 0]]), {}, "x is NaN at position 1, 1; set a number there"),
            ([1, 2, np.nan, 4, 5], {}, "x is NaN at position 2"),
            (np.ones(5, complex), {}, "x is of dtype complex128.*convert it with astype"),
            (np.array(list("abcde")), {}, "x is of dtype <U1"),
            (np.ones(5, object), {}, "x is of dtype object"),
            (np.ones(5), {"semiring": "or_and"}, "or_and takes bools; give x != 0"),
            (np.ones(5), {"semiring": "max_plus"}, "one of plus_times, min_plus"),
            (np.ones(5), {"weight": "cost"}, "'cost' is no numeric edge column"),
            (np.ones(5), {"weight": "cost", "semiring": "plus_second"}, "'cost' is no numeric edge column"),
            (np.ones(5), {"memory_budget": "lots"}, "'lots' is not a size"),
        ],
    )
    def test_arguments_are_refused(self, store, x, options, message):
        with pytest.raises(OocGraphError, match=message):
            spmv(store, x, **options)

    @pytest.mark.parametrize("semiring", ["plus_times", "min_plus", "or_and"])
    def test_nan_among_weights_is_named(self, tmp_path, semiring):
        matrix = of_rows([3, 4, 5])
        matrix.data[7] = np.nan
        x = np.ones(50, bool if semiring == "or_and" else float)
        for form in FORMATS:
            with pytest.raises(OocGraphError, match=r"weight .* of the matrix is NaN; give every edge a number"):
                spmv(in_format(matrix, form), x, semiring=semiring)
        values = np.array([1, 2, np.nan, 4])
        source = ArraySource(np.array([0, 1, 2, 3]), np.array([1, 2, 3, 0]), {"w": values}, weight="w")
        store = build_csr(source, tmp_path / "w", directed=True, duplicates="keep")
        at = int(np.flatnonzero(np.isnan(store.read("out/weight")))[0])
        with pytest.raises(OocGraphError, match=f"weight {at} of w of .* is NaN"):
            spmv(store, x[:4], semiring=semiring)
        if semiring == "plus_times":
            assert spmv(store, x[:4], semiring="plus_second").tolist() == [1, 1, 1, 1]

    def test_nan_that_infinities_make_stands(self):
        matrix = sp.csr_array(np.array([[1.0, 1.0], [1.0, 0.0]]))
        np.testing.assert_array_equal(spmv(matrix, [np.inf, -np.inf]), [np.nan, np.inf])

    @pytest.mark.parametrize("kind", [complex, np.longdouble])
    def test_values_of_other_dtypes_are_refused(self, kind):
        with pytest.raises(OocGraphError, match="values are of dtype"):
            spmv(of_rows([3]).astype(kind), np.ones(50))

    def test_other_matrices_are_refused(self):
        with pytest.raises(OocGraphError, match="tocsr"):
            spmv(np.eye(3), np.ones(3))
        with pytest.raises(OocGraphError, match="sorted neither by row nor by column"):
            spmv(sp.coo_array((np.ones(3), ([2, 0, 1], [2, 0, 1])), shape=(3, 3)), np.ones(3))
        with pytest.raises(OocGraphError, match="a matrix has values of its own"):
            spmv(of_rows([3]), np.ones(50), weight="w")

    def test_neighbour_that_is_no_vertex_is_found(self, store, tmp_path):
        wrong = store.read("out/indices")
        wrong[-1] = 3
        damaged = rewrite(store.url, tmp_path / "d", arrays={"out/indices": wrong})
        with pytest.raises(CorruptStoreError, match=r"must be at least 0 and below 3.*oocgraph check"):
            spmv(damaged, np.ones(5))

    def test_missing_chunk_is_named(self, store):
        (Path(store.url) / "out" / "indices" / "c" / "0").unlink()
        with pytest.raises(CorruptStoreError, match="out/indices is missing"):
            spmv(store, np.ones(5))


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    """20 MB of neighbours and weights, far more than the pieces in work."""
    rng = np.random.default_rng(0)
    folder = tmp_path_factory.mktemp("memory")
    source = ArraySource(rng.integers(0, 50_000, 900_000), rng.integers(0, 50_000, 900_000), {"w": rng.random(900_000)}, weight="w")
    return build_csr(source, folder / "g", directed=False, duplicates="sum")


class TestMemory:
    @pytest.fixture(autouse=True)
    def pieces(self, monkeypatch):
        monkeypatch.setattr(edge_stream, "PIECE_BYTES", 256 << 10)

    @pytest.mark.parametrize("codec", ["none", "zstd"])
    def test_peak_is_what_was_promised(self, store, tmp_path, monkeypatch, codec):
        """Measured while a product runs, with the first one's imports and kernels behind it."""
        store = store if codec == "none" else rewrite(store.url, tmp_path / "z", codec=codec)
        promised = []

        class Noted(Budget):
            def reserve(self, name, num_bytes):
                super().reserve(name, num_bytes)
                promised.append((self.promised_bytes, self.reserved_bytes))

        x = np.random.default_rng(1).random(store.attributes.num_input_vertices)
        first = spmv(store, x, resources=Resources(threads=2))
        monkeypatch.setattr("oocgraph.engine.opened.Budget", Noted)
        gc.collect()
        with PeakSampler() as sampler:
            y = spmv(store, x, resources=Resources(threads=2))
        np.testing.assert_allclose(y, first)
        np.testing.assert_allclose(y, store.to_scipy() @ x)
        assert sampler.peak_bytes <= promised[-1][0]
        if codec == "none":
            streamed = promised[-1][1] - SLACK_BYTES
            assert streamed < 0.9 * 12 * store.attributes.num_stored_edges, "edges are not all in memory"

    @pytest.mark.usefixtures("steady_memory")
    def test_too_small_a_budget_is_refused_before_anything_is_read(self, store, monkeypatch):
        x = np.ones(store.attributes.num_input_vertices)
        spmv(store, x)
        gc.collect()
        message = r"vectors .*, pieces of edges .* need .*set memory_budget to at least"
        with monkeypatch.context() as patch:
            patch.setattr(EdgeStream, "each", None)
            with pytest.raises(BudgetError, match=message) as refused:
                spmv(store, x, memory_budget=host_bytes() + (4 << 20))
        smallest = int(re.search(r"at least (\d+)M", str(refused.value))[1])
        spmv(store, x, memory_budget=f"{smallest}M")
        with pytest.raises(BudgetError):
            spmv(store, x, memory_budget=f"{smallest - 24}M")

    @pytest.mark.usefixtures("steady_memory")
    def test_budget_that_a_matrix_does_not_fit(self):
        matrix = sp.csc_array((5_000_000, 10))
        with pytest.raises(BudgetError, match="vectors needs"):
            spmv(matrix, np.ones(10), memory_budget=host_bytes() + (1 << 20))

    @pytest.mark.usefixtures("steady_memory")
    def test_pieces_stay_as_far_as_the_budget_goes(self, store):
        """The second product reads only those that were not kept; the result is the same."""
        x = np.random.default_rng(1).random(store.num_rows)
        expected, ring = None, semiring_of("plus_times")
        for room in (0, 8 << 20, 1 << 30):
            budget = Budget(host_bytes() + (40 << 20) + room)
            edges = EdgeStream(store, budget, transpose=False, column="weight", threads=2, keep_edges=room > 0)
            read = []
            for _ in range(3):
                y = np.zeros_like(x)
                multiply_streamed(edges, x, y, ring)
                expected = y if expected is None else expected
                np.testing.assert_allclose(y, expected)
                read.append(edges.bytes_requested)
            assert (edges.num_kept > 0) == (room > 0)
            again = read[1] - read[0]
            assert again == read[2] - read[1]
            if room == 1 << 30:
                assert again == 0
                assert edges.num_kept == len(edges.parts)
            assert again == read[0] if room == 0 else again < read[0]
