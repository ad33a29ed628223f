"""Rows that are nearly in order, and any others, sorted by vectors; rows of two stores put together."""

from __future__ import annotations

import numba as nb
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from oocgraph.compiled.vectors import LANES, pointer_of
from oocgraph.kernels.append import SLACK, merge_rows
from oocgraph.kernels.nearly_sorted import sort_nearly

LARGEST = 2**32 - 2
"""The largest number that a vertex can have."""


@nb.njit
def _sort(entries, begin, length, place, keys, at):
    sort_nearly(pointer_of(entries), entries.size, begin, length, place, pointer_of(keys), at)


def _sorted_row(entries, begin, length, *, place=0, at=0, dtype=np.uint32):
    """Sort a row; what lies behind its last vector must not be touched."""
    end = at + -(-length // LANES) * LANES
    keys = np.full(end + LANES, 7, dtype)
    _sort(entries, begin, length, place, keys, at)
    assert (keys[:at] == 7).all()
    assert (keys[end:] == 7).all()
    return keys[at : at + length]


def _moved(rng, size, distance):
    """Distinct numbers, each at most `distance` places from where it belongs."""
    numbers = np.sort(rng.choice(10 * size + 1, size, replace=False)).astype(np.uint32)
    return numbers[np.argsort(np.arange(size) + rng.integers(0, distance + 1, size), kind="stable")]


class TestSortNearly:
    @pytest.mark.parametrize("size", [0, 1, 2, 15, 16, 17, 31, 32, 33, 48, 63, 64, 65, 100, 129, 257, 1000, 1025, 5000])
    @pytest.mark.parametrize("distance", [0, 1, 7, 8, 16, 17, 40, 100, 600, 5000])
    def test_entries_that_move_as_far(self, size, distance):
        entries = _moved(np.random.default_rng(size + distance), size, distance)
        np.testing.assert_array_equal(_sorted_row(entries, 0, size), np.sort(entries))

    @pytest.mark.parametrize("size", [16, 17, 64, 100, 512, 1000, 4097])
    def test_the_other_way_round(self, size):
        entries = np.arange(size, dtype=np.uint32)[::-1].copy()
        np.testing.assert_array_equal(_sorted_row(entries, 0, size), np.sort(entries))

    @pytest.mark.parametrize("size", [40, 100, 1000, 3000])
    @pytest.mark.parametrize("to", ["front", "back"])
    def test_one_entry_that_moves_through_the_row(self, size, to):
        entries = np.roll(np.arange(size, dtype=np.uint32), 1 if to == "front" else -1)
        np.testing.assert_array_equal(_sorted_row(entries, 0, size), np.arange(size))

    @settings(deadline=None)  # the first call compiles
    @given(st.lists(st.integers(0, LARGEST), max_size=300), st.integers(0, 40), st.integers(0, 40), st.integers(0, 20))
    def test_any_numbers_anywhere(self, numbers, before, behind, at):
        entries = np.array([1] * before + numbers + [2] * behind, np.uint32)
        np.testing.assert_array_equal(_sorted_row(entries, before, len(numbers), at=at), np.sort(np.array(numbers, np.uint32)))

    @settings(deadline=None)  # the first call compiles
    @given(st.lists(st.integers(0, 5), max_size=200), st.integers(0, 2**32 - 300))
    def test_equal_numbers_keep_their_order_by_places(self, numbers, place):
        entries = np.array(numbers, np.uint32)
        keys = _sorted_row(entries, 0, entries.size, place=place, dtype=np.uint64)
        wanted = (entries.astype(np.uint64) << np.uint64(32)) + np.uint64(place) + np.arange(entries.size, dtype=np.uint64)
        np.testing.assert_array_equal(keys, np.sort(wanted))

    @pytest.mark.parametrize("dtype", [np.uint32, np.uint64])
    def test_the_largest_numbers(self, dtype):
        entries = np.array([LARGEST, LARGEST - 1, 0, 2**31, 2**31 - 1] * 9, np.uint32)
        keys = _sorted_row(entries, 0, entries.size, dtype=dtype)
        np.testing.assert_array_equal((keys >> dtype(32 if dtype is np.uint64 else 0)).astype(np.uint32), np.sort(entries))


def _rows(rng, lengths, most):
    """Distinct numbers below `most` for each row, in any order; where rows are, which lie in any order, too."""
    order = rng.permutation(lengths.size)
    begin = np.empty(lengths.size, np.int64)
    begin[order] = np.cumsum(lengths[order]) - lengths[order]
    entries = np.empty(lengths.sum(), np.uint32)
    for at, length in zip(begin, lengths, strict=True):
        row = np.sort(rng.choice(most, length, replace=False))
        entries[at : at + length] = row[np.argsort(np.arange(length) + rng.integers(0, 9, length), kind="stable")]
    return entries, begin


@pytest.mark.one_in(4)
@pytest.mark.parametrize(("dtype", "drop"), [(np.uint32, True), (np.uint32, False), (np.uint64, False)])
@pytest.mark.parametrize("seed", range(12))
def test_rows_of_two_stores(seed, dtype, drop):
    """As NumPy puts them together: equal entries once, or those of the first before those of the second."""
    rng = np.random.default_rng(seed)
    num_rows, most = 40, 4000
    lengths = [(rng.integers(0, 2, num_rows) * rng.integers(0, top, num_rows) ** 2).astype(np.int64) for top in (60, 25)]
    (a, a_begin), (b, b_begin) = (_rows(rng, of, most) for of in lengths)
    work, out = np.empty((2, SLACK + max(of.max() for of in lengths)), dtype), np.empty(a.size + b.size + SLACK, dtype)
    found = np.empty(num_rows, np.int64)
    written = merge_rows(a, a_begin, lengths[0], b, b_begin, lengths[1], drop, work, out, found)
    wanted, ends = [], []
    for row in range(num_rows):
        keys = []
        for entries, begin, size, first in ((a, a_begin, lengths[0], 0), (b, b_begin, lengths[1], a.size)):
            numbers, places = entries[begin[row] : begin[row] + size[row]].astype(dtype), first + begin[row] + np.arange(size[row])
            keys.append(numbers if dtype is np.uint32 else (numbers << dtype(32)) + places.astype(dtype))
        keys = np.sort(np.concatenate(keys))
        wanted.append(np.unique(keys) if drop else keys)
        ends.append(wanted[-1].size)
    assert written == sum(ends)
    np.testing.assert_array_equal(found, ends)
    np.testing.assert_array_equal(out[:written], np.concatenate(wanted))
