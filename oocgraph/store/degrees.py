"""Degree classes of a degree-sorted store: each distinct degree, descending, and the first vertex that has it.

In: both arrays as they were read. Out: whether they can be those of a graph; how many vertices each plane covers.
"""

from __future__ import annotations

import numpy as np

from oocgraph.types import Array


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
