"""Edges between groups of vertices: some at a time, or all as rows.

In: rows of edges and of each vertex its group. Out: edges between two groups, of which some are several with a part of the weight each; or
the rows of a graph whose vertices are the groups, where an edge has all of it. Weights become multiples of a power of two, in int64: so
their sums are exact, and the same in any order.
"""

from __future__ import annotations

from typing import Any

import numba as nb
import numpy as np

from oocgraph.compiled.intrinsics import pointer_to
from oocgraph.kernels.check import mix
from oocgraph.kernels.piece_rows import piece_of, row_of


@nb.njit(nogil=True, cache=True, inline="always")
def _units(values: Any, e: Any, scale: Any) -> Any:
    """Return a weight as an integer, in units of ``1 / scale``, a power of two; integers are those already where that is 1."""
    if values is None:
        return np.int64(1)
    if scale == 1:
        return np.int64(values[e])
    return np.int64(np.rint(np.float64(values[e]) * scale))


@nb.njit(nogil=True, cache=True)
def edges_between(
    pointers: Any, first: Any, start: Any, indices: Any, values: Any, group: Any, scale: Any, at: Any, total: Any, ends: Any, weights: Any,
    lives: Any, source: Any, target: Any, weight: Any,
) -> Any:  # fmt: skip
    """Write edges between groups, with their weights, until there are no more or the output is full; each edge of the graph once.

    Edges between the same two groups are added up as far as a small table goes: one that finds its place taken shortens the life of
    what is there, and takes the place when that has none left. So those that occur most stay.

    Parameters
    ----------
    pointers, first, start, indices, values
        Of the rows: see `oocgraph.engine.sweeps`.
    group : (num_vertices,) index dtype
    scale
        Units of a weight of 1: a power of two.
    at : (2,) int64
        Row and entry to go on with, (0, 0) at first; behind the last row, the slot of the table. Changed.
    total : (1,) int64
        Grows by the weights of the edges.
    ends, weights, lives : (num_slots, 2) int64, (num_slots,) int64, (num_slots,) int64
        The table, a power of two; `lives` is 0 at first.
    source, target : (n,) int64
        Written: the smaller group, and the larger.
    weight : (n,) int64

    Returns
    -------
    Edges that were written: fewer than there is room for at the end alone.
    """
    count, num_rows, mask = 0, pointers.size - 1, lives.size - 1
    while at[0] < num_rows:
        r = at[0]
        a, begin = np.int64(group[first + r]), np.int64(pointers[r] - start)
        for e in range(begin + at[1], np.int64(pointers[r + 1] - start)):
            b = np.int64(group[np.int64(indices[e])])
            if b <= a:
                continue
            if count == source.size:
                at[1] = e - begin
                return count
            one = _units(values, e, scale)
            total[0] += one
            s = np.int64(mix(mix(np.uint64(a)) + np.uint64(b))) & mask
            if lives[s] and ends[s, 0] == a and ends[s, 1] == b:
                weights[s] += one
                lives[s] = min(lives[s] + 1, 64)
                continue
            if lives[s]:
                lives[s] -= 1
                x, y, out = a, b, one
                if not lives[s]:
                    x, y, out = ends[s, 0], ends[s, 1], weights[s]
                source[count], target[count], weight[count] = x, y, out
                count += 1
                if lives[s]:
                    continue
            ends[s, 0], ends[s, 1], weights[s], lives[s] = a, b, one, 1
        at[0], at[1] = r + 1, 0
    while at[1] <= mask:
        if count == source.size:
            return count
        s = at[1]
        if lives[s]:
            source[count], target[count], weight[count] = ends[s, 0], ends[s, 1], weights[s]
            lives[s] = 0
            count += 1
        at[1] += 1
    return count


@nb.njit(nogil=True, cache=True)
def count_linked(pieces: Any, members: Any, bounds: Any, group: Any, last: Any, lengths: Any, low: Any, high: Any) -> None:
    """Count the groups that each of the groups ``low .. high - 1`` has an edge to.

    Parameters
    ----------
    pieces : oocgraph.kernels.piece_rows.Pieces
        All are in memory.
    members : (num_vertices,) index dtype
        Vertices by group.
    bounds : (num_groups + 1,) int64
        Where the vertices of each group begin.
    group : (num_vertices,) index dtype
    last : (num_groups,) index dtype
        0 in that range at first; changed.
    lengths : (num_groups,) int64
        Written in that range.
    """
    lengths[low:high] = 0
    for g in range(bounds.size - 1):
        mark = np.int64(g) + 1
        for i in range(bounds[g], bounds[g + 1]):
            v = np.int64(members[i])
            begin, end, indices = row_of(pieces, v, piece_of(pieces, v))
            for e in range(begin, end):
                t = np.int64(group[np.int64(indices[e])])
                if t < low or t >= high or t == g or np.int64(last[t]) == mark:
                    continue
                last[t] = mark
                lengths[t] += 1


@nb.njit(nogil=True, cache=True)
def link(
    pieces: Any, kind: Any, scale: Any, members: Any, bounds: Any, group: Any, last: Any, rank: Any, cursor: Any, indices: Any,
    weights: Any, low: Any, high: Any,
) -> None:  # fmt: skip
    """Write the rows of the groups ``low .. high - 1``, each sorted: an edge is found from its other end, and those ascend.

    Parameters
    ----------
    kind : (0,) of the dtype of weights of edges, or None
        None: they weigh one each.
    scale
        Units of a weight of 1: a power of two.
    last : (num_groups,) index dtype
        0 in that range at first; changed.
    rank : (num_groups,) index dtype
        Which row each group has.
    cursor : (num_groups,) int64
        Where each row begins, and afterwards where it ends.
    indices, weights : (num_entries,) index dtype, integers
        Written.
    """
    for g in range(bounds.size - 1):
        mark = np.int64(g) + 1
        for i in range(bounds[g], bounds[g + 1]):
            v = np.int64(members[i])
            piece = piece_of(pieces, v)
            begin, end, near = row_of(pieces, v, piece)
            values = None
            if kind is not None:
                values = nb.carray(pointer_to(pieces.places[piece, 3]), (end,), kind.dtype)
            for e in range(begin, end):
                t = np.int64(group[np.int64(near[e])])
                if t < low or t >= high or t == g:
                    continue
                one = _units(values, e, scale)
                at = cursor[t]
                if np.int64(last[t]) == mark:
                    weights[at - 1] += one
                    continue
                last[t], cursor[t] = mark, at + 1
                indices[at], weights[at] = rank[g], one
