"""Compiled products of a part and a vector against NumPy: all formats, semirings, dtypes and cuts."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from oocgraph.compiled.intrinsics import AHEAD
from oocgraph.errors import OocGraphError
from oocgraph.kernels import spmv
from oocgraph.kernels.semirings import OR_AND, SEMIRINGS, semiring_of
from tests.oracles import spmv as reference_spmv
from tests.sparse.matrices import of_rows

DTYPES = [np.float32, np.float64]


def same(one, other):
    np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-5)


def vectors(rng, semiring, dtype, *sizes):
    """One vector of each size, as the semiring takes them."""
    if semiring.code == OR_AND:
        return [rng.integers(0, 2, size).astype(np.uint8) for size in sizes]
    return [rng.integers(-9, 9, size).astype(dtype) for size in sizes]


@settings(deadline=None, max_examples=40)
@given(
    st.lists(st.integers(0, 40), min_size=1, max_size=12), st.sampled_from(list(SEMIRINGS)), st.sampled_from(DTYPES),
    st.booleans(), st.booleans(), st.integers(0, 99), st.data(),
)  # fmt: skip
def test_any_part_of_any_matrix(lengths, name, dtype, weighted, partial, seed, data):
    rng, semiring = np.random.default_rng(seed), semiring_of(name)
    matrix = of_rows(lengths, seed=seed, dtype=dtype)
    start = data.draw(st.integers(0, matrix.nnz))
    stop = data.draw(st.integers(start, matrix.nnz))
    x, y, carry = vectors(rng, semiring, dtype, 50, len(lengths), 1)
    indices, values = matrix.indices[start:stop], matrix.data[start:stop] if weighted else None
    coo = matrix.tocoo()
    for form in ("csr", "coo", "csc"):
        results = []
        for kernels in (spmv, reference_spmv):
            own, own_carry = y.copy(), carry.copy()
            if form == "csr":
                kernels.multiply_csr(semiring.code, partial, matrix.indptr, start, stop, indices, values, x, own, own_carry)
            elif form == "coo":
                kernels.multiply_coo(semiring.code, partial, 0, coo.row[start:stop], coo.col[start:stop], values, x, own, own_carry)
            else:  # the same arrays are columns of the transpose
                own = np.resize(y, 50)
                kernels.multiply_csc(semiring.code, matrix.indptr, start, stop, indices, values, y, own)
            results.append((own, own_carry))
        same(results[0][0], results[1][0])
        same(results[0][1], results[1][1])


@pytest.mark.parametrize("name", ["plus_times", "min_plus"])
@pytest.mark.parametrize(("size", "at"), [(3, 0), (3, 1), (3, 2), (3 * AHEAD, AHEAD), (3 * AHEAD, 3 * AHEAD - 1)])
def test_nan_is_handed_on(name, size, at):
    """Wherever it stands in a row: what a caller sees in y tells it that a weight was NaN."""
    semiring = semiring_of(name)
    values = np.arange(size) - 1.0
    values[at] = np.nan
    row, columns, x = np.zeros(size, np.int32), np.arange(size), np.ones(size)
    for part in (slice(0, size), slice(at, at + 1)):
        y, carry = semiring.zeros(1, np.float64), semiring.zeros(1, np.float64)
        size = len(row[part])
        spmv.multiply_csr(semiring.code, False, np.array([0, size]), 0, size, columns[part], values[part], x, y, carry)
        assert np.isnan(y[0])
        y = semiring.zeros(1, np.float64)
        spmv.multiply_coo(semiring.code, False, 0, row[part], columns[part], values[part], x, y, carry)
        assert np.isnan(y[0])
        assert np.isnan(semiring.plus(y, semiring.zeros(1, np.float64)))[0]


@pytest.mark.parametrize("name", list(SEMIRINGS))
@pytest.mark.parametrize("weighted", [False, True])
def test_rows_around_the_distance_of_asking(name, weighted):
    """Elements are asked for `AHEAD` nonzeros before they are used, of the same row or of a later one, but not behind the last."""
    semiring, rng = semiring_of(name), np.random.default_rng(0)
    for lengths in ([AHEAD - 1], [AHEAD], [AHEAD + 1], [1, 3 * AHEAD, 0, AHEAD + 1], [AHEAD, 1]):
        matrix = of_rows(lengths, num_columns=4 * AHEAD)
        x, y, carry = vectors(rng, semiring, np.float64, 4 * AHEAD, len(lengths), 1)
        results = []
        for kernels in (spmv, reference_spmv):
            own, values = y.copy(), matrix.data if weighted else None
            kernels.multiply_csr(semiring.code, False, matrix.indptr, 0, matrix.nnz, matrix.indices, values, x, own, carry.copy())
            results.append(own)
        same(*results)


def test_infinities_come_out_as_in_numpy():
    x, y = np.array([np.inf, 1.0, -np.inf]), np.zeros(3)
    pointers, indices = np.array([0, 2, 4, 6]), np.array([0, 1, 2, 1, 0, 2])
    spmv.multiply_csr(0, False, pointers, 0, 6, indices, None, x, y, y[:1].copy())
    np.testing.assert_array_equal(y, [np.inf, -np.inf, np.nan])


def test_unknown_semiring_is_refused():
    with pytest.raises(OocGraphError, match="plus_times, min_plus, or_and, plus_second"):
        semiring_of("max_times")
