"""Shortest paths from several sources at once, counted level by level, and what depends on them, level by level back (Brandes 2001).

A source is a lane. A vertex has a row of `LANES` float64, one for each lane, and words with a bit for each: in `front` there are those in
which it is on the level that a sweep reads. Of a neighbour's row only these are used, so that its others may be written at the same time.
A neighbour that occurs twice, which is next to itself, counts once.
"""

from __future__ import annotations

from typing import Any

import numba as nb
import numpy as np

from oocgraph.kernels.intrinsics import add_rows, prefetch

LANES = 8
"""Sources at once: a row is a cache line, and a word a byte. On a Kronecker graph of scale 20, 2 threads, 16 took 0.9 of the time of a
source, 32 and 64 took 1.2 to 1.4, and all of them more memory."""

WORD = np.uint8
"""Type of a word."""

HELD = 512
"""Neighbours that are looked at before the rows of those that matter are added: the list of these stays in the first-level cache."""


@nb.njit(nogil=True, cache=True)
def count_paths(
    first: Any, pointers: Any, start: Any, indices: Any, values: Any, front: Any, paths: Any, new: Any, unseen: Any, level: Any, depth: Any
) -> Any:
    """Find the vertices of the next level, and by how many shortest paths each is reached.

    Parameters
    ----------
    first, pointers, start, indices, values
        Of the rows, lists ``in``: see `oocgraph.engine.sweeps`.
    front : (num_vertices,) uint8
        Lanes in which a vertex is on the level before.
    paths : (num_vertices, LANES) float64
        Numbers of paths; read where `front` has a bit, set in these rows where they are found.
    new, unseen : (num_rows,) uint8
        Before, 0 where a row need not be looked at; set to the lanes in which it is found. Those in which it has not been found yet, of
        which these are taken away.
    level : (LANES, num_vertices) uint16
        Set where a row is found.
    depth : int
        Of the next level.

    Returns
    -------
    (num_edges, finite): entries of the rows that are found; whether all numbers of paths are finite.
    """
    num_edges, finite = 0, True
    sums, rows = np.zeros(LANES), np.empty(HELD, indices.dtype)
    for r in range(unseen.size):
        if not new[r]:
            continue
        lanes = _add_neighbours(pointers[r] - start, pointers[r + 1] - start, indices, front, unseen[r], paths, sums, rows)
        new[r] = lanes
        if not lanes:
            continue
        num_edges += np.int64(pointers[r + 1] - pointers[r])
        unseen[r] &= ~lanes
        for b in range(LANES):
            if lanes >> b & 1:
                paths[first + r, b] = sums[b]
                level[b, first + r] = depth
                finite &= sums[b] < np.inf
    return num_edges, finite


@nb.njit(nogil=True, cache=True)
def mark_neighbours(
    first: Any, pointers: Any, start: Any, indices: Any, values: Any, unseen: Any, new: Any, front: Any
) -> None:  # fmt: skip
    """Set `new` to `unseen` in the neighbours of rows that have a lane in `front`; lists ``out``. Where calls meet they set the same."""
    for r in range(front.size):
        if front[r]:
            for e in range(np.int64(pointers[r] - start), np.int64(pointers[r + 1] - start)):
                w = np.int64(indices[e])
                new[w] = unseen[w]


@nb.njit(nogil=True, cache=True)
def find_level(level: Any, depth: Any, new: Any, start: Any, stop: Any) -> None:
    """Set ``new[start:stop]``, uint8, to the lanes in which these vertices are on a level."""
    wanted, found = np.uint16(depth), new[start:stop]
    found[:] = 0
    for b in range(LANES):
        here, bit = level[b, start:stop], WORD(1 << b)
        for i in range(found.size):
            found[i] |= bit if here[i] == wanted else WORD(0)


@nb.njit(nogil=True, cache=True)
def add_dependencies(
    first: Any, pointers: Any, start: Any, indices: Any, values: Any, front: Any, paths: Any, now: Any, centrality: Any
) -> None:
    """Find how much depends on the vertices of a level, from those on the next one.

    Parameters
    ----------
    first, pointers, start, indices, values
        Of the rows, lists ``out``.
    front : (num_vertices,) uint8
        Lanes in which a vertex is on the next level.
    paths : (num_vertices, LANES) float64
        There, ``(1 + dependency) / number of paths``, which replaces the number of paths in these rows, where they are on this level.
    now : (num_rows,) uint8
        Lanes in which a row is on this level.
    centrality : (num_rows,) float64
        The dependencies are added to it.
    """
    sums, rows = np.zeros(LANES), np.empty(HELD, indices.dtype)
    for r in range(now.size):
        if not now[r]:
            continue
        _add_neighbours(pointers[r] - start, pointers[r + 1] - start, indices, front, now[r], paths, sums, rows)
        for b in range(LANES):
            if now[r] >> b & 1:
                dependency = paths[first + r, b] * sums[b]
                centrality[r] += dependency
                paths[first + r, b] = (1 + dependency) / paths[first + r, b]


@nb.njit(nogil=True, cache=True)
def invert_last(front: Any, paths: Any, start: Any, stop: Any) -> None:
    """Set `paths` to what `add_dependencies` reads, in vertices of ``start .. stop - 1`` on the last level: nothing depends on these."""
    for v in range(start, stop):
        for b in range(LANES):
            if front[v] >> b & 1:
                paths[v, b] = 1 / paths[v, b]


@nb.njit(nogil=True, cache=True)
def count_ends(unseen: Any, used: Any, centrality: Any, start: Any, stop: Any) -> Any:
    """Add to ``centrality[start:stop]`` the paths that end there, one for each lane used; returns (LANES,) int64, how many in each."""
    counts = np.zeros(LANES, np.int64)
    for v in range(start, stop):
        for b in range(LANES):
            reached = np.int64((used & ~unseen[v]) >> b & 1)
            counts[b] += reached
            centrality[v] += reached
    return counts


@nb.njit(nogil=True, cache=True)
def rescale(centrality: Any, factor: Any, start: Any, stop: Any) -> None:
    """Multiply ``centrality[start:stop]`` by a factor."""
    for v in range(start, stop):
        centrality[v] *= factor


@nb.njit(nogil=True, cache=True)
def _add_neighbours(low: Any, high: Any, indices: Any, front: Any, wanted: Any, paths: Any, sums: Any, rows: Any) -> Any:
    """Set `sums` to the sum of the neighbours' rows, each in the lanes that it has in `front` and that are wanted; returns all of these.

    Rows that matter are asked for when they are found: so a Kronecker graph took 0.9, a uniform one 0.85 of the time.
    """
    sums[:] = 0
    lanes, before = WORD(0), np.int64(-1)
    stop: Any = np.int64(high)
    for begin in range(np.int64(low), stop, HELD):
        held = 0
        for e in range(begin, min(begin + HELD, stop)):
            w = np.int64(indices[e])
            rows[held] = w
            hit = np.int64((front[w] & wanted) != 0) & np.int64(w != before)
            prefetch(paths, np.uint64(w * hit * LANES))
            held += hit
            before = w
        if held:
            lanes |= add_rows(sums, paths, rows, held, front, wanted)
    return lanes
