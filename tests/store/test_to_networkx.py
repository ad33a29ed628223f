"""A stored graph as one of NetworkX: the same nodes, edges and attributes, or a refusal before anything is made."""

from __future__ import annotations

import gc
import re
import sys
import tracemalloc

import networkx as nx
import numpy as np
import pandas as pd
import pytest

import oocgraph
from oocgraph.errors import BudgetError, MissingDependencyError


@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize("duplicates", ["min", "keep"])
@pytest.mark.parametrize("text", [False, True])
def test_it_is_the_graph_that_was_built(tmp_path, directed, duplicates, text):
    rng = np.random.default_rng(1)
    table = pd.DataFrame({"from": rng.integers(0, 40, 300), "to": rng.integers(0, 40, 300), "km": rng.integers(1, 9, 300)})
    if text:
        table[["from", "to"]] = table[["from", "to"]].map("v{}".format)
    options = {"directed": directed, "duplicates": duplicates, "keep_self_loops": True, "weight": "km", "columns": ("from", "to")}
    kind = {("min", False): nx.Graph, ("min", True): nx.DiGraph, ("keep", False): nx.MultiGraph, ("keep", True): nx.MultiDiGraph}
    wanted = kind[duplicates, directed]()
    for u, v, km in table.itertuples(index=False):
        if duplicates == "keep" or not wanted.has_edge(u, v) or wanted[u][v]["km"] > km:
            wanted.add_edge(u, v, km=km)
    for graph in (oocgraph.build_csr(table, tmp_path / "g.zarr", **options), oocgraph.build_csr(table, **options)):
        found = graph.to_networkx()
        assert type(found) is type(wanted)
        assert set(found) == set(wanted)

        def edges(one):
            return sorted((*((u, v) if directed else sorted((u, v))), km) for u, v, km in one.edges(data="km"))

        assert edges(found) == edges(wanted)


def test_isolated_vertices_and_parts(tmp_path):
    graph = oocgraph.build_csr(([0, 1, 2], [1, 2, 0]), tmp_path / "g.zarr", num_vertices=5)
    assert sorted(graph.to_networkx()) == [0, 1, 2, 3, 4]
    assert sorted(graph.ego(0).to_networkx().edges) == [(0, 1), (0, 2), (1, 2)]
    assert len(oocgraph.build_csr(([], []), num_vertices=0).to_networkx()) == 0


def test_what_does_not_fit_is_refused_with_a_budget_that_works(tmp_path, monkeypatch):
    graph = oocgraph.build_csr(np.random.default_rng(0).integers(0, 20_000, (40_000, 2)), tmp_path / "g.zarr")
    with pytest.raises(BudgetError, match=r"a graph of NetworkX needs .* set memory_budget to at least \d+M") as refused:
        graph.to_networkx(memory_budget="50M")
    least = int(str(refused.value).rpartition("at least ")[2].rstrip("M"))
    assert graph.to_networkx(memory_budget=f"{least}M").number_of_edges() == graph.num_edges
    monkeypatch.setitem(sys.modules, "networkx", None)
    with pytest.raises(MissingDependencyError, match=r"pip install oocgraph\[networkx\]"):
        graph.to_networkx()


@pytest.mark.parametrize("kind", ["float64", "string"])
def test_attributes_are_charged_each(tmp_path, kind):
    rng, num_edges = np.random.default_rng(3), 20_000
    table = {"source": rng.integers(0, 9_000, num_edges), "target": rng.integers(0, 9_000, num_edges)}
    for name in "abcdef":
        table[name] = rng.random(num_edges) if kind == "float64" else [f"{name * 80}{i}" for i in range(num_edges)]
    graph = oocgraph.build_csr(pd.DataFrame(table), tmp_path / "g.zarr", columns=tuple(table), directed=True)
    asked = []
    for columns in ([], ["a"], list("abcdef")):
        part = oocgraph.build_csr(pd.DataFrame(table), columns=("source", "target", *columns), directed=True)
        with pytest.raises(BudgetError) as refused:
            part.to_networkx(memory_budget="1M")
        asked.append(int(re.search(r"a graph of NetworkX needs ([\d.]+) MiB", str(refused.value))[1].partition(".")[0]))
    assert asked[0] < asked[1] < asked[2]
    graph.to_networkx()  # loads what it needs
    gc.collect()
    tracemalloc.start()
    found = graph.to_networkx()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert found.number_of_edges() == graph.num_edges
    assert peak >> 20 <= asked[2]
    u, v, attributes = next(iter(found.edges(data=True)))
    other = next(iter(graph.to_networkx().edges(data=True)))
    assert (u, v, attributes) == other
