"""Levels of few vertices take no time for the vertices that they do not have."""

from __future__ import annotations

import dask
import networkx as nx
import numpy as np
import pytest

import oocgraph
from oocgraph.algorithms import listed_front, lone_sources, source_words
from oocgraph.engine import sweeps
from oocgraph.errors import CorruptStoreError
from oocgraph.sparse import edge_stream
from tests.stores import rewrite


@pytest.mark.parametrize("in_memory", [True, False])
def test_thousands_of_small_levels_are_found_in_a_call(tmp_path, monkeypatch, in_memory):
    """Along a path that is shuffled, with a star at its end, whose level is left to the threads."""
    asked, dense = [], []
    for name, calls in (("_push_listed", asked), ("_find_level", dense)):
        monkeypatch.setattr(source_words.SourceWords, name, counted(getattr(source_words.SourceWords, name), calls))
    names = np.random.default_rng(1).permutation(60_000)
    source, target = np.append(names[:49_999], np.full(10_000, names[49_999])), np.append(names[1:50_000], names[50_000:])
    graph = oocgraph.build_csr((source, target), None if in_memory else tmp_path / "g.zarr")
    found = oocgraph.multi_source_bfs(graph, [int(names[0])])
    assert (found.num_reached.tolist(), found.depth.tolist()) == ([60_000], [50_000])
    assert found.sum_distances.tolist() == [49_999 * 50_000 // 2 + 10_000 * 50_000]
    assert len(asked) <= 50_000 // listed_front.LISTED_LEVELS + 10
    assert 1 <= len(dense) <= 2
    assert oocgraph.diameter(graph).diameter == 50_000


@pytest.mark.parametrize("num_kept", [0, 400, 1 << 20])
def test_sources_go_on_alone_through_many_pieces(tmp_path, monkeypatch, num_kept):
    """Of which none, some or all stay in memory: along a ladder, and into the star at its end, for which a queue has no room."""
    monkeypatch.setattr(edge_stream, "PIECE_BYTES", 16)
    monkeypatch.setattr(edge_stream.EdgeStream, "num_kept", num_kept)
    searches, search = [], lone_sources.LoneSources.search
    monkeypatch.setattr(lone_sources.LoneSources, "search", lambda self, *given: searches.append(search(self, *given)) or searches[-1])
    steps, names = np.arange(200), np.random.default_rng(1).permutation(4000)
    source = names[np.concatenate([2 * steps, 2 * steps + 1, 2 * steps, np.full(3000, 400)])]
    target = names[np.concatenate([2 * steps + 2, 2 * steps + 3, 2 * steps + 1, np.arange(1000, 4000)])]
    graph = oocgraph.build_csr((source, target), tmp_path / "g.zarr")
    sources = names[np.arange(0, 400, 10)].tolist()
    found = oocgraph.multi_source_bfs(graph, sources)
    with monkeypatch.context() as patch:
        patch.setattr(source_words, "FEW", 65)
        expected = oocgraph.multi_source_bfs(graph, sources)
    for name in ("num_reached", "depth", "sum_distances", "sum_inverse_distances"):
        np.testing.assert_array_equal(getattr(found, name), getattr(expected, name))
    assert set(found.num_reached.tolist()) == {3402}
    assert (sum(searches) > 20) == (num_kept > 0)


@pytest.mark.parametrize("order", ["degree", "locality"])
@pytest.mark.parametrize(("num_kept", "room", "entries"), [(0, 1 << 16, 1 << 15), (3, 1 << 16, 7), (3, 40, 1 << 15)])
@pytest.mark.parametrize("directed", [False, True])
def test_rows_of_few_vertices_are_read_by_themselves(tmp_path, monkeypatch, order, num_kept, room, entries, directed):
    """Of a grid with a hub, where no rows stay in memory or some do; rows are cut, and lists may have no room for the hub's neighbours."""
    monkeypatch.setattr(edge_stream, "PIECE_BYTES", 256)
    monkeypatch.setattr(edge_stream.EdgeStream, "num_kept", num_kept)
    monkeypatch.setattr(listed_front, "LEAST_ROOM", room)
    monkeypatch.setattr(listed_front, "LEAST_LISTED", room // 2)
    monkeypatch.setattr(listed_front, "READ_ROWS", 8)
    monkeypatch.setattr(sweeps, "READ_ENTRIES", entries)
    found, push = [], listed_front.ListedFront._push_by_rows
    monkeypatch.setattr(listed_front.ListedFront, "_push_by_rows", lambda self, *given: found.append(push(self, *given)) or found[-1])
    graph = nx.convert_node_labels_to_integers(nx.grid_2d_graph(12, 30), ordering="sorted")
    graph.add_edges_from((180, v) for v in range(400, 600))
    graph = graph.to_directed() if directed else graph
    graph.remove_edges_from([(180, 190), (20, 21)])
    with dask.config.set({"oocgraph.vertex-order": order}):
        store = oocgraph.build_csr(tuple(np.array(graph.edges).T), tmp_path / "g.zarr", directed=directed)
    sources = [0, 7, 359]
    for reverse in (False, True):
        store = oocgraph.open_graph(store.url)  # of which no pages are kept
        result = oocgraph.multi_source_bfs(store, sources, distances=True, reverse=reverse)
        searched = graph.reverse() if reverse and directed else graph
        for i, source in enumerate(sources):
            levels = nx.single_source_shortest_path_length(searched, source)
            assert dict(zip(result.vertices.tolist(), result.levels[:, i].tolist(), strict=True)) == levels
            assert (result.depth[i], result.sum_distances[i]) == (max(levels.values()), sum(levels.values()))
        assert result.bytes_requested > 0
    assert sum(found) > 20
    assert (0 in found) == (room == 40)


@pytest.mark.parametrize("are_kept", [False, True])
def test_many_levels_that_read_edges_are_told_once(tmp_path, monkeypatch, caplog, are_kept):
    """With what would keep the edges in memory."""
    if not are_kept:
        monkeypatch.setattr(edge_stream.EdgeStream, "_keep", lambda self, budget: 0)
    monkeypatch.setattr(source_words, "MANY_LEVELS", 30)
    graph = oocgraph.build_csr((np.arange(500), np.arange(1, 501)), tmp_path / "g.zarr")
    found = oocgraph.eccentricity(graph, [0, 250])
    assert (found[0], found[250]) == (500, 250)
    told = [record.getMessage() for record in caplog.records if "levels have read edges" in record.getMessage()]
    assert len(told) == (not are_kept)
    assert all("memory_budget raised by 7.8 KiB" in one for one in told)  # 1,000 neighbours, 501 rows


def test_a_row_that_is_read_by_itself_is_checked(tmp_path, monkeypatch):
    """A neighbour that is no vertex is an error, not an index."""
    monkeypatch.setattr(edge_stream.EdgeStream, "num_kept", 0)
    with dask.config.set({"oocgraph.vertex-order": "original"}):
        store = oocgraph.build_csr((np.arange(5000), np.arange(1, 5001)), tmp_path / "sound.zarr")
    neighbours = store.read("out/indices")
    neighbours[6001] = 70_000
    store = rewrite(tmp_path / "sound.zarr", tmp_path / "g.zarr", arrays={"out/indices": neighbours})
    assert oocgraph.multi_source_bfs(store, [0], depth_limit=100).num_reached.tolist() == [101]
    with pytest.raises(CorruptStoreError, match="out/indices"):
        oocgraph.multi_source_bfs(store, [0])


def counted(function, calls):
    def call(*arguments):
        calls.append(arguments)
        return function(*arguments)

    return call
