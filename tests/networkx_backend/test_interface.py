"""What NetworkX asks of a backend: conversions, refusals with reasons, errors, configuration, and an import that costs nothing."""

from __future__ import annotations

import inspect
import json
import math
import subprocess
import sys

import networkx as nx
import numpy as np
import pyarrow as pa
import pytest

import oocgraph
from _oocgraph_nx import COSTS, get_info
from oocgraph import BudgetError
from oocgraph.networkx_backend import BackendInterface, tiny
from oocgraph.networkx_backend.registry import ALGORITHMS
from tests.networkx_backend.calls import GRAPHS

IMPORT = """
import json, sys, time
import networkx
loaded = sorted({name.partition(".")[0] for name in sys.modules} & {"oocgraph", "numba", "dask", "zarr", "pyarrow"})
was_read = "_oocgraph_nx" in sys.modules
seconds = []
for _ in range(5):
    sys.modules.pop("_oocgraph_nx", None)
    began = time.perf_counter()
    import _oocgraph_nx
    _oocgraph_nx.get_info()
    seconds.append(time.perf_counter() - began)
print(json.dumps({"loaded": loaded, "was_read": was_read, "seconds": min(seconds)}))
"""


@pytest.fixture(autouse=True)
def conversions_are_kept():
    """NetworkX warns of that once for each graph, unless its configuration turns the warning off."""
    with nx.config(warnings_to_ignore={"cache"}):
        yield


@pytest.fixture
def store(tmp_path):
    """Return a directed store: 0 -> 1 -> 2 -> 0, 2 -> 3; 4 is isolated."""
    return oocgraph.build_csr(([0, 1, 2, 2], [1, 2, 0, 3]), tmp_path / "g.zarr", directed=True, num_vertices=5)


def refusal(name, *args, **kwargs):
    return BackendInterface.can_run(name, args, kwargs)


def test_import_of_networkx_loads_nothing_heavy():
    """It reads the light module, in less than 5 ms."""
    done = subprocess.run([sys.executable, "-c", IMPORT], capture_output=True, text=True, check=True)
    found = json.loads(done.stdout)
    assert found["was_read"], "the entry points are not installed: pip install -e ."
    assert found["loaded"] == []
    assert found["seconds"] < 0.005


def test_info_describes_every_function():
    """What is listed is what there is, and NetworkX shows what it costs."""
    assert set(get_info()["functions"]) == set(COSTS) == set(ALGORITHMS)
    assert len(COSTS) >= 60
    assert "bytes a vertex" in nx.pagerank.__doc__


@pytest.mark.parametrize("name", sorted(ALGORITHMS))
def test_parameters_are_those_of_networkx(name):
    """With the same defaults; what only a newer version of NetworkX has may stand behind them."""
    dispatched = nx.utils.backends._registered_algorithms.get(name)
    if dispatched is None:
        assert name in {"is_empty", "number_of_selfloops"}, "it is dispatched by newer versions"
        return
    theirs = [(one.name, one.default) for one in inspect.signature(dispatched.orig_func).parameters.values()]
    *ours, budget = ALGORITHMS[name].parameters.parameters.values()
    assert budget.name == "memory_budget"
    assert [(one.name, one.default) for one in ours][: len(theirs)] == theirs
    assert all(one.default is not one.empty for one in ours[len(theirs) :])


def test_nodes_are_any_objects_in_their_order():
    """Results are by node object, in the order in which nodes were added."""
    graph = nx.Graph([((1, 2), "b"), ("b", frozenset([3])), (7.5, "b")])
    graph.add_node("alone")
    found = nx.pagerank(graph, backend="oocgraph")
    assert list(found) == list(graph)
    assert found == pytest.approx(nx.pagerank(graph), abs=1e-5)
    assert list(nx.connected_components(graph, backend="oocgraph")) == [set(graph) - {"alone"}, {"alone"}]


def test_self_loops_and_weights_are_kept():
    """A missing weight is one; self-loops count as NetworkX counts them."""
    graph = nx.Graph([(0, 1, {"cost": 2.5}), (1, 2), (2, 2), (0, 2, {"cost": 9})])
    for name, args in (
        ("single_source_dijkstra_path_length", (0, None, "cost")),
        ("degree_centrality", ()),
        ("triangles", ()),
        ("pagerank", ()),
        ("clustering", ()),
    ):
        function = getattr(nx, name)
        assert function(graph, *args, backend="oocgraph") == pytest.approx(function(graph, *args), abs=1e-6), name


@pytest.mark.parametrize("weight", [math.nan, math.inf, "much", 1 + 2j])
def test_weights_that_are_no_numbers_are_left_to_networkx(weight):
    """The conversion is refused, and what NetworkX does with them is its own."""
    graph = nx.Graph([(0, 1, {"weight": weight})])
    with pytest.raises(NotImplementedError):
        nx.dijkstra_path_length(graph, 0, 1, backend="oocgraph")


def test_negative_weights_are_refused():
    """Also where they are found only on the way."""
    graph = nx.DiGraph([(0, 1, {"weight": -1})])
    with pytest.raises(NotImplementedError):
        nx.bellman_ford_path_length(graph, 0, 1, backend="oocgraph")


def test_calls_that_cannot_run_have_a_reason():
    """Multigraphs, functions in the place of values, all pairs, parameters that there are not."""
    graph = nx.path_graph(3)
    assert "multigraph" in refusal("pagerank", nx.MultiGraph(graph))
    assert "sort_neighbors" in refusal("bfs_edges", graph, 0, sort_neighbors=sorted)
    assert "function" in refusal("dijkstra_path", graph, 0, 2, lambda u, v, data: 1)
    assert "all pairs" in refusal("shortest_path", graph)
    assert "dangling" in refusal("pagerank", graph, dangling={0: 1})
    assert "directed" in refusal("clustering", nx.DiGraph(graph))
    assert "arguments" in refusal("pagerank", graph, speed=3)
    assert refusal("pagerank", graph) is True


def test_small_graphs_are_left_to_networkx():
    """Unless the configuration says otherwise; a store never is."""
    graph = nx.path_graph(100)
    assert "min_edges" in BackendInterface.should_run("pagerank", (graph,), {})
    with nx.config.backends.oocgraph(min_edges=50):
        assert BackendInterface.should_run("pagerank", (graph,), {}) is True
    assert BackendInterface.should_run("pagerank", (), {"G": oocgraph.build_csr(([0], [1]))}) is True


def test_budget_is_of_the_configuration_or_the_call(store):
    """A call's own has precedence."""
    with nx.config.backends.oocgraph(memory_budget="1M"):
        with pytest.raises(BudgetError, match="set memory_budget to at least"):
            nx.pagerank(store)
        assert nx.pagerank(store, backend="oocgraph", memory_budget="2G")[4] > 0
    with pytest.raises(BudgetError):
        nx.pagerank(store, backend="oocgraph", memory_budget="1M")


def test_errors_are_those_of_networkx(store):
    """Whatever oocgraph raises inside."""
    with pytest.raises(nx.NodeNotFound, match="Source 17 is not in G"):
        nx.single_source_shortest_path_length(store, 17)
    with pytest.raises(nx.NetworkXNoPath):
        nx.shortest_path(store, 3, 0)
    with pytest.raises(nx.NetworkXNoPath):
        nx.dijkstra_path(store, 0, 4)
    with pytest.raises(nx.NetworkXNotImplemented):
        nx.connected_components(store)
    with pytest.raises(nx.PowerIterationFailedConvergence):
        nx.pagerank(store, max_iter=1)
    with pytest.raises(nx.NetworkXUnfeasible):
        list(nx.topological_sort(store))
    with pytest.raises(ZeroDivisionError):
        nx.pagerank(store, personalization={0: 0})
    with pytest.raises(nx.NetworkXError, match="strongly connected"):
        nx.diameter(store)


def test_graphs_without_nodes():
    """Each function says of them what NetworkX says."""
    empty = oocgraph.build_csr(([], []), num_vertices=0)
    assert nx.pagerank(empty) == {}
    assert list(nx.connected_components(empty)) == []
    for name in ("is_connected", "is_tree", "eigenvector_centrality", "average_shortest_path_length"):
        with pytest.raises(nx.NetworkXPointlessConcept):
            getattr(nx, name)(empty)


def test_a_store_that_kept_duplicates_is_a_multigraph(tmp_path):
    """Functions give what they give of one; those of which NetworkX wants to know the edge are refused."""
    edges = [(0, 1), (0, 1), (1, 2), (2, 0), (3, 4), (3, 4), (3, 5)]
    graph = nx.MultiGraph(edges)
    store = oocgraph.build_csr(tuple(zip(*edges, strict=True)), tmp_path / "g.zarr", duplicates="keep")
    assert store.is_multigraph()
    for name, args in (
        ("pagerank", ()), ("degree_centrality", ()), ("single_source_shortest_path_length", (0,)), ("betweenness_centrality", ()),
        ("closeness_centrality", ()), ("is_forest", ()), ("is_eulerian", ()), ("hits", (1000,)),
    ):  # fmt: skip
        found, expected = getattr(nx, name)(store, *args), getattr(nx, name)(graph, *args)
        both = zip(found, expected, strict=True) if isinstance(expected, tuple) else [(found, expected)]
        assert all((dict(one) if isinstance(other, dict) else one) == pytest.approx(other, abs=1e-5) for one, other in both), name
    with pytest.raises(nx.NetworkXNotImplemented):
        nx.core_number(store)
    with pytest.raises(NotImplementedError):
        nx.minimum_spanning_tree(store)


def test_a_store_becomes_a_graph_of_networkx(tmp_path):
    """With its edge columns; one that is too large is refused before."""
    table = pa.table({"source": ["a", "b"], "target": ["b", "c"], "weight": [1.5, 2.0], "kind": ["x", "y"]})
    store = oocgraph.build_csr(table, tmp_path / "g.zarr", columns=["source", "target", "kind"], weight="weight")
    found = BackendInterface.convert_to_nx(store)
    assert sorted(found.edges(data=True)) == [("a", "b", {"kind": "x", "weight": 1.5}), ("b", "c", {"kind": "y", "weight": 2.0})]
    with nx.config.backends.oocgraph(memory_budget="1k"), pytest.raises(BudgetError, match="as a graph of NetworkX"):
        BackendInterface.convert_to_nx(store)


@pytest.mark.parametrize(("directed", "kind"), [(False, nx.MultiGraph), (True, nx.MultiDiGraph)])
def test_a_store_with_parallel_edges_becomes_a_multigraph(directed, kind):
    """All edges are in it, the shorter of two as well."""
    table = pa.table({"source": [1, 1, 2, 4], "target": [2, 2, 3, 3], "weight": [1.0, 9.0, 2.0, 5.0]})
    store = oocgraph.build_csr(table, columns=["source", "target"], weight="weight", duplicates="keep", directed=directed)
    found = BackendInterface.convert_to_nx(store)
    assert type(found) is kind
    assert sorted(found.edges(data="weight")) == [(1, 2, 1.0), (1, 2, 9.0), (2, 3, 2.0), tuple([4, 3, 5.0] if directed else [3, 4, 5.0])]
    assert nx.dijkstra_path_length(store, 1, 3, backend="networkx") == nx.dijkstra_path_length(store, 1, 3) == 3.0
    with nx.config(fallback_to_nx=True):
        assert nx.closeness_centrality(store, distance="weight") == nx.closeness_centrality(found, distance="weight")


MEASURES = ("eccentricity", "diameter", "radius", "center", "periphery")


@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize("weight", [None, "whole", "real", "one"])
def test_measures_of_distances_by_a_weight_are_those_of_networkx(directed, weight):
    """On graphs that are connected, and where one node is beyond reach."""
    graph = nx.gnp_random_graph(24, 0.2, seed=3, directed=directed)
    nx.add_cycle(graph, range(24))
    rng = np.random.default_rng(5)
    for *_, data in graph.edges(data=True):
        data |= {"whole": int(rng.integers(0, 9)), "real": float(rng.random()), "one": 1}
    for name in MEASURES:
        measure = getattr(nx, name)
        assert measure(graph, weight=weight, backend="oocgraph") == measure(graph, weight=weight), name
    assert nx.eccentricity(graph, 3, weight=weight, backend="oocgraph") == nx.eccentricity(graph, 3, weight=weight)
    assert nx.eccentricity(graph, [3, 9], weight=weight, backend="oocgraph") == nx.eccentricity(graph, [3, 9], weight=weight)
    graph.add_edge(0, "end", whole=1, real=1.0, one=1)
    if directed:
        for name in MEASURES:
            with pytest.raises(nx.NetworkXError, match="strongly connected"):
                getattr(nx, name)(graph, weight=weight, backend="oocgraph")


def test_measures_by_weights_that_are_negative_or_of_large_graphs_are_left_to_networkx():
    graph = nx.path_graph(4)
    nx.set_edge_attributes(graph, -1, "cost")
    with pytest.raises(NotImplementedError, match="raised NotImplementedError"):
        nx.eccentricity(graph, weight="cost", backend="oocgraph")
    large = nx.path_graph(tiny.TINY)
    assert "tiny graphs" in BackendInterface.can_run("radius", (large,), {"weight": "cost"})


@pytest.mark.parametrize("kind", GRAPHS)
def test_what_is_found_of_tiny_graphs_is_what_is_found_of_others(monkeypatch, kind):
    """Components, degrees, distances and searches of the same graph, with stores built for it and without."""
    graph = GRAPHS[kind]()
    nodes = sorted(graph)
    calls = [(name, ()) for name in ("eccentricity", "radius", "center", "isolates", "number_of_selfloops")]
    calls += [("single_source_shortest_path_length", (nodes[1],)), ("single_source_dijkstra_path_length", (nodes[1],))]
    calls += [(name, ()) for name in (("strongly_connected_components", "is_arborescence") if graph.is_directed() else ("is_tree",))]

    def found():
        for name, arguments in calls:
            try:
                result = getattr(nx, name)(graph, *arguments, backend="oocgraph")
                yield sorted(map(sorted, result)) if name.endswith("components") else list(result) if name == "isolates" else result
            except nx.NetworkXError as error:
                yield str(error)

    with_tiny = list(found())
    graph.__networkx_cache__.clear()
    monkeypatch.setattr(tiny, "TINY", -1)
    assert list(found()) == with_tiny


ALL_ATTRIBUTES = {
    "k_core": lambda graph: nx.k_core(graph, backend="oocgraph"),
    "ego_graph": lambda graph: nx.ego_graph(graph, 0, backend="oocgraph"),
    "minimum_spanning_tree": lambda graph: nx.minimum_spanning_tree(graph, backend="oocgraph"),
    "minimum_spanning_edges": lambda graph: list(nx.minimum_spanning_edges(graph, backend="oocgraph")),
}


@pytest.mark.parametrize("first", ALL_ATTRIBUTES)
@pytest.mark.parametrize("num_nodes", [12, 400])
def test_weights_are_there_after_a_call_that_needs_all_attributes(num_nodes, first):
    """NetworkX keeps the graph that was converted for that call, and gives it to all later ones."""
    graph = nx.gnm_random_graph(num_nodes, 4 * num_nodes, seed=3)
    graph.add_edges_from(nx.path_graph(num_nodes).edges)
    for i, (_, _, data) in enumerate(graph.edges(data=True)):
        data |= {"weight": 2 + i * 7919 % 5003, "length": 1 + i * 104729 % 7001}
    plain = graph.copy()
    ALL_ATTRIBUTES[first](graph)
    for weight in ("weight", "length", "weight", None):
        found = nx.single_source_dijkstra_path_length(graph, 0, weight=weight or "neither", backend="oocgraph")
        assert dict(found) == nx.single_source_dijkstra_path_length(plain, 0, weight=weight or "neither")
        assert nx.pagerank(graph, weight=weight, backend="oocgraph") == pytest.approx(nx.pagerank(plain, weight=weight), abs=1e-6)
        assert nx.eccentricity(graph, 1, weight=weight, backend="oocgraph") == nx.eccentricity(plain, 1, weight=weight)
    for values, others in zip(nx.hits(graph, backend="oocgraph"), nx.hits(plain), strict=True):
        assert values == pytest.approx(others, abs=1e-6)
    assert nx.eigenvector_centrality(graph, 1000, weight="length", backend="oocgraph") == pytest.approx(
        nx.eigenvector_centrality(plain, 1000, weight="length"), abs=1e-4
    )
    tree = nx.minimum_spanning_tree(graph, weight="length", backend="oocgraph")
    assert tree.size("length") == nx.minimum_spanning_tree(plain, weight="length").size("length")


def test_hubs_that_do_not_converge_are_left_to_networkx():
    """Its method needs fewer iterations."""
    graph = nx.path_graph(30)
    with pytest.raises(NotImplementedError) as raised:
        nx.hits(graph, backend="oocgraph")
    assert "raise max_iter" in str(raised.value.__cause__)
    with nx.config(backend_priority=["oocgraph"]), nx.config.backends.oocgraph(min_edges=0):
        assert nx.hits(graph)[0].keys() == graph.nodes.keys()  # its values differ from call to call
