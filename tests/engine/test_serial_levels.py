"""Levels that one thread finds in one call equal those of the steps that threads share, on every kind of graph and up to every limit."""

from __future__ import annotations

import numpy as np
import pytest

import oocgraph
from oocgraph.engine import local
from oocgraph.engine.local import LocalRuntime
from tests.engine.test_few import KINDS, edges_of

ENDLESS = 10**18
"""Nanoseconds that a level may take to be found by one thread."""


def kronecker(scale, **options):
    rng = np.random.default_rng(scale)
    ends = (rng.random((2, 16 << scale)) ** 4 * (1 << scale)).astype(int)
    return oocgraph.build_csr((ends[0], ends[1]), num_vertices=1 << scale, **options)


def grid(side):
    at = np.arange(side * side).reshape(side, side)
    ends = (at[:, :-1], at[:, 1:]), (at[:-1], at[1:])
    return oocgraph.build_csr(tuple(np.concatenate([one[i].ravel() for one in ends]) for i in (0, 1)))


def graph_of(kind):
    if kind == "hubs":
        return kronecker(13)
    if kind == "hubs, directed":
        return kronecker(12, directed=True)
    if kind == "grid":
        return grid(140)
    edges, options = edges_of(kind)
    return oocgraph.build_csr(edges, **options)


@pytest.fixture(scope="module", params=(*KINDS, "hubs", "hubs, directed", "grid"))
def graph(request):
    return graph_of(request.param)


def opened(graph, nanoseconds, **options):
    """Return a runtime whose levels one thread finds if they take no longer."""
    runtime = LocalRuntime.open(graph, **options)
    runtime._serial_nanoseconds = nanoseconds
    return runtime


def levels_of(search):
    return np.asarray(search.level).view(f"i{search.level.dtype.itemsize}").astype(int)  # unreached: -1


def assert_same(graph, found, expected):
    assert np.array_equal(levels_of(found), levels_of(expected))
    for name in ("num_reached", "num_reached_edges", "depth"):
        assert getattr(found, name) == getattr(expected, name), name
    assert [one.frontier for one in found.iterations] == [one.frontier for one in expected.iterations]
    level, parent = levels_of(found), np.asarray(found.parent)
    children = np.flatnonzero(level > 0)
    assert np.array_equal(level[parent[children]], level[children] - 1)
    assert (parent[level < 0] == np.iinfo(parent.dtype).max).all()
    ids, theirs = graph.ids_of(children[::97]), graph.ids_of(parent[children[::97]])
    assert graph.has_edge(theirs, ids).all()


def questions_of(graph):
    first, middle, last = 0, graph.num_rows // 2, graph.num_rows - 1
    for sources in ([first], [last], [middle, last], range(0, graph.num_rows, 3)):
        for how in ({}, {"depth_limit": 0}, {"depth_limit": 2}, {"targets": np.array([middle])}, {"targets": np.array([first, last])}):
            yield np.array(sources), how


@pytest.mark.one_in(8)
@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("nanoseconds", [0, 2_000, 40_000, ENDLESS])
def test_levels_are_those_of_shared_steps(graph, nanoseconds, threads):
    """Whichever level is the first that is too much work, and whatever ends the search."""
    with opened(graph, nanoseconds, threads=threads) as runtime, LocalRuntime.open(graph) as other:
        for sources, how in questions_of(graph):
            found = runtime.search(sources, **how)
            assert_same(graph, found, other.search(sources, direction="half", **how))
            by_one = [one.reason.startswith("one thread: ") for one in found.iterations]
            assert all(by_one) or nanoseconds < ENDLESS


def test_a_frontier_that_no_queue_holds_is_left_to_others(graph, monkeypatch):
    monkeypatch.setattr("oocgraph.engine.state.QUEUE_CAPACITY", 64)
    monkeypatch.setattr("oocgraph.engine.cpu_engine.QUEUE_CAPACITY", 64)
    monkeypatch.setattr("oocgraph.engine.local.QUEUE_CAPACITY", 64)
    with opened(graph, ENDLESS) as runtime, LocalRuntime.open(graph) as other:
        for sources, how in questions_of(graph):
            assert_same(graph, runtime.search(sources, **how), other.search(sources, direction="half", **how))


def test_directions_are_mixed_where_there_are_hubs():
    graph = kronecker(12)
    with opened(graph, ENDLESS) as runtime:
        found = runtime.search(np.array([graph.num_rows - 1]))
        assert {one.direction for one in found.iterations} == {"push", "pull"}
        assert {one.direction for one in runtime.search(np.array([0]), direction="push").iterations} == {"push"}
        assert "a pull " in "".join(one.reason for one in found.iterations)


def test_a_log_that_is_full_goes_on(monkeypatch):
    """A path of more levels than the log and one byte have room for."""
    monkeypatch.setattr(local, "SERIAL_LOG", 7)
    graph = oocgraph.build_csr((np.arange(700), np.arange(1, 701)))
    with opened(graph, ENDLESS) as runtime:
        source = int(oocgraph.bfs(graph, 0).search.sources[0])
        found = runtime.search(np.array([source]))
        assert found.depth == 700
        assert [one.level for one in found.iterations] == list(range(1, 702))


def test_a_graph_without_edges_is_searched():
    graph = oocgraph.build_csr(([], []), num_vertices=3)
    with LocalRuntime.open(graph) as runtime:
        found = runtime.search(np.empty(0, np.int64))
        assert (found.num_reached, found.depth, found.level.size) == (0, 0, 0)
