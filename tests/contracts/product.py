"""What every product keeps to, wherever it is made: SciPy's numbers in every semiring, both ways, with and without weights."""

from __future__ import annotations

import numpy as np
import pytest

from oocgraph import OocGraphError, build_csr, open_graph, spmv
from oocgraph.kernels.semirings import SEMIRINGS, semiring_of
from tests.ingest.helpers_build import ArraySource
from tests.oracles.products import dense_product
from tests.reference_build import reference_build
from tests.sparse.matrices import CASES, FORMATS, in_format, of_rows
from tests.stores import random_edges, rewrite

EDGES = {"none": ([], []), "one": ([0], [1]), "star": ([0] * 50, [*range(1, 51)]), "self-loop": ([3, 4], [3, 5])}


def vector_for(size, name, seed=0):
    """Return a vector that a semiring takes."""
    rng = np.random.default_rng(seed)
    return rng.random(size) < 0.3 if name == "or_and" else rng.standard_normal(size)


def check(y, matrix, x, name, transpose):
    """Compare a product with a dense one."""
    matrix = matrix.T if transpose else matrix
    start = np.full(matrix.shape[0], semiring_of(name).identity, np.uint8 if name == "or_and" else np.float64)
    expected = dense_product(matrix, x.view(np.uint8) if name == "or_and" else x, start, name)
    assert y.dtype == (np.bool_ if name == "or_and" else np.float64)
    np.testing.assert_allclose(y, expected, rtol=1e-6, atol=1e-6)


class ProductContract:
    """Tests of one place where products are made; a subclass says which."""

    @pytest.fixture
    def options(self):
        """Return the arguments of `oocgraph.spmv` that mean it."""
        raise NotImplementedError

    @pytest.mark.parametrize("name", SEMIRINGS)
    @pytest.mark.parametrize("codec", ["none", "zstd"])
    def test_graphs_with_weights(self, options, tmp_path, name, codec):
        src, dst = random_edges(6)
        values = np.random.default_rng(0).integers(-5, 9, src.size).astype(np.float32)
        build_csr(ArraySource(src, dst, {"w": values}, weight="w"), tmp_path / "g", directed=True, duplicates="sum")
        store = rewrite(tmp_path / "g", tmp_path / "h", codec=codec)
        matrix = store.to_scipy()
        x = vector_for(matrix.shape[1], name)
        for transpose in (False, True):
            check(spmv(store, x, semiring=name, transpose=transpose, **options), matrix, x, name, transpose)

    @pytest.mark.parametrize("edges", EDGES)
    def test_tiny_graphs(self, options, tmp_path, edges):
        reference_build(*EDGES[edges], tmp_path / "g", implied=(0, 60), keep_self_loops=True)
        store = open_graph(tmp_path / "g")
        x = np.arange(60.0)
        for name in ("plus_times", "min_plus"):
            check(spmv(store, x, semiring=name, **options), store.to_scipy(dtype=np.float64), x, name, False)

    @pytest.mark.parametrize("form", FORMATS)
    def test_matrices(self, options, form):
        for matrix in CASES.values():
            for name in SEMIRINGS:
                x = vector_for(matrix.shape[1], name)
                check(spmv(in_format(matrix, form), x, semiring=name, **options), matrix, x, name, False)

    @pytest.mark.parametrize("width", [0, 3])
    def test_each_column_of_a_dense_matrix(self, options, tmp_path, width):
        src, dst = random_edges(4)
        build_csr(ArraySource(src, dst), tmp_path / "g", directed=True)
        store = open_graph(tmp_path / "g")
        matrix = of_rows([3, 0, 70, 2, 0, 5])
        for given in (store, matrix, matrix.tocsc()):
            size = store.attributes.num_input_vertices if given is store else 50
            for name in SEMIRINGS if width == 3 else ("plus_times",):
                x = np.stack([vector_for(size, name), *(np.roll(vector_for(size, name), c) for c in range(1, width))], axis=1)[:, :width]
                y = spmv(given, x, semiring=name, **options)
                assert y.shape == (size if given is store else 6, width)
                for c in range(width):
                    np.testing.assert_allclose(y[:, c], spmv(given, x[:, c], semiring=name, **options), atol=1e-12)

    def test_what_cannot_be_multiplied(self, options, tmp_path):
        """A vector of another length, one with NaN, a weight that is NaN where it would be lost: each is named."""
        values = np.array([np.nan, 1.0])
        build_csr(ArraySource(np.array([0, 1]), np.array([1, 2]), {"w": values}, weight="w"), tmp_path / "g", directed=True)
        store = open_graph(tmp_path / "g")
        with pytest.raises(OocGraphError, match="x has 7 elements but"):
            spmv(store, np.ones(7), **options)
        with pytest.raises(OocGraphError, match="x is NaN at position 1"):
            spmv(store, np.array([1, np.nan, 2]), **options)
        for name, x in (("plus_times", np.ones(3)), ("or_and", np.ones(3, bool))):
            with pytest.raises(OocGraphError, match=r"weight \d of w of .*g is NaN; give every edge a number"):
                spmv(store, x, semiring=name, **options)
