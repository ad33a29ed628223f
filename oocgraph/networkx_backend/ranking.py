"""Centralities by iteration over all edges: PageRank, hubs and authorities, Katz and eigenvector centrality."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import networkx as nx

from oocgraph.algorithms.eigenvector import eigenvector_centrality as find_eigenvector
from oocgraph.algorithms.hits import hits as find_hits
from oocgraph.algorithms.katz import katz_centrality as find_katz
from oocgraph.algorithms.pagerank import pagerank as find_ranks
from oocgraph.errors import ConvergenceError
from oocgraph.networkx_backend.graph import ConvertedGraph
from oocgraph.networkx_backend.nodes import Nodes
from oocgraph.networkx_backend.registry import algorithm


def _options(nodes: Nodes, max_iter: int, tol: float, weight: str | None) -> dict[str, Any]:
    """Return what all have in common; the graph of `nodes` has these weights from then on.

    Raises
    ------
    networkx.PowerIterationFailedConvergence
        No iteration may be made.
    """
    if max_iter <= 0:
        raise nx.PowerIterationFailedConvergence(max_iter)
    return {"max_iter": max_iter, "tol": tol, "weight": nodes.column_of(weight) or False, "resources": nodes.resources}


def _damping(given: Mapping[str, Any]) -> str | None:
    return None if 0 <= given["alpha"] < 1 else f"alpha={given['alpha']!r} is not supported; it must be from 0 to below 1"


@algorithm(unsupported=["nstart", "dangling"], refuse=_damping)
def pagerank(
    nodes: Nodes, alpha: float = 0.85, personalization: Any = None, max_iter: int = 100, tol: float = 1e-6, nstart: Any = None,
    weight: Any = "weight", dangling: Any = None,
) -> Mapping[Any, float]:  # fmt: skip
    """See `networkx.pagerank`."""
    if not len(nodes):
        return {}
    options = _options(nodes, max_iter, tol, weight)
    if personalization is not None:
        personalization = {nodes.id_of(node): value for node, value in personalization.items() if node in nodes}
        if not sum(personalization.values()):
            raise ZeroDivisionError("the personalization is zero of all nodes")
    return nodes.as_mapping(find_ranks(nodes.store, damping=alpha, personalization=personalization, **options))


def _scaled(given: Mapping[str, Any]) -> str | None:
    if given["method"] != "power_iteration":
        return f"method={given['method']!r} is not supported"
    if len(given["G"]) == 1:
        return "of one node NetworkX finds no hubs, but raises an error of SciPy"
    return None if given["normalized"] else "normalized=False is not supported: it has no certain sign"


@algorithm(unsupported=["nstart"], refuse=_scaled)
def hits(
    nodes: Nodes, max_iter: int = 100, tol: float = 1e-8, nstart: Any = None, normalized: bool = True, method: str = "power_iteration"
) -> tuple[Mapping[Any, float], Mapping[Any, float]]:
    """See `networkx.hits`."""
    if not len(nodes):
        return {}, {}
    options = _options(nodes, max_iter, tol, "weight")
    try:
        found = find_hits(nodes.store, **options)
    except ConvergenceError as error:
        if isinstance(nodes.graph, ConvertedGraph):
            raise NotImplementedError(f"{error}; NetworkX finds hubs by another method, which needs fewer iterations") from error
        raise
    return nodes.as_mapping(found, "hub"), nodes.as_mapping(found, "authority")


def _two_weights(given: Mapping[str, Any]) -> str | None:
    """Refuse an undirected view of a directed graph, where G[u][v] and G[v][u] may differ: NetworkX multiplies by the one or the other."""
    graph = given["G"]
    if given["weight"] is None or graph.is_directed() or not getattr(getattr(graph, "_graph", None), "is_directed", bool)():
        return None
    return "weights of an undirected view of a directed graph are not supported; copy it by networkx.Graph(G)"


def _same_beta(given: Mapping[str, Any]) -> str | None:
    if refusal := _two_weights(given):
        return refusal
    if not isinstance(given["beta"], int | float):
        return "beta by node is not supported"
    return None if given["alpha"] > 0 else f"alpha={given['alpha']!r} is not supported; it must be above 0"


@algorithm(unsupported=["nstart"], refuse=_same_beta)
def katz_centrality(
    nodes: Nodes, alpha: float = 0.1, beta: float = 1.0, max_iter: int = 1000, tol: float = 1e-6, nstart: Any = None,
    normalized: bool = True, weight: Any = None,
) -> Mapping[Any, float]:  # fmt: skip
    """See `networkx.katz_centrality`."""
    if not len(nodes):
        return {}
    options = _options(nodes, max_iter, tol, weight)
    return nodes.as_mapping(find_katz(nodes.store, alpha=alpha, beta=beta, normalized=normalized, **options))


@algorithm(unsupported=["nstart"], refuse=_two_weights)
def eigenvector_centrality(
    nodes: Nodes, max_iter: int = 100, tol: float = 1e-6, nstart: Any = None, weight: Any = None
) -> Mapping[Any, float]:
    """See `networkx.eigenvector_centrality`."""
    if not len(nodes):
        raise nx.NetworkXPointlessConcept("cannot compute centrality for the null graph")
    options = _options(nodes, max_iter, tol, weight)
    return nodes.as_mapping(find_eigenvector(nodes.store, **options))
