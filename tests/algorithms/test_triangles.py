"""Triangles, clustering and transitivity are NetworkX's, at any budget and with any number of threads."""

from __future__ import annotations

import networkx as nx
import numpy as np
import pandas as pd
import pytest

import oocgraph
from oocgraph import Resources
from oocgraph.algorithms import triangles as algorithm
from oocgraph.errors import ArgumentError, BudgetError
from oocgraph.kernels import triangles as kernels
from oocgraph.sparse import edge_stream
from tests.graphs import hubs
from tests.reference_build import reference_build
from tests.stores import rewrite, string_store

NUM_IDS = 90


def peer_of(source, target, num_ids=NUM_IDS):
    graph = nx.Graph()
    graph.add_nodes_from(range(num_ids))
    graph.add_edges_from(zip(source.tolist(), target.tolist(), strict=True))
    return graph


def by_vertex(values):
    """Return values of 0, 1, ... in this order."""
    return [values[v] for v in range(len(values))]


def narrow(monkeypatch, num_entries):
    """Hold no more neighbours at a time than the longest list has, or a few."""
    needs = algorithm._needs

    def less(store):
        found = needs(store)
        longest = (1 + int(store.attributes.num_stored_edges**0.5)) * store.index_dtype.itemsize
        room = max(longest, num_entries * store.index_dtype.itemsize)
        object.__setattr__(found, "room_bytes", (room, room))
        return found

    monkeypatch.setattr(algorithm, "_needs", less)


@pytest.mark.one_in(4)
@pytest.mark.parametrize("order", ["degree", "original"])
@pytest.mark.parametrize("loops", [False, True])
@pytest.mark.parametrize("seed", range(3))
def test_values_are_networkxs(tmp_path, monkeypatch, order, loops, seed):
    """In tiny pieces and several passes, with counters for a few vertices only, and in one piece at once."""
    source, target = (np.r_[one, 3, 7] for one in hubs(seed, 80, [60, 300, 900][seed]))
    reference_build(source, target, tmp_path / "g", keep_self_loops=loops, vertex_order=order, implied=(0, NUM_IDS))
    graph, peer = oocgraph.open_graph(tmp_path / "g"), peer_of(source, target)
    assert (graph.attributes.num_self_loops > 0) == loops
    for options, is_small in (({}, False), ({"threads": 1}, True), ({"threads": 3}, True)):
        with monkeypatch.context() as patched:
            if is_small:
                patched.setattr(edge_stream, "PIECE_BYTES", 16)
                patched.setattr(kernels, "MARKED", 5)
                narrow(patched, 20)
            found = oocgraph.triangles(graph, resources=Resources(**options))
        assert (found.num_passes > 1) == is_small
        assert found.triangles.tolist() == by_vertex(nx.triangles(peer))
        assert found.clustering.tolist() == by_vertex(nx.clustering(peer))
        assert found.num_triangles == sum(nx.triangles(peer).values()) // 3
        assert found.transitivity == nx.transitivity(peer)
        np.testing.assert_allclose(found.average_clustering, nx.average_clustering(peer), rtol=1e-13)
    assert oocgraph.clustering(graph).clustering.tolist() == found.clustering.tolist()
    assert oocgraph.transitivity(graph) == found.transitivity


@pytest.mark.parametrize(
    ("peer", "expected"),
    [
        (nx.complete_graph(7), 35), (nx.star_graph(9), 0), (nx.path_graph(300), 0), (nx.cycle_graph(3), 1), (nx.wheel_graph(12), 11),
        (nx.complete_bipartite_graph(5, 6), 0), (nx.windmill_graph(9, 4), 36),
        (nx.disjoint_union(nx.complete_graph(5), nx.cycle_graph(4)), 10),
    ],
)  # fmt: skip
def test_shapes_whose_triangles_are_known(tmp_path, peer, expected):
    graph = oocgraph.build_csr(np.array(peer.edges), tmp_path / "g", num_vertices=peer.number_of_nodes() + 2)
    found = oocgraph.triangles(graph)
    assert found.num_triangles == expected
    assert found.triangles.tolist() == [*by_vertex(nx.triangles(peer)), 0, 0]


@pytest.mark.parametrize("order", ["degree", "locality", "original"])
def test_counts_of_many_vertices_are_those_of_matrix_products(tmp_path, monkeypatch, order):
    """The diagonal of the third power of the matrix, with marks that are bits, ranges that end anywhere, and several threads."""
    with oocgraph.config.setting("vertex-order", order):
        graph = oocgraph.build_csr(hubs(7, 3000, 40000), tmp_path / "g", num_vertices=3100)
    matrix = graph.to_scipy(dtype=np.int64)
    expected = (matrix @ matrix).multiply(matrix).sum(axis=1) // 2
    monkeypatch.setattr(edge_stream, "PIECE_BYTES", 1 << 12)
    for marked, room in ((1 << 14, None), (100, 5000), (0, 30000)):
        with monkeypatch.context() as patched:
            patched.setattr(kernels, "MARKED", marked)
            if room:
                narrow(patched, room)
            found = oocgraph.triangles(graph, resources=Resources(threads=3))
        np.testing.assert_array_equal(found.triangles, np.asarray(expected).ravel())
        assert (found.num_passes > 1) == (room is not None)


def test_no_bit_depends_on_threads_budget_or_runtime(tmp_path, monkeypatch):
    monkeypatch.setattr(edge_stream, "PIECE_BYTES", 1 << 14)
    graph = oocgraph.build_csr(hubs(5, 5000, 200000), tmp_path / "g.zarr")
    compressed = rewrite(tmp_path / "g.zarr", tmp_path / "z.zarr", codec="zstd")
    first = oocgraph.triangles(graph, resources=Resources(threads=1))
    assert (first.num_passes, graph.edge_bytes <= first.bytes_requested < 1.1 * graph.edge_bytes) == (1, True)
    with pytest.raises(BudgetError, match="set memory_budget to at least") as refused:
        oocgraph.triangles(graph, memory_budget="20M")
    least = int(str(refused.value).rpartition("at least ")[2].rstrip("M")) + 32  # this process may have grown by the next call
    with oocgraph.open_runtime(graph) as runtime:
        others = [
            oocgraph.triangles(graph, resources=Resources(threads=3)), oocgraph.triangles(graph, memory_budget=f"{least}M"),
            oocgraph.triangles(compressed), oocgraph.triangles(graph, runtime=runtime), oocgraph.triangles(graph, runtime=runtime),
        ]  # fmt: skip
    assert others[-1].bytes_requested == 0
    narrow(monkeypatch, 9000)
    others += [oocgraph.triangles(graph, resources=Resources(threads=threads)) for threads in (1, 3)]
    assert others[-1].num_passes > 10
    for other in others:
        np.testing.assert_array_equal(other.triangles, first.triangles)
        np.testing.assert_array_equal(other.clustering, first.clustering)
        assert {**other.details, "num_passes": 1} == first.details


def test_a_result_is_read_under_the_users_ids(tmp_path):
    graph = string_store(tmp_path / "s.zarr", ["b", "b", "c", "c"], ["a", "c", "a", "d"], others=["alone"])
    result = oocgraph.triangles(graph)
    assert result.vertices.tolist() == ["a", "alone", "b", "c", "d"]
    assert result.triangles.tolist() == [1, 0, 1, 1, 0]
    assert result.of("c", "clustering") == 1 / 3
    assert result.top(1) == [("a", 1)]
    assert result.summary()["num_triangles"] == result.num_triangles == 1
    assert set(result.to_pandas()) == {"vertex", "triangles", "clustering"}
    only = oocgraph.clustering(graph)
    assert only.of(["a", "alone"]).tolist() == [1, 0]
    assert set(only.stored) == {"clustering"}


def test_progress_tells_of_passes(tmp_path, monkeypatch):
    narrow(monkeypatch, 40)
    graph, said = oocgraph.build_csr(hubs(6, 50, 300), tmp_path / "g.zarr"), []
    result = oocgraph.triangles(graph, progress=lambda *what: said.append(what))
    assert said == [("passes", i, result.num_passes) for i in range(1, result.num_passes + 1)]
    assert len(said) > 1


def test_a_graph_without_edges(tmp_path):
    graph = oocgraph.build_csr(([], []), tmp_path / "g.zarr", num_vertices=3)
    found = oocgraph.triangles(graph)
    assert (found.triangles.tolist(), found.clustering.tolist()) == ([0, 0, 0], [0, 0, 0])
    assert found.details == {"num_triangles": 0, "transitivity": 0, "average_clustering": 0, "num_passes": 0}
    assert oocgraph.transitivity(oocgraph.build_csr(([], []), tmp_path / "none.zarr")) == 0


def test_what_makes_no_sense_is_refused(tmp_path):
    directed = oocgraph.build_csr(([1, 2], [2, 3]), tmp_path / "d.zarr", directed=True)
    for function in (oocgraph.triangles, oocgraph.clustering, oocgraph.transitivity):
        with pytest.raises(
            ArgumentError, match=f"is directed, and {function.__name__} takes undirected graphs; build it with directed=False"
        ):
            function(directed)
    table = pd.DataFrame({"source": [1, 2, 3, 1], "target": [2, 3, 1, 2], "time": [1, 2, 3, 4]})
    kept = oocgraph.build_csr((table.source, table.target), tmp_path / "k.zarr", duplicates="keep")
    timed = oocgraph.build_csr(table, tmp_path / "t.zarr", columns=(None, None, "time"))
    for graph in (kept, timed):
        with pytest.raises(ArgumentError, match=r"kept duplicate edges, .* build it with duplicates='drop' and without edge columns"):
            oocgraph.triangles(graph)
    without = oocgraph.build_csr((table.source[:3], table.target[:3]), tmp_path / "w.zarr", duplicates="keep")
    assert oocgraph.triangles(without).num_triangles == 1
