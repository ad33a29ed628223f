"""Shortest paths from one source alone, counted and passed back, in memory: betweenness where sources share little (Brandes 2001).

In: rows of pieces, all of which are in memory, and a source. Out: its level of every vertex, and what depends on that. Sums are those of
`oocgraph.kernels.betweenness`, in the same order, so that no bit of a result depends on which of both a source takes.
"""

from __future__ import annotations

from typing import Any

import numba as nb
import numpy as np

from oocgraph.kernels.betweenness import HUGE, LANES, STEP, TINY
from oocgraph.kernels.piece_rows import piece_of, row_of

TOO_DEEP, TOO_MANY, ONE_WAY = -1, -2, -3
"""What `search` returns in place of a level: too many levels, paths that are too many beside others, or an edge that one list has only."""


@nb.njit(nogil=True, cache=True)
def search(out_pieces: Any, in_pieces: Any, source: Any, unseen: Any, level: Any, dependency: Any, share: Any, queue: Any) -> Any:
    """Find what depends on each vertex that a source reaches; return the last level, or why there is none.

    Parameters
    ----------
    out_pieces, in_pieces : oocgraph.kernels.piece_rows.Pieces
        Lists ``out`` and ``in``; all pieces are there.
    source : int
    unseen : int
        Level of a vertex that has not been found, above all others.
    level : (num_vertices,) uint16
        `unseen`; set where a vertex is found.
    dependency : (num_vertices,) float64
        Out: dependencies of the vertices that are found, 0 of the source.
    share : (num_vertices,) float64
        Scratch: ``(1 + dependency) / number of paths``.
    queue : (num_vertices,) of the dtype of neighbours
        Scratch: vertices in the order in which they are found.
    """
    paths, begin, end, depth, scaled = dependency, 0, 1, 0, np.zeros(0, np.bool_)
    level[source], paths[source], queue[0] = 0, 1, source
    while True:
        top = end
        for i in range(begin, end):
            v = np.int64(queue[i])
            low, high, indices = row_of(out_pieces, v, piece_of(out_pieces, v))
            for e in range(low, high):
                w = np.int64(indices[e])
                if level[w] == unseen:
                    if depth + 1 == unseen:
                        return TOO_DEEP
                    level[w] = depth + 1
                    queue[top] = w
                    top += 1
        if top == end:
            break
        most = 0.0
        for i in range(end, top):
            v = np.int64(queue[i])
            paths[v] = _add_neighbours(in_pieces, v, level, depth, paths)
            most = max(most, paths[v])
            if paths[v] == 0:
                return ONE_WAY
        if most > HUGE:
            if not scaled.size:
                scaled = np.zeros(np.int64(unseen) + 1, np.bool_)
            scaled[depth + 1] = True
            for i in range(end, top):
                v = np.int64(queue[i])
                paths[v] *= STEP
                if paths[v] < TINY:
                    return TOO_MANY
        begin, end, depth = end, top, depth + 1
    for i in range(end - 1, 0, -1):
        v = np.int64(queue[i])
        number = paths[v]
        own = number * _add_neighbours(out_pieces, v, level, np.int64(level[v]) + 1, share)
        share[v], dependency[v] = (1 + own) / number, own
        if scaled.size and scaled[level[v]]:
            share[v] *= STEP
    dependency[source] = 0
    return depth


@nb.njit(nogil=True, cache=True)
def count_found(level: Any, unseen: Any, start: Any, stop: Any) -> Any:
    """Count how many of some vertices each of several sources has found, and add that up."""
    count = 0
    for b in range(level.shape[0]):
        for v in range(start, stop):
            count += level[b, v] != unseen
    return count


@nb.njit(nogil=True, cache=True)
def add_up(level: Any, unseen: Any, dependency: Any, centrality: Any, start: Any, stop: Any) -> None:
    """Add dependencies of several sources to ``centrality[start:stop]``: those of lower levels later, as sweeps find them.

    Parameters
    ----------
    level : (num_sources, num_vertices) uint16
        `unseen` where a source does not reach a vertex.
    dependency : (num_sources, num_vertices) float64
    centrality : (num_vertices,) float64
    """
    keys = np.empty(level.shape[0], np.int64)
    for v in range(start, stop):
        count = 0
        for b in range(level.shape[0]):
            if level[b, v] != unseen:
                key, at = np.int64(level[b, v]) * LANES - b, count
                while at and keys[at - 1] < key:
                    keys[at] = keys[at - 1]
                    at -= 1
                keys[at] = key
                count += 1
        total = centrality[v]
        for i in range(count):
            total += dependency[-keys[i] % LANES, v]
        centrality[v] = total


@nb.njit(nogil=True, cache=True, inline="always")
def _add_neighbours(pieces: Any, v: Any, level: Any, wanted: Any, values: Any) -> Any:
    """Return the sum of the values of the neighbours on a level; one that occurs twice counts once."""
    total, before = 0.0, np.int64(-1)
    low, high, indices = row_of(pieces, v, piece_of(pieces, v))
    for e in range(low, high):
        w = np.int64(indices[e])
        if level[w] == wanted and w != before:
            total += values[w]
        before = w
    return total
