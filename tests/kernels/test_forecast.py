"""Meetings and casts as they are defined, vertex by vertex."""

from __future__ import annotations

from collections import Counter

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from oocgraph.kernels import forecast


@given(st.integers(1, 12), st.integers(1, 5), st.integers(1, 3), st.integers(0, 2**32))
@settings(deadline=None, max_examples=60)
def test_counts_are_those_of_plain_python(num_vertices, num_sets, num_columns, seed):
    """Any lists, levels, sets and strata; pairs that are not to be counted have a list all the same."""
    rng = np.random.default_rng(seed)
    lists = [rng.integers(0, num_vertices, int(rng.integers(0, 9))) for _ in range(num_vertices)]
    level, set_of = rng.integers(-1, 4, num_vertices).astype(np.int32), rng.integers(0, num_sets, num_vertices).astype(np.int16)
    stratum = rng.integers(0, 2, num_vertices).astype(np.uint8)
    offset = np.concatenate([[0], np.cumsum([one.size for one in lists])]).astype(np.int64)
    piece = np.arange(num_vertices), stratum, offset, np.concatenate(lists).astype(np.uint32)
    met, cast, met_lists, cast_lists, work = Counter(), Counter(), Counter(), Counter(), Counter()
    for v, neighbours in enumerate(lists):
        which, mine = int(stratum[v]), int(set_of[v])
        for s in {int(set_of[u]) for u in neighbours} - {mine}:
            met_lists[which, s * num_sets + mine] += 1
            reached = [int(level[u]) for u in neighbours if set_of[u] == s and level[u] >= 0]
            if reached:
                met[which, min(reached), s * num_sets + mine] += 1
        for u in neighbours:
            work[which, mine * num_columns + int(set_of[u]) % num_columns] += 1
        for j in {int(set_of[u]) % num_columns for u in neighbours} - {mine % num_columns}:
            cast_lists[which, mine * num_columns + j] += 1
            if level[v] >= 0:
                cast[which, int(level[v]), mine * num_columns + j] += 1

    def arrays(num_pairs):
        slot_of = np.where(rng.random(num_pairs) < 0.2, -1, np.arange(num_pairs)).astype(np.int32)
        return slot_of, np.zeros((2, 4, num_pairs), np.int64), np.zeros((2, num_pairs), np.int64)

    def check(counted, expected, slot_of):
        for index in np.ndindex(counted.shape):
            assert counted[index] == (expected[index] if slot_of is None or slot_of[index[-1]] >= 0 else 0)

    slot_of, counts, lengths = arrays(num_sets * num_sets)
    forecast.count_meetings(*piece, set_of, level, slot_of, num_sets, counts, lengths)
    check(counts, met, slot_of)
    check(lengths, met_lists, None)
    slot_of, counts, lengths = arrays(num_sets * num_columns)
    edges = np.zeros_like(lengths)
    forecast.count_casts(*piece, set_of, level, slot_of, num_columns, counts, lengths, edges)
    check(counts, cast, slot_of)
    check(lengths, cast_lists, None)
    check(edges, work, None)
