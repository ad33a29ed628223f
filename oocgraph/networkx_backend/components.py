"""Components: connected, weakly and strongly connected ones. Of a store, those with edges first, in the order of its vertices."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import networkx as nx
import numpy as np

from oocgraph.networkx_backend.nodes import Components, Nodes
from oocgraph.networkx_backend.registry import algorithm
from oocgraph.networkx_backend.searching import search, sets_of


def _sets(nodes: Nodes, find: Callable[[], Components]) -> Iterator[Any]:
    """Iterate over the components that a function finds, as sets."""
    yield from sets_of(nodes, nodes.compute(find, members=12).component)


def _is_whole(nodes: Nodes, num_components: int) -> bool:
    if not len(nodes):
        raise nx.NetworkXPointlessConcept("Connectivity is undefined for the null graph.")
    return num_components == 1


@algorithm()
def connected_components(nodes: Nodes) -> Iterator[Any]:
    """See `networkx.connected_components`."""
    return _sets(nodes, nodes.components)


@algorithm()
def number_connected_components(nodes: Nodes) -> int:
    """See `networkx.number_connected_components`."""
    return nodes.components().num_components


@algorithm()
def is_connected(nodes: Nodes) -> bool:
    """See `networkx.is_connected`."""
    return _is_whole(nodes, nodes.components().num_components)


@algorithm()
def node_connected_component(nodes: Nodes, n: Any) -> Any:
    """See `networkx.node_connected_component`."""
    hash(n)  # a TypeError, as of NetworkX, if that is impossible
    found = search(nodes, nodes.require(n, n, KeyError))
    return nodes.as_set(np.flatnonzero(nodes.own(found, "level") >= 0), nodes.alone_in(found))


@algorithm()
def weakly_connected_components(nodes: Nodes) -> Iterator[Any]:
    """See `networkx.weakly_connected_components`."""
    return _sets(nodes, nodes.components)


@algorithm()
def number_weakly_connected_components(nodes: Nodes) -> int:
    """See `networkx.number_weakly_connected_components`."""
    return nodes.components().num_components


@algorithm()
def is_weakly_connected(nodes: Nodes) -> bool:
    """See `networkx.is_weakly_connected`."""
    return _is_whole(nodes, nodes.components().num_components)


@algorithm()
def strongly_connected_components(nodes: Nodes) -> Iterator[Any]:
    """See `networkx.strongly_connected_components`."""
    return _sets(nodes, nodes.strong_components)


@algorithm()
def number_strongly_connected_components(nodes: Nodes) -> int:
    """See `networkx.number_strongly_connected_components`."""
    return nodes.strong_components().num_components


@algorithm()
def is_strongly_connected(nodes: Nodes) -> bool:
    """See `networkx.is_strongly_connected`."""
    return _is_whole(nodes, nodes.strong_components().num_components)
