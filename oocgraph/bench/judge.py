"""Whether a result is valid, as a benchmark tells it: the rule that it breaks, or none."""

from __future__ import annotations

from oocgraph.errors import ValidationError
from oocgraph.results.bfs import BFSResult
from oocgraph.store.graph import CSRStore
from oocgraph.verify import verify_bfs


def broken_rule(store: CSRStore, result: BFSResult, *, memory_budget: str | int | None = None) -> str | None:
    """Return the rule that `result` breaks, with the vertices; None when it is valid."""
    try:
        verify_bfs(store, result, memory_budget=memory_budget)
    except ValidationError as error:
        return str(error)
    return None
