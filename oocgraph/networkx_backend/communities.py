"""Communities of high modularity."""

from __future__ import annotations

import random
from typing import Any

from oocgraph.algorithms.louvain import louvain
from oocgraph.arguments import is_whole
from oocgraph.memory import Budget
from oocgraph.networkx_backend.nodes import Nodes
from oocgraph.networkx_backend.registry import algorithm, undirected_only
from oocgraph.networkx_backend.searching import sets_of

NUM_SEEDS = 1 << 31
"""Seeds to draw from."""

SET_BYTES = 300
"""Of a community: a set, and a list of few nodes."""


@algorithm(unsupported=["max_level"], refuse=undirected_only("communities"))
def louvain_communities(
    graph: Nodes, weight: Any = "weight", resolution: float = 1, threshold: float = 1e-7, max_level: Any = None, seed: Any = None
) -> list[Any]:
    """See `networkx.community.louvain_communities`."""
    if not graph.num_edges:
        return [{node} for node in graph]
    if not is_whole(seed, 0):
        seed = (random if seed is None else seed).randrange(NUM_SEEDS)  # NetworkX makes a generator of a seed
    column = graph.column_of(weight) or False
    graph.leave_negative_weights()
    graph.charge(members=12)
    found = louvain(
        graph.store, resolution=resolution, threshold=threshold, seed=seed, weight=column, resources=graph.resources
    )  # fmt: skip
    Budget(graph.resources.limit_bytes).reserve("sets of communities", SET_BYTES * found.num_communities)
    return list(sets_of(graph, graph.own(found, "community")))
