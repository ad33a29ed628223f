"""Expected bytes and messages: exact where all was counted, right on average where a sample was."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from oocgraph.partition.message_size import message_bytes
from oocgraph.plan.sample import choose_sample, draw_runs
from oocgraph.plan.traffic import MAX_CELLS, Counted, expected_traffic, kept_pairs


def counted(sure, sampled=None, *, weight=1.0, lengths, sender=None, pair_weight=1.0):
    """Return counts with what a test leaves out."""
    sure = np.asarray(sure)
    return Counted(
        sure=sure, sampled=np.zeros_like(sure) if sampled is None else np.asarray(sampled), weight=weight,
        lengths=np.asarray(lengths, float), sender=np.arange(sure.shape[1]) if sender is None else sender, pair_weight=pair_weight,
    )  # fmt: skip


@given(st.lists(st.tuples(st.integers(0, 3000), st.integers(0, 3000)), min_size=1, max_size=20), st.sampled_from([0, 4, 8]))
def test_what_was_counted_as_a_whole_is_the_formula_of_messages(pairs, parent_bytes):
    """Bytes of every message by `message_bytes`, and none where nothing is said."""
    pairs = [(min(pair), max(pair)) for pair in pairs]
    found = expected_traffic(counted([[count for count, _ in pairs]], lengths=[length for _, length in pairs]), parent_bytes=parent_bytes)
    assert found.num_bytes[0] == sum(message_bytes(*pair, parent_bytes=parent_bytes) for pair in pairs)
    assert found.num_messages[0] == sum(count > 0 for count, _ in pairs)
    assert found.num_vertices[0] == sum(count for count, _ in pairs)


@pytest.mark.parametrize("mean", [3, 30, 300])
def test_a_sample_tells_what_the_whole_would(mean):
    """600 pairs of 20 senders, one vertex in 8 looked at: bytes and messages within 5 %, also where most pairs have no sample."""
    rng = np.random.default_rng(3)
    sender = np.repeat(np.arange(20), 30)
    lengths = rng.integers(900, 1100, 600) * 4
    whole = rng.poisson(mean * rng.uniform(0.5, 1.5, 20)[sender], 600)
    truth = expected_traffic(counted([whole], lengths=lengths, sender=sender), parent_bytes=4)
    sampled = np.array([[rng.binomial(count, 1 / 8) for count in whole]])
    found = expected_traffic(counted(np.zeros((1, 600)), sampled, weight=8.0, lengths=lengths, sender=sender), parent_bytes=4)
    assert found.num_messages[0] == pytest.approx(truth.num_messages[0], rel=0.05)
    assert found.num_bytes[0] == pytest.approx(truth.num_bytes[0], rel=0.05)


def test_a_sender_of_which_nothing_was_seen_sends_nothing():
    """The source's member alone has something to say at the first level."""
    sender = np.array([0, 0, 1, 1])
    found = expected_traffic(counted([[0] * 4], [[9, 11, 0, 0]], weight=8.0, lengths=[1000] * 4, sender=sender), parent_bytes=4)
    assert found.num_messages[0] == 2


def test_pairs_left_out_are_stood_for_by_the_others():
    """Counts are bounded; what they say is multiplied."""
    one = counted([[3, 0]], lengths=[640, 640])
    three = counted([[3, 0]], lengths=[640, 640], pair_weight=3.0)
    assert expected_traffic(three, parent_bytes=4).num_bytes[0] == 3 * expected_traffic(one, parent_bytes=4).num_bytes[0]
    for num_pairs, num_levels in [(1, 1), (1 << 20, 6), (1 << 20, 9000), (12, 10**7)]:
        assert num_pairs / kept_pairs(num_pairs, num_levels) * num_levels <= max(MAX_CELLS, num_levels)


def test_graphs_of_few_edges_or_many_levels_are_looked_at_as_a_whole():
    """Others: levels of few edges, and of the rest one vertex in so many."""
    assert choose_sample(100, np.array([50, 50]), 100).one_in == 1
    assert choose_sample(10**9, np.full(1000, 10**6), 100).one_in == 1
    assert choose_sample(1000, np.array([1, 900, 99, 0]), 128).small_levels == (3, 0)
    assert choose_sample(1000, np.array([1, 900, 99, 0]), 128).one_in == 8


@given(st.integers(0, 10**6), st.integers(2, 64))
def test_a_sample_is_one_in_so_many_everywhere(num_vertices, one_in):
    """Runs ascend, do not overlap, stay inside, and have their share of any long range."""
    runs = draw_runs(num_vertices, one_in)
    assert (runs[:, 0] <= runs[:, 1]).all()
    assert (runs[1:, 0] >= runs[:-1, 1]).all()
    assert runs.max(initial=0) <= num_vertices
    taken = np.zeros(num_vertices + 1, np.int64)
    for first, stop in runs.tolist():
        taken[first:stop] += 1
    for low, high in [(0, num_vertices // 2), (num_vertices // 2, num_vertices)]:
        slack = one_in + 1 + num_vertices // 128
        assert abs(taken[low:high].sum() * one_in - (high - low)) <= 2 * slack
