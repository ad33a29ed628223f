"""What leaves a set of nodes: sizes of cuts, volumes and what is made of both, by a product of the adjacency matrix."""

from __future__ import annotations

from typing import Any, NamedTuple

import networkx as nx
import numpy as np

from oocgraph.networkx_backend.mixing import check_loops
from oocgraph.networkx_backend.nodes import Nodes
from oocgraph.networkx_backend.registry import algorithm
from oocgraph.networkx_backend.vertex_set import VertexSet
from oocgraph.store.vertices import ABSENT
from oocgraph.types import Array

VECTOR_BYTES = 72
"""Of a vertex: both sets, degrees, and the vectors of a product, in two orders."""


MOST_EXACT = 1 << 53
"""Sums of integers that float64 holds."""


class _Set(NamedTuple):
    """A set of nodes.

    Attributes
    ----------
    is_in : (num_own,) bool
        Which nodes of own order are in it.
    often : (n,) int64
        Own numbers, each as often as it was given.
    num_given, num_nodes
        How many nodes were given, and how many different ones of these the graph has.
    """

    is_in: Array
    often: Array
    num_given: int
    num_nodes: int


def _set_of(graph: Nodes, given: Any, *, is_strict: bool = False) -> _Set:
    given = given if isinstance(given, VertexSet | np.ndarray) else list(given)
    numbers = graph.numbers_of(given)
    if is_strict and (numbers == ABSENT).any():
        raise nx.NetworkXError(f"The node {list(given)[int(np.argmax(numbers == ABSENT))]} is not in the graph.")
    is_in = np.zeros(graph.num_own, np.bool_)
    is_in[numbers[numbers >= 0]] = True
    members = list(given) if (numbers == -1).any() else []
    alone = {members[i] for i in np.flatnonzero(numbers == -1).tolist()}
    return _Set(is_in, numbers[numbers >= 0], len(numbers), int(is_in.sum()) + len(alone))


def _strengths(graph: Nodes, column: str | None) -> Array:
    """Return the degrees, of a directed graph those of edges that begin at a node, by weight."""
    if column is None:
        return graph.degrees("out" if graph.is_directed else None)
    check_loops(graph)
    return graph.sums(np.ones(graph.num_own), column=column)


def _exact(graph: Nodes, total: float, column: str | None) -> Any:
    """Return a sum of weights, an integer if these are."""
    if not graph.has_whole(column):
        return float(total)
    if abs(total) >= MOST_EXACT:
        raise NotImplementedError("sums of integers beyond 2 ** 53 are not exact")
    return int(total)


class _Cut(NamedTuple):
    """What is between two sets: edges by weight; of which column; and the sets."""

    size: Any
    column: str | None
    first: _Set
    second: _Set

    def volumes(self, graph: Nodes) -> tuple[Any, Any]:
        """Return the volume of both."""
        strengths = _strengths(graph, self.column)
        one, other = (_exact(graph, strengths[each.often].sum(), self.column) for each in (self.first, self.second))
        return one, other


def _cut(graph: Nodes, S: Any, T: Any, weight: Any) -> _Cut:
    """Find what is between two sets; where the second is None, between the first and all others."""
    graph.charge_product(sets=VECTOR_BYTES)
    column, first = graph.column_of(weight), _set_of(graph, S)
    if T is None:
        num_others = len(graph) - first.num_nodes
        second = _Set(~first.is_in, np.flatnonzero(~first.is_in), num_others, num_others)
    else:
        second = _set_of(graph, T)
    if (first.is_in & second.is_in).any():
        raise NotImplementedError("sets with nodes in common are not supported")
    ways = (False, True) if graph.is_directed else (False,)
    size = sum(float(graph.sums(second.is_in.astype(np.float64), reverse=way, column=column)[first.is_in].sum()) for way in ways)
    return _Cut(_exact(graph, size, column), column, first, second)


@algorithm()
def cut_size(graph: Nodes, S: Any, T: Any = None, weight: Any = None) -> Any:
    """See `networkx.cut_size`."""
    return _cut(graph, S, T, weight).size


@algorithm()
def volume(graph: Nodes, S: Any, weight: Any = None) -> Any:
    """See `networkx.volume`."""
    graph.charge_product(sets=VECTOR_BYTES)
    column = graph.column_of(weight)
    return _exact(graph, _strengths(graph, column)[_set_of(graph, S).often].sum(), column)


@algorithm()
def normalized_cut_size(graph: Nodes, S: Any, T: Any = None, weight: Any = None) -> float:
    """See `networkx.normalized_cut_size`."""
    cut = _cut(graph, S, T, weight)
    one, other = cut.volumes(graph)
    return float(cut.size * (1 / one + 1 / other))


@algorithm()
def conductance(graph: Nodes, S: Any, T: Any = None, weight: Any = None) -> float:
    """See `networkx.conductance`."""
    cut = _cut(graph, S, T, weight)
    return float(cut.size / min(cut.volumes(graph)))


@algorithm()
def edge_expansion(graph: Nodes, S: Any, T: Any = None, weight: Any = None) -> float:
    """See `networkx.edge_expansion`."""
    cut = _cut(graph, S, T, weight)
    return float(cut.size / min(cut.first.num_given, cut.second.num_given))


@algorithm()
def mixing_expansion(graph: Nodes, S: Any, T: Any = None, weight: Any = None) -> float:
    """See `networkx.mixing_expansion`."""
    return float(_cut(graph, S, T, weight).size / (2 * graph.num_edges))


@algorithm()
def node_boundary(graph: Nodes, nbunch1: Any, nbunch2: Any = None) -> Any:
    """See `networkx.node_boundary`."""
    graph.charge_product(sets=VECTOR_BYTES)
    inside = _set_of(graph, nbunch1).is_in
    is_near = (graph.sums(inside.astype(np.float64), reverse=True) > 0) & ~inside
    if nbunch2 is not None:
        is_near &= _set_of(graph, nbunch2).is_in
    return graph.as_set(np.flatnonzero(is_near))


def _neighbours(graph: Nodes, given: Any, *, reverse: bool = False) -> tuple[Array, _Set]:
    """Return which nodes of own order are neighbours of a set's, and the set; all of it must be in the graph."""
    graph.charge_product(sets=VECTOR_BYTES)
    found = _set_of(graph, given, is_strict=True)
    return graph.sums(found.is_in.astype(np.float64), reverse=not reverse) > 0, found


@algorithm()
def boundary_expansion(graph: Nodes, S: Any) -> float:
    """See `networkx.boundary_expansion`."""
    return len(node_boundary(graph, S)) / len(S)


@algorithm()
def node_expansion(graph: Nodes, S: Any) -> float:
    """See `networkx.node_expansion`."""
    return int(_neighbours(graph, S)[0].sum()) / len(S)


@algorithm()
def is_dominating_set(graph: Nodes, nbunch: Any) -> bool:
    """See `networkx.is_dominating_set`."""
    graph.charge_product(sets=VECTOR_BYTES)
    found = _set_of(graph, nbunch)
    is_near = graph.sums(found.is_in.astype(np.float64), reverse=True) > 0
    num_alone = found.num_nodes - int(found.is_in.sum())
    return bool((is_near | found.is_in).all()) and num_alone == len(graph) - graph.num_own


def _group_degree(graph: Nodes, S: Any, *, reverse: bool = False) -> float:
    is_near, found = _neighbours(graph, S, reverse=reverse)
    return int((is_near & ~found.is_in).sum()) / (len(graph) - len(S))


@algorithm()
def group_degree_centrality(graph: Nodes, S: Any) -> float:
    """See `networkx.group_degree_centrality`."""
    return _group_degree(graph, S)


@algorithm()
def group_in_degree_centrality(graph: Nodes, S: Any) -> float:
    """See `networkx.group_in_degree_centrality`."""
    if not graph.is_directed:
        raise nx.NetworkXNotImplemented("not implemented for undirected type")
    return _group_degree(graph, S, reverse=True)


@algorithm()
def group_out_degree_centrality(graph: Nodes, S: Any) -> float:
    """See `networkx.group_out_degree_centrality`."""
    if not graph.is_directed:
        raise nx.NetworkXNotImplemented("not implemented for undirected type")
    return _group_degree(graph, S)
