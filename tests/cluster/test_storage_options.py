"""Graphs that need options of their file system, on workers: every function takes them along."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import oocgraph
from oocgraph import Resources
from tests.store import keyed


@pytest.fixture
def graphs(client, tmp_path):
    """Return a graph in a folder, and the same at a URL that needs a key, which workers know nothing of."""
    keyed.register()
    client.run(keyed.register)
    rng = np.random.default_rng(4)
    edges = {"source": rng.integers(0, 300, 2000), "target": rng.integers(0, 300, 2000), "weight": rng.integers(1, 9, 2000)}
    local = oocgraph.build_csr(pd.DataFrame(edges), tmp_path / "g", weight="weight")
    return local, oocgraph.open_graph(f"keyed://{tmp_path / 'g'}", storage_options={"key": "secret"})


FUNCTIONS = {
    "bfs": lambda graph, **options: oocgraph.bfs(graph, 7, **options).to_pandas()["level"],
    "pagerank": lambda graph, **options: oocgraph.pagerank(graph, **options).to_pandas()["rank"],
    "connected_components": lambda graph, **options: oocgraph.connected_components(graph, **options).to_pandas()["component"],
    "sssp": lambda graph, **options: oocgraph.sssp(graph, 7, **options).to_pandas()["distance"],
    "core_numbers": lambda graph, **options: oocgraph.core_numbers(graph, **options).to_pandas()["core_number"],
    "hits": lambda graph, **options: oocgraph.hits(graph, **options).to_pandas()["hub"],
    "spmv": lambda graph, **options: oocgraph.spmv(graph, np.ones(graph.num_vertices), **options),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_workers_open_the_graph_with_its_options(client, graphs, tmp_path, name):
    local, remote = graphs
    options = {"result_store": tmp_path / "result"} if name == "bfs" else {}
    found = FUNCTIONS[name](remote, client=client, **options)
    np.testing.assert_allclose(found, FUNCTIONS[name](local, resources=Resources(client=False)))


def test_partitions_are_made_of_it(client, graphs, tmp_path):
    local, remote = graphs
    for graph, name in ((local, "a"), (remote, "b")):
        oocgraph.partition_graph(graph, 2, policy="EEC", path=tmp_path / name, client=client)
    a, b = (list(oocgraph.open_partitions(tmp_path / name)) for name in ("a", "b"))
    assert [part.num_edges for part in a] == [part.num_edges for part in b]
    stored = "".join(path.read_text() for path in (tmp_path / "b").rglob("zarr.json"))
    assert "secret" not in stored
