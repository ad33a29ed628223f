"""Measures of the distances between all nodes: eccentricities and what is derived from them, and averages, by a search from every node."""

from __future__ import annotations

from collections.abc import Mapping
from math import inf, nan
from typing import Any, NamedTuple

import networkx as nx
import numpy as np

from oocgraph.algorithms.eccentricity import diameter as find_diameter
from oocgraph.algorithms.eccentricity import eccentricity as find_eccentricity
from oocgraph.algorithms.multi_source_bfs import multi_source_bfs
from oocgraph.errors import ArgumentError
from oocgraph.networkx_backend.graph import ConvertedGraph
from oocgraph.networkx_backend.nodes import Nodes
from oocgraph.networkx_backend.registry import algorithm
from oocgraph.networkx_backend.searching import search
from oocgraph.networkx_backend.tiny import are_few, eccentricities_in_tiny
from oocgraph.store.graph import CSRStore
from oocgraph.store.vertices import VertexIds
from oocgraph.types import UNREACHED, Array

BLOCK_SOURCES = 1 << 12
"""Nodes that searches begin at together."""


def _is_weighted(nodes: Nodes, weight: Any) -> bool:
    """Return whether the graph has weights, which may not be negative: asked before what a caller gives is used up."""
    is_weighted = nodes.column_of(weight) is not None
    if is_weighted:
        nodes.leave_negative_weights()
    return is_weighted


def _in_tiny(nodes: Nodes, chosen: list[Any] | None = None, *, weighted: bool) -> Array | None:
    """Return the eccentricity of the nodes in own order, or of chosen ones; None unless these are few searches of a tiny graph."""
    graph = nodes.graph
    if isinstance(graph, ConvertedGraph):
        sources = np.arange(len(nodes)) if chosen is None else np.array([nodes.id_of(node) for node in chosen], np.int64)
        if are_few(sources.size, len(nodes), graph.near.size):
            found = eccentricities_in_tiny(graph, sources, weighted=weighted)
            if ((found == UNREACHED) | (found == inf)).any():
                raise _infinite(nodes)
            return found
    return None


def _found(nodes: Nodes, ids: list[Any] | None = None) -> Any:
    """Return the result that has the eccentricities."""
    try:
        return find_eccentricity(nodes.store, ids, resources=nodes.resources)
    except ArgumentError as error:
        raise _infinite(nodes) from error


def _eccentricities(nodes: Nodes, weight: Any) -> Array:
    """Return the eccentricities of the nodes in own order."""
    found = _in_tiny(nodes, weighted=_is_weighted(nodes, weight))
    return nodes.own(_found(nodes), "eccentricity") if found is None else found


def _infinite(nodes: Nodes) -> nx.NetworkXError:
    why = "the digraph is not strongly connected" if nodes.is_directed else "the graph is not connected"
    return nx.NetworkXError(f"Found infinite path length because {why}")


def _refusal(given: Mapping[str, Any]) -> str | None:
    graph = given["G"]
    if not len(graph):
        return "a graph without nodes has no distances"
    if given["weight"] is None:
        return None
    if isinstance(graph, CSRStore) or not are_few(len(graph), len(graph), (1 if graph.is_directed() else 2) * graph.number_of_edges()):
        return "by a weight, distances from every node are found of tiny graphs of NetworkX only"
    return None


@algorithm(unsupported=["sp"], refuse=_refusal)
def eccentricity(nodes: Nodes, v: Any = None, sp: Any = None, weight: Any = None) -> Any:
    """See `networkx.eccentricity`."""
    weighted = _is_weighted(nodes, weight)
    if v is None:
        found = _in_tiny(nodes, weighted=weighted)
        return nodes.as_mapping(_found(nodes)) if found is None else nodes.from_own(found, 0)
    chosen = nodes.chosen(v)
    values: list[Any] = []
    if chosen:
        found = _in_tiny(nodes, chosen, weighted=weighted)
        ids = [nodes.id_of(node) for node in chosen]
        values = (_found(nodes, ids).of(ids) if found is None else found).tolist()
    return values[0] if v in nodes else dict(zip(chosen, values, strict=True))


@algorithm(unsupported=["e"], refuse=_refusal)
def diameter(nodes: Nodes, e: Any = None, usebounds: bool = False, weight: Any = None) -> Any:
    """See `networkx.diameter`; of an undirected graph, by bounds always, unless it is tiny."""
    found = _eccentricities(nodes, weight) if nodes.is_directed else _in_tiny(nodes, weighted=_is_weighted(nodes, weight))
    if found is not None:
        return found.max().item() if found.size else 0
    try:
        return find_diameter(nodes.store, resources=nodes.resources).diameter
    except ArgumentError as error:
        raise _infinite(nodes) from error


@algorithm(unsupported=["e"], refuse=_refusal)
def radius(nodes: Nodes, e: Any = None, usebounds: bool = False, weight: Any = None) -> Any:
    """See `networkx.radius`."""
    found = _eccentricities(nodes, weight)
    return found.min().item() if found.size else 0


def _where(nodes: Nodes, weight: Any, extreme: str) -> list[Any]:
    found = _eccentricities(nodes, weight)
    if not found.size:
        return list(nodes.alone())
    return nodes.label_list(np.flatnonzero(found == getattr(found, extreme)()))


def _tree(given: Mapping[str, Any]) -> str | None:
    graph = given["G"]
    if given["weight"] is None and isinstance(graph, nx.Graph) and not graph.is_directed() and graph.number_of_edges() == len(graph) - 1:
        return "of a tree NetworkX finds the center without distances"
    return _refusal(given)


@algorithm(unsupported=["e"], refuse=_tree)
def center(nodes: Nodes, e: Any = None, usebounds: bool = False, weight: Any = None) -> list[Any]:
    """See `networkx.center`."""
    return _where(nodes, weight, "min")


@algorithm(unsupported=["e"], refuse=_refusal)
def periphery(nodes: Nodes, e: Any = None, usebounds: bool = False, weight: Any = None) -> list[Any]:
    """See `networkx.periphery`."""
    return _where(nodes, weight, "max")


class _Sums(NamedTuple):
    """Sums over all ordered pairs of nodes with a path; and whether all pairs have one."""

    distances: int
    inverse_distances: float
    is_connected: bool


def _sums(nodes: Nodes, *, only_connected: bool) -> _Sums:
    """Add up the distances of all pairs; `only_connected`: stop once a pair has no path."""
    total, inverse, n, is_connected = 0, 0.0, len(nodes), True
    for ids, _ in VertexIds(nodes.store).blocks(BLOCK_SOURCES):
        found = multi_source_bfs(nodes.store, ids, resources=nodes.resources)
        total += int(found.sum_distances.sum())
        inverse += float(found.sum_inverse_distances.sum())
        is_connected &= bool((found.num_reached == n).all())
        if only_connected and not is_connected:
            break
    return _Sums(total, inverse, is_connected)


def _unweighted(given: Mapping[str, Any]) -> str | None:
    return None if given["method"] in (None, "unweighted") else f"method={given['method']!r} is not supported"


@algorithm(unsupported=["weight"], refuse=_unweighted)
def average_shortest_path_length(nodes: Nodes, weight: Any = None, method: Any = None) -> float:
    """See `networkx.average_shortest_path_length`."""
    n = len(nodes)
    if n == 0:
        raise nx.NetworkXPointlessConcept("the null graph has no paths, thus there is no average shortest path length")
    if n == 1:
        return 0
    found = _sums(nodes, only_connected=True)
    if not found.is_connected:
        raise nx.NetworkXError(f"Graph is not {'strongly ' if nodes.is_directed else ''}connected.")
    return found.distances / (n * (n - 1))


@algorithm(unsupported=["weight"])
def wiener_index(nodes: Nodes, weight: Any = None) -> float:
    """See `networkx.wiener_index`."""
    if not len(nodes):
        raise nx.NetworkXPointlessConcept("Connectivity is undefined for the null graph.")
    found = _sums(nodes, only_connected=True)
    if not found.is_connected:
        return inf
    return found.distances if nodes.is_directed else found.distances / 2


@algorithm()
def global_efficiency(nodes: Nodes) -> float:
    """See `networkx.global_efficiency`."""
    pairs = len(nodes) * (len(nodes) - 1)
    return _sums(nodes, only_connected=False).inverse_distances / pairs if pairs else 0


@algorithm(unsupported=["sp", "weight"])
def harmonic_diameter(nodes: Nodes, sp: Any = None, *, weight: Any = None) -> float:
    """See `networkx.harmonic_diameter`."""
    n = len(nodes)
    inverse = _sums(nodes, only_connected=False).inverse_distances if n else 0
    if inverse:
        return n * (n - 1) / inverse
    return inf if n > 1 else nan


def _nobody(given: Mapping[str, Any]) -> str | None:
    return None if len(given["G"]) else "a graph without nodes has no diameter"


@algorithm(refuse=_nobody)
def approximate_diameter(nodes: Nodes, seed: Any = None) -> int:
    """See `networkx.approximation.diameter`."""
    if len(nodes) == 1:
        return 0
    drawn = nx.utils.create_py_random_state(seed).choice(range(len(nodes)))
    ways = (False, True) if nodes.is_directed else (False,)
    return max(_farthest(nodes, _farthest(nodes, drawn, reverse=way)[0], reverse=nodes.is_directed and not way)[1] for way in ways)


def _farthest(nodes: Nodes, number: int, *, reverse: bool) -> tuple[int, int]:
    """Return the own number of a node that is as far as any, and how far it is.

    Raises
    ------
    networkx.NetworkXError
        Not all nodes can be reached.
    """
    if not nodes.num_isolated:
        (start,) = nodes.label_list(np.array([number]))
        level = nodes.own(search(nodes, nodes.id_of(start), reverse=reverse), "level")
        if level.min() >= 0:
            far = int(np.argmax(level))
            return far, int(level[far])
    raise nx.NetworkXError("DiGraph not strongly connected." if nodes.is_directed else "Graph not connected.")
