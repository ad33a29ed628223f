"""Communities: of high modularity, and those in which labels agree with the neighbours'."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from itertools import chain
from typing import Any

import numpy as np
from networkx.algorithms.community.quality import NotAPartition

from oocgraph.algorithms.label_propagation import label_propagation
from oocgraph.algorithms.louvain import louvain
from oocgraph.algorithms.modularity import find_modularity
from oocgraph.arguments import is_whole
from oocgraph.memory import Budget
from oocgraph.networkx_backend.nodes import Nodes
from oocgraph.networkx_backend.registry import algorithm, undirected_only
from oocgraph.networkx_backend.searching import sets_of
from oocgraph.networkx_backend.vertex_set import VertexSet
from oocgraph.types import Array

NUM_SEEDS = 1 << 31
"""Seeds to draw from."""

MEMBER_BYTES = 96
"""Of a node that a set is given of: an object, its id twice, number and community."""

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
    found = nodes.compute(lambda: find(nodes.store, seed=seed, weight=column, resources=nodes.resources, **options), members=12)
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


@algorithm(refuse=undirected_only("communities"))
def modularity(graph: Nodes, communities: Any, weight: Any = "weight", resolution: float = 1) -> float:
    """See `networkx.community.modularity`."""
    column = graph.column_of(weight)
    graph.leave_negative_weights()
    graph.charge(members=MEMBER_BYTES)
    group = _groups(graph, list(communities))
    if group is None:
        raise NotAPartition(getattr(graph.graph, "original", graph.graph), communities)
    if not graph.num_edges:
        raise ZeroDivisionError("division by zero")
    found = find_modularity(graph.store, group, weight=column or False, resolution=resolution, resources=graph.resources)
    if not found and column is not None and not graph.sums(np.ones(graph.num_own), column=column).any():
        raise ZeroDivisionError("division by zero")
    return found


def _groups(graph: Nodes, sets: Sequence[Any]) -> Array | None:
    """Return the store number that the community of each vertex is named after; None unless each node is in one of the sets."""
    ids = [one.ids if isinstance(one, VertexSet) else one for one in sets]
    are_arrays = bool(ids) and all(isinstance(one, np.ndarray) for one in ids)
    members = np.concatenate(ids) if are_arrays else list(chain.from_iterable(sets))
    numbers = graph.stored_numbers_of(members)
    if numbers.size != len(graph) or (numbers < -1).any():
        return None
    others, is_linked = {members[i] for i in np.flatnonzero(numbers < 0).tolist()}, numbers >= 0
    which, numbers = np.repeat(np.arange(len(sets)), [len(one) for one in sets])[is_linked], numbers[is_linked]
    name, group = np.zeros(len(sets), np.int64), np.full(graph.store.num_rows, -1)
    name[which] = numbers
    group[numbers] = name[which]
    return group.astype(graph.store.index_dtype) if len(others) + group.size == len(graph) and (group >= 0).all() else None
