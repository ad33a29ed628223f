"""Searches that reach few vertices: a queue, and a table of what is in it, both of which grow; nothing is as long as the graph.

`search_few` searches edges in memory, all levels in one call. `add_rows` adds what a search finds in rows that its caller has read, of
which a bit for each vertex tells what was found before. `shortest_few` finds shortest paths in a small graph, all of whose vertices it has
distances of (Dijkstra, Numer. Math. 1, 1959).

In `search_few` a found vertex is a place in ``vertex``; ``slots`` is a hash table of the places, plus one, that is probed linearly and at
most half full (0: empty). Of a graph with no more vertices than slots each vertex has its own.
"""

from __future__ import annotations

from typing import Any

import numba as nb
import numpy as np

from oocgraph.compiled.intrinsics import nanoseconds
from oocgraph.compiled.load import Call
from oocgraph.kernels.rows import explicit_rows, find_class, row_of

FIRST_ROOM = 1024
"""Vertices that there is room for at first."""

DONE, GIVEN_UP = 0, 1
"""Whether a search has found all it was to find, or has stopped at a limit."""


@nb.njit(nogil=True, cache=True, inline="always")
def _slot_of(slots: Any, vertex: Any, v: Any, num_vertices: Any) -> Any:
    """Slot that holds the place of vertex `v`, or would."""
    if num_vertices <= slots.size:
        return v
    mask = slots.size - 1
    mixed = np.uint64(v) * np.uint64(0x9E3779B97F4A7C15)
    at = np.int64(mixed >> np.uint64(32)) & mask
    while slots[at] and vertex[slots[at] - 1] != v:
        at = (at + 1) & mask
    return at


@nb.njit(nogil=True, cache=True)
def with_room(vertex: Any, parent: Any, size: Any, room: Any, num_vertices: Any) -> Any:
    """Return copies of the first `size` vertices and parents with room for so many, and the slots that belong to them."""
    vertices, parents = np.empty(room, np.int64), np.empty(room, np.int64)
    num_slots = 16
    while num_slots < 2 * room:
        num_slots *= 2
    slots = np.zeros(num_slots, np.int32)
    for i in range(size):
        vertices[i], parents[i] = vertex[i], parent[i]
        slots[_slot_of(slots, vertices, vertex[i], num_vertices)] = i + 1
    return vertices, parents, slots


@nb.njit(nogil=True, cache=True)
def search_few(lookup: Any, near: Any, num_vertices: Any, sources: Any, targets: Any, limits: Any) -> Any:
    """Search from some vertices, level by level, where all rows are in memory.

    Parameters
    ----------
    lookup
        See `oocgraph.kernels.rows.RowLookup`.
    near : index dtype
        The neighbours.
    sources, targets : int64
        Distinct store numbers; the search ends with the level at which the last of the targets is found, if there are any.
    limits : (3,) int64
        Last level to find; vertices that there may be room for, and edges that may be followed: what needs more is given up.

    Returns
    -------
    (status, begin, edges, vertex, parent, log)
        `DONE` or `GIVEN_UP`; where the last level begins in `vertex`, and its edges; what was found, by level, and which vertex found it;
        for each level that was followed where it begins, its edges, and nanoseconds.
    """
    last_level, most_room, most_edges = limits[0], limits[1], limits[2]
    size, level, begin, followed, num_found = sources.size, 0, 0, 0, 0
    vertex, parent, slots = with_room(sources, sources, size, max(size, min(num_vertices, FIRST_ROOM)), num_vertices)
    log = np.empty((16, 3), np.int64)
    clock = np.empty(2, np.int64)
    began = nanoseconds(clock)
    edges = 0
    for i in range(size):
        first, end = row_of(lookup, find_class(lookup.first, vertex[i]), vertex[i])
        edges += end - first
    while begin < size and level < last_level:
        while num_found < targets.size and slots[_slot_of(slots, vertex, targets[num_found], num_vertices)]:
            num_found += 1
        if targets.size and num_found == targets.size:
            break
        followed += edges
        if followed > most_edges:
            return GIVEN_UP, begin, edges, vertex[:size], parent[:size], log[:level]
        stop, new_edges = size, 0
        for i in range(begin, stop):
            v = vertex[i]
            first, end = row_of(lookup, find_class(lookup.first, v), v)
            if size + end - first > vertex.size and vertex.size < num_vertices:
                room = min(num_vertices, size + end - first)
                if room > most_room:
                    return GIVEN_UP, begin, edges, vertex[:stop], parent[:stop], log[:level]
                room = max(room, min(4 * vertex.size, num_vertices, most_room))
                vertex, parent, slots = with_room(vertex, parent, size, room, num_vertices)
            for e in range(first, end):
                x = np.int64(near[e])
                at = _slot_of(slots, vertex, x, num_vertices)
                if not slots[at]:
                    vertex[size], parent[size] = x, v
                    size += 1
                    slots[at] = size
                    x_first, x_end = row_of(lookup, find_class(lookup.first, x), x)
                    new_edges += x_end - x_first
        if level == log.shape[0]:
            more = np.empty((4 * level, 3), np.int64)
            for i in range(level):  # to assign a slice takes the compiler two seconds
                more[i, 0], more[i, 1], more[i, 2] = log[i, 0], log[i, 1], log[i, 2]
            log = more
        ended = nanoseconds(clock)
        log[level, 0], log[level, 1], log[level, 2] = begin, edges, ended - began
        level, begin, edges, began = level + 1, stop, new_edges, ended
    return DONE, begin, edges, vertex[:size], parent[:size], log[:level]


@nb.njit(nogil=True, cache=True)
def add_rows(seen: Any, vertex: Any, parent: Any, size: Any, rows: Any, ends: Any, near: Any) -> Any:
    """Add the neighbours in some rows that were not seen yet to the first `size` vertices, where there is room; returns how many there are.

    Parameters
    ----------
    seen : (num_words,) uint64, changed
        Bit of each vertex.
    rows, ends : (num_rows,) int64
        Whose rows they are, and where each ends in `near`.
    near : index dtype
        The rows, one after the other.
    """
    first, one = 0, np.uint64(1)
    for i in range(rows.size):
        for e in range(first, ends[i]):
            x = np.int64(near[e])
            bit = one << np.uint64(x & 63)
            if not seen[x >> 6] & bit:
                seen[x >> 6] |= bit
                vertex[size], parent[size] = x, rows[i]
                size += 1
        first = ends[i]
    return size


@nb.njit(nogil=True, cache=True)
def _push_heap(keys: Any, items: Any, size: Any, key: Any, item: Any) -> None:
    """Add an item to a binary heap of so many."""
    at = size
    while at:
        above = (at - 1) >> 1
        if keys[above] <= key:
            break
        keys[at], items[at] = keys[above], items[above]
        at = above
    keys[at], items[at] = key, item


@nb.njit(nogil=True, cache=True)
def _pop_heap(keys: Any, items: Any, size: Any) -> None:
    """Remove the first item of a binary heap of so many."""
    key, item = keys[size - 1], items[size - 1]
    at, below = 0, 1
    while below < size - 1:
        if below + 1 < size - 1 and keys[below + 1] < keys[below]:
            below += 1
        if key <= keys[below]:
            break
        keys[at], items[at] = keys[below], items[below]
        at, below = below, 2 * below + 1
    keys[at], items[at] = key, item


@nb.njit(nogil=True, cache=True)
def shortest_few(
    indptr: Any, near: Any, weight: Any, sources: Any, targets: Any, bound: Any, most: Any, distance: Any, parent: Any,
) -> Any:  # fmt: skip
    """Find shortest paths from some vertices to all, or to those up to a distance. Of equal paths the last edge is from the first vertex.

    Parameters
    ----------
    targets : int64
        Ascending; if there are any, distances beyond the largest of theirs are not kept.
    bound, most
        Largest distance to keep, and to compute; of the dtype of distances.
    distance : (num_vertices,) int64 or float64, changed
        That of no path everywhere.
    parent : (num_vertices,) index dtype, changed
        That of no vertex everywhere.

    Returns
    -------
    (status, followed)
        `GIVEN_UP` at a weight that is negative or no number, and where a distance is too large; edges followed.
    """
    unreached, none, followed, size, num_found = distance[0], parent[0], 0, sources.size, 0
    keys, items = np.empty(64 + size, distance.dtype), np.empty(64 + size, np.int64)
    for i in range(size):
        distance[sources[i]], parent[sources[i]] = 0, sources[i]
        keys[i], items[i] = 0, sources[i]
    while size:
        d, v = keys[0], items[0]
        _pop_heap(keys, items, size)
        size -= 1
        if d > bound:
            break
        if d > distance[v]:
            continue
        if num_found < targets.size and targets[find_class(targets, v)] == v:
            num_found += 1
            if num_found == targets.size:
                bound = d
        first, end = indptr[v], indptr[v + 1]
        followed += end - first
        if size + end - first > keys.size:
            room = 2 * (size + end - first)
            more_keys, more_items = np.empty(room, distance.dtype), np.empty(room, np.int64)
            for i in range(size):
                more_keys[i], more_items[i] = keys[i], items[i]
            keys, items = more_keys, more_items
        for e in range(first, end):
            w = weight[e]
            if not w >= 0 or w > most - d:
                return GIVEN_UP, followed
            x, far = np.int64(near[e]), d + w
            if far < distance[x] and far <= bound:
                distance[x], parent[x] = far, v
                _push_heap(keys, items, size, far, x)
                size += 1
            elif far == distance[x] and far > d and v < parent[x]:
                parent[x] = v
    for v in range(distance.size):
        if distance[v] > bound or distance[v] == unreached:  # as far as infinite weights lead is not reached
            distance[v], parent[v] = unreached, none
    return DONE, followed


@nb.njit(nogil=True, cache=True)
def farthest_few(
    indptr: Any, near: Any, weight: Any, sources: Any, targets: Any, most: Any, distance: Any, parent: Any, farthest: Any
) -> Any:  # fmt: skip
    """Find the largest distance from each of some vertices, that of no path where there is one that is not reached.

    Parameters
    ----------
    targets : (0,) int64
        None.
    distance, parent : (num_vertices,), changed
        As of `shortest_few`, for each search in turn.
    farthest : (num_sources,), changed
        Of the dtype of distances.

    Returns
    -------
    `DONE` or `GIVEN_UP`, as of `shortest_few`.
    """
    unreached, none = distance[0], parent[0]
    for i in range(sources.size):
        for v in range(distance.size):
            distance[v], parent[v] = unreached, none
        status, _ = shortest_few(indptr, near, weight, sources[i : i + 1], targets, unreached, most, distance, parent)
        if status != DONE:
            return status
        found = distance[0]
        for v in range(distance.size):
            found = max(found, distance[v])
        farthest[i] = found
    return DONE


def few_calls(index_dtype: str) -> list[Call]:
    """Return what searches that reach few vertices call."""
    numbers = np.zeros(4, np.int64)
    rows = explicit_rows(np.empty(0, np.int64))
    return [(search_few, (rows, np.zeros(2, index_dtype), 2, numbers, np.empty(0, np.int64), np.zeros(3, np.int64)))]
