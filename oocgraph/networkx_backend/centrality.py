"""Centralities by degree and by shortest paths: degree, closeness, harmonic and betweenness centrality."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import networkx as nx

from oocgraph.algorithms.betweenness import find_betweenness
from oocgraph.algorithms.closeness import closeness_centrality as find_closeness
from oocgraph.algorithms.closeness import harmonic_centrality as find_harmonic
from oocgraph.algorithms.sweeping import Call
from oocgraph.networkx_backend.nodes import Nodes
from oocgraph.networkx_backend.registry import algorithm
from oocgraph.networkx_backend.searching import search


def _by_degree(nodes: Nodes, group: str | None = None) -> Mapping[Any, float]:
    if len(nodes) <= 1:
        return dict.fromkeys(nodes, 1)
    nodes.charge(degrees=16)
    return nodes.from_own(nodes.degrees(group) * (1.0 / (len(nodes) - 1.0)), 0.0)


@algorithm()
def degree_centrality(nodes: Nodes) -> Mapping[Any, float]:
    """See `networkx.degree_centrality`."""
    return _by_degree(nodes)


@algorithm()
def in_degree_centrality(nodes: Nodes) -> Mapping[Any, float]:
    """See `networkx.in_degree_centrality`."""
    return _by_degree(nodes, "in")


@algorithm()
def out_degree_centrality(nodes: Nodes) -> Mapping[Any, float]:
    """See `networkx.out_degree_centrality`."""
    return _by_degree(nodes, "out")


@algorithm(unsupported=["distance", "sp"])
def closeness_centrality(nodes: Nodes, u: Any = None, distance: Any = None, wf_improved: bool = True, *, sp: Any = None) -> Any:
    """See `networkx.closeness_centrality`."""
    wf_improved = bool(wf_improved)
    if u is None:
        return nodes.as_mapping(find_closeness(nodes.store, wf_improved=wf_improved, resources=nodes.resources))
    one = nodes.require(u, f"Source {u} is not in G")
    return find_closeness(nodes.store, [one], wf_improved=wf_improved, resources=nodes.resources).of(one)


@algorithm(unsupported=["distance", "sources"])
def harmonic_centrality(nodes: Nodes, nbunch: Any = None, distance: Any = None, sources: Any = None) -> Mapping[Any, float]:
    """See `networkx.harmonic_centrality`."""
    if nbunch is None:
        return nodes.as_mapping(find_harmonic(nodes.store, resources=nodes.resources))
    chosen = nodes.chosen(nbunch)
    ids = [nodes.id_of(node) for node in chosen]
    found = find_harmonic(nodes.store, ids, resources=nodes.resources) if ids else None
    return {} if found is None else dict(zip(chosen, found.of(ids).tolist(), strict=True))


def _is_scaled_otherwise(given: Mapping[str, Any]) -> str | None:
    release = tuple(int(part) for part in nx.__version__.split(".")[:2])
    return "k is scaled as by NetworkX 3.6, not as by this version" if given["k"] is not None and release < (3, 6) else None


@algorithm(unsupported=["weight"], refuse=_is_scaled_otherwise)
def betweenness_centrality(
    nodes: Nodes, k: int | None = None, normalized: bool = True, weight: Any = None, endpoints: bool = False, seed: Any = None
) -> Mapping[Any, float]:
    """See `networkx.betweenness_centrality`."""
    if k == len(nodes):
        k = None
    if k == 0:
        raise ZeroDivisionError("k is 0; at least one source node is needed")
    if k is not None and not 1 <= k <= len(nodes):
        raise ValueError(f"Sample larger than population or is negative: k is {k}, and the graph has {len(nodes)} nodes")
    if not len(nodes):
        return {}
    call = Call("betweenness_centrality", nodes.store, None, nodes.resources, None, None)
    return nodes.as_mapping(find_betweenness(call, k, seed, normalized=normalized, endpoints=endpoints))


def _is_weighed(given: Mapping[str, Any]) -> str | None:
    return "paths by a weight are not supported" if given["weight"] is not None else None


@algorithm(unsupported=["paths"], refuse=_is_weighed)
def local_reaching_centrality(nodes: Nodes, v: Any, paths: Any = None, weight: Any = None, normalized: bool = True) -> float:
    """See `networkx.local_reaching_centrality`."""
    if nodes.num_edges and len(nodes) == 1:
        raise nx.NetworkXError("local_reaching_centrality of a single node with self-loop not well-defined")
    if not nodes.num_edges:
        raise nx.NetworkXError("Size of G must be positive")
    start = nodes.require(v, f"Source {v} not in G")
    level = nodes.own(nodes.compute(lambda: search(nodes, start), levels=16), "level")
    beyond = level[level > 0]
    return float(beyond.size if nodes.is_directed else (1 / beyond).sum()) / (len(nodes) - 1)
