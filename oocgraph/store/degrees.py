"""Degree classes of a degree-sorted store: each distinct degree, descending, and the first vertex that has it.

In: both arrays, as they were read or as a build counts them. Out: whether they can be those of a graph; how many vertices each plane
covers, and how many planes are stored.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from oocgraph.store.layout import MAX_PLANES, num_planes_for
from oocgraph.types import Array

MOST_MEAN_DEGREE, MOST_UNEVEN = 16, 8
"""Mean degree, and largest degree by the mean, of graphs whose degrees are low and alike."""


def degree_problem(value: Array, first: Array, num_vertices: int, num_stored_edges: int) -> str:
    """Return what is wrong with degree classes, or an empty text.

    Parameters
    ----------
    value, first : (num_distinct,) int64
        Distinct degrees, descending, and the first vertex of each.

    Examples
    --------
    >>> import numpy as np
    >>> degree_problem(np.array([2, 1]), np.array([0, 1]), 3, 4)
    ''
    >>> degree_problem(np.array([2, 1]), np.array([0, 2]), 3, 4)
    'must give the vertices 4 entries together, not 5'
    """
    if bool(value.size) != bool(num_vertices):
        return f"must be those of {num_vertices} vertices"
    if not value.size:
        return ""
    if np.any(np.diff(value) >= 0) or value[-1] < 0 or np.any(np.diff(first) <= 0) or first[0] != 0 or first[-1] >= num_vertices:
        return "must have descending values and ascending first vertices from 0"
    counts = np.diff(np.append(first, num_vertices))
    total = float(np.dot(counts.astype(np.float64), value.astype(np.float64)))
    entries = int(np.dot(counts, value)) if total < 2**62 else int(total)
    return "" if entries == num_stored_edges else f"must give the vertices {num_stored_edges} entries together, not {entries}"


def plane_lengths(degree: Array, first: Array, num_vertices: int, num_planes: int) -> Array:
    """Count the vertices with degree above ``0 .. num_planes``: (num_planes + 1,) int64.

    Parameters
    ----------
    degree, first : (num_distinct,) int64
        Distinct degrees, descending, and the first vertex of each.
    """
    ends = np.append(first, num_vertices)
    return np.asarray(ends[np.searchsorted(-degree, -np.arange(num_planes + 1), side="left")], np.int64)


@dataclass(frozen=True, slots=True)
class DegreeClasses:
    """Vertices grouped by degree, in store order.

    Attributes
    ----------
    value : (num_classes,) int64
        Distinct degrees, descending. With ``vertex_order="original"`` one class, of unknown degree.
    first_vertex : (num_classes + 1,) int64
        First vertex of each class; the last is the number of vertices.
    first_entry : (num_classes + 1,) int64
        First stored entry of each class, in the group that a pull walks.
    """

    value: Array
    first_vertex: Array
    first_entry: Array

    @classmethod
    def of(cls, value: Array, counts: Array) -> DegreeClasses:
        """Return the classes of distinct degrees, descending, and how many vertices have each: two (num_classes,) int64 arrays."""
        return cls(value, np.append(0, np.cumsum(counts)), np.append(0, np.cumsum(counts * value)))

    @property
    def num_vertices(self) -> int:
        """Vertices with an edge."""
        return int(self.first_vertex[-1])

    @property
    def num_entries(self) -> int:
        """Sum of the degrees."""
        return int(self.first_entry[-1])

    @property
    def are_even(self) -> bool:
        """Whether degrees are low and alike, so that ``auto`` orders vertices by locality."""
        mean = self.num_entries / max(1, self.num_vertices)
        return self.num_vertices > 0 and mean <= MOST_MEAN_DEGREE and int(self.value[0]) <= MOST_UNEVEN * mean

    def num_planes(self) -> int:
        """Return how many planes are stored."""
        counts = np.diff(self.first_vertex)
        most = min(MAX_PLANES, int(self.value[0]) if self.value.size else 0)
        lengths = np.array([counts[self.value > k].sum() for k in range(most)], np.int64)
        return num_planes_for(lengths, self.num_entries)

    def plane_offsets(self, num_planes: int) -> Array:
        """Return where each plane begins, and where the last ends: (num_planes + 1,) int64."""
        lengths = plane_lengths(self.value, self.first_vertex[:-1], self.num_vertices, num_planes)[:num_planes]
        return np.append(0, np.cumsum(lengths, dtype=np.int64))

    def row_start(self, row: int) -> int:
        """First entry of a row."""
        c = int(np.searchsorted(self.first_vertex, row, side="right")) - 1
        if c >= self.value.size:
            return self.num_entries
        return int(self.first_entry[c] + (row - self.first_vertex[c]) * self.value[c])

    def entries_below(self, rows: Array) -> Array:
        """Entries before each (fractional) row: (n,) float64."""
        return np.interp(rows, self.first_vertex.astype(np.float64), self.first_entry.astype(np.float64))
