"""What all answers of a graph share: the budget of a call, and store numbers that become the user's ids."""

from __future__ import annotations

import sys

import numpy as np

from oocgraph.arrow import load_arrow
from oocgraph.config import settings
from oocgraph.memory import Budget, bytes_before, default_budget_bytes, effective_budget_bytes
from oocgraph.store.columns import Ids, id_bytes, joined
from oocgraph.store.graph_arrays import GraphArrays
from oocgraph.store.layout import VERTEX_ID
from oocgraph.store.paged_ids import PagedIds
from oocgraph.store.scattered import RangeReader, kept_bytes, load_gathering, reading_bytes
from oocgraph.types import Array

BLOCK_ENTRIES = 1 << 16
"""Numbers that become ids at once, at the least."""

BLOCK_ENTRY_BYTES = 64
"""What a number takes while it becomes an id: sorted, found, looked up."""

FEW_BYTES = 1 << 20
"""What a call may hold before its budget is asked."""


class DefaultBudget(Budget):
    """The budget of a call that was given none: the machine is asked what it leaves, in 0.2 ms, once more than `FEW_BYTES` are charged."""

    def __init__(self, following_bytes: int) -> None:
        super().__init__(sys.maxsize, baseline_bytes=0, following_bytes=following_bytes)

    def _has_room(self, num_bytes: int) -> bool:
        if self.limit_bytes == sys.maxsize and self.reserved_bytes + num_bytes > FEW_BYTES:
            self.limit_bytes = default_budget_bytes()
            self.baseline_bytes = bytes_before(self.limit_bytes)
        return super()._has_room(num_bytes)


def budget_of(store: GraphArrays, memory_budget: str | int | None, *, tables: bool = False, following_bytes: int = 0) -> Budget:
    """Return the budget of one call, which counts what it imports and compiles as the process's own; Arrow for `tables` and strings.

    `following_bytes` are what the call will hold, as far as that is known: whatever is refused first names a budget for it and for buffers.
    """
    for itemsize in {np.dtype(store.attributes.index_dtype).itemsize, 8}:  # of neighbours and of ids
        load_gathering(np.dtype(f"u{itemsize}"))
    if store.attributes.id_kind == "string":
        load_arrow()
    elif tables:
        import pyarrow  # noqa: F401 - loaded for what follows
    asked = settings().memory_budget if memory_budget is None else memory_budget
    pages = kept_bytes(store)
    following_bytes += reading_bytes(store) + pages
    if asked is None:
        return DefaultBudget(following_bytes)
    budget = Budget(effective_budget_bytes(asked), following_bytes=following_bytes)
    budget.hold("pages that are kept", pages)  # what is charged next names a budget for them, too
    return budget


def ids_bytes(store: GraphArrays, num_ids: int) -> int:
    """Return what `ids_of` holds for so many numbers, of which the last come to be ids in small blocks."""
    copies = 1 if store.attributes.id_kind == "int64" else 2  # strings are joined in the end
    return copies * num_ids * id_bytes(store, VERTEX_ID) + min(num_ids, BLOCK_ENTRIES) * _block_entry_bytes(store)


def ids_of(reader: RangeReader, numbers: Array) -> Ids:
    """Return the user ids of store numbers, as stored: in blocks as large as the budget leaves, of which each reads what it needs.

    Notes
    -----
    The caller has charged `ids_bytes`.
    """
    known, store = PagedIds(reader), reader.store
    size = BLOCK_ENTRIES + max(0, reader.budget.available_bytes) // _block_entry_bytes(store)
    return joined([known.stored_ids_of(numbers[start : start + size]) for start in range(0, max(1, numbers.size), size)])


def _block_entry_bytes(store: GraphArrays) -> int:
    return BLOCK_ENTRY_BYTES + 2 * id_bytes(store, VERTEX_ID)
