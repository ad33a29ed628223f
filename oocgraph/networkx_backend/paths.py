"""Shortest paths by the number of edges, and the functions of NetworkX that take either these or a weight."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any

import networkx as nx
import numpy as np

from oocgraph.networkx_backend.nodes import Nodes
from oocgraph.networkx_backend.registry import algorithm
from oocgraph.networkx_backend.searching import between, search
from oocgraph.networkx_backend.weighted import distance_between, distances_from, path_between, paths_from

KEPT_LISTS = 1 << 10
"""Nodes whose neighbours on the way are kept, since many paths go through them."""


@algorithm()
def single_source_shortest_path_length(nodes: Nodes, source: Any, cutoff: Any = None) -> Mapping[Any, int]:
    """See `networkx.single_source_shortest_path_length`."""
    return nodes.reached(search(nodes, nodes.require(source, f"Source {source} is not in G"), cutoff=cutoff))


@algorithm()
def single_target_shortest_path_length(nodes: Nodes, target: Any, cutoff: Any = None) -> Mapping[Any, int]:
    """See `networkx.single_target_shortest_path_length`."""
    return nodes.reached(search(nodes, nodes.require(target, f"Target {target} is not in G"), cutoff=cutoff, reverse=True))


@algorithm()
def single_source_shortest_path(nodes: Nodes, source: Any, cutoff: Any = None) -> Mapping[Any, list[Any]]:
    """See `networkx.single_source_shortest_path`."""
    return nodes.paths(search(nodes, nodes.require(source, f"Source {source} not in G"), cutoff=cutoff))


@algorithm()
def single_target_shortest_path(nodes: Nodes, target: Any, cutoff: Any = None) -> Mapping[Any, list[Any]]:
    """See `networkx.single_target_shortest_path`."""
    found = search(nodes, nodes.require(target, f"Target {target} not in G"), cutoff=cutoff, reverse=True)
    return nodes.paths(found, reverse=True)


def _require_both(nodes: Nodes, source: Any, target: Any) -> list[Any]:
    """Return what oocgraph calls both ends of a path, as `Nodes.require`."""
    return [nodes.require(node, f"{name} {node} is not in G") for name, node in (("Source", source), ("Target", target))]


def _search_between(nodes: Nodes, source: Any, target: Any) -> Any:
    start, end = _require_both(nodes, source, target)
    return search(nodes, start, target=end)


@algorithm()
def has_path(nodes: Nodes, source: Any, target: Any) -> bool:
    """See `networkx.has_path`."""
    return bool(_search_between(nodes, source, target).level_of(nodes.id_of(target)) >= 0)


@algorithm()
def bidirectional_shortest_path(nodes: Nodes, source: Any, target: Any) -> list[Any]:
    """See `networkx.bidirectional_shortest_path`; the search is in one direction, and ends at the target."""
    found = _search_between(nodes, source, target)
    if found.level_of(nodes.id_of(target)) < 0:
        raise nx.NetworkXNoPath(between(source, target))
    return nodes.nodes_of(found.path(nodes.id_of(target)))


def _refusal(given: Mapping[str, Any]) -> str | None:
    if given["method"] not in ("dijkstra", "bellman-ford"):
        return f"method={given['method']!r} is not supported"
    if given["source"] is None and given["target"] is None:
        return "paths between all pairs are as many as the square of the vertices; name a source or a target"
    return None


@algorithm(refuse=_refusal)
def shortest_path(nodes: Nodes, source: Any = None, target: Any = None, weight: Any = None, method: str = "dijkstra") -> Any:
    """See `networkx.shortest_path`."""
    if source is None:
        if weight is None:
            return single_target_shortest_path(nodes, target)
        return paths_from(nodes, target, weight, reverse=True)
    if target is None:
        return single_source_shortest_path(nodes, source) if weight is None else paths_from(nodes, source, weight)
    if weight is None:
        return bidirectional_shortest_path(nodes, source, target)
    _require_both(nodes, source, target)
    return path_between(nodes, source, target, weight, failure=between(source, target))


@algorithm(refuse=_refusal)
def shortest_path_length(nodes: Nodes, source: Any = None, target: Any = None, weight: Any = None, method: str = "dijkstra") -> Any:
    """See `networkx.shortest_path_length`."""
    if source is None:
        return single_target_shortest_path_length(nodes, target) if weight is None else distances_from(nodes, target, weight, reverse=True)
    if target is None:
        return single_source_shortest_path_length(nodes, source) if weight is None else distances_from(nodes, source, weight)
    if weight is not None:
        return distance_between(nodes, source, target, weight)
    level = _search_between(nodes, source, target).level_of(nodes.id_of(target))
    if level < 0:
        raise nx.NetworkXNoPath(between(source, target))
    return level


@algorithm(unsupported=["weight"])
def all_shortest_paths(nodes: Nodes, source: Any, target: Any, weight: Any = None, method: str = "dijkstra") -> Iterator[list[Any]]:
    """See `networkx.all_shortest_paths`; the search goes from the target, and paths are made as they are asked for."""
    start = nodes.require(source, f"Source {source} not in G")
    if target not in nodes:
        return _no_path(target)
    end = nodes.id_of(target)
    found = search(nodes, end, target=start, reverse=True)
    return _no_path(target) if found.level_of(start) < 0 else _all_paths(nodes, found, start, end)


def _no_path(target: Any) -> Iterator[list[Any]]:
    """Raise an error at the first step, as NetworkX does."""
    yield from ()
    raise nx.NetworkXNoPath(f"Target {target} cannot be reached from given sources")


def _all_paths(nodes: Nodes, found: Any, start: Any, end: Any) -> Iterator[list[Any]]:
    """Walk along all edges that lead nearer to the end, depth first."""

    @lru_cache(KEPT_LISTS)
    def nearer(one: Any) -> list[Any]:
        near = np.unique(nodes.successors(one))
        chosen: list[Any] = near[np.asarray(found.of(near)) == found.level_of(one) - 1].tolist()
        return chosen

    path, waiting = list[Any](), [iter([start])]
    while waiting:
        for one in waiting[-1]:
            path.append(one)
            if one == end:
                yield nodes.nodes_of(np.array(path))
                path.pop()
            else:
                waiting.append(iter(nearer(one)))
                break
        else:
            waiting.pop()
            del path[-1:]


@algorithm()
def efficiency(nodes: Nodes, u: Any, v: Any) -> float:
    """See `networkx.efficiency`."""
    if nodes.is_directed:
        raise nx.NetworkXNotImplemented("not implemented for directed type")
    level = _search_between(nodes, u, v).level_of(nodes.id_of(v))
    return 0 if level < 0 else 1 / int(level)


@algorithm()
def all_pairs_shortest_path(nodes: Nodes, cutoff: Any = None) -> Iterator[tuple[Any, Mapping[Any, list[Any]]]]:
    """See `networkx.all_pairs_shortest_path`."""
    return ((node, single_source_shortest_path(nodes, node, cutoff)) for node in nodes)


@algorithm()
def all_pairs_shortest_path_length(nodes: Nodes, cutoff: Any = None) -> Iterator[tuple[Any, Mapping[Any, int]]]:
    """See `networkx.all_pairs_shortest_path_length`."""
    return ((node, single_source_shortest_path_length(nodes, node, cutoff)) for node in nodes)
