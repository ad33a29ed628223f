"""Degrees as users count them."""

from __future__ import annotations

import numpy as np
import pytest

from oocgraph import build_csr
from oocgraph.errors import ArgumentError, BudgetError, VertexNotFoundError
from tests.store.asked_graphs import undirected


def counts(asked, direction):
    """Degree of each vertex: ends of edges at it."""
    found = dict.fromkeys(asked.vertices, 0)
    for u, v in asked.pairs:
        if direction != "in" or not asked.directed:
            found[u] += 1
        if direction != "out" or not asked.directed:
            found[v] += 1
    return found


@pytest.mark.parametrize("direction", ["both", "out", "in"])
def test_degrees_count_the_ends_of_edges(asked, direction):
    """Of all vertices, of some in any order, and of one."""
    expected = counts(asked, direction)
    assert asked.graph.degree(direction=direction).tolist() == list(expected.values())
    some = asked.vertices[::-3] + asked.vertices[:2]
    assert asked.graph.degree(some, direction=direction).tolist() == [expected[v] for v in some]
    v = asked.vertices[1]
    assert asked.graph.degree(v, direction=direction) == expected[v]
    assert isinstance(asked.graph.degree(v), int)


def test_self_loops_count_twice_where_edges_have_no_direction(tmp_path):
    edges = ([0, 0, 1, 2], [0, 0, 2, 2])
    graph = build_csr(edges, tmp_path / "g", keep_self_loops=True, num_vertices=4)
    assert graph.degree().tolist() == [2, 1, 3, 0]
    graph = build_csr(edges, tmp_path / "d", keep_self_loops=True, num_vertices=4, directed=True, duplicates="keep")
    assert graph.degree().tolist() == [4, 1, 3, 0]
    assert graph.degree([0, 2], direction="in").tolist() == [2, 2]


def test_bad_questions_are_refused(tmp_path):
    graph = undirected(tmp_path / "g.zarr").graph
    with pytest.raises(VertexNotFoundError, match="vertex -1 is not in"):
        graph.degree([0, -1])
    with pytest.raises(ArgumentError, match="direction is 'up'; it must be 'both', 'out' or 'in'"):
        graph.degree(direction="up")
    with pytest.raises(BudgetError, match="degrees by id"):
        graph.degree(memory_budget="1M")


def test_no_edge_is_read(tmp_path):
    """Not even where there is none any more."""
    graph = undirected(tmp_path / "g.zarr").graph
    for file in (tmp_path / "g.zarr" / "out" / "indices" / "c").iterdir():
        file.unlink()
    assert int(graph.degree(np.arange(900)).sum()) == int(graph.degree().sum()) == 2 * graph.num_edges
