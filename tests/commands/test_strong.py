"""`oocgraph scc`, `condensation`, `topological-generations`: what they print and write, and what they refuse."""

from __future__ import annotations

import pyarrow.parquet as pq
import pytest

import oocgraph
from tests.graphs import hubs


@pytest.fixture(scope="module")
def graph(tmp_path_factory):
    path = tmp_path_factory.mktemp("strong") / "g.zarr"
    oocgraph.build_csr(hubs(1, 500, 1500), path, directed=True)
    return path


def test_components_are_those_of_the_function(run, graph, tmp_path):
    said = run("scc", graph, "--out", tmp_path / "c.parquet", "--json").json
    result = oocgraph.strongly_connected_components(graph)
    assert (said["num_components"], said["largest"]) == (result.num_components, result.largest)
    assert "top" not in said
    assert pq.read_table(tmp_path / "c.parquet")["component"].to_pylist() == result.component.tolist()
    assert "StrongComponentsResult" in run("scc", graph).stdout


def test_the_condensation_has_generations(run, graph, tmp_path):
    made = run("condensation", graph, tmp_path / "c.zarr", "--json").json
    assert made["num_vertices"] == oocgraph.strongly_connected_components(graph).num_components
    said = run("topological-generations", tmp_path / "c.zarr", "--out", tmp_path / "g.parquet", "--json").json
    assert max(pq.read_table(tmp_path / "g.parquet")["generation"].to_pylist()) == said["num_generations"] - 1


def test_what_cannot_be_done_is_refused(refused, graph, kron, tmp_path):
    refused("scc", kron, words=["undirected", "connected_components"])
    refused("scc", graph, "--memory", "20M", words=["components and colours", "set --memory to at least"])
    refused("condensation", graph, graph, words=["g.zarr", "--overwrite"])
    refused("topological-generations", graph, words=["has cycles", " -> "])
    refused("topological-generations", kron, words=["undirected"])
