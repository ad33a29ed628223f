"""Finds the rows that a sweep needs, by their words: ranges of them that are near each other (`oocgraph.engine.sweeps.Rows`)."""

from __future__ import annotations

from typing import Any

import numba as nb
import numpy as np


@nb.njit(nogil=True, cache=True)
def find_ranges(words: Any, mask: Any, inverted: Any, start: Any, stop: Any, gap: Any, ranges: Any) -> Any:
    """Find the rows v of ``start .. stop - 1`` for which ``(words[v] ^ inverted) & mask`` is not 0.

    Parameters
    ----------
    words : (num_vertices,) uint64
    mask, inverted : uint64
    start, stop, gap : int
        Two rows with fewer than `gap` others between them are in one range.
    ranges : (most,) pairs of int64
        Out: first row, and the one behind the last.

    Returns
    -------
    (num_ranges, num_rows, num_between): ranges, as many as `ranges` has room for; rows; rows of the ranges, if there is room for these.
    """
    num_ranges, num_rows, num_between, last = 0, 0, 0, start - gap - 1
    for v in range(start, stop):
        if (words[v] ^ inverted) & mask == np.uint64(0):
            continue
        num_rows += 1
        if num_ranges and v - last <= gap:
            num_between += v - last
            ranges[num_ranges - 1, 1] = v + 1
        elif num_ranges < ranges.shape[0]:
            num_between += 1
            ranges[num_ranges, 0], ranges[num_ranges, 1] = v, v + 1
            num_ranges += 1
        last = v
    return num_ranges, num_rows, num_between
