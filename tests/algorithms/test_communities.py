"""Communities: label propagation and Louvain's method, judged by NetworkX's modularity and by plain Python that shares no code."""

from __future__ import annotations

import os
from collections import defaultdict
from dataclasses import replace
from functools import partial

import networkx as nx
import numpy as np
import pandas as pd
import pytest

import oocgraph
from oocgraph import Resources
from oocgraph.algorithms.sweeping import Call
from oocgraph.config import setting
from oocgraph.engine import quotient
from oocgraph.engine.sweeps import Needs
from oocgraph.errors import ArgumentError, BudgetError, ConvergenceError, CorruptStoreError, OutputError
from oocgraph.ingest.generators.kronecker import KroneckerEdges
from oocgraph.kernels.quotient import edges_between
from oocgraph.sparse import edge_stream
from oocgraph.store.graph import open_graph
from tests.graphs import hubs
from tests.stores import rewrite, string_store


def simple(graph):
    """Return a graph without weights and self-loops, its vertices numbered from 0."""
    found = nx.convert_node_labels_to_integers(nx.Graph(graph.edges()))
    found.remove_edges_from(list(nx.selfloop_edges(found)))
    return found


def kronecker(scale):
    source, target = KroneckerEdges(scale, edge_factor=16, seed=1).edges(0, 16 << scale)
    return simple(nx.Graph(zip(source.tolist(), target.tolist(), strict=True)))


GRAPHS = {
    "karate": lambda: simple(nx.karate_club_graph()),
    "planted": lambda: nx.planted_partition_graph(20, 30, 0.4, 0.01, seed=1),
    "lfr": lambda: simple(nx.LFR_benchmark_graph(1000, 3, 1.5, 0.3, average_degree=10, min_community=30, seed=10)),
    "kronecker": lambda: kronecker(10),
    "grid": lambda: simple(nx.grid_2d_graph(40, 40)),
    "geometric": lambda: simple(nx.random_geometric_graph(1000, 0.06, seed=3)),
}


def built(path, graph, **options):
    ends = np.array(graph.edges()).reshape(-1, 2).T
    return oocgraph.build_csr((ends[0], ends[1]), path, num_vertices=graph.number_of_nodes(), **options)


def weighted(path, num_edges=300, **options):
    """Return a store of weights 0 to 6 with isolated vertices, and the same graph of NetworkX."""
    source, target = hubs(7, 70, num_edges)
    graph = nx.Graph()
    graph.add_nodes_from(range(80))
    graph.add_weighted_edges_from((u, v, (3 * u + 5 * v) % 7) for u, v in zip(source.tolist(), target.tolist(), strict=True) if u != v)
    edges = pd.DataFrame(list(graph.edges(data="weight")), columns=["source", "target", "weight"])
    return oocgraph.build_csr(edges, path, weight="weight", num_vertices=80, **options), graph


def sets_of(result):
    """Return the communities, which must be named after their smallest ids."""
    found = defaultdict(set)
    for vertex, name in zip(result.vertices.tolist(), result.community.tolist(), strict=True):
        found[name].add(vertex)
    assert all(name == min(members) for name, members in found.items())
    assert len(found) == result.num_communities
    return list(found.values())


def judged(result, graph, **options):
    """Compare the modularity with NetworkX's, and return the communities."""
    found = sets_of(result)
    assert result.modularity == pytest.approx(nx.community.modularity(graph, found, **options), abs=1e-12)
    return found


def assert_stable(result, graph, weight=None):
    """Every vertex has a label that is among the most frequent of its neighbours: what label propagation promises."""
    name = dict(zip(result.vertices.tolist(), result.community.tolist(), strict=True))
    for vertex in graph:
        votes = defaultdict(float)
        for neighbour, data in graph[vertex].items():
            votes[name[neighbour]] += 1 if weight is None else data[weight]
        assert votes[name[vertex]] == max(votes.values(), default=0), vertex


@pytest.mark.parametrize("piece", [None, 16])
@pytest.mark.parametrize("name", ["karate", "planted", "kronecker", "grid"])
def test_labels_are_among_the_most_frequent_of_neighbours(tmp_path, monkeypatch, name, piece):
    """On bipartite graphs, too, where labels that all change at once are exchanged for ever."""
    if piece:
        monkeypatch.setattr(edge_stream, "PIECE_BYTES", piece)
    graph = GRAPHS[name]()
    result = oocgraph.label_propagation(built(tmp_path / "g.zarr", graph), seed=4)
    judged(result, graph)
    assert_stable(result, graph)


@pytest.mark.parametrize("seed", range(5))
def test_labels_by_weight(tmp_path, seed):
    store, graph = weighted(tmp_path / "g.zarr")
    result = oocgraph.label_propagation(store, seed=seed)
    assert_stable(result, graph, "weight")
    judged(result, graph, weight="weight")
    assert_stable(oocgraph.label_propagation(store, weight=False), graph)


def test_planted_communities_are_found(tmp_path):
    graph = nx.planted_partition_graph(5, 30, 0.8, 0.005, seed=1)
    store, planted = built(tmp_path / "g.zarr", graph), sorted(map(sorted, graph.graph["partition"]))
    assert sorted(map(sorted, sets_of(oocgraph.louvain(store)))) == planted
    assert sorted(map(sorted, sets_of(oocgraph.label_propagation(store)))) == planted


@pytest.mark.one_in(3)
@pytest.mark.parametrize(("name", "piece"), [*((name, None) for name in GRAPHS), ("kronecker", 256), ("grid", 256), ("geometric", 256)])
def test_modularity_is_close_to_networkxs(tmp_path, monkeypatch, name, piece):
    """With one batch of rows, or many; on average, since about one seed in ten ends some per cent below."""
    if piece:
        monkeypatch.setattr(edge_stream, "PIECE_BYTES", piece)
    graph = GRAPHS[name]()
    store = built(tmp_path / "g.zarr", graph)
    results = [oocgraph.louvain(store, seed=seed) for seed in range(1, 9)]
    judged(results[0], graph)
    found = [one.modularity for one in results]
    best = nx.community.modularity(graph, nx.community.louvain_communities(graph, seed=1))
    assert np.mean(found) >= 0.99 * best
    assert sum(one >= 0.99 * best for one in found) >= 6
    assert min(found) >= 0.93 * best


def test_weights_and_resolution(tmp_path):
    store, graph = weighted(tmp_path / "g.zarr")
    for resolution in (0.5, 1.0, 2.0):
        result = oocgraph.louvain(store, resolution=resolution)
        options = {"weight": "weight", "resolution": resolution}
        judged(result, graph, **options)
        best = nx.community.modularity(graph, nx.community.louvain_communities(graph, seed=1, **options), **options)
        assert result.modularity >= 0.97 * best
    plain = oocgraph.louvain(store, weight=False)
    judged(plain, graph, weight=None)
    graph.remove_edges_from([(u, v) for u, v, w in graph.edges(data="weight") if not w])
    assert oocgraph.louvain(store, resolution=0).num_communities == nx.number_connected_components(graph)


def test_self_loops_and_duplicates_count_as_with_networkx(tmp_path):
    """A self-loop twice to its vertex, a duplicate again."""
    source, target = hubs(9, 40, 150)
    store = oocgraph.build_csr((source, target), tmp_path / "g.zarr", keep_self_loops=True, duplicates="keep")
    graph = nx.Graph()
    for u, v in zip(source.tolist(), target.tolist(), strict=True):
        graph.add_edge(u, v, weight=graph.get_edge_data(u, v, {"weight": 0})["weight"] + 1)
    assert store.attributes.num_self_loops
    judged(oocgraph.louvain(store), graph, weight="weight")
    result = oocgraph.label_propagation(store)
    judged(result, graph, weight="weight")
    assert_stable(result, graph, "weight")


@pytest.mark.parametrize("seed", range(1, 9))
def test_two_vertices_do_not_change_places(seed):
    """Ends of an edge that is a component are one community, however little of the modularity that is."""
    dense = nx.disjoint_union(nx.complete_graph(60), nx.complete_graph(60))
    graph = nx.disjoint_union_all([dense, *[nx.complete_graph(2)] * 40])
    ends = np.array(graph.edges()).T
    found = sets_of(oocgraph.louvain(oocgraph.build_csr((ends[0], ends[1])), seed=seed))
    assert sorted(map(len, found)) == [2] * 40 + [60] * 2


@pytest.mark.parametrize("seed", range(1, 5))
def test_a_self_loop_does_not_keep_neighbours_apart(seed):
    edges = pd.DataFrame({"source": [0, 0], "target": [0, 1], "weight": [300.0, 1.0]})
    result = oocgraph.louvain(oocgraph.build_csr(edges, weight="weight", keep_self_loops=True), seed=seed)
    assert (result.num_communities, result.modularity) == (1, 0)


def never_by_rows(monkeypatch):
    """Have graphs of communities built from streams of edges, as where memory is short."""
    monkeypatch.setattr(quotient, "rows_bytes", lambda store, num_ids: 1 << 50)


@pytest.mark.parametrize("kind", [None, "uint8", "int64", "float32", "float64"])
def test_communities_depend_on_the_seed_alone(tmp_path, monkeypatch, kind):
    monkeypatch.setattr(edge_stream, "PIECE_BYTES", 1 << 10)  # 40 pieces, 5 batches
    source, target = hubs(5, 3000, 5000)
    table = {"source": source, "target": target}
    if kind:
        table["weight"] = (np.random.default_rng(4).random(source.size) * 9 + 1).astype(kind)
    graph = oocgraph.build_csr(table, tmp_path / "g.zarr", weight="weight" if kind else None)
    for function in (oocgraph.louvain, oocgraph.label_propagation):
        first = function(graph, resources=Resources(threads=1))
        with pytest.raises(BudgetError, match="set memory_budget to at least") as refused:
            function(graph, memory_budget="20M")
        least = int(str(refused.value).rpartition("at least ")[2].rstrip("M")) + 32  # this process may have grown by the next call
        with oocgraph.open_runtime(graph) as runtime:
            others = [
                function(graph, resources=Resources(threads=3)), function(graph, memory_budget=f"{least}M"),
                function(graph, runtime=runtime), function(graph, runtime=runtime),
            ]  # fmt: skip
        for other in others:
            np.testing.assert_array_equal(other.community, first.community)
            assert other.modularity == first.modularity
        assert not np.array_equal(function(graph, seed=2).community, first.community)
        assert first.bytes_requested >= graph.edge_bytes


@pytest.mark.parametrize("order", ["locality", "original"])
def test_other_vertex_orders_and_codecs(tmp_path, order):
    graph = GRAPHS["planted"]()
    with setting("vertex-order", order):
        store = built(tmp_path / "g.zarr", graph)
    for one in (store, open_graph(rewrite(tmp_path / "g.zarr", tmp_path / "z.zarr", codec="zstd"))):
        judged(oocgraph.louvain(one), graph)
        assert_stable(oocgraph.label_propagation(one), graph)


def test_a_result_is_read_under_the_users_ids(tmp_path):
    graph = string_store(tmp_path / "s.zarr", ["b", "a", "c", "d"], ["a", "c", "b", "e"], others=["alone"])
    for function in (oocgraph.louvain, oocgraph.label_propagation):
        result = function(graph)
        assert result.vertices.tolist() == ["a", "alone", "b", "c", "d", "e"]
        assert result.community.tolist() == ["a", "alone", "a", "a", "d", "d"]
        assert result.of("e") == "d"
        assert result.num_communities == result.summary()["num_communities"] == 3
        assert set(result.to_pandas()) == {"vertex", "community"}


def test_a_graph_without_edges(tmp_path):
    graph = oocgraph.build_csr(([], []), tmp_path / "g.zarr", num_vertices=3)
    for function in (oocgraph.louvain, oocgraph.label_propagation):
        result = function(graph)
        assert result.community.tolist() == [0, 1, 2]
        assert (result.num_communities, result.modularity) == (3, 0)


def test_weights_of_zero_join_nothing(tmp_path):
    import pandas as pd

    table = pd.DataFrame({"source": [1, 2], "target": [2, 3], "weight": [0.0, 0.0]})
    graph = oocgraph.build_csr(table, tmp_path / "g.zarr", weight="weight")
    for function in (oocgraph.louvain, oocgraph.label_propagation):
        assert function(graph).community.tolist() == [1, 2, 3]


def test_quotient_graphs_are_removed(tmp_path, monkeypatch):
    """Also after an error, and from the folder that is configured."""
    folder, other = tmp_path / "graphs", tmp_path / "other"
    other.mkdir()
    graph = built(folder / "g.zarr", GRAPHS["kronecker"]())  # the same with any NetworkX: it takes several quotients
    seen = []
    build = quotient.build_with_report

    def noted(source, path, options):
        seen.append(path.parent.parent)
        if path.parent.parent == other and len(list(path.parent.glob("*.zarr"))) == 1:
            raise KeyboardInterrupt
        return build(source, path, options)

    monkeypatch.setattr(quotient, "build_with_report", noted)
    never_by_rows(monkeypatch)
    oocgraph.louvain(graph, seed=3)
    num_built = len(seen)
    with setting("result-folder", str(other)), pytest.raises(KeyboardInterrupt):
        oocgraph.louvain(graph, seed=3)
    assert num_built > 1
    assert set(seen) == {folder, other}
    assert (os.listdir(folder), os.listdir(other)) == (["g.zarr"], [])


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_folder_that_cannot_be_written_is_said(tmp_path):
    graph = built(tmp_path / "g.zarr", GRAPHS["karate"]())
    tmp_path.chmod(0o500)
    with pytest.raises(OutputError, match=r"set oocgraph\.result-folder"):
        oocgraph.louvain(graph)
    tmp_path.chmod(0o700)


def test_what_makes_no_sense_is_refused(tmp_path):
    import pandas as pd

    directed = oocgraph.build_csr(hubs(6, 50, 300), tmp_path / "d.zarr", directed=True)
    table = pd.DataFrame({"source": [1, 2], "target": [2, 3], "weight": [1.0, -2.0]})
    negative = oocgraph.build_csr(table, tmp_path / "n.zarr", weight="weight")
    for function in (oocgraph.louvain, oocgraph.label_propagation):
        with pytest.raises(ArgumentError, match=r"is directed, and .* takes undirected graphs; build it with directed=False"):
            function(directed)
        with pytest.raises(ArgumentError, match="weight has negative or infinite weights, or NaN"):
            function(negative)
        for weights, said in (
            ([np.nan, 1, 1, 1], "or infinite weights, or NaN"), ([1, np.inf, 1, 1], "or infinite weights, or NaN"),
            ([1e200] * 4, r"sum of weight is 4e\+200, whose square"), ([1e-300] * 4, "sum of weight is 4e-300, whose square"),
        ):  # fmt: skip
            odd = rewrite(negative.url, tmp_path / "o.zarr", arrays={"out/weight": np.array(weights, float)})
            with pytest.raises(ArgumentError, match=said):
                function(odd)
        with pytest.raises(ArgumentError, match="'w' is no numeric edge column"):
            function(negative, weight="w")
        assert function(negative, weight=False).community.size == 3
    graph = built(tmp_path / "g.zarr", GRAPHS["grid"]())
    for options, said in (({"resolution": -1}, "resolution is -1"), ({"threshold": "x"}, "threshold is 'x'")):
        with pytest.raises(ArgumentError, match=said):
            oocgraph.louvain(graph, **options)
    with pytest.raises(ArgumentError, match="max_iter is 0"):
        oocgraph.label_propagation(graph, max_iter=0)
    with pytest.raises(ConvergenceError, match=r"after 1 iterations \d+ vertices must look at their neighbours again; raise max_iter"):
        oocgraph.label_propagation(graph, max_iter=1)


@pytest.mark.parametrize("kind", [None, "bool", "uint8", "int32", "uint64", "float64"])
@pytest.mark.parametrize("num_groups", [1, 7, 300, 500])
def test_rows_of_a_quotient_graph_are_those_that_a_build_makes(tmp_path, monkeypatch, kind, num_groups):
    """Attribute by attribute, bit by bit; and those of the graph that it has in turn."""
    monkeypatch.setattr(edge_stream, "PIECE_BYTES", 1 << 10)
    rng = np.random.default_rng(7)
    source, target = rng.integers(0, 500, (2, 1500))
    table = {"source": source, "target": target}
    if kind:
        table["weight"] = rng.integers(0, 9, source.size).astype(kind)
    graph = oocgraph.build_csr(table, tmp_path / "g.zarr", weight="weight" if kind else None, keep_self_loops=True)
    dtype = np.dtype(np.int64 if kind else np.uint32)

    total = 2 * float(np.sum(table.get("weight", source.size)))
    scale = quotient.scale_of(graph, kind and "weight", total)
    assert (scale == 1) == (kind != "float64")

    def in_turn(by_rows):
        """Return the quotient graph of a quotient graph, and that one."""
        made, one, column, units = [], Call("louvain", graph, None, Resources(threads=2), None, None), kind and "weight", scale
        for count in (num_groups, 3):
            n = one.store.num_rows
            group = np.random.default_rng(count).integers(0, count, n).astype(one.store.index_dtype)
            needs = Needs(vectors={}, result_bytes=0, column=column, vertex_kernels=quotient.quotient_calls(one.store, column, dtype))
            options = {"path": None if by_rows else tmp_path / f"{count}.zarr", "dtype": dtype, "scale": units, "threads": 2}
            found, _ = one.run(needs, partial(quotient.build_quotient, group=group, num_groups=count, **options))
            made.append(found)
            one, column, units = one.part(found.store), "weight", 1.0
        return made

    quotient.load_builds()
    for rows, streamed in zip(in_turn(True), in_turn(False), strict=True):
        assert rows.crossing == streamed.crossing
        assert replace(rows.store.attributes, source="") == replace(streamed.store.attributes, source="")
        for name, values in rows.store.held.items():
            stored = streamed.store.read(name)
            assert values.dtype == stored.dtype
            np.testing.assert_array_equal(values, stored)


def test_rows_are_written_where_there_is_room(tmp_path, monkeypatch):
    """Then nothing is written to disk; the communities are the same."""
    graph, _ = weighted(tmp_path / "g.zarr")
    found, used = oocgraph.louvain(graph), []
    build = quotient.build_with_report
    monkeypatch.setattr(quotient, "build_with_report", lambda *given: used.append(given) or build(*given))
    assert oocgraph.louvain(graph) == found
    assert not used
    never_by_rows(monkeypatch)
    assert oocgraph.louvain(graph) == found
    assert used


@pytest.mark.parametrize("factor", [1e-140, 1e-30, 1.0, 1e30, 1e140])
def test_communities_do_not_depend_on_the_unit_of_weights(tmp_path, factor):
    """Weights are counted in units of the 61st bit of their sum."""
    graph, _ = weighted(tmp_path / "g.zarr")
    table = next(iter(graph.edges())).to_pydict()
    table["weight"] = [(one + 0.1) * factor for one in table["weight"]]
    result = oocgraph.louvain(oocgraph.build_csr(table, weight="weight"))
    found = nx.Graph()
    found.add_weighted_edges_from(zip(*table.values(), strict=True))
    communities = defaultdict(set)
    for vertex, community in result.items():
        communities[community].add(vertex)
    assert result.modularity == pytest.approx(nx.community.modularity(found, communities.values()), abs=1e-9)
    assert result.modularity > 0.1


@pytest.mark.parametrize("room", [1, 3, 1000])
@pytest.mark.parametrize("slots", [1, 4, 1 << 10])
def test_edges_between_groups_are_added_up(room, slots):
    """Whatever the table and the output have room for."""
    rng = np.random.default_rng(3)
    graph = nx.gnm_random_graph(40, 200, seed=2)
    matrix = nx.to_scipy_sparse_array(graph, weight=None, format="csr")
    weights = rng.integers(1, 9, matrix.nnz).astype(float) / 4
    group = rng.integers(0, 6, 40).astype(np.uint32)
    at, total = np.zeros(2, np.int64), np.zeros(1, np.int64)
    table = np.zeros((slots, 2), np.int64), np.zeros(slots, np.int64), np.zeros(slots, np.int64)
    found, count = defaultdict(float), room
    while count == room:
        source, target, weight = np.empty(room, np.int64), np.empty(room, np.int64), np.empty(room, np.int64)
        indptr, indices = matrix.indptr.astype(np.int64), matrix.indices.astype(np.uint32)
        count = edges_between(indptr, 0, 0, indices, weights, group, 4.0, at, total, *table, source, target, weight)
        for a, b, w in zip(source[:count].tolist(), target[:count].tolist(), weight[:count].tolist(), strict=True):
            found[a, b] += w / 4
    expected = defaultdict(float)
    for u, v, w in zip(*matrix.tocoo().coords, weights, strict=True):
        if group[u] < group[v]:
            expected[int(group[u]), int(group[v])] += w
    assert found == expected
    assert total[0] == 4 * sum(expected.values())


def test_a_sweep_reads_the_edges_once(tmp_path, monkeypatch):
    """With room for none of them: no more than 1.1 times the bytes of neighbours, weights and row starts, also of graphs of communities."""
    monkeypatch.setattr(edge_stream, "PIECE_BYTES", 1 << 16)
    monkeypatch.setattr(edge_stream.EdgeStream, "_keep", lambda self, budget: 0)
    run, swept = Call.run, []

    def counted(call, needs, compute):
        def noted(sweeps):
            found = compute(sweeps)
            names = ["indptr", "indices", *([needs.column] if needs.column else [])]
            arrays = [call.store.array(f"out/{name}") for name in names]
            swept.append(sweeps.num_sweeps * sum(array.length * array.dtype.itemsize for array in arrays))
            return found

        return run(call, needs, noted)

    monkeypatch.setattr(Call, "run", counted)
    graph = oocgraph.generate_grid((400, 400), tmp_path / "g.zarr")
    for function in (oocgraph.louvain, oocgraph.label_propagation):
        swept.clear()
        result = function(graph)
        assert result.bytes_requested <= 1.1 * sum(swept)
        assert result.bytes_requested > 0.9 * sum(swept)


@pytest.mark.parametrize("function", [oocgraph.label_propagation, oocgraph.louvain])
def test_rows_that_are_longer_than_the_degrees_say_are_refused(tmp_path, function):
    """Memory of each thread is as long as the longest list."""
    vertices = np.arange(500)
    store = oocgraph.build_csr((np.tile(vertices, 3), np.concatenate([(vertices + i) % 500 for i in (1, 2, 3)])), tmp_path / "g.zarr")
    pointers = store.read("out/indptr").copy()
    pointers[1:400] = pointers[400]
    odd = rewrite(store.url, tmp_path / "o.zarr", arrays={"out/indptr": pointers})
    with pytest.raises(CorruptStoreError, match=r"by indptr a row from row 0 on has 2,400 entries, by the degrees none has more than 6"):
        function(odd)
