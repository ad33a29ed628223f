"""A graph of NetworkX as a graph of oocgraph in memory, and back.

In: a graph whose nodes are any hashable objects. Out: `ConvertedGraph`, whose vertices are the positions of its nodes, from 0 on, in the
order in which they were added: results of NetworkX are in that order. It keeps at most one edge attribute, the weight of the call.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import Any

import networkx as nx
import numpy as np

from oocgraph.errors import BudgetError
from oocgraph.memory import Budget, effective_budget_bytes, format_bytes
from oocgraph.store.graph import CSRStore
from oocgraph.store.in_memory import build_bytes, build_in_memory
from oocgraph.types import Array

EDGE_BYTES = 500
"""Bytes that an edge of a graph of NetworkX takes at most, its share of the nodes included (measured 250 to 450)."""

WEIGHT = "weight"
"""Column of the weights of a converted graph, whatever the attribute is called."""


class ConvertedGraph:
    """A graph of NetworkX, converted.

    Parameters
    ----------
    original
        The graph that was converted. Attributes of its nodes and edges are taken from it where a result is a graph.
    nodes : list
        Node objects, in the order in which they were added.
    index : dict
        Position of each.
    source, target : (num_edges,) int64
        Positions of the ends of edges.
    weights : (num_edges,) int64 or float64, or None
        None: all edges weigh one.
    weight
        Edge attribute that the weights are; None: none was asked for.

    Attributes
    ----------
    rows : dict
        What `oocgraph.networkx_backend.tiny` has made of the edges, by whether it is reversed.
    """

    __networkx_backend__ = "oocgraph"

    def __init__(
        self, original: Any, nodes: list[Any], index: dict[Any, int], source: Array, target: Array, weights: Array | None = None,
        weight: str | None = None,
    ) -> None:  # fmt: skip
        self.original, self.nodes, self.index = original, nodes, index
        self.source, self.target, self.weights, self.weight = source, target, weights, weight
        self.graph: dict[str, Any] = original.graph
        self.rows: dict[bool, tuple[Array, Array, Array]] = {}

    @cached_property
    def store(self) -> CSRStore:
        """The edges; vertex i is the i-th node. Built when it is first asked for.

        Raises
        ------
        BudgetError
            There is no room for it.
        """
        Budget(effective_budget_bytes(nx.config.backends["oocgraph"].memory_budget)).reserve(
            "graph in memory", build_bytes(self.source.size)
        )
        columns = None if self.weights is None else {WEIGHT: self.weights}
        return build_in_memory(
            self.source, self.target, columns=columns, weight=None if columns is None else WEIGHT, directed=self.is_directed(),
            num_vertices=len(self.nodes), keep_self_loops=True, description="graph of NetworkX",
        )  # fmt: skip

    @property
    def has_negative_weights(self) -> bool:
        """Whether a weight is below zero."""
        return self.weights is not None and bool(self.weights.min(initial=0) < 0)

    def is_directed(self) -> bool:
        """Whether edges have a direction."""
        return bool(self.original.is_directed())

    def is_multigraph(self) -> bool:
        """Whether there may be several edges between two nodes: no."""
        return False

    def number_of_nodes(self) -> int:
        """Return the number of nodes."""
        return len(self.nodes)

    def number_of_edges(self) -> int:
        """Return the number of edges."""
        return int(self.source.size)

    def __len__(self) -> int:
        return len(self.nodes)

    def __contains__(self, node: Any) -> bool:
        try:
            return node in self.index
        except TypeError:  # not hashable
            return False

    def __iter__(self) -> Iterator[Any]:
        return iter(self.nodes)


def converted(graph: Any, edge_attrs: Mapping[str, Any] | None = None) -> ConvertedGraph:
    """Convert a graph of NetworkX; of its edge attributes the one that is named in `edge_attrs`, with the default that it has there.

    Raises
    ------
    NotImplementedError
        It is a multigraph or computes its edges, several attributes are asked for, or the weights are not finite numbers: NetworkX computes
        by itself then.
    """
    if graph.is_multigraph():
        raise NotImplementedError("multigraphs are not supported")
    if type(graph).adjacency is not nx.Graph.adjacency:
        raise NotImplementedError(f"{type(graph).__name__} computes its edges when they are asked for")
    if edge_attrs is not None and len(edge_attrs) > 1:
        raise NotImplementedError(f"one edge attribute can be converted, not {', '.join(map(repr, edge_attrs))}")
    nodes = list(graph)
    index = {node: position for position, node in enumerate(nodes)}
    ends = [(index[u], index[v]) for u, v in graph.edges()]
    source, target = np.array(ends, np.int64).reshape(-1, 2).T.copy()
    weight, values = None, None
    for weight, default in (edge_attrs or {}).items():
        values = _weights([found for _, _, found in graph.edges(data=weight, default=default)])
    return ConvertedGraph(graph, nodes, index, source, target, values, weight)


def _weights(values: list[Any]) -> Array | None:
    """Return weights as int64 or float64; None if all are one."""
    if all(type(value) is int for value in values) and sum(map(abs, values)) < 1 << 60:
        array = np.array(values, np.int64)
    elif all(isinstance(value, int | float | np.integer | np.floating) for value in values):
        array = np.array(values, np.float64)
        if not np.isfinite(array).all():
            raise NotImplementedError("infinite weights and NaN are not supported")
    else:
        raise NotImplementedError("weights must be numbers of 64 bits")
    return None if (array == 1).all() else array


def to_networkx(graph: Any) -> Any:
    """Return a graph of the backend as one of NetworkX: the original of a converted one, a store with its edge columns as attributes.

    Raises
    ------
    BudgetError
        A store is too large for that.
    """
    if isinstance(graph, ConvertedGraph):
        return graph.original
    check_size(graph, graph.num_vertices + graph.num_edges)
    found = nx.DiGraph() if graph.attributes.directed else nx.Graph()
    found.add_nodes_from(graph)
    stored = list(graph.attributes.columns)
    names = [graph.attributes.weight_name or name if name == WEIGHT else name for name in stored]
    for batch in graph.edges(columns=stored):
        source, target, *columns = (column.to_pylist() for column in batch.columns)
        found.add_edges_from((u, v, dict(zip(names, values, strict=True))) for u, v, *values in zip(source, target, *columns, strict=True))
    return found


def check_size(graph: CSRStore, num_edges: int) -> None:
    """Refuse a graph of NetworkX that would not fit in memory.

    Raises
    ------
    BudgetError
        It would not.
    """
    limit = effective_budget_bytes(nx.config.backends["oocgraph"].memory_budget)
    if num_edges * EDGE_BYTES > limit:
        raise BudgetError(
            f"{graph.url}: {num_edges:,} vertices and edges as a graph of NetworkX take about {format_bytes(num_edges * EDGE_BYTES)}, and "
            f"the memory budget is {format_bytes(limit)}; use functions that the backend has, or oocgraph's own"
        )
