"""Messages between parts: what is packed is what arrives, in as many bytes as the formula says."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from oocgraph.exchange.addresses import count_mirrors, make_addresses
from oocgraph.exchange.messages import Message, pack_messages
from oocgraph.partition.message_size import is_dense
from tests.oracles.messages import message_bytes
from tests.parts_in_memory import cut_in_memory


@given(st.lists(st.integers(0, 500), max_size=6), st.floats(0, 1), st.sampled_from([None, np.uint32, np.int64]), st.integers(0, 2**32))
@settings(deadline=None, max_examples=150)
def test_what_is_sent_arrives(lengths, share, dtype, seed):
    """Sets of vertices and their parents, through a buffer and back; bytes, form and the clean bitmap as documented."""
    rng = np.random.default_rng(seed)
    length = np.array(lengths, np.int64)
    first = np.concatenate([[0], np.cumsum(-(-length // 64) * 64)]).astype(np.int64)
    positions = [np.flatnonzero(rng.random(n) < share * rng.random()) for n in lengths]
    places = rng.permutation(np.concatenate([np.empty(0, int), *[p + a for p, a in zip(positions, first[:-1], strict=True)]]))
    values = None if dtype is None else rng.integers(0, 2**31, int(first[-1])).astype(dtype)
    words = np.zeros(int(first[-1]) >> 6, np.uint64)
    sent = pack_messages(places.astype(np.uint32), first, length, words, values)
    assert not words.any()
    assert sorted(sent) == [q for q, one in enumerate(positions) if one.size]
    for q, message in sent.items():
        raw = message.to_bytes()
        parent_bytes = 0 if dtype is None else np.dtype(dtype).itemsize
        assert raw.nbytes == message.num_bytes == message_bytes(positions[q].size, lengths[q], parent_bytes=parent_bytes)
        assert message.dense == is_dense(positions[q].size, lengths[q])
        arrived = Message.from_bytes(raw, None if dtype is None else np.dtype(dtype))
        assert arrived.num_vertices == positions[q].size
        listed = np.flatnonzero(np.unpackbits(arrived.vertices.view(np.uint8), bitorder="little")) if message.dense else arrived.vertices
        assert sorted(listed.tolist()) == positions[q].tolist()
        if values is not None:
            np.testing.assert_array_equal(arrived.parents, values[first[q] + listed.astype(np.int64)])


@pytest.mark.parametrize("seed", range(5))
def test_both_ends_of_every_list_name_the_same_vertices(seed):
    """Of every pair of parts: the mirrors of one are the masters of the other, position by position; and the counts are theirs."""
    rng = np.random.default_rng(seed)
    n, num_parts = 150, 5
    rows, columns = rng.integers(0, n, (2, 400))
    masters = rng.integers(0, num_parts, n)
    parts = cut_in_memory(num_parts, rows, columns, masters, rng.integers(0, num_parts, 400))
    every, counts = [make_addresses(parts, p, "out") for p in range(num_parts)], count_mirrors(parts, "out")
    ids = [part.global_id() for part in parts]
    slot_ids = [np.concatenate([one[: part.num_masters], part.isolated_masters()]) for part, one in zip(parts, ids, strict=True)]
    degree = [np.diff(part.store.arrays["out/indptr"]) for part in parts]
    for p in range(num_parts):
        mirrors = ids[p][parts[p].num_masters :]
        assert every[p].num_bytes == counts.address_bytes(parts[p])
        for q in range(num_parts):
            own = np.flatnonzero(masters[mirrors] == q)
            assert own.size == counts.mirrors[p, q] == every[p].length[q]
            np.testing.assert_array_equal(every[p].place_of[own], every[p].first[q] + np.arange(own.size))
            np.testing.assert_array_equal(slot_ids[q][every[q].slot_of[p]], mirrors[own])
            told = every[p].row_of[q]
            assert told.size == counts.broadcasts[p, q] == every[q].cast_length[p]
            np.testing.assert_array_equal(told, own[degree[p][own + parts[p].num_masters] > 0] + parts[p].num_masters)
        for slot in range(slot_ids[p].size):
            for place in every[p].copy_place[every[p].copy_first[slot] : every[p].copy_first[slot + 1]].tolist():
                peer = int(np.searchsorted(every[p].cast_first[:-1] + every[p].cast_length, place, side="right"))
                row = every[peer].row_of[p][place - every[p].cast_first[peer]]
                assert ids[peer][row] == slot_ids[p][slot]
