"""Validation of components, shortest paths and core numbers: every edge is read once by one thread, without any code of the algorithms.

In: a graph and a result. Out: nothing, or ValidationError that names the first rule broken and the vertices.

Of components:

1. A component is named after a vertex that is in it.
2. Both ends of every edge are in one component.
3. Every vertex is joined by edges with the one that its component is named after.

Of shortest paths, by the rules of Graph500's third kernel:

1. The distance of a source is 0; a vertex has a parent where it was reached, and the parents of every vertex lead to a source.
2. No edge leads to a shorter path, or to a vertex that was not reached (unless that is beyond the limit of the search).
3. A vertex is as far as its parent and an edge from there.

Of core numbers:

1. Every vertex has at least as many neighbours of no smaller core number as its core number: so it is in such a core.
2. Vertices were removed in an order of ascending core numbers, and none has more neighbours that were removed after it than its core
   number: so it is in no larger core, for the first vertex of that to be removed would have more.
"""

from __future__ import annotations

import os

import numpy as np

from oocgraph.allocator import returned_memory
from oocgraph.arguments import known_keywords
from oocgraph.compiled.load import load_kernels
from oocgraph.errors import ArgumentError, ArgumentTypeError, ValidationError
from oocgraph.kernels import verify as rules
from oocgraph.memory import SLACK_BYTES, Budget
from oocgraph.resources import Resources, resources_of
from oocgraph.results.base import VertexResult
from oocgraph.results.components import ComponentsResult
from oocgraph.results.cores import CoreResult
from oocgraph.results.paths import SSSPResult
from oocgraph.store.columns import distinct
from oocgraph.store.graph import CSRStore, open_graph
from oocgraph.store.libraries import load_libraries
from oocgraph.store.rows import BLOCK_ROWS, edge_block_bytes, edge_blocks
from oocgraph.store.vertices import VertexIds
from oocgraph.store.views import view_of
from oocgraph.types import Array, no_parent

BLOCK_ENTRIES = 1 << 20
"""Edges that are held."""

_MESSAGES = {
    rules.SENTINELS_DIFFER: "has a distance and no parent, or a parent and no distance",
    rules.PARENT_RANGE: "has a parent that is no vertex",
    rules.SOURCE_PARENT: "is a source, and not its own parent at distance 0",
    rules.PARENT_LEVEL: "is not as far as its parent and an edge from there",
    rules.BEYOND_LIMIT: "is its own ancestor: its parents do not lead to a source",
    rules.RANK_RANGE: "has no rank of its own in the order of removal",
    rules.CORE_ORDER: "has a smaller core number than a vertex that was removed before it",
    rules.CORE_TOO_LARGE: "has fewer neighbours of no smaller core number than its core number",
    rules.CORE_TOO_SMALL: "has more neighbours that were removed after it than its core number",
}


@known_keywords
def verify_components(
    graph: CSRStore | str | os.PathLike[str], result: ComponentsResult | Array, *, resources: Resources | None = None,
    memory_budget: str | int | None = None,
) -> None:  # fmt: skip
    """Check that a result names the connected components of a graph; of a directed one, the weakly connected ones.

    Parameters
    ----------
    graph
        A graph store or its path.
    result
        Of `oocgraph.connected_components`, or (num_vertices,) store numbers in store order.
    resources
        Memory; see `oocgraph.Resources`. One thread works.
    memory_budget
        Bytes that the process may hold, the result included; the same as in `resources`.

    Raises
    ------
    ArgumentTypeError, ArgumentError
        The result is none of components, or is of another graph.
    ValidationError
        A rule is broken; the message names it and the vertices.
    BudgetError
        The budget is too small; the message names the smallest that works.
    CorruptStoreError
        The store cannot be read.
    """
    asked = resources_of("verify_components", resources, memory_budget=memory_budget)
    store = open_graph(graph)
    if isinstance(result, VertexResult) and not isinstance(result, ComponentsResult):
        raise ArgumentTypeError(f"result is {result!r}; give what connected_components returns")
    if isinstance(result, ComponentsResult):
        result.check_graph(store)
        store = view_of(store, where=result.where)
    component = np.asarray(result.stored_component if isinstance(result, ComponentsResult) else result)
    if component.dtype.kind not in "iu":
        raise ArgumentTypeError(f"result is {result!r}; give what connected_components returns, or an array of integers")
    if component.shape != (store.num_rows,):
        raise ArgumentError(f"result has the shape {component.shape}; {store.url} has {store.num_rows:,} vertices with an edge")
    load_libraries(store)
    joined = np.empty(0, np.int64)
    entries = np.empty(0, store.index_dtype)
    load_kernels([(rules.join_rows, (joined, component[:0], joined, 0, 0, entries)), (rules.roots_of, (joined, joined))])
    with returned_memory():
        Budget(asked.limit_bytes).reserve_all(_components_charges(store))
        joined = np.arange(store.num_rows)
        for block, (entries,) in edge_blocks(store, "out", ["indices"], BLOCK_ENTRIES):
            u, v = rules.join_rows(joined, component, block.indptr, block.first_row, block.start, entries)
            if u >= 0:
                raise _broken(store, "an edge leads from one component to another", u, v)
        _check_names(store, joined, component)


def components_bytes(store: CSRStore) -> int:
    """Return what `verify_components` takes beside the interpreter, the result included."""
    return store.num_rows * store.index_dtype.itemsize + sum(_components_charges(store).values())


def _components_charges(store: CSRStore) -> dict[str, int]:
    return {
        "vertices that edges join": 8 * store.num_rows,
        **_block_charges(store, "indices"),
        **store.mask_charges(["out"]),
    }


def _check_names(store: CSRStore, joined: Array, component: Array) -> None:
    """Check that vertices are joined with the one that their component is named after, block by block."""
    for start in range(0, component.size, BLOCK_ROWS):
        named = component[start : start + BLOCK_ROWS].astype(np.int64)
        if (outside := np.flatnonzero((named < 0) | (named >= component.size))).size:
            raise ValidationError(f"the component of vertex number {start + outside[0]} is {named[outside[0]]}, which is no vertex")
        if (other := np.flatnonzero(component[named] != named)).size:
            raise _broken(store, "a component is named after a vertex of another", start + int(other[0]), int(named[other[0]]))
        roots = rules.roots_of(joined, np.arange(start, start + named.size)), rules.roots_of(joined, named)
        if (apart := np.flatnonzero(roots[0] != roots[1])).size:
            raise _broken(
                store, "no path of edges joins a vertex with that of its component's name", start + int(apart[0]), int(named[apart[0]])
            )


def _broken(store: CSRStore, rule: str, u: int, v: int) -> ValidationError:
    names = VertexIds(store).ids_of([u, v]).tolist()
    return ValidationError(f"{rule}: {names[0]!r} and {names[1]!r}")


@known_keywords
def verify_sssp(
    graph: CSRStore | str | os.PathLike[str], result: SSSPResult, *, resources: Resources | None = None,
    memory_budget: str | int | None = None,
) -> None:  # fmt: skip
    """Validate the result of `oocgraph.sssp`.

    Parameters
    ----------
    graph
        A graph store or its path.
    result
        Shortest paths in that graph.
    resources
        Memory; see `oocgraph.Resources`. One thread works.
    memory_budget
        Bytes that the process may hold, the result included; the same as in `resources`.

    Raises
    ------
    ArgumentTypeError, ArgumentError
        The result is none of `oocgraph.sssp`, or is of another graph.
    ValidationError
        A rule is broken; the message names it and the vertices.
    BudgetError
        The budget is too small; the message names the smallest that works.
    CorruptStoreError
        The store cannot be read.
    """
    asked, store = resources_of("verify_sssp", resources, memory_budget=memory_budget), open_graph(graph)
    if not isinstance(result, SSSPResult):
        raise ArgumentTypeError(f"result is {result!r}; give what oocgraph.sssp returns")
    result.check_graph(store)
    ids, store = VertexIds(store), view_of(store, where=result.where, reverse=result.reverse)
    given = ids.parse(result.source)
    numbers = ids.vertices_of(given)
    sources = distinct(numbers[numbers >= 0])
    if set(given[numbers < 0].tolist()) != set(result.isolated_ids.tolist()):
        raise ValidationError(f"the isolated sources are {given[numbers < 0]}, not {result.isolated_ids}")
    distance, parent = result.stored_value, result.stored_parent
    if not distance.shape == parent.shape == (store.num_rows,):
        raise ValidationError(f"distances {distance.shape} and parents {parent.shape} must be of each of the {store.num_rows} vertices")
    unreached = distance.dtype.type(np.inf if distance.dtype.kind == "f" else np.iinfo(distance.dtype).max)
    limit = np.inf if result.distance_limit is None else float(result.distance_limit)
    if result.target is not None and (farthest := np.asarray(result.distance_of(result.target))).min() >= 0:
        limit = min(limit, float(farthest.max()))
    weights, none = store.array(f"out/{result.weight}"), no_parent(store.index_dtype)
    load_libraries(store)
    linked = np.zeros(0, np.uint8)
    edges = np.empty(0, np.int64), 0, 0, np.empty(0, store.index_dtype), np.empty(0, weights.dtype.newbyteorder("="))
    load_kernels([
        (rules.check_paths, (*edges, distance[:0], parent[:0], unreached, limit, linked)),
        (rules.check_roots, (distance[:0], parent[:0], unreached, none, sources, linked)),
    ])  # fmt: skip
    with returned_memory():
        Budget(asked.limit_bytes).reserve_all(_paths_charges(store, result.weight))
        linked = np.zeros(store.num_rows, np.uint8)
        for block, (entries, of_edges) in edge_blocks(store, "out", ["indices", result.weight], BLOCK_ENTRIES):
            rule, u, v = rules.check_paths(
                block.indptr, block.first_row, block.start, entries, of_edges, distance, parent, unreached, limit, linked
            )
            if rule != rules.VALID:
                names = ids.ids_of([u, v]).tolist()
                raise ValidationError(f"the edge from {names[0]!r} to {names[1]!r} leads to a shorter path than that of {names[1]!r}")
        _check(ids, *rules.check_roots(distance, parent, unreached, none, sources, linked))


def paths_bytes(store: CSRStore, weight: str) -> int:
    """Return what `verify_sssp` takes beside the interpreter, the result included, at the most."""
    return store.num_rows * (8 + store.index_dtype.itemsize) + sum(_paths_charges(store, weight).values())


def _paths_charges(store: CSRStore, weight: str) -> dict[str, int]:
    return {
        "marks of vertices": store.num_rows,
        **_block_charges(store, "indices", weight),
        **store.mask_charges(["out"]),
    }


@known_keywords
def verify_cores(
    graph: CSRStore | str | os.PathLike[str], result: CoreResult, *, resources: Resources | None = None,
    memory_budget: str | int | None = None,
) -> None:  # fmt: skip
    """Validate the result of `oocgraph.core_numbers`.

    Parameters
    ----------
    graph
        A graph store or its path.
    result
        Core numbers of that graph.
    resources
        Memory; see `oocgraph.Resources`. One thread works.
    memory_budget
        Bytes that the process may hold, the result included; the same as in `resources`.

    Raises
    ------
    ArgumentTypeError, ArgumentError
        The result is none of `oocgraph.core_numbers`, or is of another graph.
    ValidationError
        A rule is broken; the message names it and a vertex.
    BudgetError
        The budget is too small; the message names the smallest that works.
    CorruptStoreError
        The store cannot be read.
    """
    asked, store = resources_of("verify_cores", resources, memory_budget=memory_budget), open_graph(graph)
    if not isinstance(result, CoreResult):
        raise ArgumentTypeError(f"result is {result!r}; give what oocgraph.core_numbers returns")
    result.check_graph(store)
    core_number, rank = result.stored_core_number, result.stored_rank
    if not core_number.shape == rank.shape == (store.num_rows,):
        raise ValidationError(f"core numbers {core_number.shape} and ranks {rank.shape} must be of each of {store.num_rows} vertices")
    load_libraries(store)
    counts = np.zeros((2, 0), core_number.dtype)
    load_kernels([
        (rules.count_cores, (np.empty(0, np.int64), 0, 0, np.empty(0, store.index_dtype), core_number[:0], rank[:0], counts)),
        (rules.check_ranks, (core_number[:0], rank[:0], core_number[:0])),
        (rules.check_cores, (core_number[:0], counts)),
    ])  # fmt: skip
    ids = VertexIds(store)
    with returned_memory():
        Budget(asked.limit_bytes).reserve_all(_cores_charges(store))
        _check(ids, *rules.check_ranks(core_number, rank, np.full(store.num_rows, -1, core_number.dtype)))
        counts = np.zeros((2, store.num_rows), core_number.dtype)
        for group in ("out", "in") if store.attributes.directed else ("out",):
            for block, (entries,) in edge_blocks(store, group, ["indices"], BLOCK_ENTRIES):
                rules.count_cores(block.indptr, block.first_row, block.start, entries, core_number, rank, counts)
        _check(ids, *rules.check_cores(core_number, counts))


def cores_bytes(store: CSRStore) -> int:
    """Return what `verify_cores` takes beside the interpreter, the result included, at the most."""
    return store.num_rows * (8 + store.index_dtype.itemsize) + sum(_cores_charges(store).values())


def _cores_charges(store: CSRStore) -> dict[str, int]:
    return {
        "counts of neighbours": (8 if store.attributes.num_stored_edges < 2**31 else 16) * store.num_rows,
        **_block_charges(store, "indices"),
    }


def _block_charges(store: CSRStore, *columns: str) -> dict[str, int]:
    return {
        "a block of rows": edge_block_bytes(store, "out", list(columns), BLOCK_ENTRIES),
        "threads and compiled code": SLACK_BYTES,
    }


def _check(ids: VertexIds, rule: int, v: int) -> None:
    if rule != rules.VALID:
        raise ValidationError(f"vertex {ids.ids_of(int(v)).tolist()[0]!r} {_MESSAGES[rule]}")
