"""The vertices of a store: what is found is given back as mappings, sets and arrays of a few bytes a vertex, made of what was found."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import pairwise
from typing import Any, ClassVar

import networkx as nx
import numpy as np

from oocgraph.algorithms.components import connected_components
from oocgraph.algorithms.spmv import spmv
from oocgraph.algorithms.strong_components import strongly_connected_components
from oocgraph.errors import ArgumentError, VertexNotFoundError
from oocgraph.lazy import cached_property
from oocgraph.memory import Budget
from oocgraph.networkx_backend.nodes import Components, Nodes, TreeEdges
from oocgraph.networkx_backend.vertex_set import BLOCK_IDS, PathsOf, VertexSet
from oocgraph.results.base import VertexResult
from oocgraph.results.bfs import BFSResult
from oocgraph.results.paths import SSSPResult
from oocgraph.results.values import ValuesResult
from oocgraph.store.columns import Ids, as_numpy, distinct
from oocgraph.store.graph import CSRStore
from oocgraph.store.in_memory import build_bytes, build_in_memory
from oocgraph.store.input_order import to_input_order, to_store_order
from oocgraph.store.layout import SELF_LOOPS, SORTED_ID, WEIGHT, string_arrays
from oocgraph.store.scipy import row_degrees
from oocgraph.store.vertices import ABSENT, VertexIds
from oocgraph.types import LEVEL_UNREACHED, UNREACHED, Array


class StoreNodes(Nodes):
    """Vertices of a store: what is returned holds 16 bytes a vertex at most, the search that it is made of included."""

    graph: CSRStore

    @cached_property
    def ids(self) -> VertexIds:
        """Its ids."""
        return VertexIds(self.graph)

    @property
    def store(self) -> CSRStore:
        """See `Nodes.store`."""
        return self.graph

    @property
    def num_own(self) -> int:
        """See `Nodes.num_own`."""
        return self.store.num_rows

    def __contains__(self, node: Any) -> bool:
        return node in self.graph

    def __iter__(self) -> Iterator[Any]:
        for ids, _ in self.ids.blocks():
            yield from ids.tolist()

    def id_of(self, node: Any) -> Any:
        """See `Nodes.id_of`."""
        return node

    def column_of(self, weight: str | None) -> str | None:
        """See `Nodes.column_of`."""
        attributes = self.store.attributes
        column = None if weight is None else attributes.stored_column(weight)
        if column in attributes.columns or column in (None, WEIGHT):
            return column if column in attributes.columns else None
        raise nx.NetworkXError(
            f"{self.store.url} has no edge column {weight!r}; give weight= of {', '.join(attributes.input_columns) or 'None'}"
        )

    def own(self, result: VertexResult, column: str) -> Array:
        """See `Nodes.own`."""
        return stored_column(result, column)

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
        return distinct(search.isolated_ids)

    def subgraph(self, numbers: Array, others: Sequence[Any] = ()) -> CSRStore:
        """See `Nodes.subgraph`."""
        return self.store.subgraph(
            np.append(self.labels(numbers), as_numpy(self._stored(others))), memory_budget=self.resources.memory_budget
        )

    def new_graph(self, nodes: Iterable[Any], source: Array, target: Array) -> CSRStore:
        """See `Nodes.new_graph`."""
        return self._in_memory(source, target, list(nodes), directed=True)

    def _in_memory(
        self, source: Array, target: Array, others: list[Any], tree: TreeEdges | None = None, *, directed: bool = False
    ) -> CSRStore:
        """Return a graph in memory of edges by the own numbers of their ends, and of other vertices."""
        columns = None if tree is None or tree.weights is None else {tree.name: self.in_dtype(tree)}
        Budget(self.resources.limit_bytes).reserve("graph in memory", build_bytes(source.size))
        return build_in_memory(
            self.ids.stored_ids_of(source), self.ids.stored_ids_of(target), directed=directed, columns=columns,
            weight=None if columns is None or tree is None else tree.name, vertices=self._stored(others),
        )  # fmt: skip

    def isolated(self) -> Iterator[Any]:
        """See `Nodes.isolated`."""
        return self.alone()

    @property
    def num_isolated(self) -> int:
        """See `Nodes.num_isolated`."""
        return self.store.attributes.num_isolated

    def is_isolated(self, node: Any) -> bool:
        """See `Nodes.is_isolated`."""
        return bool(self.ids.vertices_of(node)[0] < 0)

    @property
    def num_self_loops(self) -> int:
        """See `Nodes.num_self_loops`."""
        return self.store.attributes.num_self_loops

    def components(self) -> Components:
        """See `Nodes.components`."""
        found = connected_components(self.store, resources=self.resources)
        return Components(stored_column(found, "component"), found.num_components)

    def strong_components(self) -> Components:
        """See `Nodes.strong_components`."""
        found = strongly_connected_components(self.store, resources=self.resources)
        return Components(stored_column(found, "component"), found.num_components)

    def degrees(self, group: str | None = None) -> Array:
        """See `Nodes.degrees`."""
        if self.is_directed:
            groups = ("out", "in") if group is None else (group,)
            return sum((row_degrees(self.store, one).astype(np.int64) for one in groups), np.zeros(self.store.num_rows, np.int64))
        degree = row_degrees(self.store, "out").astype(np.int64)
        if self.store.attributes.num_self_loops:
            for _, loops in self.store.array(SELF_LOOPS).blocks(BLOCK_IDS):
                np.add.at(degree, loops, 1)  # there may be parallel ones
        return degree

    def numbers_of(self, given: Iterable[Any]) -> Array:
        """See `Nodes.numbers_of`."""
        chosen = given.ids if isinstance(given, VertexSet) else given if isinstance(given, np.ndarray) else list(given)
        if isinstance(chosen, np.ndarray) and chosen.ndim != 1:
            raise nx.NetworkXError(f"nodes are an array of {chosen.ndim} dimensions; give one of one dimension")
        is_text = self.store.attributes.id_kind == "string"
        has_text = chosen.dtype.kind in "US" if isinstance(chosen, np.ndarray) else any(isinstance(node, str) for node in chosen)
        if is_text or not has_text:  # oocgraph takes numerals for integers
            with suppress(VertexNotFoundError, ArgumentError):  # one is no id of this kind: each is looked at, below
                return self.ids.numbers_of(chosen)
        odd = (tuple, list) if is_text else (tuple, list, str)
        own = [i for i, node in enumerate(chosen) if not isinstance(node, odd) and node in self]
        numbers = np.full(len(chosen), ABSENT, np.int64)
        numbers[own] = self.ids.numbers_of([chosen[i] for i in own])
        return numbers

    @property
    def text_bytes(self) -> int:
        """See `Nodes.text_bytes`."""
        if self.store.attributes.id_kind != "string":
            return 0
        return self.store.array(string_arrays(SORTED_ID)[0]).length // max(1, len(self)) + 1

    def stored_numbers_of(self, given: Iterable[Any]) -> Array:
        """See `Nodes.stored_numbers_of`."""
        return self.numbers_of(given)

    def has_whole(self, column: str | None) -> bool:
        """See `Nodes.has_whole`."""
        return column is None or np.dtype(self.store.attributes.columns[column]).kind in "biu"

    def sums(self, values: Array, *, reverse: bool = False, column: str | None = None) -> Array:
        """See `Nodes.sums`."""
        by_id = np.zeros((self.store.attributes.num_input_vertices, *values.shape[1:]))
        to_input_order(self.store, values, by_id)
        found = spmv(self.store, by_id, transpose=reverse, weight=column or False, resources=self.resources)
        del by_id
        sums = np.empty_like(values)
        to_store_order(self.store, found, sums)
        return sums

    def _multiply(self) -> None:
        spmv(self.store, np.broadcast_to(0.0, self.store.attributes.num_input_vertices), weight=False, resources=self.resources)

    def successors(self, ident: Any, *, reverse: bool = False) -> Array:
        """See `Nodes.successors`."""
        direction = "in" if reverse else "out"
        found: Array = self.store.neighbors(ident, direction=direction, memory_budget=self.resources.memory_budget)
        return found

    def nodes_of(self, ids: Array) -> list[Any]:
        """See `Nodes.nodes_of`."""
        found: list[Any] = ids.tolist()
        return found

    def leave_negative_weights(self) -> None:
        """See `Nodes.leave_negative_weights`."""

    def leave_choice_of_forests(self) -> None:
        """See `Nodes.leave_choice_of_forests`: any of them will do."""

    def edges_of(self, tree: TreeEdges, *, data: bool) -> Iterator[Any]:
        """See `Nodes.edges_of`."""
        for start in range(0, tree.source.size, BLOCK_IDS):
            stop = start + BLOCK_IDS
            ends = [self.label_list(numbers[start:stop]) for numbers in (tree.source, tree.target)]
            if not data:
                yield from zip(*ends, strict=True)
            elif tree.weights is None:
                yield from ((u, v, {}) for u, v in zip(*ends, strict=True))
            else:
                weights = self.in_dtype(tree)[start:stop].tolist()
                yield from ((u, v, {tree.name: weight}) for u, v, weight in zip(*ends, weights, strict=True))

    def spanning_graph(self, tree: TreeEdges) -> CSRStore:
        """See `Nodes.spanning_graph`."""
        is_linked = np.zeros(self.store.num_rows, np.bool_)
        is_linked[tree.source] = is_linked[tree.target] = True
        with_loops = self.labels(np.flatnonzero(~is_linked)).tolist()  # all of whose edges are loops
        return self._in_memory(tree.source, tree.target, [*self.alone(), *with_loops], tree)

    def in_dtype(self, tree: TreeEdges) -> Array:
        """Return weights as the store has them."""
        assert tree.weights is not None
        attributes = self.store.attributes
        return tree.weights.astype(attributes.columns[attributes.stored_column(tree.name)])

    def as_set(self, numbers: Array, others: Sequence[Any] = ()) -> VertexSet:
        """See `Nodes.as_set`."""
        ids, rest = self.ids.stored_ids_of(numbers), self._stored(others)
        if isinstance(ids, np.ndarray):
            return VertexSet(np.sort(np.concatenate([ids, rest])))
        import pyarrow as pa

        return VertexSet(pa.concat_arrays([ids, rest]).sort())

    def _stored(self, ids: Sequence[Any]) -> Ids:
        """Return ids as they are stored."""
        return self.ids.look_up(ids)[0]

    def in_sets(self, order: Array, ends: Array) -> Iterator[VertexSet]:
        """See `Nodes.in_sets`."""
        first, start = 0, 0
        while first < ends.size:  # the ids of many small groups are read together
            last = max(first + 1, int(np.searchsorted(ends, start + BLOCK_IDS)))
            ids = self.ids.stored_ids_of(order[start : ends[last - 1]])
            for low, high in pairwise([0, *(ends[first:last] - start).tolist()]):
                yield VertexSet(np.sort(ids[low:high]) if isinstance(ids, np.ndarray) else ids[low:high].sort())
            first, start = last, int(ends[last - 1])

    def in_groups(self, order: Array, ends: Array, others: Sequence[Any]) -> Iterator[Array]:
        """See `Nodes.in_groups`."""
        start = 0
        if len(others):
            start = int(ends[0]) if ends.size else 0
            yield np.append(self.labels(order[:start]), others)
        for end in ends[1 if len(others) else 0 :].tolist():
            yield self.labels(order[start:end])
            start = end

    def as_mapping(self, result: VertexResult, column: str | None = None) -> Mapping[Any, Any]:
        """See `Nodes.as_mapping`."""
        return result if column is None else result.column(column)

    def from_own(self, values: Array, others: float) -> Mapping[Any, Any]:
        """See `Nodes.from_own`."""
        kind = NodeNumbers if values.dtype.kind == "i" else NodeValues
        return kind(ids=self.ids, stored={"value": values}, isolated={"value": others})

    def reached(self, search: Any) -> Mapping[Any, Any]:
        """See `Nodes.reached`."""
        found: Mapping[Any, Any] = search.reached()
        return found

    def paths(self, search: Any, *, reverse: bool = False) -> Mapping[Any, list[Any]]:
        """See `Nodes.paths`."""
        return PathsOf(search, reverse=reverse)


def stored_column(result: VertexResult, column: str) -> Array:
    """Return a column of a result in store order; of ids, their store numbers."""
    if isinstance(result, ValuesResult):
        return result.stored[column]
    if isinstance(result, BFSResult) and column != "origin":
        return np.asarray(result.search.parent) if column == "parent" else _signed_levels(np.asarray(result.search.level))
    if isinstance(result, SSSPResult) and column == result.value_column:
        return np.where(result.stored_value == result.unreached, result.no_value, result.stored_value)
    stored: Array = getattr(result, f"stored_{column}")  # components, core numbers, origins
    return stored


def _signed_levels(level: Array) -> Array:
    """Return levels as signed numbers, -1 where a vertex was not reached: a search has one byte for each where that is enough."""
    if level.dtype != np.uint8:
        return level
    signed = level.astype(np.int16)
    signed[level == LEVEL_UNREACHED] = UNREACHED
    return signed


class NodeValues(ValuesResult):
    """A number of each vertex."""

    algorithm = "values"
    columns: ClassVar[Mapping[str, str]] = {"value": "float64"}


class NodeNumbers(ValuesResult):
    """A whole number of each vertex."""

    algorithm = "numbers"
    columns: ClassVar[Mapping[str, str]] = {"value": "int64"}
