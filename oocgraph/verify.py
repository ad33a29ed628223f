"""Graph500's validation of a breadth-first search, streaming, without any code of the search.

In: a store, the sources, and parent and level in store order (or a `BFSResult`). Out: a report, or ValidationError
that names the first rule broken and the vertices. The edges are read once, in blocks, by a few threads; beyond
the inputs it keeps one bit per vertex and thread.

The rules:

1. A vertex has a level if and only if it has a parent; parents are vertices.
2. The sources, and they alone, are at level 0 and their own parents.
3. Any other vertex is one level below its parent. With 2 this makes a forest without cycles whose roots are the sources.
4. The edge from each parent to its child exists.
5. An edge from a reached vertex leads to a reached vertex, at most one level deeper: so levels are shortest distances
   and all that can be reached has been. From the last level of a depth limit it may lead to an unreached one.

Reference: Graph500 specification, section "validation".
"""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from dataclasses import dataclass
from queue import SimpleQueue
from typing import Any

import numpy as np

from oocgraph.allocator import returned_memory
from oocgraph.arguments import known_keywords
from oocgraph.compiled.load import Call, load_kernels
from oocgraph.config import num_cores
from oocgraph.errors import ArgumentTypeError, CorruptStoreError, ValidationError
from oocgraph.kernels import verify as rules
from oocgraph.listing import Listed
from oocgraph.memory import Budget, limit_bytes_of
from oocgraph.resources import Resources, resources_of
from oocgraph.results.bfs import BFSResult
from oocgraph.store.arrays import decoded_bytes
from oocgraph.store.columns import distinct
from oocgraph.store.graph import CSRStore, open_graph
from oocgraph.store.libraries import load_libraries
from oocgraph.store.rows import BLOCK_ROWS, RowBlock, map_bounded, read_entries, row_blocks
from oocgraph.store.vertices import VertexIds
from oocgraph.store.views import view_of
from oocgraph.types import LEVEL_UNREACHED, Array, no_parent

BLOCK_BYTES = 4 << 20
"""Bytes of ``indices`` a thread holds: stays in a shared cache between the read and the scan."""

FIXED_BYTES = 12 << 20
"""Compiled rules, stacks of threads, ids of vertices in messages."""

_VERTICES = 1 << 18
"""Vertices of one task of the first pass."""

_NO_LIMIT = 2**62


@dataclass(frozen=True, slots=True)
class Validation(Listed):
    """What a validation has seen; it exists only when every rule holds.

    Attributes
    ----------
    num_reached
        Reached vertices that have an edge.
    depth
        Largest level.
    num_edges_checked
        Stored entries of the rows of reached vertices.
    num_reached_edges
        The same as the user counts edges: an undirected edge once.
    seconds
        Wall time.
    """

    num_reached: int
    depth: int
    num_edges_checked: int
    num_reached_edges: int
    seconds: float


def verify_search(
    store: CSRStore,
    sources: Array | Sequence[int],
    parent: Array,
    level: Array,
    *,
    depth_limit: int | None = None,
    threads: int | None = None,
    memory_budget: str | int | None = None,
) -> Validation:
    """Validate parents and levels in store order.

    Parameters
    ----------
    store
        The graph.
    sources
        Store numbers of the sources.
    parent : (num_vertices,) index dtype
        ``no_parent(dtype)`` where unreached. Not changed.
    level : (num_vertices,) uint8 or int32
        255 (uint8) or -1 (int32) where unreached. Not changed.
    depth_limit
        The limit that the search was given.
    threads
        At most so many; all usable processors when not given. Fewer work where the budget has no room for more.
    memory_budget
        Bytes that the whole process may hold, parent and level included; by default most of what the machine leaves.

    Returns
    -------
    Validation

    Raises
    ------
    ValidationError
        A rule is broken; the message names it and the vertices.
    CorruptStoreError
        The store cannot be read, or a neighbour is not a vertex.
    BudgetError
        The budget is too small for one thread; the message names the smallest that works.

    Notes
    -----
    Peak host bytes beyond the inputs, for T threads: T x (num_vertices / 8 + 4 MiB) + num_vertices / 8 + 21 MiB.
    128 M stored entries (kron22) take 0.15 s with two threads when cached, 521 M (kron24) 0.9 s.
    """
    begin = time.perf_counter()
    tree = _Tree(store, parent, level, depth_limit)
    load_libraries(store)
    load_kernels(tree.kernel_calls())
    with returned_memory():
        num_threads = _affordable(store, num_cores() if threads is None else threads, memory_budget)
        num_reached, depth = tree.check_vertices(np.asarray(sources, np.int64), num_threads)
        num_edges, num_loops = tree.check_edges(num_threads)
    if store.stored is not store:  # of a view, edges that do not count are read as loops
        num_live_loops = store.count_self_loops(lambda vertices: tree.level[vertices] != tree.unreached)
        num_edges, num_loops = num_edges - num_loops + num_live_loops, num_live_loops
    directed = store.attributes.directed
    return Validation(
        num_reached=num_reached,
        depth=depth,
        num_edges_checked=num_edges,
        num_reached_edges=num_edges if directed else (num_edges + num_loops) // 2,
        seconds=time.perf_counter() - begin,
    )


def validation_bytes(store: CSRStore) -> int:
    """Return what one thread that validates a search of `store` holds beside its parents and levels."""
    decoded = sum(decoded_bytes(store.array(f"out/{name}")) for name in ("indptr", "indices"))
    return validation_bytes_of(store.num_rows) + decoded + sum(store.mask_charges(["out"]).values())


def validation_bytes_of(num_rows: int) -> int:
    """Return that of a store of so many rows whose arrays are not compressed: marks of linked vertices twice, and blocks."""
    return FIXED_BYTES + 2 * (num_rows // 8) + 2 * 9 * BLOCK_ROWS + BLOCK_BYTES


def _thread_bytes(store: CSRStore) -> int:
    return store.num_rows // 8 + BLOCK_BYTES + decoded_bytes(store.array("out/indices"))


def _affordable(store: CSRStore, most: int, memory_budget: str | int | None) -> int:
    """Return the number of threads that the budget has room for."""
    budget = Budget(limit_bytes_of(memory_budget))
    budget.reserve("validation by one thread", validation_bytes(store))
    return 1 + min(most - 1, budget.available_bytes // _thread_bytes(store))


@known_keywords
def verify_bfs(
    graph: CSRStore | str | os.PathLike[str], result: BFSResult, *, resources: Resources | None = None,
    memory_budget: str | int | None = None,
) -> Validation:  # fmt: skip
    """Validate the result of `oocgraph.bfs`: its tree, its levels and what it counts.

    Parameters
    ----------
    graph
        A graph store or its path.
    result
        A search of that graph.
    resources
        Threads, at the most, and memory; see `oocgraph.Resources`.
    memory_budget
        Bytes that the process may hold, the result included; the same as in `resources`.

    Returns
    -------
    Validation

    Raises
    ------
    ArgumentTypeError, ArgumentError
        The result is none of `oocgraph.bfs`, or is of another graph.
    ValidationError
        A rule is broken; the message names it and the vertices under their store numbers and user ids.
    BudgetError
        The budget is too small; the message names the smallest that works.

    Notes
    -----
    Peak host bytes and speed: see `verify_search`.
    """
    asked = resources_of("verify_bfs", resources, memory_budget=memory_budget)
    store = open_graph(graph)
    if not isinstance(result, BFSResult):
        raise ArgumentTypeError(f"result is {result!r}; give what oocgraph.bfs returns")
    result.check_graph(store)
    ids, view = VertexIds(store), view_of(store, where=result.where, reverse=result.reverse)
    given, search = ids.parse(result.source), result.search
    numbers = ids.vertices_of(given)
    if not np.array_equal(distinct(numbers[numbers >= 0]), distinct(np.asarray(search.sources, np.int64))):
        raise ValidationError(f"the search started from the vertices {search.sources}, but its sources are {numbers[numbers >= 0]}")
    if set(given[numbers < 0].tolist()) != set(result.isolated_ids.tolist()):
        raise ValidationError(f"the isolated sources are {given[numbers < 0]}, not {result.isolated_ids}")
    limit = result.depth_limit
    if result.target is not None and (farthest := np.asarray(result.level_of(result.target))).min() >= 0:
        limit = int(farthest.max()) if limit is None else min(limit, int(farthest.max()))
    validation = verify_search(
        view, search.sources, search.parent, search.level, depth_limit=limit, threads=asked.threads,
        memory_budget=asked.memory_budget,
    )  # fmt: skip
    for name in ("num_reached", "depth", "num_reached_edges"):
        claimed, counted = getattr(search, name), getattr(validation, name)
        if claimed != counted:
            raise ValidationError(f"the search says {name} {claimed}, but the tree has {counted}")
    return validation


def verify_calls(index_dtype: Any, parent: Array, level: Array, unreached: Any, limit: int, *, ascending: bool) -> list[Call]:
    """Return the kernels that judge a result with such arrays, with arguments of the types that they are called with."""
    rows, none = np.zeros(2, np.int64), no_parent(parent.dtype)
    entries, bits = np.empty(0, index_dtype), np.zeros(1, np.uint64)
    return [
        (rules.check_vertices, (parent, level, 0, 0, unreached, none, limit)),
        (rules.check_undirected if ascending else rules.check_directed, (rows, 0, 0, entries, parent, level, unreached, limit, bits)),
        (rules.find_unlinked, (bits, level, unreached)),
    ]


class _Tree:
    def __init__(self, store: CSRStore, parent: Array, level: Array, depth_limit: int | None) -> None:
        n = store.num_rows
        if parent.shape != (n,) or level.shape != (n,):
            raise ValidationError(f"parent {parent.shape} and level {level.shape} must have one entry for each of the {n} vertices")
        if level.dtype not in (np.uint8, np.int32) or parent.dtype != store.index_dtype:
            raise ValidationError(f"parent must be {store.index_dtype} and level uint8 or int32, not {parent.dtype} and {level.dtype}")
        self.store, self.parent = store, np.ascontiguousarray(parent)
        self.level = np.ascontiguousarray(level) if level.dtype == np.uint8 else np.ascontiguousarray(level).view(np.uint32)
        self.unreached = LEVEL_UNREACHED if level.dtype == np.uint8 else 2**32 - 1
        self.limit = _NO_LIMIT if depth_limit is None else depth_limit

    @property
    def ascending(self) -> bool:
        """Whether rows ascend and stand for both ways: those of an undirected graph, not of a view."""
        return not self.store.attributes.directed and self.store.stored is self.store

    @property
    def check_rows(self) -> Any:
        """The rules of rows: faster ones of rows that ascend."""
        return rules.check_undirected if self.ascending else rules.check_directed

    def kernel_calls(self) -> list[Call]:
        """Return what is called, with arguments of the types that it is called with."""
        dtype = self.store.array("out/indices").dtype.newbyteorder("=")
        return verify_calls(dtype, self.parent, self.level, self.unreached, self.limit, ascending=self.ascending)

    def check_vertices(self, sources: Array, num_threads: int) -> tuple[int, int]:
        """Rules 1 to 3; returns the number of reached vertices and the depth."""
        n, none = self.level.size, no_parent(self.parent.dtype)
        for source in sources:
            if not 0 <= source < n:
                raise ValidationError(f"source {source} is not one of the {n} vertices")
            if self.level[source] != 0 or self.parent[source] != source:
                raise ValidationError(f"a source is at level 0 and its own parent, but {self._tell(source)} is not")

        def check(start: int) -> Any:
            return rules.check_vertices(self.parent, self.level, start, min(n, start + _VERTICES), self.unreached, none, self.limit)

        num_reached = num_roots = depth = 0
        for rule, vertex, reached, roots, deepest in map_bounded(check, range(0, n, _VERTICES), num_threads):
            if rule != rules.VALID:
                raise ValidationError(self._broken_vertex(rule, vertex))
            num_reached, num_roots, depth = num_reached + reached, num_roots + roots, max(depth, deepest)
        if num_roots != distinct(sources).size:
            stranger = np.setdiff1d(np.flatnonzero(self.level == 0), sources)[0]
            raise ValidationError(f"only sources are at level 0, but {self._tell(stranger)} is no source")
        return num_reached, depth

    def check_edges(self, num_threads: int) -> tuple[int, int]:
        """Rules 4 and 5; returns the stored entries and the self-loops among them, of reached rows."""
        n = self.level.size
        indices, check_edges = self.store.array("out/indices"), self.check_rows
        max_entries = BLOCK_BYTES // indices.dtype.itemsize
        linked = np.zeros((num_threads, -(-n // 64)), np.uint64)
        slots: SimpleQueue[tuple[Array, Array]] = SimpleQueue()
        for t in range(num_threads):
            slots.put((linked[t], np.empty(max_entries, indices.dtype)))

        def check(block: RowBlock) -> Any:
            slot = bits, buffer = slots.get()
            try:
                entries = read_entries(indices, block, buffer)
                return check_edges(
                    block.indptr, block.first_row, block.start, entries, self.parent, self.level, self.unreached, self.limit, bits
                )
            finally:
                slots.put(slot)

        num_edges = num_loops = 0
        for rule, vertex, other, edges, loops in map_bounded(
            check, row_blocks(self.store, "out", max_entries=max_entries, whole_rows=False), num_threads
        ):
            if rule == rules.NOT_ASCENDING:
                raise CorruptStoreError(
                    f"{self.store.url}: row {vertex} of out/indices does not ascend; `oocgraph check` tells where, build it again"
                )
            if rule == rules.INDEX_RANGE:
                raise CorruptStoreError(
                    f"{self.store.url}: out/indices has neighbour {other} of vertex {vertex}, but there are {n} vertices; build it again"
                )
            if rule != rules.VALID:
                raise ValidationError(f"an edge spans at most one level, but the edge {self._tell(vertex)} -> {self._tell(other)} does not")
            num_edges, num_loops = num_edges + edges, num_loops + loops
        vertex = rules.find_unlinked(np.bitwise_or.reduce(linked, axis=0), self.level, self.unreached)
        if vertex >= 0:
            raise ValidationError(
                f"a tree edge is an edge of the graph, but {self._tell(self.parent[vertex])} has no edge to its child {self._tell(vertex)}"
            )
        return num_edges, num_loops

    def _broken_vertex(self, rule: int, vertex: int) -> str:
        name, parent = self._tell(vertex), int(self.parent[vertex])
        if rule == rules.SENTINELS_DIFFER:
            return f"a vertex has a level if and only if it has a parent, but {name} is at odds"
        if rule == rules.PARENT_RANGE:
            return f"a parent is a vertex, 0 to {self.level.size - 1}, but not that of {name}"
        if rule == rules.SOURCE_PARENT:
            return f"a vertex at level 0 is a source and its own parent, but {name} is not"
        if rule == rules.BEYOND_LIMIT:
            return f"the depth limit is {self.limit}, but {name} lies deeper"
        return f"a vertex is one level below its parent, but {name} is the child of {self._tell(parent)}"

    def _tell(self, vertex: Any) -> str:
        """Name a vertex by its store number and user id, with its level and parent."""
        v = int(vertex)
        level = "none" if self.level[v] == self.unreached else int(self.level[v])
        parent = "none" if self.parent[v] == no_parent(self.parent.dtype) else int(self.parent[v])
        return f"vertex {v} (id {VertexIds(self.store).ids_of(v).tolist()[0]!r}, level {level}, parent {parent})"
