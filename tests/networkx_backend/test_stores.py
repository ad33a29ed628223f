"""Functions of NetworkX take a store as it is, and return what they return of NetworkX's own graph."""

from __future__ import annotations

import inspect

import networkx as nx
import numpy as np
import pytest

from _oocgraph_nx import COSTS
from oocgraph.networkx_backend import BackendInterface
from tests.networkx_backend.calls import CALLS, GRAPHS, arguments, store_of

UNDIRECTED_ONLY = {
    "asyn_lpa_communities",
    "average_clustering",
    "clustering",
    "color",
    "fast_label_propagation_communities",
    "greedy_color",
    "is_bipartite",
    "louvain_communities",
    "modularity",
    "sets",
    "transitivity",
}
"""Functions that are refused for directed graphs, though NetworkX has them."""


@pytest.fixture(scope="module")
def pairs(tmp_path_factory):
    """Graphs of NetworkX and their stores, by kind."""
    folder = tmp_path_factory.mktemp("stores")
    graphs = {kind: make() for kind, make in GRAPHS.items()}
    return {kind: (graph, store_of(graph, folder / f"{kind}.zarr")) for kind, graph in graphs.items()}


@pytest.fixture
def no_conversion(monkeypatch):
    """Fail where a graph is converted."""

    def refuse(*_, **__):
        raise AssertionError("a graph was converted")

    monkeypatch.setattr(BackendInterface, "convert_from_nx", staticmethod(refuse))


def outcome(function, *args):
    """Return what a call returns, generators as lists, or the class of what it raises."""
    try:
        found = function(*args)
        return list(found) if inspect.isgenerator(found) or hasattr(found, "__next__") else found
    except (nx.NetworkXException, KeyError) as error:
        return type(error)


def function_of(name):
    """Return a function of NetworkX, which does not have all of them at its top."""
    if name == "approximate_diameter":
        return nx.approximation.diameter
    return next(getattr(module, name) for module in (nx, nx.community, nx.bipartite) if hasattr(module, name))


def test_every_advertised_function_is_called_here():
    """None is left out."""
    assert set(CALLS) == set(COSTS)


@pytest.mark.one_in(6)
@pytest.mark.usefixtures("no_conversion")
@pytest.mark.parametrize("name", sorted(CALLS))
def test_a_store_gives_what_networkx_gives(pairs, name):
    """Of five kinds of graphs, and one without cycles; without a conversion."""
    *calls, is_same = CALLS[name]
    for kind, (graph, store) in pairs.items():
        for given in calls:
            args = arguments(graph, given)
            if name in UNDIRECTED_ONLY and graph.is_directed():
                with pytest.raises(NotImplementedError):
                    function_of(name)(store, *args)
                continue
            expected, found = (outcome(function_of(name), one, *args) for one in (graph, store))
            same = found == expected if isinstance(expected, type) else not isinstance(found, type) and is_same(found, expected, graph)
            assert same, f"{kind}{tuple(args)}: {found!r} instead of {expected!r}"


@pytest.mark.one_in(4)
@pytest.mark.usefixtures("no_conversion")
@pytest.mark.parametrize(
    "name",
    [
        "ancestors", "bfs_edges", "bfs_layers", "bfs_successors", "bfs_tree", "connected_components", "descendants",
        "descendants_at_distance", "has_path", "node_connected_component", "single_source_dijkstra_path_length",
        "single_source_shortest_path_length", "single_target_shortest_path_length",
    ],
)  # fmt: skip
def test_searches_that_pull_give_what_networkx_gives(dense_pair, name):
    """Of a graph whose levels are large enough for that, with vertices that are not reached."""
    graph, store = dense_pair
    *calls, is_same = CALLS[name]
    for given in calls:
        args = arguments(graph, given)
        expected, found = (outcome(function_of(name), one, *args) for one in (graph, store))
        assert is_same(found, expected, graph), args


@pytest.fixture(scope="module")
def dense_pair(tmp_path_factory):
    """Return a graph of 3,000 vertices with three components, and its store."""
    graph = nx.disjoint_union_all([nx.gnm_random_graph(2_500, 25_000, seed=1), nx.gnm_random_graph(499, 5_000, seed=2), nx.empty_graph(1)])
    weights = np.random.default_rng(3).integers(10**9, 10**12, graph.number_of_edges())  # no two paths are as long
    nx.set_edge_attributes(graph, dict(zip(graph.edges, weights.tolist(), strict=True)), "weight")
    return graph, store_of(graph, tmp_path_factory.mktemp("dense") / "g.zarr")
