"""Bipartite graphs: a search from a node of each component at once gives the colours, and a product whether they will do."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import networkx as nx
import numpy as np

from oocgraph.networkx_backend.nodes import Nodes
from oocgraph.networkx_backend.registry import algorithm, undirected_only
from oocgraph.networkx_backend.searching import search
from oocgraph.types import Array

VECTOR_BYTES = 108
"""Of a vertex: components and their first nodes, levels, the vectors of a product, in two orders, and what that takes."""

_REFUSED = undirected_only("colours")


def _colour(graph: Nodes) -> Array | None:
    """Return 1 or 0 of each node in own order, of neighbours never the same, 0 of nodes without edges; None if there is no such thing."""
    if graph.num_self_loops:
        return None
    graph.charge_product(colours=VECTOR_BYTES)
    degrees = graph.degrees()
    level = graph.own(search(graph, [graph.id_of(node) for node in _first_of_each(graph, degrees)]), "level")
    colour = ((level >= 0) & (level % 2 == 0)).astype(np.int64)
    sign = 2.0 * colour - 1
    return colour if np.dot(sign, graph.sums(sign)) == -degrees.sum() else None  # minus one for each end of an edge


def _first_of_each(graph: Nodes, degrees: Array) -> list[Any]:
    """Return the first node of each component that has edges."""
    component = graph.components().component
    first = np.empty(component.size, component.dtype)
    first[component[::-1]] = np.arange(component.size)[::-1]
    return graph.label_list(np.flatnonzero((first[component] == np.arange(component.size)) & (degrees > 0)))


def _coloured(graph: Nodes) -> Array:
    colour = _colour(graph) if graph.num_edges else np.zeros(graph.num_own, np.int64)
    if colour is None:
        raise nx.NetworkXError("Graph is not bipartite.")
    return colour


@algorithm(refuse=_REFUSED)
def is_bipartite(graph: Nodes) -> bool:
    """See `networkx.bipartite.is_bipartite`."""
    return not graph.num_edges or _colour(graph) is not None


@algorithm(refuse=_REFUSED)
def color(graph: Nodes) -> Mapping[Any, int]:
    """See `networkx.bipartite.color`."""
    return graph.from_own(_coloured(graph), 0)


@algorithm(unsupported=["top_nodes"], refuse=_REFUSED)
def sets(graph: Nodes, top_nodes: Any = None) -> tuple[Any, Any]:
    """See `networkx.bipartite.sets`."""
    if not len(graph):
        raise nx.NetworkXPointlessConcept("Connectivity is undefined for the null graph.")
    if graph.components().num_components != 1:
        raise nx.AmbiguousSolution("Disconnected graph: Ambiguous solution for bipartite sets.")
    colour = _coloured(graph)
    top, bottom = (np.flatnonzero(colour == value) for value in (1, 0))
    return graph.as_set(top), graph.as_set(bottom, list(graph.alone()))
