"""Cells of a graph: vertices grouped around random ones, and the order of the cells (`oocgraph.store.locality`).

In: edges as keys ``row << bits | col``, in blocks and any number of threads; arrays of vertices. Which thread comes first makes no
difference: of the cells that reach a vertex at the same level the one with the smallest number has it.
"""

from __future__ import annotations

from typing import Any

import numba as nb
import numpy as np

from oocgraph.compiled.intrinsics import atomic_add, atomic_min, load_acquire
from oocgraph.compiled.load import Call
from oocgraph.kernels.check import splitmix64

UNUSED, OPEN = np.uint8(254), np.uint8(255)
"""Levels of vertices without edges, and of those that no cell has reached."""

NO_CELL = np.int32(2**31 - 1)

SLOTS = 16
"""Neighbouring cells that are kept of each; of those with the same place the one with the smallest number."""


@nb.njit(nogil=True, cache=True)
def sow(level: Any, cell: Any, mask: Any, first_cell: Any) -> Any:
    """Begin a cell at each open vertex whose hash has no bit of `mask`; returns the number of cells then.

    Vertices are counted without those that have no edge: how many of these there are depends on how ids were numbered.
    """
    position = 0
    for v in range(level.size):
        if level[v] == OPEN and not splitmix64(position) & np.uint64(mask):
            level[v], cell[v] = 0, first_cell
            first_cell += 1
        position += level[v] != UNUSED
    return first_cell


@nb.njit(nogil=True, cache=True)
def spread(keys: Any, bits: Any, level: Any, cell: Any, current: Any, found: Any) -> None:
    """Have the vertices at level `current` reach their open neighbours; adds to ``found[0]`` how often one was."""
    mask, count, following = (np.uint64(1) << bits) - np.uint64(1), 0, np.uint8(current + 1)
    for i in range(keys.size):
        u, v = np.int64(keys[i] >> bits), np.int64(keys[i] & mask)
        a, b = level[u], level[v]
        if a == current and b >= following and b != UNUSED:
            level[v] = following
            count += atomic_min(cell, v, cell[u]) > cell[u]
        elif b == current and a >= following and a != UNUSED:
            level[u] = following
            count += atomic_min(cell, u, cell[v]) > cell[v]
    atomic_add(found, 0, np.int64(count))


@nb.njit(nogil=True, cache=True)
def _keep_near(near: Any, a: Any, b: Any) -> None:
    place = np.int64(a) * SLOTS + np.int64(splitmix64(b) & np.uint64(SLOTS - 1))
    if b < load_acquire(near, place):
        atomic_min(near, place, b)


@nb.njit(nogil=True, cache=True)
def link_cells(keys: Any, bits: Any, cell: Any, near: Any) -> None:
    """Note which cells have an edge to which: ``near : (num_cells * SLOTS,) int32``, `NO_CELL` where there is none."""
    mask = (np.uint64(1) << bits) - np.uint64(1)
    for i in range(keys.size):
        a, b = cell[keys[i] >> bits], cell[keys[i] & mask]
        if a != b:
            _keep_near(near, a, b)
            _keep_near(near, b, a)


@nb.njit(nogil=True, cache=True)
def group_cells(near: Any, sparseness: Any, group: Any, queue: Any) -> Any:
    """Group cells around one of `sparseness` of them, or by what is connected where there is none; returns the number of groups.

    ``group : (num_cells,) int32`` gets the group of each, `queue` the cells in the order in which they were reached.
    """
    group[:] = NO_CELL
    num, head, tail = 0, 0, 0
    for c in range(group.size):
        if splitmix64(c) % np.uint64(sparseness) == 0:
            group[c], queue[tail] = num, c
            num += 1
            tail += 1
    for start in range(group.size + 1):
        while head < tail:
            c = queue[head]
            head += 1
            for k in range(c * SLOTS, (c + 1) * SLOTS):
                d = near[k]
                if d != NO_CELL and group[d] == NO_CELL:
                    group[d], queue[tail] = group[c], d
                    tail += 1
        if start < group.size and group[start] == NO_CELL:
            group[start], queue[tail] = num, start
            num += 1
            tail += 1
    return num


@nb.njit(nogil=True, cache=True)
def link_groups(near: Any, group: Any, out: Any) -> None:
    """Note which groups have a cell that is near one of another: as `link_cells`."""
    for c in range(group.size):
        for k in range(c * SLOTS, (c + 1) * SLOTS):
            if near[k] != NO_CELL and group[near[k]] != group[c]:
                _keep_near(out, group[c], group[near[k]])
                _keep_near(out, group[near[k]], group[c])


@nb.njit(nogil=True, cache=True)
def rank_cells(group: Any, queue: Any, group_rank: Any, rank: Any) -> None:
    """Give numbers to cells by the rank of their group, in it by when they were reached."""
    following = np.zeros(group_rank.size + 1, np.int64)
    for c in range(group.size):
        following[group_rank[group[c]] + 1] += 1
    for g in range(group_rank.size):
        following[g + 1] += following[g]
    for c in queue:
        g = group_rank[group[c]]
        rank[c] = following[g]
        following[g] += 1


@nb.njit(nogil=True, cache=True)
def rank_vertices(level: Any, cell: Any, cell_rank: Any, num_levels: Any, unused_rank: Any, rank: Any) -> None:
    """Give numbers to vertices by the rank of their cell, in it by level, in that in ascending order."""
    following = np.zeros(cell_rank.size + 1, np.int64)
    for v in range(level.size):
        if level[v] == UNUSED:
            rank[v] = unused_rank
        else:
            following[cell_rank[cell[v]] + 1] += 1
    for c in range(cell_rank.size):
        following[c + 1] += following[c]
    for current in range(num_levels):
        for v in range(level.size):
            if level[v] == current:
                c = cell_rank[cell[v]]
                rank[v] = following[c]
                following[c] += 1


def locality_calls() -> list[Call]:
    """Return what `oocgraph.store.locality` calls, with arguments of the types that it has."""
    keys, bits, level, cell = np.zeros(1, np.uint64), np.uint64(0), np.zeros(1, np.uint8), np.zeros(1, np.int32)
    return [
        (sow, (level, cell, 0, 0)),
        (spread, (keys, bits, level, cell, np.uint8(0), np.zeros(1, np.int64))),
        (link_cells, (keys, bits, cell, cell)),
        (group_cells, (cell, bits, cell, cell)),
        (link_groups, (cell, cell, cell)),
        (rank_cells, (cell, cell, cell, cell)),
        (rank_vertices, (level, cell, cell, 0, np.uint32(0), np.zeros(1, np.uint32))),
    ]
