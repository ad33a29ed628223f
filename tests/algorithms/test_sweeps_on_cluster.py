"""Algorithms by sweeps find on a cluster what they find in one process, weights and string ids included."""

from __future__ import annotations

import numpy as np
import pytest

import oocgraph
from oocgraph import Resources
from oocgraph.algorithms import sweeping
from oocgraph.algorithms.sweeping import Call
from oocgraph.errors import ArgumentError, BudgetError
from tests.cluster.clusters import Cluster
from tests.graphs import hubs
from tests.stores import string_store

HERE = Resources(client=False)


@pytest.fixture(scope="module")
def client(tmp_path_factory):
    with Cluster(tmp_path_factory.mktemp("cluster")) as cluster:
        yield cluster.client


@pytest.fixture(scope="module", params=["directed", "weighted", "strings"])
def graph(request, tmp_path_factory):
    path = tmp_path_factory.mktemp("graphs") / "g.zarr"
    source, target = hubs(3, 900, 5000)
    if request.param == "directed":
        return oocgraph.build_csr((source, target), path, directed=True, num_vertices=950)
    if request.param == "strings":
        return string_store(path, [f"v{i}" for i in source], [f"v{i}" for i in target], others=["alone"])
    import pandas as pd

    table = pd.DataFrame({"source": source, "target": target, "weight": 1 + (source + target) % 7})
    return oocgraph.build_csr(table, path, weight="weight")


CALLS = {
    "hits": lambda g, **o: oocgraph.hits(g, tol=0, max_iter=10, **o),
    "katz": lambda g, **o: oocgraph.katz_centrality(g, alpha=1e-4, **o),
    "eigenvector": oocgraph.eigenvector_centrality,
    "personalized": lambda g, **o: oocgraph.personalized_pagerank(g, g.ids_of([0, 5, 7]), tol=1e-9, **o),
    "multi-source": lambda g, **o: oocgraph.multi_source_bfs(g, g.ids_of(np.arange(70)), distances=True, **o),
    "closeness": lambda g, **o: oocgraph.closeness_centrality(g, k=20, **o),
    "harmonic": lambda g, **o: oocgraph.harmonic_centrality(g, vertices=g.ids_of([3, 9]), **o),
}


@pytest.mark.one_in(3)
@pytest.mark.parametrize("name", CALLS)
def test_values_are_those_of_one_process(client, graph, name):
    here, there = CALLS[name](graph, resources=HERE), CALLS[name](graph, client=client)
    assert here.columns == there.columns
    for column in here.columns:
        np.testing.assert_allclose(getattr(there, column), getattr(here, column), rtol=1e-9, atol=1e-12, equal_nan=True)
    assert there.bytes_requested > 0


@pytest.mark.slow
def test_distances_of_a_connected_graph(client, tmp_path):
    graph = oocgraph.generate_grid((12, 17), tmp_path / "g.zarr")
    assert oocgraph.diameter(graph, client=client).diameter == 27
    some = graph.ids_of([0, 40]).tolist()
    there, here = (oocgraph.eccentricity(graph, vertices=some, **one) for one in ({"client": client}, {"resources": HERE}))
    np.testing.assert_array_equal(there.eccentricity, here.eccentricity)


def test_few_edges_are_swept_here_unless_a_client_is_given(client, tmp_path, monkeypatch):
    """A path of 300 vertices took 30 s for what one process does in 3 ms; and edges that are not there take no worker."""
    path = oocgraph.build_csr((np.arange(300), np.arange(1, 301)), tmp_path / "g.zarr")
    empty = oocgraph.build_csr(([1], [1]), tmp_path / "none.zarr", keep_self_loops=False)
    asked = []
    monkeypatch.setattr(Call, "_on_workers", lambda *_: asked.append(True) or pytest.fail("workers were asked"))
    with client.as_current():
        assert oocgraph.diameter(path).diameter == 300
        assert oocgraph.eccentricity(path).eccentricity.max() == 300
    assert oocgraph.katz_centrality(empty, client=client).centrality.size == 1
    monkeypatch.setattr(sweeping, "LEAST_ON_WORKERS", path.edge_bytes)
    with client.as_current(), pytest.raises(pytest.fail.Exception, match="workers were asked"):
        oocgraph.diameter(path)
    assert asked == [True]


def test_a_runtime_of_a_graph_without_edges_is_where_it_is(client, tmp_path):
    empty = oocgraph.build_csr(([1], [1]), tmp_path / "none.zarr", keep_self_loops=False)
    with oocgraph.open_runtime(empty, client=client) as runtime:
        assert oocgraph.hits(empty, runtime=runtime).hub.size == 1


@pytest.mark.one_in(2)
def test_edges_stay_with_an_opened_graph(client, graph):
    with oocgraph.open_runtime(graph, client=client) as runtime:
        first, second = (oocgraph.hits(graph, tol=0, max_iter=3, runtime=runtime) for _ in range(2))
    assert first.bytes_requested > 0
    assert second.bytes_requested == 0
    np.testing.assert_array_equal(first.hub, second.hub)


def test_a_worker_without_room_is_named(client, graph):
    with pytest.raises(BudgetError, match=r"worker tcp://.*vectors .* set memory_budget to at least"):
        oocgraph.hits(graph, client=client, memory_budget="20M")


def test_what_runs_in_one_process_alone_says_so(client, graph):
    with oocgraph.open_runtime(graph, client=client) as runtime, pytest.raises(ArgumentError, match="in this process only"):
        oocgraph.betweenness_centrality(graph, k=2, runtime=runtime)
