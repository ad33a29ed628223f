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


TRIES = """
import json, sys
import networkx as nx, oocgraph
from oocgraph.memory import least_budget

graph = oocgraph.open_graph(sys.argv[1])
first = int(graph.ids_of([0])[0])
calls = {
    "bfs_edges": lambda **options: sum(1 for _ in nx.bfs_edges(graph, first, **options)),
    "bridges": lambda **options: sum(1 for _ in nx.bridges(graph, **options)),
    "biconnected_components": lambda **options: sum(1 for _ in nx.biconnected_components(graph, **options)),
    "connected_components": lambda **options: sum(1 for _ in nx.connected_components(graph, **options)),
    "minimum_spanning_tree": lambda **options: nx.minimum_spanning_tree(graph, **options).num_edges,
    "s_metric": lambda **options: nx.s_metric(graph, **options),
    "node_boundary": lambda **options: len(nx.node_boundary(graph, [first], **options)),
    "voronoi_cells": lambda **options: len(nx.voronoi_cells(graph, [first], **options)),
}

def tries(call):
    budgets = [1 << 20]
    while True:
        try:
            return budgets, call(memory_budget=budgets[-1])
        except oocgraph.BudgetError as error:
            budgets.append(least_budget(error))

print(json.dumps({name: tries(call) for name, call in calls.items()}))
"""


def test_a_refusal_names_a_budget_for_all_that_a_function_does(tmp_path):
    """For what it computes, and for what is made of it; and it holds that."""
    store = oocgraph.generate_kronecker(18, path=tmp_path / "kron18.zarr")
    command = [sys.executable, "-c", TRIES, store.url]
    warm = run_capped(4 << 30, command, env={"PYTHONPATH": str(ROOT)})
    assert warm.returncode == 0, warm.stderr
    done = run_capped(
        int(max(budgets[-1] for budgets, _ in json.loads(warm.stdout).values()) * 1.18), command, env={"PYTHONPATH": str(ROOT)}
    )
    assert done.returncode == 0, done.stderr
    for name, (budgets, found) in json.loads(done.stdout).items():
        assert len(budgets) == 2, (name, budgets)
        assert found == json.loads(warm.stdout)[name][1]
