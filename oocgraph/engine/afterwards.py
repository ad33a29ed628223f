"""What becomes of a search's result: it is written or validated when planes, edges and state are gone, within the same budget."""

from __future__ import annotations

from oocgraph.memory import SLACK_BYTES, Budget
from oocgraph.results.writer import writing_bytes
from oocgraph.store.graph import CSRStore
from oocgraph.verify import validation_bytes

LEVEL_BYTES = 4
"""Of a level of a vertex, at the most."""


def allow_for_result(budget: Budget, store: CSRStore) -> None:
    """Let `budget` refuse a search whose result could not be written, in any form, or validated by one thread."""
    held = store.num_rows * (store.index_dtype.itemsize + LEVEL_BYTES) + SLACK_BYTES
    budget.alternatively("the result, when it is written or validated,", held + max(writing_bytes(store), validation_bytes(store)))
