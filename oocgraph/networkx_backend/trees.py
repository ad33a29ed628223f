"""Trees: whether a graph is one, and the spanning trees of least and greatest weight."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import networkx as nx
import numpy as np

from oocgraph.algorithms.spanning import minimum_spanning_forest
from oocgraph.networkx_backend.nodes import Nodes, TreeEdges
from oocgraph.networkx_backend.registry import algorithm
from oocgraph.networkx_backend.store_nodes import StoreNodes
from oocgraph.store.graph import CSRStore
from oocgraph.store.in_memory import build_bytes

FOREST_BYTES = 56
"""Of a vertex: ends and weights of the forest's edges, as they are found and in order."""

ALGORITHMS = ("kruskal", "prim", "boruvka")
"""What NetworkX has to find spanning trees by; here the rounds are Boruvka's."""


@algorithm()
def is_forest(nodes: Nodes) -> bool:
    """See `networkx.is_forest`."""
    if not len(nodes):
        raise nx.NetworkXPointlessConcept("G has no nodes.")
    return nodes.is_forest()


@algorithm()
def is_tree(nodes: Nodes) -> bool:
    """See `networkx.is_tree`."""
    return nodes.num_edges == len(nodes) - 1 and is_forest(nodes) if len(nodes) else is_forest(nodes)


def _has_branches_only(nodes: Nodes) -> bool:
    """Whether no node has two edges that lead to it."""
    return int(nodes.degrees("in").max(initial=0)) <= 1


@algorithm()
def is_branching(nodes: Nodes) -> bool:
    """See `networkx.is_branching`."""
    return is_forest(nodes) and _has_branches_only(nodes)


@algorithm()
def is_arborescence(nodes: Nodes) -> bool:
    """See `networkx.is_arborescence`."""
    return is_tree(nodes) and _has_branches_only(nodes)


def _refusal(given: Mapping[str, Any]) -> str | None:
    if given["algorithm"] not in ALGORITHMS:
        return f"algorithm={given['algorithm']!r} is none of {', '.join(ALGORITHMS)}"
    stored = getattr(given["G"], "attributes", None)
    others = () if stored is None else set(stored.columns) - {stored.stored_column(given["weight"])}
    return f"edges with other attributes ({', '.join(sorted(others))}) are not supported" if others else None


def _refusal_of_edges(given: Mapping[str, Any]) -> str | None:
    if given["algorithm"] != "kruskal" and not isinstance(given["G"], CSRStore):
        return f"algorithm={given['algorithm']!r} has another order of the edges; here it is that of 'kruskal'"
    return _refusal(given)


def _forest(nodes: Nodes, weight: Any, *, maximum: bool = False, is_built: bool = False) -> TreeEdges:
    """Return the edges of a minimum spanning forest, by ascending weight, or of a maximum one, by descending weight.

    `is_built` tells that a graph is made of them: of a store, one in memory, for which there is room then.
    """
    if nodes.is_directed:
        raise nx.NetworkXNotImplemented("not implemented for directed type")
    column = nodes.column_of(weight)
    nodes.leave_choice_of_forests()
    found = nodes.compute(
        lambda: minimum_spanning_forest(nodes.store, weight=column or False, maximum=maximum, resources=nodes.resources),
        forest=FOREST_BYTES, graph_in_memory=build_bytes(1) if is_built and isinstance(nodes, StoreNodes) else 0,
    )  # fmt: skip
    parent = nodes.own(found, "parent")
    children = np.flatnonzero(parent != np.arange(parent.size))
    weights = nodes.own(found, "weight")[children]
    order = np.argsort(-weights if maximum else weights, kind="stable")
    ends = parent[children[order]].astype(np.int64), children[order]
    return TreeEdges(np.minimum(*ends), np.maximum(*ends), None if column is None else weights[order], weight)


@algorithm(refuse=_refusal_of_edges, takes_parallel_edges=False)
def minimum_spanning_edges(
    nodes: Nodes, algorithm: str = "kruskal", weight: Any = "weight", keys: bool = True, data: bool = True, ignore_nan: bool = False
) -> Iterator[Any]:
    """See `networkx.minimum_spanning_edges`."""
    return nodes.edges_of(_forest(nodes, weight), data=data)


@algorithm(refuse=_refusal, takes_parallel_edges=False)
def minimum_spanning_tree(nodes: Nodes, weight: Any = "weight", algorithm: str = "kruskal", ignore_nan: bool = False) -> Any:
    """See `networkx.minimum_spanning_tree`; of a store, a graph of oocgraph in memory."""
    return nodes.spanning_graph(_forest(nodes, weight, is_built=True))


@algorithm(refuse=_refusal_of_edges, takes_parallel_edges=False)
def maximum_spanning_edges(
    nodes: Nodes, algorithm: str = "kruskal", weight: Any = "weight", keys: bool = True, data: bool = True, ignore_nan: bool = False
) -> Iterator[Any]:
    """See `networkx.maximum_spanning_edges`."""
    return nodes.edges_of(_forest(nodes, weight, maximum=True), data=data)


@algorithm(refuse=_refusal, takes_parallel_edges=False)
def maximum_spanning_tree(nodes: Nodes, weight: Any = "weight", algorithm: str = "kruskal", ignore_nan: bool = False) -> Any:
    """See `networkx.maximum_spanning_tree`; of a store, a graph of oocgraph in memory."""
    return nodes.spanning_graph(_forest(nodes, weight, maximum=True, is_built=True))
