"""Communities of high modularity."""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import Any

from oocgraph.algorithms.louvain import louvain
from oocgraph.arguments import is_whole
from oocgraph.networkx_backend.nodes import Nodes
from oocgraph.networkx_backend.registry import algorithm
from oocgraph.networkx_backend.searching import groups

SEEDS = 1 << 31
"""How many there are to draw from."""


def _directed(given: Mapping[str, Any]) -> str | None:
    return "communities of directed graphs are not supported" if given["G"].is_directed() else None


@algorithm(unsupported=["max_level"], refuse=_directed)
def louvain_communities(
    graph: Nodes, weight: Any = "weight", resolution: float = 1, threshold: float = 1e-7, max_level: Any = None, seed: Any = None
) -> list[Any]:
    """See `networkx.community.louvain_communities`."""
    if not graph.num_edges:
        return [{node} for node in graph]
    drawn = seed if is_whole(seed, 0) else (random if seed is None else seed).randrange(SEEDS)  # NetworkX makes a generator of a seed
    column = graph.column_of(weight) or False
    graph.leave_negative_weights()
    graph.charge(members=12)
    found = louvain(
        graph.store, resolution=resolution, threshold=threshold, seed=drawn, weight=column, resources=graph.resources,
    )  # fmt: skip
    community = graph.own(found, "community")
    return [*graph.in_sets(*groups(community, community.size)), *({node} for node in graph.alone())]
