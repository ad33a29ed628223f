"""Kernels that count what a partitioned traversal would send, from levels that are known and rows of a sample of vertices.

Vertices are in sets. A *meeting* is a vertex v that an iteration finds from a set of which no earlier iteration has found it: the smallest
level among v's in-neighbours in that set, whatever v's own level. Each is one candidate, sent from the set's member to v's; at most one
for each vertex and set in a whole search. A *cast* is a vertex whose set's member tells a column that has out-edges of it.

Counts are kept by the level of the frontier, by pair, and by stratum of the vertex (0: all vertices of this kind are read; 1: a sample).
"""

from __future__ import annotations

from typing import Any

import numba as nb
import numpy as np


@nb.njit(nogil=True, cache=True)
def count_meetings(
    vertices: Any, stratum: Any, offset: Any, edges: Any, set_of: Any, level: Any, slot_of: Any, num_sets: Any, counts: Any, lengths: Any
) -> None:
    """Count the meetings of some vertices.

    Parameters
    ----------
    vertices : (n,) int64
    stratum : (n,) uint8
    offset : (n + 1,) int64
        Where the in-neighbours of each are in `edges`.
    edges : index dtype
    set_of : (num_vertices,) int16 or int32
    level : (num_vertices,) int32
        Negative where unreached.
    slot_of : (num_sets * num_sets,) int32
        Column of `counts` of each pair (from set, to set); -1: not counted.
    counts : (2, num_levels, num_slots) int64
        Changed.
    lengths : (2, num_sets * num_sets) int64
        Vertices of the second set that have an in-neighbour in the first, reached or not. Changed.
    """
    first = np.empty(num_sets, np.int32)
    mark = np.full(num_sets, -1, np.int64)
    touched = np.empty(num_sets, np.int32)
    for i in range(vertices.size):
        mine, which = np.int64(set_of[vertices[i]]), stratum[i]
        count = 0
        for e in range(offset[i], offset[i + 1]):
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
                lengths[which, pair] += 1
                if first[s] >= 0 and slot_of[pair] >= 0:
                    counts[which, first[s], slot_of[pair]] += 1


@nb.njit(nogil=True, cache=True)
def count_casts(
    vertices: Any, stratum: Any, offset: Any, edges: Any, set_of: Any, level: Any, slot_of: Any, num_columns: Any, counts: Any,
    lengths: Any, work: Any,
) -> None:  # fmt: skip
    """Count the casts of some vertices, whose rows are out-lists; as `count_meetings`, with pairs (set, column).

    Parameters
    ----------
    slot_of : (num_sets * num_columns,) int32
    work : (2, num_sets * num_columns) int64
        Edges of each member. Changed.
    """
    mark = np.full(num_columns, -1, np.int64)
    for i in range(vertices.size):
        v = vertices[i]
        mine, which = np.int64(set_of[v]), stratum[i]
        for e in range(offset[i], offset[i + 1]):
            j = np.int64(set_of[np.int64(edges[e])]) % num_columns
            pair = mine * num_columns + j
            work[which, pair] += 1
            if mark[j] != i:
                mark[j] = i
                if j != mine % num_columns:
                    lengths[which, pair] += 1
                    if level[v] >= 0 and slot_of[pair] >= 0:
                        counts[which, level[v], slot_of[pair]] += 1
