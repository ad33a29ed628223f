"""Validation of shortest paths by the rules of Graph500's third kernel: every edge is read once, without any code of the algorithm.

In: a graph and a `SSSPResult`. Out: nothing, or ValidationError that names the first rule broken and the vertices. The rules:

1. The distance of a source is 0; a vertex has a parent where it was reached, and the parents of every vertex lead to a source.
2. No edge leads to a shorter path, or to a vertex that was not reached (unless that is beyond the limit of the search).
3. A vertex is as far as its parent and an edge from there.
"""

from __future__ import annotations

import os

import numpy as np

from oocgraph.allocator import returned_memory
from oocgraph.arguments import known_keywords
from oocgraph.compiled.load import load_kernels
from oocgraph.errors import ArgumentTypeError, ValidationError
from oocgraph.kernels import verify as rules
from oocgraph.memory import SLACK_BYTES, Budget
from oocgraph.resources import Resources, resources_of
from oocgraph.results.paths import SSSPResult
from oocgraph.store.columns import distinct
from oocgraph.store.graph import CSRStore, open_graph
from oocgraph.store.libraries import load_libraries
from oocgraph.store.rows import edge_block_bytes, edge_blocks
from oocgraph.store.vertices import VertexIds
from oocgraph.store.views import view_of
from oocgraph.types import no_parent

BLOCK_ENTRIES = 1 << 20
"""Edges that are held."""

_MESSAGES = {
    rules.SENTINELS_DIFFER: "has a distance and no parent, or a parent and no distance",
    rules.PARENT_RANGE: "has a parent that is no vertex",
    rules.SOURCE_PARENT: "is a source, and not its own parent at distance 0",
    rules.PARENT_LEVEL: "is not as far as its parent and an edge from there",
    rules.BEYOND_LIMIT: "is its own ancestor: its parents do not lead to a source",
}


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
        Budget(asked.limit_bytes).reserve_all(_charges(store, result.weight))
        linked = np.zeros(store.num_rows, np.uint8)
        for block, (entries, of_edges) in edge_blocks(store, "out", ["indices", result.weight], BLOCK_ENTRIES):
            rule, u, v = rules.check_paths(
                block.indptr, block.first_row, block.start, entries, of_edges, distance, parent, unreached, limit, linked
            )
            if rule != rules.VALID:
                names = ids.ids_of([u, v]).tolist()
                raise ValidationError(f"the edge from {names[0]!r} to {names[1]!r} leads to a shorter path than that of {names[1]!r}")
        rule, v = rules.check_roots(distance, parent, unreached, none, sources, linked)
        if rule != rules.VALID:
            raise ValidationError(f"vertex {ids.ids_of(int(v)).tolist()[0]!r} {_MESSAGES[rule]}")


def verification_bytes(store: CSRStore, weight: str) -> int:
    """Return what the check of a result takes beside the interpreter, the result included, at the most."""
    return store.num_rows * (8 + store.index_dtype.itemsize) + sum(_charges(store, weight).values())


def _charges(store: CSRStore, weight: str) -> dict[str, int]:
    return {
        "marks of vertices": store.num_rows,
        "a block of rows": edge_block_bytes(store, "out", ["indices", weight], BLOCK_ENTRIES),
        "threads and compiled code": SLACK_BYTES,
        **store.mask_charges(["out"]),
    }
