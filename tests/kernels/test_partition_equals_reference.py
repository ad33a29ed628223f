"""Every compiled kernel of a partition against the plain one, on random owners, bitmaps and degrees."""

from __future__ import annotations

import inspect
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from oocgraph.kernels import partition as compiled
from tests.oracles import partition as plain

SEEDS = st.integers(0, 2**32 - 1)


def random_blocks(rng):
    """Return blocks of one partition among vertices 0 .. n - 1, some shorter than a word and some much longer, some adjacent."""
    longest = int(rng.choice([2, 5, 64, 300]))
    cuts = np.cumsum(rng.integers(1, longest + 1, rng.integers(1, 40))) + rng.integers(0, 100)
    own = rng.random(cuts.size - 1) < rng.random()
    first, stop = cuts[:-1][own].astype(np.int64), cuts[1:][own].astype(np.int64)
    sizes = stop - first
    return first, stop, np.cumsum(sizes) - sizes, int(cuts[-1] + rng.integers(0, 100))


def random_bitmap(rng, n):
    """Return a bitmap with marks below `n`, from none to all; no word more than needed."""
    bits = np.zeros(-(-n // 64) * 64, np.bool_)
    bits[:n] = rng.random(n) < rng.choice([0, 0.03, 0.5, 0.97, 1])
    return np.packbits(bits, bitorder="little").view(np.uint64)


def both(name, *arguments, out):
    """Call both kernels on copies of `out`; return what they left there and what they returned."""
    results = []
    for module in (compiled, plain):
        mine = out.copy()
        results.append((getattr(module, name)(*arguments, mine), mine))
    (value, filled), (expected_value, expected) = results
    assert value == expected_value
    np.testing.assert_array_equal(filled, expected)
    return filled, value


@given(SEEDS)
@settings(deadline=None, max_examples=150)
def test_bits_are_scattered_gathered_and_owned(seed):
    """Also when out holds bits before: scatter and own keep them, gather does not; gather undoes scatter."""
    rng = np.random.default_rng(seed)
    first, stop, local, n = random_blocks(rng)
    num_owned = int((stop - first).sum())
    part, rows, before = random_bitmap(rng, num_owned), random_bitmap(rng, n), random_bitmap(rng, n)
    both("scatter_bits", first, stop, local, part, out=before)
    both("own_bits", first, stop, out=before)
    both("gather_bits", first, stop, local, rows, out=random_bitmap(rng, num_owned))
    scattered, _ = both("scatter_bits", first, stop, local, part, out=np.zeros_like(rows))
    back, _ = both("gather_bits", first, stop, local, scattered, out=random_bitmap(rng, num_owned))
    np.testing.assert_array_equal(back, part)


@given(SEEDS, st.sampled_from([np.uint32, np.int64]))
@settings(deadline=None, max_examples=150)
def test_positions_lead_to_the_vertices_that_are_owned(seed, dtype):
    """All of them, or some that ascend; their bits are counted word by word."""
    rng = np.random.default_rng(seed)
    first, stop, local, n = random_blocks(rng)
    owned_bits = np.zeros(-(-n // 64), np.uint64)
    compiled.own_bits(first, stop, owned_bits)
    _, num_owned = both("rank_words", owned_bits, out=np.zeros(owned_bits.size, dtype))
    assert num_owned == (stop - first).sum()
    owned = np.concatenate([np.empty(0, dtype), *[np.arange(a, z, dtype=dtype) for a, z in zip(first, stop, strict=True)]])
    picked = rng.permutation(owned)[: rng.integers(0, owned.size + 1)]
    count, picked = int(rng.integers(0, picked.size + 1)), np.sort(picked)
    some = np.full(picked.size, 7, dtype)
    some, _ = both("to_global", np.searchsorted(owned, picked).astype(dtype), count, first, stop, local, out=some)
    np.testing.assert_array_equal(some[:count], picked[:count])
    assert (some[count:] == 7).all()
    back, _ = both("to_global", np.arange(owned.size), owned.size, first, stop, local, out=np.zeros(owned.size, dtype))
    np.testing.assert_array_equal(back, owned)


@given(SEEDS, st.sampled_from([np.uint8, np.int32, np.uint32, np.int64]))
@settings(deadline=None, max_examples=100)
def test_values_of_marked_vertices_are_taken(seed, dtype):
    """All of them, in order, and nothing else is written."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(0, 500))
    rows = random_bitmap(rng, n)
    values = rng.integers(0, 200, n).astype(dtype)
    taken, count = both("take_marked", rows, values, out=np.full(n, 201, dtype))
    assert (taken[count:] == 201).all()


@given(SEEDS, st.sampled_from([np.uint32, np.int64]))
@settings(deadline=None, max_examples=100)
def test_pieces_of_an_array_make_up_its_local_part(seed, dtype):
    """An array read in pieces of any length, the last vertices missing as in a plane, gives the values of own vertices."""
    rng = np.random.default_rng(seed)
    first, stop, local, n = random_blocks(rng)
    length = int(rng.integers(0, n + 1))
    array = rng.permutation(length).astype(dtype)
    num_owned = int((stop - first).sum())
    out = np.full(num_owned, n, dtype)
    cuts = np.unique(np.concatenate([[0, length], rng.integers(0, length + 1, rng.integers(0, 10))]))
    copied = 0
    for a, z in pairwise(cuts.tolist()):
        out, count = both("take_runs", first, stop, local, array[a:z], a, out=out)
        copied += count
    owned = np.concatenate([np.empty(0, np.int64), *[np.arange(a, z) for a, z in zip(first, stop, strict=True)]])
    np.testing.assert_array_equal(out[:copied], array[owned[owned < length]])
    assert (out[copied:] == n).all()


@given(SEEDS)
@settings(deadline=None, max_examples=150)
def test_blocks_are_cut_alike(seed):
    """The bound on their number holds, whatever hubs and vertices without edges there are."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 300))
    degree = -np.sort(-(rng.integers(0, 40, n) * (rng.random(n) < rng.random())))
    degree[: rng.integers(0, 3)] += int(rng.integers(0, 500))
    degree = -np.sort(-degree)
    value, first = np.unique(-degree, return_index=True)
    max_vertices, max_edges = int(rng.integers(1, 70)), int(rng.integers(1, 200))
    bound = n // max_vertices + 2 * (int(degree.sum()) // max_edges) + 2
    blocks, count = both("cut_blocks", first.astype(np.int64), -value, n, max_vertices, max_edges, out=np.full(bound, -1, np.int64))
    cuts = np.append(blocks[:count], n)
    assert cuts[0] == 0
    assert (np.diff(cuts) > 0).all()
    assert (np.diff(cuts) <= max_vertices).all()
    edges = np.diff(np.append(0, np.cumsum(degree))[cuts])
    assert ((edges <= max_edges) | (np.diff(cuts) == 1)).all()


def test_a_kernel_without_blocks_does_nothing():
    """A partition may own no vertex."""
    none, word = np.empty(0, np.int64), np.zeros(1, np.uint64)
    for module in (compiled, plain):
        module.scatter_bits(none, none, none, np.empty(0, np.uint64), word)
        module.own_bits(none, none, word)
        module.gather_bits(none, none, none, word, np.empty(0, np.uint64))
        module.to_global(none, 0, none, none, none, none)
        assert module.take_runs(none, none, none, np.arange(3), 0, none) == 0
    assert word[0] == 0


PLAIN = [name for name, kernel in inspect.getmembers(plain, inspect.isfunction) if not name.startswith("_")]


@pytest.mark.parametrize("name", PLAIN)
def test_each_plain_kernel_has_a_compiled_one(name):
    """Same name, same parameters."""
    assert list(inspect.signature(getattr(plain, name)).parameters) == list(inspect.signature(getattr(compiled, name).py_func).parameters)
