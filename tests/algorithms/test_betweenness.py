"""Betweenness centrality equals NetworkX's, of all vertices and of a sample, at any budget and with any number of threads."""

from __future__ import annotations

import itertools
import tracemalloc
from dataclasses import replace
from random import Random
from types import SimpleNamespace

import dask
import networkx as nx
import numpy as np
import pytest

import oocgraph
from oocgraph import Resources
from oocgraph.algorithms import betweenness, path_counts, path_rows
from oocgraph.algorithms.lone_paths import LonePaths
from oocgraph.algorithms.path_counts import PathCounts
from oocgraph.engine import sweeps as sweeps_module
from oocgraph.errors import ArgumentError, BudgetError, CorruptStoreError
from oocgraph.sparse import edge_stream, piece_table
from tests.graphs import hubs
from tests.stores import string_store

NUM_IDS = 45


def built(path, seed, *, directed, num_edges=70, **options):
    """Return a graph with isolated vertices, in several components, and the same graph of NetworkX."""
    rng = np.random.default_rng(seed)
    source, target = (40 * rng.random((2, num_edges)) ** 1.5).astype(int)
    peer = (nx.DiGraph if directed else nx.Graph)()
    peer.add_nodes_from(range(NUM_IDS))
    peer.add_edges_from(zip(source.tolist(), target.tolist(), strict=True))
    return oocgraph.build_csr((source, target), path, directed=directed, num_vertices=NUM_IDS, **options), peer


def in_order(peer, **options):
    """NetworkX's values, by ascending id; 0 of isolated vertices."""
    values = nx.betweenness_centrality(peer, **options)
    return np.array([0.0 if peer.degree(v) == 0 else values[v] for v in sorted(values)])


def list_levels(monkeypatch, most):
    """Have levels of so many vertices and edges listed, however few they are; None: as it is."""
    if most is not None:
        monkeypatch.setattr(path_counts, "most_listed", lambda n: most)
        monkeypatch.setattr(path_counts, "LEAST_LEVELS", 1)


def search_alone(monkeypatch, *, alone=True):
    """Have each source go on alone after its first level, or none."""
    monkeypatch.setattr(path_counts, "ALONE_LEVELS", 1)
    monkeypatch.setattr(path_counts, "ALONE_SHARE", 1e9 if alone else 0)


@pytest.mark.one_in(8)
@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize(
    ("piece", "most", "alone"),
    [(None, None, False), (16, 0, False), (16, 30, False), (16, 1000, False), (None, 60, False), (None, None, True), (16, 0, True)],
)
@pytest.mark.parametrize("k", [None, 1, 2, 8, 20, 44, 45])
def test_values_are_networkxs(tmp_path, monkeypatch, directed, piece, most, alone, k):
    """From the sources that it samples by the same seed; of rows that are longer than a piece, and levels that are listed, too."""
    list_levels(monkeypatch, most)
    if alone:
        search_alone(monkeypatch)
    if piece:
        monkeypatch.setattr(edge_stream, "PIECE_BYTES", piece)
    for seed in range(3):
        graph, peer = built(tmp_path / f"{seed}.zarr", seed, directed=directed)
        for normalized in (True, False):
            for endpoints in (False, True):
                options = {"k": k, "seed": seed, "normalized": normalized, "endpoints": endpoints}
                found = oocgraph.betweenness_centrality(graph, **options, resources=Resources(threads=3))
                np.testing.assert_allclose(found.centrality, in_order(peer, **options), rtol=1e-12, atol=1e-15)
                assert found.num_sources == (k or NUM_IDS)


@pytest.mark.parametrize("order", ["degree", "locality", "original"])
def test_edges_that_occur_twice_and_loops_count_for_nothing(tmp_path, order):
    """Whatever the order of the vertices."""
    with dask.config.set({"oocgraph.vertex-order": order}):
        graph, peer = built(tmp_path / "g.zarr", 3, directed=False, num_edges=200, duplicates="keep", keep_self_loops=True)
    assert graph.attributes.num_self_loops
    assert graph.attributes.num_edges > peer.number_of_edges()
    np.testing.assert_allclose(oocgraph.betweenness_centrality(graph).centrality, in_order(peer), rtol=1e-12, atol=1e-15)


def test_levels_are_found_alike_with_and_without_marks(tmp_path, monkeypatch):
    monkeypatch.setattr(edge_stream, "PIECE_BYTES", 1 << 8)
    graph = oocgraph.build_csr(hubs(8, 600, 1500), tmp_path / "g.zarr", directed=True)
    found = []
    for share in (0, 1 / 32, 2):
        monkeypatch.setattr(path_counts, "MARKED_SHARE", share)
        found.append(oocgraph.betweenness_centrality(graph, 50).centrality)
    np.testing.assert_array_equal(found[0], found[1])
    np.testing.assert_array_equal(found[0], found[2])
    assert found[0].max() > 0


def ladder(path, *, directed):
    """Build a long ladder with hubs on it."""
    rng, steps = np.random.default_rng(1), np.arange(1500)
    source = np.concatenate([2 * steps, 2 * steps + 1, 2 * steps, np.repeat(rng.integers(0, 3000, 8), 150)])
    target = np.concatenate([2 * steps + 2, 2 * steps + 3, 2 * steps + 1, rng.integers(3000, 4000, 1200)])
    names = rng.permutation(5000)
    return oocgraph.build_csr((names[source], names[target]), path, directed=directed)


@pytest.mark.one_in(2)
@pytest.mark.parametrize("directed", [False, True])
def test_no_bit_depends_on_which_levels_are_listed(tmp_path, monkeypatch, directed):
    """Whose pieces of rows stay in memory or do not."""
    monkeypatch.setattr(edge_stream, "PIECE_BYTES", 1 << 10)
    graph = ladder(tmp_path / "g.zarr", directed=directed)
    bring, found, listed = piece_table.PieceTable.bring, [], []
    counted = path_counts.PathCounts._count_listed
    monkeypatch.setattr(path_counts.PathCounts, "_count_listed", lambda self, depth: listed.append(counted(self, depth)) or listed[-1])
    search_alone(monkeypatch, alone=False)
    for most, stays in ((0, True), (40, True), (1 << 14, True), (1 << 14, False), (500, False)):
        with monkeypatch.context() as patch:
            list_levels(patch, most)
            patch.setattr(piece_table.PieceTable, "bring", lambda self, i, stays=stays: (stays or i != 2) and bring(self, i))
            result = oocgraph.betweenness_centrality(graph, 12, seed=3)
        found.append((result.depth, result.centrality.tobytes(), sum(num for num, _ in listed)))
        listed.clear()
    assert result.depth >= 300
    assert len({one[:2] for one in found}) == 1
    assert [one[2] > 100 for one in found] == [False, True, True, True, True]


@pytest.mark.one_in(2)
@pytest.mark.parametrize("directed", [False, True])
def test_no_bit_depends_on_which_rows_are_read_by_themselves(tmp_path, monkeypatch, directed):
    """As those of a level at once or in pieces, or none of them, because they are many or one is long."""
    graph = ladder(tmp_path / "g.zarr", directed=directed)
    search_alone(monkeypatch, alone=False)
    expected = oocgraph.betweenness_centrality(graph, 12, seed=3)
    monkeypatch.setattr(edge_stream, "PIECE_BYTES", 1 << 10)
    monkeypatch.setattr(piece_table.PieceTable, "bring", lambda self, i: False)
    counted, added, (count, add) = [], [], (path_rows.PathRows.count, path_rows.PathRows.add)
    monkeypatch.setattr(path_rows.PathRows, "count", lambda *of: counted.append(count(*of)) or counted[-1])
    monkeypatch.setattr(path_rows.PathRows, "add", lambda *of: added.append(add(*of)) or added[-1])
    many = 1 << 15
    for most_rows, rows, entries, least, most in ((many, many, many, 300, many), (many, 7, 400, 300, many), (2, many, many, 0, many),
                                                  (many, many, 20, 0, 0)):  # fmt: skip
        with monkeypatch.context() as patch:
            patch.setattr(sweeps_module.Sweeps, "most_rows", lambda *_, most=most_rows: most)
            for module in (sweeps_module, path_rows):
                patch.setattr(module, "READ_ROWS", rows)
                patch.setattr(module, "READ_ENTRIES", entries)
            result = oocgraph.betweenness_centrality(graph, 12, seed=3)
        assert result.centrality.tobytes() == expected.centrality.tobytes()
        assert least <= sum(num for num, *_ in counted) <= most
        assert least <= sum(added) <= most
        counted.clear()
        added.clear()


def test_more_neighbours_than_are_listed_are_left_to_sweeps(tmp_path, monkeypatch):
    """Of a directed graph, where the rows that have been counted are others: a chain into a hub, of which few lists are known."""
    chain, leaves = np.arange(300), np.arange(1000, 1400)
    graph = oocgraph.build_csr(
        (np.r_[chain, np.full(400, 300), leaves], np.r_[chain + 1, leaves, np.full(400, 2000)]), tmp_path / "g.zarr", directed=True
    )
    search_alone(monkeypatch, alone=False)
    expected = oocgraph.betweenness_centrality(graph)
    list_levels(monkeypatch, 100)
    monkeypatch.setattr(piece_table.PieceTable, "bring", lambda self, i: False)
    marked, kernels = [], vars(path_rows.kernels)
    spied = {**kernels, "mark_read": lambda *of: marked.append((of[1][-1], of[6].size)) or kernels["mark_read"](*of)}
    monkeypatch.setattr(path_rows, "kernels", SimpleNamespace(**spied))
    assert oocgraph.betweenness_centrality(graph).centrality.tobytes() == expected.centrality.tobytes()
    assert marked
    assert all(num_edges < room for num_edges, room in marked)


@pytest.mark.parametrize("directed", [False, True])
def test_no_bit_depends_on_which_sources_go_alone(tmp_path, monkeypatch, directed):
    """Of streets, where they do by themselves; nor on threads that have room for that; with more paths than are whole numbers."""
    rng, numbers = np.random.default_rng(4), np.arange(90 * 70).reshape(90, 70)
    source = np.concatenate([numbers[:-1].ravel(), numbers[:, :-1].ravel(), rng.integers(0, 6300, 4)])
    target = np.concatenate([numbers[1:].ravel(), numbers[:, 1:].ravel(), rng.integers(0, 6300, 4)])
    kept = rng.random(source.size) < 0.97
    names = rng.permutation(7000)
    graph = oocgraph.build_csr((names[source[kept]], names[target[kept]]), tmp_path / "g.zarr", directed=directed)
    searched, add = [], LonePaths.add
    monkeypatch.setattr(LonePaths, "add", lambda self, *of: searched.append(self._room.qsize()) or add(self, *of))
    found = []
    ways = [(3, 3, 2, False), (2, 1, 2, False), (3, 0, 2, False), (3, 3, 0, False), (2, 2, 2, True), (1, 1, 0, True)]
    for threads, spared, share, endpoints in ways:
        with monkeypatch.context() as patch:
            patch.setattr(path_counts, "ALONE_LEVELS", 8)
            patch.setattr(path_counts, "ALONE_SHARE", share)
            patch.setattr(betweenness, "PathCounts", lambda sweeps, n=spared: PathCounts(replace(sweeps, num_spared=n)))
            result = oocgraph.betweenness_centrality(graph, 20, endpoints=endpoints, resources=Resources(threads=threads))
        found.append((endpoints, result.depth, result.centrality.tobytes()))
        assert searched == ([spared] * 3 if spared and share else [])
        searched.clear()
    assert result.depth > 70
    assert len({*found}) == 2


@pytest.mark.parametrize("most", [None, 0])
@pytest.mark.parametrize("alone", [False, True])
def test_levels_that_are_listed_are_as_many(tmp_path, monkeypatch, most, alone):
    """Up to the most that are passed, and to the most that can be counted."""
    monkeypatch.setattr(path_counts, "LISTED_LEVELS", 7)
    list_levels(monkeypatch, most)
    search_alone(monkeypatch, alone=alone)
    graph = oocgraph.build_csr((np.arange(90), np.arange(1, 91)), tmp_path / "g.zarr", directed=True)
    for limit in (91, 92):
        monkeypatch.setattr(path_counts, "UNSEEN", limit)
        result = oocgraph.betweenness_centrality(graph, normalized=False)
        assert result.depth == 90
        np.testing.assert_array_equal(result.centrality, np.arange(91) * np.arange(90, -1, -1))
    monkeypatch.setattr(path_counts, "UNSEEN", 90)
    with pytest.raises(ArgumentError, match="between two vertices there are shortest paths of 90 edges or more"):
        oocgraph.betweenness_centrality(graph)


def test_no_bit_depends_on_threads_budget_or_runtime(tmp_path, monkeypatch):
    monkeypatch.setattr(edge_stream, "PIECE_BYTES", 1 << 12)
    graph = oocgraph.build_csr(hubs(5, 3000, 20000), tmp_path / "g.zarr", directed=True)
    first = oocgraph.betweenness_centrality(graph, 12, resources=Resources(threads=1))
    with pytest.raises(BudgetError, match=r"numbers of paths .* set memory_budget to at least") as refused:
        oocgraph.betweenness_centrality(graph, 12, memory_budget="20M")
    least = int(str(refused.value).rpartition("at least ")[2].rstrip("M")) + 32  # this process may have grown by the next call
    with oocgraph.open_runtime(graph) as runtime:
        others = [
            oocgraph.betweenness_centrality(graph, 12, resources=Resources(threads=3)),
            oocgraph.betweenness_centrality(graph, 12, memory_budget=f"{least}M"),
            oocgraph.betweenness_centrality(graph, 12, runtime=runtime),
            oocgraph.betweenness_centrality(graph, 12, runtime=runtime),
        ]
    for other in others:
        np.testing.assert_array_equal(other.centrality, first.centrality)
    assert others[-1].bytes_requested == 0
    assert first.bytes_requested > 0
    assert (oocgraph.betweenness_centrality(graph, 12, seed=2).centrality != first.centrality).any()


def test_ids_may_be_strings(tmp_path):
    graph = string_store(tmp_path / "s.zarr", ["b", "b", "c", "d"], ["a", "c", "d", "e"], others=["alone"])
    peer = nx.Graph([("b", "a"), ("b", "c"), ("c", "d"), ("d", "e")])
    sampled = nx.Graph()
    sampled.add_nodes_from(["a", "alone", "b", "c", "d", "e"])
    sampled.add_edges_from(peer.edges)
    for k in (None, 3):
        result = oocgraph.betweenness_centrality(graph, k, seed=5)
        expected = nx.betweenness_centrality(sampled, k, seed=5)
        assert result.vertices.tolist() == list(expected)
        np.testing.assert_allclose(result.centrality, list(expected.values()), rtol=1e-12)
    assert [vertex for vertex, _ in oocgraph.betweenness_centrality(graph).top(1)] == ["c"]


@pytest.mark.parametrize("num_edges", [0, 1])
def test_tiny_graphs(tmp_path, num_edges):
    graph = oocgraph.build_csr(([0] * num_edges, [1] * num_edges), tmp_path / "g.zarr", num_vertices=2)
    assert oocgraph.betweenness_centrality(graph).centrality.tolist() == [0, 0]
    assert oocgraph.betweenness_centrality(graph, endpoints=True).centrality.tolist() == [num_edges, num_edges]
    assert oocgraph.betweenness_centrality(graph, 1).num_sources == 1


def test_a_path_has_many_levels(tmp_path, monkeypatch):
    """More than a byte holds; of too many the function says so."""
    graph = oocgraph.build_csr((np.arange(400), np.arange(1, 401)), tmp_path / "g.zarr")
    result = oocgraph.betweenness_centrality(graph, normalized=False)
    assert result.depth == 400
    np.testing.assert_array_equal(result.centrality, np.arange(401) * np.arange(400, -1, -1))
    monkeypatch.setattr(path_counts, "UNSEEN", 200)
    with pytest.raises(ArgumentError, match="between two vertices there are shortest paths of 200 edges or more"):
        oocgraph.betweenness_centrality(graph)


def layers(num_layers, width, *, beside):
    """Return the edges of a row of layers of vertices, each with 1 to `width` neighbours in the next; perhaps with a path beside them."""
    rng, edges = np.random.default_rng(5), []
    for layer in range(num_layers):
        for i in range(width):
            edges += [(layer * width + i, (layer + 1) * width + int(j)) for j in rng.permutation(width)[: rng.integers(1, width + 1)]]
    if beside:
        path = [0, *range((num_layers + 1) * width, (num_layers + 1) * width + num_layers - 1), num_layers * width]
        edges += itertools.pairwise(path)
    return np.array(edges).T


def dependencies(source, target, sources, *, directed):
    """Brandes' sums by whole numbers of paths, however many."""
    n = 1 + max(source.max(), target.max())
    after, total = [set() for _ in range(n)], np.zeros(n)
    for u, v in zip(source.tolist(), target.tolist(), strict=True):
        after[u].add(v)
        if not directed:
            after[v].add(u)
    for s in sources:
        level, paths, order, dependency = {s: 0}, {s: 1}, [s], dict.fromkeys(range(n), 0.0)
        for v in order:
            for w in after[v]:
                if w not in level:
                    level[w], paths[w] = level[v] + 1, 0
                    order.append(w)
                if level[w] == level[v] + 1:
                    paths[w] += paths[v]
        for v in reversed(order):
            dependency[v] = sum(paths[v] / paths[w] * (1 + dependency[w]) for w in after[v] if level[w] == level[v] + 1)
            total[v] += dependency[v] if v != s else 0
    return total


@pytest.mark.parametrize("directed", [False, True])
def test_more_paths_than_a_number_can_count_are_counted(tmp_path, monkeypatch, directed):
    """By 1,200 levels, up to 2 ** 1,800 paths, and no bit depends on how levels are found."""
    source, target = layers(1200, 4, beside=True)
    n = 1 + max(source.max(), target.max())
    names = np.random.default_rng(6).permutation(n)
    graph = oocgraph.build_csr((names[source], names[target]), tmp_path / "g.zarr", directed=directed, num_vertices=n)
    sources = np.argsort(names)[Random(3).sample(range(n), 6)]
    expected = dependencies(source, target, sources, directed=directed)
    found, bring = [], piece_table.PieceTable.bring
    for alone, most, stays in ((True, None, True), (False, 0, True), (False, 1 << 14, True), (False, 1 << 14, False)):
        with monkeypatch.context() as patch:
            search_alone(patch, alone=alone)
            list_levels(patch, most)
            patch.setattr(piece_table.PieceTable, "bring", lambda self, i, stays=stays: stays and bring(self, i))
            result = oocgraph.betweenness_centrality(graph, 6, seed=3, normalized=False)
        found.append(result.of(names))
        assert result.depth > 1000
    assert len({one.tobytes() for one in found}) == 1
    scale = np.full(n, n - 1 if directed else (n - 1) / 2) / 6
    scale[sources] *= 6 / 5
    np.testing.assert_allclose(found[0], expected * scale, rtol=1e-10)


@pytest.mark.parametrize("alone", [False, True])
@pytest.mark.parametrize("num_diamonds", [1020, 2000])
def test_a_chain_of_diamonds_has_its_exact_values(tmp_path, monkeypatch, num_diamonds, alone):
    """The source, at one end, has 2 ** num_diamonds shortest paths to the other."""
    search_alone(monkeypatch, alone=alone)
    n, begins = 3 * num_diamonds + 1, 3 * np.arange(num_diamonds)
    source = np.concatenate([begins, begins, begins + 1, begins + 2])
    target = np.concatenate([begins + 1, begins + 2, begins + 3, begins + 3])
    shift = Random(1).sample(range(n), 1)[0]
    graph = oocgraph.build_csr(((source + shift) % n, (target + shift) % n), tmp_path / "g.zarr", directed=True)
    centrality = oocgraph.betweenness_centrality(graph, 1, normalized=False, endpoints=True).of((np.arange(n) + shift) % n) / n
    np.testing.assert_allclose(centrality[0], n - 1)
    np.testing.assert_allclose(centrality[1::3], (n - 1 - 3 * np.arange(num_diamonds) - 2) / 2 + 1)


@pytest.mark.parametrize("alone", [False, True])
@pytest.mark.parametrize("most", [None, 0])
def test_numbers_of_paths_that_are_too_different_are_refused(tmp_path, monkeypatch, alone, most):
    search_alone(monkeypatch, alone=alone)
    list_levels(monkeypatch, most)
    source, target = layers(1200, 8, beside=True)
    n = 1 + max(source.max(), target.max())
    shift = Random(1).sample(range(n), 1)[0]
    graph = oocgraph.build_csr(((source + shift) % n, (target + shift) % n), tmp_path / "g.zarr", directed=True)
    with pytest.raises(
        ArgumentError, match=r"more than 1e522 times as many shortest paths as .* another as far away, .* give a smaller graph"
    ):
        oocgraph.betweenness_centrality(graph, 1)


def test_what_makes_no_sense_is_refused(tmp_path):
    graph = oocgraph.build_csr(hubs(6, 50, 300), tmp_path / "g.zarr", num_vertices=60)
    for options, said in (
        ({"k": 0}, "k is 0; it must be a whole number from 1 to 60"), ({"k": 61}, "k is 61; .* leave it out for all"),
        ({"k": True}, "k is True"), ({"k": 2.5}, "k is 2.5"), ({"seed": "x"}, "seed is 'x'"), ({"seed": None}, "seed is None"),
    ):  # fmt: skip
        with pytest.raises(ArgumentError, match=said):
            oocgraph.betweenness_centrality(graph, **options)
    np.testing.assert_array_equal(
        oocgraph.betweenness_centrality(graph, np.int64(7), seed=np.int64(3)).centrality,
        oocgraph.betweenness_centrality(graph, 7, seed=3).centrality,
    )


@pytest.mark.parametrize("k", [20, 300, 4900])
def test_a_sample_holds_what_was_promised(k):
    """Of a few vertices, and of most of them."""
    tracemalloc.start()
    positions = betweenness.sampled_positions(5000, k, Random(1))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert positions.size == k
    assert 40 * k < peak < betweenness.sample_bytes(5000, k) + (8 << 10)  # of Python itself


def test_progress_counts_sources(tmp_path):
    graph = oocgraph.build_csr(hubs(6, 50, 300), tmp_path / "g.zarr", num_vertices=60)
    seen = []
    oocgraph.betweenness_centrality(graph, progress=lambda *one: seen.append(one))
    n = graph.num_rows
    assert [one[1:] for one in seen if one[0] == "sources"] == [*((done, n) for done in range(0, n, 8)), (n, n)]


def test_an_edge_of_one_list_only_is_refused(tmp_path, monkeypatch):
    """A damaged graph, whose sources go alone."""
    search_alone(monkeypatch)
    graph = oocgraph.build_csr((np.arange(40), np.arange(1, 41)), tmp_path / "g.zarr", directed=True)
    assert oocgraph.betweenness_centrality(graph).depth == 40
    chunk = tmp_path / "g.zarr/in/indices/c/0"
    neighbours = np.fromfile(chunk, graph.index_dtype)
    neighbours[20] = neighbours[3]
    neighbours.tofile(chunk)
    with pytest.raises(CorruptStoreError, match=r"an edge of its lists 'out' is not in 'in'; run `oocgraph check`"):
        oocgraph.betweenness_centrality(oocgraph.open_graph(tmp_path / "g.zarr", check_pages=False))
