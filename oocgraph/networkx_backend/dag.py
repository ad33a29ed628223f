"""Directed graphs without cycles: whether a graph is one, and its vertices in topological order."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import networkx as nx

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


def _generations(nodes: Nodes) -> Iterator[Any]:
    if not nodes.is_directed:
        raise nx.NetworkXError("Topological sort not defined on undirected graphs.")
    nodes.charge(generations=12)
    try:
        found = find_generations(nodes.store, resources=nodes.resources)
    except ArgumentError as error:
        raise nx.NetworkXUnfeasible(f"Graph contains a cycle or graph changed during iteration: {error}") from error
    yield from nodes.in_groups(*groups(nodes.own(found, "generation"), found.num_generations), list(nodes.alone()))


@algorithm()
def topological_generations(nodes: Nodes) -> Iterator[Any]:
    """See `networkx.topological_generations`; of a store, an array of ids for each generation."""
    return _generations(nodes)


@algorithm()
def topological_sort(nodes: Nodes) -> Iterator[Any]:
    """See `networkx.topological_sort`."""
    return (node for generation in _generations(nodes) for node in (generation if isinstance(generation, list) else generation.tolist()))
