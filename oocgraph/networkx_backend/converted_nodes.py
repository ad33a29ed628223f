"""The nodes of a graph of NetworkX that has been converted: what is found is given back under the node objects, as NetworkX would."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import Any

import networkx as nx
import numpy as np

from oocgraph.algorithms.strong_components import strongly_connected_components
from oocgraph.kernels.grouping import join_ends, tree_order
from oocgraph.memory import Budget
from oocgraph.networkx_backend.graph import WEIGHT, ConvertedGraph
from oocgraph.networkx_backend.nodes import Components, Nodes, TreeEdges
from oocgraph.networkx_backend.tiny import is_tiny, load_once, rows_of, strong_in_tiny
from oocgraph.results.base import VertexResult
from oocgraph.results.bfs import BFSResult
from oocgraph.store.graph import CSRStore
from oocgraph.store.vertices import ABSENT, VertexIds
from oocgraph.types import Array


class ConvertedNodes(Nodes):
    """Nodes of a graph of NetworkX that has been converted."""

    graph: ConvertedGraph
    device = "cpu"  # it is in memory, and rarely large enough for a GPU

    @property
    def _nodes(self) -> list[Any]:
        return self.graph.nodes

    @property
    def store(self) -> CSRStore:
        """See `Nodes.store`."""
        return self.graph.store

    def charge(self, following_budget: int = 0, /, **vectors: int) -> None:
        """See `Nodes.charge`; what a tiny graph takes is within what every call is allowed."""
        if not is_tiny(self.graph):
            super().charge(following_budget, **vectors)

    @property
    def num_own(self) -> int:
        """See `Nodes.num_own`."""
        return len(self)

    def __contains__(self, node: Any) -> bool:
        return node in self.graph

    def __iter__(self) -> Iterator[Any]:
        return iter(self._nodes)

    def id_of(self, node: Any) -> int:
        """See `Nodes.id_of`."""
        return self.graph.index[node]

    def column_of(self, weight: str | None) -> str | None:
        """See `Nodes.column_of`; the graph has these weights from then on."""
        if weight is None:
            return None
        self.graph = self.graph.weighed_by(weight)
        return None if self.graph.weights is None else WEIGHT

    def own(self, result: VertexResult, column: str) -> Array:
        """See `Nodes.own`."""
        values: Array = getattr(result, column)
        return values

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
        return iter(self.labels(np.flatnonzero(self.degrees() == 0)))

    @property
    def num_isolated(self) -> int:
        """See `Nodes.num_isolated`."""
        return int((self.degrees() == 0).sum())

    def is_isolated(self, node: Any) -> bool:
        """See `Nodes.is_isolated`."""
        return bool(self.degrees()[self.id_of(node)] == 0)

    @property
    def num_self_loops(self) -> int:
        """See `Nodes.num_self_loops`."""
        return int((self.graph.source == self.graph.target).sum())

    def components(self) -> Components:
        """See `Nodes.components`: found along the converted edges."""
        self.charge(components=8)
        called = self.graph.source, self.graph.target, np.arange(len(self))
        load_once(join_ends, called)
        return Components(called[2], int(join_ends(*called)))

    def strong_components(self) -> Components:
        """See `Nodes.strong_components`."""
        if is_tiny(self.graph):
            return Components(*strong_in_tiny(self.graph))
        found = strongly_connected_components(self.store, resources=self.resources)
        return Components(found.component, found.num_components)

    def degrees(self, group: str | None = None) -> Array:
        """See `Nodes.degrees`."""
        ends = {"out": [self.graph.source], "in": [self.graph.target], None: [self.graph.source, self.graph.target]}
        return sum((np.bincount(one, minlength=len(self)) for one in ends[group]), np.zeros(len(self), np.int64))

    def numbers_of(self, given: Iterable[Any]) -> Array:
        """See `Nodes.numbers_of`."""
        index = self.graph.index
        return np.fromiter((index.get(node, ABSENT) for node in given), np.int64)

    def stored_numbers_of(self, given: Iterable[Any]) -> Array:
        """See `Nodes.stored_numbers_of`."""
        numbers = self.numbers_of(given)
        numbers[numbers >= 0] = VertexIds(self.store).vertices_of(numbers[numbers >= 0])
        return numbers

    def has_whole(self, column: str | None) -> bool:
        """See `Nodes.has_whole`."""
        return column is None or self.graph.weights is None or self.graph.weights.dtype.kind == "i"

    def sums(self, values: Array, *, reverse: bool = False, column: str | None = None) -> Array:
        """See `Nodes.sums`."""
        near, weights = self.graph.near, self.graph.near_weights
        if not is_tiny(self.graph):
            Budget(self.resources.limit_bytes).reserve("sums along edges", 24 * near.size)
        source = np.repeat(np.arange(len(self)), self.graph.degrees)
        at, of = (near, source) if reverse and self.is_directed else (source, near)
        factor = 1 if column is None or weights is None else weights
        return np.stack([np.bincount(at, one[of] * factor, len(self)) for one in np.atleast_2d(values.T)]).T.reshape(values.shape)

    def _multiply(self) -> None:
        """See `Nodes.charge_product`: products are sums along edges in memory."""

    def successors(self, ident: int, *, reverse: bool = False) -> Array:
        """See `Nodes.successors`."""
        if not is_tiny(self.graph) and reverse not in self.graph.rows:
            Budget(self.resources.limit_bytes).reserve("rows", 40 * self.graph.near.size + 8 * len(self))
        indptr, near, _ = rows_of(self.graph, reverse=reverse)
        return near[indptr[ident] : indptr[ident + 1]].astype(np.int64)

    def nodes_of(self, ids: Array) -> list[Any]:
        """See `Nodes.nodes_of`."""
        return self.labels(ids)

    def leave_negative_weights(self) -> None:
        """See `Nodes.leave_negative_weights`."""
        if self.graph.has_negative_weights:
            raise NotImplementedError("negative weights are not supported")

    def leave_choice_of_forests(self) -> None:
        """See `Nodes.leave_choice_of_forests`: what weighs the same may be chosen either way."""
        weights = self.graph.weights
        if self.num_edges > 1 and (weights is None or np.unique(weights).size < weights.size) and not self.is_forest():
            raise NotImplementedError("edges of the same weight: NetworkX has its own choice among several spanning trees")

    def order_of_edges(self, low: Array, high: Array) -> Array:
        """See `Nodes.order_of_edges`: as nodes and their neighbours were added."""
        if not is_tiny(self.graph):
            Budget(self.resources.limit_bytes).reserve("edges in order", 40 * self.graph.near.size)
        keys = low * len(self) + high
        order = np.argsort(keys)
        of_graph = self.graph.source * len(self) + self.graph.target
        return order[np.searchsorted(keys[order], of_graph[np.isin(of_graph, keys)])]

    def edges_of(self, tree: TreeEdges, *, data: bool) -> Iterator[Any]:
        """See `Nodes.edges_of`."""
        adjacency = self.graph.original.adj
        ends = zip(self.labels(tree.source), self.labels(tree.target), strict=True)
        return iter([(u, v, adjacency[u][v]) for u, v in ends] if data else list(ends))  # the caller may change the graph on the way

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

    def from_own(self, values: Array, others: float) -> dict[Any, Any]:
        """See `Nodes.from_own`."""
        return dict(zip(self._nodes, values.tolist(), strict=True))

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
