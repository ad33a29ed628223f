"""Functions of NetworkX on a store, under a control group that would kill them if they held more than they promise."""

from __future__ import annotations

import json
import sys

import pytest

import oocgraph
from tests.capped import run_capped
from tests.commands.conftest import ROOT

pytestmark = pytest.mark.capped

BUDGET, LIMIT, SLACK = 220 << 20, 260 << 20, 12 << 20

SCRIPT = """
import json, sys
import networkx as nx, oocgraph
from oocgraph.allocator import returned_memory
from oocgraph.memory import host_bytes

nx.config.backends.oocgraph.memory_budget = int(sys.argv[2])
graph, held = oocgraph.open_graph(sys.argv[1]), {}
first = int(graph.ids_of([0])[0])

def measured(name, call):
    call()  # what is loaded once is not held by the result
    before = host_bytes()
    with returned_memory():  # what is free counts for nothing
        found = call()
    held[name] = host_bytes() - before
    return found

answers = {
    "reached": len(measured("lengths", lambda: nx.single_source_shortest_path_length(graph, first))),
    "layers": [len(layer) for layer in nx.bfs_layers(graph, first)],
    "ranks": sum(measured("ranks", lambda: nx.pagerank(graph)).values()),
    "components": nx.number_connected_components(graph),
    "largest": max(map(len, nx.connected_components(graph))),
    "cores": max(measured("cores", lambda: nx.core_number(graph)).values()),
    "near": sum(measured("near", lambda: nx.average_neighbor_degree(graph)).values()),
    "cut": nx.cut_size(graph, max(nx.connected_components(graph), key=len)),
    "bipartite": nx.is_bipartite(graph),
}
print(json.dumps({"held": held, **answers}))
"""


def test_lazy_results_hold_16_bytes_a_vertex(tmp_path):
    """Levels, ranks, components and core numbers of a quarter of a million vertices; as dictionaries each would take 25 MiB."""
    store = oocgraph.generate_kronecker(18, path=tmp_path / "kron18.zarr")
    command = [sys.executable, "-c", SCRIPT, store.url]
    environment = {"PYTHONPATH": str(ROOT)}
    warm = run_capped(4 << 30, [*command, 1 << 30], env=environment)  # kernels compiled: a compiler needs more than the cap
    done = run_capped(LIMIT, [*command, BUDGET], env=environment)
    assert done.returncode == 0, done.stderr
    found, expected = json.loads(done.stdout), json.loads(warm.stdout)
    held = found.pop("held")
    assert max(held.values()) <= 16 * store.num_vertices + SLACK, held
    expected.pop("held")
    assert {**found, "ranks": 1} == {**expected, "ranks": 1}
    assert found["reached"] == found["largest"] == sum(found["layers"]) > 100_000
    assert found["ranks"] == pytest.approx(1)
