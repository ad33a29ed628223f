"""Results that take longer to fetch than a worker's presence is looked after: they arrive, because each attempt is given more time."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from oocgraph.runtime import cluster_product
from oocgraph.runtime.cluster_product import ClusterProduct, WorkerLostError
from oocgraph.runtime.crew import Crew
from oocgraph.runtime.partition_crew import OnCluster

NEEDED = 10.0
"""Seconds that a transfer takes."""


class SlowFuture:
    """A task that has ended; fetching what it returned takes so long in one go, and begins anew after each timeout."""

    status = "finished"
    num_attempts = 0

    def result(self, timeout):
        """Fetch."""
        self.num_attempts += 1
        assert self.num_attempts < 20, "it is never fetched"
        if timeout < NEEDED:
            raise TimeoutError
        return "rows"


def without_init(kind, **attributes):
    """Return an object that has only what fetching needs."""
    made = kind.__new__(kind)
    made.__dict__.update(attributes)
    return made


def test_a_slow_result_of_a_search_arrives():
    """Of a member's parents, for one."""
    crew = without_init(Crew, next_event=lambda *_: ("nothing", None))
    assert crew._result(SlowFuture(), None, set()) == "rows"


def test_a_slow_result_of_a_product_arrives():
    """Of the rows of a worker's part."""
    product = without_init(ClusterProduct, _check_workers=lambda: None)
    assert product._result(SlowFuture(), "tcp://1", None) == "rows"


def test_a_slow_result_of_a_partitioning_arrives():
    """Of the counts of many blocks."""
    crew = without_init(OnCluster, _check_workers=lambda: None)
    assert crew._result(SlowFuture(), "edges") == "rows"


def test_a_worker_that_goes_before_it_is_sent_anything_is_a_lost_one(monkeypatch):
    """Dask's scheduler then knows no such worker, and says so by a KeyError."""

    def scatter(*_, **__):
        raise KeyError("tcp://1")

    monkeypatch.setattr(cluster_product, "workers_of", lambda client: {})
    client = SimpleNamespace(status="running", scatter=scatter)
    with pytest.raises(WorkerLostError, match="tcp://1 was lost"):
        without_init(ClusterProduct, _client=client, _addresses=["tcp://1"])._send(None, ["tcp://1"])
