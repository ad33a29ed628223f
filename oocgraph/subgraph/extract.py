"""Rows that need edges from disk, cut into pieces of about equal work. Pure.

In: per slice of the vertex range, the counts that `kernels.cpu.count_rows` made (the prefix sums of Subway's
extraction, per slice instead of per row, because the bitmap itself stays the list of rows). Out: ranges for the reading threads.
Reference: Sabet, Zhao, Gupta, "Subway", EuroSys 2020, section 3. Differs from the paper in: the subgraph is not copied into
one array before it is processed; each thread consumes what it reads.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from oocgraph.types import Array


def slice_cuts(num_words: int, num_slices: int) -> Array:
    """Word numbers that cut ``0 .. num_words`` into at most `num_slices` non-empty slices: (k + 1,) int64.

    Examples
    --------
    >>> slice_cuts(10, 4).tolist()
    [0, 2, 5, 7, 10]
    """
    return np.unique(np.linspace(0, num_words, min(num_slices, num_words) + 1).astype(np.int64))


def equal_pieces(weights: Array, num_pieces: int) -> list[tuple[int, int]]:
    """Cut slices into runs of about equal weight; runs without any weight are left out.

    Parameters
    ----------
    weights : (num_slices,) int64

    Returns
    -------
    list of (first_slice, last_slice + 1)

    Examples
    --------
    >>> equal_pieces(np.array([1, 1, 0, 0, 2]), 2)
    [(0, 2), (4, 5)]
    """
    total = int(weights.sum())
    if not total:
        return []
    group = (np.cumsum(weights) - weights) * num_pieces // total
    used = np.flatnonzero(weights)
    starts = np.flatnonzero(np.diff(group[used], prepend=-1))
    stops = [*starts[1:], used.size]
    return [(int(used[a]), int(used[z - 1]) + 1) for a, z in zip(starts, stops, strict=True)]


def edge_pieces(counts: Array, first_edges: Array, num_pieces: int) -> list[tuple[int, int]]:
    """Cut the frontier's rows into ranges of ``indices`` (PartialCSRs) with about equally many edges.

    Parameters
    ----------
    counts : (num_slices,) int64
        Edges of the frontier in each slice of vertices.
    first_edges : (num_slices + 1,) int64
        First edge of each slice.

    Examples
    --------
    >>> edge_pieces(np.array([6, 0, 1]), np.array([0, 6, 8, 9]), 2)
    [(0, 3), (3, 6), (8, 9)]
    """
    if num_pieces == 1:
        used = np.flatnonzero(counts)
        return [(int(first_edges[used[0]]), int(first_edges[used[-1] + 1]))] if used.size else []
    target = max(1, -(-int(counts.sum()) // num_pieces))
    pieces = []
    for a, z in equal_pieces(counts, num_pieces):
        start, stop = int(first_edges[a]), int(first_edges[z])
        parts = -(-int(counts[a:z].sum()) // target)
        cuts = [start + (stop - start) * i // parts for i in range(parts + 1)]
        pieces += list(pairwise(cuts))
    return pieces
