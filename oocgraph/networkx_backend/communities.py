"""Communities: of high modularity, and those in which labels agree with the neighbours'."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

from oocgraph.algorithms.label_propagation import label_propagation
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


def _communities(nodes: Nodes, find: Callable[..., Any], weight: Any, seed: Any, **options: Any) -> list[Any]:
    """Return the sets of nodes that a function of oocgraph finds."""
    if not nodes.num_edges:
        return [{node} for node in nodes]
    if not is_whole(seed, 0):
        seed = (random if seed is None else seed).randrange(NUM_SEEDS)  # NetworkX makes a generator of a seed
    column = nodes.column_of(weight) or False
    nodes.leave_negative_weights()
    nodes.charge(members=12)
    found = find(nodes.store, seed=seed, weight=column, resources=nodes.resources, **options)
    Budget(nodes.resources.limit_bytes).reserve("sets of communities", SET_BYTES * found.num_communities)
    return list(sets_of(nodes, nodes.own(found, "community")))


@algorithm(unsupported=["max_level"], refuse=undirected_only("communities"))
def louvain_communities(
    graph: Nodes, weight: Any = "weight", resolution: float = 1, threshold: float = 1e-7, max_level: Any = None, seed: Any = None
) -> list[Any]:
    """See `networkx.community.louvain_communities`."""
    return _communities(graph, louvain, weight, seed, resolution=resolution, threshold=threshold)


@algorithm(refuse=undirected_only("communities"))
def asyn_lpa_communities(graph: Nodes, weight: Any = None, seed: Any = None) -> list[Any]:
    """See `networkx.community.asyn_lpa_communities`."""
    return _communities(graph, label_propagation, weight, seed)


@algorithm(refuse=undirected_only("communities"))
def fast_label_propagation_communities(graph: Nodes, weight: Any = None, seed: Any = None) -> list[Any]:
    """See `networkx.community.fast_label_propagation_communities`."""
    return _communities(graph, label_propagation, weight, seed)
