"""Every compiled kernel of a partitioning against plain NumPy, on random blocks of random graphs."""

from __future__ import annotations

import inspect
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from oocgraph.kernels import cusp, warm_cusp
from tests import every_knob

SEEDS = st.integers(0, 2**32 - 1)


class Block:
    """A random graph of sorted rows, masters and owners, and a block of its rows.

    Attributes
    ----------
    n, parts : int
        Vertices, partitions.
    arguments : tuple
        What kernels take: first row, pointers, neighbours, first entry.
    rows, columns, own : arrays
        Of each entry of the block: row, neighbour, owner.
    """

    def __init__(self, seed, dtype=np.uint32):
        rng = np.random.default_rng(seed)
        self.rng, self.n, self.parts = rng, int(rng.integers(1, 200)), int(rng.integers(1, 6))
        degree = rng.integers(0, 1 + int(rng.integers(1, 12)), self.n)
        indptr = np.append(0, np.cumsum(degree))
        indices = np.concatenate([np.empty(0, np.int64), *(np.sort(rng.integers(0, self.n, d)) for d in degree)]).astype(dtype)
        self.masters = rng.integers(0, self.parts, self.n).astype(np.int16)
        self.owners = rng.integers(0, self.parts, indices.size).astype(np.int16)
        first, stop = sorted(rng.integers(0, self.n + 1, 2).tolist())
        self.take(first, stop, indptr, indices)
        self.indptr, self.indices = indptr, indices

    def take(self, first, stop, indptr, indices):
        """Take the rows ``first .. stop - 1`` as the block."""
        begin, end = int(indptr[first]), int(indptr[stop])
        self.arguments = first, indptr[first : stop + 1], indices[begin:end], begin
        self.rows = np.repeat(np.arange(first, stop), np.diff(indptr[first : stop + 1]))
        self.columns, self.own = indices[begin:end].astype(np.int64), self.owners[begin:end]
        self.num_rows = stop - first

    @property
    def words(self):
        return -(-self.n // 64)

    def proxies(self):
        """Return who has a proxy where: (parts, n) bool."""
        found = np.zeros((self.parts, self.n), np.bool_)
        found[self.own, self.rows] = found[self.own, self.columns] = True
        return found


def bits(flags):
    """Return bitmaps of rows of flags: (..., num_words) uint64."""
    n = flags.shape[-1]
    padded = np.zeros((*flags.shape[:-1], -(-n // 64) * 64), np.bool_)
    padded[..., :n] = flags
    return np.packbits(padded, axis=-1, bitorder="little").view(np.uint64)


@given(SEEDS, st.sampled_from([np.uint32, np.int64]))
@settings(max_examples=60, deadline=None)
def test_count_owned(seed, dtype):
    block = Block(seed, dtype)
    proxies, counts = np.zeros((block.parts, block.words), np.uint64), np.ones((block.parts, 2), np.int64)
    told = cusp.count_owned(*block.arguments, block.own, block.masters, proxies, counts)
    expected = np.ones((block.parts, 2), np.int64)
    np.add.at(expected, (block.own, (block.own != block.masters[block.rows]).astype(int)), 1)
    np.testing.assert_array_equal(counts, expected)
    np.testing.assert_array_equal(proxies, bits(block.proxies()))
    assert told == cusp.hash_owners(block.arguments[3], block.own)


@given(SEEDS)
@settings(max_examples=30, deadline=None)
def test_hash_of_owners(seed):
    """Any one owner that differs, and any two that change places, are told."""
    rng = np.random.default_rng(seed)
    owners, begin = rng.integers(0, 8, 50).astype(np.int16), int(rng.integers(0, 1 << 40))
    told = cusp.hash_owners(begin, owners)
    for _ in range(20):
        other = owners.copy()
        i, j = rng.integers(0, 50, 2)
        other[i], other[j] = owners[j], owners[i]
        assert (cusp.hash_owners(begin, other) == told) == (owners[i] == owners[j])
        other = owners.copy()
        other[i] = (other[i] + rng.integers(1, 8)) % 8
        assert cusp.hash_owners(begin, other) != told
    position = (begin + np.arange(50)).astype(np.uint64)
    expected = sum((int(p) + 1) * ((int(k) * int(cusp.MIX)) % 2**64 | 1) for p, k in zip(owners, position, strict=True)) % 2**64
    assert int(told) == expected


def test_threads_mark_the_same_words():
    """No proxy is lost where many threads mark bits of the same words at once."""
    rng = np.random.default_rng(1)
    n, m = 1 << 9, 1 << 18
    columns = rng.integers(0, n, m).astype(np.uint32)
    indptr = np.linspace(0, m, n + 1).astype(np.int64)
    owners, masters = rng.integers(0, 2, m).astype(np.int16), np.zeros(n, np.int16)
    expected = np.zeros((2, n // 64), np.uint64)
    cusp.count_owned(0, indptr, columns, 0, owners, masters, expected, np.zeros((2, 2), np.int64))
    for _ in range(10):
        proxies = np.zeros_like(expected)

        def one(bounds, proxies=proxies):
            low, high = bounds
            begin, end = int(indptr[low]), int(indptr[high])
            return cusp.count_owned(
                low, indptr[low : high + 1], columns[begin:end], begin, owners[begin:end], masters, proxies, np.zeros((2, 2), np.int64)
            )

        with ThreadPoolExecutor(4) as pool:
            list(pool.map(one, pairwise(range(0, n + 1, 32))))
        np.testing.assert_array_equal(proxies, expected)


@given(SEEDS)
@settings(max_examples=60, deadline=None)
def test_local_ids(seed):
    """Proxies divided into masters and mirrors, ranked, and listed."""
    block = Block(seed)
    proxies = block.proxies()
    for p in range(block.parts):
        own, mirrors = np.ones((2, block.words), np.uint64)
        cusp.split_proxies(p, block.masters, bits(proxies)[p], own, mirrors)
        kinds = proxies[p] & (block.masters == p), proxies[p] & (block.masters != p)
        before = 5
        for words, flags in zip((own, mirrors), kinds, strict=True):
            np.testing.assert_array_equal(words, bits(flags))
            ranked = np.empty((block.words, 2), np.uint64)
            assert cusp.rank_words(words, before, ranked) == before + flags.sum()
            np.testing.assert_array_equal(ranked[:, 0], words)
            np.testing.assert_array_equal(ranked[:, 1], [before + flags[: 64 * w].sum() for w in range(block.words)])
            listed = np.empty(block.n, np.int64)
            assert cusp.list_bits(words, 640, listed) == flags.sum()
            np.testing.assert_array_equal(listed[: flags.sum()], 640 + np.flatnonzero(flags))
            before += int(flags.sum())


def inserted(block, room_less=0):
    """Insert a block's edges; return all that the kernel has set, and what it returned."""
    proxies, parts = block.proxies(), block.parts
    kinds = np.stack([np.stack([proxies[p] & (block.masters == p), proxies[p] & (block.masters != p)]) for p in range(parts)])
    ranked = np.empty((2 * parts, block.words, 2), np.uint64)
    for p in range(parts):
        before = 0
        for kind in range(2):
            before = cusp.rank_words(bits(kinds[p, kind]), before, ranked[2 * p + kind])
    edges = np.zeros((parts, 2), np.int64)
    np.add.at(edges, (block.own, (block.own != block.masters[block.rows]).astype(int)), 1)
    first, stop = block.arguments[0], block.arguments[0] + block.num_rows
    rows = kinds[:, :, first:stop].sum(axis=2)
    first_edge, first_row = np.cumsum(edges) - edges.ravel(), np.cumsum(rows) - rows.ravel()
    m = block.own.size
    out, place = np.zeros(m, block.arguments[2].dtype), np.full(m, -1)
    pointers, loops = np.full(int(rows.sum()), -1), np.zeros(parts, np.int64)
    cursor, row_cursor = first_edge.copy(), first_row.copy()
    room = first_edge + edges.ravel()
    room[int(np.argmax(edges))] -= room_less
    full = cusp.insert_edges(
        *block.arguments, block.own, block.masters, ranked, cursor, room, np.empty(m, np.int32), out, place, pointers, row_cursor, loops
    )
    return kinds, edges, rows, first_edge, out, place, pointers, loops, full


@given(SEEDS, st.sampled_from([np.uint32, np.int64]))
@settings(max_examples=80, deadline=None)
def test_insert_edges(seed, dtype):
    """Rows of masters, then of mirrors of each partition; in each its edges by local id; pointers to the end of each row."""
    block = Block(seed, dtype)
    kinds, edges, _, first_edge, out, place, pointers, loops, full = inserted(block)
    assert full == 0
    local = np.full((block.parts, block.n), -1)
    wanted, ends, at = [], [], 0
    for p in range(block.parts):
        order = np.concatenate([np.flatnonzero(kind) for kind in kinds[p]])
        local[p, order] = np.arange(order.size)
        for kind in range(2):
            for r in range(block.arguments[0], block.arguments[0] + block.num_rows):
                mine = np.sort(local[p, block.columns[(block.rows == r) & (block.own == p)]])
                if kinds[p, kind, r]:
                    at += mine.size
                    wanted.append(mine)
                    ends.append(at)
    np.testing.assert_array_equal(out, np.concatenate([np.empty(0, np.int64), *wanted]))
    np.testing.assert_array_equal(pointers, ends)
    np.testing.assert_array_equal(np.sort(place), np.arange(out.size))
    np.testing.assert_array_equal(out[place], local[block.own, block.columns])
    np.testing.assert_array_equal(loops, np.bincount(block.own[block.rows == block.columns], minlength=block.parts))
    assert first_edge.size == edges.size


@given(SEEDS)
@settings(max_examples=30, deadline=None)
def test_more_edges_than_there_is_room_for_are_noticed(seed):
    block = Block(seed)
    if block.own.size:
        assert inserted(block, room_less=1)[-1] == 1


@given(SEEDS)
@settings(max_examples=40, deadline=None)
def test_transpose(seed):
    """Ranges of columns, blocks of rows that begin and end within one."""
    block = Block(seed)
    rng, n, m = block.rng, block.n, block.indices.size
    counts = np.zeros(n + 1, np.int64)
    cuts = np.unique(np.concatenate([[0, m], rng.integers(0, m + 1, 3)]))
    pieces = [(int(a), int(b)) for a, b in pairwise(cuts)]
    for a, b in pieces:
        cusp.count_columns(block.indices[a:b], counts)
    indptr = np.cumsum(counts)
    np.testing.assert_array_equal(np.diff(indptr), np.bincount(block.indices, minlength=n))
    rows = np.repeat(np.arange(n), np.diff(block.indptr))
    order = np.argsort(block.indices, kind="stable")
    values, moved = rng.random(m), np.full(m, -1.0)
    for low, high in pairwise(np.unique([0, n, *rng.integers(0, n + 1, 2)]).tolist()):
        first = int(indptr[low])
        cursor, out = indptr[low:high] - first, np.zeros(int(indptr[high]) - first, np.uint32)
        for a, b in pieces:
            first_row = int(np.searchsorted(block.indptr, a, side="right")) - 1
            last = int(np.searchsorted(block.indptr, b))
            pointers, place = np.clip(block.indptr[first_row : last + 1], a, b), np.empty(b - a, np.int64)
            cusp.transpose_rows(first_row, pointers, block.indices[a:b], a, low, high, cursor, out, place)
            here = place >= 0
            np.testing.assert_array_equal(here, (block.indices[a:b] >= low) & (block.indices[a:b] < high))
            moved[first + place[here]] = values[a:b][here]
        np.testing.assert_array_equal(out, rows[order][first : first + out.size])
    np.testing.assert_array_equal(moved, values[order])


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int16, np.int64])
def test_scatter(dtype):
    values, place = np.arange(9).astype(dtype), np.random.default_rng(1).permutation(9)
    out = np.zeros(9, dtype)
    cusp.scatter(values, place, out)
    np.testing.assert_array_equal(out[place], values)


def test_every_kernel_is_tested_and_loaded_before_it_is_needed():
    kernels = {name for name, value in vars(cusp).items() if hasattr(value, "py_func") and value.py_func.__module__ == cusp.__name__}
    public = {name for name in kernels if not name.startswith("_")}
    assert {kernel.__name__ for kernel, _ in warm_cusp.cusp_calls("uint32", "int16", ["float32"])} == public
    here = inspect.getsource(inspect.getmodule(Block))
    assert [name for name in public if f"cusp.{name}(" not in here] == []


def test_partitioning_calls_no_kernel_with_other_types(tmp_path):
    """What was loaded before memory was counted is all that runs: nothing is compiled later."""
    from tests.reference_build import reference_build
    from tests.stores import random_edges

    reference_build(*random_edges(1), tmp_path / "g", directed=True)
    warm_cusp.load_cusp_kernels("uint32", "int16")
    kernels = {kernel for kernel, _ in warm_cusp.cusp_calls("uint32", "int16", ["float32"])}
    before = {kernel.__name__: len(kernel.overloads) for kernel in kernels}
    for name in ("CVC", "FEC"):
        every_knob.partition(tmp_path / "g", 3, name, tmp_path / name, transpose=True, compiled=False)
    assert {kernel.__name__: len(kernel.overloads) for kernel in kernels} == before
