"""Spanning forests weigh what NetworkX's and SciPy's weigh, and are the one forest that the order of the edges has."""

from __future__ import annotations

import networkx as nx
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from scipy.sparse.csgraph import minimum_spanning_tree

import oocgraph
from oocgraph import Resources, config
from oocgraph.errors import ArgumentError, BudgetError, CorruptStoreError
from oocgraph.sparse import edge_stream
from oocgraph.store.graph import open_graph
from tests.graphs import hubs
from tests.stores import rewrite, string_store

NUM_IDS = 130


def weighted(path, seed, *, num_edges=250, levels=None, **options):
    """Return a store with isolated vertices and several components, and its edges; of `levels` weights, or all different ones."""
    rng = np.random.default_rng(seed)
    source, target = hubs(seed, 120, num_edges)
    pairs = np.unique(np.sort(np.stack([source, target], 1), 1)[source != target], axis=0)
    weight = rng.permutation(len(pairs)) - 20.0 if levels is None else rng.integers(0, levels, len(pairs)).astype(float)
    table = pd.DataFrame({"source": pairs[:, 0], "target": pairs[:, 1], "weight": weight})
    return oocgraph.build_csr(table, path, weight="weight", num_vertices=NUM_IDS, **options), table


def peer(table, num_ids=NUM_IDS):
    graph = nx.Graph()
    graph.add_nodes_from(range(num_ids))
    graph.add_weighted_edges_from(table.itertuples(index=False))
    return graph


def pairs_of(edges):
    return {(min(u, v), max(u, v), w) for u, v, w in zip(edges["source"], edges["target"], edges["weight"], strict=True)}


def check_rooted(result, graph):
    """Parents are a forest over edges of the graph, with as many trees as the graph has components."""
    edges = result.edges()
    forest = nx.Graph()
    forest.add_nodes_from(graph)
    forest.add_weighted_edges_from(zip(edges["source"].tolist(), edges["target"].tolist(), edges["weight"].tolist(), strict=True))
    assert forest.number_of_edges() == len(edges["source"]) == result.num_edges
    assert all(graph.has_edge(u, v) and graph[u][v].get("weight", 1) == w for u, v, w in forest.edges(data="weight"))
    assert nx.is_forest(forest)
    assert nx.number_connected_components(forest) == nx.number_connected_components(graph) == result.num_trees
    assert result.total_weight == sum(edges["weight"])
    assert int((result.parent == result.vertices).sum()) == result.num_trees
    assert (result.weight[result.parent == result.vertices] == 0).all()


@pytest.mark.parametrize("piece", [None, 16])
@pytest.mark.parametrize("levels", [None, 1, 3])
@pytest.mark.parametrize("seed", range(4))
def test_the_weight_is_networkxs(tmp_path, monkeypatch, seed, levels, piece):
    """With different weights, which may be negative, the edges are the same; with equal ones the total, weights of 0 among them."""
    if piece:
        monkeypatch.setattr(edge_stream, "PIECE_BYTES", piece)
    store, table = weighted(tmp_path / "g.zarr", seed, levels=levels, num_edges=60 if seed == 0 else 250)
    graph = peer(table)
    found = oocgraph.minimum_spanning_forest(store)
    check_rooted(found, graph)
    expected = list(nx.minimum_spanning_edges(graph, data=True))
    assert found.total_weight == sum(data["weight"] for _, _, data in expected)
    if levels is None:
        assert pairs_of(found.edges()) == {(min(u, v), max(u, v), data["weight"]) for u, v, data in expected}
    largest = oocgraph.minimum_spanning_forest(store, maximum=True)
    check_rooted(largest, graph)
    assert not np.signbit(largest.weight[largest.parent == largest.vertices]).any()
    expected = list(nx.maximum_spanning_edges(graph, data=True))
    assert largest.total_weight == sum(data["weight"] for _, _, data in expected)
    if levels is None:
        assert pairs_of(largest.edges()) == {(min(u, v), max(u, v), data["weight"]) for u, v, data in expected}


def test_the_weight_is_scipys(tmp_path):
    """SciPy takes 0 for no edge, so weights are 1 or more."""
    store, table = weighted(tmp_path / "g.zarr", 9, levels=6)
    matrix = sp.coo_array((table["weight"] + 1, (table["source"], table["target"])), shape=(NUM_IDS, NUM_IDS))
    found = oocgraph.minimum_spanning_forest(store)
    assert found.total_weight + found.num_edges == minimum_spanning_tree(matrix).sum()


@pytest.mark.parametrize("order", ["degree", "original", "locality"])
def test_without_weights_it_is_a_forest_in_any_order(tmp_path, order):
    with config.setting("vertex-order", order):
        store, table = weighted(tmp_path / "g.zarr", 5, num_edges=110)
    found = oocgraph.minimum_spanning_forest(store, weight=False)
    check_rooted(found, peer(table.assign(weight=1)))
    assert found.total_weight == found.num_edges
    check_rooted(oocgraph.minimum_spanning_forest(store), peer(table))


def test_long_chains_and_stars(tmp_path):
    """A path whose weights fall hooks all trees into one chain; a star's leaves all choose the hub."""
    for name, (source, target) in {
        "path": (np.arange(3000), np.arange(1, 3001)), "star": (np.zeros(3000, int), np.arange(1, 3001)),
    }.items():  # fmt: skip
        for weight in (np.arange(3000), np.arange(3000)[::-1]):
            table = pd.DataFrame({"source": source, "target": target, "weight": weight.astype(np.int32)})
            store = oocgraph.build_csr(table, tmp_path / name, weight="weight", overwrite=True)
            found = oocgraph.minimum_spanning_forest(store)
            assert (found.num_trees, found.num_edges, found.num_rounds) == (1, 3000, 1)
            assert found.total_weight == weight.sum()


def test_loops_and_parallel_edges_are_harmless(tmp_path):
    table = pd.DataFrame({"source": [1, 1, 1, 2, 3, 3], "target": [2, 2, 1, 2, 2, 4], "weight": [5, 2, 0, 1, 7, 7]})
    store = oocgraph.build_csr(table, tmp_path / "g.zarr", weight="weight", duplicates="keep", keep_self_loops=True)
    found = oocgraph.minimum_spanning_forest(store)
    assert pairs_of(found.edges()) == {(1, 2, 2.0), (2, 3, 7.0), (3, 4, 7.0)}


def test_no_bit_depends_on_threads_budget_or_runtime(tmp_path, monkeypatch):
    monkeypatch.setattr(edge_stream, "PIECE_BYTES", 1 << 10)
    source, target = hubs(5, 3000, 20000)
    weight = np.random.default_rng(5).integers(0, 9, source.size)
    graph = oocgraph.build_csr(pd.DataFrame({"source": source, "target": target, "weight": weight}), tmp_path / "g.zarr", weight="weight")
    compressed = open_graph(rewrite(tmp_path / "g.zarr", tmp_path / "z.zarr", codec="zstd"))
    first = oocgraph.minimum_spanning_forest(graph, resources=Resources(threads=1))
    with pytest.raises(BudgetError, match="set memory_budget to at least") as refused:
        oocgraph.minimum_spanning_forest(graph, memory_budget="20M")
    least = int(str(refused.value).rpartition("at least ")[2].rstrip("M")) + 32  # this process may have grown by the next call
    with oocgraph.open_runtime(graph) as runtime:
        others = [
            oocgraph.minimum_spanning_forest(graph, resources=Resources(threads=3)), oocgraph.minimum_spanning_forest(compressed),
            oocgraph.minimum_spanning_forest(graph, memory_budget=f"{least}M"), oocgraph.minimum_spanning_forest(graph, runtime=runtime),
        ]  # fmt: skip
    for other in others:
        np.testing.assert_array_equal(other.parent, first.parent)
        np.testing.assert_array_equal(other.weight, first.weight)
        assert other.details == first.details


def test_pieces_without_work_are_not_read(tmp_path, monkeypatch):
    """A clique, which is one tree at once and is looked at once more, and a path whose weights are mixed, which takes more rounds."""
    monkeypatch.setattr(edge_stream, "PIECE_BYTES", 64)
    monkeypatch.setattr(edge_stream.EdgeStream, "_keep", lambda self, budget: 0)
    lengths = np.random.default_rng(1).permutation(900).tolist()
    edges = [(u, v, u + 40 * v) for u in range(40) for v in range(u + 1, 40)] + [(100 + i, 101 + i, w) for i, w in enumerate(lengths)]
    table = pd.DataFrame(edges, columns=["source", "target", "weight"])
    graph = oocgraph.build_csr(table, tmp_path / "g.zarr", weight="weight")
    found = oocgraph.minimum_spanning_forest(graph)
    assert (found.num_trees, found.num_rounds) == (2, 7)
    once = oocgraph.katz_centrality(graph, alpha=1e-9, max_iter=1, tol=0).bytes_requested
    assert 2 * once < found.bytes_requested < 4 * once


def test_a_result_is_read_under_the_users_ids(tmp_path):
    graph = string_store(tmp_path / "s.zarr", ["b", "b", "c"], ["a", "c", "a"], others=["alone"])
    result = oocgraph.minimum_spanning_forest(graph)
    assert (result.num_trees, result.num_edges) == (2, 2)
    assert result.of("alone") == "alone"
    assert result.of("alone", "weight") == 0
    assert set(result.to_pandas()) == {"vertex", "parent", "weight"}
    edges = result.edges()
    assert {frozenset(pair) for pair in zip(edges["source"], edges["target"], strict=True)} < {
        frozenset("ba"), frozenset("bc"), frozenset("ca")
    }  # fmt: skip
    again = oocgraph.build_csr(pd.DataFrame(edges), tmp_path / "again.zarr")
    assert again.num_edges == 2
    assert "SpanningForestResult of 4 vertices: 2 trees" in repr(result)
    result.plot()


def test_a_graph_without_edges(tmp_path):
    result = oocgraph.minimum_spanning_forest(oocgraph.build_csr(([], []), tmp_path / "g.zarr", num_vertices=3))
    assert (result.parent.tolist(), result.num_trees, result.total_weight) == ([0, 1, 2], 3, 0)
    assert result.edges()["source"].size == 0
    loop = oocgraph.build_csr(([1], [1]), tmp_path / "loop.zarr", keep_self_loops=True)
    assert oocgraph.minimum_spanning_forest(loop).num_trees == 1


def test_what_makes_no_sense_is_refused(tmp_path):
    directed = oocgraph.build_csr(hubs(6, 50, 300), tmp_path / "d.zarr", directed=True)
    with pytest.raises(ArgumentError, match=r"is directed, and spanning forests .* build it with directed=False"):
        oocgraph.minimum_spanning_forest(directed)
    for bad in (np.nan, np.inf, -np.inf):
        table = pd.DataFrame({"source": [1, 2], "target": [2, 3], "weight": [1.0, 2.0]})
        oocgraph.build_csr(table, tmp_path / "w.zarr", weight="weight", overwrite=True)
        store = rewrite(tmp_path / "w.zarr", tmp_path / "n.zarr", arrays={"out/weight": np.array([1, bad, 1, bad])})
        with pytest.raises(ArgumentError, match="weight has NaN or infinite weights"):
            oocgraph.minimum_spanning_forest(store)
    assert oocgraph.minimum_spanning_forest(store, weight=False).num_edges == 2
    with pytest.raises(ArgumentError, match="'w' is no numeric edge column"):
        oocgraph.minimum_spanning_forest(store, weight="w")


def test_weights_that_differ_by_direction_are_no_endless_loop(tmp_path):
    """A damaged store, whose three trees choose each other along a circle."""
    table = pd.DataFrame({"source": [0, 1, 2], "target": [1, 2, 0], "weight": [1.0, 1.0, 1.0]})
    store = oocgraph.build_csr(table, tmp_path / "g.zarr", weight="weight")
    assert store.read("out/indices").tolist() == [1, 2, 0, 2, 0, 1]
    damaged = rewrite(tmp_path / "g.zarr", tmp_path / "d.zarr", arrays={"out/weight": np.array([1.0, 2, 2, 1, 1, 2])})
    with pytest.raises(CorruptStoreError, match="another weight in one direction"):
        oocgraph.minimum_spanning_forest(damaged)
