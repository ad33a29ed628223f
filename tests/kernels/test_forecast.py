"""Candidates and broadcasts as they are defined, vertex by vertex."""

from __future__ import annotations

from collections import Counter

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from oocgraph.kernels import forecast


@given(st.integers(1, 12), st.integers(1, 5), st.integers(1, 3), st.integers(0, 2**32))
@settings(deadline=None, max_examples=60)
def test_counts_are_those_of_plain_python(num_vertices, num_sets, num_columns, seed):
    """Any lists, levels and sets; rows in two pieces, of which the second begins behind the first row and entry."""
    rng = np.random.default_rng(seed)
    lists = [rng.integers(0, num_vertices, int(rng.integers(0, 9))) for _ in range(num_vertices)]
    level, set_of = rng.integers(-1, 4, num_vertices).astype(np.int32), rng.integers(0, num_sets, num_vertices).astype(np.int16)
    indptr = np.concatenate([[0], np.cumsum([one.size for one in lists])]).astype(np.int64)
    edges, middle = np.concatenate(lists).astype(np.uint32), num_vertices // 2
    pieces = [
        (first, indptr[first : stop + 1], indptr[first], edges[indptr[first] : indptr[stop]])
        for first, stop in ((0, middle), (middle, num_vertices))
    ]
    gathered, broadcast, gather_lists, broadcast_lists, work = Counter(), Counter(), Counter(), Counter(), Counter()
    for v, neighbours in enumerate(lists):
        mine = int(set_of[v])
        for s in {int(set_of[u]) for u in neighbours} - {mine}:
            gather_lists[s * num_sets + mine,] += 1
            reached = [int(level[u]) for u in neighbours if set_of[u] == s and level[u] >= 0]
            if reached:
                gathered[min(reached), s * num_sets + mine] += 1
        for u in neighbours:
            work[mine * num_columns + int(set_of[u]) % num_columns,] += 1
        for j in {int(set_of[u]) % num_columns for u in neighbours} - {mine % num_columns}:
            broadcast_lists[mine * num_columns + j,] += 1
            if level[v] >= 0:
                broadcast[int(level[v]), mine * num_columns + j] += 1

    def check(counted, expected):
        assert {index: int(counted[index]) for index in np.ndindex(counted.shape) if counted[index]} == dict(expected)

    counts, lengths = np.zeros((4, num_sets * num_sets), np.int64), np.zeros(num_sets * num_sets, np.int64)
    for piece in pieces:
        forecast.count_candidates(*piece, set_of, level, num_sets, counts, lengths)
    check(counts, gathered)
    check(lengths, gather_lists)
    counts, (lengths, edges_of) = np.zeros((4, num_sets * num_columns), np.int64), np.zeros((2, num_sets * num_columns), np.int64)
    for piece in pieces:
        forecast.count_broadcasts(*piece, set_of, level, num_columns, counts, lengths, edges_of)
    check(counts, broadcast)
    check(lengths, broadcast_lists)
    check(edges_of, work)
