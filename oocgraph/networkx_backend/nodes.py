"""The vertices of a graph of the backend, as its functions see them: those of a converted graph, and those of a store.

Functions compute with arrays that have a value of each vertex in the graph's own order, and do not know which of both a graph is:

| | own order | what is returned |
|---|---|---|
| `ConvertedNodes` | nodes as they were added | dictionaries, lists and sets of node objects |
| `StoreNodes` | the store's; vertices without edges come apart | mappings and `VertexSet` of a few bytes a vertex, and arrays |
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import replace
from typing import Any, NamedTuple, TypeVar

import networkx as nx
import numpy as np

from oocgraph.errors import BudgetError
from oocgraph.lazy import cached_property
from oocgraph.memory import SPARE_BYTES, Budget, least_budget
from oocgraph.resources import Resources
from oocgraph.results.base import VertexResult
from oocgraph.store.graph import CSRStore
from oocgraph.types import Array, DeviceKind

Found = TypeVar("Found")


HELD_BYTES = 40
"""Of a vertex: what functions hold while they multiply, at the most."""


class TreeEdges(NamedTuple):
    """Edges of a forest that spans a graph.

    Attributes
    ----------
    source, target : (n,) int64
        Own numbers.
    weights : (n,) float64, or None
        None: all weigh one.
    name
        Edge attribute that these are.
    """

    source: Array
    target: Array
    weights: Array | None
    name: Any


class Components(NamedTuple):
    """Components of a graph.

    Attributes
    ----------
    component : (n,) integers
        Own number of a vertex of the same component, of each vertex in own order.
    num_components
        How many there are.
    """

    component: Array
    num_components: int


class Nodes(ABC):
    """The vertices of a graph.

    Attributes
    ----------
    graph
        What NetworkX has.
    """

    device: DeviceKind | None = None
    """Where computations run; None: wherever `oocgraph.Resources` chooses."""

    def __init__(self, graph: Any, memory_budget: str | int | None = None, threads: int | None = None) -> None:
        self.graph, self._memory_budget, self._threads = graph, memory_budget, threads
        if memory_budget is not None or threads is not None:
            self.resources  # noqa: B018 - what is invalid is refused, even where nothing is computed with it

    @cached_property
    def resources(self) -> Resources:
        """What computations may use: tiny graphs are searched without it."""
        return Resources(memory_budget=self._memory_budget, threads=self._threads, device=self.device, client=False)

    @property
    @abstractmethod
    def store(self) -> CSRStore:
        """The edges."""

    @property
    def is_directed(self) -> bool:
        """Whether edges have a direction."""
        return bool(self.graph.is_directed())

    @property
    def num_edges(self) -> int:
        """Number of edges."""
        return int(self.graph.number_of_edges())

    def __len__(self) -> int:
        return len(self.graph)

    @property
    def text_bytes(self) -> int:
        """Bytes of a node's id where ids are strings that are stored, on average; 0 otherwise."""
        return 0

    @property
    @abstractmethod
    def num_own(self) -> int:
        """Number of nodes that own order has."""

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
        """Return those of some nodes that are in the graph, each once, or the one node that is given, as ``Graph.nbunch_iter`` does.

        Raises
        ------
        networkx.NetworkXError
            These are no nodes: not iterable, or not hashable.
        """
        if nbunch in self:
            return [nbunch]
        try:
            return [node for node in dict.fromkeys(nbunch) if node in self]
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
    def in_sets(self, order: Array, ends: Array) -> Iterator[AbstractSet[Any]]:
        """Iterate over groups of nodes as sets: own numbers in the order of the groups, and where each of them ends."""

    @abstractmethod
    def in_groups(self, order: Array, ends: Array, others: Sequence[Any]) -> Iterator[Any]:
        """Iterate over groups of nodes as lists or arrays; `others` are in the first one, too."""

    @abstractmethod
    def as_mapping(self, result: VertexResult, column: str | None = None) -> Mapping[Any, Any]:
        """Return a column of a result, by default its first, of each node."""

    @abstractmethod
    def from_own(self, values: Array, others: float) -> Mapping[Any, Any]:
        """Return numbers in own order, of int64 or float64, and the one of the nodes that it does not have, of each node."""

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
    def isolated(self) -> Iterator[Any]:
        """Iterate over the nodes without edges."""

    @property
    @abstractmethod
    def num_isolated(self) -> int:
        """Number of nodes without edges."""

    @abstractmethod
    def is_isolated(self, node: Any) -> bool:
        """Return whether a node of the graph has no edges."""

    @property
    @abstractmethod
    def num_self_loops(self) -> int:
        """Number of edges from a node to itself."""

    @abstractmethod
    def components(self) -> Components:
        """Find the components, of a directed graph the weakly connected ones."""

    @abstractmethod
    def strong_components(self) -> Components:
        """Find the strongly connected components."""

    @abstractmethod
    def nodes_of(self, ids: Any) -> list[Any]:
        """Return the nodes that oocgraph calls by some ids."""

    def value_of(self, search: Any, target: Any) -> Any:
        """Return level or distance of what oocgraph calls a node; None if the search has not reached it."""
        return search.reached().get(target)

    def is_forest(self) -> bool:
        """Whether there is no cycle, whatever the direction of the edges."""
        return self.num_edges < len(self) and self.components().num_components == len(self) - self.num_edges

    def order_of_edges(self, low: Array, high: Array) -> Array:
        """Return in which order edges come in the graph, given own numbers of their ends, the smaller and the larger ones: (n,) int64."""
        return np.lexsort((high, low))

    @abstractmethod
    def leave_negative_weights(self) -> None:
        """Leave a graph with negative weights to NetworkX, if it is one of NetworkX; of a store they are found when edges are read.

        Raises
        ------
        NotImplementedError
            It has some.
        """

    @abstractmethod
    def leave_choice_of_forests(self) -> None:
        """Leave a graph to NetworkX, if it is one of NetworkX, of which that would choose among spanning forests of the same weight.

        Raises
        ------
        NotImplementedError
            It may have several.
        """

    @abstractmethod
    def edges_of(self, tree: TreeEdges, *, data: bool) -> Iterator[Any]:
        """Iterate over edges as NetworkX has them, with their attributes if `data`."""

    @abstractmethod
    def spanning_graph(self, tree: TreeEdges) -> Any:
        """Return the graph of all nodes and of the edges of a forest."""

    @abstractmethod
    def new_graph(self, nodes: Iterable[Any], source: Array, target: Array) -> Any:
        """Return a directed graph of some nodes, and of edges by the own numbers of their ends."""

    def compute(self, find: Callable[[], Found], **vectors: int) -> Found:
        """Return what `find` does, if there is room for what comes of it, as `charge` has it.

        Raises
        ------
        BudgetError
            There is none; the message names a budget that works for `find`, too.
        """
        try:
            self.charge(**vectors)
        except BudgetError:
            self.charge(self._least_of(find), **vectors)
        return find()

    def _least_of(self, find: Callable[[], Any]) -> int:
        """Return the least budget that a function names: it is called with one that is too small for anything."""
        resources, self.resources = self.resources, replace(self.resources, memory_budget=1)
        try:
            find()
        except BudgetError as error:
            return least_budget(error)
        finally:
            self.resources = resources
        return 0

    def charge(self, following_budget: int = 0, /, **vectors: int) -> None:
        """Refuse what a function is going to hold beside the result, in bytes for each vertex, if there is no room for it.

        Parameters
        ----------
        following_budget
            What the function needs at another time: a refusal names as much.
        **vectors
            Bytes for each vertex, by name.

        Raises
        ------
        BudgetError
            There is none; the message names a budget that works.
        """
        budget = Budget(self.resources.limit_bytes)
        budget.following_bytes = max(0, following_budget - SPARE_BYTES - budget.baseline_bytes)
        with budget.all_or_none():
            for name, num_bytes in vectors.items():
                budget.reserve(name.replace("_", " "), num_bytes * len(self))

    def charge_product(self, **vectors: int) -> None:
        """Refuse as `charge` does what is held beside a product (`sums`), and name a budget for that, too.

        Raises
        ------
        BudgetError
            There is no room; the message names a budget that works.
        """
        try:
            self.charge(**vectors)
        except BudgetError:
            self.charge(self._least_of(self._multiply) + HELD_BYTES * len(self), **vectors)

    @abstractmethod
    def _multiply(self) -> None:
        """Multiply the adjacency matrix by a vector, if what `sums` does is charged there."""

    @abstractmethod
    def numbers_of(self, given: Iterable[Any]) -> Array:
        """Return the own number of each, -1 if own order does not have it, and -2 if it is no node: (n,) int64."""

    @abstractmethod
    def stored_numbers_of(self, given: Iterable[Any]) -> Array:
        """Return the store number of each, -1 if it has no edges, and -2 if it is no node: (n,) int64."""

    @abstractmethod
    def has_whole(self, column: str | None) -> bool:
        """Return whether the weights of an edge column are integers; those of no column are."""

    @abstractmethod
    def sums(self, values: Array, *, reverse: bool = False, column: str | None = None) -> Array:
        """Add up what the neighbours of each node have: a product of the adjacency matrix.

        Parameters
        ----------
        values : (num_nodes,) or (num_nodes, width) float64
            In own order.
        reverse
            Over the edges that end at a node, of a directed graph.
        column
            Edge column by which values are multiplied.
        """

    @abstractmethod
    def successors(self, ident: Any, *, reverse: bool = False) -> Array:
        """Return what oocgraph calls the nodes to which there is an edge from the one that it calls `ident`; `reverse`: to that one."""

    @abstractmethod
    def degrees(self, group: str | None = None) -> Array:
        """Return degrees in own order, as NetworkX counts them: (n,) int64; of the lists ``out`` or ``in``, or in all.

        A self-loop of an undirected graph counts twice, of a directed one in each direction.
        """
