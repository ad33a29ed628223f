"""The nodes of a graph of NetworkX that has been converted: what is found is given back under the node objects, as NetworkX would."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import Any

import networkx as nx
import numpy as np

from oocgraph.kernels.grouping import is_forest, tree_order
from oocgraph.networkx_backend.graph import WEIGHT, ConvertedGraph
from oocgraph.networkx_backend.nodes import Nodes, TreeEdges
from oocgraph.networkx_backend.tiny import is_tiny
from oocgraph.resources import Resources
from oocgraph.results.base import VertexResult
from oocgraph.results.bfs import BFSResult
from oocgraph.store.graph import CSRStore
from oocgraph.store.vertices import VertexIds
from oocgraph.types import Array


class ConvertedNodes(Nodes):
    """Nodes of a graph of NetworkX that has been converted."""

    graph: ConvertedGraph

    def __init__(self, graph: ConvertedGraph, resources: Resources) -> None:
        super().__init__(graph, resources)
        self._nodes = graph.nodes

    @property
    def store(self) -> CSRStore:
        """See `Nodes.store`."""
        return self.graph.store

    def charge(self, **vectors: int) -> None:
        """See `Nodes.charge`; what a tiny graph takes is within what every call is allowed."""
        if not is_tiny(self.graph):
            super().charge(**vectors)

    def __contains__(self, node: Any) -> bool:
        return node in self.graph

    def __iter__(self) -> Iterator[Any]:
        return iter(self._nodes)

    def id_of(self, node: Any) -> int:
        """See `Nodes.id_of`."""
        return self.graph.index[node]

    def column_of(self, weight: str | None) -> str | None:
        """See `Nodes.column_of`."""
        return None if self.graph.weights is None or weight != self.graph.weight else WEIGHT

    def own(self, result: VertexResult, column: str) -> Array:
        """See `Nodes.own`."""
        values: Array = getattr(result, column)
        return values

    def in_own_order(self, stored: Array) -> Array:
        """See `Nodes.in_own_order`."""
        numbers = VertexIds(self.store).vertices_of(np.arange(len(self)))
        return np.where(numbers < 0, 0, stored[numbers]) if stored.size else np.zeros(len(self), stored.dtype)

    def labels(self, numbers: Array) -> list[Any]:
        """See `Nodes.labels`."""
        nodes = self._nodes
        return [nodes[position] for position in numbers.tolist()]

    def alone(self) -> Iterator[Any]:
        """See `Nodes.alone`."""
        return iter(())

    def alone_in(self, search: Any) -> Sequence[Any]:
        """See `Nodes.alone_in`."""
        return ()

    def subgraph(self, numbers: Array, others: Sequence[Any] = ()) -> Any:
        """See `Nodes.subgraph`."""
        return self.graph.original.subgraph(self.labels(numbers)).copy()

    def new_graph(self, nodes: Iterable[Any], source: Array, target: Array) -> Any:
        """See `Nodes.new_graph`."""
        found = nx.DiGraph()
        found.add_nodes_from(nodes)
        found.add_edges_from(zip(self.labels(source), self.labels(target), strict=True))
        return found

    def isolated(self) -> Iterator[Any]:
        """See `Nodes.isolated`."""
        return iter(self.labels(np.flatnonzero(VertexIds(self.store).vertices_of(np.arange(len(self))) < 0)))

    def nodes_of(self, ids: Array) -> list[Any]:
        """See `Nodes.nodes_of`."""
        return self.labels(ids)

    def is_forest(self) -> bool:
        """See `Nodes.is_forest`."""
        return self.num_edges < len(self) and bool(is_forest(self.graph.source, self.graph.target, np.arange(len(self))))

    def leave_negative_weights(self) -> None:
        """See `Nodes.leave_negative_weights`."""
        if self.graph.has_negative_weights:
            raise NotImplementedError("negative weights are not supported")

    def leave_choice_of_forests(self) -> None:
        """See `Nodes.leave_choice_of_forests`: what weighs the same may be chosen either way."""
        weights = self.graph.weights
        if self.num_edges > 1 and (weights is None or np.unique(weights).size < weights.size) and not self.is_forest():
            raise NotImplementedError("edges of the same weight: NetworkX has its own choice among several spanning trees")

    def edges_of(self, tree: TreeEdges, *, data: bool) -> Iterator[Any]:
        """See `Nodes.edges_of`."""
        adjacency = self.graph.original.adj
        for u, v in zip(self.labels(tree.source), self.labels(tree.target), strict=True):
            yield (u, v, adjacency[u][v]) if data else (u, v)

    def spanning_graph(self, tree: TreeEdges) -> Any:
        """See `Nodes.spanning_graph`."""
        found = self.graph.original.__class__()
        found.graph.update(self.graph.original.graph)
        found.add_nodes_from(self.graph.original.nodes.items())
        found.add_edges_from(self.edges_of(tree, data=True))
        return found

    def as_set(self, numbers: Array, others: Sequence[Any] = ()) -> set[Any]:
        """See `Nodes.as_set`."""
        return set(self.labels(numbers))

    def in_sets(self, order: Array, ends: Array) -> Iterator[set[Any]]:
        """See `Nodes.in_sets`."""
        return map(set, self.in_groups(order, ends, ()))

    def in_groups(self, order: Array, ends: Array, others: Sequence[Any]) -> Iterator[list[Any]]:
        """See `Nodes.in_groups`."""
        nodes = self.labels(order)
        return (nodes[start:end] for start, end in pairwise([0, *ends.tolist()]))

    def as_mapping(self, result: VertexResult, column: str | None = None) -> dict[Any, Any]:
        """See `Nodes.as_mapping`."""
        return dict(zip(self._nodes, getattr(result, column or next(iter(result.columns))).tolist(), strict=True))

    def from_stored(self, stored: Array, isolated: float) -> dict[Any, Any]:
        """See `Nodes.from_stored`."""
        return dict(zip(self._nodes, self.in_own_order(stored).tolist(), strict=True))

    def reached(self, search: Any) -> dict[Any, Any]:
        """See `Nodes.reached`."""
        values = getattr(search, next(iter(search.columns)))
        order = np.flatnonzero(values >= 0 if isinstance(search, BFSResult) else values != search.no_value)
        order = order[np.argsort(values[order], kind="stable")]
        return dict(zip(self.labels(order), values[order].tolist(), strict=True))

    def paths(self, search: Any, *, reverse: bool = False) -> dict[Any, list[Any]]:
        """See `Nodes.paths`."""
        parent, nodes, found = search.parent, self._nodes, dict[int, list[Any]]()
        for vertex in tree_order(parent).tolist():
            before = int(parent[vertex])
            rest = [] if before == vertex else found[before]
            found[vertex] = [nodes[vertex], *rest] if reverse else [*rest, nodes[vertex]]
        return {nodes[vertex]: path for vertex, path in found.items()}
