"""``oocgraph louvain`` and ``label-propagation``: what they print and write."""

from __future__ import annotations

import pandas as pd
import pytest

import oocgraph


@pytest.fixture
def graph(tmp_path):
    """Return the path of two triangles that are joined by an edge, and a vertex alone."""
    path = tmp_path / "g.zarr"
    oocgraph.build_csr(([0, 0, 1, 3, 3, 4, 2], [1, 2, 2, 4, 5, 5, 3]), path, num_vertices=7)
    return path


@pytest.mark.parametrize("name", ["louvain", "label-propagation"])
def test_communities_are_written(run, graph, tmp_path, name):
    done = run(name, graph, "--seed", 1, "--out", tmp_path / "found.csv", "--json")
    assert done.code == 0, done.stderr
    assert done.json["num_communities"] == 3
    assert done.json["modularity"] == pytest.approx(0.357, abs=1e-3)
    assert "top" not in done.json
    found = pd.read_csv(tmp_path / "found.csv")
    assert found["community"].tolist() == [0, 0, 0, 3, 3, 3, 6]
    assert "modularity" in run(name, graph).stdout


@pytest.mark.parametrize(("name", "column"), [("louvain", "community"), ("components", "component")])
def test_the_largest_groups_are_shown(run, graph, name, column):
    top = [{column: 0, "num_vertices": 3}, {column: 3, "num_vertices": 3}, {column: 6, "num_vertices": 1}]
    if name == "components":
        top = [{column: 0, "num_vertices": 6}, {column: 6, "num_vertices": 1}]
    assert run(name, graph, "--top", 5, "--json").json["top"] == top
    assert run(name, graph, "--top", 1, "--json").json["top"] == top[:1]
    assert "top" not in run(name, graph, "--json").json
    assert "vertices" in run(name, graph, "--top", 1).stdout.partition("seconds")[0]


def test_bad_input_is_said_in_options(refused, graph):
    refused("louvain", graph, "--resolution", -1, words=["--resolution is -1"])
    refused("label-propagation", graph, "--max-iter", 0, words=["--max-iter is 0"])
    oocgraph.build_csr(([0], [1]), graph.parent / "d.zarr", directed=True)
    refused("louvain", graph.parent / "d.zarr", words=["is directed", "takes undirected graphs"])
