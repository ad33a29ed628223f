"""Biconnected components, articulation points and bridges, in the order of the graph's nodes, not in that of a search in depth."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import networkx as nx
import numpy as np

from oocgraph.algorithms.biconnected import biconnected_components as find_components
from oocgraph.networkx_backend.nodes import Nodes, TreeEdges
from oocgraph.networkx_backend.registry import algorithm
from oocgraph.networkx_backend.searching import groups, search
from oocgraph.networkx_backend.vertex_set import BLOCK_IDS
from oocgraph.results.biconnected import BiconnectedResult
from oocgraph.types import Array

COMPONENT_BYTES, BRIDGE_BYTES, COPIES = 52, 56, 4
"""Of a vertex: components, and their vertices in a list; both ends of bridges, as they are found and in order; and strings of a set."""


def _find(nodes: Nodes, **vectors: int) -> BiconnectedResult:
    if nodes.is_directed:
        raise nx.NetworkXNotImplemented("not implemented for directed type")
    return nodes.compute(lambda: find_components(nodes.store, resources=nodes.resources), **vectors)


@algorithm()
def biconnected_components(nodes: Nodes) -> Iterator[Any]:
    """See `networkx.biconnected_components`."""
    found = _find(nodes, members=COMPONENT_BYTES + COPIES * nodes.text_bytes)
    component, parent = nodes.own(found, "component").astype(np.int64), nodes.own(found, "parent")
    del found
    component[parent == np.arange(parent.size)] = -1  # roots are in those below them alone
    order, ends = groups(component, component.size)
    del component
    above = parent[order[ends - 1]]
    return nodes.in_sets(np.insert(order, ends, above), ends + np.arange(1, ends.size + 1))


@algorithm()
def is_biconnected(nodes: Nodes) -> bool:
    """See `networkx.is_biconnected`."""
    found = _find(nodes)
    return bool(found.num_components == 1 and found.largest == len(nodes))


@algorithm()
def articulation_points(nodes: Nodes) -> Iterator[Any]:
    """See `networkx.articulation_points`."""
    return _labels(nodes, np.flatnonzero(nodes.own(_find(nodes, components=12), "components") > 1))


def _labels(nodes: Nodes, numbers: Array) -> Iterator[Any]:
    for start in range(0, numbers.size, BLOCK_IDS):
        yield from nodes.label_list(numbers[start : start + BLOCK_IDS])


@algorithm()
def bridges(nodes: Nodes, root: Any = None) -> Iterator[Any]:
    """See `networkx.bridges`."""
    if root is not None:
        nodes.require(root, f"Root node {root} is not in graph")
    found = _find(nodes, bridges=BRIDGE_BYTES)
    is_bridge, parent = nodes.own(found, "bridge"), nodes.own(found, "parent")
    del found
    if root is not None:
        is_bridge = is_bridge & (nodes.own(search(nodes, nodes.id_of(root)), "level") >= 0)
    low = np.flatnonzero(is_bridge)
    high = parent[low].astype(np.int64)
    del is_bridge, parent
    is_above = low > high
    low[is_above], high[is_above] = high[is_above], low[is_above]
    order = nodes.order_of_edges(low, high)
    low, high = low[order], high[order]
    del order
    return nodes.edges_of(TreeEdges(low, high, None, None), data=False)


@algorithm()
def has_bridges(nodes: Nodes, root: Any = None) -> bool:
    """See `networkx.has_bridges`."""
    if root is None:
        return bool(_find(nodes).num_bridges)
    return next(iter(bridges(nodes, root)), None) is not None
