"""Triangles of the rows of a piece: what `oocgraph.engine.sweeps` gives to the count of triangles.

In: neighbours that are sorted by number, and degrees. A vertex is before those of a smaller degree, and before those of the same degree
that have a larger number; its earlier neighbours are those that are before it. They are held, vertex by vertex, for a range of vertices:
``held[at[v] - at[begin] : at[v + 1] - at[begin]]``.
"""

from __future__ import annotations

from typing import Any

import numba as nb
import numpy as np

from oocgraph.compiled.intrinsics import atomic_add, prefetch

MARKED = 1 << 14
"""Vertices whose marks are counters, the first ones: 64 KiB, which stay in the cache of a core. In degree order they close nearly all
triangles: 8,192 to a million of them took the same time on a Kronecker graph of scale 20, none 1.5 times that."""

LISTS_AHEAD = 8
"""Lists between the one that is looked up and the one that the caches are asked for; its place is asked for as many before."""


@nb.njit(nogil=True, cache=True, inline="always")
def _is_before(u: Any, v: Any, degree: Any, by_number: Any) -> Any:
    if by_number:
        return u < v
    return degree[u] > degree[v] or (degree[u] == degree[v] and u < v)


@nb.njit(nogil=True, cache=True)
def count_earlier(
    first: Any, pointers: Any, start: Any, indices: Any, values: Any, degree: Any, number: Any, by_number: Any
) -> Any:  # fmt: skip
    """Count the earlier neighbours of each row; returns how many are not behind the one before them in their list: there are duplicates.

    Parameters
    ----------
    first, pointers, start, indices, values
        Of the rows: see `oocgraph.engine.sweeps`.
    degree : (num_vertices,) integers
    number : (num_rows,) int64
        Written.
    by_number : bool
        Whether a vertex is before all that have a larger number: then no list is looked at behind that of its vertex.
    """
    num_doubtful = 0
    for r in range(number.size):
        found, previous = 0, np.int64(-1)
        for e in range(np.int64(pointers[r] - start), np.int64(pointers[r + 1] - start)):
            u = np.int64(indices[e])
            if by_number and u >= first + r:
                break
            if _is_before(u, np.int64(first + r), degree, by_number):
                found += 1
                num_doubtful += u <= previous
                previous = u
        number[r] = found
    return num_doubtful


@nb.njit(nogil=True, cache=True)
def add_up(at: Any) -> None:
    """Put in the place of each number the sum of all up to it."""
    for i in range(1, at.size):
        at[i] += at[i - 1]


@nb.njit(nogil=True, cache=True)
def hold_earlier(
    first: Any, pointers: Any, start: Any, indices: Any, values: Any, degree: Any, at: Any, held: Any, begin: Any, stop: Any,
    by_number: Any,
) -> None:  # fmt: skip
    """Write the earlier neighbours of those rows that are in the range ``begin .. stop - 1`` to `held`."""
    for r in range(max(0, begin - first), min(pointers.size - 1, stop - first)):
        v = np.int64(first + r)
        place, last = at[v] - at[begin], at[v + 1] - at[begin]
        for e in range(np.int64(pointers[r] - start), np.int64(pointers[r + 1] - start)):
            if place == last:
                break
            if _is_before(np.int64(indices[e]), v, degree, by_number):
                held[place] = indices[e]
                place += 1


@nb.njit(nogil=True, cache=True)
def count_triangles(
    first: Any, pointers: Any, start: Any, indices: Any, values: Any, degree: Any, at: Any, held: Any, triangles: Any, begin: Any,
    stop: Any, by_number: Any, marks: Any, bits: Any,
) -> None:  # fmt: skip
    """Count the triangles of each row x with those neighbours y in the range whose earlier neighbours are fewer than its own.

    The earlier neighbours of x are marked, and those of y are looked up: as many steps as the shorter list of an edge is long. Of equally
    many the neighbour of the smaller number is looked up, so each edge has its turn at one of its ends.

    Parameters
    ----------
    first, pointers, start, indices, values
        Of the rows: see `oocgraph.engine.sweeps`.
    degree, at, held
        See this module.
    triangles : (num_vertices,) int64
        Of each vertex; added to in one step each, as other threads do.
    begin, stop : int
        The range.
    by_number : bool
        As of `count_earlier`.
    marks : (num_marks,) uint32
        Scratch, zeros: of a marked vertex 1, and how often it was found. It is added to `triangles` once.
    bits : (words,) uint64
        Scratch, zeros: marks of the vertices from ``num_marks`` on.
    """
    num_marks = np.int64(marks.size)
    for r in range(pointers.size - 1):
        x = np.int64(first + r)
        num_own = at[x + 1] - at[x]
        e, last = np.int64(pointers[r] - start), np.int64(pointers[r + 1] - start)
        if num_own == 0 or first_from(indices, e, last, begin, stop) == last:
            continue
        bound = np.uint64(x if by_number else degree.size)
        bound_of_marks = min(bound, np.uint64(num_marks))
        for i in range(e, last):
            u = np.int64(indices[i])
            if by_number and u >= x:
                break
            if not _is_before(u, x, degree, by_number):
                continue
            if u < num_marks:
                marks[u] = np.uint32(1)
            else:
                bits[u >> 6] |= np.uint64(1) << np.uint64(u & 63)
        total = 0
        for i in range(first_from(indices, e, last, begin, stop), last):
            y = np.int64(indices[i])
            if y >= stop:
                break
            prefetch(at, np.uint64(indices[min(i + 2 * LISTS_AHEAD, last - 1)]))
            ahead = np.int64(indices[min(i + LISTS_AHEAD, last - 1)])
            if ahead < stop:
                prefetch(held, np.uint64(at[ahead] - at[begin]))
            number = at[y + 1] - at[y]
            if y < begin or number == 0 or number > num_own or (number == num_own and y >= x):
                continue
            place = np.uint64(at[y] - at[begin])
            end = place + np.uint64(number)
            found = np.uint32(0)
            while place < end:
                w = np.uint64(held[place])
                if w >= bound_of_marks:
                    break
                mark = marks[w]
                hit = np.uint32(mark != 0)
                marks[w] = np.uint32(mark + hit)
                found += hit
                place += np.uint64(1)
            while place < end:
                w = np.uint64(held[place])
                if w >= bound:
                    break
                if bits[w >> np.uint64(6)] >> (w & np.uint64(63)) & np.uint64(1):
                    atomic_add(triangles, np.int64(w), 1)
                    found += np.uint32(1)
                place += np.uint64(1)
            if found:
                total += np.int64(found)
                atomic_add(triangles, y, np.int64(found))
        if total:
            atomic_add(triangles, x, np.int64(total))
        for i in range(e, last):
            u = np.int64(indices[i])
            if by_number and u >= x:
                break
            if u >= num_marks:
                bits[u >> 6] = np.uint64(0)
            elif marks[u]:
                if marks[u] > 1:
                    atomic_add(triangles, u, np.int64(marks[u]) - 1)
                marks[u] = np.uint32(0)


@nb.njit(nogil=True, cache=True)
def first_from(indices: Any, e: Any, last: Any, begin: Any, stop: Any) -> Any:
    """Return the place of the first neighbour in the range ``begin .. stop - 1``, of those from e on; `last` if there is none."""
    low, high = e, last
    while low < high:
        middle = (low + high) >> 1
        if np.int64(indices[middle]) < begin:
            low = middle + 1
        else:
            high = middle
    return low if low < last and np.int64(indices[low]) < stop else last


@nb.njit(nogil=True, cache=True)
def find_clustering(triangles: Any, degree: Any, clustering: Any, start: Any, stop: Any) -> Any:
    """Set the clustering coefficients of a range of vertices; returns their sum, the corners of triangles, and the pairs of neighbours."""
    total, corners, pairs = 0.0, 0, 0
    for v in range(start, stop):
        own = np.int64(degree[v]) * (np.int64(degree[v]) - 1)
        clustering[v] = np.float64(2 * triangles[v]) / np.float64(own) if triangles[v] else 0.0
        total += clustering[v]
        corners += triangles[v]
        pairs += own // 2
    return total, corners, pairs
