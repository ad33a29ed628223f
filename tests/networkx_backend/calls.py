"""Graphs of five kinds, as NetworkX and as stores have them, and a call of every function of the backend on each kind."""

from __future__ import annotations

from collections import Counter

import networkx as nx
import numpy as np
import pyarrow as pa
import pytest

import oocgraph
from oocgraph.networkx_backend import BackendInterface


def _random(num_nodes, num_edges, seed, *, directed=False):
    """Return a graph whose edges have weights, all different, so that shortest paths and spanning trees are unique."""
    generator = np.random.default_rng(seed)
    graph = nx.DiGraph() if directed else nx.Graph()
    graph.add_nodes_from(range(num_nodes))
    ends = generator.integers(0, num_nodes, (num_edges, 2))
    graph.add_edges_from((int(u), int(v)) for u, v in ends if u != v)
    for (u, v), weight in zip(graph.edges(), generator.permutation(graph.number_of_edges()), strict=True):
        graph[u][v]["weight"] = int(1000 + weight)
    return graph


def _undirected():
    graph = _random(30, 70, 1)
    return nx.convert_node_labels_to_integers(graph.subgraph(max(nx.connected_components(graph), key=len)))


def _acyclic():
    graph = nx.DiGraph((u, v, data) for u, v, data in _random(25, 60, 5, directed=True).edges(data=True) if u < v)
    return nx.convert_node_labels_to_integers(graph)


GRAPHS = {
    "undirected": _undirected,
    "directed": lambda: _random(25, 60, 2, directed=True),
    "isolated": lambda: _random(40, 30, 3),
    "strings": lambda: nx.relabel_nodes(_undirected(), lambda node: f"v{node * 7 % 31:02}"),
    "disconnected": lambda: nx.disjoint_union(_undirected(), _random(12, 15, 4)),
    "acyclic": _acyclic,
}
"""Makes a graph of NetworkX, by kind."""


def store_of(graph, folder):
    """Build a store of a graph of NetworkX, and open it."""
    edges = [(u, v, data["weight"]) for u, v, data in graph.edges(data=True)]
    source, target, weight = zip(*edges, strict=True)
    table = pa.table({"source": source, "target": target, "weight": weight})
    labels_are_numbers = not isinstance(source[0], str)
    oocgraph.build_csr(
        table, folder, weight="weight", directed=graph.is_directed(), num_vertices=max(graph) + 1 if labels_are_numbers else None
    )
    return oocgraph.open_graph(folder)


def _close(found, expected, *_):
    """Whether both are the same, floats within rounding errors of sums in another order."""
    if isinstance(expected, dict):
        return set(found) == set(expected) and len(found) == len(expected) and all(_close(found[key], expected[key]) for key in expected)
    if isinstance(expected, tuple | list):
        return len(found) == len(expected) and all(_close(*both) for both in zip(found, expected, strict=True))
    return found == pytest.approx(expected, rel=1e-9, abs=1e-12, nan_ok=True) if isinstance(expected, float) else found == expected


def _converged(found, expected, *_):
    """Whether values of iterations are the same within the tolerance."""
    if isinstance(expected, tuple):
        return all(_converged(*both) for both in zip(found, expected, strict=True))
    return set(found) == set(expected) and all(abs(found[node] - value) < 1e-4 for node, value in expected.items())


def _as_sets(found, expected, *_):
    return {frozenset(one) for one in found} == {frozenset(one) for one in expected}


def _layers(found, expected, *_):
    return [set(layer) for layer in found] == [set(layer) for layer in expected]


def _same_nodes(found, expected, *_):
    return sorted(found) == sorted(expected)


def _same_edges(found, expected, *_):
    def edges(many):
        return sorted((*sorted(one[:2]), *map(repr, one[2:])) for one in many)

    return edges(found) == edges(expected)


def _is_path(path, graph):
    return all(graph.has_edge(*edge) for edge in nx.utils.pairwise(path))


def _path(found, expected, graph):
    """Whether it is a path between the same ends, as long as the other."""
    return _is_path(found, graph) and (found[0], found[-1], len(found)) == (expected[0], expected[-1], len(expected))


def _path_of_most(found, expected, graph):
    return _is_path(found, graph) and len(found) == len(expected)


def _paths(found, expected, graph):
    return set(found) == set(expected) and all(_path(found[node], expected[node], graph) for node in expected)


def _tree(found, expected, graph):
    """Whether edges from a parent to its children are a tree of the same levels, in a breadth-first order."""

    def levels(edges):
        found = {}
        for parent, child in edges:
            assert child not in found
            found[child] = found.get(parent, 0) + 1
        return found

    found, expected = list(found), list(expected)
    ours = levels(found)
    return ours == levels(expected) and list(ours.values()) == sorted(ours.values())


def _predecessors(found, expected, graph):
    return _tree(*([(parent, child) for child, parent in many] for many in (found, expected)), graph)


def _successors(found, expected, graph):
    flat = [[(parent, child) for parent, children in many for child in children] for many in (found, expected)]
    return _tree(*flat, graph)


def _graph(found, expected, *_):
    ours = BackendInterface.convert_to_nx(found)
    return nx.utils.graphs_equal(nx.Graph(ours), nx.Graph(expected)) and ours.is_directed() == expected.is_directed()


def _search_graph(found, expected, graph):
    return _tree(nx.bfs_edges(BackendInterface.convert_to_nx(found), next(iter(expected))), expected.edges, graph)


def _order(found, expected, graph):
    """Whether it is a topological order of the same nodes."""
    place = {node: i for i, node in enumerate(found)}
    return set(place) == set(expected) and all(place[u] < place[v] for u, v in graph.edges)


def _communities(found, expected, graph):
    """Whether it is a partition whose modularity is about that of the other."""
    modularity = nx.community.modularity
    return nx.community.is_partition(graph, found) and (
        not graph.number_of_edges() or modularity(graph, found) >= 0.9 * modularity(graph, expected) - 0.02
    )


def _stable(found, _, graph):
    """Whether it is a partition in which each node is where most of its neighbours are."""
    found = [set(one) for one in found]
    community = {node: number for number, one in enumerate(found) for node in one}

    def votes(node):
        return Counter(community[other] for other in graph[node])

    return nx.community.is_partition(graph, found) and all(
        not graph[node] or votes(node)[community[node]] == max(votes(node).values()) for node in graph
    )


def _all_distances(found, expected, *_):
    """Whether distances from each node are the same."""
    return sorted(node for node, _ in found) == sorted(node for node, _ in expected) and all(
        dict(one) == pytest.approx(dict(expected)[node]) for node, one in found
    )


def _all_paths(found, expected, graph):
    """Whether there are paths between the same nodes, as long in edges or by weight."""
    return sorted(node for node, _ in found) == sorted(node for node, _ in expected) and all(
        _paths(one, dict(expected)[node], graph) for node, one in found
    )


def _all_both(found, expected, graph):
    return _all_distances([(node, one[0]) for node, one in found], [(node, one[0]) for node, one in expected]) and _all_paths(
        [(node, one[1]) for node, one in found], [(node, one[1]) for node, one in expected], graph
    )


def _colouring(found, expected, graph):
    """Whether it has the same colours, or a store's, whose nodes come in the order of their ids; or, with self-loops, as many."""
    ordered = nx.Graph()
    ordered.add_nodes_from(sorted(graph))
    ordered.add_edges_from(graph.edges)
    same = dict(found) in (expected, nx.greedy_color(ordered))
    return all(found[u] != found[v] for u, v in graph.edges if u != v) and (
        same or (nx.number_of_selfloops(graph) > 0 and set(found.values()) == set(expected.values()))
    )


def _independent(found, _, graph):
    """Whether each node is in the set or has a neighbour there, and none has both."""
    members = set(found)
    return all((node in members) != any(other in members for other in graph[node] if other != node) for node in graph)


def _same_lists(found, expected, *_):
    return sorted(found) == sorted(expected)


def _about(found, expected, graph):
    """Whether it is between half of the diameter and all of it."""
    return nx.diameter(graph) / 2 <= found <= nx.diameter(graph)


def _colours(found, expected, graph):
    return set(found) == set(expected) and all(found[u] != found[v] for u, v in graph.edges) and set(found.values()) <= {0, 1}


CALLS = {
    "adamic_adar_index": [("pairs",), _close],
    "all_pairs_bellman_ford_path": [(), _all_paths],
    "all_pairs_bellman_ford_path_length": [(), (None,), _all_distances],
    "all_pairs_dijkstra": [(), _all_both],
    "all_pairs_dijkstra_path": [(), (2500,), _all_paths],
    "all_pairs_dijkstra_path_length": [(), (2500,), (None, None), _all_distances],
    "all_pairs_shortest_path": [(), (2,), _all_paths],
    "all_pairs_shortest_path_length": [(), (2,), _all_distances],
    "all_shortest_paths": [("u", "v"), ("u", "u"), _same_lists],
    "ancestors": [("v",), _close],
    "approximate_diameter": [(1,), _about],
    "articulation_points": [(), _same_nodes],
    "asyn_lpa_communities": [(), _stable],
    "average_clustering": [(), ("some",), _close],
    "average_degree_connectivity": [(), ("in+out", "in+out", "some", "weight"), ("out", "in"), ("in", "in+out", None, "weight"), _close],
    "average_neighbor_degree": [(), ("out", "out", "some", "weight"), ("in", "in+out"), ("in+out", "in", None, "weight"), _close],
    "average_shortest_path_length": [(), _close],
    "bellman_ford_path": [("u", "v"), _close],
    "bellman_ford_path_length": [("u", "v"), _close],
    "betweenness_centrality": [(), _close],
    "bfs_edges": [("u",), _tree],
    "bfs_layers": [("u",), ("some",), _layers],
    "bfs_predecessors": [("u",), ("u", 2), _predecessors],
    "bfs_successors": [("u",), _successors],
    "bfs_tree": [("u",), _search_graph],
    "biconnected_components": [(), _as_sets],
    "bidirectional_dijkstra": [("u", "v"), _close],
    "bidirectional_shortest_path": [("u", "v"), _path],
    "boundary_expansion": [("some",), ("others",), _close],
    "bridges": [(), ("u",), ("nobody",), _same_edges],
    "center": [(), _same_nodes],
    "closeness_centrality": [(), ("u",), _close],
    "clustering": [(), ("u",), ("some",), _close],
    "color": [(), _colours],
    "conductance": [("some",), ("some", "others", "weight"), _close],
    "connected_components": [(), _as_sets],
    "core_number": [(), _close],
    "cut_size": [("some", "others"), ("some", "others", "weight"), _close],
    "dag_longest_path": [(None,), _path_of_most],
    "dag_longest_path_length": [(None,), _close],
    "degree_assortativity_coefficient": [(), ("in", "in"), _close],
    "degree_centrality": [(), _close],
    "degree_pearson_correlation_coefficient": [(), ("in", "in"), _close],
    "descendants": [("u",), _close],
    "descendants_at_distance": [("u", 2), ("u", 0), ("u", 99), _close],
    "diameter": [(), _close],
    "dijkstra_path": [("u", "v"), _close],
    "dijkstra_path_length": [("u", "v"), _close],
    "eccentricity": [(), ("u",), ("some",), _close],
    "edge_expansion": [("some",), ("some", "others", "weight"), _close],
    "efficiency": [("u", "v"), ("u", "last"), ("u", "nobody"), _close],
    "ego_graph": [("u",), ("u", 2), _graph],
    "eigenvector_centrality": [(1000,), _converged],
    "fast_label_propagation_communities": [(), _stable],
    "global_efficiency": [(), _close],
    "greedy_color": [(), _colouring],
    "group_closeness_centrality": [("some",), ("one",), ("some", "weight"), (["nobody"],), _close],
    "group_degree_centrality": [("some",), (["nobody"],), _close],
    "group_in_degree_centrality": [("some",), _close],
    "group_out_degree_centrality": [("some",), _close],
    "harmonic_centrality": [(), ("u",), ("some",), _close],
    "harmonic_diameter": [(), _close],
    "has_bridges": [(), ("u",), ("nobody",), _close],
    "has_eulerian_path": [(), ("u",), _close],
    "has_path": [("u", "v"), _close],
    "hits": [(1000,), _converged],
    "in_degree_centrality": [(), _close],
    "is_arborescence": [(), _close],
    "is_biconnected": [(), _close],
    "is_bipartite": [(), _close],
    "is_branching": [(), _close],
    "is_connected": [(), _close],
    "is_directed_acyclic_graph": [(), _close],
    "is_dominating_set": [("some",), ("all",), _close],
    "is_empty": [(), _close],
    "is_eulerian": [(), _close],
    "is_forest": [(), _close],
    "is_isolate": [("u",), ("last",), _close],
    "is_k_regular": [(3,), _close],
    "is_regular": [(), _close],
    "is_semieulerian": [(), _close],
    "is_strongly_connected": [(), _close],
    "is_tree": [(), _close],
    "is_weakly_connected": [(), _close],
    "isolates": [(), _same_nodes],
    "jaccard_coefficient": [("pairs",), _close],
    "k_core": [(), (2,), _graph],
    "k_corona": [(1,), (2,), _graph],
    "k_crust": [(), (2,), _graph],
    "k_shell": [(), (1,), _graph],
    "katz_centrality": [(0.05,), _converged],
    "local_reaching_centrality": [("u",), ("last",), ("nobody",), _close],
    "louvain_communities": [(), _communities],
    "maximal_independent_set": [(), _independent],
    "maximum_spanning_edges": [(), _same_edges],
    "maximum_spanning_tree": [(), _graph],
    "minimum_spanning_edges": [(), _same_edges],
    "minimum_spanning_tree": [(), _graph],
    "mixing_expansion": [("some", "others"), _close],
    "modularity": [("halves",), ("halves", None, 0.7), _close],
    "multi_source_dijkstra": [("one",), ("some",), ("some", "v"), ("some", None, 2500), _close],
    "multi_source_dijkstra_path": [("one",), ("some",), ("some", 2500), _close],
    "multi_source_dijkstra_path_length": [("one",), ("some",), ("some", 2500), _close],
    "node_boundary": [("some",), ("some", "others"), _close],
    "node_connected_component": [("u",), _close],
    "node_expansion": [("some",), ("others",), (["nobody"],), _close],
    "normalized_cut_size": [("some",), ("some", "others", "weight"), _close],
    "number_connected_components": [(), _close],
    "number_of_isolates": [(), _close],
    "number_of_selfloops": [(), _close],
    "number_strongly_connected_components": [(), _close],
    "number_weakly_connected_components": [(), _close],
    "out_degree_centrality": [(), _close],
    "pagerank": [(), _converged],
    "periphery": [(), _same_nodes],
    "preferential_attachment": [("pairs",), ([("nobody", "u")],), _same_lists],
    "radius": [(), _close],
    "resource_allocation_index": [("pairs",), _close],
    "s_metric": [(), _close],
    "sets": [(), _as_sets],
    "shortest_path": [("u", "v"), _path],
    "shortest_path_length": [("u", "v"), ("u",), (None, "v"), ("u", "v", "weight"), ("u", None, "weight"), (None, "v", "weight"), _close],
    "single_source_bellman_ford": [("u",), ("u", "v"), _close],
    "single_source_bellman_ford_path": [("u",), _close],
    "single_source_bellman_ford_path_length": [("u",), _close],
    "single_source_dijkstra": [("u",), ("u", "v"), ("u", None, 2500), _close],
    "single_source_dijkstra_path": [("u",), _close],
    "single_source_dijkstra_path_length": [("u",), ("u", 2500), _close],
    "single_source_shortest_path": [("u",), ("u", 2), _paths],
    "single_source_shortest_path_length": [("u",), ("u", 2), _close],
    "single_target_shortest_path": [("v",), ("v", 2), _paths],
    "single_target_shortest_path_length": [("v",), ("v", 2), _close],
    "strongly_connected_components": [(), _as_sets],
    "topological_generations": [(), _layers],
    "topological_sort": [(), _order],
    "transitivity": [(), _close],
    "triangles": [(), ("u",), ("some",), _close],
    "volume": [("some",), ("some", "weight"), _close],
    "voronoi_cells": [("one",), ("some",), _close],
    "weakly_connected_components": [(), _as_sets],
    "wiener_index": [(), _close],
}
"""Arguments of the calls of each function (nodes by name), and what tells whether a result is NetworkX's."""


def arguments(graph, given):
    """Return arguments with the nodes that they name."""
    nodes = sorted(graph)
    named = {
        "u": nodes[1],
        "v": nodes[5],
        "last": nodes[-1],
        "some": nodes[:4],
        "one": [nodes[1]],
        "others": nodes[6:12],
        "all": nodes,
        "halves": [nodes[::2], nodes[1::2]],
        "pairs": [*nx.utils.pairwise(nodes)],
    }
    return [named.get(one, one) if isinstance(one, str) else one for one in given]
