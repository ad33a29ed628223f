"""A sparse matrix times a vector, in pieces that are cut anywhere, against NumPy."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from oocgraph.kernels import gpu_spmv
from oocgraph.kernels import pagerank as rank_kernels
from oocgraph.kernels.gpu_spmv import GpuProductKernels
from oocgraph.kernels.semirings import semiring_of
from tests.kernels.on_device import C_NAME, DEVICES, Bench, open_device, source
from tests.oracles import spmv as reference_spmv

INDEX_DTYPES = {"uint32": np.dtype(np.uint32), "int64": np.dtype(np.int64)}
VALUE_DTYPES = {"float": np.dtype(np.float32), "double": np.dtype(np.float64)}
BLOCK = 256


class Matrix:
    """Random values at random places, in rows of given lengths, and what it makes of a random vector."""

    def __init__(self, lengths: Any, *, dtype: np.dtype[Any], value_dtype: np.dtype[Any], weighted: bool = True, seed: int = 0) -> None:
        rng = np.random.default_rng(seed)
        self.offset = np.concatenate([[0], np.cumsum(np.asarray(lengths, np.int64))]).astype(np.int64)
        self.num_rows, self.num_edges = self.offset.size - 1, int(self.offset[-1])
        self.x = rng.standard_normal(300).astype(value_dtype)
        self.indices = rng.integers(0, self.x.size, self.num_edges).astype(dtype)
        self.values = rng.standard_normal(self.num_edges).astype(value_dtype) if weighted else None
        self.before = rng.standard_normal(self.num_rows + 5).astype(value_dtype)

    def product(self, e0: int, e1: int, first_row: int) -> np.ndarray:
        """Compute y after a piece."""
        y = self.before.astype(np.float64)
        row = np.repeat(np.arange(self.num_rows), np.diff(self.offset))[e0:e1]
        products = self.x[self.indices[e0:e1].astype(np.int64)].astype(np.float64)
        if self.values is not None:
            products *= self.values[e0:e1]
        np.add.at(y, first_row + row, products)
        return y


def multiply(
    bench: Bench, matrix: Matrix, pieces: list[tuple[int, int]], *, grid: int = 2, first_row: int = 0, share: int = 2048
) -> np.ndarray:
    """Run the kernel over the pieces; return y."""
    dtype, value_dtype = matrix.indices.dtype, matrix.x.dtype
    offset, indices, x, y = (bench.put(array) for array in (matrix.offset, matrix.indices, matrix.x, matrix.before))
    values = None if matrix.values is None else bench.put(matrix.values)
    for e0, e1 in pieces:
        bench.launch(
            f"spmv<{C_NAME[dtype]}, {C_NAME[value_dtype]}, 0>", grid, BLOCK, offset, np.int64(matrix.num_rows), indices, values, x, y,
            np.int64(first_row), np.int64(e0), np.int64(e1), np.int32(share), value_dtype.type(0),
        )  # fmt: skip
    return bench.get(y)


def check(y: np.ndarray, expected: np.ndarray) -> None:
    tolerance = 1e-3 if y.dtype == np.float32 else 1e-9
    np.testing.assert_allclose(y, expected, rtol=tolerance, atol=tolerance)


NAMES = [f"spmv<{C_NAME[dtype]}, {C_NAME[value]}, 0>" for dtype in INDEX_DTYPES.values() for value in VALUE_DTYPES.values()]


@pytest.fixture(scope="module", params=DEVICES)
def bench(request):
    """Each device in turn, with the kernels compiled."""
    return Bench(open_device(request.param), source("common", "spmv"), NAMES)


class TestSpmv:
    @pytest.mark.parametrize("dtype", INDEX_DTYPES.values(), ids=INDEX_DTYPES)
    @pytest.mark.parametrize("value_dtype", VALUE_DTYPES.values(), ids=VALUE_DTYPES)
    @pytest.mark.parametrize("weighted", [False, True], ids=["ones", "values"])
    def test_rows_of_all_lengths(self, bench, dtype, value_dtype, weighted):
        lengths = [5000, 0, 1, 31, 32, 33, 255, 256, 257, 0, *[3, 1, 0] * 300, 2048, 2049]
        matrix = Matrix(lengths, dtype=dtype, value_dtype=value_dtype, weighted=weighted)
        check(multiply(bench, matrix, [(0, matrix.num_edges)]), matrix.product(0, matrix.num_edges, 0))

    @pytest.mark.parametrize("length", [0, 1, 2, 7, 32, 100, 3000])
    def test_rows_of_one_length(self, bench, length):
        matrix = Matrix([length] * 9, dtype=INDEX_DTYPES["uint32"], value_dtype=VALUE_DTYPES["double"], seed=length)
        check(multiply(bench, matrix, [(0, matrix.num_edges)], grid=3), matrix.product(0, matrix.num_edges, 0))

    def test_no_rows(self, bench):
        matrix = Matrix([], dtype=INDEX_DTYPES["uint32"], value_dtype=VALUE_DTYPES["double"])
        np.testing.assert_array_equal(multiply(bench, matrix, [(0, 0)]), matrix.before)

    def test_a_piece_adds_its_part_and_nothing_else(self, bench):
        matrix = Matrix([10, 4000, 0, 20, 5], dtype=INDEX_DTYPES["uint32"], value_dtype=VALUE_DTYPES["double"])
        for piece in [(0, 1), (9, 11), (11, 4000), (4005, 4012), (4020, 4035), (30, 30)]:
            y = multiply(bench, matrix, [piece], first_row=3)
            check(y, matrix.product(*piece, 3))
            rows = np.searchsorted(matrix.offset, piece, side="right") - 1
            outside = np.ones(y.size, bool)
            outside[3 + rows[0] : 3 + rows[1] + 1] = False
            np.testing.assert_array_equal(y[outside], matrix.before[outside])

    def test_rows_that_begin_before_the_arrays_and_end_behind_them(self, bench):
        """Local pointers: the piece's first edge is number 0."""
        matrix = Matrix([100, 50, 80], dtype=INDEX_DTYPES["uint32"], value_dtype=VALUE_DTYPES["double"])
        expected = matrix.product(40, 190, 0)
        matrix.offset, matrix.indices, matrix.values = matrix.offset - 40, matrix.indices[40:190], matrix.values[40:190]
        check(multiply(bench, matrix, [(0, 150)]), expected)

    def test_random_pieces(self, bench):
        @given(
            st.lists(st.one_of(st.integers(0, 5), st.integers(0, 300), st.just(3000)), max_size=60),
            st.sampled_from(list(INDEX_DTYPES.values())),
            st.sampled_from(list(VALUE_DTYPES.values())),
            st.integers(1, 3),
            st.sampled_from([256, 512, 2048]),
            st.integers(0, 2**31),
            st.data(),
        )
        @settings(deadline=None, max_examples=25)
        def run(lengths, dtype, value_dtype, grid, share, seed, data):
            matrix = Matrix(lengths, dtype=dtype, value_dtype=value_dtype, seed=seed)
            inner = sorted(data.draw(st.lists(st.integers(0, matrix.num_edges), max_size=5)))
            cuts = [0, *inner, matrix.num_edges]
            pieces = data.draw(st.permutations(list(pairwise(cuts))))
            check(multiply(bench, matrix, pieces, grid=grid, share=share), matrix.product(0, matrix.num_edges, 0))

        run()


LENGTHS = [5000, 0, 1, 31, 32, 33, 255, 256, 257, 0, *[3, 1, 0] * 300, 2048, 2049, 0]
"""Lines that end within a block's share, begin one, and fill several."""


@pytest.mark.parametrize("name", ["plus_times", "min_plus"])
@pytest.mark.parametrize("weighted", [False, True], ids=["ones", "values"])
@pytest.mark.parametrize("value_dtype", VALUE_DTYPES.values(), ids=VALUE_DTYPES)
class TestAgainstTheReference:
    """`GpuProductKernels` does what `tests.oracles.spmv` does, from local pointers that it makes itself."""

    @pytest.mark.parametrize("dtype", INDEX_DTYPES.values(), ids=INDEX_DTYPES)
    def test_rows_and_columns(self, bench, dtype, value_dtype, weighted, name):
        matrix, ring = Matrix(LENGTHS, dtype=dtype, value_dtype=value_dtype, weighted=weighted), semiring_of(name)
        kernels = GpuProductKernels(bench.device, dtype, value_dtype)
        start, stop = 3, matrix.num_edges - 2
        indices, values = matrix.indices[start:stop], None if matrix.values is None else matrix.values[start:stop]
        offset = bench.device.empty(matrix.offset.size, np.int64)
        for pointers in (matrix.offset, matrix.offset.astype(np.uint32)):
            kernels.local_pointers(bench.put(pointers), start, stop, offset)
            bench.device.synchronize(kernels.stream)
            np.testing.assert_array_equal(bench.get(offset), np.clip(matrix.offset, start, stop) - start)
        there = (bench.put(indices), None if values is None else bench.put(values))

        y = bench.device.empty(matrix.num_rows, value_dtype)
        kernels.set_values(y, ring.identity)
        kernels.multiply_rows(ring, offset, *there, bench.put(matrix.x), y)
        bench.device.synchronize(kernels.stream)
        expected = np.full(matrix.num_rows, ring.identity, value_dtype)
        reference_spmv.multiply_csr(ring.code, False, matrix.offset, start, stop, indices, values, matrix.x, expected, expected[:0])
        check(bench.get(y), expected)

        elements = np.random.default_rng(1).standard_normal(matrix.num_rows).astype(value_dtype)
        y = bench.device.empty(300, value_dtype)
        kernels.set_values(y, ring.identity)
        kernels.multiply_columns(ring, offset, *there, bench.put(elements), y)
        bench.device.synchronize(kernels.stream)
        expected = np.full(300, ring.identity, value_dtype)
        reference_spmv.multiply_csc(ring.code, matrix.offset, start, stop, indices, values, elements, expected)
        check(bench.get(y), expected)

    def test_coordinates_and_nan(self, bench, value_dtype, weighted, name):
        matrix, ring = (
            Matrix([0, 0, 3, 0, 2500, 0, 1, 0], dtype=np.dtype(np.uint32), value_dtype=value_dtype, weighted=weighted),
            semiring_of(name),
        )
        kernels = GpuProductKernels(bench.device, np.dtype(np.uint32), value_dtype)
        lines = np.repeat(np.arange(8), np.diff(matrix.offset)).astype(np.uint32)
        offset = bench.device.empty(9, np.int64)
        kernels.line_pointers(bench.put(lines + 5), 5, 8, offset)
        bench.device.synchronize(kernels.stream)
        np.testing.assert_array_equal(bench.get(offset), matrix.offset)
        matrix.x[matrix.indices[1000]] = np.nan
        y = bench.device.empty(8, value_dtype)
        kernels.set_values(y, ring.identity)
        values = None if matrix.values is None else bench.put(matrix.values)
        kernels.multiply_rows(ring, offset, bench.put(matrix.indices), values, bench.put(matrix.x), y)
        bench.device.synchronize(kernels.stream)
        expected = np.full(8, ring.identity, value_dtype)
        with np.errstate(invalid="ignore"):
            reference_spmv.multiply_csr(
                ring.code, False, matrix.offset, 0, matrix.num_edges, matrix.indices, matrix.values, matrix.x, expected, expected[:0]
            )
        assert np.isnan(expected[4])
        check(bench.get(y), expected)


@pytest.mark.parametrize("name", ["plus_times", "min_plus"])
@pytest.mark.parametrize("weighted", [False, True], ids=["ones", "values"])
@pytest.mark.parametrize("value_dtype", VALUE_DTYPES.values(), ids=VALUE_DTYPES)
class TestDense:
    @pytest.mark.parametrize("width", [1, 2, 5, 33])
    def test_each_column_is_a_product(self, bench, value_dtype, weighted, name, width):
        """Rows that lie in a group's edges, rows that are cut by several groups, and none."""
        ring = semiring_of(name)
        lengths = [700, 0, 1, 63, 64, 65, 0, 0, *[3, 1, 0] * 50, 0]
        matrix = Matrix(lengths, dtype=np.dtype(np.uint32), value_dtype=value_dtype, weighted=weighted)
        kernels = GpuProductKernels(bench.device, np.dtype(np.uint32), value_dtype)
        x = np.random.default_rng(2).standard_normal((300, width)).astype(value_dtype)
        y = bench.device.empty((matrix.num_rows, width), value_dtype)
        kernels.set_values(y.reshape(-1), ring.identity)
        values = None if matrix.values is None else bench.put(matrix.values)
        kernels.multiply_dense(ring, bench.put(matrix.offset), bench.put(matrix.indices), values, bench.put(x).reshape(x.shape), y)
        bench.device.synchronize(kernels.stream)
        found = bench.get(y.reshape(-1)).reshape(y.shape)
        for column in range(width):
            expected = np.full(matrix.num_rows, ring.identity, value_dtype)
            reference_spmv.multiply_csr(
                ring.code, False, matrix.offset, 0, matrix.num_edges, matrix.indices, matrix.values, x[:, column].copy(), expected,
                expected[:0],
            )  # fmt: skip
            check(found[:, column], expected)


@pytest.mark.parametrize("name", ["plus_times", "min_plus"])
class TestHubs:
    def test_rows_of_hubs_are_added_once_for_each_block(self, bench, monkeypatch, name):
        """Most entries go to a few rows; a NaN, and sums that come to the identity, are as without."""
        monkeypatch.setattr(gpu_spmv, "HUB_EDGES", 100)
        monkeypatch.setattr(gpu_spmv, "HUB_ROWS", 7)
        ring, double = semiring_of(name), np.dtype(np.float64)
        matrix = Matrix([40] * 200, dtype=np.dtype(np.uint32), value_dtype=double)
        matrix.indices[::3] %= 10
        elements = np.random.default_rng(1).standard_normal(200)
        elements[7] = np.nan
        kernels = GpuProductKernels(bench.device, np.dtype(np.uint32), double)
        y = bench.device.empty(300, double)
        kernels.set_values(y, ring.identity)
        there = bench.put(matrix.indices), bench.put(matrix.values)
        kernels.multiply_columns(ring, bench.put(matrix.offset), *there, bench.put(elements), y)
        bench.device.synchronize(kernels.stream)
        expected = np.full(300, ring.identity, double)
        with np.errstate(invalid="ignore"):
            reference_spmv.multiply_csc(
                ring.code, matrix.offset, 0, matrix.num_edges, matrix.indices, matrix.values, elements, expected
            )  # fmt: skip
        assert np.isnan(expected).any()
        assert np.isfinite(expected).any()
        check(bench.get(y), expected)

    def test_two_vectors(self, bench, name):
        ring, double = semiring_of(name), np.dtype(np.float64)
        kernels = GpuProductKernels(bench.device, np.dtype(np.uint32), double)
        one, other = np.random.default_rng(3).standard_normal((2, 1000))
        one[5] = np.nan
        y = bench.put(one)
        kernels.add_values(ring, y, bench.put(other))
        bench.device.synchronize(kernels.stream)
        check(bench.get(y), ring.plus(one, other))


class TestRanks:
    @pytest.mark.parametrize("personalized", [False, True])
    @pytest.mark.parametrize("size", [1, 255, 3000])
    def test_equal_the_processors(self, bench, size, personalized):
        rng, double = np.random.default_rng(size), np.dtype(np.float64)
        sums, rank, strength = rng.random(size), rng.random(size), rng.integers(0, 3, size).astype(double)
        teleport = rng.random(size) if personalized else None
        kernels = GpuProductKernels(bench.device, np.dtype(np.uint32), double)
        there = {name: bench.put(array) for name, array in (("sums", sums), ("rank", rank), ("strength", strength))}
        share, out = bench.device.empty(size, double), bench.device.empty(gpu_spmv.RANK_SUMS, double)
        partial = bench.device.empty(gpu_spmv.RANK_SUMS * kernels.num_rank_blocks(size), double)
        expected = np.empty(size)
        given = None if teleport is None else bench.put(teleport)
        kernels.finish_ranks(there["sums"], 0.85, 0.1, given, there["rank"], there["strength"], share, partial, out)
        bench.device.synchronize(kernels.stream)
        found = np.zeros(rank_kernels.NUM_SUMS)
        rank_kernels.finish_rows(np.arange(size), sums, 0.85, 0.1, teleport, rank, strength, expected, found)
        np.testing.assert_allclose(bench.get(there["rank"]), rank, rtol=1e-14)
        np.testing.assert_allclose(bench.get(share), expected, rtol=1e-14)
        np.testing.assert_allclose(bench.get(out), found[: gpu_spmv.RANK_SUMS], rtol=1e-12)


def test_pieces_of_coordinates_make_one_array_of_pointers(bench):
    """Pieces that end inside of lines, one after the other."""
    lines = np.repeat(np.arange(8), [0, 0, 3, 0, 25, 0, 1, 0]).astype(np.uint32) + 5
    kernels = GpuProductKernels(bench.device, np.dtype(np.uint32), np.dtype(np.float64))
    for cuts in ([0, 29], [0, 1, 29], [0, 3, 10, 20, 28, 29]):
        offset = bench.device.empty(9, np.int64)
        for a, z in pairwise(cuts):
            first = 0 if a == 0 else int(lines[a - 1]) - 5 + (lines[a] != lines[a - 1])
            begun = a > 0 and bool(lines[a] == lines[a - 1])
            stop = 8 if z == 29 else int(lines[z]) - 5 + (lines[z] == lines[z - 1])
            kernels.line_pointers(
                bench.put(lines[a:z]), 5 + first, stop - first, offset[first : stop + 1], base=a, begun=begun
            )  # fmt: skip
        bench.device.synchronize(kernels.stream)
        np.testing.assert_array_equal(bench.get(offset), np.searchsorted(lines, np.arange(5, 14)))
