"""A small graph in memory, ready for searches: each is one call of a kernel by one thread, and opening one costs next to nothing."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from oocgraph.closing import Closing
from oocgraph.engine.afterwards import allow_for_result
from oocgraph.engine.few import FOUND_BYTES, search_few
from oocgraph.engine.levels import MAX_DEPTH_LIMIT
from oocgraph.engine.lifetime import Lifetime
from oocgraph.engine.local import LocalRuntime
from oocgraph.engine.whole import WholeGraph
from oocgraph.kernels.few import FIRST_ROOM
from oocgraph.kernels.rows import explicit_rows
from oocgraph.memory import Budget, limit_bytes_of
from oocgraph.results.search import Search
from oocgraph.store.graph import CSRStore
from oocgraph.types import Array, Direction, Progress, ignore_progress


class SmallRuntime(WholeGraph, Closing):
    """A small graph in memory, ready for searches.

    Parameters
    ----------
    store
        The graph, or a view of it.
    memory_budget
        Bytes of the whole process; by default as of `LocalRuntime.open`.
    following_bytes
        As for `Budget`.
    **options
        Of `LocalRuntime.open`, for searches whose direction is given.
    """

    load_seconds = 0.0
    planes_resident = 0

    def __init__(self, store: CSRStore, *, memory_budget: str | int | None = None, following_bytes: int = 0, **options: Any) -> None:
        self.store, self.lifetime = store, Lifetime(store.url)
        self.budget = Budget(limit_bytes_of(memory_budget), following_bytes=following_bytes)
        allow_for_result(self.budget, store)
        self.budget.reserve_all({"searches": FOUND_BYTES * max(FIRST_ROOM, store.num_rows)})
        self._rows, self._near = explicit_rows(store.array("out/indptr").held), store.array("out/indices").held
        self._options = {"memory_budget": memory_budget, **options}
        self._large: LocalRuntime | None = None

    @property
    def resident(self) -> Mapping[str, Array]:
        """Arrays of the store that are in host memory, by name."""
        group = self.store.pull_group
        names = {"out/indices", f"{group}/indices", f"{group}/planes/indices"}
        return {name: self.store.array(name).held for name in names.intersection(self.store.array_names())}

    def close(self) -> None:
        """End what was begun; closing again does nothing."""
        with self.lifetime.ending() as was_open:
            if was_open and self._large is not None:
                self._large.close()

    def search(
        self, sources: Array, *, direction: Direction = "auto", depth_limit: int | None = None, targets: Array | None = None,
        progress: Progress = ignore_progress,
    ) -> Search:  # fmt: skip
        """Traverse from `sources`; see `WholeGraph.search`."""
        self.lifetime.check()
        if direction in ("auto", "push"):
            limits = MAX_DEPTH_LIMIT if depth_limit is None else depth_limit, self.store.num_rows, self.store.attributes.num_stored_edges
            found = search_few(self.store, self._rows, self._near, sources, targets, limits, dense=True)
            assert found is not None
            return found
        with self.lifetime.searching:
            if self._large is None:
                self._large = LocalRuntime.open(self.store, **self._options)
        return self._large.search(sources, direction=direction, depth_limit=depth_limit, targets=targets, progress=progress)
