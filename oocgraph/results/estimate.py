"""What a build and a search will take, as `oocgraph.estimate` finds it."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from oocgraph.memory import format_bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """What a build and a breadth-first search will take; what is about a build is None of a store, which is built.

    Attributes
    ----------
    num_edges, num_vertices
        Edges, and vertices with an edge.
    is_exact
        Whether all edges were read, not a sample.
    store_bytes
        Size of the store.
    temporary_bytes
        Size of the files beside it that a build makes and removes.
    build_least_bytes, build_ample_bytes
        A small memory budget of a build (a refusal names the smallest, up to 60 MiB less), and one from which on more gains little.
    build_seconds
        Time of a build with the ample budget.
    search_least_bytes, search_ample_bytes
        A small memory budget of a search, likewise, and one that holds all edges.
    search_seconds, search_seconds_from_disk
        Time of a search with all edges in memory, and with the smallest budget if each edge is read once, at 1 GiB a second.
    free_disk_bytes, free_memory_bytes
        What this machine has left, or the budget that was given.
    """

    num_edges: int
    num_vertices: int
    is_exact: bool
    store_bytes: int | None = None
    temporary_bytes: int | None = None
    build_least_bytes: int | None = None
    build_ample_bytes: int | None = None
    build_seconds: float | None = None
    search_least_bytes: int
    search_ample_bytes: int
    search_seconds: float
    search_seconds_from_disk: float
    free_disk_bytes: int
    free_memory_bytes: int

    @property
    def shortages(self) -> list[str]:
        """What this machine does not have, in words."""
        found = []
        disk = (self.store_bytes or 0) + (self.temporary_bytes or 0)
        if disk > self.free_disk_bytes:
            found.append(
                f"a build does not fit on this disk: it needs {format_bytes(disk)}, and {format_bytes(self.free_disk_bytes)} are free"
            )
        for name, num_bytes in (("build", self.build_least_bytes or 0), ("search", self.search_least_bytes)):
            if num_bytes > self.free_memory_bytes:
                found.append(
                    f"a {name} does not fit in memory: it needs {format_bytes(num_bytes)}, and "
                    f"{format_bytes(self.free_memory_bytes)} are free"
                )
        if not found and self.search_ample_bytes > self.free_memory_bytes:
            found.append(f"a search will read from disk: to hold all edges takes {format_bytes(self.search_ample_bytes)}")
        return found

    def summary(self) -> dict[str, Any]:
        """Return all numbers that there are, by name."""
        return {name: value for name, value in asdict(self).items() if value is not None}
