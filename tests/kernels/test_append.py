"""Compiled steps of an append give what NumPy gives."""

from __future__ import annotations

import numpy as np
import pytest

from oocgraph.kernels import append as kernels
from oocgraph.kernels.build import NO_RANK, put_at


@pytest.mark.parametrize("num_values", [2, 1 << 4, 1 << 11])
@pytest.mark.parametrize("high", [0, 1, 15, 1000, 1 << 40])
def test_rows_are_sorted_by_where_they_begin(num_values, high):
    """Those that begin at the same place keep their order."""
    rng = np.random.default_rng(high % 97)
    for size in (1, 2, 500):
        begin = 3 + rng.integers(0, high + 1, size)
        order, other, counts = np.empty(size, np.int32), np.empty(size, np.int32), np.empty(num_values, np.int64)
        kernels.order_rows(begin, int(begin.min()), int(begin.max()), order, other, counts)
        np.testing.assert_array_equal(order, np.argsort(begin, kind="stable"))


@pytest.mark.parametrize("limit", [0, 1, 7, 100, 10_000])
def test_blocks_have_as_many_rows_as_fit(limit):
    rng = np.random.default_rng(1)
    begin = rng.integers(0, 1000, (2, 300))
    length = rng.integers(0, 20, (2, 300)) * (rng.random((2, 300)) < 0.7)
    start, cost = 0, length.sum(axis=0) + 2
    while start < 300:
        stop, num_entries = kernels.end_of_block(begin, begin + length, start, limit, 2)
        assert num_entries == length[:, start:stop].sum()
        assert stop == start + 1 or cost[start:stop].sum() <= limit
        assert stop == 300 or cost[start : stop + 1].sum() > limit
        start = stop


def test_rows_are_found_by_their_class_of_degrees():
    """Whether they are of the class of the row before, of the next one, or of any, or are not there."""
    rng = np.random.default_rng(2)
    degree = np.array([50, 20, 9, 8, 7, 3, 1])
    counts = np.array([1, 1, 5, 1, 30, 40, 100])
    first, edge = np.cumsum(counts) - counts, np.cumsum(counts * degree) - counts * degree
    each = np.repeat(degree, counts)
    starts = np.cumsum(each) - each
    rows = np.concatenate([np.arange(178), rng.integers(0, 178, 500), np.sort(rng.integers(0, 178, 500))]).astype(np.uint32)
    is_there = rng.random(rows.size) < 0.9
    begin, end = np.empty((2, rows.size), np.int64)
    kernels.locate_rows(np.where(is_there, rows, NO_RANK), first, edge, degree, begin, end)
    np.testing.assert_array_equal(begin, np.where(is_there, starts[rows], 0))
    np.testing.assert_array_equal(end, np.where(is_there, starts[rows] + each[rows], 0))


@pytest.mark.parametrize("dtype", [np.uint32, np.int64])
@pytest.mark.parametrize("directed", [False, True])
def test_edges_whose_ends_are_known(dtype, directed):
    """Of a block that begins and ends inside of rows; of offsets that do not ascend none is found twice."""
    rng = np.random.default_rng(3)
    indptr = np.append(0, np.cumsum(rng.integers(0, 9, 50)))
    cols, number = rng.integers(0, 80, indptr[-1]).astype(dtype), rng.permutation(80).astype(np.uint32)
    number[rng.random(80) < 0.3] = NO_RANK
    start, stop, first_row = int(indptr[4]) + 1, int(indptr[45]) - 1, 4
    row = number[np.repeat(np.arange(50), np.diff(indptr))[start:stop]]
    col = number[cols[start:stop]]
    kept = np.flatnonzero((row != NO_RANK) & (col != NO_RANK) & (directed | (row >= col)))
    keys, places = np.empty(stop - start, np.uint64), np.empty(stop - start, np.int64)
    found = kernels.known_edges(indptr[4:46], first_row, start, cols[start:stop], number, directed, keys, places)
    np.testing.assert_array_equal(places[:found], kept)
    np.testing.assert_array_equal(keys[:found], (row[kept].astype(np.uint64) << np.uint64(32)) | col[kept])
    shuffled = rng.permutation(indptr[4:46])
    assert kernels.known_edges(shuffled, first_row, start, cols[start:stop], number, directed, keys, places) <= keys.size


def test_ids_of_two_runs_are_merged():
    rng = np.random.default_rng(4)
    for sizes in ((0, 0), (0, 5), (5, 0), (100, 3), (3, 100), (80, 80)):
        runs = [np.sort(rng.choice(150, size, replace=False)) for size in sizes]
        out, together = np.empty(sum(sizes), np.int64), np.union1d(*runs)
        np.testing.assert_array_equal(out[: kernels.union_ids(*runs, out)], together)


def test_ids_of_two_runs_are_placed():
    rng = np.random.default_rng(4)
    for sizes in ((0, 0), (0, 5), (5, 0), (100, 3), (3, 100), (80, 80)):
        runs = [np.sort(rng.choice(150, size, replace=False)) for size in sizes]
        numbers = [np.where(rng.random(size) < 0.2, -1, rng.permutation(size)) for size in sizes]  # some have no edges
        places = [np.full(size, 999, np.uint32) for size in sizes]
        in_first, together = np.full(sizes[1], 999, np.uint32), np.union1d(*runs)
        assert kernels.place_ids(runs[0], numbers[0], runs[1], numbers[1], 40, *places, in_first) == together.size
        for run, own, found in zip(runs, numbers, places, strict=True):
            expected = dict(zip(own.tolist(), (40 + np.searchsorted(together, run)).tolist(), strict=True))
            assert found.tolist() == [expected.get(one, 999) for one in range(own.size)]
        number = dict(zip(runs[0].tolist(), numbers[0].tolist(), strict=True))
        of_second = {own: number.get(one, -1) for one, own in zip(runs[1].tolist(), numbers[1].tolist(), strict=True)}
        assert in_first.tolist() == [other if (other := of_second.get(one, -1)) >= 0 else 999 for one in range(sizes[1])]


@pytest.mark.parametrize("dtype", [np.uint32, np.uint64])
def test_values_are_put_in_their_places(dtype):
    """Those that are outside are passed over."""
    places = np.random.default_rng(5).permutation(400).astype(dtype)
    out = np.full(300, -1)
    put_at(places, 50, places.astype(np.int64), out)
    np.testing.assert_array_equal(out, np.arange(50, 350))
