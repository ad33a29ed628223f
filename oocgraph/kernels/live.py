"""Which edges count: what replaces and counts those that do not, beside what kernels do that read pages (`oocgraph.kernels.rows`).

In: an `EdgeMask`. A dead edge becomes one to its own row's vertex: no search finds anything along it, and it joins nothing.
"""

from __future__ import annotations

from typing import Any

import numba as nb
import numpy as np

from oocgraph.kernels.intrinsics import count_ones
from oocgraph.kernels.rows import find_class, next_class, row_of


@nb.njit(nogil=True, cache=True)
def replace_dead_of_plane(mask: Any, plane: Any, first: Any, neighbours: Any) -> None:
    """Replace the dead edges in a stretch of a plane: of the vertices from `first` on, in place."""
    live, rows = mask
    v, stop = np.int64(first), np.int64(first + neighbours.size)
    c = find_class(rows.first, v)
    while v < stop:
        c = next_class(rows, c, v)
        same = min(stop, rows.first[c + 1]) if c + 1 < rows.first.size else stop  # rows of one degree are evenly spaced
        e, degree = rows.edge[c] + (v - rows.first[c]) * rows.value[c] + plane, rows.value[c]
        for u in range(v, same):
            keep = -np.int64((live[e >> 6] >> np.uint64(e & 63)) & np.uint64(1))  # without a branch
            neighbours[u - first] = (neighbours[u - first] & keep) | (u & ~keep)
            e += degree
        v = same


@nb.njit(nogil=True, cache=True)
def count_dead(mask: Any, first: Any, chosen: Any) -> Any:
    """Count the dead edges of the rows from `first` on that are chosen: (num_rows,), 0 or not."""
    live, rows = mask
    dead = 0
    c = find_class(rows.first, first)
    for i in range(chosen.size):
        if not chosen[i]:
            continue
        c = next_class(rows, c, first + i)
        begin, end = row_of(rows, c, first + i)
        e = begin
        while e < end:
            word = ~live[e >> 6] >> np.uint64(e & 63)
            span = min(end, (e | 63) + 1) - e
            if span < 64:
                word &= (np.uint64(1) << np.uint64(span)) - np.uint64(1)
            dead += np.int64(count_ones(word))
            e += span
    return dead


@nb.njit(nogil=True, cache=True)
def list_live_loops(indptr: Any, first_row: Any, first_edge: Any, neighbours: Any, live: Any, loops: Any, size: Any) -> Any:
    """Append to ``loops[:size]`` the vertex of each self-loop that counts in a block of rows; returns the new size.

    Parameters
    ----------
    indptr : (num_rows + 1,) int64
        As stored; the first and the last row may be cut.
    first_edge
        Edge that ``neighbours[0]`` is.
    """
    for i in range(indptr.size - 1):
        v = first_row + i
        for e in range(max(indptr[i], first_edge), min(indptr[i + 1], first_edge + neighbours.size)):
            if np.int64(neighbours[e - first_edge]) == v and (live[e >> 6] >> np.uint64(e & 63)) & np.uint64(1):
                if size < loops.size:
                    loops[size] = v
                size += 1
    return size
