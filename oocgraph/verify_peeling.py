"""Validation of core numbers: every edge is read once, without any code of the algorithm.

In: a graph and a `CoreResult`. Out: nothing, or ValidationError that names the first rule broken and a vertex. The rules:

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
from oocgraph.errors import ArgumentTypeError, ValidationError
from oocgraph.kernels import verify as rules
from oocgraph.memory import SLACK_BYTES, Budget
from oocgraph.resources import Resources, resources_of
from oocgraph.results.cores import CoreResult
from oocgraph.store.graph import CSRStore, open_graph
from oocgraph.store.libraries import load_libraries
from oocgraph.store.rows import edge_block_bytes, edge_blocks
from oocgraph.store.vertices import VertexIds

BLOCK_ENTRIES = 1 << 20
"""Edges that are held."""

_MESSAGES = {
    rules.RANK_RANGE: "has no rank of its own in the order of removal",
    rules.CORE_ORDER: "has a smaller core number than a vertex that was removed before it",
    rules.CORE_TOO_LARGE: "has fewer neighbours of no smaller core number than its core number",
    rules.CORE_TOO_SMALL: "has more neighbours that were removed after it than its core number",
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

    def check(rule: int, v: int) -> None:
        if rule != rules.VALID:
            raise ValidationError(f"vertex {ids.ids_of(int(v)).tolist()[0]!r} {_MESSAGES[rule]}")

    with returned_memory():
        Budget(asked.limit_bytes).reserve_all(_charges(store))
        check(*rules.check_ranks(core_number, rank, np.full(store.num_rows, -1, core_number.dtype)))
        counts = np.zeros((2, store.num_rows), core_number.dtype)
        for group in ("out", "in") if store.attributes.directed else ("out",):
            for block, (entries,) in edge_blocks(store, group, ["indices"], BLOCK_ENTRIES):
                rules.count_cores(block.indptr, block.first_row, block.start, entries, core_number, rank, counts)
        check(*rules.check_cores(core_number, counts))


def verification_bytes(store: CSRStore) -> int:
    """Return what the check of a result takes beside the interpreter, the result included, at the most."""
    return store.num_rows * (8 + store.index_dtype.itemsize) + sum(_charges(store).values())


def _charges(store: CSRStore) -> dict[str, int]:
    return {
        "counts of neighbours": (8 if store.attributes.num_stored_edges < 2**31 else 16) * store.num_rows,
        "a block of rows": edge_block_bytes(store, "out", ["indices"], BLOCK_ENTRIES),
        "threads and compiled code": SLACK_BYTES,
    }
