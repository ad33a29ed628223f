"""Strongly connected components are NetworkX's, however they are found; the condensation is the graph of them."""

from __future__ import annotations

import logging

import networkx as nx
import numpy as np
import pytest
import scipy.sparse
import scipy.sparse.csgraph

import oocgraph
from oocgraph import Resources
from oocgraph.algorithms import strong_components
from oocgraph.config import setting
from oocgraph.engine import rest
from oocgraph.errors import ArgumentError, BudgetError, OutputExistsError
from oocgraph.sparse import edge_stream
from oocgraph.store.graph import open_graph
from tests.graphs import hubs
from tests.stores import rewrite, string_store

NUM_IDS = 130


def sparse(seed):
    """Edges of which few lie in components: chains, cycles of chains, and what hangs on them."""
    rng = np.random.default_rng(seed)
    source, target = rng.integers(0, 120, 150), rng.integers(0, 120, 150)
    ring = rng.permutation(120)[: rng.integers(2, 30)]
    return np.concatenate([source, ring]), np.concatenate([target, np.roll(ring, 1)])


def acyclic(seed):
    """Edges that ascend."""
    source, target = (side[np.not_equal(*sparse(seed))] for side in sparse(seed))
    return np.minimum(source, target), np.maximum(source, target)


def dense(seed):
    """Edges of which most lie in one component."""
    return hubs(seed, 120, 500)


SHAPES = {"sparse": sparse, "acyclic": acyclic, "dense": dense}


def smallest(groups):
    """Each vertex's smallest neighbour in its group, by ascending vertex."""
    names = {v: min(group) for group in groups for v in group}
    return [names[v] for v in sorted(names)]


def built(path, edges, **options):
    """Return a store with isolated vertices, and the same graph of NetworkX."""
    peer = nx.DiGraph()
    peer.add_nodes_from(range(NUM_IDS))
    peer.add_edges_from(zip(*(side.tolist() for side in edges), strict=True))
    return oocgraph.build_csr(edges, path, directed=True, num_vertices=NUM_IDS, **options), peer


def no_rest(monkeypatch):
    """Have nothing that is left fit into memory."""
    monkeypatch.setattr(rest, "rest_bytes", lambda *_: 1 << 60)


def early_rest(monkeypatch):
    """Have what is left after the first sweep ended in memory."""
    monkeypatch.setattr(strong_components, "FEW", 0)


def late_rest(monkeypatch):
    """Have what is left when sweeps find nothing more ended in memory."""
    monkeypatch.setattr(strong_components, "FEW", 1 << 40)


WAYS = [no_rest, early_rest, late_rest]


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("piece", [None, 16])
def test_components_are_networkxs(tmp_path, monkeypatch, way, shape, piece):
    """Of rows that are longer than a piece, too."""
    if piece:
        monkeypatch.setattr(edge_stream, "PIECE_BYTES", piece)
    way(monkeypatch)
    for seed in range(4):
        graph, peer = built(tmp_path / f"{seed}.zarr", SHAPES[shape](seed), keep_self_loops=seed % 2 == 1)
        found = oocgraph.strongly_connected_components(graph, resources=Resources(threads=1 + seed % 3))
        groups = list(nx.strongly_connected_components(peer))
        assert found.component.tolist() == smallest(groups)
        assert (found.num_components, found.largest) == (len(groups), max(map(len, groups)))


def test_a_colour_ends_where_another_begins(tmp_path, monkeypatch):
    """Vertex 8 is between two components, and takes the colour of the one before it; marks go back from the one behind it.

    An edge from the pivot's component, which is known, brings no colour.
    """
    no_rest(monkeypatch)
    clique = [(u, v) for u in range(4) for v in range(4) if u != v]
    ends = np.array([(4, 5), (5, 4), (6, 7), (7, 6), (7, 8), (8, 5), (0, 6), *clique]).T
    with setting("vertex-order", "original"):
        graph = oocgraph.build_csr((ends[0], ends[1]), tmp_path / "g.zarr", directed=True)
    assert oocgraph.strongly_connected_components(graph).component.tolist() == [0, 0, 0, 0, 4, 4, 6, 6, 8]


@pytest.mark.parametrize("order", ["original", "locality"])
def test_chains_of_components_take_few_turns(tmp_path, monkeypatch, order):
    """The first of a chain has a path to all others: were its number the smallest of all, each turn would find one component."""
    no_rest(monkeypatch)
    turns, colour = [], strong_components._Strong._colour
    monkeypatch.setattr(strong_components._Strong, "_colour", lambda self: turns.append(colour(self)))
    pairs = 2 * np.arange(2000)
    ends = np.concatenate([[pairs, pairs + 1], [pairs + 1, pairs], [pairs[:-1] + 1, pairs[1:]]], axis=1)
    with setting("vertex-order", order):
        graph = oocgraph.build_csr((ends[0], ends[1]), tmp_path / "g.zarr", directed=True)
    result = oocgraph.strongly_connected_components(graph)
    assert result.component.tolist() == np.repeat(pairs, 2).tolist()
    assert 3 < len(turns) < 40


@pytest.mark.parametrize("degree", [1.0, 1.4, 2.0])
def test_colours_find_what_scipy_finds(tmp_path, monkeypatch, degree):
    """In random graphs of components of all sizes, by turns alone."""
    no_rest(monkeypatch)
    n = 3000
    for seed in range(3):
        ends = np.random.default_rng(seed).integers(0, n, (2, int(n * degree)))
        graph = oocgraph.build_csr((ends[0], ends[1]), tmp_path / f"{seed}.zarr", directed=True, num_vertices=n)
        found = oocgraph.strongly_connected_components(graph, resources=Resources(threads=3))
        matrix = scipy.sparse.csr_array((np.ones(ends.shape[1]), (ends[0], ends[1])), shape=(n, n))
        num, label = scipy.sparse.csgraph.connected_components(matrix, connection="strong")
        least = np.full(num, n)
        np.minimum.at(least, label, np.arange(n))
        assert found.component.tolist() == least[label].tolist()
        assert found.num_components == num


@pytest.mark.parametrize("order", ["original", "locality"])
def test_the_order_of_vertices_does_not_matter(tmp_path, order):
    """Duplicates that are kept do not either."""
    with setting("vertex-order", order):
        graph, peer = built(tmp_path / "g.zarr", sparse(11), duplicates="keep")
    assert oocgraph.strongly_connected_components(graph).component.tolist() == smallest(nx.strongly_connected_components(peer))


@pytest.mark.parametrize("shape", ["path", "backwards", "ring"])
def test_long_chains_are_followed_in_memory(tmp_path, caplog, shape):
    """In a few sweeps, of which each could find a few of their vertices; nothing is warned of."""
    order = np.random.default_rng(1).permutation(30_000)
    if shape == "backwards":
        order = np.arange(30_000)[::-1]
    ends = (order[:-1], order[1:]) if shape != "ring" else (order, np.roll(order, 1))
    graph = oocgraph.build_csr(ends, tmp_path / "g.zarr", directed=True)
    result = oocgraph.strongly_connected_components(graph)
    assert result.num_components == (1 if shape == "ring" else 30_000)
    assert result.bytes_requested < 16 * graph.edge_bytes
    assert not caplog.records


def test_chains_without_room_are_warned_of(tmp_path, monkeypatch, caplog):
    no_rest(monkeypatch)
    order = np.random.default_rng(1).permutation(2000)
    graph = oocgraph.build_csr((order, np.roll(order, 1)), tmp_path / "g.zarr", directed=True)
    with caplog.at_level(logging.WARNING, "oocgraph"):
        assert oocgraph.strongly_connected_components(graph).num_components == 1
    assert "with memory_budget raised by" in caplog.text


def test_no_component_depends_on_threads_budget_or_runtime(tmp_path, monkeypatch):
    monkeypatch.setattr(edge_stream, "PIECE_BYTES", 1 << 10)
    graph = oocgraph.build_csr(hubs(5, 6000, 14000), tmp_path / "g.zarr", directed=True)
    compressed = open_graph(rewrite(tmp_path / "g.zarr", tmp_path / "z.zarr", codec="zstd"))
    first = oocgraph.strongly_connected_components(graph, resources=Resources(threads=1))
    assert 1 < first.num_components < 6000
    with pytest.raises(BudgetError, match=r"components and colours .* set memory_budget to at least") as refused:
        oocgraph.strongly_connected_components(graph, memory_budget="20M")
    least = int(str(refused.value).rpartition("at least ")[2].rstrip("M")) + 32  # this process may have grown by the next call
    with oocgraph.open_runtime(graph) as runtime:
        others = [
            oocgraph.strongly_connected_components(graph, resources=Resources(threads=3)),
            oocgraph.strongly_connected_components(graph, memory_budget=f"{least}M"),
            oocgraph.strongly_connected_components(graph, runtime=runtime), oocgraph.strongly_connected_components(graph, runtime=runtime),
            oocgraph.strongly_connected_components(compressed),
        ]  # fmt: skip
    for other in others:
        np.testing.assert_array_equal(other.component, first.component)
        assert other.details == first.details


def test_a_result_is_read_under_the_users_ids(tmp_path):
    graph = string_store(tmp_path / "s.zarr", ["b", "c", "a"], ["c", "b", "b"], others=["alone"], directed=True)
    result = oocgraph.strongly_connected_components(graph)
    assert dict(zip(result.vertices, result.component, strict=True)) == {"a": "a", "alone": "alone", "b": "b", "c": "b"}
    assert result.of("c") == "b"
    assert result.summary()["largest"] == 2
    small = oocgraph.condensation(graph, tmp_path / "c.zarr", scc=result)
    assert (small.num_edges, small.attributes.num_input_vertices, "c" in small, "alone" in small) == (1, 3, False, True)


def test_a_graph_without_edges(tmp_path):
    graph = oocgraph.build_csr(([], []), tmp_path / "g.zarr", num_vertices=3, directed=True)
    result = oocgraph.strongly_connected_components(graph)
    assert (result.component.tolist(), result.num_components, result.largest) == ([0, 1, 2], 3, 1)
    assert oocgraph.condensation(graph, tmp_path / "c.zarr").attributes.num_isolated == 3
    none = oocgraph.build_csr(([], []), tmp_path / "n.zarr", directed=True)
    assert oocgraph.strongly_connected_components(none).largest == 0


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("shift", [0, 1 << 40])
def test_the_condensation_is_networkxs(tmp_path, shape, shift):
    """Of ids that are sparse, too: the range of them is not kept in memory."""
    source, target = (side + shift * (side % 2) for side in SHAPES[shape](3))
    graph = oocgraph.build_csr((source, target), tmp_path / "g.zarr", directed=True, memory_budget="600M")
    peer = nx.DiGraph(zip(source.tolist(), target.tolist(), strict=True))
    groups = [sorted(group) for group in nx.strongly_connected_components(peer)]
    expected = nx.condensation(peer, groups)
    small = oocgraph.condensation(graph, tmp_path / "c.zarr", memory_budget="600M")
    pointers, indices = small.read("out/indptr"), small.read("out/indices")
    ids = small.ids_of(np.arange(small.num_rows))
    edges = set(zip(np.repeat(ids, np.diff(pointers)).tolist(), ids[indices].tolist(), strict=True))
    assert edges == {(groups[u][0], groups[v][0]) for u, v in expected.edges}
    assert small.attributes.num_input_vertices == len(groups)
    assert all(group[0] in small for group in groups)
    assert oocgraph.is_directed_acyclic_graph(small)
    assert "condensation of" in small.attributes.source


def test_what_makes_no_sense_is_refused(tmp_path):
    graph, _ = built(tmp_path / "g.zarr", dense(1))
    undirected = oocgraph.build_csr(dense(1), tmp_path / "u.zarr")
    with pytest.raises(ArgumentError, match="the graph itself; name another folder"):
        oocgraph.condensation(graph, tmp_path / "g.zarr", overwrite=True)
    for function in (oocgraph.strongly_connected_components, lambda g: oocgraph.condensation(g, tmp_path / "x.zarr")):
        with pytest.raises(ArgumentError, match="is undirected, and paths lead both ways: take connected_components"):
            function(undirected)
    with pytest.raises(OutputExistsError, match=r"u\.zarr"):
        oocgraph.condensation(graph, tmp_path / "u.zarr")
    other, _ = built(tmp_path / "o.zarr", dense(2))
    with pytest.raises(ArgumentError, match="the result is of"):
        oocgraph.condensation(graph, tmp_path / "x.zarr", scc=oocgraph.strongly_connected_components(other))
    for wrong in (5, oocgraph.hits(graph)):
        with pytest.raises(ArgumentError, match="give a result of strongly_connected_components, or leave it out"):
            oocgraph.condensation(graph, tmp_path / "x.zarr", scc=wrong)
    assert not (tmp_path / "x.zarr").exists()
