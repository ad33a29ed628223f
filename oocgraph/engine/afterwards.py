"""What becomes of a search's result: it is written or validated when planes, edges and state are gone, within the same budget."""

from __future__ import annotations

from oocgraph.memory import SLACK_BYTES, Budget
from oocgraph.results.writer import writing_bytes, writing_bytes_of
from oocgraph.store.graph import CSRStore
from oocgraph.verify import validation_bytes, validation_bytes_of

LEVEL_BYTES = 4
"""Of a level of a vertex, at the most."""


def allow_for_result(budget: Budget, store: CSRStore) -> None:
    """Let `budget` refuse a search whose result could not be written, in any form, or validated by one thread."""
    held = result_bytes(store.num_rows, store.index_dtype.itemsize)
    budget.alternatively("the result, when it is written or validated,", held + max(writing_bytes(store), validation_bytes(store)))


def result_bytes(num_rows: int, itemsize: int) -> int:
    """Return what the parents and levels of so many vertices take, and what no array accounts for."""
    return num_rows * (itemsize + LEVEL_BYTES) + SLACK_BYTES


def least_bytes_afterwards(num_rows: int, itemsize: int, id_bytes: int) -> int:
    """Return what that takes at the least, of a graph that has yet to be built, whose ids take so many bytes each."""
    return result_bytes(num_rows, itemsize) + max(writing_bytes_of(id_bytes, num_rows), validation_bytes_of(num_rows))
