"""What a product of the adjacency matrix tells: mixing of degrees, cuts and colours; and all shortest paths between two nodes."""

from __future__ import annotations

from math import isnan

import networkx as nx
import numpy as np
import pytest

import oocgraph
from tests.networkx_backend.calls import GRAPHS, store_of

pytestmark = pytest.mark.filterwarnings("ignore:Note. conversions to backend graphs are saved to cache")


def called(function, graph, *args, **kwargs):
    """Call a function of NetworkX with this backend, whatever it is given."""
    found = function(graph, *args, backend="oocgraph", **kwargs)
    return list(found) if hasattr(found, "__next__") else found


def _weighted(graph, seed=1):
    generator = np.random.default_rng(seed)
    for u, v in graph.edges:
        graph[u][v]["weight"] = int(generator.integers(1, 50))
    return graph


def _bipartite(seed, num_edges=60):
    graph = nx.bipartite.gnmk_random_graph(20, 25, num_edges, seed=seed)
    return _weighted(nx.relabel_nodes(graph, {node: node * 7 % 45 for node in graph}))


@pytest.fixture(scope="module", params=[0, 1, 2])
def bipartite(request, tmp_path_factory):
    """Return a bipartite graph: connected or not, with nodes without edges; as NetworkX has it, and as a store."""
    graph = _bipartite(request.param, [200, 60, 20][request.param])
    return graph, store_of(graph, tmp_path_factory.mktemp("bipartite") / "g.zarr")


def test_colours_of_neighbours_differ(bipartite):
    for graph in bipartite:
        assert called(nx.bipartite.is_bipartite, graph)
        colour = dict(called(nx.bipartite.color, graph))
        assert set(colour) == set(bipartite[0])
        assert all(type(value) is int for value in colour.values())
        assert all({colour[u], colour[v]} == {0, 1} for u, v in bipartite[0].edges)
        assert all(colour[node] == 0 for node in nx.isolates(bipartite[0]))
    assert called(nx.bipartite.color, bipartite[0]) == nx.bipartite.color(bipartite[0])


def test_sets_are_those_of_a_connected_graph(bipartite):
    for graph in bipartite:
        if nx.is_connected(bipartite[0]):
            found, expected = called(nx.bipartite.sets, graph), nx.bipartite.sets(bipartite[0])
            assert {frozenset(one) for one in found} == {frozenset(one) for one in expected}
        else:
            with pytest.raises(nx.AmbiguousSolution):
                called(nx.bipartite.sets, graph)


def test_an_edge_may_spoil_it(tmp_path):
    graph = _bipartite(3)
    path = nx.shortest_path(graph, *next(iter(graph.edges)))
    two_apart = next((u, w) for u in graph for v in graph[u] for w in graph[v] if w != u)
    assert path
    graph.add_edge(*two_apart, weight=1)
    for one in (graph, store_of(graph, tmp_path / "g.zarr")):
        assert not called(nx.bipartite.is_bipartite, one)
        with pytest.raises(nx.NetworkXError, match="not bipartite"):
            called(nx.bipartite.color, one)


def test_a_self_loop_spoils_it(tmp_path):
    oocgraph.build_csr([(0, 1), (1, 2), (2, 2)], tmp_path / "g.zarr", keep_self_loops=True)
    assert not nx.is_bipartite(oocgraph.open_graph(tmp_path / "g.zarr"))
    assert not called(nx.is_bipartite, nx.Graph([(0, 1), (2, 2)]))


def test_graphs_without_edges_have_one_colour():
    graph = nx.empty_graph(3)
    assert called(nx.bipartite.color, graph) == {0: 0, 1: 0, 2: 0}
    assert called(nx.is_bipartite, graph)
    assert called(nx.bipartite.sets, nx.empty_graph(1)) == (set(), {0})


@pytest.mark.parametrize("kind", [kind for kind in GRAPHS if kind != "strings"])
def test_both_kinds_of_graphs_mix_as_networkx_says(kind, tmp_path):
    graph = GRAPHS[kind]()
    for one in (graph, store_of(graph, tmp_path / "g.zarr")):
        for function in (nx.degree_assortativity_coefficient, nx.degree_pearson_correlation_coefficient):
            for x, y in [("out", "in"), ("in", "in"), ("out", "out"), ("in", "out")] if graph.is_directed() else [("out", "in")]:
                assert called(function, one, x, y) == pytest.approx(nx.degree_assortativity_coefficient(graph, x, y), abs=1e-9)
        for function in (nx.average_neighbor_degree, nx.average_degree_connectivity):
            sides = ["in", "out", "in+out"] if graph.is_directed() else [None]
            for source in sides:
                for target in sides:
                    for weight in (None, "weight"):
                        given = {"source": source, "target": target} if source else {}
                        expected = function(graph, weight=weight, **given)
                        assert dict(called(function, one, weight=weight, **given)) == pytest.approx(expected)


def test_names_of_degrees_are_checked():
    directed, undirected = nx.DiGraph([(0, 1)]), nx.Graph([(0, 1)])
    for function in (nx.average_neighbor_degree, nx.average_degree_connectivity):
        with pytest.raises(nx.NetworkXError, match="bogus"):
            called(function, directed, source="bogus")
        with pytest.raises(nx.NetworkXError, match="only supported for directed"):
            called(function, undirected, target="in")


def test_where_all_degrees_are_the_same_they_have_no_correlation():
    for graph in (nx.cycle_graph(7), nx.complete_graph(5), nx.empty_graph(3), nx.DiGraph([(0, 1), (1, 2), (2, 0)])):
        assert isnan(called(nx.degree_assortativity_coefficient, graph))


def test_self_loops_count_as_networkx_counts_them(tmp_path):
    edges = [(0, 1), (1, 2), (2, 2), (2, 3), (3, 0), (3, 4)]
    for directed in (False, True):
        graph = (nx.DiGraph if directed else nx.Graph)(edges)
        oocgraph.build_csr(edges, path := tmp_path / f"{directed}.zarr", keep_self_loops=True, directed=directed)
        for one in (graph, oocgraph.open_graph(path)):
            assert called(nx.degree_assortativity_coefficient, one) == pytest.approx(nx.degree_assortativity_coefficient(graph))
            assert dict(called(nx.average_neighbor_degree, one)) == pytest.approx(nx.average_neighbor_degree(graph))
            assert called(nx.cut_size, one, {2, 3}, {0, 1, 4}) == nx.cut_size(graph, {2, 3}, {0, 1, 4})
            assert called(nx.volume, one, {2, 3}) == nx.volume(graph, {2, 3})
            assert called(nx.conductance, one, {2, 3}) == pytest.approx(nx.conductance(graph, {2, 3}))


def test_sets_in_any_form_cut_the_same(tmp_path):
    graph = GRAPHS["disconnected"]()
    store, some = store_of(graph, tmp_path / "g.zarr"), list(graph)[:9]
    expected = nx.conductance(graph, some)
    for given in (some, set(some), tuple(some), dict.fromkeys(some), np.array(some)):
        assert nx.conductance(store, given) == pytest.approx(expected)
    largest = max(nx.connected_components(store), key=len)  # a VertexSet
    assert nx.cut_size(store, largest) == 0
    assert nx.volume(store, largest) == nx.volume(graph, set(largest))
    assert nx.cut_size(store, iter([*some, 1_000_000]), {*graph} - {*some}) == nx.cut_size(graph, some)  # one is not in the graph


def test_nodes_that_come_twice_or_are_none_count_as_networkx_counts_them(tmp_path):
    graph = _weighted(nx.path_graph(6))
    graph.add_node(6)
    graph.add_node(7)
    for one in (graph, store_of(graph, tmp_path / "g.zarr")):
        for some in ([1, 1, 2, 2], [1, 2, 99, 98], [1, 6, 6, 2], ["a", 1, 6]):
            for function in (nx.edge_expansion, nx.conductance, nx.volume, nx.cut_size, nx.normalized_cut_size):
                for weight in (None, "weight"):
                    found = called(function, one, some, weight=weight)
                    assert found == pytest.approx(function(graph, some, weight=weight)), (function.__name__, some)
                    assert type(found) is type(function(graph, some, weight=weight))
        given = [1, 1], [2, 3, 4, 5]
        assert called(nx.conductance, one, *given) == pytest.approx(nx.conductance(graph, *given))
        assert called(nx.average_degree_connectivity, one, nodes=[1, 1, 0, 6, 6, 99]) == pytest.approx(
            nx.average_degree_connectivity(graph, nodes=[1, 1, 0, 6, 6, 99])
        )


def test_sums_of_integers_are_exact_or_left_to_networkx():
    graph = nx.path_graph(4)
    nx.set_edge_attributes(graph, 2**55 + 1, "weight")
    for function in (nx.volume, nx.cut_size):
        with pytest.raises(NotImplementedError):
            called(function, graph, [0, 1], weight="weight")


def test_parallel_self_loops_count_each(tmp_path):
    edges = [(0, 0), (0, 0), (0, 1)]
    oocgraph.build_csr(edges, tmp_path / "g.zarr", duplicates="keep", keep_self_loops=True)
    store, graph = oocgraph.open_graph(tmp_path / "g.zarr"), nx.MultiGraph(edges)
    assert nx.volume(store, [0]) == nx.volume(graph, [0]) == 5
    assert nx.has_eulerian_path(store) == nx.has_eulerian_path(graph)
    assert dict(nx.degree_centrality(store)) == nx.degree_centrality(graph)


def test_paths_are_those_of_the_graph_as_it_was(tmp_path):
    graph = nx.grid_2d_graph(3, 3)
    paths = called(nx.all_shortest_paths, graph, (0, 0), (2, 2))
    asked = nx.all_shortest_paths(graph, (0, 0), (2, 2), backend="oocgraph")
    first = next(asked)
    graph.remove_node((1, 2))
    graph.add_edge((0, 0), "new")
    assert [first, *asked] == paths


def test_sets_that_overlap_are_left_to_networkx():
    graph = nx.complete_graph(6)
    with pytest.raises(NotImplementedError):
        called(nx.cut_size, graph, {0, 1, 2}, {2, 3})


@pytest.mark.parametrize("kind", GRAPHS)
def test_all_shortest_paths_are_found_once(kind, tmp_path):
    graph = GRAPHS[kind]()
    store, nodes = store_of(graph, tmp_path / "g.zarr"), sorted(graph)
    found = 0
    for one in (graph, store):
        for source in nodes[:4]:
            for target in nodes[:12]:
                try:
                    expected = sorted(nx.all_shortest_paths(graph, source, target))
                except nx.NetworkXNoPath:
                    paths = nx.all_shortest_paths(one, source, target, backend="oocgraph")  # no error until a path is asked for
                    with pytest.raises(nx.NetworkXNoPath):
                        next(paths)
                    continue
                assert sorted(called(nx.all_shortest_paths, one, source, target)) == expected
                found += len(expected)
        with pytest.raises(nx.NetworkXNoPath):
            called(nx.all_shortest_paths, one, nodes[0], "nowhere")
        with pytest.raises(nx.NodeNotFound):
            called(nx.all_shortest_paths, one, "nowhere", nodes[0])
    assert found > 20


def test_many_paths_are_made_as_they_are_asked_for(tmp_path):
    """A chain of 40 diamonds has 2 ** 40 paths; a store with parallel edges has no more."""
    edges = [(3 * i, 3 * i + k) for i in range(40) for k in (1, 2)] + [(3 * i + k, 3 * i + 3) for i in range(40) for k in (1, 2)]
    oocgraph.build_csr([*edges, *edges], tmp_path / "g.zarr", duplicates="keep")
    for graph in (nx.Graph(edges), oocgraph.open_graph(tmp_path / "g.zarr")):
        paths = nx.all_shortest_paths(graph, 0, 120, backend="oocgraph")
        some = [tuple(next(paths)) for _ in range(100)]
        assert len({*some}) == 100
        assert {len(one) for one in some} == {81}


def test_two_sweeps_find_the_diameter_of_a_tree(tmp_path):
    graph = nx.convert_node_labels_to_integers(nx.full_rary_tree(3, 50))
    for u, v in graph.edges:
        graph[u][v]["weight"] = 1
    for one in (graph, store_of(graph, tmp_path / "g.zarr")):
        for seed in range(5):
            assert called(nx.approximation.diameter, one, seed=seed) == nx.diameter(graph)
    with pytest.raises(nx.NetworkXError, match="not connected"):
        called(nx.approximation.diameter, nx.empty_graph(2))
    with pytest.raises(nx.NetworkXError, match="not strongly connected"):
        called(nx.approximation.diameter, nx.path_graph(3, create_using=nx.DiGraph))


@pytest.mark.parametrize("directed", [False, True])
def test_eulerian_paths_of_small_graphs(directed):
    """All graphs of up to four edges on three nodes, each from each node."""
    pairs = [(u, v) for u in range(3) for v in range(3) if u != v and (directed or u < v)]
    for mask in range(1 << len(pairs)):
        graph = (nx.DiGraph if directed else nx.Graph)([pair for i, pair in enumerate(pairs) if mask >> i & 1])
        if not len(graph):
            continue
        assert called(nx.has_eulerian_path, graph) == nx.has_eulerian_path(graph)
        assert called(nx.is_semieulerian, graph) == nx.is_semieulerian(graph)
        for node in graph:
            assert called(nx.has_eulerian_path, graph, source=node) == nx.has_eulerian_path(graph, source=node)


def test_modularity_of_what_louvain_found_is_what_it_says(tmp_path):
    graph = nx.disjoint_union(_weighted(nx.relaxed_caveman_graph(8, 6, 0.1, seed=4)), nx.empty_graph(2))
    store = store_of(graph, tmp_path / "g.zarr")
    for one in (graph, store):
        for weight in ("weight", None):
            sets = called(nx.community.louvain_communities, one, weight=weight, seed=1)
            found = called(nx.community.modularity, one, sets, weight=weight)
            assert found == pytest.approx(nx.community.modularity(graph, [set(part) for part in sets], weight=weight))
            assert found > 0.5
    assert found == pytest.approx(oocgraph.louvain(store, weight=False, seed=1).modularity, rel=0.1)


def test_communities_must_have_each_node_once(tmp_path):
    graph = GRAPHS["isolated"]()
    nodes, alone = list(graph), next(nx.isolates(graph))
    two_alone = [*nx.isolates(graph)][:2]
    bad = [
        [nodes[:-1]], [nodes, nodes[:1]], [nodes[:-1], [nodes[0]]], [[*nodes[:-1], "nobody"]], [[]], [],
        [[node for node in nodes if node != two_alone[0]], [two_alone[1]]], [[node for node in nodes if node != alone]],
    ]  # fmt: skip
    for one in (graph, store_of(graph, tmp_path / "g.zarr")):
        for sets in bad:
            with pytest.raises(nx.community.quality.NotAPartition):
                called(nx.community.modularity, one, sets)
        assert called(nx.community.modularity, one, iter([nodes[:9], [], nodes[9:]])) == pytest.approx(
            nx.community.modularity(graph, [nodes[:9], [], nodes[9:]])
        )


def test_self_loops_count_twice_in_modularity(tmp_path):
    edges, sets = [(0, 1), (1, 1), (1, 2), (2, 3), (3, 3), (3, 0), (3, 4)], [{0, 1}, {2, 3, 4}]
    oocgraph.build_csr(edges, tmp_path / "g.zarr", keep_self_loops=True)
    for one in (nx.Graph(edges), oocgraph.open_graph(tmp_path / "g.zarr")):
        assert called(nx.community.modularity, one, sets) == pytest.approx(nx.community.modularity(nx.Graph(edges), sets))


def test_longest_paths_of_most_edges(tmp_path):
    graph = nx.DiGraph((u, v, {"weight": 1}) for u, v in nx.gnp_random_graph(60, 0.08, seed=3, directed=True).edges if u < v)
    for one in (graph, store_of(nx.convert_node_labels_to_integers(graph, ordering="sorted"), tmp_path / "g.zarr")):
        assert len(called(nx.dag_longest_path, one, weight=None)) == len(nx.dag_longest_path(graph))
        assert called(nx.dag_longest_path_length, one, weight=None) == nx.dag_longest_path_length(graph)
    lone = nx.empty_graph(3, create_using=nx.DiGraph)
    assert (called(nx.dag_longest_path, lone), called(nx.dag_longest_path_length, lone)) == (nx.dag_longest_path(lone), 0)
    assert called(nx.dag_longest_path, nx.DiGraph()) == []
    assert called(nx.dag_longest_path_length, nx.DiGraph()) == 0
    with pytest.raises(NotImplementedError):
        called(nx.dag_longest_path, nx.DiGraph([(0, 1, {"weight": 2})]))
    with pytest.raises(nx.NetworkXUnfeasible):
        called(nx.dag_longest_path, nx.DiGraph([(0, 1), (1, 0)]))


def test_a_graph_without_nodes(tmp_path):
    null = nx.Graph()
    assert called(nx.node_boundary, null, []) == set()
    assert (
        called(nx.average_neighbor_degree, null) == called(nx.average_degree_connectivity, null) == called(nx.bipartite.color, null) == {}
    )
    assert called(nx.cut_size, null, [], []) == called(nx.volume, null, []) == 0
    assert isnan(called(nx.degree_assortativity_coefficient, null))
    for function in (nx.bipartite.sets, nx.has_eulerian_path):
        with pytest.raises(nx.NetworkXPointlessConcept):
            called(function, null)
    with pytest.raises(ZeroDivisionError):
        called(nx.conductance, null, [])


def test_weights_that_are_all_zero_have_no_modularity(tmp_path):
    graph = nx.path_graph(5)
    nx.set_edge_attributes(graph, 0, "weight")
    for one in (graph, store_of(graph, tmp_path / "g.zarr")):
        with pytest.raises(ZeroDivisionError):
            called(nx.community.modularity, one, [[0, 1], [2, 3, 4]])


def test_sets_of_what_is_no_node_of_a_store(tmp_path):
    """Numerals are no integers, tuples no nodes, and arrays have one dimension; a set is one, in whatever it is given."""
    store = oocgraph.build_csr(([1, 1, 2], [2, 3, 3]), tmp_path / "g.zarr", num_vertices=6)
    assert not nx.is_dominating_set(store, ["1", "4", "0", "5", "2"])
    assert nx.volume(store, ["1", (1, 2), 3]) == 2
    assert nx.boundary_expansion(store, np.array(["1"])) == 0
    for odd in (["1"], "12", [1, "2"]):
        with pytest.raises(nx.NetworkXError, match="is not in the graph"):
            nx.group_degree_centrality(store, odd)
    with pytest.raises(nx.NetworkXError, match="2 dimensions"):
        nx.group_degree_centrality(store, np.array([[1, 2]]))
    for given in (np.array([1, 2]), (1, 2), [1, 2, 2], iter([1, 2])):
        assert nx.group_closeness_centrality(store, given) == nx.group_closeness_centrality(store.to_networkx(), [1, 2]) == 4.0
    with pytest.raises(ValueError, match="sources must not be empty"):
        nx.group_closeness_centrality(store, np.array([], int))


def test_members_of_a_graph_without_edges(tmp_path):
    none = np.empty(0, int)
    store = oocgraph.build_csr((none, none), tmp_path / "g.zarr", num_vertices=3)
    assert sorted(nx.maximal_independent_set(store)) == [0, 1, 2]
    assert list(nx.biconnected_components(store)) == []
    assert dict(nx.greedy_color(store)) == {0: 0, 1: 0, 2: 0}
