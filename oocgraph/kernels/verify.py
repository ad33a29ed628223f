"""The compiled rules of a breadth-first search tree. Nothing here is shared with the search.

In: parent and level in store order, levels unsigned with their largest value for "unreached" (255 of uint8; -1 of
int32 seen as uint32), and blocks of rows. Out: the first violation as (rule, vertex, other vertex), or counts.
Reference: Graph500 specification, "validation".
"""

from __future__ import annotations

from typing import Any

import numba as nb
import numpy as np

VALID = 0
SENTINELS_DIFFER = 1
PARENT_RANGE = 2
SOURCE_PARENT = 3
PARENT_LEVEL = 4
BEYOND_LIMIT = 5
EDGE_SPAN = 6
INDEX_RANGE = 7
NOT_ASCENDING = 8
RANK_RANGE = 9
CORE_ORDER = 10
CORE_TOO_LARGE = 11
CORE_TOO_SMALL = 12


@nb.njit(nogil=True, cache=True)
def check_vertices(parent: Any, level: Any, start: int, stop: int, unreached: int, none: int, limit: int) -> Any:
    """Check the rules that need no edges, for vertices ``start .. stop - 1``.

    Returns
    -------
    (rule, vertex, num_reached, num_roots, depth)
    """
    num_reached, num_roots, depth = 0, 0, np.int64(0)
    for v in range(start, stop):
        lv, p = np.int64(level[v]), np.int64(parent[v])
        if (lv == unreached) != (p == none):
            return SENTINELS_DIFFER, v, num_reached, num_roots, depth
        if lv == unreached:
            continue
        if p < 0 or p >= parent.size:
            return PARENT_RANGE, v, num_reached, num_roots, depth
        if lv > limit:
            return BEYOND_LIMIT, v, num_reached, num_roots, depth
        if lv == 0:
            if p != v:
                return SOURCE_PARENT, v, num_reached, num_roots, depth
            num_roots += 1
        elif np.int64(level[p]) + 1 != lv:
            return PARENT_LEVEL, v, num_reached, num_roots, depth
        num_reached += 1
        depth = max(depth, lv)
    return VALID, -1, num_reached, num_roots, depth


@nb.njit(nogil=True, cache=True)
def check_directed(
    indptr: Any, first_row: int, first_edge: int, indices: Any, parent: Any, level: Any, unreached: int, limit: int, linked: Any,
) -> Any:  # fmt: skip
    """Check that no edge from a reached vertex spans more than one level; mark the vertices whose tree edge is met.

    An unreached neighbour has the level `unreached`, so its edge spans too much unless the vertex lies at the depth limit. No level follows
    `unreached` - 1.

    Parameters
    ----------
    linked : (ceil(num_vertices / 64),) uint64
        Bit per vertex, of this thread alone; changed.

    Returns
    -------
    (rule, vertex, other, num_edges, num_loops)
    """
    num_edges, num_loops = 0, 0
    for r in range(indptr.size - 1):
        u = first_row + r
        lu = np.int64(level[u])
        if lu == unreached:
            continue
        a = max(indptr[r] - first_edge, 0)
        b = min(indptr[r + 1] - first_edge, indices.size)
        num_edges += b - a
        last = unreached if lu == limit else lu + (lu < unreached - 1)
        for i in range(a, b):
            w = np.int64(indices[i])
            if w < 0 or w >= level.size:
                return INDEX_RANGE, u, w, num_edges, num_loops
            num_loops += w == u
            lw = np.int64(level[w])
            if lw > lu:
                if lw > last:
                    return EDGE_SPAN, u, w, num_edges, num_loops
                if np.int64(parent[w]) == u:
                    linked[w >> 6] |= np.uint64(1) << np.uint64(w & 63)
    return VALID, -1, -1, num_edges, num_loops


@nb.njit(nogil=True, cache=True)
def check_undirected(
    indptr: Any, first_row: int, first_edge: int, indices: Any, parent: Any, level: Any, unreached: int, limit: int, linked: Any,
) -> Any:  # fmt: skip
    """Check that no edge spans more than one level; mark the vertices whose tree edge is met.

    An edge is stored both ways and rows ascend, so levels are compared in the first part of each row only, with
    neighbours of smaller number: half of the look-ups, and those that stay in the cache (the hubs). A vertex's tree
    edge is in its own row. Arguments and results as in `check_directed`.
    """
    num_edges, num_loops = 0, 0
    for r in range(indptr.size - 1):
        u = first_row + r
        lu, p = np.int64(level[u]), np.int64(parent[u])
        deepest, least = lu + (lu < unreached - 1), lu - (lu != unreached)
        a = max(indptr[r] - first_edge, 0)
        b = min(indptr[r + 1] - first_edge, indices.size)
        if lu != unreached:
            num_edges += b - a
        i, found = a, False
        while i < b:
            w = np.int64(indices[i])
            if w >= u:
                break
            if w < 0:
                return INDEX_RANGE, u, w, num_edges, num_loops
            lw = np.int64(level[w])
            if lw > deepest and lu != limit:
                return EDGE_SPAN, u, w, num_edges, num_loops
            if lw < least and lw != limit:
                return EDGE_SPAN, w, u, num_edges, num_loops
            found |= w == p
            i += 1
        for j in range(i, b):
            if indices[j] != u:
                break
            num_loops += lu != unreached
        descents = 0
        for j in range(max(i, a + 1), b):
            descents += indices[j] < indices[j - 1]
        if descents:
            return NOT_ASCENDING, u, -1, num_edges, num_loops
        if b > a and np.int64(indices[b - 1]) >= level.size:
            return INDEX_RANGE, u, np.int64(indices[b - 1]), num_edges, num_loops
        if not found:
            q, hits = parent[u], 0
            for j in range(i, b):
                hits += indices[j] == q
            found = hits > 0
        if found:
            linked[u >> 6] |= np.uint64(1) << np.uint64(u & 63)
    return VALID, -1, -1, num_edges, num_loops


@nb.njit(nogil=True, cache=True)
def find_unlinked(linked: Any, level: Any, unreached: int) -> int:
    """Return the first reached vertex, not a source, whose bit is not set; -1 if there is none."""
    for v in range(level.size):
        if 0 < level[v] < unreached and not (linked[v >> 6] >> np.uint64(v & 63)) & np.uint64(1):
            return v
    return -1


@nb.njit(nogil=True, cache=True)
def root_of(joined: Any, v: int) -> int:
    """Return the root of the tree of a vertex, halving the path to it."""
    while joined[v] != v:
        joined[v] = joined[joined[v]]
        v = joined[v]
    return v


@nb.njit(nogil=True, cache=True)
def roots_of(joined: Any, vertices: Any) -> Any:
    """Return the roots of the trees of some vertices: (n,) int64 both."""
    out = np.empty(vertices.size, np.int64)
    for i in range(vertices.size):
        out[i] = root_of(joined, vertices[i])
    return out


@nb.njit(nogil=True, cache=True)
def join_rows(joined: Any, component: Any, indptr: Any, first_row: int, first_edge: int, indices: Any) -> Any:
    """Join the ends of the edges of some rows; returns the ends of the first edge between two components, or -1 twice.

    Parameters
    ----------
    joined : (num_vertices,) int64
        A vertex of its tree for each, itself if it is the root. Changed.
    indptr : (num_rows + 1,) int64
        As stored.
    first_edge
        Entry that ``indices[0]`` is; the first and the last row may be cut.
    """
    for i in range(indptr.size - 1):
        u = first_row + i
        for e in range(max(indptr[i], first_edge), min(indptr[i + 1], first_edge + indices.size)):
            v = np.int64(indices[e - first_edge])
            if component[u] != component[v]:
                return u, v
            a, b = root_of(joined, u), root_of(joined, v)
            if a != b:
                joined[max(a, b)] = min(a, b)
    return -1, -1


@nb.njit(nogil=True, cache=True)
def check_paths(
    indptr: Any, first_row: int, first_edge: int, indices: Any, weights: Any, distance: Any, parent: Any, unreached: Any, limit: Any,
    linked: Any,
) -> Any:  # fmt: skip
    """Check that no edge of a block leads to a shorter path; mark the vertices that are as far as their parent and the edge from it.

    Vertices beyond `limit` need not be reached. Returns (rule, vertex, other vertex).
    """
    for r in range(indptr.size - 1):
        u = first_row + r
        du = distance[u]
        if du == unreached:
            continue
        most = unreached - du
        for k in range(max(indptr[r] - first_edge, 0), min(indptr[r + 1] - first_edge, indices.size)):
            v = np.int64(indices[k])
            if v >= distance.size:
                return INDEX_RANGE, u, v
            if weights[k] > most:  # integers whose sum would overflow
                continue
            through = du + weights[k]
            if through < distance[v] and through <= limit:
                return EDGE_SPAN, u, v
            if np.int64(parent[v]) == u and through == distance[v]:
                linked[v] = 1
    return VALID, -1, -1


@nb.njit(nogil=True, cache=True)
def check_roots(distance: Any, parent: Any, unreached: Any, none: Any, sources: Any, linked: Any) -> Any:
    """Check that the parents of all reached vertices lead to a source. `linked` is 1 where `check_paths` has marked; it is changed.

    Returns (rule, vertex).
    """
    for i in range(sources.size):
        s = sources[i]
        if np.int64(parent[s]) != s or distance[s] != 0:
            return SOURCE_PARENT, s
        linked[s] = 2
    for v in range(distance.size):
        p = np.int64(parent[v])
        if (distance[v] == unreached) != (p == none):
            return SENTINELS_DIFFER, v
        if p == none:
            continue
        if p < 0 or p >= distance.size:
            return PARENT_RANGE, v
        if linked[v] == 0:
            return PARENT_LEVEL, v
    for start in range(distance.size):
        v = start
        while linked[v] == 1:  # 1: not looked at; 3: on the way of this start; 2: leads to a source
            linked[v] = 3
            v = np.int64(parent[v])
        if linked[v] == 3:
            return BEYOND_LIMIT, v
        v = start
        while linked[v] == 3:
            linked[v] = 2
            v = np.int64(parent[v])
    return VALID, -1


@nb.njit(nogil=True, cache=True)
def check_ranks(core_number: Any, rank: Any, by_rank: Any) -> Any:
    """Check that ranks are all numbers once, and that core numbers ascend with them. `by_rank`, all -1, gets these in order.

    Returns (rule, vertex).
    """
    for v in range(rank.size):
        r = np.int64(rank[v])
        if r < 0 or r >= rank.size or by_rank[r] >= 0 or core_number[v] < 0:
            return RANK_RANGE, v
        by_rank[r] = core_number[v]
    for v in range(rank.size):
        r = np.int64(rank[v])
        if r > 0 and by_rank[r - 1] > by_rank[r]:
            return CORE_ORDER, v
    return VALID, -1


@nb.njit(nogil=True, cache=True)
def count_cores(
    indptr: Any, first_row: int, first_edge: int, indices: Any, core_number: Any, rank: Any, counts: Any
) -> None:  # fmt: skip
    """Add up, for the rows of a block, the neighbours of no smaller core number, and those that were removed later: ``counts[0]``, [1]."""
    for r in range(indptr.size - 1):
        u = first_row + r
        for k in range(max(indptr[r] - first_edge, 0), min(indptr[r + 1] - first_edge, indices.size)):
            v = np.int64(indices[k])
            counts[0, u] += core_number[v] >= core_number[u]
            counts[1, u] += rank[v] > rank[u]


@nb.njit(nogil=True, cache=True)
def check_cores(core_number: Any, counts: Any) -> Any:
    """Compare counts of neighbours with core numbers. Returns (rule, vertex)."""
    for v in range(core_number.size):
        if counts[0, v] < core_number[v]:
            return CORE_TOO_LARGE, v
        if counts[1, v] > core_number[v]:
            return CORE_TOO_SMALL, v
    return VALID, -1
