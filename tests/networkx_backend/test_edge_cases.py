"""Arguments and weights at the edges of what NetworkX takes: with the backend before it, answers and errors are NetworkX's."""

from __future__ import annotations

import math
from fractions import Fraction
from functools import partial

import networkx as nx
import numpy as np
import pytest

import oocgraph
from oocgraph.networkx_backend import tiny

LARGE = 1764 * 10**15 + 1
"""float64 has neither this nor the next ten numbers, and the sum of four such has more than 60 bits."""


@pytest.fixture(autouse=True)
def no_warnings_of_conversions():
    with nx.config(warnings_to_ignore={"cache"}), nx.config.backends.oocgraph(min_edges=0):
        yield


def outcome(call, *, priority=()):
    """Return what a call returns, as a list if that is an iterator, or the class of what it raises."""
    try:
        with nx.config.backend_priority(algos=list(priority)):
            found = call()
            return list(found) if hasattr(found, "__next__") else found
    except Exception as error:
        return type(error)


def weighted(*edges, kind=nx.Graph):
    graph = kind()
    graph.add_weighted_edges_from(edges)
    return graph


PATH = weighted((0, 1, 2), (1, 2, 2), (2, 3, 2), (3, 4, 2))
REALS = weighted((0, 1, 0.5), (1, 2, 0.5), (2, 3, 0.1), (3, 4, 0.5))
NEGATIVE = weighted((0, 1, 4), (1, 2, -1), (2, 0, 3), kind=nx.DiGraph)
DIAMOND = (("s", "a", LARGE + 10), ("a", "t", 0), ("s", "b", LARGE), ("b", "t", 0))
TINY_WEIGHTS = weighted((0, 1, 1.0), *((u, (u + 1) % 6, 5e-324) for u in range(1, 6)))
ODD_NUMBERS = (-1, -0.5, 0, True, 1.5, 2, Fraction(5, 2), Fraction(1, 10), np.float32(2.5), 10**400, 1e300, math.inf, -math.inf, math.nan)

CALLS = {
    "eccentricity of an iterator": lambda: nx.eccentricity(NEGATIVE, v=iter([0, 2]), weight="weight"),
    "no isolate that is no node": lambda: nx.is_isolate(PATH, 7),
    "no isolate that is some nodes": lambda: nx.is_isolate(PATH, [0, 7]),
    "pagerank by negative weights": lambda: nx.pagerank(weighted((0, 1, -1), (1, 2, 3))),
    "hits by negative weights": lambda: list(nx.hits(weighted((0, 1, -1), (1, 2, 3), (2, 0, 5)))[0]),  # its signs differ
    "hits of one node": lambda: nx.hits(nx.empty_graph(1)),
    "eigenvector centrality by negative weights": lambda: nx.eigenvector_centrality(
        weighted((0, 1, -1), (1, 2, 3), (2, 0, 5)), 1000, weight="weight"
    ),
    "katz by negative weights": lambda: nx.katz_centrality(NEGATIVE, weight="weight"),
    "katz with a beta that is a bool": lambda: nx.katz_centrality(PATH, beta=True),
    "pagerank, negative personalization": lambda: nx.pagerank(PATH, personalization={0: -1, 1: -1}),
    "pagerank, weights whose inverse is infinite": lambda: nx.pagerank(TINY_WEIGHTS),
    "closeness, a number in place of a bool": lambda: nx.closeness_centrality(PATH, wf_improved=0),
    "betweenness, a bool in place of a number": lambda: nx.betweenness_centrality(PATH, k=True, seed=1),
    "betweenness of no nodes": lambda: nx.betweenness_centrality(nx.Graph(), k=2),
    "spanning edges by Prim": lambda: nx.minimum_spanning_edges(weighted((0, 1, 9), (1, 2, 3), (2, 3, 1), (3, 0, 5)), algorithm="prim"),
    "triangles of what is not hashable": lambda: nx.triangles(PATH, [[1]]),
    "clustering of nodes named twice": lambda: nx.clustering(PATH, [1, 1, 9]),
    "distances that are infinite": lambda: nx.dijkstra_path_length(weighted((0, 1, 1e308), (1, 2, 1e308)), 0, 2),
    **{
        f"{function.__name__} from what is not hashable": lambda function=function: function(PATH, [0])
        for function in (nx.descendants, nx.ancestors, nx.bfs_edges, nx.single_source_dijkstra, nx.node_connected_component)
    },
    "dijkstra_path_length from what is not hashable": lambda: nx.dijkstra_path_length(PATH, [0], 1),
}


@pytest.mark.parametrize("call", CALLS)
def test_what_networkx_says_is_said_with_the_backend(call):
    """Whether the backend answers or leaves the call to NetworkX."""
    expected = outcome(CALLS[call])
    found = outcome(CALLS[call], priority=["oocgraph"])
    assert found == (pytest.approx(expected, abs=1e-5, nan_ok=True) if isinstance(expected, dict) else expected)


BY_CUTOFF = {
    "dijkstra": lambda graph, cutoff: dict(nx.single_source_dijkstra_path_length(graph, 0, cutoff=cutoff)),
    "dijkstra, two": lambda graph, cutoff: tuple(map(dict, nx.single_source_dijkstra(graph, 0, cutoff=cutoff))),
    "dijkstra, no weight": lambda graph, cutoff: dict(nx.single_source_dijkstra_path_length(graph, 0, cutoff=cutoff, weight=None)),
    "dijkstra, target": lambda graph, cutoff: nx.multi_source_dijkstra(graph, [0], 2, cutoff=cutoff),
    "by edges": lambda graph, cutoff: dict(nx.single_source_shortest_path(graph, 0, cutoff=cutoff)),
    "edges": lambda graph, cutoff: list(nx.bfs_edges(graph, 0, depth_limit=cutoff)),
    "at a distance": lambda graph, cutoff: set(nx.descendants_at_distance(graph, 0, cutoff)),
    "ego": lambda graph, cutoff: set(nx.ego_graph(graph, 0, radius=cutoff)),
}


@pytest.fixture(params=["tiny", "large", "store"])
def same_as(request, monkeypatch):
    """Return what gives the backend's form of a graph: one that is searched as a tiny graph, as others, or a store."""
    if request.param == "large":
        monkeypatch.setattr(tiny, "TINY", -1)
    if request.param != "store":
        return nx.Graph.copy
    return lambda graph: oocgraph.build_csr(graph, weight="weight")


@pytest.mark.parametrize("graph", [PATH, REALS], ids=["integers", "reals"])
def test_limits_are_any_numbers(same_as, graph):
    """Those below 0 find the source; NaN is none by a weight, and 0 by edges."""
    same = same_as(graph)
    for name, call in BY_CUTOFF.items():
        for number in ODD_NUMBERS:
            expected = outcome(partial(call, graph, number))
            assert outcome(partial(call, same, number), priority=["oocgraph"]) == expected, (name, number)


@pytest.mark.parametrize(
    "factor", [1, np.int64(1), 10**6, 10**400, Fraction(1)], ids=["int", "np.int64", "80 bits", "1400 bits", "Fraction"]
)
@pytest.mark.parametrize("form", [nx.DiGraph, nx.Graph])
def test_sums_of_large_integers_are_exact(form, factor):
    """Otherwise the graph is left to NetworkX, or a longer path would be found."""
    graph = weighted(*((u, v, weight * factor) for u, v, weight in DIAMOND), kind=form)
    assert outcome(lambda: nx.dijkstra_path(graph, "s", "t"), priority=["oocgraph"]) == ["s", "b", "t"]
    assert outcome(lambda: nx.dijkstra_path_length(graph, "s", "t"), priority=["oocgraph"]) == LARGE * factor
    with pytest.raises(NotImplementedError):
        nx.dijkstra_path(graph, "s", "t", backend="oocgraph")
    measured = [outcome(lambda: nx.periphery(nx.Graph(graph), weight="weight"), priority=one) for one in ((), ["oocgraph"])]
    assert measured[0] == measured[1]


@pytest.mark.parametrize("number", [int, np.int64, np.int32, bool])
def test_integers_of_any_kind_are_integers(number):
    """Up to 60 bits in all."""
    most = 1 if number is bool else 2**30 + 1 if number is np.int32 else 2**53 + 1
    graph = weighted(("s", "a", number(most - 1)), ("a", "t", number(0)), ("s", "t", number(most)), kind=nx.DiGraph)
    assert nx.dijkstra_path(graph, "s", "t", backend="oocgraph") == ["s", "a", "t"]
    assert nx.dijkstra_path_length(graph, "s", "t", backend="oocgraph") == most - 1


VIEWS = {
    "subgraph": lambda graph: graph.subgraph([0, 1, 2]),
    "copy": lambda graph: graph.copy(as_view=True),
    "subgraph view": lambda graph: nx.subgraph_view(graph, filter_node=lambda node: node < 3),
    "restricted view": lambda graph: nx.restricted_view(graph, [3], []),
    "edge subgraph": lambda graph: graph.edge_subgraph([(0, 1), (1, 2)]),
    "directed": lambda graph: graph.to_directed(as_view=True),
    "reverse": lambda graph: graph.to_directed(as_view=True).reverse(copy=False),
}


@pytest.mark.parametrize("view", VIEWS)
def test_a_view_follows_its_graph(view):
    """What was converted of it is not kept: NetworkX would not clear it."""
    graph = nx.path_graph(4)
    shown = VIEWS[view](graph)
    assert nx.has_path(shown, 0, 2, backend="oocgraph")
    graph.remove_edge(0, 1)
    assert not nx.has_path(shown, 0, 2, backend="oocgraph")


@pytest.mark.parametrize("function", [nx.eigenvector_centrality, nx.katz_centrality])
def test_an_edge_that_has_two_weights_is_left_to_networkx(function):
    """An undirected view of a directed graph shows those of both directions."""
    shown = weighted((0, 1, 1), (1, 0, 5), (1, 2, 2), (2, 0, 1), kind=nx.DiGraph).to_undirected(as_view=True)
    with pytest.raises(NotImplementedError, match="not implemented by 'oocgraph' backend for the given arguments"):
        function(shown, weight="weight", backend="oocgraph")
    assert function(shown, backend="oocgraph") == pytest.approx(function(shown), abs=1e-4)
    copied = nx.Graph(shown)
    assert function(copied, weight="weight", backend="oocgraph") == pytest.approx(function(copied, weight="weight"), abs=1e-4)


def test_a_graph_may_change_while_edges_of_its_spanning_tree_are_iterated_over():
    graph = weighted((0, 1, 1), (0, 2, 2), (0, 3, 3))
    edges = nx.minimum_spanning_edges(graph, backend="oocgraph")
    first = next(edges)
    graph.clear()
    assert [first, *edges] == [(0, 1, {"weight": 1}), (0, 2, {"weight": 2}), (0, 3, {"weight": 3})]


@pytest.mark.parametrize("function", [nx.bfs_edges, nx.bfs_successors, nx.bfs_layers])
def test_unknown_sources_are_an_error_of_the_iteration(function):
    """As in NetworkX, whose functions are generators."""
    found = function(PATH, 7, backend="oocgraph")
    error = TypeError if function is nx.bfs_layers else nx.NetworkXError
    with pytest.raises(error):
        next(found)


def test_a_spanning_tree_has_nodes_whose_only_edges_are_loops():
    for source, target in (([1, 31, 5], [2, 31, 5]), ([31, 5], [31, 5])):
        graph = oocgraph.build_csr((source, target), keep_self_loops=True)
        assert sorted(nx.minimum_spanning_tree(graph)) == sorted({*source, *target})
