"""Levels that are little work, all in one call by one thread, where all edges are in memory: pushes and pulls.

A graph of some hundred thousand vertices lies in a core's caches, and a level of it takes less time than Python takes to decide how to find
it, or than another thread takes to wake up. So `search_levels` chooses the direction itself, by what each would take, and goes on until
the frontier is empty or a level is so much work that threads had better share it.

A frontier is listed in a queue as long as it is pushed. A pull needs it as a bitmap, and leaves the next one as a bitmap.

Beamer, Asanovic, Patterson, "Direction-Optimizing Breadth-First Search", SC 2012. Differs from the paper in: the direction is chosen by
what a sample of the unvisited vertices has to look at.
"""

from __future__ import annotations

from typing import Any

import numba as nb
import numpy as np

from oocgraph.compiled.intrinsics import nanoseconds
from oocgraph.kernels.cpu import (
    STATUS_DONE,
    STATUS_GROWN,
    STATUS_LOG_FULL,
    count_edges,
    difference,
    finish_search,
    list_vertices,
    mark_vertices,
    pull_heads,
    sample_heads,
)
from oocgraph.kernels.rows import Marks, find_class, row_of, set_level

FRONTIER, EDGES, LEVEL, ROWS, QUEUE, REACHED, REACHED_EDGES, IS_LISTED = range(8)
"""Progress of a search: vertices of the frontier, their edges, and its level; rows of the log in use; which queue lists the frontier;
vertices that were reached, and the edges of those whose level was left; whether the frontier is in a queue, or in the bitmap alone."""

LAST_LEVEL, LAST_OF_FORM, MOST_NANOSECONDS, MAY_PULL = range(4)
"""Limits: last level to find; last one that the levels have room for; work of a level that is left to others; whether pulls are allowed."""

EDGE, FOUND, PROBE, WORD = 0.6, 4.0, 1.0, 1.0
"""Nanoseconds of an edge that is pushed, a vertex that a push finds, a neighbour that a pull looks at, and a word of the bitmap."""

SAMPLE_WORDS = 16
"""Words of the bitmap whose vertices a sample looks at: 1,024 vertices, 2 us."""

LOG_COLUMNS = 6
"""Of a level: vertices of its frontier, their edges, nanoseconds, whether it was a pull, and what a push and a pull were to take (0: not
asked)."""


@nb.njit(nogil=True, cache=True)
def _push_queue(lookup: Any, near: Any, queue: Any, count: Any, next_queue: Any, visited: Any, marks: Any) -> Any:
    """Push a frontier; returns how many vertices that found. As `push_levels` does where all edges are in memory, without its pages."""
    parent, level8, level32, wide, level = marks
    one = np.uint64(1)
    size = 0
    for i in range(count):
        v = queue[i]
        first, end = row_of(lookup, find_class(lookup.first, v), v)
        begin = size
        for e in range(first, end):  # without a branch: whether a neighbour is new cannot be guessed
            x = np.int64(near[e])
            word = visited[x >> 6]
            visited[x >> 6] = word | (one << np.uint64(x & 63))
            next_queue[size] = x
            size += np.int64((~word >> np.uint64(x & 63)) & one)
        for j in range(begin, size):
            x = next_queue[j]
            parent[x] = v
            set_level(level8, level32, wide, x, level)
    return size


@nb.njit(nogil=True, cache=True)
def _num_edges(lookup: Any, queue: Any, count: Any) -> Any:
    edges = 0
    for i in range(count):
        first, end = row_of(lookup, find_class(lookup.first, queue[i]), queue[i])
        edges += end - first
    return edges


@nb.njit(nogil=True, cache=True)
def search_levels(
    lookup: Any, near: Any, pull_lookup: Any, planes: Any, far: Any, progress: Any, limits: Any, queues: Any, frontier: Any, visited: Any,
    before: Any, undecided: Any, marks: Any, long_rows: Any, none: Any, targets: Any, log: Any,
) -> Any:  # fmt: skip
    """Find levels, until there are no more or one is too much work for one thread. Parents and levels of what is not reached are set then.

    Parameters
    ----------
    lookup, near
        Rows that are pushed, and their neighbours.
    pull_lookup, planes, far
        Rows that are pulled, their planes, and all of their neighbours.
    progress : (8,) int64, changed
        See `FRONTIER`.
    limits : (4,) int64
        See `LAST_LEVEL`.
    queues : (2 or more, capacity) int64
        The frontier, in one of the first two if it is listed.
    frontier, visited, before, undecided : (num_words,) uint64, changed
        Bitmaps: of the frontier, if it is not listed; of all that were reached; room.
    marks : Marks
        Parents and levels; its own level is not used.
    long_rows : LongRows
        Of which none is put off.
    none : int
        Parent of what is not reached.
    targets : (num_targets,) int64
        Vertices: when all of them are visited, the search is done. None: it goes on.
    log : (capacity, `LOG_COLUMNS`) float64
        Of each level.

    Returns
    -------
    status
        `STATUS_DONE`, `STATUS_GROWN` or `STATUS_LOG_FULL`.
    """
    num_vertices, num_words, capacity = marks.parent.size, visited.size, queues.shape[1]
    one = np.uint64(1)
    clock = np.empty(2, np.int64)
    began = nanoseconds(clock)
    is_marked, num_found = progress[IS_LISTED] == 0, 0
    while True:
        count, edges, level = progress[FRONTIER], progress[EDGES], progress[LEVEL]
        while num_found < targets.size and (visited[targets[num_found] >> 6] >> np.uint64(targets[num_found] & 63)) & one:
            num_found += 1
        if count == 0 or level >= limits[LAST_LEVEL] or (targets.size and num_found == targets.size):
            finish_search(0, num_words, num_vertices, visited, none, marks)
            return STATUS_DONE
        if level >= limits[LAST_OF_FORM]:
            return STATUS_GROWN
        row = progress[ROWS]
        if row == log.shape[0]:
            return STATUS_LOG_FULL
        queue, next_queue = queues[progress[QUEUE]], queues[1 - progress[QUEUE]]
        unvisited = num_vertices - progress[REACHED]
        push_cost, pull_cost, pulls = EDGE * edges, 0.0, False
        if limits[MAY_PULL] and push_cost > WORD * num_words + PROBE * unvisited:
            if not is_marked:
                mark_vertices(queue, count, frontier)
                is_marked = True
            step = max(1, num_words // SAMPLE_WORDS)
            sampled, probes, found, _ = sample_heads(step, num_vertices, pull_lookup, planes, far, frontier, visited)
            scale = unvisited / max(1, sampled)
            push_cost += FOUND * found * scale
            pull_cost = WORD * num_words + PROBE * probes * scale
            pulls = pull_cost < push_cost
        cost = pull_cost if pulls else push_cost
        if cost > limits[MOST_NANOSECONDS] or (not pulls and max(edges, count) > capacity):
            return STATUS_GROWN
        new_marks = Marks(marks.parent, marks.level8, marks.level32, marks.wide, level + 1)
        if pulls:
            for w in range(num_words):
                before[w] = visited[w]
            pull_heads(
                0, num_words, num_vertices, pull_lookup, planes, far, 0, frontier, visited, undecided, new_marks, long_rows
            )  # fmt: skip
            size = difference(0, num_words, visited, before, frontier)
            next_edges = count_edges(0, num_words, lookup, frontier)[1]
            progress[IS_LISTED] = 0
        else:
            if not progress[IS_LISTED]:
                list_vertices(frontier, queue)
            size = _push_queue(lookup, near, queue, count, next_queue, visited, new_marks)
            is_marked = 16 * size > num_words
            if is_marked:
                mark_vertices(next_queue, size, frontier)
                next_edges = count_edges(0, num_words, lookup, frontier)[1]
            else:
                next_edges = _num_edges(lookup, next_queue, size)
            progress[IS_LISTED], progress[QUEUE] = 1, 1 - progress[QUEUE]
        ended = nanoseconds(clock)
        log[row, 0], log[row, 1], log[row, 2] = count, edges, ended - began
        log[row, 3], log[row, 4], log[row, 5] = pulls, push_cost, pull_cost
        progress[FRONTIER], progress[EDGES], progress[LEVEL], progress[ROWS] = size, next_edges, level + 1, row + 1
        progress[REACHED] += size
        progress[REACHED_EDGES] += edges
        began = ended
