"""Validation of connected components: every edge is read once and joined by one thread, without any code of the algorithm.

In: a graph, and the components in store order (or a `ComponentsResult`). Out: nothing, or ValidationError that names the first rule broken
and the vertices. The rules:

1. A component is named after a vertex that is in it.
2. Both ends of every edge are in one component.
3. Every vertex is joined by edges with the one that its component is named after.
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
from oocgraph.store.graph import CSRStore, open_graph
from oocgraph.store.libraries import load_libraries
from oocgraph.store.rows import BLOCK_ROWS, edge_block_bytes, edge_blocks
from oocgraph.store.vertices import VertexIds
from oocgraph.store.views import view_of
from oocgraph.types import Array

BLOCK_ENTRIES = 1 << 20
"""Edges that are held."""


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
        Budget(asked.limit_bytes).reserve_all(_charges(store))
        joined = np.arange(store.num_rows)
        for block, (entries,) in edge_blocks(store, "out", ["indices"], BLOCK_ENTRIES):
            u, v = rules.join_rows(joined, component, block.indptr, block.first_row, block.start, entries)
            if u >= 0:
                raise _broken(store, "an edge leads from one component to another", u, v)
        _check_names(store, joined, component)


def verification_bytes(store: CSRStore) -> int:
    """Return what the check of a result takes beside the interpreter, the result included."""
    return store.num_rows * store.index_dtype.itemsize + sum(_charges(store).values())


def _charges(store: CSRStore) -> dict[str, int]:
    return {
        "vertices that edges join": 8 * store.num_rows,
        "a block of rows": edge_block_bytes(store, "out", ["indices"], BLOCK_ENTRIES),
        "threads and compiled code": SLACK_BYTES,
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
