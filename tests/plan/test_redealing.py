"""When and how shares of edges are dealt again, on numbers alone."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from oocgraph.partition.balance import imbalance
from oocgraph.plan.redealing import MOST_IMBALANCE, Dealing, choose_shares, in_parts

FACTS = {"edges": [1_000_000, 1_000_000], "busy_seconds": [3.0, 1.0], "shares": None, "last": None}


def test_shares_follow_edges_a_second():
    """Three times as slow: a third of the other's edges. The reason names the imbalance."""
    choice = choose_shares(**FACTS)
    assert choice.shares == (8, 24)
    assert choice.reason == "dealt again by measured edges a second: busiest worker 1.50 times the mean, above 1.25"


def test_unequal_shares_are_corrected_by_what_is_owned():
    """The slower one still works half as long again with a third of the edges."""
    choice = choose_shares(**FACTS | {"edges": [500_000, 1_500_000], "busy_seconds": [2.0, 1.0], "shares": (8, 24)})
    assert choice.shares == (5, 27)


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"busy_seconds": [1.25, 0.76]}, "busiest worker 1.24 times the mean, at most 1.25"),
        ({"busy_seconds": [0.3, 0.09]}, "less than 0.2 s of work"),
        ({"busy_seconds": [0.0, 0.0]}, "less than 0.2 s of work"),
        ({"edges": [10], "busy_seconds": [5.0]}, "kept: there is one worker"),
        ({"last": Dealing(0, 1.5, 0.1), "shares": (12, 20)}, "1.50 with the shares before, so others would not help"),
        ({"last": Dealing(1, 1.5, 1.1), "shares": (12, 20)}, "takes 1.1 s and would not have paid yet"),
        ({"edges": [3_000, 1_000]}, "but these are the shares by measured edges a second"),
        ({"shares": (8, 24)}, "but these are the shares by measured edges a second"),
    ],
)
def test_shares_are_kept(changes, reason):
    """Where all are about as busy, little was measured, or dealing again has not helped."""
    facts = FACTS | changes
    choice = choose_shares(**facts)
    assert choice.shares == facts["shares"]
    assert reason in choice.reason


def test_shares_that_helped_are_dealt_again():
    """From 1.9 to 1.5 times the mean; or another worker is the busiest now."""
    for last in (Dealing(0, 1.9, 0.9), Dealing(1, 1.3, 0.9)):
        assert choose_shares(**FACTS | {"last": last, "shares": (12, 20)}).shares == (8, 24)


@given(st.lists(st.floats(0.01, 100), min_size=2, max_size=12))
@example([25, 0.5, 0.5, 0.5, 0.625])
def test_workers_of_any_speed_are_about_as_busy_after_one_dealing(speeds):
    """Where work is proportional to edges, and no share is near the smallest."""
    edges = [10**6] * len(speeds)
    busy = [owned / speed / 1e3 for owned, speed in zip(edges, speeds, strict=True)]
    choice = choose_shares(edges=edges, busy_seconds=busy, shares=None, last=None)
    if imbalance(busy) <= MOST_IMBALANCE or choice.shares is None:
        return
    assert min(choice.shares) >= 1
    after = [share / sum(choice.shares) / speed for share, speed in zip(choice.shares, speeds, strict=True)]
    assert max(after) < 1 / len(speeds) / min(speeds)  # of the work as a whole, the busiest one's time
    if min(choice.shares) >= 8:
        assert imbalance(after) < MOST_IMBALANCE


def test_parts_are_whole_and_none_is_zero():
    assert in_parts([1.0] * 5) == (16,) * 5
    assert in_parts([1e-9, 1.0]) == (1, 32)
