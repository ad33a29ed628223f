"""What the runtimes of a whole graph in this process share.

`oocgraph.engine.local` has it on the processor, `oocgraph.engine.device` on a GPU.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from oocgraph.engine import levels
from oocgraph.memory import Budget
from oocgraph.resources import Resources
from oocgraph.results.search import Search
from oocgraph.store.graph import CSRStore
from oocgraph.types import Array, Direction, Progress, ignore_progress


class WholeGraph:
    """A graph in this process, ready for searches: what `oocgraph.bfs` asks of every runtime."""

    budget: Budget
    """Of host memory."""

    client = None
    """The Dask client on whose workers it is: none."""

    lease = None
    """Name under which workers keep edges for it: there are none."""

    only_searches = True
    """Whether `oocgraph.bfs` alone takes it."""

    resources = Resources()
    """What it was opened with, as far as that is known."""

    device_reason = ""
    """Why it is on the processor, or on a GPU."""

    @property
    def view(self: Any) -> CSRStore:
        """The graph as it is searched."""
        view: CSRStore = self.store
        return view

    def check(self: Any) -> None:
        """Refuse to do anything once it is closed."""
        self.lifetime.check()

    def search(
        self: Any, sources: Array, *, direction: Direction = "auto", depth_limit: int | None = None, targets: Array | None = None,
        progress: Progress = ignore_progress,
    ) -> Search:  # fmt: skip
        """Traverse from `sources`, (num_sources,) int64 store numbers, distinct, perhaps none, until all of `targets` are found, if given.

        The result is in store order.
        """
        return levels.search(self, sources, direction=direction, depth_limit=depth_limit, targets=targets, progress=progress)

    @property
    def resident(self) -> Mapping[str, Array]:
        """Beginnings of arrays of the store that are in host memory, by name."""
        return {}

    @property
    def memory_budget(self) -> int:
        """Bytes of host memory that the process may hold."""
        return self.budget.limit_bytes

    @property
    def device_metrics(self) -> dict[str, Any]:
        """``device``, and what of its memory is used; empty without a GPU."""
        return {}

    @property
    def metrics(self: Any) -> dict[str, Any]:
        """What a result says of the runtime: fields of `oocgraph.BFSResult`."""
        return {
            "load_seconds": self.load_seconds,
            "memory_budget": self.memory_budget,
            "planes_resident": self.planes_resident,
            "device_reason": self.device_reason,
            **self.device_metrics,
        }
