"""Shortest paths in a small graph in memory: in the order of their lengths, in one call of a kernel.

Dijkstra, "A note on two problems in connexion with graphs", Numerische Mathematik 1, 1959. Of paths of equal length the same is chosen as
in large graphs.
"""

from __future__ import annotations

from math import floor
from time import perf_counter
from typing import Any

import numpy as np

from oocgraph.compiled.load import load_kernel
from oocgraph.kernels import few as kernels
from oocgraph.kernels.relax import MOST_WIDE, SHORTEST
from oocgraph.memory import SLACK_BYTES, Budget, host_bytes
from oocgraph.results.writer import writing_bytes
from oocgraph.store.graph import CSRStore
from oocgraph.types import Array, no_parent

EDGE_BYTES = 48
"""What the heap takes for an edge, at the most, while it grows."""


def shortest_in_small(
    store: CSRStore, column: str, sources: Array, targets: Array, limit: float | None, limit_bytes: int
) -> dict[str, Any] | None:  # fmt: skip
    """Return arguments of `oocgraph.results.paths.SSSPResult`; None where distances or weights are none.

    Parameters
    ----------
    store
        See `oocgraph.engine.few.is_small`.
    column
        Edge column of the weights.
    sources, targets : (n,) int64
        Store numbers, ascending.
    limit
        As of `oocgraph.sssp`.
    limit_bytes
        What the process may hold.

    Raises
    ------
    BudgetError
        It holds too much for that already.
    """
    began, held = perf_counter(), host_bytes()
    array = store.array(f"out/{column}")
    is_integer = array.dtype.kind != "f"
    unreached = SHORTEST["wide" if is_integer else "float"][1]
    distance = np.full(store.num_rows, unreached)
    parent = np.full(store.num_rows, no_parent(store.index_dtype), store.index_dtype)
    _charge(store, Budget(limit_bytes, held), distance.nbytes + parent.nbytes)
    most, followed = MOST_WIDE if is_integer else unreached, 0
    bound = unreached if limit is None else type(unreached)(bound_of(limit, unreached))
    if sources.size:
        called = (
            store.array("out/indptr").held, store.array("out/indices").held, array.held, sources, targets, bound, most, distance, parent,
        )  # fmt: skip
        if (key := (array.dtype, parent.dtype)) not in _loaded:
            load_kernel(kernels.shortest_few, called)
            _loaded.add(key)
        status, followed = kernels.shortest_few(*called)
        if status == kernels.GIVEN_UP:
            return None
    return {
        "stored_value": distance, "stored_parent": parent, "unreached": unreached, "weight": column, "schedule": "dijkstra", "slack": 0,
        "delta": 0.0, "num_relaxed": followed, "seconds": perf_counter() - began, "memory_budget": limit_bytes,
        "edge_bytes": store.array("out/indices").length * (parent.itemsize + array.dtype.itemsize), "peak_host_bytes": host_bytes(),
    }  # fmt: skip


def bound_of(limit: float | None, unreached: Any) -> Any:
    """Return a limit as a distance of the dtype that is computed with; None: there is none.

    Integers beyond what distances may be exclude nothing: what does not fit is refused as without a limit.
    """
    if limit is None or unreached.dtype.kind == "f":
        return limit
    return int(unreached) if limit >= MOST_WIDE else min(int(unreached), floor(limit))


def _charge(store: CSRStore, budget: Budget, result_bytes: int) -> None:
    budget.alternatively("the result, when it is written,", result_bytes + SLACK_BYTES + writing_bytes(store))
    budget.reserve_all({"distances and parents": result_bytes, "heap": EDGE_BYTES * (64 + store.attributes.num_stored_edges)})


_loaded: set[tuple[np.dtype[Any], np.dtype[Any]]] = set()
"""Dtypes of weights and of vertices for which the kernel is in memory."""
