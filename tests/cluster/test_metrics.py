"""Metrics of a search on a cluster: put together from events, and true."""

from __future__ import annotations

import numpy as np
import pytest

import oocgraph
from oocgraph.cluster.metrics import Metrics
from oocgraph.cluster.searches import ClusterRuntime
from oocgraph.cluster.supersteps import MOST_AHEAD
from oocgraph.config import setting
from oocgraph.engine.local import LocalRuntime
from oocgraph.partition.vertex_partition import partition_vertices
from oocgraph.types import PAGE_BYTES

SOURCE = 6
"""In `graph`: reaches most vertices."""


def event(step, partition, iterations=(), **changes):
    """Make the event of a step."""
    plain = {
        "worker": f"worker-{partition}", "num_found": 0, "num_found_early": [], "num_reached": 1, "sent_bytes": 0, "busy_seconds": 0.25,
        "device_bytes": 0,
    }  # fmt: skip
    return {"step": step, "partition": partition, "iterations": list(iterations), **plain, **changes}


def planned(level, direction="pull", frontier=10, undecided=0, seconds=0.0, num_bytes=0):
    """Metrics of a level as an event holds them."""
    return level, direction, "why", frontier, undecided, seconds, num_bytes


def tiny(*rows):
    """Metrics of levels taken in one call: level, frontier, edges, bytes, nanoseconds."""
    return np.array(rows, float).tobytes()


def collect(*events, num_partitions=2):
    figures = Metrics(num_partitions)
    for one in events:
        figures.add(one)
    return figures


def test_a_level_is_put_together_from_its_partitions():
    """Frontiers are whole in each event; bytes and vertices found are shares."""
    figures = collect(
        event(0, 1, [planned(1, "push", 10, 3, 0.5, 100)], num_found=7, sent_bytes=28, device_bytes=5, num_reached=12),
        event(0, 0, [planned(1, "pull", 10, 4, 0.75, 50)], num_found=6, sent_bytes=24, device_bytes=6, num_reached=10),
    )
    (one,) = figures.iterations()
    assert (one.level, one.direction, one.reason, one.frontier, one.undecided, one.bytes_read) == (1, "both", "why", 10, 7, 150)
    assert one.seconds >= 0.75
    assert [(p.partition, p.worker, p.direction, p.seconds, p.bytes_read, p.sent_bytes, p.num_found) for p in one.parts] == [
        (0, "worker-0", "pull", 0.75, 50, 24, 6),
        (1, "worker-1", "push", 0.5, 100, 28, 7),
    ]
    assert (figures.num_reached, figures.device_bytes, figures.bytes_requested) == (12, 11, 150)
    assert figures.busy_seconds() == {"worker-0": 0.25, "worker-1": 0.25}


def test_time_in_which_a_part_waits():
    """From the end of its own step to the last message of the others; not known where messages go through Dask."""
    rows = [planned(1, "push", 10, 3, 0.5, 100)]
    found = collect(event(0, 0, rows, seconds=1.0, seconds_alone=0.25), event(0, 1, rows, seconds=1.0, seconds_alone=1.0)).iterations()
    assert [[part.idle_seconds for part in one.parts] for one in found] == [[0.75, 0.0]]
    (one,) = collect(event(0, 0, rows), event(0, 1, rows)).iterations()
    assert [part.idle_seconds for part in one.parts] == [0.0, 0.0]


def test_levels_that_every_worker_takes_are_not_added_up_twice():
    """Each partition reports the same frontier, reads for itself, and finds its own vertices; only the last level was sent."""
    rows = tiny((1, 1, 5, 4096, 2e6), (2, 5, 30, 0, 1e6))
    figures = collect(
        event(0, 0, [rows, planned(3, num_bytes=8)], num_found=20, num_found_early=[1, 3, 2], sent_bytes=80),
        event(0, 1, [rows, planned(3, num_bytes=9)], num_found=30, num_found_early=[0, 2], sent_bytes=120),
    )
    first, second, third = figures.iterations()
    assert [one.frontier for one in (first, second, third)] == [1, 5, 10]
    assert [one.bytes_read for one in (first, second, third)] == [8192, 0, 17]
    assert [[p.num_found for p in one.parts] for one in (first, second, third)] == [[3, 2], [2, 0], [20, 30]]
    assert [[p.sent_bytes for p in one.parts] for one in (first, second, third)] == [[0, 0], [0, 0], [80, 120]]
    assert first.seconds == 2e-3
    assert "every worker" in first.reason


def test_a_step_taken_again_counts_once():
    """As a new epoch has it; what the device read was read."""
    figures = collect(
        event(0, 0, [planned(1, frontier=1)], num_found=3, worker="lost", device_bytes=10),
        event(0, 0, [planned(1, frontier=1)], num_found=3, worker="found", device_bytes=10),
        num_partitions=1,
    )
    (one,) = figures.iterations()
    assert [part.worker for part in one.parts] == ["found"]
    assert figures.device_bytes == 20
    assert figures.busy_seconds() == {"found": 0.25}


def test_no_events_no_levels():
    figures = Metrics(2)
    assert (figures.iterations(), figures.num_reached, figures.bytes_requested, figures.busy_seconds()) == ((), 0, 0, {})


@pytest.fixture
def observed(monkeypatch):
    """Record outcomes and events of searches."""
    outcomes, events = [], []
    search, add = ClusterRuntime.search_into, Metrics.add

    def searched(self, *args, **options):
        outcomes.append(search(self, *args, **options))
        return outcomes[-1]

    def added(self, one):
        events.append(one)
        add(self, one)

    monkeypatch.setattr(ClusterRuntime, "search_into", searched)
    monkeypatch.setattr(Metrics, "add", added)
    return outcomes, events


@pytest.fixture(scope="module")
def graph(tmp_path_factory):
    """Return a graph whose middle levels hold most vertices."""
    return oocgraph.generate_kronecker(15, tmp_path_factory.mktemp("kron") / "g.zarr", seed=3)


def transferred(client):
    """Bytes that workers fetched from each other, as Dask counts them, and how many results of tasks these were."""

    def fetched(dask_worker=None):
        log = dask_worker.transfer_incoming_log
        return sum(one["total"] for one in log), sum(len(one["keys"]) for one in log)

    return np.sum(list(client.run(fetched).values()), axis=0)


@pytest.mark.parametrize(("partitions", "exchange"), [(2, "messages"), (2, "windows"), (4, "messages")])
@pytest.mark.parametrize("direction", ["auto", "alpha-beta", "push"])
def test_figures_of_an_undisturbed_search(graph, client, observed, direction, partitions, exchange):
    """Levels as in one process; few bytes and one hop for each; nothing moves."""
    outcomes, events = observed
    vertex_partition = partition_vertices(graph, partitions)
    with LocalRuntime.open(graph) as local:
        alone = oocgraph.bfs(graph, SOURCE, runtime=local, direction=direction)
    with setting("exchange", exchange), ClusterRuntime.open(graph, client=client, num_partitions=partitions) as runtime:
        before = transferred(client)
        result = oocgraph.bfs(graph, SOURCE, runtime=runtime, direction=direction)
        fetched, num_fetched = transferred(client) - before
        placement = runtime.addresses
    assert [(one.level, one.frontier) for one in result.iterations] == [(one.level, one.frontier) for one in alone.iterations]
    parts = [part for one in result.iterations for part in one.parts]
    assert sum(part.num_found for part in parts) == result.num_reached - 1
    for part in parts:
        words = -(-int(vertex_partition.num_owned[part.partition]) // 64)
        assert part.sent_bytes <= 1.1 * (partitions - 1) * min(4 * part.num_found, 8 * words)
        assert part.worker == placement[part.partition]
    (outcome,) = outcomes
    assert outcome.num_hops <= len(result.iterations) + 1
    assert (outcome.num_moves, outcome.num_epochs) == (0, 1)
    assert {(one["partition"], one["worker"]) for one in events} == set(enumerate(placement))
    sent = sum(part.sent_bytes for part in parts)
    num_messages = len(events) * (partitions - 1)
    if exchange == "messages":  # hops that were submitted ahead may fetch what the last ones say, until they are dropped
        assert num_fetched <= num_messages + MOST_AHEAD * partitions * (partitions - 1)
        num_messages = num_fetched
    most = 1.1 * sent + 400 * num_messages  # one without vertices has some bytes too
    assert 0 < (fetched if exchange == "messages" else outcome.exchanged["put_bytes"]) <= most
    assert result.search.num_reached == outcome.num_reached


def test_bytes_are_those_of_all_workers(graph, client, monkeypatch):
    """What is read of tails on disk, summed over partitions and levels."""
    with ClusterRuntime.open(graph, client=client, max_planes=0) as runtime:
        assert oocgraph.bfs(graph, SOURCE, runtime=runtime, direction="pull").bytes_requested == 0  # all edges are in memory
    client.run(keep_no_edges)
    try:
        result = oocgraph.bfs(graph, SOURCE, client=client, direction="pull")
    finally:
        client.run(keep_edges)
    assert result.bytes_requested == sum(one.bytes_read for one in result.iterations) > 0
    assert result.bytes_requested % PAGE_BYTES == 0
    assert sum(figures.bytes_read for figures in result.workers.values()) == result.bytes_requested
    assert all(figures.bytes_read for figures in result.workers.values())


def keep_no_edges():
    """Run on a worker: nothing but a plane is in memory."""
    from dataclasses import replace

    from oocgraph.engine.shard_plan import ShardPlan

    plan = ShardPlan.residency

    def residency(self, **options):
        return replace(plan(self, **options), num_planes=1, num_resident=(0,), cache_slots=256, num_kept=4096)

    ShardPlan.planned, ShardPlan.residency = plan, residency


def keep_edges():
    """Run on a worker: as before."""
    from oocgraph.engine.shard_plan import ShardPlan

    ShardPlan.residency = ShardPlan.planned
    del ShardPlan.planned
