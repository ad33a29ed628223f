"""Bytes and messages that follow from counts."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from oocgraph.plan.traffic import PairCounts, traffic_of
from tests.oracles.messages import message_bytes


@given(st.lists(st.tuples(st.integers(0, 3000), st.integers(0, 3000)), min_size=1, max_size=20), st.sampled_from([0, 4, 8]))
def test_traffic_is_the_sum_of_the_formula_of_messages(pairs, parent_bytes):
    """Bytes of every message by `message_bytes`, none where nothing is sent; a second level is counted for itself."""
    pairs = [(min(pair), max(pair)) for pair in pairs]
    counts = np.array([[count for count, _ in pairs], [0] * len(pairs)])
    found = traffic_of(PairCounts(counts, np.array([length for _, length in pairs])), parent_bytes=parent_bytes)
    assert found.num_bytes.tolist() == [sum(message_bytes(*pair, parent_bytes=parent_bytes) for pair in pairs), 0]
    assert found.num_messages.tolist() == [sum(count > 0 for count, _ in pairs), 0]
    assert found.num_vertices.tolist() == [sum(count for count, _ in pairs), 0]
