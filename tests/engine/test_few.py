"""Searches that pay for what they reach equal those of the engines of large levels, on every kind of graph."""

from __future__ import annotations

import pickle
import re

import numpy as np
import pyarrow as pa
import pytest

import oocgraph
from oocgraph import ArgumentError, BudgetError, Resources
from oocgraph.algorithms import bfs_by_pages
from oocgraph.engine import few, local
from oocgraph.engine.by_pages import Question, search_by_pages
from oocgraph.engine.local import LocalRuntime
from oocgraph.engine.small import SmallRuntime
from oocgraph.ingest.generators.kronecker import KroneckerEdges
from oocgraph.memory import Budget, host_bytes
from oocgraph.results.few import FewValues

HERE = Resources(device="cpu", threads=2)
GIB = 1 << 30


def edges_of(kind):
    """Return source and target of a graph of a kind, and how it is built."""
    rng = np.random.default_rng(len(kind))
    source, target = (200 * rng.random(500) ** 2).astype(int), rng.integers(0, 200, 500)
    if kind == "path":
        return (np.arange(600), np.arange(1, 601)), {}
    if kind == "self-loops":
        return (np.append(source, np.arange(9)), np.append(target, np.arange(9))), {"keep_self_loops": True}
    if kind == "strings":
        names = np.array([f"v{i}" for i in range(200)], object)
        return (names[source].tolist(), names[target].tolist()), {}
    if kind == "sparse ids":
        return (source * 10**12, target * 10**12), {}
    if kind == "disconnected":
        return (np.append(source, 500 + source), np.append(target, 500 + target)), {"num_vertices": 1000}
    return (source, target), {"directed": kind == "directed"}


KINDS = ("undirected", "directed", "path", "self-loops", "strings", "sparse ids", "disconnected")


@pytest.fixture(scope="module", params=KINDS)
def both(request, tmp_path_factory):
    """Return a graph in memory and its store."""
    edges, options = edges_of(request.param)
    return oocgraph.build_csr(edges, **options), oocgraph.build_csr(edges, tmp_path_factory.mktemp("g") / "g.zarr", **options)


def searches_of(graph, **options):
    ids = graph.ids_of(np.arange(graph.num_rows))
    first, middle, last = ids[0], ids[graph.num_rows // 2], ids[-1]
    return [
        (source, {**how, **options})
        for source in (first, last, [middle, last])
        for how in ({}, {"depth_limit": 0}, {"depth_limit": 2}, {"target": middle}, {"target": [first, last], "depth_limit": 3})
    ]


def assert_same(graph, found, expected):
    assert np.array_equal(found.level, expected.level)
    for name in ("num_reached", "num_reached_edges", "depth"):
        assert getattr(found, name) == getattr(expected, name), name
    assert [one.frontier for one in found.iterations] == [one.frontier for one in expected.iterations]
    assert np.array_equal(found.vertices_per_level(), expected.vertices_per_level())
    assert dict(found.reached()) == dict(expected.reached())
    oocgraph.verify_bfs(graph, found)


@pytest.mark.parametrize("reverse", [False, True])
def test_a_small_graph_in_memory_is_searched_as_by_large_levels(both, reverse):
    graph, _ = both
    assert few.is_small(graph)
    for source, how in searches_of(graph, reverse=reverse):
        found = oocgraph.bfs(graph, source, resources=HERE, **how)
        assert "few vertices" in "".join(one.reason for one in found.iterations) or not found.iterations
        assert_same(graph, found, oocgraph.bfs(graph, source, resources=HERE, direction="half", **how))


def test_a_large_graph_in_memory_is_searched_by_tables_first(both, monkeypatch):
    """Until a limit is reached, of which those of roads and hubs come at once."""
    _, store = both
    for module in (few, local):
        monkeypatch.setattr(module, "SMALL_ROWS", 8)
    monkeypatch.setattr(local, "SMALL_EDGES", 8)
    for share, kinds in ((1.0, {FewValues}), (0.02, {FewValues, np.ndarray})):
        monkeypatch.setattr(few, "SHARE_OF_EDGES", share)
        seen = set()
        with oocgraph.open_runtime(store, resources=HERE) as runtime:
            for source, how in searches_of(store):
                found = oocgraph.bfs(store, source, runtime=runtime, **how)
                seen.add(type(found.search.level))
                assert_same(store, found, oocgraph.bfs(store, source, resources=HERE, direction="half", **how))
        assert seen == kinds


@pytest.mark.parametrize("reverse", [False, True])
def test_a_question_about_a_graph_on_disk_is_answered_by_pages(both, monkeypatch, reverse):
    _, store = both
    monkeypatch.setattr(bfs_by_pages, "LEAST_EDGES", 0)
    for source, how in searches_of(store, reverse=reverse):
        found = oocgraph.bfs(store, source, resources=HERE, **how)
        assert isinstance(found.search.level, FewValues) == ("depth_limit" in how or "target" in how)
        assert_same(store, found, oocgraph.bfs(store, source, resources=HERE, direction="half", **how))


def test_rows_that_are_read_in_pieces_make_the_same_levels(both, monkeypatch):
    _, store = both
    monkeypatch.setattr("oocgraph.engine.by_pages.PIECE_ENTRIES", 7)
    monkeypatch.setattr("oocgraph.engine.by_pages.BLOCK_ROWS", 5)
    monkeypatch.setattr("oocgraph.kernels.few.FIRST_ROOM", 2)
    source = np.array([store.num_rows - 1])
    found = search_by_pages(store, Question(source, source[:0], 100, 10**9, 10**9), GIB)
    with LocalRuntime.open(store) as runtime:
        expected = runtime.search(source, direction="half", depth_limit=100)
    levels = [np.asarray(one.level).view(f"i{one.level.dtype.itemsize}").astype(int) for one in (found, expected)]  # unreached: -1
    assert np.array_equal(*levels)
    assert found.num_reached_edges == expected.num_reached_edges


@pytest.mark.parametrize("limit", ["FEW_EDGES", "FEW_LEVELS"])
def test_a_question_that_follows_much_is_left_to_large_levels(both, monkeypatch, limit):
    _, store = both
    monkeypatch.setattr(bfs_by_pages, "LEAST_EDGES", 0)
    monkeypatch.setattr(bfs_by_pages, limit, {"FEW_EDGES": 3, "FEW_LEVELS": 2}[limit])
    source = store.ids_of([0])[0]
    found = oocgraph.bfs(store, source, depth_limit=3, resources=HERE)
    assert isinstance(found.search.level, np.ndarray)
    assert_same(store, found, oocgraph.bfs(store, source, depth_limit=3, resources=HERE, direction="half"))


@pytest.fixture(scope="module")
def kron(tmp_path_factory):
    """Return a graph with hubs, of which two hops find most, and from some vertices few."""
    path = tmp_path_factory.mktemp("kron") / "g.zarr"
    return oocgraph.build_csr(KroneckerEdges(15, edge_factor=16, seed=1).edges(0, 16 << 15), path)


def test_a_question_is_answered_within_a_budget_that_loads_no_graph(kron, monkeypatch):
    """Vertex state does not fit; a budget too small for what is found is refused as for any search."""
    monkeypatch.setattr(bfs_by_pages, "FEW_EDGES", 10)
    source = kron.ids_of([kron.num_rows - 1])[0]
    whole = oocgraph.bfs(kron, source, depth_limit=2, resources=HERE, direction="half")

    def refuse(*_):
        raise BudgetError("the graph does not fit")

    monkeypatch.setattr("oocgraph.algorithms.bfs.open_where", lambda *_, **__: refuse())
    monkeypatch.setattr(bfs_by_pages, "LEAST_EDGES", 0)
    assert_same(kron, oocgraph.bfs(kron, source, depth_limit=2, resources=HERE), whole)
    with pytest.raises(BudgetError, match="the graph does not fit"):
        oocgraph.bfs(kron, source, depth_limit=2, memory_budget=host_bytes() + (1 << 20))
    with pytest.raises(BudgetError, match="the graph does not fit"):
        oocgraph.bfs(kron, source, resources=HERE)


def test_a_refusal_names_a_budget_for_tables_and_vertex_state(kron, monkeypatch):
    """The tables were refused by themselves: with the budget that was named, the state of the vertices was refused next."""
    monkeypatch.setattr(local, "SMALL_ROWS", 0)
    monkeypatch.setattr(local, "SMALL_EDGES", 0)
    in_use = []
    for more in (0, 200 << 20):  # more than the result takes
        monkeypatch.setattr(local, "FOUND_BYTES", few.FOUND_BYTES + more // few.FEW_ROOM)
        with pytest.raises(BudgetError) as refused:
            oocgraph.bfs(kron, 1, memory_budget=1 << 20, resources=HERE)
        found = re.search(r"the state of .* and (\d+)\.\d MiB are in use .* set memory_budget to at least", str(refused.value))
        in_use.append(int(found[1]))
    assert 190 <= in_use[1] - in_use[0] <= 210


def test_tables_of_few_vertices_are_charged(kron):
    with oocgraph.open_runtime(kron, resources=HERE) as runtime:
        assert "tables of few vertices" not in runtime._loaded.budget.reservations  # too small a graph
    budget = Budget(GIB)
    with SmallRuntime(oocgraph.build_csr(([0, 1], [1, 2]))) as runtime:
        assert runtime.budget.reservations["searches"] >= few.FOUND_BYTES * few.kernels.FIRST_ROOM
    with pytest.raises(BudgetError, match="set memory_budget to at least"):
        SmallRuntime(oocgraph.build_csr(([0, 1], [1, 2])), memory_budget=budget.baseline_bytes // 2)


def test_results_of_few_vertices_are_pickled_written_and_read_as_others_are(both, monkeypatch, tmp_path):
    _, store = both
    monkeypatch.setattr(bfs_by_pages, "LEAST_EDGES", 0)
    source = store.ids_of([0])[0]
    found = oocgraph.bfs(store, source, depth_limit=2, resources=HERE)
    again = pickle.loads(pickle.dumps(found))
    found.write(tmp_path / "few.csv")
    expected = oocgraph.bfs(store, source, depth_limit=2, resources=HERE, direction="push")
    assert np.array_equal(again.level, found.level)
    assert again == expected
    assert np.array_equal(found.level_of(store.ids_of([0, 1])), expected.level_of(store.ids_of([0, 1])))
    far = max(dict(found.reached()).items(), key=lambda one: one[1])[0]
    assert len(found.path(far)) == found.level_of(far) + 1
    assert (tmp_path / "few.csv").read_text().count("\n") == store.num_vertices + 1


def test_values_of_few_vertices_are_indexed_as_an_array_is(kron):
    question = Question(np.array([kron.num_rows - 1]), np.empty(0, np.int64), 1, 10**9, 10**9)
    level = search_by_pages(kron, question, GIB).level
    whole = np.asarray(level)
    assert len(level) == level.size == whole.size == kron.num_rows
    assert np.array_equal(level[5:900], whole[5:900])
    assert np.array_equal(level[900:5:-7], whole[900:5:-7])
    assert np.array_equal(level[np.array([3, -0, kron.num_rows - 1])], whole[[3, 0, kron.num_rows - 1]])
    assert level[kron.num_rows - 1] == 0
    assert np.asarray(level, np.int64).dtype == np.int64
    with pytest.raises(ValueError, match="without a copy"):
        np.array(level, copy=False)


class TestSmallRuntime:
    def test_a_closed_one_refuses_to_search(self):
        runtime = SmallRuntime(oocgraph.build_csr(([0, 1], [1, 2])))
        runtime.close()
        with pytest.raises(ArgumentError, match="is closed"):
            runtime.search(np.array([0]))

    def test_a_direction_that_is_asked_for_is_taken(self):
        graph = oocgraph.build_csr(([0, 1], [1, 2]))
        with oocgraph.open_runtime(graph, resources=HERE) as runtime:
            found = oocgraph.bfs(graph, 0, runtime=runtime, direction="pull")
            assert {one.direction for one in found.iterations} == {"pull"}
            assert found.depth == oocgraph.bfs(graph, 0, runtime=runtime).depth == 2

    def test_isolated_sources_reach_themselves(self):
        graph = oocgraph.build_csr(([0], [1]), num_vertices=4)
        assert oocgraph.bfs(graph, [3, 2], resources=HERE).level.tolist() == [-1, -1, 0, 0]
        assert oocgraph.bfs(oocgraph.build_csr(([], []), num_vertices=2), 1, resources=HERE).level.tolist() == [-1, 0]


class TestShortestPaths:
    @pytest.mark.one_in(4)
    @pytest.mark.parametrize("dtype", [np.int64, np.int8, np.float64, np.float32])
    @pytest.mark.parametrize("directed", [False, True])
    def test_paths_in_a_small_graph_are_those_of_large_ones(self, dtype, directed):
        """Distances and parents, whatever ends the search; some weights are 0."""
        rng = np.random.default_rng(2)
        (source, target), _ = edges_of("disconnected")
        weights = rng.integers(0, 5, source.size).astype(dtype)
        edges = pa.table({"source": source, "target": target, "w": weights})
        graph = oocgraph.build_csr(edges, weight="w", directed=directed, num_vertices=1000)
        first, last = graph.ids_of([0, graph.num_rows - 1]).tolist()
        for how in ({}, {"target": last}, {"target": [first]}, {"distance_limit": 2.5}, {"distance_limit": 3, "target": [first, last]}):
            for reverse in (False, True):
                found = oocgraph.sssp(graph, first, reverse=reverse, **how)
                expected = oocgraph.sssp(graph, first, reverse=reverse, schedule="async", **how)
                assert found.schedule == "dijkstra"
                assert np.array_equal(found.distance, expected.distance)
                oocgraph.verify_sssp(graph, found)
                positive = weights.min() > 0
                assert not positive or np.array_equal(found.parent, expected.parent)

    def test_paths_of_the_same_length_end_with_the_edge_of_the_first_vertex(self):
        rng = np.random.default_rng(5)
        (source, target), _ = edges_of("undirected")
        graph = oocgraph.build_csr(pa.table({"source": source, "target": target, "w": rng.integers(1, 3, source.size)}), weight="w")
        for vertex in graph.ids_of(np.arange(0, graph.num_rows, 20)).tolist():
            found, expected = oocgraph.sssp(graph, vertex), oocgraph.sssp(graph, vertex, schedule="async")
            assert np.array_equal(found.parent, expected.parent)

    def test_weights_that_are_none_are_refused_as_in_large_graphs(self):
        for weights, why in (([1.0, -1.0], "negative"), ([1 << 61, 1 << 62], "do not fit")):
            graph = oocgraph.build_csr(pa.table({"source": [0, 1], "target": [1, 2], "w": np.array(weights)}), weight="w")
            with pytest.raises(ArgumentError, match=why):
                oocgraph.sssp(graph, 0)

    def test_a_budget_that_is_too_small_is_refused(self):
        graph = oocgraph.build_csr(pa.table({"source": [0, 1], "target": [1, 2], "w": [1, 2]}), weight="w")
        with pytest.raises(BudgetError, match="set memory_budget to at least"):
            oocgraph.sssp(graph, 0, memory_budget="1M")
