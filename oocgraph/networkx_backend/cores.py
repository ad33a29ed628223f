"""Core numbers, and the parts of a graph that they mark."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import networkx as nx
import numpy as np

from oocgraph.algorithms.cores import core_numbers
from oocgraph.networkx_backend.nodes import Nodes
from oocgraph.networkx_backend.registry import algorithm
from oocgraph.types import Array

NEIGHBOUR_BYTES = 88
"""Of a vertex: its core number, the vectors of a product, in two orders, and what that takes."""


def _cores(nodes: Nodes) -> Any:
    if nodes.store.attributes.num_self_loops:
        raise nx.NetworkXNotImplemented(
            "Input graph has self loops which is not permitted; Consider using G.remove_edges_from(nx.selfloop_edges(G))."
        )
    return core_numbers(nodes.store, resources=nodes.resources)


def _empty(given: Mapping[str, Any]) -> str | None:
    return None if len(given["G"]) else "a graph without nodes has no cores"


def _part(
    nodes: Nodes, k: int | None, is_in: Callable[[Array, int], Any], *, below: int = 0, is_counted: bool = False
) -> Any:  # fmt: skip
    """Return the subgraph of the nodes that `is_in` chooses by their core numbers and k, by default the largest one less `below`.

    `is_counted`: of these, the ones with k neighbours whose core numbers are k or more.
    """
    found = nodes.compute(lambda: _cores(nodes), neighbours=NEIGHBOUR_BYTES if is_counted else 0)
    number = nodes.own(found, "core_number")
    chosen = found.degeneracy - below if k is None else k
    others = list(nodes.alone()) if is_in(np.zeros(1, np.int64), chosen)[0] else ()
    is_chosen = is_in(number, chosen)
    if is_counted:
        is_chosen &= nodes.sums((number >= chosen).astype(np.float64)) == chosen
    return nodes.subgraph(np.flatnonzero(is_chosen), others)


@algorithm()
def core_number(nodes: Nodes) -> Mapping[Any, int]:
    """See `networkx.core_number`."""
    return nodes.as_mapping(_cores(nodes))


@algorithm(unsupported=["core_number"], refuse=_empty)
def k_core(nodes: Nodes, k: int | None = None, core_number: Any = None) -> Any:
    """See `networkx.k_core`; of a store, a graph of oocgraph in memory."""
    return _part(nodes, k, lambda number, k: number >= k)


@algorithm(unsupported=["core_number"], refuse=_empty)
def k_shell(nodes: Nodes, k: int | None = None, core_number: Any = None) -> Any:
    """See `networkx.k_shell`; of a store, a graph of oocgraph in memory."""
    return _part(nodes, k, lambda number, k: number == k)


@algorithm(unsupported=["core_number"], refuse=_empty)
def k_corona(nodes: Nodes, k: int, core_number: Any = None) -> Any:
    """See `networkx.k_corona`; of a store, a graph of oocgraph in memory."""
    return _part(nodes, k, lambda number, k: number == k, is_counted=True)


@algorithm(unsupported=["core_number"], refuse=_empty)
def k_crust(nodes: Nodes, k: int | None = None, core_number: Any = None) -> Any:
    """See `networkx.k_crust`; of a store, a graph of oocgraph in memory."""
    return _part(nodes, k, lambda number, k: number <= k, below=1)
