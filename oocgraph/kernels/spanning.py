"""Kernels of Boruvka's algorithm: the lightest edge out of every vertex, then out of every tree, and trees joined along these.

In: of every vertex its tree, named after a vertex that names itself; the neighbour that its lightest edge into another tree leads to,
itself where there is none; and that edge's weight. Out: the same of larger trees, and of every vertex its parent in the forest.

Edges are ordered by weight, and among equals by the smaller and the larger of their vertices: no two are equal, so the trees that choose
each other along a circle are two at most, and what is chosen is the same in whatever order threads look.
"""

from __future__ import annotations

from typing import Any

import numba as nb
import numpy as np

from oocgraph.compiled.intrinsics import AHEAD, compare_and_swap, prefetch


@nb.njit(nogil=True, cache=True)
def _is_stale(v: Any, tree: Any, nearest: Any) -> Any:
    """Whether the neighbour of a vertex has come into the vertex' own tree, so that another is to be found."""
    u = np.int64(nearest)
    return u != v and tree[u] == tree[v]


@nb.njit(nogil=True, cache=True)
def has_stale(tree: Any, nearest: Any, start: Any, stop: Any) -> Any:
    """Whether a vertex of a range is to be looked at by `find_nearest`."""
    v = start
    while v < stop and not _is_stale(v, tree, nearest[v]):
        v += 1
    return v < stop


@nb.njit(nogil=True, cache=True)
def find_nearest(
    first: Any, pointers: Any, start: Any, indices: Any, values: Any, tree: Any, nearest: Any, lightest: Any, is_first: Any, sign: Any
) -> Any:
    """Find the lightest edge into another tree of each row of a piece that has lost its last one.

    Parameters
    ----------
    first, pointers, start, indices, values
        Of the rows: see `oocgraph.engine.sweeps`.
    tree : (num_vertices,) index dtype
    nearest : (num_rows,) index dtype
        Written.
    lightest : (num_rows,) float64
        Weight of that edge, by `sign`; written.
    is_first : bool
        Whether each vertex is a tree of its own: `nearest` says nothing yet, and `tree` is not read.
    sign : float
        By which weights are multiplied: -1 makes the heaviest edge the lightest one.

    Returns
    -------
    bool
        Whether all weights that were looked at are finite.
    """
    is_finite, last = True, np.int64(indices.size - 1)
    for r in range(nearest.size):
        v = np.int64(first + r)
        if not is_first and not _is_stale(v, tree, nearest[r]):
            continue
        found, least = v, np.inf
        for e in range(np.int64(pointers[r] - start), np.int64(pointers[r + 1] - start)):
            u, weight = np.int64(indices[e]), 1.0
            if values is not None:
                weight = sign * np.float64(values[e])
                is_finite = is_finite and np.isfinite(weight)
            elif not is_first:
                prefetch(tree, np.int64(indices[min(e + AHEAD, last)]))
            if weight < least and (u != v if is_first else tree[u] != tree[v]):
                found, least = u, weight
                if values is None:
                    break
        nearest[r], lightest[r] = found, least
    return is_finite


@nb.njit(nogil=True, cache=True)
def _is_lighter(v: Any, other: Any, nearest: Any, lightest: Any) -> Any:
    """Whether the edge of a vertex comes before that of another vertex, which may have none."""
    u, to = np.int64(nearest[v]), np.int64(nearest[other])
    if to == other or lightest[v] < lightest[other]:
        return True
    if lightest[v] > lightest[other]:
        return False
    low, low_other = min(u, v), min(to, other)
    return low < low_other or (low == low_other and max(u, v) < max(to, other))


@nb.njit(nogil=True, cache=True)
def choose(tree: Any, nearest: Any, lightest: Any, chosen: Any, start: Any, stop: Any) -> None:
    """Have each tree choose the vertex with the lightest edge; other threads may do so for other vertices.

    Parameters
    ----------
    chosen : (num_vertices,) index dtype
        Of each tree, at its vertex: that vertex itself at first.
    start, stop : int
        Range of vertices.
    """
    kind = chosen.dtype.type
    for v in range(start, stop):
        if np.int64(nearest[v]) == v:
            continue
        root = np.int64(tree[v])
        best = np.int64(chosen[root])
        while best != v and _is_lighter(v, best, nearest, lightest):
            found = np.int64(compare_and_swap(chosen, root, kind(best), kind(v)))
            if found == best:
                break
            best = found


@nb.njit(nogil=True, cache=True)
def join(tree: Any, nearest: Any, lightest: Any, chosen: Any, parent: Any, weight: Any, start: Any, stop: Any) -> Any:
    """Make each tree the child of the one that its chosen edge leads to; of two that chose the same edge, the smaller stays.

    The path from the vertex of that edge up to the root of its tree is turned round, so that the tree hangs by that vertex. Each tree
    writes parents of its own vertices alone.

    Parameters
    ----------
    parent : (num_vertices,) index dtype
        In the forest; of a root itself. Written.
    weight : (num_vertices,) float64
        Of the edge to the parent. Written.
    start, stop : int
        Range of vertices, those of trees among them.

    Returns
    -------
    int
        Trees that were joined.
    """
    count = 0
    for root in range(start, stop):
        if np.int64(tree[root]) != root:
            continue
        v = np.int64(chosen[root])
        above, above_weight = np.int64(nearest[v]), lightest[v]
        other = np.int64(tree[above])
        if above == v or (np.int64(chosen[other]) == above and np.int64(nearest[above]) == v and root < other):
            continue
        count += 1
        while True:
            before, before_weight = np.int64(parent[v]), weight[v]
            parent[v], weight[v] = above, above_weight
            if before == v:
                break
            v, above, above_weight = before, v, before_weight
    return count


@nb.njit(nogil=True, cache=True)
def hook(tree: Any, nearest: Any, chosen: Any, parent: Any, start: Any, stop: Any) -> None:
    """Have the trees that `join` has joined name the vertex that they hang by."""
    for root in range(start, stop):
        if np.int64(tree[root]) == root and np.int64(parent[root]) != root:
            tree[root] = nearest[np.int64(chosen[root])]


@nb.njit(nogil=True, cache=True)
def flatten(tree: Any, chosen: Any, start: Any, stop: Any) -> Any:
    """Have vertices, and those on their way, name the trees that they are in; other threads may do so for others.

    Chains may be as long as there are trees: each is gone along once, and written along.

    Parameters
    ----------
    chosen : (num_vertices,) index dtype
        Each vertex itself is put here, for the next `choose`.

    Returns
    -------
    int
        Trees in the range; -1 if the way from a vertex does not end.
    """
    count = 0
    for v in range(start, stop):
        chosen[v] = v
        root, steps = np.int64(tree[v]), 0
        while np.int64(tree[root]) != root:
            root, steps = np.int64(tree[root]), steps + 1
            if steps > tree.size:
                return -1
        count += root == v
        u = np.int64(v)
        while u != root:
            after = np.int64(tree[u])
            tree[u] = root
            u = after
    return count
