"""Directed graphs without cycles: whether a graph is one, and its vertices in topological order."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import networkx as nx
import numpy as np

from oocgraph.algorithms.topological import is_directed_acyclic_graph as is_acyclic
from oocgraph.algorithms.topological import topological_generations as find_generations
from oocgraph.errors import ArgumentError
from oocgraph.networkx_backend.nodes import Nodes
from oocgraph.networkx_backend.registry import algorithm
from oocgraph.networkx_backend.searching import groups


@algorithm()
def is_directed_acyclic_graph(nodes: Nodes) -> bool:
    """See `networkx.is_directed_acyclic_graph`."""
    return is_acyclic(nodes.store, resources=nodes.resources)


def _found(nodes: Nodes) -> Any:
    """Find the generations; of each node the number of edges on the longest path to it."""
    try:
        return nodes.compute(lambda: find_generations(nodes.store, resources=nodes.resources), generations=12)
    except ArgumentError as error:
        raise nx.NetworkXUnfeasible(f"Graph contains a cycle or graph changed during iteration: {error}") from error


def _generations(nodes: Nodes) -> Iterator[Any]:
    if not nodes.is_directed:
        raise nx.NetworkXError("Topological sort not defined on undirected graphs.")
    found = _found(nodes)
    yield from nodes.in_groups(*groups(nodes.own(found, "generation"), found.num_generations), list(nodes.alone()))


@algorithm()
def topological_generations(nodes: Nodes) -> Iterator[Any]:
    """See `networkx.topological_generations`; of a store, an array of ids for each generation."""
    return _generations(nodes)


@algorithm()
def topological_sort(nodes: Nodes) -> Iterator[Any]:
    """See `networkx.topological_sort`."""
    return (node for generation in _generations(nodes) for node in (generation if isinstance(generation, list) else generation.tolist()))


def _check_longest(nodes: Nodes, weight: Any) -> None:
    if not nodes.is_directed:
        raise nx.NetworkXNotImplemented("not implemented for undirected type")
    if nodes.column_of(weight) is not None:
        raise NotImplementedError("longest paths by a weight are not supported; give weight=None for those of most edges")


@algorithm(unsupported=["default_weight", "topo_order"])
def dag_longest_path(nodes: Nodes, weight: Any = "weight", default_weight: int = 1, topo_order: Any = None) -> list[Any]:
    """See `networkx.dag_longest_path`."""
    _check_longest(nodes, weight)
    if not len(nodes):
        return []
    found = _found(nodes)
    generation = nodes.own(found, "generation")
    if not generation.size:
        return [next(iter(nodes))]
    path = [nodes.id_of(one) for one in nodes.label_list(np.array([np.argmax(generation)]))]
    for before in range(int(generation.max()) - 1, -1, -1):
        near = nodes.successors(path[-1], reverse=True)
        path.append(near[np.asarray(found.of(near)) == before][0])
    return nodes.nodes_of(np.array(path[::-1]))


@algorithm(unsupported=["default_weight"])
def dag_longest_path_length(nodes: Nodes, weight: Any = "weight", default_weight: int = 1) -> int:
    """See `networkx.dag_longest_path_length`."""
    _check_longest(nodes, weight)
    return max(0, int(_found(nodes).num_generations) - 1)
