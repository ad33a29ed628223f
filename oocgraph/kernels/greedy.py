"""Vertices that decide one after the other, in an order: colours, and an independent set. Each waits for its earlier neighbours alone.

In: what vertices have decided so far, `UNDECIDED` of the others. Out: the same, of more of them. A decision is final and depends on those
of earlier vertices alone, so it does not matter when it is made; kernels are called until all are, and what one call decides others use at
once.

Jones, Plassmann, "A Parallel Graph Coloring Heuristic", SIAM J. Sci. Comput. 14, 1993; Blelloch, Fineman, Shun, "Greedy Sequential Maximal
Independent Set and Matching are Parallel on Average", SPAA 2012. Differ from these in: vertices do not wait in lists, rows of those that
have to wait are read again.
"""

from __future__ import annotations

from typing import Any

import numba as nb
import numpy as np

from oocgraph.compiled.intrinsics import AHEAD, prefetch
from oocgraph.kernels.check import mix

UNDECIDED = -1

INSIDE, OUTSIDE = 0, 1
"""What vertices decide about an independent set."""


@nb.njit(nogil=True, cache=True)
def _is_before(u: Any, v: Any, salt: Any) -> Any:
    """Whether a vertex comes before another one in a random order."""
    first, second = mix(np.uint64(u) + salt), mix(np.uint64(v) + salt)
    return first < second or (first == second and u < v)


@nb.njit(nogil=True, cache=True)
def classes_of(degrees: Any, out: Any) -> None:
    """Put the class of each vertex, by its number of neighbours, to `out`, (n,) uint8: the fewer bits that has, the larger."""
    for i in range(degrees.size):
        bits, rest = 0, np.int64(degrees[i])
        while rest > 0:
            bits, rest = bits + 1, rest >> 1
        out[i] = 64 - bits


@nb.njit(nogil=True, cache=True)
def has_undecided(decided: Any, start: Any, stop: Any) -> Any:
    """Whether a vertex of a range has to decide."""
    v = start
    while v < stop and decided[v] != UNDECIDED:
        v += 1
    return v < stop


@nb.njit(nogil=True, cache=True)
def choose_colors(
    first: Any, pointers: Any, start: Any, indices: Any, values: Any, color: Any, rank: Any, own: Any, by_number: Any, taken: Any
) -> Any:  # fmt: skip
    """Give vertices whose earlier neighbours have one the smallest colour that none of these has.

    Parameters
    ----------
    first, pointers, start, indices, values
        Of the rows: see `oocgraph.engine.sweeps`.
    color : (num_vertices,) int32
        What other calls write is used at once.
    rank : (num_vertices,) uint8
        Class of each vertex: those of smaller ones come first, and those of one class by their number.
    own : (num_rows,) int32
        Of the rows; written.
    by_number : bool
        Whether all are of one class; `rank` is not read then.
    taken : (num_colors,) index dtype
        Scratch: of each colour the last vertex to whose neighbours it was known, and one more.

    Returns
    -------
    int
        Vertices that have to wait.
    """
    num_waiting, last = 0, np.int64(indices.size - 1)
    for r in range(pointers.size - 1):
        v = np.int64(first + r)
        if own[r] != UNDECIDED:
            continue
        waits = False
        for e in range(np.int64(pointers[r] - start), np.int64(pointers[r + 1] - start)):
            prefetch(color, np.int64(indices[min(e + AHEAD, last)]))
            u = np.int64(indices[e])
            if by_number:
                if u >= v:
                    break
            elif rank[u] > rank[v] or (rank[u] == rank[v] and u >= v):
                continue
            c = color[u]
            if c == UNDECIDED:
                waits = True
                break
            taken[c] = v + 1
        if waits:
            num_waiting += 1
            continue
        c = 0
        while np.int64(taken[c]) == v + 1:
            c += 1
        own[r] = c
    return num_waiting


@nb.njit(nogil=True, cache=True)
def choose_members(
    first: Any, pointers: Any, start: Any, indices: Any, values: Any, decided: Any, own: Any, salt: Any
) -> Any:  # fmt: skip
    """Take vertices into the set that have no neighbour in it, once their earlier neighbours have decided; returns how many have to wait.

    Parameters
    ----------
    first, pointers, start, indices, values
        Of the rows: see `oocgraph.engine.sweeps`.
    decided : (num_vertices,) int8
        `INSIDE` or `OUTSIDE`; what other calls write is used at once.
    own : (num_rows,) int8
        Of the rows; written.
    salt : uint64
        With which numbers are hashed.
    """
    num_waiting, last = 0, np.int64(indices.size - 1)
    for r in range(pointers.size - 1):
        v = np.int64(first + r)
        if own[r] != UNDECIDED:
            continue
        waits, is_near = False, False
        for e in range(np.int64(pointers[r] - start), np.int64(pointers[r + 1] - start)):
            prefetch(decided, np.int64(indices[min(e + AHEAD, last)]))
            u = np.int64(indices[e])
            if u == v:
                continue
            state = decided[u]
            if state == INSIDE:
                is_near = True
                break
            waits = waits or (state == UNDECIDED and _is_before(u, v, salt))
        if is_near:
            own[r] = OUTSIDE
        elif waits:
            num_waiting += 1
        else:
            own[r] = INSIDE
    return num_waiting
