"""What leaves a set of nodes: sizes of cuts, volumes and what is made of both, by a product of the adjacency matrix."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from oocgraph.networkx_backend.nodes import Nodes
from oocgraph.networkx_backend.registry import algorithm
from oocgraph.types import Array

VECTOR_BYTES = 56
"""Of a vertex: both sets, degrees, and the vectors of a product, in two orders."""


class _Cut(NamedTuple):
    """What is between two sets, and in each: edges by weight, the volume of both, and how many nodes they have."""

    size: Any
    volumes: tuple[Any, Any]
    num_nodes: tuple[int, int]


def _members(graph: Nodes, given: Any) -> tuple[Array, int]:
    """Return which nodes of own order are in a set, and how many nodes that has."""
    given = given if hasattr(given, "__len__") else list(given)
    is_in = np.zeros(graph.num_own, np.bool_)
    is_in[_numbers(graph, given)] = True
    return is_in, len(given)


def _numbers(graph: Nodes, given: Any) -> Array:
    """Return the own numbers of some nodes, without those that have no edges and none."""
    numbers = graph.numbers_of(given)
    return numbers[numbers >= 0]


def _strengths(graph: Nodes, column: str | None) -> Array:
    """Return the degrees, of a directed graph those of edges that begin at a node, by weight."""
    if column is None:
        return graph.degrees("out" if graph.is_directed else None)
    if not graph.is_directed and graph.num_self_loops:
        raise NotImplementedError("weights of undirected graphs with self-loops are not supported")
    return graph.sums(np.ones(graph.num_own), column=column)


def _whole(total: float, column: str | None) -> Any:
    return int(total) if column is None else float(total)


def _cut(graph: Nodes, S: Any, T: Any, weight: Any, *, with_volumes: bool = True) -> _Cut:
    """Find what is between two sets; where the second is None, between the first and all others."""
    graph.charge(sets=VECTOR_BYTES)
    column = graph.column_of(weight)
    first, num_first = _members(graph, S)
    second, num_second = (~first, len(graph) - num_first) if T is None else _members(graph, T)
    if (first & second).any():
        raise NotImplementedError("sets with nodes in common are not supported")
    ways = (False, True) if graph.is_directed else (False,)
    size = sum(float(graph.sums(second.astype(np.float64), reverse=way, column=column)[first].sum()) for way in ways)
    volumes: tuple[Any, Any] = (0, 0)
    if with_volumes:
        strengths = _strengths(graph, column)
        volumes = _whole(strengths[first].sum(), column), _whole(strengths[second].sum(), column)
    return _Cut(_whole(size, column), volumes, (num_first, num_second))


@algorithm()
def cut_size(graph: Nodes, S: Any, T: Any = None, weight: Any = None) -> Any:
    """See `networkx.cut_size`."""
    return _cut(graph, S, T, weight, with_volumes=False).size


@algorithm()
def volume(graph: Nodes, S: Any, weight: Any = None) -> Any:
    """See `networkx.volume`."""
    graph.charge(sets=VECTOR_BYTES)
    column = graph.column_of(weight)
    return _whole(_strengths(graph, column)[_numbers(graph, S)].sum(), column)


@algorithm()
def normalized_cut_size(graph: Nodes, S: Any, T: Any = None, weight: Any = None) -> float:
    """See `networkx.normalized_cut_size`."""
    size, (one, other), _ = _cut(graph, S, T, weight)
    return float(size * (1 / one + 1 / other))


@algorithm()
def conductance(graph: Nodes, S: Any, T: Any = None, weight: Any = None) -> float:
    """See `networkx.conductance`."""
    cut = _cut(graph, S, T, weight)
    return float(cut.size / min(cut.volumes))


@algorithm()
def edge_expansion(graph: Nodes, S: Any, T: Any = None, weight: Any = None) -> float:
    """See `networkx.edge_expansion`."""
    cut = _cut(graph, S, T, weight, with_volumes=False)
    return float(cut.size / min(cut.num_nodes))


@algorithm()
def mixing_expansion(graph: Nodes, S: Any, T: Any = None, weight: Any = None) -> float:
    """See `networkx.mixing_expansion`."""
    return float(_cut(graph, S, T, weight, with_volumes=False).size / (2 * graph.num_edges))


@algorithm()
def node_boundary(graph: Nodes, nbunch1: Any, nbunch2: Any = None) -> Any:
    """See `networkx.node_boundary`."""
    graph.charge(sets=VECTOR_BYTES)
    inside, _ = _members(graph, nbunch1)
    is_near = (graph.sums(inside.astype(np.float64), reverse=True) > 0) & ~inside
    if nbunch2 is not None:
        is_near &= _members(graph, nbunch2)[0]
    return graph.as_set(np.flatnonzero(is_near))
