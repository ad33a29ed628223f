"""Sums of some lanes of rows equal NumPy's; the other lanes are not even looked at."""

from __future__ import annotations

import numba as nb
import numpy as np
import pytest

from oocgraph.compiled.intrinsics import add_rows


@nb.njit
def added(sums, table, rows, count, words, wanted):
    return add_rows(sums, table, rows, count, words, wanted)


@pytest.mark.parametrize("word", [np.uint8, np.uint16, np.uint64])
@pytest.mark.parametrize("index", [np.uint32, np.int64])
def test_lanes_of_rows_are_added_in_order(word, index):
    rng, num_bits = np.random.default_rng(0), 8 * np.dtype(word).itemsize
    words = rng.integers(0, 2**num_bits, 50, word)
    wanted = word(rng.integers(0, 2**num_bits, dtype=word))
    bits = (words[:, None] >> np.arange(num_bits, dtype=word)) & 1
    table = np.where(bits, rng.random((50, num_bits)), np.nan)
    rows = rng.integers(0, 50, 9).astype(index)
    sums = rng.random(num_bits)
    expected = sums.copy()
    for row in rows[:8]:
        here = (bits[row] & (wanted >> np.arange(num_bits, dtype=word)) & 1).astype(bool)
        expected[here] += table[row][here]
    every = added(sums, table, rows, 8, words, wanted)
    np.testing.assert_array_equal(sums, expected)
    assert every == np.bitwise_or.reduce(words[rows[:8]] & wanted)
    assert added(sums, table, rows, 0, words, wanted) == 0
    np.testing.assert_array_equal(sums, expected)
