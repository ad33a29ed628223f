"""Power iterations by sweeps equal NetworkX's, at any budget and with any number of threads, to the last bit."""

from __future__ import annotations

import copy
import pickle

import networkx as nx
import numpy as np
import pyarrow as pa
import pytest

import oocgraph
from oocgraph import Resources
from oocgraph.errors import ArgumentError, BudgetError, ConvergenceError
from oocgraph.sparse import edge_stream
from oocgraph.store.graph import open_graph
from tests.graphs import hubs
from tests.stores import rewrite, string_store

NUM_IDS = 90


def edges_of(seed, num_edges=260):
    """Edges between ids below 80, of which some occur twice; no self-loops."""
    source, target = hubs(seed, 80, num_edges)
    keep = source != target
    return source[keep], target[keep]


def built(path, seed, *, directed, weighted=False):
    """Return a store with isolated vertices, and the same graph of NetworkX."""
    source, target = edges_of(seed)
    graph = (nx.DiGraph if directed else nx.Graph)()
    graph.add_nodes_from(range(NUM_IDS))
    lengths = {}
    for u, v in zip(source.tolist(), target.tolist(), strict=True):
        lengths.setdefault((u, v) if directed else (min(u, v), max(u, v)), 1 + (u * 7 + v * 13) % 5 if weighted else 1)
    graph.add_weighted_edges_from([(u, v, w) for (u, v), w in lengths.items()])
    ends = np.array(list(lengths)).T
    edges = {"source": ends[0], "target": ends[1], "weight": np.array(list(lengths.values()), np.float32)}
    if weighted:
        import pandas as pd

        return oocgraph.build_csr(pd.DataFrame(edges), path, directed=directed, weight="weight", num_vertices=NUM_IDS), graph
    return oocgraph.build_csr((ends[0], ends[1]), path, directed=directed, num_vertices=NUM_IDS), graph


def in_order(values):
    """NetworkX's values, by ascending id."""
    return np.array([values[v] for v in sorted(values)])


@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("piece", [None, 16])
def test_values_are_networkxs(tmp_path, monkeypatch, directed, weighted, piece):
    """Of rows that are longer than a piece, too."""
    if piece:
        monkeypatch.setattr(edge_stream, "PIECE_BYTES", piece)
    graph, peer = built(tmp_path / "g.zarr", 3, directed=directed, weighted=weighted)
    found = oocgraph.hits(graph, tol=1e-12, max_iter=2000)
    hubs_, authorities = nx.hits(peer, max_iter=2000, tol=1e-13)
    np.testing.assert_allclose(found.hub, in_order(hubs_), atol=1e-9)
    np.testing.assert_allclose(found.authority, in_order(authorities), atol=1e-9)
    found = oocgraph.katz_centrality(graph, alpha=0.01, beta=0.7, tol=1e-10)
    np.testing.assert_allclose(found.centrality, in_order(nx.katz_centrality(peer, 0.01, 0.7, tol=1e-10, weight="weight")), rtol=1e-12)
    found = oocgraph.eigenvector_centrality(graph, tol=1e-8, max_iter=2000)
    expected = in_order(nx.eigenvector_centrality(peer, tol=1e-8, max_iter=2000, weight="weight"))
    np.testing.assert_allclose(found.centrality, expected, rtol=1e-12, atol=1e-300)


def test_no_bit_depends_on_threads_budget_or_runtime(tmp_path, monkeypatch):
    monkeypatch.setattr(edge_stream, "PIECE_BYTES", 1 << 10)
    graph = oocgraph.build_csr(hubs(5, 3000, 20000), tmp_path / "g.zarr", directed=True)
    compressed = open_graph(rewrite(tmp_path / "g.zarr", tmp_path / "z.zarr", codec="zstd"))
    first = oocgraph.hits(graph, resources=Resources(threads=1))
    with pytest.raises(BudgetError, match="set memory_budget to at least") as refused:
        oocgraph.hits(graph, memory_budget="20M")
    least = int(str(refused.value).rpartition("at least ")[2].rstrip("M")) + 32  # this process may have grown by the next call
    with oocgraph.open_runtime(graph) as runtime:
        others = [
            oocgraph.hits(graph, resources=Resources(threads=3)), oocgraph.hits(graph, memory_budget=f"{least}M"),
            oocgraph.hits(graph, runtime=runtime), oocgraph.hits(graph, runtime=runtime),
        ]  # fmt: skip
    for other in others:
        np.testing.assert_array_equal(other.hub, first.hub)
        np.testing.assert_array_equal(other.authority, first.authority)
    np.testing.assert_allclose(oocgraph.hits(compressed).hub, first.hub, rtol=1e-12)  # cut where its chunks end
    assert others[-1].bytes_requested == 0
    assert first.bytes_requested >= graph.edge_bytes


def test_a_result_is_read_under_the_users_ids(tmp_path):
    graph = string_store(tmp_path / "s.zarr", ["b", "b", "c"], ["a", "c", "a"], others=["alone"])
    result = oocgraph.katz_centrality(graph, normalized=False)
    assert result.vertices.tolist() == ["a", "alone", "b", "c"]
    assert result.of("alone") == 1
    np.testing.assert_allclose(result.of(["a", "c"]), 1.25, rtol=1e-5)
    assert [vertex for vertex, _ in result.top(2)] == ["a", "b"]
    assert result.summary()["num_iterations"] == result.num_iterations
    assert set(result.to_pandas()) == {"vertex", "centrality"}
    assert "KatzResult of 4 vertices: 10 iterations" in repr(result)
    assert {"centrality", "num_iterations"} <= set(dir(result))
    with pytest.raises(AttributeError, match="has no attribute 'hub'; it has vertices, centrality, num_iterations"):
        _ = result.hub


@pytest.mark.parametrize("scale", [1e150, 1e160, 1e300])
def test_an_eigenvector_of_weights_whose_squares_overflow(scale):
    """All values were zero, and said to have converged."""
    graph = nx.Graph()
    graph.add_weighted_edges_from((u, v, w * scale) for u, v, w in [(0, 1, 1.0), (1, 2, 2.0), (2, 0, 1.0), (0, 3, 3.0)])
    graph.add_node(4)
    source, target, weight = zip(*graph.edges(data="weight"), strict=True)
    store = oocgraph.build_csr(pa.table({"source": source, "target": target, "weight": weight}), weight="weight", num_vertices=5)
    found, wanted = oocgraph.eigenvector_centrality(store), nx.eigenvector_centrality(graph, weight="weight")
    assert dict(found) == pytest.approx(wanted, rel=1e-4)


def test_weights_whose_sum_no_number_holds_are_refused():
    store = oocgraph.build_csr(pa.table({"source": [1, 1, 1], "target": [2, 3, 4], "weight": [1.7e308] * 3}), weight="weight")
    with pytest.raises(ConvergenceError, match="the weights at a vertex sum to more than float64 can hold; divide all by one number"):
        oocgraph.eigenvector_centrality(store)


def test_lists_of_unequal_pieces_share_the_budget_that_is_named(tmp_path):
    """The list of a hub is one piece; half of the room is not to be kept for the lists of the others, which need less."""
    num_edges = 3_000_000
    ends = np.arange(1, num_edges + 1), np.zeros(num_edges, np.int64)
    store = oocgraph.build_csr(ends, tmp_path / "g", directed=True)
    with pytest.raises(BudgetError) as refused:
        oocgraph.hits(store, memory_budget="1M", max_iter=2, tol=0)
    named = int(str(refused.value).rpartition("at least ")[2].partition("M")[0])
    assert oocgraph.hits(store, memory_budget=f"{named + 1}M", max_iter=2, tol=0).authority.max() > 0.9


def test_a_graph_without_edges(tmp_path):
    graph = oocgraph.build_csr(([], []), tmp_path / "g.zarr", num_vertices=3)
    assert oocgraph.hits(graph).hub.tolist() == [0, 0, 0]
    assert oocgraph.katz_centrality(graph, normalized=False).centrality.tolist() == [1, 1, 1]
    np.testing.assert_allclose(oocgraph.eigenvector_centrality(graph).centrality, np.full(3, 3**-0.5))


def test_what_makes_no_sense_is_refused(tmp_path):
    graph = oocgraph.build_csr(hubs(6, 50, 300), tmp_path / "g.zarr")
    with pytest.raises(ConvergenceError, match=r"Katz centrality has not converged: .* alpha must be below"):
        oocgraph.katz_centrality(graph, alpha=0.9, max_iter=1000)
    with pytest.raises(ConvergenceError, match="HITS has not converged: after 1 iterations"):
        oocgraph.hits(graph, max_iter=1)
    assert oocgraph.hits(graph, max_iter=1, tol=0).num_iterations == 1
    for options, said in (
        ({"alpha": 0}, "alpha is 0; it must be a number, above 0"), ({"alpha": "x"}, "alpha is 'x'"), ({"beta": np.inf}, "beta is inf"),
        ({"tol": -1}, "tol is -1"), ({"max_iter": 0}, "max_iter is 0"), ({"weight": "w"}, "'w' is no numeric edge column"),
    ):  # fmt: skip
        with pytest.raises(ArgumentError, match=said):
            oocgraph.katz_centrality(graph, **options)
    import pandas as pd

    table = pd.DataFrame({"source": [1, 2], "target": [2, 3], "weight": [1.0, -2.0]})
    negative = oocgraph.build_csr(table, tmp_path / "n.zarr", weight="weight")
    with pytest.raises(ArgumentError, match="weight has negative or infinite weights, or NaN"):
        oocgraph.hits(negative)
    for value in (np.nan, np.inf):  # one that others follow
        odd = rewrite(negative.url, tmp_path / "o.zarr", arrays={"out/weight": np.array([value, 1, 1, 1])})
        for function in (oocgraph.hits, oocgraph.katz_centrality, oocgraph.eigenvector_centrality):
            with pytest.raises(ArgumentError, match="weight has negative or infinite weights, or NaN"):
                function(odd)
    assert oocgraph.hits(negative, weight=False).hub.size == 3


def test_results_can_be_copied_and_name_their_columns(tmp_path):
    graph = string_store(tmp_path / "g.zarr", ["a", "b", "c"], ["b", "c", "d"], others=["e"])
    for result in (
        oocgraph.katz_centrality(graph), oocgraph.louvain(graph), oocgraph.minimum_spanning_forest(graph),
        oocgraph.multi_source_bfs(graph, ["a"], distances=True), oocgraph.personalized_pagerank(graph, ["a", "c"]),
    ):  # fmt: skip
        for other in (pickle.loads(pickle.dumps(result)), copy.copy(result), copy.deepcopy(result)):
            assert repr(other) == repr(result)
            for column in result.columns:
                np.testing.assert_array_equal(getattr(other, column), getattr(result, column))
        for call in (lambda result=result: result.of("a", "x"), lambda result=result: result.top(1, "x")):
            with pytest.raises(ArgumentError, match=f"{type(result).__name__} has no column 'x'; it has {next(iter(result.columns))}"):
                call()
    with pytest.raises(ArgumentError, match="parent has ids, of which none is the largest; name another column: weight"):
        oocgraph.minimum_spanning_forest(graph).top()
    assert oocgraph.minimum_spanning_forest(graph).top(1, "weight") == [("a", 1.0)]
    with pytest.raises(ArgumentError, match="count is -1"):
        oocgraph.louvain(graph).top(-1)
    oocgraph.betweenness_centrality(graph, 1).plot()  # that of its source is NaN


@pytest.mark.parametrize("weight", [1e-300, 1e-307, 1e307])
def test_hits_do_not_depend_on_the_scale_of_weights(weight):
    edges = pa.table({"source": [0, 1, 2], "target": [1, 2, 3], "w": np.full(3, weight)})
    found = oocgraph.hits(oocgraph.build_csr(edges, weight="w", directed=True))
    np.testing.assert_allclose(found.hub, [1 / 3, 1 / 3, 1 / 3, 0])


@pytest.mark.parametrize(("weight", "words"), [(5e-324, "too little for"), (1e-310, "too little for"), (1.7e308, "more than")])
def test_weights_that_no_sum_can_hold_are_refused(weight, words):
    """Not said to be nothing, as those of which all are 0."""
    edges = pa.table({"source": [0, 1, 2, 0], "target": [1, 2, 3, 2], "w": np.full(4, weight)})
    with pytest.raises(ConvergenceError, match=f"{words}.* float64.*; divide all by one number"):
        oocgraph.hits(oocgraph.build_csr(edges, weight="w"))
    nothing = oocgraph.build_csr(edges.set_column(2, "w", [np.zeros(4)]), weight="w")
    assert not oocgraph.hits(nothing).hub.any()
