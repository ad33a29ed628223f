"""Kernels of what pairs of rows have in common."""

from __future__ import annotations

from typing import Any

import numba as nb
import numpy as np

from oocgraph.types import Array


@nb.njit(nogil=True, cache=True)
def common_entries(entries: Any, first: Any, last: Any, pairs: Any, counts: Any, found: Any) -> Any:
    """Find the entries that both rows of each pair have: for each of the shorter one a search by doubled steps in the longer.

    Parameters
    ----------
    entries : (num_entries,) index dtype
        Rows, each ascending, without an entry that occurs twice.
    first, last : (2, num_pairs) int64
        Where the rows of each pair begin and end.
    pairs : (2, num_pairs) int64
        Store numbers of the pairs.
    counts : (2, num_pairs) int64
        Overwritten: entries that both rows have, and those of them that are neither vertex of the pair.
    found : (num_found,) int64
        Overwritten with the latter, pair by pair, as many as it holds; empty: they are counted only.

    Returns
    -------
    int
        How many there are of the latter.
    """
    total = 0
    for p in range(pairs.shape[1]):
        short = 0 if last[0, p] - first[0, p] <= last[1, p] - first[1, p] else 1
        a, a_end, b, b_end = first[short, p], last[short, p], first[1 - short, p], last[1 - short, p]
        both = beside = 0
        while a < a_end and b < b_end:
            x = entries[a]
            step = 1
            while b + step < b_end and entries[b + step] < x:
                b += step
                step *= 2
            low, high = b, min(b + step + 1, b_end)
            while low < high:
                middle = (low + high) // 2
                if entries[middle] < x:
                    low = middle + 1
                else:
                    high = middle
            b = low
            if b < b_end and entries[b] == x:
                both += 1
                number = np.int64(x)
                if number != pairs[0, p] and number != pairs[1, p]:
                    if total + beside < found.size:
                        found[total + beside] = number
                    beside += 1
                b += 1
            a += 1
        counts[0, p], counts[1, p] = both, beside
        total += beside
    return total


def intersect_calls(index_dtype: str) -> list[tuple[Any, tuple[Array, ...]]]:
    """Return calls that load the kernel."""
    numbers = np.zeros((2, 1), np.int64)
    return [(common_entries, (np.zeros(1, index_dtype), numbers, numbers, numbers, numbers, np.zeros(1, np.int64)))]
