"""Greedy colours are NetworkX's where vertices are in degree order, and independent sets are maximal, whatever threads and memory."""

from __future__ import annotations

import networkx as nx
import numpy as np
import pytest

import oocgraph
from oocgraph import ArgumentError, BudgetError, Resources, config
from oocgraph.sparse import edge_stream
from tests.graphs import hubs
from tests.stores import string_store

NUM_IDS = 140


def edges_of(seed, num_edges=400):
    source, target = hubs(seed, 120, num_edges)
    return np.unique(np.sort(np.stack([source, target])[:, source != target], axis=0), axis=1)


def peer_of(edges, num_ids=NUM_IDS):
    graph = nx.Graph()
    graph.add_nodes_from(range(num_ids))
    graph.add_edges_from(zip(*(end.tolist() for end in edges), strict=True))
    return graph


def by_id(result, column):
    return dict(zip(result.vertices.tolist(), getattr(result, column).tolist(), strict=True))


def check_set(result, peer):
    members = set(result.members().tolist())
    assert len(members) == result.num_members
    assert not any(u in members and v in members for u, v in peer.edges if u != v)
    assert all(v in members or any(u in members for u in peer[v]) for v in peer)


@pytest.mark.parametrize("piece", [None, 64])
@pytest.mark.parametrize("threads", [1, 4])
@pytest.mark.parametrize("seed", range(4))
def test_small_graphs(tmp_path, monkeypatch, seed, threads, piece):
    if piece:
        monkeypatch.setattr(edge_stream, "PIECE_BYTES", piece)
    edges = edges_of(seed, [30, 100, 400, 2500][seed])
    store, peer = oocgraph.build_csr(tuple(edges), tmp_path / "g.zarr", num_vertices=NUM_IDS), peer_of(edges)
    found = oocgraph.greedy_coloring(store, resources=Resources(threads=threads))
    assert by_id(found, "color") == nx.greedy_color(peer)
    assert found.num_colors == len(set(found.color.tolist()))
    check_set(oocgraph.maximal_independent_set(store, seed=seed, resources=Resources(threads=threads)), peer)


@pytest.mark.parametrize("order", ["original", "locality"])
def test_other_orders(tmp_path, order):
    """Vertices of twice as many neighbours come first; of one class, by row: what one after the other finds."""
    edges = edges_of(9, 3000)
    with config.setting("vertex-order", order):
        store = oocgraph.build_csr(tuple(edges), tmp_path / "g.zarr", num_vertices=NUM_IDS)
    peer, place = peer_of(edges), {vertex: place for place, vertex in enumerate(store.ids_of(range(store.num_rows)).tolist())}

    def in_classes(graph, _):
        return sorted(graph, key=lambda v: (-graph.degree(v).bit_length(), place.get(v, 0)))

    found = oocgraph.greedy_coloring(store)
    assert by_id(found, "color") == nx.greedy_color(peer, strategy=in_classes)
    check_set(oocgraph.maximal_independent_set(store), peer)


@pytest.mark.parametrize("seed", range(2))
def test_threads_and_pieces_change_nothing(tmp_path, monkeypatch, seed):
    store = oocgraph.generate_kronecker(12, tmp_path / "g.zarr", seed=seed)
    one = Resources(threads=1)
    color = oocgraph.greedy_coloring(store, resources=one).color
    member = oocgraph.maximal_independent_set(store, seed=seed, resources=one).member
    monkeypatch.setattr(edge_stream, "PIECE_BYTES", 1 << 12)
    for _ in range(4):
        assert np.array_equal(oocgraph.greedy_coloring(store, resources=Resources(threads=8)).color, color)
        assert np.array_equal(oocgraph.maximal_independent_set(store, seed=seed, resources=Resources(threads=8)).member, member)
    assert not np.array_equal(oocgraph.maximal_independent_set(store, seed=seed + 1).member, member)


def test_many_colours(tmp_path):
    """A clique has as many as vertices, with more neighbours than the largest list of any other; a star has two."""
    size = 300
    source, target = np.triu_indices(size, 1)
    clique = oocgraph.build_csr((source, target), tmp_path / "clique.zarr")
    assert oocgraph.greedy_coloring(clique).color.tolist() == list(range(size))
    assert oocgraph.maximal_independent_set(clique).num_members == 1
    star = oocgraph.build_csr((np.zeros(5000, int), np.arange(1, 5001)), tmp_path / "star.zarr")
    assert oocgraph.greedy_coloring(star).num_colors == 2


def test_self_loops_and_parallel_edges(tmp_path):
    store = oocgraph.build_csr(([1, 1, 2, 2, 3, 4], [2, 2, 2, 3, 1, 4]), tmp_path / "g.zarr", duplicates="keep", keep_self_loops=True)
    found = by_id(oocgraph.greedy_coloring(store), "color")
    assert sorted(found[v] for v in (1, 2, 3)) == [0, 1, 2]
    assert found[4] == 0
    members = oocgraph.maximal_independent_set(store).members().tolist()
    assert len(members) == 2
    assert 4 in members


def test_strings_and_what_tables_have(tmp_path):
    store = string_store(tmp_path / "g.zarr", ["b", "c", "d", "d"], ["c", "d", "b", "a"], others=["e"])
    colors = oocgraph.greedy_coloring(store)
    assert colors.to_pandas().set_index("vertex")["color"].to_dict() == {"a": 1, "b": 1, "c": 2, "d": 0, "e": 0}
    assert colors.top(1) == [("c", 2)]
    members = oocgraph.maximal_independent_set(store, seed=2)
    assert "e" in members.members().tolist()
    members.write(tmp_path / "m.csv")
    assert members.histogram().counts.tolist() == [5 - members.num_members, members.num_members]
    assert members.top(1) == [(members.members()[0], True)]
    assert '"e",true' in (tmp_path / "m.csv").read_text()


def test_nothing_but_vertices(tmp_path):
    empty = oocgraph.build_csr((np.empty(0, int), np.empty(0, int)), tmp_path / "g.zarr", num_vertices=3)
    assert oocgraph.greedy_coloring(empty).num_colors == 1
    assert oocgraph.maximal_independent_set(empty).members().tolist() == [0, 1, 2]


def test_what_is_refused(tmp_path):
    directed = oocgraph.build_csr(([1, 2], [2, 3]), tmp_path / "d.zarr", directed=True)
    store = oocgraph.build_csr(([1, 2, 3], [2, 3, 4]), tmp_path / "g.zarr")
    for function in (oocgraph.greedy_coloring, oocgraph.maximal_independent_set):
        with pytest.raises(ArgumentError, match=f"is directed, and {function.__name__} takes undirected graphs"):
            function(directed)
        with pytest.raises(BudgetError, match="set memory_budget to at least"):
            function(store, memory_budget="1M")
