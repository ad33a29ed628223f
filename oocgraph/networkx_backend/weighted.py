"""Shortest paths by a weight: the functions of Dijkstra's and of Bellman and Ford's name, for weights of 0 and more.

An edge without the attribute weighs one, as with NetworkX; so do all edges of a store that has no column of that name. Where several
paths are as short, any of them is returned. Functions of Bellman and Ford's name look at every edge that can be reached, and refuse
negative weights; those of Dijkstra's name stop at the target.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import networkx as nx
import numpy as np

from oocgraph.networkx_backend.nodes import Nodes
from oocgraph.networkx_backend.registry import algorithm
from oocgraph.networkx_backend.searching import between, groups, shortest_paths
from oocgraph.types import UNREACHED, Array, no_parent


def _found(nodes: Nodes, node: Any) -> Any:
    return nodes.require(node, f"Node {node} not found in graph")


def _start(nodes: Nodes, node: Any) -> Any:
    hash(node)  # a TypeError, as of NetworkX, if that is impossible
    return _found(nodes, node)


def distances_from(nodes: Nodes, source: Any, weight: Any, cutoff: Any = None, *, reverse: bool = False) -> Mapping[Any, Any]:
    """Return the distance of each reached node; to the one that is given, if `reverse`."""
    start = _start(nodes, source)
    return nodes.reached(shortest_paths(nodes, start, weight, cutoff=cutoff, reverse=reverse))


def paths_from(nodes: Nodes, source: Any, weight: Any, cutoff: Any = None, *, reverse: bool = False) -> Mapping[Any, list[Any]]:
    """Return the path to each reached node; from it, if `reverse`."""
    start = _start(nodes, source)
    return nodes.paths(shortest_paths(nodes, start, weight, cutoff=cutoff, reverse=reverse), reverse=reverse)


def _between(
    nodes: Nodes, start: Any, target: Any, weight: Any, cutoff: Any = None, *, stop: bool = True
) -> tuple[Any, Any] | None:  # fmt: skip
    """Return a result that has a path from one or several ids, and the id of its target; None if there is none.

    Edges beyond the target are not looked at if the search may `stop` there.
    """
    hash(target)
    if target not in nodes:
        return None
    end = nodes.id_of(target)
    found = shortest_paths(nodes, start, weight, cutoff=cutoff, target=end if stop else None)
    return (found, end) if nodes.value_of(found, end) is not None else None


def distance_between(nodes: Nodes, source: Any, target: Any, weight: Any, *, stop: bool = True) -> Any:
    """Return the distance between two nodes; `stop` as of `_between`.

    Raises
    ------
    networkx.NetworkXNoPath
        There is no path.
    """
    found = _between(nodes, _start(nodes, source), target, weight, stop=stop)
    if found is None:
        raise nx.NetworkXNoPath(f"Node {target} not reachable from {source}")
    return nodes.value_of(*found)


def path_between(nodes: Nodes, source: Any, target: Any, weight: Any, *, stop: bool = True, failure: str | None = None) -> list[Any]:
    """Return a shortest path between two nodes; `stop` as of `_between`, `failure` as of `_both`.

    Raises
    ------
    networkx.NetworkXNoPath
        There is no path.
    """
    path: list[Any] = _both(nodes, _start(nodes, source), target, weight, stop=stop, failure=failure)[1]
    return path


def _both(
    nodes: Nodes, start: Any, target: Any, weight: Any, cutoff: Any = None, *, stop: bool = True, failure: str | None = None
) -> tuple[Any, Any]:  # fmt: skip
    """Return distances and paths from one or several ids; with a target, those to it alone; `failure` says that there are none."""
    if target is None:
        found = shortest_paths(nodes, start, weight, cutoff=cutoff)
        return nodes.reached(found), nodes.paths(found)
    between = _between(nodes, start, target, weight, cutoff, stop=stop)
    if between is None:
        reason = f"No path to {target}." if stop else f"Target {target} cannot be reached from given sources"
        raise nx.NetworkXNoPath(failure or reason)
    return nodes.value_of(*between), nodes.nodes_of(between[0].path(between[1]))


@algorithm()
def dijkstra_path(nodes: Nodes, source: Any, target: Any, weight: Any = "weight") -> list[Any]:
    """See `networkx.dijkstra_path`."""
    return path_between(nodes, source, target, weight)


@algorithm()
def dijkstra_path_length(nodes: Nodes, source: Any, target: Any, weight: Any = "weight") -> Any:
    """See `networkx.dijkstra_path_length`."""
    _found(nodes, source)
    return distance_between(nodes, source, target, weight)


@algorithm()
def bidirectional_dijkstra(nodes: Nodes, source: Any, target: Any, weight: Any = "weight") -> tuple[Any, list[Any]]:
    """See `networkx.bidirectional_dijkstra`; the search is in one direction, and ends at the target."""
    nodes.require(source, f"Source {source} is not in G")
    nodes.require(target, f"Target {target} is not in G")
    return _both(nodes, _start(nodes, source), target, weight, failure=between(source, target))


@algorithm()
def single_source_dijkstra(nodes: Nodes, source: Any, target: Any = None, cutoff: Any = None, weight: Any = "weight") -> tuple[Any, Any]:
    """See `networkx.single_source_dijkstra`."""
    return _both(nodes, _start(nodes, source), target, weight, cutoff)


@algorithm()
def single_source_dijkstra_path(nodes: Nodes, source: Any, cutoff: Any = None, weight: Any = "weight") -> Mapping[Any, list[Any]]:
    """See `networkx.single_source_dijkstra_path`."""
    return paths_from(nodes, source, weight, cutoff)


@algorithm()
def single_source_dijkstra_path_length(nodes: Nodes, source: Any, cutoff: Any = None, weight: Any = "weight") -> Mapping[Any, Any]:
    """See `networkx.single_source_dijkstra_path_length`."""
    return distances_from(nodes, source, weight, cutoff)


def _starts(nodes: Nodes, sources: Any) -> list[Any]:
    if not sources:
        raise ValueError("sources must not be empty")
    return [_found(nodes, source) for source in sources]


@algorithm()
def multi_source_dijkstra(nodes: Nodes, sources: Any, target: Any = None, cutoff: Any = None, weight: Any = "weight") -> tuple[Any, Any]:
    """See `networkx.multi_source_dijkstra`."""
    starts = _starts(nodes, sources)
    if target in sources:
        return 0, [target]
    return _both(nodes, starts, target, weight, cutoff)


@algorithm()
def multi_source_dijkstra_path(nodes: Nodes, sources: Any, cutoff: Any = None, weight: Any = "weight") -> Mapping[Any, list[Any]]:
    """See `networkx.multi_source_dijkstra_path`."""
    return nodes.paths(shortest_paths(nodes, _starts(nodes, sources), weight, cutoff=cutoff))


@algorithm()
def multi_source_dijkstra_path_length(nodes: Nodes, sources: Any, cutoff: Any = None, weight: Any = "weight") -> Mapping[Any, Any]:
    """See `networkx.multi_source_dijkstra_path_length`."""
    return nodes.reached(shortest_paths(nodes, _starts(nodes, sources), weight, cutoff=cutoff))


@algorithm()
def voronoi_cells(graph: Nodes, center_nodes: Any, weight: Any = "weight") -> dict[Any, Any]:
    """See `networkx.voronoi_cells`."""
    starts = _starts(graph, center_nodes)
    found = graph.compute(lambda: shortest_paths(graph, starts, weight), cells=24)
    origin = graph.own(found, "origin")
    cell: Array = origin.astype(np.int32 if origin.size < 2**31 else np.int64)
    cell[origin == no_parent(origin.dtype)] = UNREACHED
    order, ends = groups(cell, cell.size)
    cells = dict(zip(graph.label_list(cell[order[ends - 1]]), graph.in_sets(order, ends), strict=True))
    alone = list(graph.alone_in(found))
    cells |= {node: {node} for node in alone}
    others = graph.as_set(np.flatnonzero(cell < 0), list(set(graph.alone()).difference(alone)))
    return cells | ({"unreachable": others} if others else {})


@algorithm()
def bellman_ford_path(nodes: Nodes, source: Any, target: Any, weight: Any = "weight") -> list[Any]:
    """See `networkx.bellman_ford_path`."""
    return path_between(nodes, source, target, weight, stop=False)


@algorithm()
def bellman_ford_path_length(nodes: Nodes, source: Any, target: Any, weight: Any = "weight") -> Any:
    """See `networkx.bellman_ford_path_length`."""
    return distance_between(nodes, source, target, weight, stop=False)


@algorithm()
def single_source_bellman_ford(nodes: Nodes, source: Any, target: Any = None, weight: Any = "weight") -> tuple[Any, Any]:
    """See `networkx.single_source_bellman_ford`."""
    return _both(nodes, _start(nodes, source), target, weight, stop=False)


@algorithm()
def single_source_bellman_ford_path(nodes: Nodes, source: Any, weight: Any = "weight") -> Mapping[Any, list[Any]]:
    """See `networkx.single_source_bellman_ford_path`."""
    return paths_from(nodes, source, weight)


@algorithm()
def single_source_bellman_ford_path_length(nodes: Nodes, source: Any, weight: Any = "weight") -> Mapping[Any, Any]:
    """See `networkx.single_source_bellman_ford_path_length`."""
    return distances_from(nodes, source, weight)


@algorithm()
def all_pairs_dijkstra(nodes: Nodes, cutoff: Any = None, weight: Any = "weight") -> Iterator[tuple[Any, tuple[Any, Any]]]:
    """See `networkx.all_pairs_dijkstra`."""
    return ((node, single_source_dijkstra(nodes, node, cutoff=cutoff, weight=weight)) for node in nodes)


@algorithm()
def all_pairs_dijkstra_path(nodes: Nodes, cutoff: Any = None, weight: Any = "weight") -> Iterator[tuple[Any, Mapping[Any, list[Any]]]]:
    """See `networkx.all_pairs_dijkstra_path`."""
    return ((node, single_source_dijkstra_path(nodes, node, cutoff, weight)) for node in nodes)


@algorithm()
def all_pairs_dijkstra_path_length(nodes: Nodes, cutoff: Any = None, weight: Any = "weight") -> Iterator[tuple[Any, Mapping[Any, Any]]]:
    """See `networkx.all_pairs_dijkstra_path_length`."""
    return ((node, single_source_dijkstra_path_length(nodes, node, cutoff, weight)) for node in nodes)


@algorithm()
def all_pairs_bellman_ford_path(nodes: Nodes, weight: Any = "weight") -> Iterator[tuple[Any, Mapping[Any, list[Any]]]]:
    """See `networkx.all_pairs_bellman_ford_path`."""
    return ((node, single_source_bellman_ford_path(nodes, node, weight)) for node in nodes)


@algorithm()
def all_pairs_bellman_ford_path_length(nodes: Nodes, weight: Any = "weight") -> Iterator[tuple[Any, Mapping[Any, Any]]]:
    """See `networkx.all_pairs_bellman_ford_path_length`."""
    return ((node, single_source_bellman_ford_path_length(nodes, node, weight)) for node in nodes)


@algorithm()
def group_closeness_centrality(nodes: Nodes, S: Any, weight: Any = None) -> float:
    """See `networkx.group_closeness_centrality`."""
    starts = _starts(nodes, set(S))
    found = nodes.compute(lambda: shortest_paths(nodes, starts, weight, reverse=True), distances=16)
    if nodes.column_of(weight) is None:
        values = nodes.own(found, "level")
        total = float(values[values > 0].sum(dtype=np.int64))
    else:
        values = nodes.own(found, "distance")
        total = float(values[values != found.no_value].sum())
    return (len(nodes) - len(starts)) / total if total else 0
