"""Levels of few vertices take no time for the vertices that they do not have."""

from __future__ import annotations

import numpy as np
import pytest

import oocgraph
from oocgraph.algorithms import lone_sources, source_words
from oocgraph.sparse import edge_stream


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
    assert len(asked) <= 50_000 // source_words.LISTED_LEVELS + 10
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


def counted(function, calls):
    def call(*arguments):
        calls.append(arguments)
        return function(*arguments)

    return call
