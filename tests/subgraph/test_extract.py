"""Cutting rows into pieces: every row once, about equal work."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from oocgraph.subgraph.extract import edge_pieces, equal_pieces, slice_cuts


@given(st.integers(1, 5000), st.integers(1, 300))
def test_slices_cover_all_words_once(num_words, num_slices):
    cuts = slice_cuts(num_words, num_slices)
    assert (cuts[0], cuts[-1]) == (0, num_words)
    assert (np.diff(cuts) > 0).all()
    assert cuts.size - 1 == min(num_slices, num_words)


@given(st.lists(st.integers(0, 50), min_size=1, max_size=60), st.integers(1, 20))
def test_pieces_hold_every_weight_once_and_none_is_much_too_heavy(weights, num_pieces):
    array = np.array(weights, np.int64)
    pieces = equal_pieces(array, num_pieces)
    held = np.zeros(array.size, np.int64)
    for a, z in pieces:
        held[a:z] += 1
        assert array[a:z].sum() <= array.sum() / num_pieces + array.max()
    assert (held <= 1).all()
    assert (held[array > 0] == 1).all()
    assert len(pieces) <= num_pieces


@given(st.lists(st.tuples(st.integers(0, 50), st.integers(0, 5)), min_size=1, max_size=40), st.integers(1, 16))
def test_edge_pieces_cover_the_slices_with_rows_and_do_not_overlap(slices, num_pieces):
    """A hub's slice is cut inside the row."""
    counts = np.array([count for count, _ in slices], np.int64)
    first = np.concatenate([[0], np.cumsum(counts + np.array([more for _, more in slices]))])
    pieces = edge_pieces(counts, first, num_pieces)
    covered = np.zeros(first[-1], np.int64)
    for a, z in pieces:
        covered[a:z] += 1
    assert (covered <= 1).all()
    for i in np.flatnonzero(counts):
        assert (covered[first[i] : first[i + 1]] == 1).all()
