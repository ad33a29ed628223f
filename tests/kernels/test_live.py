"""Which edges count: what replaces those that do not, beside plain NumPy."""

from __future__ import annotations

import numpy as np
import pytest

from oocgraph.kernels.live import NO_MASK, STRETCH, EdgeMask, replace_dead
from oocgraph.kernels.rows import RowLookup, explicit_rows


def rows_of(seed):
    """Degrees, descending: a row longer than two stretches, many short ones, some without edges; and both lookups of them."""
    rng = np.random.default_rng(seed)
    degrees = np.sort(np.concatenate([[2 * STRETCH + 77, 300, 300], rng.integers(0, 40, 400)]))[::-1].astype(np.int64)
    starts = np.concatenate([[0], np.cumsum(degrees)])
    first = np.flatnonzero(np.diff(degrees, prepend=-1))
    return degrees, explicit_rows(starts), RowLookup(np.empty(0, np.int64), first, starts[first], degrees[first])


@pytest.mark.parametrize("dtype", ["uint32", "int64"])
@pytest.mark.parametrize("sorted_rows", [False, True])
@pytest.mark.parametrize("share", [0.0, 0.5, 0.99, 1.0])
def test_dead_edges_lead_to_their_own_vertex(dtype, sorted_rows, share):
    degrees, explicit, classes = rows_of(1)
    rng, size = np.random.default_rng(2), int(degrees.sum())
    live = rng.random(size) < share
    bits = np.zeros(size // 64 + 1, np.uint64)
    bits.view(np.uint8)[: -(-size // 8)] = np.packbits(live, bitorder="little")
    neighbours = rng.integers(0, 2**31, size).astype(dtype)
    expected = np.where(live, neighbours, np.repeat(np.arange(degrees.size), degrees))
    mask = EdgeMask(bits, classes if sorted_rows else explicit)
    ranges = [(0, size), (size, size), *np.sort(rng.integers(0, size + 1, (40, 2)), axis=1).tolist()]
    for start, stop in ranges:
        found = neighbours[start:stop].copy()
        replace_dead(mask, start, found)
        np.testing.assert_array_equal(found, expected[start:stop])


@pytest.mark.parametrize("dtype", ["uint8", "uint16", "uint32", "uint64"])
def test_weights_of_dead_edges_are_0(dtype):
    rng, size = np.random.default_rng(3), 5000
    live, weights = rng.random(size) < 0.5, rng.integers(0, np.iinfo(dtype).max, size, dtype)
    bits = np.zeros(size // 64 + 1, np.uint64)
    bits.view(np.uint8)[: size // 8] = np.packbits(live, bitorder="little")
    for start in (0, 1, 63, 1024, 4999):
        found = weights[start:].copy()
        replace_dead(EdgeMask(bits, NO_MASK.rows), start, found)
        np.testing.assert_array_equal(found, np.where(live, weights, 0)[start:])
