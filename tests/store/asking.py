"""Asks a graph questions within the smallest budgets that are named, each in a process of its own.

As ``python -m tests.store.asking GRAPH``; prints what each held.
"""

from __future__ import annotations

import json
import multiprocessing
import re
import sys
from functools import partial

import numpy as np

from oocgraph import open_graph
from oocgraph.errors import BudgetError
from oocgraph.memory import PeakSampler

MOST_REFUSALS = 10
"""Budgets that are tried."""


def chosen(graph, count):
    """Return the ids of random vertices."""
    return np.random.default_rng(1).choice(np.array(list(graph)), count, replace=False)


QUESTIONS = {
    "neighbors": lambda graph, **budget: len(graph.neighbors(chosen(graph, 30_000), **budget).flatten()),
    "columns": lambda graph, **budget: graph.neighbors(chosen(graph, 15_000), columns=["weight"], **budget).num_rows,
    "degree": lambda graph, **budget: int(graph.degree(**budget).sum()),
    "has_edge": lambda graph, **budget: int(graph.has_edge(*chosen(graph, 50_000).reshape(2, -1), **budget).sum()),
    "similarity": lambda graph, **budget: int(graph.similarity(*chosen(graph, 50_000).reshape(2, -1), kind="adamic-adar", **budget).sum()),
    "edges": lambda graph, **budget: sum(batch.num_rows for batch in graph.edges(**budget)),
    "subgraph": lambda graph, **budget: graph.subgraph(chosen(graph, 30_000), **budget).num_edges,
    "ego": lambda graph, **budget: graph.ego(graph.ids_of([2000])[0], 2, **budget).num_edges,
    "random_walk": lambda graph, **budget: graph.random_walk(chosen(graph, 50_000), 20, **budget).size,
    "sample_neighbors": lambda graph, **budget: graph.sample_neighbors(chosen(graph, 10_000), [10, 5], **budget).hop.size,
}


def ask(path, question):
    """Return the size of an answer, its budget, the peak, and how often a budget was refused before."""
    graph, budget, refusals = open_graph(path), 20 << 20, 0
    while refusals < MOST_REFUSALS:
        try:
            with PeakSampler() as sampler:
                found = QUESTIONS[question](graph, memory_budget=budget)
        except BudgetError as error:
            budget, refusals = int(re.search(r"at least (\d+)M", str(error))[1]) << 20, refusals + 1
        else:
            return {"found": int(found), "budget": budget, "peak_host_bytes": sampler.peak_bytes, "refusals": refusals}
    return {"found": None, "budget": budget, "peak_host_bytes": 0, "refusals": refusals}


if __name__ == "__main__":
    with multiprocessing.get_context("fork").Pool(1, maxtasksperchild=1) as pool:
        print(json.dumps(dict(zip(QUESTIONS, pool.map(partial(ask, sys.argv[1]), QUESTIONS, chunksize=1), strict=True))))
