"""Kernels of connected components: trees of vertices, joined along edges by any number of threads at once.

In: `parent`, (num_vertices,) index dtype, in which each vertex names one of its component, itself at first, never one with a larger number.
Out: the same, changed. Roots are hooked to smaller ones by compare-and-swap, so that no lock is needed and no order matters.

Sutton, Ben-Nun, Barak, "Optimizing Parallel Graph Connectivity Computation via Subgraph Sampling" (Afforest), IPDPS 2018, section 3.
"""

from __future__ import annotations

from typing import Any

import numba as nb
import numpy as np

from oocgraph.compiled.intrinsics import compare_and_swap, count_ones, trailing_zeros
from oocgraph.kernels.rows import find_class


@nb.njit(nogil=True, cache=True)
def link(parent: Any, u: int, v: int) -> None:
    """Put two vertices into one component."""
    a, b = np.int64(parent[u]), np.int64(parent[v])
    while a != b:
        high, low = max(a, b), min(a, b)
        above = np.int64(parent[high])
        if above == low:
            return
        kind = parent.dtype.type
        if above == high and compare_and_swap(parent, high, kind(high), kind(low)) == kind(high):
            return
        a, b = np.int64(parent[np.int64(parent[high])]), np.int64(parent[low])


@nb.njit(nogil=True, cache=True)
def link_plane(parent: Any, first: int, neighbours: Any) -> None:
    """Link consecutive vertices, from `first` on, each with one neighbour."""
    for i in range(neighbours.size):
        link(parent, first + i, np.int64(neighbours[i]))


@nb.njit(nogil=True, cache=True)
def link_live_planes(parent: Any, giant: int, rows: Any, plane: int, live: Any, share: tuple[int, int], entries: Any, starts: Any) -> None:
    """Link vertices that are not known to be in the component `giant` with their neighbours in some planes, along the edges that count.

    Parameters
    ----------
    rows : RowLookup
        By degree, descending (`oocgraph.kernels.rows.RowLookup`).
    plane
        The first of the planes.
    live : (num_words,) uint64
        Bit per entry of the rows: which count.
    share
        The first vertex and the one after the last.
    starts : (num_planes,) int64
        Where in `entries` the neighbour of the first vertex is, by plane; those of the next vertices follow. At most 64 planes.
    """
    v, stop, num_planes = share[0], share[1], np.int64(starts.size)
    c = find_class(rows.first, v)
    while v < stop and rows.value[c] > plane:
        same, degree = min(stop, rows.first[c + 1]) if c + 1 < rows.first.size else stop, rows.value[c]
        e, unused = rows.edge[c] + (v - rows.first[c]) * degree + plane, 64 - min(num_planes, degree - plane)
        for u in range(v, same):
            if np.int64(parent[u]) != giant:
                bit = np.uint64(e & 63)
                word = live[e >> 6] >> bit
                if bit:
                    word |= live[min((e >> 6) + 1, live.size - 1)] << (np.uint64(64) - bit)
                word = (word << np.uint64(unused)) >> np.uint64(unused)
                while word:
                    link(parent, u, np.int64(entries[starts[np.int64(trailing_zeros(word))] + u - share[0]]))
                    word &= word - np.uint64(1)
            e += degree
        v, c = same, c + 1


@nb.njit(nogil=True, cache=True)
def link_rows(parent: Any, giant: int, first_row: int, offsets: Any, skip: int, begin: int, entries: Any) -> None:
    """Link the vertices that are not known to be in the component `giant` with their neighbours, the first `skip` of each apart.

    Parameters
    ----------
    offsets : (num_rows + 1,) int64
        Where the rows from `first_row` on begin.
    begin
        First entry of `entries`, which may begin and end within a row.
    """
    end = begin + entries.size
    for i in range(offsets.size - 1):
        if offsets[i + 1] <= begin or np.int64(parent[first_row + i]) == giant:
            continue
        if offsets[i] >= end:
            return
        for e in range(max(offsets[i] + skip, begin), min(offsets[i + 1], end)):
            link(parent, first_row + i, np.int64(entries[e - begin]))


@nb.njit(nogil=True, cache=True)
def list_outside(parent: Any, giant: int, first_row: int, offsets: Any, live: Any, most: int, out: Any) -> tuple[int, int]:
    """List the entries of vertices that are not known to be in the component `giant`.

    Parameters
    ----------
    offsets : (num_rows + 1,) int64
        Where the rows from `first_row` on begin.
    live : (num_words,) uint64
        Bit per entry: which count. A range begins and ends with one that does; without any word all do.
    most
        Entries of a range; more only where a row alone would fill `out`.
    out : (3, n) int64
        Receives of each range its vertex, its first entry and the one after its last; as many as fit.

    Returns
    -------
    Rows that were looked at, and ranges found: fewer rows than there are where `out` is full.
    """
    count, size = 0, out.shape[1]
    for i in range(offsets.size - 1):
        if np.int64(parent[first_row + i]) == giant:
            continue
        begin, end = _trim(live, offsets[i], offsets[i + 1])
        if count and count + (end - begin + most - 1) // most > size:
            return i, count
        while begin < end:
            out[0, count], out[1, count] = first_row + i, begin
            out[2, count] = end if count == size - 1 else min(end, begin + most)
            begin, count = out[2, count], count + 1
    return offsets.size - 1, count


@nb.njit(nogil=True, cache=True)
def link_ranges(parent: Any, ranges: Any, first: int, offset: Any, live: Any, entries: Any, share: tuple[int, int]) -> None:
    """Link the vertices of some ranges with those of their entries that count.

    Parameters
    ----------
    ranges : (3, n) int64
        As of `list_outside`; those from `first` on were read.
    offset : (num_read,) int64
        Where the entries of each range begin in `entries`.
    live : (num_words,) uint64
        Bit per entry of all rows: which count.
    share
        First of those that were read, and the one after the last.
    """
    for i in range(share[0], share[1]):
        v, e, end = ranges[0, first + i], ranges[1, first + i], ranges[2, first + i]
        shift = offset[i] - e
        while e < end:
            word = live[e >> 6] >> np.uint64(e & 63)
            if not word:
                e = (e | 63) + 1
                continue
            e += np.int64(trailing_zeros(word))
            if e < end:
                link(parent, v, np.int64(entries[e + shift]))
            e += 1


@nb.njit(nogil=True, cache=True)
def _trim(live: Any, begin: Any, end: Any) -> Any:
    """Return where the first entry of ``begin .. end - 1`` that counts is, and where the last one ends; all of them, if `live` is empty."""
    if live.size == 0:
        return begin, end
    while begin < end:
        word = live[begin >> 6] >> np.uint64(begin & 63)
        if word:
            begin += np.int64(trailing_zeros(word))
            break
        begin = (begin | 63) + 1
    while end > begin:
        word = live[(end - 1) >> 6] << np.uint64(63 - ((end - 1) & 63))
        if word:
            for shift in (1, 2, 4, 8, 16, 32):  # all bits below the highest
                word |= word >> np.uint64(shift)
            end -= 64 - np.int64(count_ones(word))
            break
        end = (end - 1) & ~63
    return min(begin, end), end


@nb.njit(nogil=True, cache=True)
def cut_rows(parent: Any, giant: int, first_row: int, offsets: Any, skip: int, gap: int, most: int, out: Any) -> tuple[int, int]:
    """Find the ranges of entries that `link_rows` needs: those close to each other are one range.

    Parameters
    ----------
    gap
        Entries that are read, though not needed, to join two ranges.
    most
        Entries of a range; more only where a row alone would fill `out` with ranges.
    out : (n, 2) int64
        Receives first entry of each range and the one after its last; as many as fit.

    Returns
    -------
    Rows that were looked at, and ranges found: fewer rows than there are where `out` is full.
    """
    count = 0
    for i in range(offsets.size - 1):
        begin, end = offsets[i] + skip, offsets[i + 1]
        if begin >= end or np.int64(parent[first_row + i]) == giant:
            continue
        if count and begin - out[count - 1, 1] <= gap and end - out[count - 1, 0] <= most:
            out[count - 1, 1] = end
            continue
        if count + (end - begin + most - 1) // most > out.shape[0] and count:
            return i, count
        while begin < end:
            out[count, 0] = begin
            out[count, 1] = end if count == out.shape[0] - 1 else min(end, begin + most)
            begin, count = out[count, 1], count + 1
    return offsets.size - 1, count


@nb.njit(nogil=True, cache=True)
def count_entries(parent: Any, giant: int, rows: Any, skip: int, gap: int) -> int:
    """Count the entries that `cut_rows` would have read, those that join ranges among them.

    Parameters
    ----------
    rows : RowLookup
        By degree, descending (`oocgraph.kernels.rows.RowLookup`).
    """
    total, last = 0, np.int64(-1)
    for c in range(rows.first.size):
        degree = rows.value[c]
        if degree <= skip:
            break
        stop = rows.first[c + 1] if c + 1 < rows.first.size else parent.size
        for v in range(rows.first[c], stop):
            if np.int64(parent[v]) == giant:
                continue
            begin = rows.edge[c] + (v - rows.first[c]) * degree + skip
            end = begin + degree - skip
            total += end - (last if last >= 0 and begin - last <= gap else begin)
            last = end
    return total


@nb.njit(nogil=True, cache=True)
def count_live(rows: Any, live: Any, skip: int, chosen: Any, found: Any) -> None:
    """Look at which entries of the rows of vertices count, the first `skip` of each apart.

    Parameters
    ----------
    rows : RowLookup
        By degree, descending (`oocgraph.kernels.rows.RowLookup`).
    chosen : (n,) int64
        The vertices, ascending; one may be there several times.
    found : (3, n) int64
        Receives how many entries there are, how many count, and the place of the first that does: of none, the number of all.
    """
    for i in range(chosen.size):
        if i and chosen[i] == chosen[i - 1]:
            found[:, i] = found[:, i - 1]
            continue
        c = find_class(rows.first, chosen[i])
        degree = rows.value[c]
        begin = rows.edge[c] + (chosen[i] - rows.first[c]) * degree
        found[0, i] = found[2, i] = degree
        found[1, i] = 0
        for e in range(begin + degree - 1, begin + skip - 1, -1):
            if (live[e >> 6] >> np.uint64(e & 63)) & np.uint64(1):
                found[1, i] += 1
                found[2, i] = e - begin


@nb.njit(nogil=True, cache=True)
def row_starts(rows: Any, first: int, offsets: Any) -> None:
    """Write down where the rows from `first` on begin, and where the last of them ends.

    Parameters
    ----------
    rows : RowLookup
        By degree, descending (`oocgraph.kernels.rows.RowLookup`).
    offsets : (num_rows + 1,) int64
    """
    v, stop = first, first + offsets.size
    c = find_class(rows.first, first)
    while v < stop:
        same = min(stop, rows.first[c + 1]) if c + 1 < rows.first.size else stop
        for u in range(v, same):
            offsets[u - first] = rows.edge[c] + (u - rows.first[c]) * rows.value[c]
        v, c = same, c + 1


@nb.njit(nogil=True, cache=True)
def are_all_in(parent: Any, giant: int, start: int, stop: int) -> bool:
    """Whether all of some vertices are known to be in the component `giant`."""
    v = start
    while v < stop and np.int64(parent[v]) == giant:
        v += 1
    return v == stop


@nb.njit(nogil=True, cache=True)
def compress(parent: Any, giant: int, start: int, stop: int) -> int:
    """Have vertices name the roots of their trees; returns how many of these are roots. Most name `giant`, if that is a root.

    Other threads may do so for other vertices, or link any: a root, which another may hook at this moment, is not written.
    """
    count = 0
    if giant >= 0 and np.int64(parent[giant]) != giant:
        giant = -1
    for v in range(start, stop):
        root = np.int64(parent[v])
        if root == giant:
            count += root == v
            continue
        while np.int64(parent[root]) != root:
            root = np.int64(parent[root])
        if root != v:
            parent[v] = root
        count += root == v
    return count


@nb.njit(nogil=True, cache=True)
def begin(parent: Any, start: int, stop: int) -> None:
    """Have each vertex name itself: a tree, or a group, of its own."""
    for v in range(start, stop):
        parent[v] = v


@nb.njit(nogil=True, cache=True)
def name_components(parent: Any, numbers: Any, named: Any, none: int, most: int) -> int:
    """Name the components of vertices that come in ascending order of their ids: each after the first of its vertices.

    Parameters
    ----------
    numbers : (n,) integers
        Store numbers; negative where isolated.
    named : (num_vertices,) index dtype
        Of each root, the vertex that its component is named after; `none` where that is not known yet. Changed.
    most
        Components that have no name yet: with the last of them it ends.

    Returns
    -------
    Components that were named.
    """
    count = 0
    for number in numbers:
        if count == most:
            break
        v = np.int64(number)
        if v >= 0 and np.int64(named[np.int64(parent[v])]) == none:
            named[np.int64(parent[v])] = v
            count += 1
    return count


@nb.njit(nogil=True, cache=True)
def rename(parent: Any, named: Any, none: int, start: int, stop: int) -> bool:
    """Have vertices name what their components are named after; returns whether all of those have a name."""
    are_named = True
    for v in range(start, stop):
        parent[v] = named[np.int64(parent[v])]
        are_named = are_named and np.int64(parent[v]) != none
    return are_named
