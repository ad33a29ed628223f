"""What shortest paths return: the distance of every vertex from a source, and the vertex before it on a shortest path.

In: distances and parents in store order, and the vertex ids of the graph. Out: `SSSPResult`, whose `distance` and `parent` are aligned with
every input id (`oocgraph.results.base`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from oocgraph.errors import ArgumentError, ArgumentTypeError
from oocgraph.results.base import VertexResult
from oocgraph.results.join import among, join_parents
from oocgraph.results.writer import ID
from oocgraph.store.columns import Ids
from oocgraph.text import format_number
from oocgraph.types import UNREACHED, Array


@dataclass(frozen=True, kw_only=True, repr=False, eq=False)
class SSSPResult(VertexResult):
    """Shortest paths from one source, under the user's vertex ids.

    Parameters
    ----------
    stored_distance : (num_vertices,) int32, int64 or float64
        In store order; the largest integer, or infinity, where no path was found.
    stored_parent : (num_vertices,) index dtype
        Store number of the vertex before; that of the source is its own, of others that were not reached it is meaningless.
    source
        The source, as the user gave it.
    is_isolated
        Whether the source has no edge.
    weight
        Edge column of the weights.
    schedule, delta, slack
        Of the run: see `oocgraph.sssp`.
    target, distance_limit
        As they were given.
    num_relaxed, num_again
        Edges followed, and those of them whose vertex had been followed before with a larger distance: a strict order would not do that.
    num_blocks_read, num_blocks
        Blocks of edges read, each as often as it was, and how many the graph has.
    seconds, bytes_requested, bytes_read
        Time of the search, loading apart; bytes asked of the store's files; the larger of these and the device bytes of the process.
    **others
        As of `oocgraph.results.base.VertexResult`.
    """

    algorithm = "sssp"
    metrics = (
        "source", "num_reached", "eccentricity", "seconds", "schedule", "delta", "slack", "num_relaxed", "num_again", "num_blocks",
        "num_blocks_read", "bytes_read", "bytes_requested", "edge_bytes", "peak_host_bytes", "memory_budget", "load_seconds",
    )  # fmt: skip

    stored_distance: Array
    stored_parent: Array
    source: Any
    is_isolated: bool
    weight: str
    schedule: str
    delta: float
    slack: int
    target: Any = None
    distance_limit: Any = None
    num_relaxed: int = 0
    num_again: int = 0
    num_blocks: int = 0
    num_blocks_read: int = 0
    seconds: float = 0.0
    bytes_requested: int = 0
    bytes_read: int = 0

    @property
    def columns(self) -> Mapping[str, str]:  # type: ignore[override]
        """See `VertexResult`: distances are integers where the weights are."""
        return {"distance": "int64" if self.stored_distance.dtype.kind == "i" else "float64", "parent": ID}

    def __repr__(self) -> str:
        return (
            f"<SSSPResult from {self.source!r}: {self.num_reached:,} of {self.ids.num_ids:,} vertices reached, "
            f"distance at most {self.eccentricity}, "
            f"{format_number(self.seconds)} s, {format_number(self.read_fraction, 2)} x the edges read>"
        )

    @property
    def read_fraction(self) -> float:
        """Blocks read, of all blocks of the graph."""
        return self.num_blocks_read / self.num_blocks if self.num_blocks else 0.0

    @cached_property
    def num_reached(self) -> int:
        """Vertices that a path was found to, the source included."""
        return int(np.count_nonzero(self._is_reached(self.stored_distance))) + self.is_isolated

    @cached_property
    def eccentricity(self) -> int | float:
        """Largest distance that was found."""
        reached = self.stored_distance[self._is_reached(self.stored_distance)]
        zero: int | float = 0 if self.stored_distance.dtype.kind == "i" else 0.0
        return reached.max().item() if reached.size else zero

    @cached_property
    def distance(self) -> Any:
        """Distance of each of `vertices`: (num_ids,) int64, -1 where there is no path; float64 and infinity where weights are floats."""
        return self._joined("distance")

    @cached_property
    def parent(self) -> Any:
        """Id of the vertex before on a shortest path; the source is its own: int64 with -1, or object array of str with None."""
        return self._joined("parent")

    def distance_of(self, ids: Any) -> Any:
        """Distance of one vertex, or of several; -1, or infinity where weights are floats, where there is no path.

        Raises
        ------
        VertexNotFoundError
            An id does not occur in the graph's input.
        """
        return self._look_up("distance", ids)

    def parent_of(self, ids: Any) -> Any:
        """Id of the vertex before one vertex or several, on a shortest path; -1, or None for strings, where there is no path.

        Raises
        ------
        VertexNotFoundError
            An id does not occur in the graph's input.
        """
        return self._look_up("parent", ids)

    def path(self, target: Any) -> Array:
        """Return a shortest path from the source to `target`, both included, as user ids.

        Raises
        ------
        VertexNotFoundError
            `target` does not occur in the graph's input.
        ArgumentTypeError, ArgumentError
            `target` is not one vertex, or was not reached.
        """
        if isinstance(target, list | tuple) or getattr(target, "ndim", 0) != 0:
            raise ArgumentTypeError(f"target is {target!r}; give one vertex")
        if self.distance_of(target) in (UNREACHED, np.inf):
            raise ArgumentError(f"there is no path to {target!r} that the search from {self.source!r} has found")
        vertex = int(self.ids.vertices_of(target)[0])
        if vertex < 0:  # an isolated source
            return self.ids.parse(target)
        numbers = [vertex]
        while (before := int(self.stored_parent[numbers[-1]])) != numbers[-1]:
            numbers.append(before)
        return self.ids.ids_of(numbers[::-1])

    def values_of(self, columns: Sequence[str], vertices: Ids, numbers: Array, start: int) -> Mapping[str, Ids]:
        """See `VertexResult.values_of`."""
        linked = numbers >= 0
        is_integer = self.stored_distance.dtype.kind == "i"
        distance = np.full(numbers.size, UNREACHED if is_integer else np.inf, np.int64 if is_integer else np.float64)
        known = self.stored_distance[numbers[linked]]
        reached = np.zeros(numbers.size, bool)
        reached[linked] = self._is_reached(known)
        distance[reached] = self.stored_distance[numbers[reached]]
        own = np.zeros(numbers.size, bool)
        if self.is_isolated:
            own[~linked] = among(vertices, self.ids.parse(self.source))[~linked]
            distance[own] = 0
        if "parent" not in columns:
            return {"distance": distance}
        parent = self.stored_parent[numbers[reached]]
        is_source = np.zeros(numbers.size, bool)
        is_source[reached] = parent == numbers[reached]
        return {
            "distance": distance,
            "parent": join_parents(self.ids, vertices, parent[parent != numbers[reached]], reached & ~is_source, own | is_source),
        }

    @staticmethod
    def _is_reached(distance: Array) -> Array:
        reached: Array = distance != (np.iinfo(distance.dtype).max if distance.dtype.kind == "i" else np.inf)
        return reached
