"""Questions about the surroundings of vertices, of a graph on disk that is not opened: answered by a few pages where they suffice.

A search with a depth limit or a target begins so. Once it has followed many edges, the graph is loaded and searched as always; where a
memory budget does not allow that, the pages are read after all, as long as what is found fits.
"""

from __future__ import annotations

from collections.abc import Callable
from time import perf_counter
from typing import Any

import numpy as np

from oocgraph.config import settings
from oocgraph.engine.by_pages import Question, search_by_pages
from oocgraph.engine.few import FEW_EDGES
from oocgraph.engine.levels import MAX_DEPTH_LIMIT
from oocgraph.errors import BudgetError
from oocgraph.resources import Resources
from oocgraph.results.search import Search
from oocgraph.store.graph import CSRStore
from oocgraph.types import Array, Direction

LEAST_EDGES = 1 << 20
"""Stored edges from which on a graph takes longer to load than to ask for some pages of."""

FEW_LEVELS = 1 << 11
"""Levels after which a question is one about the whole graph: each takes 0.1 ms, which is more than a vertex or two of it in a search that
has loaded the graph."""

Found = tuple[Search, dict[str, Any]]
"""A search, and what a result says of where it ran: fields of `oocgraph.BFSResult`."""


def is_for_pages(view: CSRStore, resources: Resources, direction: Direction) -> bool:
    """Whether a question about a graph is answered by pages, if there is one: it is on disk, and large, and nothing else was asked for."""
    on_processor = (resources.device or settings().device) != "cuda" and resources.device_memory_budget is None
    is_plain = direction in ("auto", "push") and resources.num_partitions is None and view.where is None
    return on_processor and is_plain and view.stored.is_plain and view.attributes.num_stored_edges > LEAST_EDGES


def answer(
    view: CSRStore, sources: Array, targets: Array | None, depth_limit: int | None, resources: Resources, search: Callable[[], Found]
) -> Found:  # fmt: skip
    """Answer a question by pages, or by a `search` of the whole graph where many edges are to be followed.

    Raises
    ------
    BudgetError
        The budget is too small for both; the message names one that works for any search.
    """
    none = np.empty(0, np.int64)
    last_level = MAX_DEPTH_LIMIT if depth_limit is None else depth_limit
    question = Question(sources, none if targets is None else targets, last_level, FEW_EDGES, FEW_LEVELS)
    began, limit = perf_counter(), resources.limit_bytes

    def by_pages(question: Question) -> Found | None:
        try:
            found = search_by_pages(view, question, limit)
        except BudgetError:
            return None
        return None if found is None else (found, {"load_seconds": perf_counter() - began - found.seconds, "memory_budget": limit})

    if (found := by_pages(question)) is not None:
        return found
    try:
        return search()
    except BudgetError:
        if (found := by_pages(question._replace(most_edges=view.attributes.num_stored_edges, most_levels=MAX_DEPTH_LIMIT))) is not None:
            return found
        raise
