"""What is computed again after a loss, and what comes in between."""

from __future__ import annotations

from contextlib import nullcontext
from types import SimpleNamespace

import pytest

from oocgraph.cluster import session
from oocgraph.cluster.session import ClusterSession, WorkersLostError
from oocgraph.errors import ClusterError


def rerun(monkeypatch, losses, losses_between):
    """Compute what is lost so many times, and in between so many more; return how often it was begun."""
    monkeypatch.setattr(session, "why_lost", lambda client: "")
    begun, left = [], [losses_between]

    def compute():
        begun.append(1)
        if len(begun) <= losses:
            raise WorkersLostError("a worker was lost")
        return len(begun)

    def lost():
        if left[0]:
            left[0] -= 1
            raise WorkersLostError("another worker was lost")

    return ClusterSession.rerun(SimpleNamespace(client=None, loss_reported=nullcontext), compute, lost)


@pytest.mark.parametrize(("losses", "losses_between"), [(0, 0), (1, 0), (1, 1)])
def test_a_loss_while_workers_are_asked_again_is_another_attempt(monkeypatch, losses, losses_between):
    assert rerun(monkeypatch, losses, losses_between) == losses + 1


def test_it_ends_after_some_attempts(monkeypatch):
    with pytest.raises(ClusterError, match="another worker was lost, as others in 2 attempts before"):
        rerun(monkeypatch, 1, session.ATTEMPTS)
