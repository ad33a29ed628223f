"""Breadth-first traversals: edges, layers, successors and descendants.

Where several orders are breadth-first, the one of the positions of the nodes is taken: NetworkX takes the one in which edges were added.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import groupby
from operator import itemgetter
from typing import Any

import networkx as nx
import numpy as np

from oocgraph.kernels.grouping import tree_order
from oocgraph.networkx_backend.nodes import Nodes
from oocgraph.networkx_backend.registry import algorithm
from oocgraph.networkx_backend.searching import groups, search
from oocgraph.types import Array

BLOCK_EDGES = 1 << 16
"""Edges that are Python objects at once while they are iterated over."""


def _source(nodes: Nodes, source: Any) -> Any:
    hash(source)  # a TypeError, as of NetworkX, if that is impossible
    kind = "digraph" if nodes.is_directed else "graph"
    return nodes.require(source, f"The node {source} is not in the {kind}.", nx.NetworkXError)


def _tree(nodes: Nodes, source: Any, depth_limit: Any, *, reverse: bool = False) -> tuple[Array, Array]:
    """Return parents and children of the edges of a search tree, own numbers in breadth-first order."""
    start = _source(nodes, source)
    found = nodes.compute(lambda: search(nodes, start, cutoff=depth_limit, reverse=reverse), search_tree=24)
    parent = nodes.own(found, "parent")
    children = tree_order(parent, nodes.own(found, "level") >= 0)[1:]
    return parent[children], children


def _edges(nodes: Nodes, source: Any, depth_limit: Any, *, reverse: bool = False) -> Iterator[tuple[Any, Any]]:
    """Iterate over the edges of a search tree, in breadth-first order; the search is made when the first is asked for."""
    yield from _labelled(nodes, *_tree(nodes, source, depth_limit, reverse=reverse))


def _labelled(nodes: Nodes, *ends: Array) -> Iterator[tuple[Any, Any]]:
    for start in range(0, ends[0].size, BLOCK_EDGES):
        yield from zip(*(nodes.label_list(numbers[start : start + BLOCK_EDGES]) for numbers in ends), strict=True)


@algorithm(unsupported=["sort_neighbors"])
def bfs_edges(
    nodes: Nodes, source: Any, reverse: bool = False, depth_limit: Any = None, sort_neighbors: Any = None
) -> Iterator[tuple[Any, Any]]:
    """See `networkx.bfs_edges`."""
    return _edges(nodes, source, depth_limit, reverse=reverse)


@algorithm(unsupported=["sort_neighbors"])
def bfs_tree(nodes: Nodes, source: Any, reverse: bool = False, depth_limit: Any = None, sort_neighbors: Any = None) -> Any:
    """See `networkx.bfs_tree`; of a store, a directed graph of oocgraph in memory."""
    parents, children = _tree(nodes, source, depth_limit, reverse=reverse)
    return nodes.new_graph([source], parents, children)


@algorithm(unsupported=["sort_neighbors"])
def bfs_predecessors(nodes: Nodes, source: Any, depth_limit: Any = None, sort_neighbors: Any = None) -> Iterator[tuple[Any, Any]]:
    """See `networkx.bfs_predecessors`."""
    return ((child, parent) for parent, child in _edges(nodes, source, depth_limit))


@algorithm(unsupported=["sort_neighbors"])
def bfs_successors(nodes: Nodes, source: Any, depth_limit: Any = None, sort_neighbors: Any = None) -> Iterator[tuple[Any, list[Any]]]:
    """See `networkx.bfs_successors`."""
    return _successors(source, _edges(nodes, source, depth_limit))


def _successors(source: Any, edges: Iterator[tuple[Any, Any]]) -> Iterator[tuple[Any, list[Any]]]:
    has_any = False
    for parent, of_parent in groupby(edges, key=itemgetter(0)):
        has_any = True
        yield parent, [child for _, child in of_parent]
    if not has_any:
        yield source, []


@algorithm()
def bfs_layers(nodes: Nodes, sources: Any) -> Iterator[Any]:
    """See `networkx.bfs_layers`; of a store, an array of ids for each layer."""
    return _layers(nodes, sources)


def _layers(nodes: Nodes, sources: Any) -> Iterator[Any]:
    given = [sources] if sources in nodes else list(dict.fromkeys(sources))
    ids = [nodes.require(source, f"The node {source} is not in the graph.", nx.NetworkXError) for source in given]
    if not ids:
        return
    found = nodes.compute(lambda: search(nodes, ids), layers=8)
    yield from nodes.in_groups(*groups(nodes.own(found, "level"), found.depth + 1), nodes.alone_in(found))


@algorithm()
def descendants_at_distance(nodes: Nodes, source: Any, distance: Any) -> Any:
    """See `networkx.descendants_at_distance`."""
    start = nodes.require(source, f"The node {source} is not in the graph.", nx.NetworkXError)
    if not 0 <= distance < len(nodes) or distance != int(distance):
        return set()
    found = search(nodes, start, cutoff=distance)
    return nodes.as_set(np.flatnonzero(nodes.own(found, "level") == distance), () if distance else nodes.alone_in(found))


@algorithm()
def descendants(nodes: Nodes, source: Any) -> Any:
    """See `networkx.descendants`."""
    return nodes.as_set(np.flatnonzero(nodes.own(search(nodes, _source(nodes, source)), "level") > 0))


@algorithm()
def ancestors(nodes: Nodes, source: Any) -> Any:
    """See `networkx.ancestors`."""
    return nodes.as_set(np.flatnonzero(nodes.own(search(nodes, _source(nodes, source), reverse=True), "level") > 0))


def _is_against_edges(given: Mapping[str, Any]) -> str | None:
    return "undirected=True is not supported for directed graphs" if given["undirected"] and given["G"].is_directed() else None


@algorithm(unsupported=["distance"], refuse=_is_against_edges)
def ego_graph(nodes: Nodes, n: Any, radius: Any = 1, center: bool = True, undirected: bool = False, distance: Any = None) -> Any:
    """See `networkx.ego_graph`; of a store, a graph of oocgraph in memory."""
    found = search(nodes, nodes.require(n, f"Source {n} is not in G"), cutoff=radius)
    numbers = np.flatnonzero(nodes.own(found, "level") >= (0 if center else 1))
    return nodes.subgraph(numbers, nodes.alone_in(found) if center else ())
