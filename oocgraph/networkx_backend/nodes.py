"""The vertices of a graph of the backend, as its functions see them: those of a converted graph, and those of a store.

Functions compute with arrays that have a value of each vertex in the graph's own order, and do not know which of both a graph is:

| | own order | what is returned |
|---|---|---|
| `ConvertedNodes` | nodes as they were added | dictionaries, lists and sets of node objects |
| `StoreNodes` | the store's; vertices without edges are not in it, and come apart | mappings and `VertexSet` of a few bytes a vertex, arrays |
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Any

import networkx as nx
import numpy as np

from oocgraph.memory import Budget
from oocgraph.networkx_backend.graph import ConvertedGraph
from oocgraph.networkx_backend.vertex_set import PathsOf, VertexSet
from oocgraph.resources import Resources
from oocgraph.results.base import VertexResult
from oocgraph.results.values import ValuesResult
from oocgraph.store.graph import CSRStore
from oocgraph.store.layout import SELF_LOOPS
from oocgraph.store.scipy import row_degrees
from oocgraph.store.vertices import VertexIds
from oocgraph.types import Array


class Nodes(ABC):
    """The vertices of a graph.

    Attributes
    ----------
    graph
        What NetworkX has.
    store : CSRStore
        Its edges.
    resources
        What computations may use.
    """

    def __init__(self, graph: Any, store: CSRStore, resources: Resources) -> None:
        self.graph, self.store, self.resources = graph, store, resources

    @property
    def is_directed(self) -> bool:
        """Whether edges have a direction."""
        return self.store.attributes.directed

    def __len__(self) -> int:
        return self.store.num_vertices

    @abstractmethod
    def __contains__(self, node: Any) -> bool: ...

    @abstractmethod
    def __iter__(self) -> Iterator[Any]: ...

    def require(self, node: Any, message: str, error: type[Exception] = nx.NodeNotFound) -> Any:
        """Return what oocgraph calls a node.

        Raises
        ------
        networkx.NodeNotFound, or `error`
            It is not in the graph.
        """
        if node not in self:
            raise error(message)
        return self.id_of(node)

    def chosen(self, nbunch: Any) -> list[Any]:
        """Return those of some nodes that are in the graph, or the one node that is given, as ``Graph.nbunch_iter`` does."""
        if nbunch in self:
            return [nbunch]
        try:
            return [node for node in nbunch if node in self]
        except TypeError as error:
            raise nx.NetworkXError(f"Node {nbunch} is not in the graph.") from error

    @abstractmethod
    def id_of(self, node: Any) -> Any:
        """Return what oocgraph calls a node that is in the graph."""

    @abstractmethod
    def column_of(self, weight: str | None) -> str | None:
        """Return the edge column that an edge attribute is in; None where every edge counts one."""

    @abstractmethod
    def own(self, result: VertexResult, column: str) -> Array:
        """Return a column of a result in own order; columns of ids have own numbers."""

    @abstractmethod
    def in_own_order(self, stored: Array) -> Array:
        """Return numbers in store order in own order; those of vertices without edges are 0."""

    @abstractmethod
    def labels(self, numbers: Array) -> Any:
        """Return the nodes of own numbers: a list, or an array of ids."""

    def label_list(self, numbers: Array) -> list[Any]:
        """Return the nodes of own numbers as a list."""
        found = self.labels(numbers)
        return found if isinstance(found, list) else found.tolist()

    @abstractmethod
    def alone(self) -> Iterator[Any]:
        """Iterate over the nodes that own order does not have."""

    @abstractmethod
    def alone_in(self, search: Any) -> Any:
        """Return those of the nodes that own order does not have that a search has reached: its sources among them."""

    @abstractmethod
    def as_set(self, numbers: Array, others: Sequence[Any] = ()) -> AbstractSet[Any]:
        """Return the nodes of own numbers, and others, as a set."""

    @abstractmethod
    def as_mapping(self, result: VertexResult, column: str | None = None) -> Mapping[Any, Any]:
        """Return a column of a result, by default its first, of each node."""

    @abstractmethod
    def from_stored(self, stored: Array, isolated: float) -> Mapping[Any, Any]:
        """Return numbers in store order, and the one of vertices without edges, of each node."""

    @abstractmethod
    def reached(self, search: Any) -> Mapping[Any, Any]:
        """Return level or distance of each node that a search has reached."""

    @abstractmethod
    def paths(self, search: Any, *, reverse: bool = False) -> Mapping[Any, list[Any]]:
        """Return the path to each node that a search has reached; from it, if that was `reverse`."""

    @abstractmethod
    def subgraph(self, numbers: Array, others: Sequence[Any] = ()) -> Any:
        """Return the graph of the edges between the nodes of own numbers, with these nodes, and others."""

    @abstractmethod
    def new_graph(self, nodes: Iterable[Any], source: Array, target: Array) -> Any:
        """Return a directed graph of some nodes, and of edges by the own numbers of their ends."""

    def charge(self, **vectors: int) -> None:
        """Refuse what a function is going to hold beside the result, in bytes for each vertex, if there is no room for it.

        Raises
        ------
        BudgetError
            There is none; the message names a budget that works.
        """
        budget = Budget(self.resources.limit_bytes)
        with budget.all_or_none():
            for name, num_bytes in vectors.items():
                budget.reserve(name.replace("_", " "), num_bytes * len(self))

    def degrees(self, group: str | None = None) -> Array:
        """Return degrees in store order, as NetworkX counts them: (num_rows,) int64; of the lists ``out`` or ``in``, or in all.

        A self-loop of an undirected graph counts twice, of a directed one in each direction.
        """
        if self.is_directed:
            groups = ("out", "in") if group is None else (group,)
            return sum((row_degrees(self.store, one).astype(np.int64) for one in groups), np.zeros(self.store.num_rows, np.int64))
        degree = row_degrees(self.store, "out").astype(np.int64)
        if self.store.attributes.num_self_loops:
            degree[self.store.read(SELF_LOOPS)] += 1
        return degree


def stored_column(result: VertexResult, column: str) -> Array:
    """Return a column of a result in store order."""
    if isinstance(result, ValuesResult):
        return result.stored[column]
    if hasattr(result, "search"):
        return np.asarray(getattr(result.search, column))
    if column in ("parent", getattr(result, "value_column", None)):
        return result.stored_parent if column == "parent" else result.stored_value
    return getattr(result, f"stored_{column}")


class ConvertedNodes(Nodes):
    """Nodes of a graph of NetworkX that has been converted."""

    graph: ConvertedGraph

    def __init__(self, graph: ConvertedGraph, resources: Resources) -> None:
        super().__init__(graph, graph.store, resources)
        self._nodes = graph.nodes

    def __contains__(self, node: Any) -> bool:
        return node in self.graph

    def __iter__(self) -> Iterator[Any]:
        return iter(self._nodes)

    def id_of(self, node: Any) -> int:
        """See `Nodes.id_of`."""
        return self.graph.index[node]

    def column_of(self, weight: str | None) -> str | None:
        """See `Nodes.column_of`."""
        return "weight" if self.store.attributes.columns and weight is not None and weight == self.graph.weight else None

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

    def as_set(self, numbers: Array, others: Sequence[Any] = ()) -> set[Any]:
        """See `Nodes.as_set`."""
        return set(self.labels(numbers))

    def as_mapping(self, result: VertexResult, column: str | None = None) -> dict[Any, Any]:
        """See `Nodes.as_mapping`."""
        return dict(zip(self._nodes, getattr(result, column or next(iter(result.columns))).tolist(), strict=True))

    def from_stored(self, stored: Array, isolated: float) -> dict[Any, Any]:
        """See `Nodes.from_stored`."""
        return dict(zip(self._nodes, self.in_own_order(stored).tolist(), strict=True))

    def reached(self, search: Any) -> dict[Any, Any]:
        """See `Nodes.reached`."""
        column = next(iter(search.columns))
        values, parent = getattr(search, column), search.parent
        order = np.flatnonzero(parent >= 0)
        order = order[np.argsort(values[order], kind="stable")]
        return dict(zip(self.labels(order), values[order].tolist(), strict=True))

    def paths(self, search: Any, *, reverse: bool = False) -> dict[Any, list[Any]]:
        """See `Nodes.paths`."""
        from oocgraph.kernels.grouping import tree_order

        parent, nodes, found = search.parent, self._nodes, dict[int, list[Any]]()
        for vertex in tree_order(parent).tolist():
            before = int(parent[vertex])
            rest = [] if before == vertex else found[before]
            found[vertex] = [nodes[vertex], *rest] if reverse else [*rest, nodes[vertex]]
        return {nodes[vertex]: path for vertex, path in found.items()}


class StoreNodes(Nodes):
    """Vertices of a store: what is returned holds 16 bytes a vertex at most, the search that it is made of included."""

    graph: CSRStore

    def __init__(self, graph: CSRStore, resources: Resources) -> None:
        super().__init__(graph, graph, resources)
        self.ids = VertexIds(graph)

    def __contains__(self, node: Any) -> bool:
        return (isinstance(node, str) or np.ndim(node) == 0) and node in self.store

    def __iter__(self) -> Iterator[Any]:
        for ids, _ in self.ids.blocks():
            yield from ids.tolist()

    def id_of(self, node: Any) -> Any:
        """See `Nodes.id_of`."""
        return node

    def column_of(self, weight: str | None) -> str | None:
        """See `Nodes.column_of`."""
        return weight if weight in self.store.attributes.columns else None

    def own(self, result: VertexResult, column: str) -> Array:
        """See `Nodes.own`."""
        return stored_column(result, column)

    def in_own_order(self, stored: Array) -> Array:
        """See `Nodes.in_own_order`."""
        return stored

    def labels(self, numbers: Array) -> Any:
        """See `Nodes.labels`."""
        return self.ids.ids_of(numbers)

    def alone(self) -> Iterator[Any]:
        """See `Nodes.alone`."""
        if self.store.attributes.num_isolated:
            for ids, numbers in self.ids.blocks():
                yield from ids[numbers < 0].tolist()

    def alone_in(self, search: Any) -> Array:
        """See `Nodes.alone_in`."""
        found: Array = np.unique(search.isolated_ids)
        return found

    def subgraph(self, numbers: Array, others: Sequence[Any] = ()) -> CSRStore:
        """See `Nodes.subgraph`."""
        return self.store.subgraph(np.append(self.labels(numbers), others))

    def new_graph(self, nodes: Iterable[Any], source: Array, target: Array) -> CSRStore:
        """See `Nodes.new_graph`."""
        return build_in_memory(self.labels(source), self.labels(target), directed=True, vertices=list(nodes))

    def as_set(self, numbers: Array, others: Sequence[Any] = ()) -> VertexSet:
        """See `Nodes.as_set`."""
        ids = self.ids.stored_ids_of(numbers)
        if isinstance(ids, np.ndarray):
            return VertexSet(np.sort(np.append(ids, np.asarray(others, np.int64)) if len(others) else ids))
        import pyarrow as pa

        together = pa.concat_arrays([ids, pa.array(others, pa.large_string())]) if len(others) else ids
        return VertexSet(together.sort())

    def as_mapping(self, result: VertexResult, column: str | None = None) -> Mapping[Any, Any]:
        """See `Nodes.as_mapping`."""
        return result if column is None else result.column(column)

    def from_stored(self, stored: Array, isolated: float) -> Mapping[Any, Any]:
        """See `Nodes.from_stored`."""
        return NodeValues(ids=self.ids, stored={"value": stored}, isolated={"value": isolated})

    def reached(self, search: Any) -> Mapping[Any, Any]:
        """See `Nodes.reached`."""
        return search.reached()

    def paths(self, search: Any, *, reverse: bool = False) -> Mapping[Any, list[Any]]:
        """See `Nodes.paths`."""
        return PathsOf(search, reverse=reverse)


class NodeValues(ValuesResult):
    """A number of each vertex."""

    algorithm = "values"
    columns = {"value": "float64"}
