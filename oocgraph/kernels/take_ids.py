"""The compiled part of joining results with ids: the ids of the vertices that others are named after (their parents, their groups).

In: store numbers in store order, and the ids of the first vertices by store number. Out: ids by position. `join_search` makes both columns
of a search in one pass, without a branch for whether a vertex was reached, and asks the caches for what comes: of a million vertices that
takes 6 ms where NumPy takes 27.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numba as nb
import numpy as np

from oocgraph.compiled.intrinsics import AHEAD, prefetch
from oocgraph.compiled.load import Call, load_kernels

STORED_DTYPES = ("uint32", "int64")
"""Dtypes of store numbers that there is a kernel for: those of indices."""


@nb.njit(nogil=True, cache=True)
def take_ids(stored: Any, numbers: Any, found: Any, ids: Any, out: Any) -> Any:
    """Set ``out[i]`` to ``ids[stored[numbers[i]]]`` where ``found[i]``; return how many of these `ids` ends before: they stay as they are.

    Parameters
    ----------
    stored : (num_vertices,) uint32 or int64
        By store number.
    numbers : (n,) int64
        Store numbers, below ``stored.size`` where `found`.
    found : (n,) bool
    ids : (k,) int64
        Of the first vertices by store number.
    out : (n,) int64
    """
    num_beyond = 0
    for i in range(numbers.size):
        if found[i]:
            at = np.int64(stored[numbers[i]])
            if 0 <= at < ids.size:
                out[i] = ids[at]
            else:
                num_beyond += 1
    return num_beyond


@nb.njit(nogil=True, cache=True)
def join_search(level: Any, unreached: Any, parent: Any, numbers: Any, ids: Any, out_level: Any, out_parent: Any) -> Any:
    """Set level and parent's id of some vertices, -1 where they have none; return how many parents `ids` ends before: theirs are -1 too.

    Parameters
    ----------
    level : (num_vertices,) uint8 or int32
    unreached : int
        Level of what was not reached.
    parent : (num_vertices,) uint32 or int64
    numbers : (n,) int64
        Store numbers, below ``level.size``; negative: isolated.
    ids : (k,) int64
        Of the first vertices by store number, at least one.
    out_level : (n,) int32
    out_parent : (n,) int64
    """
    num_beyond, num_ids, num_ahead = 0, np.uint64(ids.size), numbers.size - AHEAD
    for i in range(numbers.size):
        if i < num_ahead:
            far, near = np.uint64(max(numbers[i + AHEAD], 0)), np.uint64(max(numbers[i + AHEAD // 2], 0))
            prefetch(level, far)
            prefetch(parent, far)
            prefetch(ids, np.uint64(parent[near]))
        v = np.uint64(max(numbers[i], 0))
        depth, at = np.int64(level[v]), np.uint64(parent[v])
        is_reached = np.int64(numbers[i] >= 0) & np.int64(depth != unreached)
        is_held = is_reached & np.int64(at < num_ids)
        found = ids[at & np.uint64(-is_held)]
        out_level[i] = (depth & -is_reached) | (is_reached - 1)
        out_parent[i] = (found & -is_held) | (is_held - 1)
        num_beyond += is_reached - is_held
    return num_beyond


@cache
def load_join_search(level: str, parent: str) -> None:
    """Bring `join_search` into memory for dtypes of levels and of store numbers."""
    load_kernels(join_search_calls(level, parent))


def join_search_calls(level: str, parent: str) -> list[Call]:
    """Return what joins of searches call."""
    numbers = np.zeros(1, np.int64)
    return [(join_search, (np.zeros(1, level), -1, np.zeros(1, parent), numbers, numbers, np.zeros(1, np.int32), numbers))]


@cache
def load_take_ids(dtype: str) -> None:
    """Bring `take_ids` into memory for store numbers of a dtype."""
    load_kernels(take_ids_calls(dtype))


def take_ids_calls(dtype: str) -> list[Call]:
    """Return what joins call."""
    numbers = np.zeros(1, np.int64)
    return [(take_ids, (np.zeros(1, dtype), numbers, np.ones(1, np.bool_), numbers, numbers))]


@nb.njit(nogil=True, cache=True)
def lead_back(origin: Any, none: Any) -> None:
    """Replace the vertex before each on its path by the one that the path begins at, which is before itself; `none` stays."""
    for start in range(origin.size):
        first = start
        if origin[start] == none:
            continue
        while np.int64(origin[first]) != first:
            first = np.int64(origin[first])
        v = start
        while v != first:
            before = np.int64(origin[v])
            origin[v] = first
            v = before
