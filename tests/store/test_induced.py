"""Subgraphs in memory: of chosen vertices, and of all near one."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from oocgraph import build_csr, open_graph
from oocgraph.errors import ArgumentError, ArgumentTypeError, BudgetError, VertexNotFoundError
from oocgraph.store import induced
from tests.store.asked_graphs import same, undirected, weigh
from tests.store.reading import note_reads


def edges_of(graph, directed):
    """Return the edges of a graph, those without direction from the smaller id to the larger, and the weight of each."""
    table = graph.edges().read_all()
    pairs = list(zip(table["source"].to_pylist(), table["target"].to_pylist(), strict=True))
    weights = table["weight"].to_pylist() if "weight" in table.column_names else [None] * len(pairs)
    return [(pair if directed else min(pair, pair[::-1]), weight) for pair, weight in zip(pairs, weights, strict=True)]


def between(asked, ids):
    chosen, weighted = set(ids), bool(asked.graph.attributes.columns)
    return [((u, v), weigh(u, v) if weighted else None) for u, v in asked.pairs if u in chosen and v in chosen]


@pytest.mark.parametrize("piece", [induced.PIECE_ENTRIES, 50])
def test_a_subgraph_has_the_edges_between_its_vertices(asked, piece, monkeypatch):
    """Isolated vertices, self-loops, parallel edges and columns are those of the graph; rows are read in pieces of any size."""
    monkeypatch.setattr(induced, "PIECE_ENTRIES", piece)
    ids = asked.vertices[::3] + asked.vertices[:3]
    part = asked.graph.subgraph(ids)
    assert list(part) == sorted(set(ids), key=asked.vertices.index)
    assert part.attributes.directed == asked.directed
    assert dict(part.attributes.columns) == dict(asked.graph.attributes.columns)
    assert same(edges_of(part, asked.directed), between(asked, ids))


def test_the_subgraph_of_all_vertices_is_the_graph(asked):
    part = asked.graph.subgraph(asked.vertices)
    assert same(edges_of(part, asked.directed), between(asked, asked.vertices))
    assert part.degree().tolist() == asked.graph.degree().tolist()


def test_the_subgraph_of_nothing_is_empty(asked):
    part = asked.graph.subgraph([])
    assert (len(part), part.num_edges) == (0, 0)


def near(lists, vertex, k):
    seen = {vertex}
    for _ in range(k):
        seen |= {u for v in seen for u in lists[v]}
    return seen


@pytest.mark.parametrize("direction", ["out", "in"])
@pytest.mark.parametrize("k", [0, 1, 2])
def test_an_ego_graph_has_all_within_k_edges(asked, direction, k):
    lists = asked.lists(direction)
    for vertex in (asked.vertices[-1], asked.vertices[len(asked.vertices) // 2]):
        part, expected = asked.graph.ego(vertex, k, direction=direction), near(lists, vertex, k)
        assert set(part) == expected
        assert same(edges_of(part, asked.directed), between(asked, expected))


def test_parallel_edges_that_differ_in_a_column_are_kept(tmp_path):
    """The row of a vertex is then longer than the numbers up to its own."""
    table = pa.table({"source": [0, 0, 0, 1, 5], "target": [1, 1, 1, 2, 6], "year": [1, 2, 3, 4, 5]})
    graph = build_csr(table, tmp_path / "g.zarr", columns=("source", "target", "year"))
    found = graph.subgraph([0, 1, 5]).edges().read_all()
    assert sorted(found["year"].to_pylist()) == [1, 2, 3]


def test_a_hub_is_read_up_to_its_own_number(tmp_path, monkeypatch):
    """Its edges to chosen vertices are in their rows, too."""
    graph = build_csr(([0] * 5000, range(1, 5001)), tmp_path / "g.zarr")
    asked = note_reads(monkeypatch)
    assert graph.subgraph([0, 7, 4000]).num_edges == 2
    assert max(asked) <= 3


def test_a_saved_subgraph_is_a_store(tmp_path):
    part = undirected(tmp_path / "g.zarr").graph.subgraph(range(100))
    again = open_graph(part.save(tmp_path / "part.zarr").url)
    assert (again.num_vertices, again.num_edges) == (100, part.num_edges)


def test_bad_questions_are_refused(tmp_path):
    graph = undirected(tmp_path / "g.zarr").graph
    with pytest.raises(ArgumentTypeError, match="ids is 3; give a list of ids"):
        graph.subgraph(3)
    with pytest.raises(VertexNotFoundError, match="vertex 900 is not in"):
        graph.subgraph([1, 900])
    with pytest.raises(VertexNotFoundError, match="vertex 900 is not in"):
        graph.ego(900)
    for k in (-1, 1.5, True):
        with pytest.raises(ArgumentError, match="k is"):
            graph.ego(0, k)
    with pytest.raises(ArgumentError, match="give one id"):
        graph.ego([0, 1])
    for ask in (lambda: graph.subgraph(np.arange(10), memory_budget="1M"), lambda: graph.ego(0, memory_budget="1M")):
        with pytest.raises(BudgetError, match="set memory_budget to at least"):
            ask()
