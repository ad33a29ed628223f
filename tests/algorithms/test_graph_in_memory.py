"""Every function answers for a graph in memory what it answers for its store on disk; edges are used where they are."""

from __future__ import annotations

import networkx as nx
import numpy as np
import pyarrow as pa
import pytest

import oocgraph
from oocgraph import ArgumentError, BudgetError, Resources, open_runtime
from oocgraph.config import setting
from oocgraph.engine.blocks import BlockEngine
from oocgraph.engine.device import DeviceRuntime
from oocgraph.memory import Budget, host_bytes
from tests.cluster.conftest import thread_cluster, threads_client
from tests.cuda_on_cpu.device import CpuDevice

__all__ = ["thread_cluster", "threads_client"]

NUM_IDS = 60
HERE = Resources(device="cpu", threads=2)


def edges_of(seed, *, strings=False):
    """Return a table of the edges of a graph with hubs, and weights; some vertices have only a self-loop."""
    rng = np.random.default_rng(seed)
    source, target = (NUM_IDS * rng.random(240) ** 2).astype(int), rng.integers(0, NUM_IDS, 240)
    source[:5] = target[:5] = NUM_IDS + np.arange(5)
    names = np.array([f"v{i}" for i in range(2 * NUM_IDS)], object) if strings else np.arange(2 * NUM_IDS)
    return pa.table({"source": names[source].tolist(), "target": names[target].tolist(), "w": rng.integers(1, 9, 240).astype(np.float64)})


KINDS = {
    "undirected": ({}, {}),
    "strings": ({"strings": True}, {}),
    "weighted": ({}, {"weight": "w"}),
    "directed": ({}, {"directed": True, "weight": "w"}),
    "self-loops": ({}, {"directed": True, "keep_self_loops": True}),
    "original order": ({}, {"weight": "w"}),
    "locality order": ({}, {"weight": "w"}),
}


@pytest.fixture(scope="module", params=KINDS)
def both(request, tmp_path_factory):
    """Return a graph in memory and its store."""
    made, options = KINDS[request.param]
    edges, path = edges_of(len(request.param), **made), tmp_path_factory.mktemp("graph") / "g.zarr"
    with setting("vertex-order", request.param.partition(" ")[0] if "order" in request.param else "degree"):
        return oocgraph.build_csr(edges, **options), oocgraph.build_csr(edges, path, **options)


def source_of(graph):
    return graph.ids_of([0])[0]


def level_of(graph, result):
    """Of several parents a pull and a push may choose different ones."""
    oocgraph.verify_bfs(graph, result)
    return result.level


def either(graph, directed, undirected):
    return directed if graph.attributes.directed else undirected


COMMON = {
    "bfs": lambda g, **o: level_of(g, oocgraph.bfs(g, source_of(g), **o)),
    "bfs by push": lambda g, **o: oocgraph.bfs(g, [source_of(g), g.ids_of([3])[0]], direction="push", **o),
    "components": oocgraph.connected_components,
    "pagerank": lambda g, **o: oocgraph.pagerank(g, tol=1e-10, **o),
    "personalized": lambda g, **o: oocgraph.personalized_pagerank(g, source_of(g), **o),
    "spmv": lambda g, **o: oocgraph.spmv(g, np.arange(float(g.num_vertices)), transpose=True, **o),
    "hits": oocgraph.hits,
    "katz": lambda g, **o: oocgraph.katz_centrality(g, alpha=0.01, **o),
    "betweenness": oocgraph.betweenness_centrality,
    "sources": lambda g, **o: oocgraph.multi_source_bfs(g, g.ids_of([0, 5]).tolist(), **o),
    "closeness": oocgraph.closeness_centrality,
    "harmonic": oocgraph.harmonic_centrality,
    "paths": lambda g, **o: oocgraph.sssp(g, source_of(g), **o) if g.attributes.weighted else None,
    "cores": lambda g, **o: oocgraph.core_numbers(g, **o) if not g.attributes.num_self_loops else None,
}
UNDIRECTED = {
    "triangles": oocgraph.triangles, "clustering": oocgraph.clustering, "transitivity": oocgraph.transitivity,
    "forest": oocgraph.minimum_spanning_forest, "blocks": oocgraph.biconnected_components, "labels": oocgraph.label_propagation,
    "louvain": oocgraph.louvain, "colours": oocgraph.greedy_coloring, "members": oocgraph.maximal_independent_set,
}  # fmt: skip
DIRECTED = {"strong components": oocgraph.strongly_connected_components, "is acyclic": oocgraph.is_directed_acyclic_graph}


def functions_for(graph):
    return COMMON | either(graph, DIRECTED, UNDIRECTED)


def values_of(result):
    """Everything that a result says of vertices, as one comparable value."""
    if result is None or not hasattr(result, "columns"):
        return np.asarray(result, float).tolist() if result is not None else None
    return {name: np.asarray(getattr(result, name)).tolist() for name in ("vertices", *result.columns)}


def test_every_function_answers_as_on_disk(both):
    """And leaves the graph as it was."""
    graph, store = both
    before = {name: values.tobytes() for name, values in graph.held.items()}
    for name, function in functions_for(store).items():
        here = function(graph, resources=HERE)
        assert values_of(here) == values_of(function(store, resources=HERE)), name
        assert getattr(here, "bytes_requested", 0) == 0, name
    assert before == {name: values.tobytes() for name, values in graph.held.items()}


def test_a_runtime_answers_as_on_disk(both):
    graph, store = both
    only = {name: function for name, function in COMMON.items() if name != "components"}
    with open_runtime(graph, resources=HERE) as here, open_runtime(store, resources=HERE) as there:
        for name, function in only.items():
            for _ in range(2):
                assert values_of(function(graph, runtime=here)) == values_of(function(store, runtime=there)), name
        with pytest.raises(ArgumentError, match=r"the runtime has loaded memory://\d+, not"):
            oocgraph.bfs(store, source_of(store), runtime=here)


def test_results_are_judged_like_others(both):
    graph, _ = both
    oocgraph.verify_bfs(graph, oocgraph.bfs(graph, source_of(graph)))
    oocgraph.verify_components(graph, oocgraph.connected_components(graph))
    if graph.attributes.weighted:
        oocgraph.verify_sssp(graph, oocgraph.sssp(graph, source_of(graph)))
    if not graph.attributes.num_self_loops:
        oocgraph.verify_cores(graph, oocgraph.core_numbers(graph))


def test_a_result_of_the_store_is_one_of_the_graph(both):
    """They are the same graph."""
    graph, store = both
    oocgraph.verify_bfs(graph, oocgraph.bfs(store, source_of(store)))


def test_matrices_and_files_are_those_of_the_store(both, tmp_path):
    graph, store = both
    assert (graph.to_scipy() != store.to_scipy()).nnz == 0
    for name, one in (("here", graph), ("there", store)):
        oocgraph.export_graph(one, tmp_path / f"{name}.parquet")
    assert pa.parquet.read_table(tmp_path / "here.parquet").equals(pa.parquet.read_table(tmp_path / "there.parquet"))


def test_partitions_are_those_of_the_store(both, tmp_path):
    graph, store = both
    here, there = (oocgraph.partition_graph(one, 3, policy="CVC", path=tmp_path / name) for one, name in zip(both, "ab", strict=True))
    for mine, theirs in zip(here, there, strict=True):
        assert mine.global_id().tolist() == theirs.global_id().tolist()
    found = oocgraph.bfs(graph, source_of(graph), partition=here)
    assert found.level.tolist() == oocgraph.bfs(store, source_of(store)).level.tolist()
    with pytest.raises(ArgumentError, match="is in no local folder: pass the folder of partitions"):
        oocgraph.bfs(graph, source_of(graph), partition="2d", resources=Resources(num_partitions=2))


def test_a_condensation_in_memory_is_that_on_disk(tmp_path):
    edges = [1, 2, 1, 2, 7, 8], [2, 1, 7, 7, 9, 8]
    graph = oocgraph.build_csr(edges, directed=True)
    small, stored = oocgraph.condensation(graph), oocgraph.condensation(graph, tmp_path / "small.zarr")
    assert small.attributes.source == stored.attributes.source == f"condensation of {graph.url}"
    assert small.to_scipy().toarray().tolist() == stored.to_scipy().toarray().tolist()


def test_an_empty_graph_is_a_graph():
    graph = oocgraph.build_csr((np.empty(0, np.int64), np.empty(0, np.int64)), num_vertices=3)
    assert oocgraph.bfs(graph, 1).level.tolist() == [-1, 0, -1]
    assert oocgraph.connected_components(graph).num_components == 3
    assert oocgraph.pagerank(graph).rank.tolist() == [1 / 3] * 3
    assert oocgraph.core_numbers(graph).core_number.tolist() == [0, 0, 0]


def test_louvain_agrees_with_its_own_communities():
    """Of a graph whose communities are known; nothing is written anywhere."""
    peer = nx.connected_caveman_graph(6, 5)
    found = oocgraph.louvain(oocgraph.build_csr(peer))
    assert found.num_communities == 6
    assert found.modularity == pytest.approx(nx.community.modularity(peer, [set(range(5 * i, 5 * i + 5)) for i in range(6)]))


class TestWhereEdgesAre:
    """Nothing of a graph in memory is copied or charged again."""

    def test_a_search_and_streams_have_the_arrays_themselves(self):
        graph = oocgraph.build_csr(edges_of(1), directed=True)
        with open_runtime(graph, resources=HERE) as runtime:
            for name in ("out/indices", "in/indices", "in/planes/indices"):
                assert np.shares_memory(runtime.resident[name], graph.held[name])
            oocgraph.pagerank(graph, runtime=runtime)
            (stream, kept_bytes), *_ = runtime._streams.values()
            with stream.piece(0) as piece:
                assert np.shares_memory(piece.indices, graph.held["in/indices"])
                assert np.shares_memory(piece.pointers, graph.held["in/indptr"])
            assert kept_bytes < 1 << 16
            assert stream.num_kept == len(stream.parts)

    def test_blocks_are_the_array_itself(self):
        graph = oocgraph.build_csr(edges_of(2), weight="w")
        with BlockEngine(graph, "weight", Budget(host_bytes() + (64 << 20)), threads=2, beside={}) as engine:
            assert engine._is_whole()
            assert np.shares_memory(engine._held.targets, graph.held["out/indices"])
            assert np.shares_memory(engine._held.weights, graph.held["out/weight"])

    def test_a_budget_without_room_for_a_copy_is_enough(self, steady_memory):
        """For what a search holds beside the edges, and for writing its result."""
        edges = np.random.default_rng(4).integers(0, 5000, (2, 12_000_000))
        graph = oocgraph.build_csr(tuple(edges))
        assert sum(values.nbytes for values in graph.held.values()) > 60 << 20
        found = oocgraph.bfs(graph, source_of(graph), memory_budget=host_bytes() + (45 << 20))
        assert (found.num_reached, found.bytes_requested) == (5000, 0)
        with pytest.raises(BudgetError, match=r"set memory_budget to at least \d+M"):
            oocgraph.bfs(graph, source_of(graph), memory_budget=host_bytes() + (1 << 20))

    def test_a_graph_of_many_blocks_is_worked_on_by_many_threads(self):
        """Core numbers and shortest paths of more edges than one block has."""
        rng = np.random.default_rng(5)
        edges = pa.table({"source": rng.integers(0, 3000, 60_000), "target": rng.integers(0, 3000, 60_000), "w": rng.random(60_000)})
        graph = oocgraph.build_csr(edges, weight="w")
        peer = graph.to_scipy(weight="weight", dtype=np.float64)
        with BlockEngine(graph, None, Budget(host_bytes() + (64 << 20)), threads=2, beside={}) as engine:
            assert engine.num_blocks > 4
        from scipy.sparse.csgraph import dijkstra

        distance = dijkstra(peer, indices=7)
        assert oocgraph.sssp(graph, 7, resources=HERE).distance == pytest.approx(distance)


@pytest.mark.shim
def test_a_device_searches_a_graph_in_memory():
    graph = oocgraph.build_csr(edges_of(3), directed=True)
    with DeviceRuntime.open(graph, device=CpuDevice()) as runtime:
        assert oocgraph.bfs(graph, 0, runtime=runtime).level.tolist() == oocgraph.bfs(graph, 0, resources=HERE).level.tolist()


class TestClusters:
    """A graph in memory is in this process."""

    def test_a_client_is_refused_with_a_remedy(self, threads_client):
        graph = oocgraph.build_csr(([0, 1], [1, 2]))
        refusal = r"client is given, but memory://\d+ is in the memory of this process; write it to a folder that all workers see, by its "
        for function in (oocgraph.bfs, oocgraph.sssp):
            with pytest.raises(ArgumentError, match=refusal):
                function(graph, 0, client=threads_client)
        for function in (oocgraph.pagerank, oocgraph.hits, oocgraph.connected_components, oocgraph.core_numbers, open_runtime):
            with pytest.raises(ArgumentError, match=refusal):
                function(graph, resources=Resources(client=threads_client))
        with pytest.raises(ArgumentError, match=refusal):
            oocgraph.spmv(graph, np.ones(3), client=threads_client)

    def test_a_current_client_is_not_taken(self, threads_client):
        graph = oocgraph.build_csr(([0, 1], [1, 2]))
        with threads_client.as_current():
            assert isinstance(oocgraph.bfs(graph, 0), oocgraph.BFSResult)
            assert oocgraph.pagerank(graph).rank.argmax() == 1

    def test_the_store_that_it_is_saved_to_is_taken(self, threads_client, tmp_path):
        store = oocgraph.build_csr(([0, 1], [1, 2])).save(tmp_path / "g.zarr")
        assert oocgraph.bfs(store, 0, client=threads_client).level.compute().tolist() == [0, 1, 2]


def test_stored_bytes_are_checked_of_stores_only():
    with pytest.raises(ArgumentError, match="is in memory, and has no stored bytes to check; check the store that its method save writes"):
        oocgraph.check_store(oocgraph.build_csr(([0], [1])))
