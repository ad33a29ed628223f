"""Triangles of undirected graphs, and the coefficients that are made of them. Self-loops count for nothing."""

from __future__ import annotations

from typing import Any

import numpy as np

from oocgraph.algorithms.triangles import triangles as find_triangles
from oocgraph.networkx_backend.nodes import Nodes
from oocgraph.networkx_backend.registry import algorithm, undirected_only

_directed = undirected_only("triangles")


def _found(graph: Nodes) -> Any:
    return find_triangles(graph.store, resources=graph.resources)


def _of(graph: Nodes, chosen: Any, column: str) -> Any:
    """Return a column: of all nodes, of those that are chosen, or of the one that is."""
    if chosen is None:
        return graph.as_mapping(_found(graph), column)
    if chosen in graph:
        return _found(graph).of(graph.id_of(chosen), column)
    some = graph.chosen(chosen)
    values = _found(graph).of([graph.id_of(node) for node in some], column) if some else ()
    return dict(zip(some, map(float if column == "clustering" else int, values), strict=True))


@algorithm()
def triangles(graph: Nodes, nodes: Any = None) -> Any:
    """See `networkx.triangles`."""
    return _of(graph, nodes, "triangles")


@algorithm(unsupported=["weight"], refuse=_directed)
def clustering(graph: Nodes, nodes: Any = None, weight: Any = None) -> Any:
    """See `networkx.clustering`."""
    return _of(graph, nodes, "clustering")


@algorithm(unsupported=["weight"], refuse=_directed)
def average_clustering(graph: Nodes, nodes: Any = None, weight: Any = None, count_zeros: bool = True) -> float:
    """See `networkx.average_clustering`."""
    if nodes is None:
        values, count = graph.own(_found(graph), "clustering"), len(graph)
    else:
        values = np.array(list(_of(graph, graph.chosen(nodes), "clustering").values()))
        count = values.size
    return float(values.sum()) / (count if count_zeros else int(np.count_nonzero(values)))


@algorithm(refuse=_directed)
def transitivity(graph: Nodes) -> float:
    """See `networkx.transitivity`."""
    return float(_found(graph).transitivity)
