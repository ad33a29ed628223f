"""Searches without some edges and with edges turned round: what NetworkX finds on the list of the edges that are left."""

from __future__ import annotations

import dataclasses
import pickle

import dask
import networkx as nx
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import oocgraph
from oocgraph import Resources
from oocgraph.engine.local import LocalRuntime
from oocgraph.errors import ArgumentError, BudgetError, NoPathError, ValidationError, VertexNotFoundError
from oocgraph.store.views import view_of
from tests.algorithms.test_bfs import cramped as cramped_plan
from tests.cluster.conftest import QUIET
from tests.stores import rewrite

__all__ = ["cramped_plan"]

ANY_FIXTURE = [HealthCheck.function_scoped_fixture]

CONDITIONS = {
    "year < 2000": lambda edges: edges.year < 2000,
    "kind == 'b' or 2015 <= year": lambda edges: (edges.kind == "b") | (edges.year >= 2015),
    "year >= 0": lambda edges: edges.year >= 0,
    "year < 0": lambda edges: edges.year < 0,
}


def edges_of(seed, num_ids=250, num_edges=900, *, strings=False):
    """Edges with three columns, some of them repeated with other values; a few hubs, and self-loops."""
    rng = np.random.default_rng(seed)
    ends = [(num_ids * rng.random(num_edges) ** power).astype(np.int64) * 3 for power in (2, 1)]
    if strings:
        ends = [np.array([f"v{one}" for one in side]) for side in ends]
    return pd.DataFrame({
        "source": ends[0], "target": ends[1], "year": rng.integers(1990, 2020, num_edges), "kind": rng.choice(["a", "b", "ccc"], num_edges),
        "weight": rng.integers(0, 6, num_edges),
    })  # fmt: skip


def build(edges, path, *, directed=False, order="degree", **options):
    with dask.config.set({"oocgraph.vertex-order": order}):
        return oocgraph.build_csr(
            edges, path, directed=directed, columns=["source", "target", "year", "kind"], weight="weight", duplicates="keep", **options
        )


def networkx_of(edges, left, *, directed=False, reverse=False):
    """Return the graph of the edges that are left, of repeated ones the lightest."""
    graph = nx.DiGraph() if directed else nx.Graph()
    graph.add_nodes_from(pd.unique(pd.concat([edges.source, edges.target])))
    for a, b, weight in left[["source", "target", "weight"]].itertuples(index=False):
        ends = (b, a) if reverse and directed else (a, b)
        if not graph.has_edge(*ends) or graph.edges[ends]["weight"] > weight:
            graph.add_edge(*ends, weight=weight)
    return graph


def reached(result, column):
    return {one: value for one, value in zip(result.vertices.tolist(), getattr(result, column).tolist(), strict=True) if value >= 0}


def components(result):
    found = {}
    for vertex, name in zip(result.vertices.tolist(), result.component.tolist(), strict=True):
        found.setdefault(name, set()).add(vertex)
    return {frozenset(one) for one in found.values()}


@pytest.mark.parametrize(
    ("order", "directed", "strings"),
    [("degree", False, True), ("degree", True, False), ("original", False, False), ("original", True, True), ("locality", False, False)],
)
def test_searches_of_the_edges_that_are_left(tmp_path, order, directed, strings):
    """Levels, distances and components, forwards and backwards, with all that is checked of results."""
    edges = edges_of(1, strings=strings)
    graph = build(edges, tmp_path / "g", directed=directed, order=order)
    source = edges.source[3]
    for where, chosen in CONDITIONS.items():
        left = edges[chosen(edges)]
        whole = networkx_of(edges, left, directed=directed)
        found = oocgraph.connected_components(graph, where=where)
        assert components(found) == {frozenset(one) for one in nx.connected_components(whole.to_undirected(as_view=True))}
        oocgraph.verify_components(graph, found)
        for reverse in (False, True):
            expected = networkx_of(edges, left, directed=directed, reverse=reverse)
            for direction in ("auto", "push", "pull"):
                levels = oocgraph.bfs(graph, source, where=where, reverse=reverse, direction=direction)
                assert reached(levels, "level") == nx.single_source_shortest_path_length(expected, source)
                oocgraph.verify_bfs(graph, levels)
                assert levels.num_reached_edges == count_edges(left, reached(levels, "level"), directed=directed, reverse=reverse)
            distances = oocgraph.sssp(graph, source, where=where, reverse=reverse)
            assert reached(distances, "distance") == nx.single_source_dijkstra_path_length(expected, source)
            oocgraph.verify_sssp(graph, distances)


def count_edges(left, vertices, *, directed, reverse):
    """Edges of the reached part: of a directed graph those that leave its vertices; self-loops are no edges here."""
    proper = left[left.source != left.target]
    begin = proper.target if directed and reverse else proper.source
    return int(begin.isin(vertices).sum())


@pytest.mark.parametrize("directed", [False, True])
def test_self_loops_that_are_kept_count_where_they_meet_the_condition(tmp_path, directed):
    edges = edges_of(2, num_ids=60)
    graph = build(edges, tmp_path / "g", directed=directed, keep_self_loops=True)
    loop = edges[edges.source == edges.target].iloc[0]
    for where, chosen in CONDITIONS.items():
        found = oocgraph.bfs(graph, loop.source, where=where)
        left = edges[chosen(edges)]
        assert found.num_reached_edges == left.source.isin(reached(found, "level")).sum()
        oocgraph.verify_bfs(graph, found)


@given(seed=st.integers(0, 2**32), directed=st.booleans(), order=st.sampled_from(["degree", "original"]), reverse=st.booleans(),
       where=st.sampled_from(list(CONDITIONS)), direction=st.sampled_from(["auto", "push", "pull"]), threads=st.sampled_from([1, 3]),
       check=st.booleans())  # fmt: skip
@settings(max_examples=12, deadline=None, suppress_health_check=ANY_FIXTURE)
def test_levels_from_disk_are_those_from_memory(
    cramped_plan,
    tmp_path_factory,
    seed,
    directed,
    order,
    reverse,
    where,
    direction,
    threads,
    check,
):
    """Some planes, some edges and few pages in memory; pages checked or not; any number of threads."""
    edges = edges_of(seed, num_ids=1500, num_edges=9000)
    graph = build(edges, tmp_path_factory.mktemp("disk") / "g", directed=directed, order=order)
    source = int(edges.source[0])
    expected = nx.single_source_shortest_path_length(
        networkx_of(edges, edges[CONDITIONS[where](edges)], directed=directed, reverse=reverse), source
    )
    cramped_plan(seed)
    opened = oocgraph.open_graph(graph, check_pages=check)
    found = oocgraph.bfs(
        opened, source, where=where, reverse=reverse, direction=direction, resources=Resources(threads=threads, device="cpu")
    )
    assert reached(found, "level") == expected
    oocgraph.verify_bfs(graph, found)
    cut = max(expected.values()) // 2
    target = next(vertex for vertex, level in expected.items() if level == cut)
    near = oocgraph.bfs(opened, source, target=target, where=where, reverse=reverse, direction=direction, resources=Resources(device="cpu"))
    assert reached(near, "level") == {vertex: level for vertex, level in expected.items() if level <= cut}
    oocgraph.verify_bfs(graph, near)


@pytest.mark.parametrize("codec", ["zstd", "none"])
def test_compressed_graphs_and_blocks_of_edges(tmp_path, codec, monkeypatch):
    """What kernels do not read themselves, and the search by blocks."""
    edges = edges_of(5, num_ids=1200, num_edges=5000)
    build(edges, tmp_path / "plain", order="locality")
    graph = rewrite(tmp_path / "plain", tmp_path / "g", codec=codec)
    monkeypatch.setattr(LocalRuntime, "holds_all", classmethod(lambda cls, *_, **__: False))
    source = int(edges.source[1])
    for where, chosen in CONDITIONS.items():
        expected = nx.single_source_shortest_path_length(networkx_of(edges, edges[chosen(edges)]), source)
        found = oocgraph.bfs(graph, source, where=where)
        assert reached(found, "level") == expected
        assert not found.iterations or "by blocks" in found.iterations[0].reason
        oocgraph.verify_bfs(graph, found)
        far = [vertex for vertex, level in expected.items() if level == max(expected.values()) // 2][:3]
        near = oocgraph.bfs(graph, source, target=far, where=where)
        assert reached(near, "level") == {vertex: level for vertex, level in expected.items() if level <= max(expected.values()) // 2}
        oocgraph.verify_bfs(graph, near)


@pytest.mark.parametrize("order", ["degree", "original", "locality"])
@pytest.mark.parametrize("directed", [False, True])
def test_a_graph_in_memory_answers_as_its_store_does(tmp_path, order, directed):
    edges = edges_of(3)
    stored, held = build(edges, tmp_path / "g", directed=directed, order=order), build(edges, None, directed=directed, order=order)
    source, where = int(edges.source[2]), "year < 2005 and kind != 'a'"
    for reverse in (False, True):
        for search, column in ((oocgraph.bfs, "level"), (oocgraph.sssp, "distance")):
            expected = reached(search(stored, source, where=where, reverse=reverse), column)
            assert reached(search(held, source, where=where, reverse=reverse), column) == expected
        assert reached(oocgraph.bfs(held, source, reverse=reverse), "level") == reached(
            oocgraph.bfs(stored, source, reverse=reverse), "level"
        )
    assert components(oocgraph.connected_components(held, where=where)) == components(oocgraph.connected_components(stored, where=where))
    np.testing.assert_array_equal(held.read("out/indices"), stored.read("out/indices"))  # nothing was changed in place


def test_weights_of_edges_that_are_left_out_are_not_looked_at(tmp_path):
    """Not even if they are negative or no numbers."""
    edges = pd.DataFrame({"source": [0, 0, 1], "target": [1, 2, 2], "weight": [1.5, -3.0, -np.inf], "kind": ["good", "bad", "bad"]})
    graph = oocgraph.build_csr(edges, tmp_path / "g", columns=["source", "target", "kind"], weight="weight")
    with pytest.raises(ArgumentError, match="negative or no number"):
        oocgraph.sssp(graph, 0)
    found = oocgraph.sssp(graph, 0, where="kind == 'good'")
    assert reached(found, "distance") == {0: 0.0, 1: 1.5, 2: np.inf}
    oocgraph.verify_sssp(graph, found)
    assert oocgraph.sssp(graph, 0, where="weight >= 0").distance.tolist() == [0.0, 1.5, np.inf]


def test_a_runtime_of_a_view(tmp_path):
    edges = edges_of(6)
    graph = build(edges, tmp_path / "g", directed=True)
    source, where = int(edges.source[0]), "year < 2000"
    alone = oocgraph.bfs(graph, source, where=where)
    with oocgraph.open_runtime(graph, where=f" {where} ", resources=Resources(device="cpu")) as runtime:
        for _ in range(2):
            assert reached(oocgraph.bfs(graph, source, where=where, runtime=runtime), "level") == reached(alone, "level")
        near = oocgraph.sssp(graph, source, where=where, runtime=runtime)
        assert reached(near, "distance") == reached(oocgraph.sssp(graph, source, where=where), "distance")
        assert components(oocgraph.connected_components(graph, where=where, runtime=runtime)) == components(
            oocgraph.connected_components(graph, where=where)
        )
        assert runtime.store.read("out/indices").tolist() == graph.read("out/indices").tolist()
        for call, words in [
            (lambda: oocgraph.bfs(graph, source, runtime=runtime), "where is None, but the runtime was opened with where='year < 2000'"),
            (lambda: oocgraph.bfs(graph, source, where="year < 3", runtime=runtime), "where is 'year < 3'"),
            (lambda: oocgraph.bfs(graph, source, where=where, reverse=True, runtime=runtime), "reverse is True"),
            (lambda: oocgraph.pagerank(graph, runtime=runtime), "where is None"),
            (lambda: oocgraph.core_numbers(graph, runtime=runtime), "where is None"),
            (lambda: oocgraph.spmv(graph, np.ones(graph.num_vertices), runtime=runtime), "where is None"),
            (lambda: oocgraph.connected_components(graph, runtime=runtime), "where is None"),
        ]:
            with pytest.raises(ArgumentError, match=words):
                call()
    with oocgraph.open_runtime(graph, resources=Resources(device="cpu")) as runtime:
        with pytest.raises(ArgumentError, match="where is 'year < 2000', but the runtime was opened with where=None"):
            oocgraph.bfs(graph, source, where=where, runtime=runtime)
        with pytest.raises(ArgumentError, match="reverse is True"):
            oocgraph.bfs(graph, source, reverse=True, runtime=runtime)


def test_an_undirected_graph_is_its_own_reverse(tmp_path):
    edges = edges_of(7)
    graph = build(edges, tmp_path / "g")
    assert view_of(graph, reverse=True) is graph
    found = oocgraph.bfs(graph, int(edges.source[0]), reverse=True)
    assert (found.reverse, found.planes_resident) == (False, graph.attributes.num_planes)


def test_results_say_what_they_are_of_and_another_graph_is_invalid(tmp_path):
    edges = edges_of(8)
    graph, source = build(edges, tmp_path / "g", directed=True), int(edges.source[0])
    found = oocgraph.bfs(graph, source, where="year < 2010", reverse=True, target=source)
    said = found.summary()
    assert (said["where"], said["reverse"], said["target"]) == ("year < 2010", True, source)
    assert "where" not in oocgraph.bfs(graph, source).summary()
    levels = oocgraph.bfs(graph, source, where="year < 2010")
    with pytest.raises(ValidationError):
        oocgraph.verify_bfs(graph, dataclasses.replace(levels, where=None))
    names = oocgraph.connected_components(graph, where="year < 2000")
    with pytest.raises(ValidationError):
        oocgraph.verify_components(graph, dataclasses.replace(names, where=None))


def test_views_are_pickled_as_what_they_are(tmp_path):
    graph = build(edges_of(9), tmp_path / "g", directed=True)
    view = view_of(graph, where="year < 2000", reverse=True)
    again = pickle.loads(pickle.dumps(view))
    for name in ("out/indices", "in/indices", "out/weight", "out/indptr"):
        np.testing.assert_array_equal(again.read(name), view.read(name))
    assert (again.where, again.reverse, again.url) == ("year < 2000", True, graph.url)


@pytest.mark.parametrize("codec", ["none", "zstd"])
@pytest.mark.parametrize("order", ["degree", "original"])
def test_arrays_of_a_view_are_those_of_the_graph_with_edges_to_their_own_vertex(tmp_path, order, codec):
    """Lists, planes and weights, read from any place."""
    edges = edges_of(10, num_ids=700, num_edges=4000)
    build(edges, tmp_path / "plain", directed=True, order=order)
    graph = rewrite(tmp_path / "plain", tmp_path / "g", codec=codec)
    view, rng = view_of(graph, where="year < 2005"), np.random.default_rng(0)
    for group in ("out", "in"):
        starts, live = graph.read(f"{group}/indptr"), graph.read(f"{group}/year") < 2005
        rows = np.repeat(np.arange(graph.num_rows), np.diff(starts))
        expected = {
            f"{group}/indices": np.where(live, graph.read(f"{group}/indices"), rows),
            f"{group}/weight": np.where(live, graph.read(f"{group}/weight"), 0),
        }
        if order == "degree" and group == "in":
            planes, offsets = graph.read("in/planes/indices"), graph.plane_offsets
            plane = np.searchsorted(offsets, np.arange(planes.size), side="right") - 1
            vertex = np.arange(planes.size) - offsets[plane]
            expected["in/planes/indices"] = np.where(live[starts[vertex] + plane], planes, vertex)
        for name, values in expected.items():
            array = view.array(name)
            np.testing.assert_array_equal(array.read(0, array.length), values)
            for start in rng.integers(0, array.length, 20).tolist():
                stop = min(array.length, start + int(rng.integers(1, 500)))
                np.testing.assert_array_equal(array.read(start, stop), values[start:stop])
                out = np.empty(stop - start, array.dtype)
                array.read_into(start, out)
                np.testing.assert_array_equal(out, values[start:stop])


def test_a_path_is_a_shortest_one(tmp_path):
    edges = edges_of(11, strings=True)
    graph = build(edges, tmp_path / "g", directed=True)
    for where, left in ((None, edges), ("year < 2005", edges[edges.year < 2005])):
        expected = networkx_of(edges, left, directed=True)
        source = left.source.iloc[0]
        targets = list(nx.descendants(expected, source))[:6]
        for target in targets:
            path = oocgraph.shortest_path(graph, source, target, where=where)
            assert nx.is_path(expected, path)
            assert (path[0], path[-1], len(path) - 1) == (source, target, nx.shortest_path_length(expected, source, target))
            heavy = oocgraph.shortest_path(graph, source, target, weight="weight", where=where)
            assert nx.path_weight(expected, heavy, "weight") == nx.dijkstra_path_length(expected, source, target)
        assert oocgraph.shortest_path(graph, source, source) == [source]
    none = next(iter(set(expected) - nx.descendants(expected, source) - {source}))
    for weight in (None, "weight"):
        with pytest.raises(NoPathError, match="there is no path to"):
            oocgraph.shortest_path(graph, source, none, weight=weight, where="year < 2005")
        with pytest.raises(VertexNotFoundError, match="nobody"):
            oocgraph.shortest_path(graph, source, "nobody", weight=weight)
    with pytest.raises(TypeError, match=r"target is \[.*\]; give one vertex"):
        oocgraph.shortest_path(graph, source, [none])


def test_targets_that_have_no_edges(tmp_path):
    graph = oocgraph.build_csr(([0, 1, 2], [1, 2, 3]), tmp_path / "g", num_vertices=6)
    assert oocgraph.bfs(graph, 0, target=5).level.tolist() == [0, 1, 2, 3, -1, -1]
    assert oocgraph.bfs(graph, [0, 5], target=5).level.tolist() == [0, -1, -1, -1, -1, 0]
    assert oocgraph.bfs(graph, [0, 5], target=[5, 1]).level.tolist() == [0, 1, -1, -1, -1, 0]
    assert oocgraph.bfs(graph, 5, target=5).level.tolist() == [-1, -1, -1, -1, -1, 0]
    assert oocgraph.bfs(graph, 1, target=1, depth_limit=3).level.tolist() == [-1, 0, -1, -1, -1, -1]
    assert oocgraph.bfs(graph, 0, target=3, depth_limit=1).level.tolist() == [0, 1, -1, -1, -1, -1]
    assert oocgraph.shortest_path(graph, 5, 5) == [5]
    with pytest.raises(ArgumentError, match="target is an empty list"):
        oocgraph.bfs(graph, 0, target=[])
    with pytest.raises(VertexNotFoundError, match="17"):
        oocgraph.bfs(graph, 0, target=[1, 17])


def test_many_small_levels_end_at_the_target(tmp_path):
    """Inside of the kernel that takes many levels: no more of a long path is followed."""
    n = 3000
    graph = oocgraph.build_csr((np.arange(n), np.arange(1, n + 1)), tmp_path / "g")
    found = oocgraph.bfs(graph, 0, target=[40, 25])
    assert (found.depth, found.num_reached, len(found.iterations)) == (40, 41, 40)
    distances = oocgraph.sssp(oocgraph.generate_grid((40, 40), tmp_path / "w", weights=(1, 9)), 0, target=[5, 41])
    assert distances.num_reached < 800
    oocgraph.verify_sssp(tmp_path / "w", distances)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"where": "year < 3"}, "where is given, which only a search in this process takes"),
        ({"reverse": True}, "reverse is given"),
        ({"target": 3, "reverse": True}, "target and reverse are given"),
    ],
)
def test_what_a_cluster_partitions_and_a_gpu_do_not_take_is_refused(tmp_path, options, words):
    from dask.distributed import Client

    edges = edges_of(12)
    graph, source = build(edges, tmp_path / "g", directed=True), int(edges.source[0])
    options = {name: source if name == "target" else value for name, value in options.items()}
    with Client(processes=False, n_workers=1, threads_per_worker=1, **QUIET) as client:
        with pytest.raises(ArgumentError, match=words):
            oocgraph.bfs(graph, source, client=client, **options)
        assert oocgraph.bfs(graph, source, resources=Resources(client=False), **options).num_reached > 0
        assert oocgraph.bfs(graph, source, **options).num_reached > 0, "the current client was taken, which nobody has asked for"
    with pytest.raises(ArgumentError, match="partition are given"):
        oocgraph.bfs(graph, source, partition="1d", **options)
    with pytest.raises(ArgumentError, match="only a search on the processor takes"):
        oocgraph.bfs(graph, source, resources=Resources(device="cuda"), **options)


def test_a_budget_too_small_for_the_bits_names_one_that_works(tmp_path):
    graph = build(edges_of(13, num_ids=2000, num_edges=20000), tmp_path / "g")
    source = int(graph.ids_of([0])[0])
    calls = {
        "bfs": lambda **options: oocgraph.bfs(graph, source, where="year < 2000", **options),
        "sssp": lambda **options: oocgraph.sssp(graph, source, where="year < 2000", **options),
        "components": lambda **options: oocgraph.connected_components(graph, where="year < 2000", **options),
    }
    for name, call in calls.items():
        call()
        with pytest.raises(BudgetError) as caught:
            call(memory_budget="30M")
        named = str(caught.value).rpartition("at least ")[2]
        assert call(memory_budget=named) is not None, name
        assert ("the state of" if name == "bfs" else "edges that count") in str(caught.value)


def test_what_looks_at_all_edges_refuses_a_view(tmp_path):
    """Edges that are left out were counted as loops: wrong ranks, degrees, neighbours and files, without a word."""
    edges = pa.table({"source": [0, 0, 1, 3], "target": [1, 2, 2, 4], "k": [0, 1, 0, 1]})
    graph = oocgraph.build_csr(edges, tmp_path / "g", columns=("source", "target", "k"))
    with oocgraph.open_runtime(graph, where="k == 0") as runtime:
        view = runtime.view
        calls = [
            lambda: oocgraph.pagerank(view), lambda: oocgraph.spmv(view, np.ones(5)), lambda: oocgraph.core_numbers(view),
            lambda: oocgraph.triangles(view), lambda: oocgraph.louvain(view),
            lambda: oocgraph.partition_graph(view, 2, policy="EEC", path=tmp_path / "p"),
            lambda: oocgraph.export_graph(view, tmp_path / "e.csv"), lambda: oocgraph.check_store(view), lambda: oocgraph.plan_bfs(view, 2),
            view.to_scipy, view.degree, view.edges, lambda: view.neighbors(0), lambda: view.has_edge(0, 2), lambda: view.subgraph([0, 1]),
            lambda: view.ego(0), lambda: view.random_walk([0], 2), lambda: view.sample_neighbors([0], 2),
        ]  # fmt: skip
        for call in calls:
            with pytest.raises(oocgraph.ArgumentError, match="is a view of the edges with k == 0"):
                call()
        assert oocgraph.bfs(view, 0).num_reached == 3
        assert oocgraph.connected_components(view).num_components == 3
        with pytest.raises(oocgraph.ArgumentTypeError, match="not DataFrame"):  # which has a method of that name
            oocgraph.pagerank(pd.DataFrame())
    assert sorted(path.name for path in tmp_path.iterdir()) == ["g"]
