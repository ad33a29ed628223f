"""How similar pairs of vertices are. Oracle: NetworkX."""

from __future__ import annotations

import networkx as nx
import numpy as np
import pytest

import oocgraph
from oocgraph import build_csr
from oocgraph.config import setting
from oocgraph.errors import ArgumentError, BudgetError, VertexNotFoundError
from oocgraph.store import similarity
from tests.store.asked_graphs import directed, undirected
from tests.stores import rewrite

ORACLE = {
    "jaccard": nx.jaccard_coefficient,
    "adamic-adar": nx.adamic_adar_index,
    "resource-allocation": nx.resource_allocation_index,
    "common": lambda graph, pairs: [(u, v, len(nx.common_neighbors(graph, u, v))) for u, v in pairs],
}


def expected(graph, pairs, kind):
    """Return what NetworkX says."""
    return [score for _, _, score in ORACLE[kind](graph, pairs)]


@pytest.mark.parametrize("order", ["degree", "original"])
@pytest.mark.parametrize("kind", similarity.KINDS)
@pytest.mark.parametrize("batch_bytes", [1, 500, 1 << 20])
def test_scores_are_those_of_networkx(tmp_path, monkeypatch, kind, order, batch_bytes):
    """With loops, isolated vertices, hubs, pairs that occur twice; however few rows fit together."""
    monkeypatch.setattr(similarity, "BATCH_BYTES", batch_bytes)
    rng = np.random.default_rng(5)
    edges = np.concatenate([rng.integers(0, 60, (300, 2)), np.stack([np.zeros(80, int), np.arange(80)], axis=1)])
    graph = nx.Graph(edges.tolist())
    graph.add_nodes_from(range(100))
    with setting("vertex-order", order):
        store = build_csr(edges, tmp_path / "g", num_vertices=100, keep_self_loops=True)
    pairs = [tuple(pair) for pair in rng.integers(0, 100, (400, 2)).tolist() if pair[0] != pair[1]]
    found = store.similarity(*zip(*pairs, strict=True), kind=kind)
    assert found.dtype == (np.int64 if kind == "common" else np.float64)
    np.testing.assert_allclose(found, expected(graph, pairs, kind), rtol=1e-12)
    assert store.similarity(*pairs[0], kind=kind) == pytest.approx(expected(graph, pairs[:1], kind)[0])
    assert isinstance(store.similarity(*pairs[0], kind=kind), int if kind == "common" else float)


@pytest.mark.parametrize("kind", ["jaccard", "common"])
def test_parallel_edges_count_once(tmp_path, kind):
    """Also where the store does not say whether it has any."""
    edges = np.random.default_rng(2).integers(0, 20, (500, 2))
    store = build_csr(edges, tmp_path / "g", duplicates="keep", keep_self_loops=True)
    assert store.attributes.parallel_edges
    pairs = [(u, v) for u in range(20) for v in range(u)]
    assert store.similarity(*zip(*pairs, strict=True), kind=kind).tolist() == expected(nx.Graph(edges.tolist()), pairs, kind)
    unknown = rewrite(tmp_path / "g", tmp_path / "unknown", parallel_edges=None)
    assert unknown.similarity(*zip(*pairs, strict=True), kind=kind).tolist() == expected(nx.Graph(edges.tolist()), pairs, kind)


@pytest.mark.parametrize(("kind", "score"), [("adamic-adar", 1 / np.log(6)), ("resource-allocation", 1 / 6)])
def test_degrees_count_parallel_edges_and_loops(tmp_path, kind, score):
    """Vertex 1 is common to 0 and 2: two edges to each, and a loop."""
    store = build_csr(([0, 0, 1, 1, 1], [1, 1, 2, 2, 1]), tmp_path / "g", duplicates="keep", keep_self_loops=True)
    assert store.degree(1) == 6
    assert store.similarity(0, 2, kind=kind) == pytest.approx(score)


def test_pairs_of_a_vertex_and_itself(tmp_path):
    store = build_csr(([0, 0, 1, 4], [1, 2, 1, 5]), tmp_path / "g", keep_self_loops=True)
    assert store.similarity([0, 1, 4], [0, 1, 4]).tolist() == [1.0, 0.5, 1.0]
    assert store.similarity(4, 4, kind="adamic-adar") == np.inf
    assert store.similarity([], []).size == 0


def test_strings_in_memory_and_appended(tmp_path):
    graph = nx.les_miserables_graph()
    pairs = [(u, v) for u in list(graph)[:9] for v in list(graph)[30:50]]
    memory = build_csr(graph)
    disk = memory.save(tmp_path / "g") or oocgraph.open_graph(tmp_path / "g")
    for one in (memory, disk):
        np.testing.assert_allclose(one.similarity(*zip(*pairs, strict=True)), expected(graph, pairs, "jaccard"))


def test_pairs_of_a_hub_read_it_once(tmp_path, monkeypatch):
    """Of 300 pairs with one of two hubs, each row is read once where all fit."""
    rng = np.random.default_rng(1)
    hubs = np.concatenate([np.stack([np.full(20_000, hub), np.arange(2, 20_002)], axis=1) for hub in (0, 1)])
    store = build_csr(hubs, tmp_path / "g")
    read, original = [], similarity.RangeReader.read

    def noted(self, of, begin, end, **more):
        read.append(int((end - begin).sum()))
        return original(self, of, begin, end, **more)

    monkeypatch.setattr(similarity.RangeReader, "read", noted)
    pairs = rng.integers(0, 2, 300), rng.integers(2, 20_002, 300)
    assert store.similarity(*pairs, kind="common").tolist() == [0] * 300
    assert sum(read) <= 2 * 20_000 + 3 * 2 * 300
    assert store.similarity(0, 1) == 1.0


def test_bad_questions_are_refused(tmp_path):
    graph = undirected(tmp_path / "g.zarr").graph
    with pytest.raises(VertexNotFoundError, match="vertex 900 is not in"):
        graph.similarity(0, 900)
    with pytest.raises(ArgumentError, match="3 sources and 2 targets; give"):
        graph.similarity([0, 1, 2], [1, 2])
    with pytest.raises(ArgumentError, match=r"kind is 'cosine'; it must be 'jaccard', .* or 'resource-allocation'"):
        graph.similarity(0, 1, kind="cosine")
    with pytest.raises(BudgetError, match="at least"):
        graph.similarity([0] * 10_000, [1] * 10_000, memory_budget="1M")
    with pytest.raises(ArgumentError, match=r"is directed, .* directed=False"):
        directed(tmp_path / "d.zarr").graph.similarity(0, 1)
