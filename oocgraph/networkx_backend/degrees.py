"""What degrees and self-loops tell: isolated nodes, regular and Eulerian graphs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import networkx as nx
import numpy as np

from oocgraph.networkx_backend.components import is_connected, is_strongly_connected, is_weakly_connected
from oocgraph.networkx_backend.nodes import Nodes
from oocgraph.networkx_backend.registry import algorithm
from oocgraph.types import Array


@algorithm()
def is_empty(nodes: Nodes) -> bool:
    """See `networkx.is_empty`."""
    return nodes.num_edges == 0


@algorithm()
def isolates(nodes: Nodes) -> Iterator[Any]:
    """See `networkx.isolates`."""
    return nodes.isolated()


@algorithm()
def number_of_isolates(nodes: Nodes) -> int:
    """See `networkx.number_of_isolates`."""
    return nodes.num_isolated


@algorithm()
def is_isolate(nodes: Nodes, n: Any) -> bool:
    """See `networkx.is_isolate`."""
    if n in nodes:
        return nodes.is_isolated(n)
    nodes.chosen(n)  # what NetworkX takes for several nodes is no isolate, and anything else is an error
    return False


@algorithm()
def number_of_selfloops(nodes: Nodes) -> int:
    """See `networkx.number_of_selfloops`."""
    return nodes.num_self_loops


def _degrees(nodes: Nodes, group: str | None = None) -> Array:
    """Return the degrees of all nodes, in no order."""
    nodes.charge(degrees=16)
    degrees = nodes.degrees(group)
    return np.append(degrees, np.zeros(len(nodes) - degrees.size, np.int64))


@algorithm()
def is_regular(nodes: Nodes) -> bool:
    """See `networkx.is_regular`."""
    if not len(nodes):
        raise nx.NetworkXPointlessConcept("Graph has no nodes.")
    groups = ("out", "in") if nodes.is_directed else (None,)
    return all(bool(np.ptp(_degrees(nodes, group)) == 0) for group in groups)


@algorithm()
def is_k_regular(nodes: Nodes, k: int) -> bool:
    """See `networkx.is_k_regular`."""
    return bool((_degrees(nodes) == k).all())


@algorithm()
def is_eulerian(nodes: Nodes) -> bool:
    """See `networkx.is_eulerian`."""
    nodes.charge(degrees=24)
    if nodes.is_directed:
        return bool((nodes.degrees("out") == nodes.degrees("in")).all()) and is_strongly_connected(nodes)
    return bool((nodes.degrees() % 2 == 0).all()) and is_connected(nodes)


@algorithm()
def has_eulerian_path(nodes: Nodes, source: Any = None) -> bool:
    """See `networkx.has_eulerian_path`."""
    return is_eulerian(nodes) or _has_open_path(nodes, source)


def _has_open_path(nodes: Nodes, source: Any) -> bool:
    """Return whether there is a path of all edges that ends elsewhere than it begins, at a source if one is given."""
    if source is not None and source not in nodes:
        raise KeyError(source)
    start = np.array([], np.int64) if source is None else nodes.numbers_of([source])
    start = start[start >= 0]
    if nodes.is_directed:
        excess = nodes.degrees("out") - nodes.degrees("in")
        at_start = excess[start] == 1
        ends = (np.abs(excess) <= 1).all() and max((excess == 1).sum(), (excess == -1).sum()) <= 1
    else:
        is_odd = nodes.degrees() % 2 == 1
        at_start, ends = is_odd[start], is_odd.sum() == 2
    if source is not None and not at_start.any():
        return False
    return bool(ends) and (is_weakly_connected if nodes.is_directed else is_connected)(nodes)


@algorithm()
def is_semieulerian(nodes: Nodes) -> bool:
    """See `networkx.is_semieulerian`."""
    return not is_eulerian(nodes) and _has_open_path(nodes, None)
