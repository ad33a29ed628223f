"""A graph as a Python object: what it contains, its length, its vertices one by one, how it shows itself."""

from __future__ import annotations

import pytest

from oocgraph import build_csr
from tests.store.asked_graphs import directed, strings, undirected

INTERNAL = {"array", "array_names", "degree_classes", "get", "has_array", "is_plain", "plane_offsets", "pull_group", "read", "specs"}


def test_a_graph_contains_its_vertices(asked):
    assert all(v in asked.graph for v in asked.vertices[::17])
    for other in (10**15, -1, "none", 1.5, None, (1, 2), [0], asked.graph):
        assert other not in asked.graph


def test_a_graph_iterates_over_all_vertices(asked):
    assert list(asked.graph) == asked.vertices
    assert len(asked.graph) == asked.graph.num_vertices == len(asked.vertices)


def test_dir_shows_what_users_ask(tmp_path):
    graph = undirected(tmp_path / "g.zarr").graph
    for one in (graph, graph.subgraph([0, 1])):
        names = {name for name in dir(one) if not name.startswith("__")}
        assert not names & INTERNAL
        assert not any(name.startswith("_") for name in names)
        assert {"neighbors", "degree", "has_edge", "edges", "subgraph", "ego", "random_walk", "sample_neighbors", "num_vertices"} <= names
        assert all(hasattr(one, name) for name in names | INTERNAL)


@pytest.mark.parametrize("make", [undirected, directed, strings])
def test_repr_begins_with_what_users_ask(tmp_path, make):
    graph = make(tmp_path / "g.zarr").graph
    text = repr(graph).split(": ", 1)[1]
    words = [
        "vertices",
        "isolated",
        "edges",
        "edges, directed" if graph.attributes.directed else "edges, undirected",
        "weighted",
        "columns kind",
        "iB",
    ]
    places = [text.index(word) for word in [*words, "ids", "order", "plane"]]
    assert places == sorted(places)
    assert f"{graph.num_vertices:,} vertices" in text
    assert f"{graph.num_edges:,} edges" in text


def test_a_table_of_html_escapes_names(tmp_path):
    html = build_csr(([0], [1]), tmp_path / "<g>.zarr")._repr_html_()
    assert "&lt;g&gt;" in html
    assert "<g>" not in html
    assert html.index(">vertices<") < html.index(">edges<") < html.index(">planes<")
    assert html.startswith("<div>")
    assert html.endswith("</div>")
