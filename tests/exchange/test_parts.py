"""Frontier parts: as few bytes as ids or a bitmap would be, and together the whole frontier again."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from dask.sizeof import sizeof
from distributed.protocol import deserialize, serialize
from hypothesis import given, settings
from hypothesis import strategies as st

from oocgraph.exchange.parts import FrontierPart, join_parts, make_part
from oocgraph.kernels import partition as bits


def deal_at_random(rng, num_vertices, num_partitions, num_blocks):
    """Cut vertices into blocks and give each to a partition: ``first, stop, local`` of each partition's."""
    cuts = np.unique(np.concatenate([[0, num_vertices], rng.integers(0, num_vertices + 1, num_blocks)]))
    owner = rng.integers(0, num_partitions, cuts.size - 1)
    blocks = []
    for p in range(num_partitions):
        first, stop = cuts[:-1][owner == p], cuts[1:][owner == p]
        blocks.append((first, stop, np.cumsum(stop - first) - (stop - first)))
    return blocks


def bitmap(num_bits, marked):
    """Return a bitmap with some bits set."""
    flags = np.zeros(max(1, -(-num_bits // 64)) * 64, bool)
    flags[marked] = True
    return np.packbits(flags, bitorder="little").view(np.uint64)


def num_owned(blocks):
    return int((blocks[1] - blocks[0]).sum())


def take(blocks, frontier):
    """Return the frontier at a partition's positions."""
    found = np.zeros(max(1, -(-num_owned(blocks) // 64)), np.uint64)
    bits.gather_bits(*blocks, frontier, found)
    return found


@given(
    seed=st.integers(0, 2**20), num_vertices=st.integers(1, 700), num_partitions=st.integers(1, 5),
    share=st.sampled_from([0, 0.01, 0.03, 0.2, 1]), dtype=st.sampled_from([np.uint32, np.int64]),
)  # fmt: skip
@settings(deadline=None, max_examples=150)
def test_parts_make_the_frontier_again_in_fewest_bytes(seed, num_vertices, num_partitions, share, dtype):
    """Whoever owns what, however many; partitions that own nothing too."""
    rng, dtype = np.random.default_rng(seed), np.dtype(dtype)
    blocks = deal_at_random(rng, num_vertices, num_partitions, rng.integers(0, 30))
    marked = np.flatnonzero(rng.random(num_vertices) < share)
    frontier = bitmap(num_vertices, marked)
    parts = []
    for own in blocks:
        found = take(own, frontier)
        count = int(np.bitwise_count(found).sum())
        part = make_part(found, count, 3, own, dtype)
        assert part.vertices.nbytes == min(found.nbytes, count * dtype.itemsize)
        assert part.dense == (found.nbytes < count * dtype.itemsize)
        assert part.level == 3
        if not part.dense:
            assert part.vertices.dtype == dtype
            inside = [(first <= marked) & (marked < stop) for first, stop in zip(*own[:2], strict=True)]
            assert part.vertices.tolist() == marked[np.any(inside, axis=0) if inside else []].tolist()
        parts.append(part)
    joined = np.full_like(frontier, 2**64 - 1)  # what was there goes
    join_parts(parts, blocks, joined)
    assert joined.tolist() == frontier.tolist()


@pytest.fixture
def both():
    """Return a part of ids and a part that is a bitmap."""
    own = (np.array([64]), np.array([64 + 6400]), np.array([0]))
    few, many = bitmap(6400, [0, 99, 6399]), bitmap(6400, np.arange(0, 6400, 3))
    return [make_part(found, int(np.bitwise_count(found).sum()), 1, own, np.dtype(np.uint32)) for found in (few, many)]


def test_few_vertices_are_ids_and_many_are_a_bitmap(both):
    few, many = both
    assert (few.dense, few.vertices.tolist()) == (False, [64, 163, 6463])
    assert (many.dense, many.vertices.dtype, many.vertices.size) == (True, np.uint64, 100)


def test_a_part_is_a_copy():
    """The state that it was made from goes on."""
    found = bitmap(64, np.arange(64))
    part = make_part(found, 64, 1, (np.array([0]), np.array([64]), np.array([0])), np.dtype(np.uint32))
    found[:] = 0
    assert part.dense
    assert part.vertices[0] == 2**64 - 1


def test_dask_sees_what_a_part_weighs_and_sends_its_array_as_it_is(both):
    """Not hidden by pickling: what Dask counts as memory and traffic is what there is."""
    for part in both:
        assert part.vertices.nbytes <= sizeof(part) <= part.vertices.nbytes + 500
        header, frames = serialize(part, on_error="raise")
        assert sum(len(memoryview(frame).cast("B")) for frame in frames) <= part.vertices.nbytes + 500
        again = deserialize(header, [bytes(frame) for frame in frames])
        assert isinstance(again, FrontierPart)
        assert (again.level, again.dense, again.vertices.tolist()) == (part.level, part.dense, part.vertices.tolist())
        buffers = []
        pickle.dumps(part, protocol=5, buffer_callback=buffers.append)
        assert sum(buffer.raw().nbytes for buffer in buffers) == part.vertices.nbytes


def test_as_many_parts_as_partitions(both):
    """A part that is missing is not taken for an empty one."""
    own = (np.array([64]), np.array([64 + 6400]), np.array([0]))
    with pytest.raises(ValueError, match="argument 2"):
        join_parts(both[:1], [own, own], np.zeros(101, np.uint64))
