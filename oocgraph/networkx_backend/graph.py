"""A graph of NetworkX as a graph of oocgraph in memory, and back.

In: a graph whose nodes are any hashable objects. Out: `ConvertedGraph`, whose vertices are the positions of its nodes, from 0 on, in the
order in which they were added: results of NetworkX are in that order. It keeps at most one edge attribute, the weight of the call. NetworkX
converts a graph once for calls that need all attributes and gives it to later ones, which find their weight by `ConvertedGraph.weighed_by`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import networkx as nx
import numpy as np

from oocgraph.lazy import cached_property
from oocgraph.memory import Budget, effective_budget_bytes
from oocgraph.store.graph import CSRStore
from oocgraph.store.in_memory import build_bytes, build_in_memory
from oocgraph.types import Array

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
    degrees : list of int
        Length of the list of neighbours (of a directed graph: successors) of each.
    near : (num_neighbours,) int64
        Positions of the neighbours, list after list: of an undirected graph each edge is in two lists, a self-loop in one.
    weights : (num_neighbours,) int64 or float64, or None
        Weight of the edge to each neighbour; None: all edges weigh one.
    weight
        Edge attribute that the weights are; None: none was asked for.

    Attributes
    ----------
    rows : dict
        What `oocgraph.networkx_backend.tiny` has made of the lists, by whether it is reversed.
    """

    __networkx_backend__ = "oocgraph"

    def __init__(
        self, original: Any, nodes: list[Any], index: dict[Any, int], degrees: list[int], near: Array, weights: Array | None = None,
        weight: str | None = None,
    ) -> None:  # fmt: skip
        self.original, self.nodes, self.index = original, nodes, index
        self.degrees, self.near, self.near_weights, self.weight = degrees, near, weights, weight
        self.graph: dict[str, Any] = original.graph
        self._is_directed = bool(original.is_directed())
        self.rows: dict[bool, tuple[Array, Array, Array]] = {}
        self._others: dict[str, ConvertedGraph] = {}

    def weighed_by(self, weight: str) -> ConvertedGraph:
        """Return this graph with the weights of an edge attribute, converted once more if it was converted with others, or with none."""
        if weight == self.weight:
            return self
        if weight not in self._others:
            self._others[weight] = converted(self.original, {weight: 1})
        return self._others[weight]

    @cached_property
    def _edges(self) -> tuple[Array, Array, Array | None]:
        source = np.repeat(np.arange(len(self.degrees)), self.degrees)
        target, weights = self.near, self.near_weights
        if self._is_directed:
            return source, target, weights
        is_first = source <= target
        return source[is_first], target[is_first], None if weights is None else weights[is_first]

    @property
    def source(self) -> Array:
        """Positions of one end of each edge: (num_edges,) int64."""
        return self._edges[0]

    @property
    def target(self) -> Array:
        """Positions of the other end of each edge: (num_edges,) int64."""
        return self._edges[1]

    @property
    def weights(self) -> Array | None:
        """Weight of each edge: (num_edges,) int64 or float64; None: all weigh one."""
        return self._edges[2]

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
        return self.near_weights is not None and bool(self.near_weights.min(initial=0) < 0)

    def is_directed(self) -> bool:
        """Whether edges have a direction."""
        return self._is_directed

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
        It is a multigraph or computes its edges, several attributes are asked for, or the weights are not finite numbers or too large for
        exact sums: NetworkX computes by itself then.
    """
    if hasattr(graph, "_graph"):  # a view: a change of what it shows would not clear its cache
        graph.__networkx_cache__ = None
    if graph.is_multigraph():
        raise NotImplementedError("multigraphs are not supported")
    if type(graph).adjacency is not nx.Graph.adjacency:
        raise NotImplementedError(f"{type(graph).__name__} computes its edges when they are asked for")
    if edge_attrs is not None and len(edge_attrs) > 1:
        raise NotImplementedError(f"one edge attribute can be converted, not {', '.join(map(repr, edge_attrs))}")
    nodes, adjacency = list(graph), graph._adj
    index = {node: position for position, node in enumerate(nodes)}
    lists = [adjacency[node] for node in nodes]
    weight, values = None, None
    for weight, default in (edge_attrs or {}).items():
        values = _weights([found.get(weight, default) for one in lists for found in one.values()])
    near = np.array([index[node] for one in lists for node in one], np.int64)
    return ConvertedGraph(graph, nodes, index, list(map(len, lists)), near, values, weight)


def _weights(values: list[Any]) -> Array | None:
    """Return weights as int64, or as float64 if any is a float; None if all are one. Sums of them are as exact as those of NetworkX."""
    kinds = set(map(type, values))
    if not all(issubclass(kind, int | float | np.integer | np.floating) for kind in kinds):
        raise NotImplementedError("weights must be numbers of 64 bits")
    exact = [kind for kind in kinds if issubclass(kind, int | np.integer)]
    integers = values if kinds == {int} else [int(value) for value in values if type(value) in exact] if exact else []
    all_integers = len(integers) == len(values)
    num_bits = 60 if all_integers else 53
    if sum(map(abs, integers)) >= 1 << num_bits:
        raise NotImplementedError(f"integer weights whose sum has more than {num_bits} bits are not supported")
    array = np.array(integers, np.int64) if all_integers else np.array(values, np.float64)
    with np.errstate(over="ignore"):
        if not np.isfinite(np.abs(array).sum()):
            raise NotImplementedError("infinite weights, sums that are infinite, and NaN are not supported")
    return None if (array == 1).all() else array


def to_networkx(graph: Any) -> Any:
    """Return a graph of the backend as one of NetworkX: the original of a converted one, a store with its edge columns as attributes.

    A store with parallel edges becomes a multigraph.

    Raises
    ------
    BudgetError
        A store is too large for that.
    """
    if isinstance(graph, ConvertedGraph):
        return graph.original
    return graph.to_networkx(memory_budget=nx.config.backends["oocgraph"].memory_budget)
