"""Greedy colouring and maximal independent sets."""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import Any

import numpy as np

from oocgraph.algorithms.greedy import greedy_coloring
from oocgraph.algorithms.greedy import maximal_independent_set as find_set
from oocgraph.arguments import is_whole
from oocgraph.networkx_backend.communities import NUM_SEEDS
from oocgraph.networkx_backend.nodes import Nodes
from oocgraph.networkx_backend.registry import algorithm, undirected_only
from oocgraph.networkx_backend.store_nodes import StoreNodes

MEMBER_BYTES = 72
"""Of a node: its number, and its id, once as an object."""

_DIRECTED = undirected_only("colours")


def _refusal(given: Mapping[str, Any]) -> str | None:
    if given["strategy"] != "largest_first" or given["interchange"]:
        return "only strategy='largest_first' without interchange is supported"
    return _DIRECTED(given)


@algorithm(refuse=_refusal)
def greedy_color(nodes: Nodes, strategy: Any = "largest_first", interchange: bool = False) -> Mapping[Any, int]:
    """See `networkx.greedy_color`."""
    if nodes.num_self_loops and not isinstance(nodes, StoreNodes):
        raise NotImplementedError("self-loops: NetworkX counts them where it looks for the largest degree")
    return nodes.as_mapping(greedy_coloring(nodes.store, resources=nodes.resources))


@algorithm(unsupported=["nodes"], refuse=undirected_only("independent sets"))
def maximal_independent_set(G: Nodes, nodes: Any = None, seed: Any = None) -> Any:
    """See `networkx.maximal_independent_set`; of a store, an array of ids."""
    if not len(G):
        raise IndexError("Cannot choose from an empty sequence")
    if not is_whole(seed, 0):
        seed = (random if seed is None else seed).randrange(NUM_SEEDS)  # NetworkX makes a generator of a seed
    found = G.compute(lambda: find_set(G.store, seed=seed, resources=G.resources), members=MEMBER_BYTES + 4 * G.text_bytes)
    members = np.flatnonzero(G.own(found, "member"))
    (chosen,) = G.in_groups(members, np.array([members.size]), list(G.alone()))
    return chosen
