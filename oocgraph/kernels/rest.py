"""What is left of a graph, in memory: each vertex that is left has a *slot*, and its in-neighbours that are left are one run of entries.

In: rows of a sweep, and bits of all vertices. Out: `Rest`, which any number of calls fill, and a depth-first search of it.

Tarjan, "Depth-first search and linear graph algorithms", SIAM J. Comput. 1, 1972, without recursion.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numba as nb
import numpy as np

from oocgraph.compiled.intrinsics import atomic_add
from oocgraph.types import Array

CORE = 8
"""In the component of a pivot, whose edges are not all followed yet."""

DONE = 16
"""Its component, or level, is known."""


class Rest(NamedTuple):
    """Vertices that are left, and the edges between them, in memory.

    Attributes
    ----------
    used : (2,) int64
        Slots and entries in use: more than there are if the lists have changed since they were counted.
    vertex : (num_slots,) index dtype
        Store number of each slot.
    begin, end : (num_slots,) int64
        Its entries.
    entries : (num_entries,) index dtype
        In-neighbours, as store numbers.
    number : (num_vertices,) index dtype
        Slot of each vertex that is left.
    """

    used: Array
    vertex: Array
    begin: Array
    end: Array
    entries: Array
    number: Array


class Walk(NamedTuple):
    """What a depth-first search of the rest holds: (num_slots,) each.

    Attributes
    ----------
    cursor : int64
        Next entry of each slot.
    seen : index dtype
        When a slot was found, from 1 on; in the end the root of its component.
    low : index dtype
        Earliest slot that is known to be reached; the largest value once the component is known.
    path : index dtype
        Slots that the search has entered and not left.
    order : index dtype
        From the front those whose components are not known; in the end all slots, component by component, the last one first: an
        in-neighbour in another component is always behind.
    """

    cursor: Array
    seen: Array
    low: Array
    path: Array
    order: Array


WALK_BYTES = 24
"""int64 of a slot in `Rest` and `Walk`."""

WALK_NUMBERS = 5
"""Numbers of index dtype of a slot in these."""


@nb.njit(nogil=True, cache=True)
def gather(first: Any, pointers: Any, start: Any, indices: Any, own: Any, rest: Any) -> None:
    """Load rows that are left, with those in-neighbours that are left; nothing is written where there is no room for all of it.

    `CORE` and `DONE` do not change meanwhile, so that a vertex is left for all calls or for none.
    """
    num_rows, num_entries = 0, 0
    for r in range(pointers.size - 1):
        if not own[first + r] & (CORE | DONE):
            num_rows += 1
            for e in range(np.int64(pointers[r] - start), np.int64(pointers[r + 1] - start)):
                num_entries += not own[np.int64(indices[e])] & (CORE | DONE)
    if num_rows == 0:
        return
    slot, at = atomic_add(rest.used, 0, num_rows), atomic_add(rest.used, 1, num_entries)
    if slot + num_rows > rest.vertex.size or at + num_entries > rest.entries.size:
        return
    for r in range(pointers.size - 1):
        if own[first + r] & (CORE | DONE):
            continue
        rest.number[first + r] = slot
        rest.vertex[slot] = first + r
        rest.begin[slot] = at
        for e in range(np.int64(pointers[r] - start), np.int64(pointers[r + 1] - start)):
            if not own[np.int64(indices[e])] & (CORE | DONE):
                rest.entries[at] = indices[e]
                at += 1
        rest.end[slot] = at
        slot += 1


@nb.njit(nogil=True, cache=True)
def walk_rest(rest: Any, walk: Any, known: Any) -> None:
    """Find the strongly connected components of the rest.

    Parameters
    ----------
    rest : Rest
    walk : Walk
        Filled; its `low` has zeros before.
    known
        The largest value of the index dtype.
    """
    cursor, seen, low, path, order = walk
    num_slots = rest.used[0]
    time, num_path, num_open, at = 0, 0, 0, num_slots
    for root in range(num_slots):
        if low[root]:
            continue
        path[0], num_path = root, 1
        while num_path:
            v = np.int64(path[num_path - 1])
            if not low[v]:
                time += 1
                seen[v], low[v], cursor[v], order[num_open] = time, time, rest.begin[v], v
                num_open += 1
            enters = False
            while cursor[v] < rest.end[v]:
                w = np.int64(rest.number[np.int64(rest.entries[cursor[v]])])
                if not low[w]:
                    path[num_path] = w
                    num_path += 1
                    enters = True
                    break
                low[v] = min(low[v], low[w])
                cursor[v] += 1
            if enters:
                continue
            num_path -= 1
            w = -1 if low[v] == seen[v] else v
            while w != v:
                num_open -= 1
                w = np.int64(order[num_open])
                at -= 1
                low[w], seen[w], order[at] = known, v, w


@nb.njit(nogil=True, cache=True)
def count_rest(own: Any, first: int, in_degree: Any) -> tuple[int, int]:
    """Count the vertices from `first` on that are left, and their in-neighbours."""
    rows, entries = 0, 0
    for i in range(in_degree.size):
        if not own[first + i] & (CORE | DONE):
            rows += 1
            entries += in_degree[i]
    return rows, entries


@nb.njit(nogil=True, cache=True)
def is_any_left(own: Any, start: int, stop: int) -> bool:
    """Whether the component or level of one of some vertices is not known."""
    v = start
    while v < stop and own[v] & DONE:
        v += 1
    return v < stop
