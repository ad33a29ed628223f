"""Results of what is computed by searches from many sources: metrics of the sources, levels, centralities, eccentricities, a diameter."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from oocgraph.errors import ArgumentError
from oocgraph.lazy import cached_property
from oocgraph.listing import Listed
from oocgraph.results.histogram import Histogram, in_parts, make_histogram
from oocgraph.results.values import ValuesResult
from oocgraph.store.columns import Ids, as_numpy
from oocgraph.text import counted, format_number
from oocgraph.types import Array


@dataclass(frozen=True, kw_only=True, repr=False, eq=False)
class MultiSourceResult(ValuesResult):
    """Searches from many sources.

    Of each source, as arrays in the order of `sources`: `num_reached` (itself included), `depth`, `sum_distances` and
    `sum_inverse_distances`. If distances were asked for, also columns `level_0`, `level_1`, ... of the vertices, one for each source; -1
    where it does not reach a vertex. Without these there is nothing to write.

    Parameters
    ----------
    isolated_sources
        Columns whose source has no edges, and the source.
    **others
        As of `oocgraph.results.values.ValuesResult`.
    """

    algorithm = "multi_source_bfs"
    columns = {}  # those of a result are in `stored`

    isolated_sources: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        object.__setattr__(self, "columns", {name: str(values.dtype) for name, values in self.stored.items()})

    def _answer(self) -> str:
        return f": {counted(len(self.details['sources']), 'sources')}, {counted(self.ids.num_ids, 'vertices')}"

    @cached_property
    def levels(self) -> Array:
        """Level of every vertex in the search from every source: (num_ids, num_sources), aligned with `vertices` and `sources`."""
        self._check_levels()
        return self._matrix()

    def bounds(self, first: Any, second: Any) -> tuple[Array, Array]:
        """Bound the distances between vertices of an undirected graph by their distances to the sources, which are landmarks then.

        Parameters
        ----------
        first, second
            User ids, as many of each; or one of each.

        Returns
        -------
        lower, upper : (n,) float64
            The distance is at least and at most so long. Both are infinite where there is no path; the upper one alone where no source
            reaches either vertex.

        Raises
        ------
        ArgumentError
            The graph is directed, there are not as many of each, or the result has no levels.
        VertexNotFoundError
            An id does not occur in the graph's input.

        Notes
        -----
        Potamias, Bonchi, Castillo, Gionis, "Fast shortest path distance estimation in large networks", CIKM 2009: vertices of the highest
        degrees are good landmarks. O(num_sources) time a pair; nothing is read of the edges.
        """
        self._check_levels()
        if self.ids.store.attributes.directed:
            raise ArgumentError(
                f"{self.ids.store.url} is directed, and bounds are of undirected graphs; search for the distances themselves"
            )
        ends = [self.ids.look_up(one) for one in (first, second)]
        if len({numbers.size for _, numbers in ends}) > 1:
            raise ArgumentError(f"first has {ends[0][1].size:,} ids and second {ends[1][1].size:,}; give as many of each")
        one, other = (self._levels_of(*end) for end in ends)
        reached, both = (one >= 0) | (other >= 0), (one >= 0) & (other >= 0)
        lower = np.max(np.abs(one - other), axis=0, where=both, initial=0).astype(np.float64)
        upper = np.min(one + other, axis=0, where=both, initial=np.inf)
        lower[(reached & ~both).any(axis=0)] = np.inf
        same = as_numpy(ends[0][0]) == as_numpy(ends[1][0])
        lower[same] = upper[same] = 0
        return lower, upper

    def _levels_of(self, vertices: Ids, numbers: Array) -> Array:
        """Return the levels of some vertices: (num_sources, n) float64."""
        found = self.values_of(tuple(self.columns), vertices, numbers, 0)
        return np.array([as_numpy(found[name]) for name in self.columns], np.float64)

    def values_of(self, columns: Sequence[str], vertices: Ids, numbers: Array, start: int) -> Mapping[str, Ids]:
        """See `VertexResult.values_of`."""
        found: Mapping[str, Any] = super().values_of(columns, vertices, numbers, start)
        for name in set(columns) & set(self.isolated_sources):
            found[name][as_numpy(vertices) == self.isolated_sources[name]] = 0
        return found

    @property
    def table_columns(self) -> Mapping[str, str]:
        """See `VertexResult.table_columns`.

        Raises
        ------
        ArgumentError
            It has no levels.
        """
        self._check_levels()
        return self.columns

    def _histogram(self, max_bins: int) -> Histogram:
        depths = np.asarray(self.details["depth"])
        return make_histogram(lambda: in_parts(depths), name="depth", things="sources", max_bins=max_bins)

    def _check_levels(self) -> None:
        if not self.columns:
            raise ArgumentError("the result has no levels of vertices; ask for them by multi_source_bfs(..., distances=True)")


class _OfSome(ValuesResult):
    """Values of all vertices, or of those that were asked for; no value is negative."""

    def _known(self, values: Array) -> Array:
        return values[values >= 0]


class ClosenessResult(_OfSome):
    """Closeness centrality: the column `closeness`, NaN where it was not asked for and there are edges; `num_sources`, `is_estimate`."""

    algorithm = "closeness"
    columns = {"closeness": "float64"}


class HarmonicResult(_OfSome):
    """Harmonic centrality: the column `harmonic`, NaN where it was not asked for and there are edges; `num_sources`, `is_estimate`."""

    algorithm = "harmonic"
    columns = {"harmonic": "float64"}


class EccentricityResult(_OfSome):
    """Eccentricities: the column `eccentricity`, -1 where it was not asked for; `num_sources`."""

    algorithm = "eccentricity"
    columns = {"eccentricity": "int32"}


@dataclass(frozen=True, kw_only=True, repr=False)
class DiameterResult(Listed):
    """Diameter of a graph, or bounds of it.

    Attributes
    ----------
    lower, upper : int
        Bounds; equal where the diameter is known.
    ends : (id, id)
        Two vertices at distance `lower`.
    num_searches : int
        Searches that were made.
    seconds, load_seconds, bytes_requested, bytes_read, edge_bytes, peak_host_bytes, memory_budget
        As of `oocgraph.results.values.ValuesResult`.
    """

    lower: int
    upper: int
    ends: tuple[Any, Any]
    num_searches: int
    seconds: float
    load_seconds: float
    bytes_requested: int
    bytes_read: int
    edge_bytes: int
    peak_host_bytes: int
    memory_budget: int

    def __repr__(self) -> str:
        what = f"{self.lower:,}" if self.is_exact else f"from {self.lower:,} to {self.upper:,}"
        return f"<DiameterResult: {what}; {counted(self.num_searches, 'searches')}, {format_number(self.seconds)} s>"

    @property
    def is_exact(self) -> bool:
        """Whether the bounds are equal."""
        return self.lower == self.upper

    @property
    def diameter(self) -> int:
        """The diameter.

        Raises
        ------
        ArgumentError
            It is not known.
        """
        if not self.is_exact:
            raise ArgumentError(f"the diameter is from {self.lower} to {self.upper}: max_searches was too few; raise it, or leave it out")
        return self.lower

    def summary(self) -> dict[str, Any]:
        """Return bounds and metrics, as the command line prints them."""
        names = (
            "lower", "upper", "is_exact", "ends", "num_searches", "seconds", "bytes_read", "bytes_requested", "edge_bytes",
            "peak_host_bytes", "memory_budget", "load_seconds",
        )  # fmt: skip
        return {name: getattr(self, name) for name in names}
