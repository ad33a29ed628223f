"""Columns of a search that a kernel makes equal those that NumPy makes, whatever is held of the ids."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import oocgraph
from oocgraph.results import join


def result_of(kind):
    """Return a search that reaches a part of a graph with isolated vertices, of which one is a source."""
    rng = np.random.default_rng(3)
    ends = rng.integers(0, 300, (2, 400))
    far = ends + 400
    edges = np.concatenate([ends[0], far[0]]), np.concatenate([ends[1], far[1]])
    if kind == "deep":  # levels that a byte does not hold
        edges = np.arange(500), np.arange(1, 501)
    graph = oocgraph.build_csr(edges, num_vertices=1000, directed=kind == "directed")
    search = oocgraph.bfs(graph, [int(edges[0][0]), 999])
    if kind == "int64":
        return replace(search, search=replace(search.search, parent=wide(search.search.parent)))
    return search


def wide(parent):
    return np.where(parent == np.iinfo(parent.dtype).max, np.iinfo(np.int64).max, parent.astype(np.int64))


@pytest.mark.parametrize("kind", ["undirected", "directed", "deep", "int64"])
@pytest.mark.parametrize("held", [1, 40, 10**6])
def test_a_kernel_makes_what_numpy_makes(kind, held, monkeypatch):
    """With all ids held, with those of the hubs, and with one."""
    result = result_of(kind)
    some = replace(result, ids=result.ids.holding(8 * held))
    blocks = list(result.ids.stored_blocks(170))
    columns = ("level", "parent")
    found = {}
    for few, held_by in ((0, some), (10**9, result)):
        monkeypatch.setattr(join, "FEW_VALUES", few)
        found[few] = [held_by.values_of(columns, ids, numbers, 0) for ids, numbers in blocks]
    for one, other in zip(*found.values(), strict=True):
        for name in columns:
            assert one[name].dtype == other[name].dtype
            assert np.array_equal(one[name], other[name])
    assert sum(int((one["level"] < 0).sum()) for one in found[0]) > 100
    assert found[0][-1]["parent"][-1] == 999


def test_all_ids_that_are_held_are_taken_at_once(monkeypatch):
    """Of a small result, whose parents would be searched for otherwise."""
    result = result_of("undirected")
    some = replace(result, ids=result.ids.holding(1 << 20))
    monkeypatch.setattr(type(some.ids), "stored_ids_of", None)
    for ids, numbers in result.ids.stored_blocks(1000):
        assert np.array_equal(some.values_of(("level", "parent"), ids, numbers, 0)["parent"], result.parent)
