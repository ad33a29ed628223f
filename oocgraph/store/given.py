"""Ids as a caller gives them: one, or any collection of them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from oocgraph.config import settings
from oocgraph.memory import Budget, effective_budget_bytes
from oocgraph.store.columns import Ids, id_bytes
from oocgraph.store.graph_arrays import GraphArrays
from oocgraph.store.layout import VERTEX_ID
from oocgraph.store.vertices import VertexIds
from oocgraph.types import Array

BLOCK_ENTRIES = 1 << 16
"""Numbers that become ids at once, at the least."""

BLOCK_ENTRY_BYTES = 64
"""What a number takes while it becomes an id: sorted, found, looked up."""


def is_single(ids: Any) -> bool:
    """Whether `ids` is one id, not a collection of them.

    Examples
    --------
    >>> is_single("a"), is_single(np.int64(3)), is_single([3]), is_single({3})
    (True, True, False, False)
    """
    if isinstance(ids, str | bytes):
        return True
    return np.ndim(ids) == 0 if isinstance(ids, np.ndarray) else not isinstance(ids, Iterable)


def as_collection(ids: Any) -> Any:
    """Return ids as a sequence; one id as a sequence of one."""
    if is_single(ids):
        return [ids]
    return ids if hasattr(ids, "__array__") or isinstance(ids, list | tuple) else list(ids)


def budget_of(memory_budget: str | int | None) -> Budget:
    """Return the budget of one call; what the call imports and compiles is loaded before."""
    return Budget(effective_budget_bytes(memory_budget if memory_budget is not None else settings().memory_budget))


def ids_bytes(store: GraphArrays, num_ids: int) -> int:
    """Return what `ids_of` holds for so many numbers, of which the last come to be ids in small blocks."""
    copies = 1 if store.attributes.id_kind == "int64" else 2  # strings are joined in the end
    return copies * num_ids * id_bytes(store, VERTEX_ID) + min(num_ids, BLOCK_ENTRIES) * _block_entry_bytes(store)


def ids_of(store: GraphArrays, numbers: Array, budget: Budget) -> Ids:
    """Return the user ids of store numbers, as stored: in blocks as large as the budget leaves, of which each reads what it needs.

    Notes
    -----
    The caller has charged `ids_bytes`.
    """
    known = VertexIds(store)
    size = BLOCK_ENTRIES + max(0, budget.available_bytes) // _block_entry_bytes(store)
    parts = [known.stored_ids_of(numbers[start : start + size]) for start in range(0, max(1, numbers.size), size)]
    if len(parts) == 1:
        return parts[0]
    if isinstance(parts[0], np.ndarray):
        return np.concatenate(parts)
    import pyarrow as pa

    return pa.concat_arrays(parts)


def _block_entry_bytes(store: GraphArrays) -> int:
    return BLOCK_ENTRY_BYTES + 2 * id_bytes(store, VERTEX_ID)
