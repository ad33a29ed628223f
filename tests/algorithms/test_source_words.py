"""Levels of few vertices take no time for the vertices that they do not have."""

from __future__ import annotations

import numpy as np
import pytest

import oocgraph
from oocgraph.algorithms import source_words


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


def counted(function, calls):
    def call(*arguments):
        calls.append(arguments)
        return function(*arguments)

    return call
