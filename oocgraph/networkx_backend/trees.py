"""Trees: whether a graph is one, and the spanning trees of least weight."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import networkx as nx
import numpy as np

from oocgraph.algorithms.components import connected_components as find_components
from oocgraph.algorithms.spanning import minimum_spanning_forest
from oocgraph.networkx_backend.nodes import Nodes
from oocgraph.networkx_backend.registry import algorithm


def _components(nodes: Nodes) -> int:
    if not len(nodes):
        raise nx.NetworkXPointlessConcept("G has no nodes.")
    return int(find_components(nodes.store, resources=nodes.resources).num_components)


def _has_branches_only(nodes: Nodes) -> bool:
    """Whether no node has two edges that lead to it."""
    return int(nodes.degrees("in").max(initial=0)) <= 1


@algorithm()
def is_forest(nodes: Nodes) -> bool:
    """See `networkx.is_forest`."""
    return _components(nodes) == len(nodes) - nodes.store.num_edges


@algorithm()
def is_tree(nodes: Nodes) -> bool:
    """See `networkx.is_tree`."""
    return is_forest(nodes) and nodes.store.num_edges == len(nodes) - 1


@algorithm()
def is_branching(nodes: Nodes) -> bool:
    """See `networkx.is_branching`."""
    return is_forest(nodes) and _has_branches_only(nodes)


@algorithm()
def is_arborescence(nodes: Nodes) -> bool:
    """See `networkx.is_arborescence`."""
    return is_tree(nodes) and _has_branches_only(nodes)


def _refusal(given: Mapping[str, Any]) -> str | None:
    if given["G"].is_directed():
        return None  # NetworkX says so itself
    if given["algorithm"] not in ("kruskal", "prim", "boruvka"):
        raise ValueError(f"{given['algorithm']} is not a valid choice for an algorithm.")
    return None


@algorithm(refuse=_refusal)
def minimum_spanning_edges(
    nodes: Nodes, algorithm: str = "kruskal", weight: Any = "weight", keys: bool = True, data: bool = True, ignore_nan: bool = False
) -> Iterator[Any]:
    """See `networkx.minimum_spanning_edges`."""
    return nodes.tree_edges(_forest(nodes, weight), data)
