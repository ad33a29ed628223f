"""Every compiled kernel of a partitioned traversal against the plain one, on random parts, queues and bitmaps."""

from __future__ import annotations

import inspect

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from oocgraph.kernels import traverse as compiled
from tests.oracles import traverse as plain

SEEDS = st.integers(0, 2**32 - 1)


def bitmap(rng, n):
    """Return a bitmap with marks below `n`, from none to all."""
    bits = np.zeros(-(-n // 64) * 64, np.bool_)
    bits[:n] = rng.random(n) < rng.choice([0, 0.1, 0.7, 1])
    return np.packbits(bits, bitorder="little").view(np.uint64)


def both(name, *arguments):
    """Call both kernels on copies of all arrays; they must return the same and leave the same."""
    left = []
    for module in (compiled, plain):
        mine = [one.copy() if isinstance(one, np.ndarray) else one for one in arguments]
        left.append((getattr(module, name)(*mine), mine))
    (value, filled), (expected, wanted) = left
    assert value == expected
    for one, other in zip(filled, wanted, strict=True):
        np.testing.assert_array_equal(one, other)
    return value, filled


def random_part(rng, n=None):
    """Return masters, masters without rows, rows, row pointers and edges of a part."""
    num_rows = int(rng.integers(1, 200)) if n is None else n
    num_masters, num_isolated = int(rng.integers(0, num_rows + 1)), int(rng.integers(0, 80))
    degree = rng.integers(0, int(rng.choice([1, 4, 90])), num_rows) * (rng.random(num_rows) < 0.7)
    indptr = np.concatenate([[0], np.cumsum(degree)]).astype(np.int64)
    edges = rng.integers(0, num_rows, indptr[-1]).astype(np.uint32)
    return num_masters, num_isolated, num_rows, indptr, edges


def random_lists(rng, total):
    """Return where some peers' lists begin among places, and places, distinct, of `total` vertices."""
    length = rng.multinomial(total, rng.dirichlet(np.full(int(rng.integers(1, 9)), 0.5)))
    first = np.concatenate([[0], np.cumsum(-(-length // 64) * 64)]).astype(np.int64)
    places = np.concatenate([np.arange(a, a + n) for a, n in zip(first[:-1], length, strict=True)])
    return first, length, rng.permutation(places).astype(np.uint32)


@given(SEEDS, st.booleans())
@settings(deadline=None, max_examples=80)
def test_rows_are_expanded_once(seed, by_row):
    """Also through pieces of rows, with vertices seen before, and with more finds than are staged at once."""
    rng = np.random.default_rng(seed)
    num_masters, num_isolated, num_rows, indptr, edges = random_part(rng, n=int(rng.choice([5, 60, 5000])))
    rows = np.flatnonzero(rng.random(num_rows) < 0.5).astype(np.uint32)
    begin, end = (indptr[:-1], indptr[1:]) if by_row else (indptr[rows], indptr[rows.astype(np.int64) + 1])
    num_mirrors = num_rows - num_masters
    first, _, places = random_lists(rng, num_mirrors)
    found = np.zeros(2, np.int64)
    both(
        "expand", rows, 0, rows.size, begin.copy(), end.copy(), by_row, edges, num_masters, bitmap(rng, num_rows + num_isolated),
        rng.permutation(num_rows).astype(np.uint32), np.zeros(num_masters + num_isolated, np.uint32),
        np.zeros(num_masters + num_isolated, np.uint32), places, np.zeros(int(first[-1]), np.uint32), np.zeros(num_mirrors, np.uint32),
        found,
    )  # fmt: skip


@given(SEEDS)
@settings(deadline=None, max_examples=80)
def test_places_are_counted_and_packed(seed):
    """Of peers with lists of any length, none included, as lists and as bitmaps."""
    rng = np.random.default_rng(seed)
    first, length, places = random_lists(rng, int(rng.integers(0, 500)))
    some = places[rng.random(places.size) < rng.random()]
    _, (_, _, counts) = both("count_places", some, first, np.zeros(length.size, np.int64))
    dense = rng.random(length.size) < 0.5
    sizes = np.where(dense, 0, counts)
    at = np.cumsum(sizes) - sizes
    both("pack_places", some, first, dense, at, np.zeros(int(sizes.sum()), np.uint32), np.zeros(int(first[-1]) >> 6, np.uint64))


@given(SEEDS)
@settings(deadline=None, max_examples=80)
def test_candidates_are_applied_and_frontiers_received(seed):
    """As lists and as bitmaps; a master may come twice, and may be visited already."""
    rng = np.random.default_rng(seed)
    num_masters, num_isolated, num_rows, indptr, _ = random_part(rng)
    num_slots = num_masters + num_isolated
    slot_of = rng.integers(0, max(1, num_slots), int(rng.integers(0, 300)) if num_slots else 0).astype(np.uint32)
    seen, parent, order = bitmap(rng, num_rows + num_isolated), np.zeros(num_slots, np.uint32), np.zeros(num_slots, np.uint32)
    words = bitmap(rng, slot_of.size)
    positions = plain._marked(words).astype(np.uint32)
    parents = rng.integers(0, 1000, positions.size).astype(np.uint32)
    state = (num_masters, num_rows, seen, parent, order, np.zeros(2, np.int64))
    both("apply_list", rng.permutation(positions), parents, slot_of, *state)
    both("apply_bitmap", words, parents, slot_of, *state)
    row_of = rng.permutation(num_rows)[: int(rng.integers(0, num_rows + 1))].astype(np.uint32)
    told = bitmap(rng, row_of.size)
    both("receive_bitmap", told, row_of, seen, np.zeros(num_rows, np.uint32), 0)
    both("receive_list", plain._marked(told).astype(np.uint32), row_of, seen, np.zeros(num_rows, np.uint32), 0)
    slots = rng.permutation(num_slots)[: int(rng.integers(0, num_slots + 1))].astype(np.uint32)
    both("own_rows", slots, num_masters, indptr, np.zeros(num_rows, np.uint32), 0)
    both("count_row_edges", np.flatnonzero(rng.random(num_rows) < 0.5).astype(np.uint32), indptr)
    copies = rng.integers(0, 4, num_slots)
    copy_first = np.concatenate([[0], np.cumsum(copies)]).astype(np.int64)
    both("spread", slots, copy_first, rng.permutation(int(copies.sum())).astype(np.uint32), np.zeros(int(copies.sum()), np.uint32))


PAIRS = [
    (one, getattr(plain, name))
    for name, one in vars(compiled).items()
    if getattr(one, "__module__", None) == compiled.__name__ and hasattr(one, "py_func") and not name.startswith("_")
]


@pytest.mark.parametrize(("kernel", "reference"), PAIRS, ids=lambda one: one.__name__)
def test_names_and_arguments_are_the_same(kernel, reference):
    """A kernel and its reference have one signature."""
    assert list(inspect.signature(kernel.py_func).parameters) == list(inspect.signature(reference).parameters)
