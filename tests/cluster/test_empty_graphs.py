"""Graphs without a stored edge: every computation on a cluster gives what it gives in process."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

import oocgraph
from oocgraph import Resources
from oocgraph.config import setting

NO_EDGES = pa.table({"from": pa.array([], pa.int64()), "to": pa.array([], pa.int64()), "weight": pa.array([], pa.float64())})

GRAPHS = {
    "no vertices": (NO_EDGES, {}),
    "isolated vertices": (NO_EDGES, {"num_vertices": 65}),
    "a self-loop that is dropped": (pa.table({"from": [7], "to": [7], "weight": [2.0]}), {}),
}

OF_ALL = {
    "core_numbers": lambda graph, **where: oocgraph.core_numbers(graph, **where).core_number,
    "connected_components": lambda graph, **where: oocgraph.connected_components(graph, **where).component,
    "pagerank": lambda graph, **where: oocgraph.pagerank(graph, **where).rank,
    "hits": lambda graph, **where: oocgraph.hits(graph, **where).hub,
    "katz_centrality": lambda graph, **where: list(oocgraph.katz_centrality(graph, **where).values()),
    "eigenvector_centrality": lambda graph, **where: list(oocgraph.eigenvector_centrality(graph, **where).values()),
    "closeness_centrality": lambda graph, **where: list(oocgraph.closeness_centrality(graph, **where).values()),
    "harmonic_centrality": lambda graph, **where: list(oocgraph.harmonic_centrality(graph, **where).values()),
    "spmv": lambda graph, **where: oocgraph.spmv(graph, np.ones(graph.num_vertices), **where),
}

FROM_A_SOURCE = {
    "bfs": lambda graph, source, **where: oocgraph.bfs(graph, source, **where).level,
    "bfs over partitions": lambda graph, source, **where: oocgraph.bfs(graph, source, partition="2d", **where).level,
    "sssp": lambda graph, source, **where: oocgraph.sssp(graph, source, **where).distance,
    "multi_source_bfs": lambda graph, source, **where: oocgraph.multi_source_bfs(graph, [source], distances=True, **where).levels,
    "personalized_pagerank": lambda graph, source, **where: oocgraph.personalized_pagerank(graph, [source], **where).rank,
}


@pytest.fixture(scope="module", params=GRAPHS)
def graph(request, tmp_path_factory):
    edges, options = GRAPHS[request.param]
    place = tmp_path_factory.mktemp("empty") / "graph.zarr"
    return oocgraph.build_csr(edges, place, columns=("from", "to"), weight="weight", **options)


@pytest.fixture(params=["auto", "messages"])
def exchange(request):
    """Workers share memory, or do not."""
    with setting("exchange", request.param):
        yield


@pytest.mark.one_in(6)
@pytest.mark.usefixtures("exchange")
@pytest.mark.parametrize("name", OF_ALL)
def test_values_of_all_vertices(graph, client, name):
    compute = OF_ALL[name]
    there, here = compute(graph, client=client), compute(graph, resources=Resources(client=False))
    np.testing.assert_array_equal(np.asarray(there), np.asarray(here))
    assert len(there) == graph.num_vertices


@pytest.mark.one_in(5)
@pytest.mark.usefixtures("exchange")
@pytest.mark.parametrize("name", FROM_A_SOURCE)
def test_values_from_a_source(graph, client, name):
    """A graph without vertices has none."""
    for source in list(graph)[:1]:
        compute = FROM_A_SOURCE[name]
        there, here = compute(graph, source, client=client), compute(graph, source, resources=Resources(client=False))
        np.testing.assert_array_equal(np.asarray(there), np.asarray(here))
