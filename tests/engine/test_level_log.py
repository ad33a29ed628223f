"""Metrics of levels: one for each, until there are thousands; then sums of neighbours."""

from __future__ import annotations

import numpy as np
import pytest

from oocgraph import bfs, build_csr, open_runtime
from oocgraph.engine import level_log
from oocgraph.engine.level_log import EVENT_COLUMNS, LevelLog
from oocgraph.results.search import DeviceMetrics, Iteration


def serial(num_levels, **columns):
    """Make a log of levels that one thread has found."""
    log = np.zeros((num_levels, 6))
    for column, values in enumerate(columns.values()):
        log[:, column] = values
    return log


def test_few_levels_have_one_each():
    log = LevelLog()
    log.add_tiny(1, np.array([[1, 4, 100, 7], [4, 2, 50, 9]]))
    log.add(Iteration(3, "pull", "many", 9, 1, 0.5, 10))
    log.add_serial(4, serial(2, frontier=[5, 6], edges=8, ns=1000, pulled=[0, 1], push=[3, 4], pull=[0, 5]))
    found = log.iterations(lambda vertices, edges: DeviceMetrics("some", vertices * 100 + edges))
    assert [one.level for one in found] == [1, 2, 3, 4, 5]
    assert [one.direction for one in found] == ["push", "push", "pull", "push", "pull"]
    assert [one.frontier for one in found] == [1, 4, 9, 5, 6]
    assert [one.bytes_read for one in found] == [100, 50, 10, 0, 0]
    assert [one.device and one.device.link_bytes for one in found] == [104, 402, None, None, None]
    assert found[3].reason == "one thread: a push takes 3 ns"
    assert found[4].reason == "one thread: a push takes 4 ns, a pull 5 ns"


def test_many_levels_are_summed_evenly(monkeypatch):
    monkeypatch.setattr(level_log, "MOST_ROWS", 64)
    log, rng, frontiers = LevelLog(), np.random.default_rng(1), []
    level = 1
    for _ in range(500):
        sizes = rng.integers(1, 9, int(rng.integers(1, 20)))
        log.add_serial(level, serial(len(sizes), frontier=sizes, edges=2 * sizes, ns=10))
        frontiers += sizes.tolist()
        level += len(sizes)
    found = log.iterations(lambda *_: None)
    assert len(found) <= 64
    levels = [one.level for one in found]
    assert levels[-1] == level - 1
    spans = np.diff(levels)
    assert spans[:10].max() == spans[:10].min() >= level // 64
    ends = np.cumsum(frontiers)[np.array(levels) - 1]
    assert [one.frontier for one in found] == np.diff(ends, prepend=0).tolist()
    assert sum(one.seconds for one in found) == pytest.approx(10e-9 * (level - 1))
    assert found[5].reason == f"{spans[4]} levels, of one thread"


def test_what_lies_between_stays_where_it_is(monkeypatch):
    """Levels that are large are never summed, however many there are, and nothing is looked through again and again."""
    monkeypatch.setattr(level_log, "MOST_ROWS", 16)
    log = LevelLog()
    for k in range(200):
        log.add_tiny(3 * k + 1, np.full((2, 4), 5))
        log.add(Iteration(3 * k + 3, "pull", "many", 9, 1, 0.5, 10))
    found = log.iterations(lambda *_: None)
    assert [one.level for one in found if one.direction == "pull"] == [3 * k + 3 for k in range(200)]
    assert sum(one.frontier for one in found) == 200 * 19
    assert len(found) < 600


def test_events_have_the_first_columns():
    log = LevelLog()
    log.add_tiny(7, np.array([[1, 4, 100, 9]]))
    (rows,) = log.drain()
    assert rows.shape == (1, EVENT_COLUMNS)
    assert rows.tolist() == [[7, 1, 4, 100, 9]]
    assert log.drain() == []


@pytest.mark.parametrize("is_open", [True, False])
def test_a_long_path_has_few_iterations(tmp_path, monkeypatch, is_open):
    monkeypatch.setattr(level_log, "MOST_ROWS", 256)
    number = np.random.default_rng(3).permutation(30_001)
    graph = build_csr((number[:-1], number[1:]), tmp_path / "path.zarr", directed=False)
    with open_runtime(graph) as runtime:
        result = bfs(graph, int(number[0]), runtime=runtime if is_open else None)
    assert result.depth == 30_000
    assert len(result.iterations) <= 256
    assert sum(one.frontier for one in result.iterations) == 30_001
    assert len(result.summary()["iterations"]) == len(result.iterations)


def test_a_search_from_a_hub_at_the_end_of_a_long_path():
    n = 70_000
    graph = build_csr((np.r_[np.arange(n - 1), np.full(n, n - 1)], np.r_[np.arange(1, n), np.arange(n, 2 * n)]))
    found = bfs(graph, n - 1)
    assert (found.depth, len(found.reached())) == (n - 1, 2 * n)
    assert found.level_of([0, n - 1, 2 * n - 1]).tolist() == [n - 1, 0, 1]
