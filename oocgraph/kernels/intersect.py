"""Kernels of what pairs of rows have in common."""

from __future__ import annotations

from typing import Any

import numba as nb
import numpy as np

from oocgraph.types import Array


@nb.njit(nogil=True, cache=True)
def _at_least(entries: Any, value: Any, begin: Any, end: Any) -> Any:
    """Return where the first entry of a range that is not below a value is, looked for by doubled steps; `end` if there is none."""
    step = 1
    while begin + step < end and entries[begin + step] < value:
        begin += step
        step *= 2
    low, high = begin, min(begin + step + 1, end)
    while low < high:
        middle = (low + high) // 2
        if entries[middle] < value:
            low = middle + 1
        else:
            high = middle
    return low


@nb.njit(nogil=True, cache=True)
def common_entries(entries: Any, begin: Any, end: Any, pairs: Any, counts: Any, found: Any) -> Any:
    """Find the entries that both rows of each pair have: each of the shorter row is looked for in the longer.

    Parameters
    ----------
    entries : (num_entries,) index dtype
        Rows, each ascending, without an entry that occurs twice.
    begin, end : (2, num_pairs) int64
        Where the rows of each pair are.
    pairs : (2, num_pairs) int64
        Store numbers of the pairs.
    counts : (2, num_pairs) int64
        Overwritten: entries that both rows have, and those of them that are neither vertex of the pair.
    found : (num_found,) int64
        Overwritten with the latter, pair by pair, as many as it has room for.

    Returns
    -------
    int
        How many there are of the latter.
    """
    total = 0
    for p in range(pairs.shape[1]):
        shorter = 0 if end[0, p] - begin[0, p] <= end[1, p] - begin[1, p] else 1
        b, b_end = begin[1 - shorter, p], end[1 - shorter, p]
        both, before = 0, total
        for a in range(begin[shorter, p], end[shorter, p]):
            b = _at_least(entries, entries[a], b, b_end)
            if b == b_end:
                break
            if entries[b] == entries[a]:
                both += 1
                vertex = np.int64(entries[a])
                if vertex != pairs[0, p] and vertex != pairs[1, p]:
                    if total < found.size:
                        found[total] = vertex
                    total += 1
        counts[0, p], counts[1, p] = both, total - before
    return total


def intersect_calls(index_dtype: str) -> list[tuple[Any, tuple[Array, ...]]]:
    """Return calls that load the kernel."""
    numbers = np.zeros((2, 1), np.int64)
    return [(common_entries, (np.zeros(1, index_dtype), numbers, numbers, numbers, numbers, np.zeros(1, np.int64)))]
