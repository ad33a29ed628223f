"""Scores of pairs of nodes, and communities, as NetworkX asks for them."""

from __future__ import annotations

import networkx as nx
import pytest

from oocgraph import build_csr
from oocgraph.networkx_backend import BackendInterface, link_prediction

SCORES = [nx.jaccard_coefficient, nx.adamic_adar_index, nx.resource_allocation_index]


@pytest.mark.parametrize("score", SCORES)
def test_many_pairs_are_scored_piece_by_piece(tmp_path, monkeypatch, score):
    """The same of a graph of NetworkX and of a store, in the order of the pairs, from an iterator."""
    monkeypatch.setattr(link_prediction, "PIECE_PAIRS", 7)
    graph = nx.les_miserables_graph()
    nodes = sorted(graph)
    pairs = [(u, v) for u in nodes[:9] for v in nodes[5:] if u != v]
    expected = list(score(graph, pairs))
    for given in (graph.copy(), build_csr(graph, tmp_path / "g")):
        found = list(score(given, iter(pairs), backend="oocgraph"))
        assert [one[:2] for one in found] == pairs
        assert [one[2] for one in found] == pytest.approx([one[2] for one in expected])
    assert list(score(graph.copy(), [], backend="oocgraph")) == []


def test_what_is_refused(tmp_path):
    """All pairs at once, nodes that are not there, and what NetworkX divides by zero for."""
    store = build_csr(nx.path_graph(4), tmp_path / "g")
    assert "give ebunch" in BackendInterface.can_run("jaccard_coefficient", (store,), {})
    with pytest.raises(NotImplementedError):
        nx.jaccard_coefficient(store)
    with pytest.raises(nx.NodeNotFound, match="vertex 9 is not in"):
        nx.adamic_adar_index(store, [(0, 9)])
    with pytest.raises(nx.NodeNotFound, match="Node 1 not in G"):
        nx.adamic_adar_index(store, [("1", 2)])
    with pytest.raises(nx.NodeNotFound, match="Node 9 not in G"):
        nx.adamic_adar_index(nx.path_graph(4), [(0, 9)], backend="oocgraph")
    with pytest.raises(ZeroDivisionError):
        list(nx.adamic_adar_index(build_csr(([1], [2])), iter([(1, 1)])))


def test_communities_by_weights_seeds_and_resolutions(tmp_path):
    """Two triangles with a heavy edge between them, and a node alone."""
    graph = nx.Graph([(0, 1), (1, 2), (0, 2), (3, 4), (4, 5), (3, 5), (2, 3)])
    nx.set_edge_attributes(graph, 1, "weight")
    graph[2][3]["weight"] = 99
    graph.add_node(6)
    store = build_csr(graph, tmp_path / "g", weight="weight")
    for new in (graph.copy, lambda: store):
        found = [
            {frozenset(one) for one in nx.community.louvain_communities(new(), backend="oocgraph", seed=3, **options)}
            for options in ({"weight": None}, {}, {"weight": None, "resolution": 0})
        ]
        triangles = {frozenset({0, 1, 2}), frozenset({3, 4, 5}), frozenset({6})}
        assert found[0] == triangles
        assert frozenset({2, 3}) <= next(one for one in found[1] if 2 in one)
        assert found[2] == {frozenset(range(6)), frozenset({6})}
    karate = nx.karate_club_graph()
    first, second = (nx.community.louvain_communities(karate.copy(), backend="oocgraph", seed=5) for _ in range(2))
    assert first == second
    for options in ({"max_level": 2}, {"seed": 5, "max_level": 1}):
        assert "max_level" in BackendInterface.can_run("louvain_communities", (karate,), options)
    assert "directed" in BackendInterface.can_run("louvain_communities", (nx.DiGraph(karate),), {})
