"""Kernels that count what a partitioned traversal would send, from levels that are known and the rows of all vertices.

Vertices are in sets. A *candidate* is a vertex v that an iteration finds from a set of which no earlier iteration has found it: the
smallest level among v's in-neighbours in that set, whatever v's own level. It is sent from the set's part to v's, at most once for each
vertex and set in a whole search. A *broadcast* is a vertex that its set's part sends to a column that has out-edges of it.

Counts are kept by the level of the frontier and by pair.
"""

from __future__ import annotations

from typing import Any

import numba as nb
import numpy as np


@nb.njit(nogil=True, cache=True)
def count_candidates(
    first_row: Any, indptr: Any, start: Any, edges: Any, set_of: Any, level: Any, num_sets: Any, counts: Any, lengths: Any
) -> None:
    """Count the candidates among consecutive vertices.

    Parameters
    ----------
    first_row
        The first of the vertices.
    indptr : (n + 1,) int64
        Entries of the store at which the in-lists of the vertices begin.
    start
        Entry of the store that ``edges[0]`` is.
    edges : index dtype
        Their in-neighbours.
    set_of : (num_vertices,) int16 or int32
    level : (num_vertices,) int32
        Negative where unreached.
    counts : (num_levels, num_sets * num_sets) int64
        By pair (from set, to set). Changed.
    lengths : (num_sets * num_sets,) int64
        Vertices of the second set that have an in-neighbour in the first, reached or not. Changed.
    """
    first = np.empty(num_sets, np.int32)
    mark = np.full(num_sets, -1, np.int64)
    touched = np.empty(num_sets, np.int32)
    for i in range(indptr.size - 1):
        mine = np.int64(set_of[first_row + i])
        count = 0
        for e in range(indptr[i] - start, indptr[i + 1] - start):
            u = np.int64(edges[e])
            s, at = set_of[u], level[u]
            if mark[s] != i:
                mark[s] = i
                first[s] = at
                touched[count] = s
                count += 1
            elif at >= 0 and (at < first[s] or first[s] < 0):
                first[s] = at
        for k in range(count):
            s = np.int64(touched[k])
            if s != mine:
                pair = s * num_sets + mine
                lengths[pair] += 1
                if first[s] >= 0:
                    counts[first[s], pair] += 1


@nb.njit(nogil=True, cache=True)
def count_broadcasts(
    first_row: Any, indptr: Any, start: Any, edges: Any, set_of: Any, level: Any, num_columns: Any, counts: Any, lengths: Any, work: Any
) -> None:
    """Count the broadcasts of consecutive vertices, whose rows are out-lists; as `count_candidates`, with pairs (set, column).

    Parameters
    ----------
    counts : (num_levels, num_sets * num_columns) int64
    lengths : (num_sets * num_columns,) int64
        Vertices of the set that have an out-edge in the column, where their master is not. Changed.
    work : (num_sets * num_columns,) int64
        Edges of each part. Changed.
    """
    mark = np.full(num_columns, -1, np.int64)
    for i in range(indptr.size - 1):
        v = first_row + i
        mine = np.int64(set_of[v])
        for e in range(indptr[i] - start, indptr[i + 1] - start):
            j = np.int64(set_of[np.int64(edges[e])]) % num_columns
            pair = mine * num_columns + j
            work[pair] += 1
            if mark[j] != i:
                mark[j] = i
                if j != mine % num_columns:
                    lengths[pair] += 1
                    if level[v] >= 0:
                        counts[level[v], pair] += 1
