"""Which edges some rows take, as runs: what is asked of a store whose requests take long.

In: a bitmap of rows and where rows begin. Out: ranges of edges, ascending; rows with few edges between them are in one.
"""

from __future__ import annotations

from typing import Any

import numba as nb
import numpy as np

from oocgraph.compiled.intrinsics import trailing_zeros
from oocgraph.compiled.load import load_kernel
from oocgraph.kernels.rows import explicit_rows, find_class, next_class, row_of


@nb.njit(nogil=True, cache=True)
def row_runs(v: Any, num_vertices: Any, lookup: Any, first_edge: Any, gap: Any, rows: Any, runs: Any) -> Any:
    """Write to `runs`, (n, 2) int64, the edges from `first_edge` on of the vertices marked in `rows` from vertex `v` on.

    Rows are joined where at most `gap` edges lie between. Returns how many runs there are, and the vertex to go on with where more are
    marked than `runs` has room for; `num_vertices` where all are done.
    """
    count = 0
    c = find_class(lookup.first, v)
    bits = rows[v >> 6] >> np.uint64(v & 63) << np.uint64(v & 63) if v < num_vertices else np.uint64(0)
    for w in range(v >> 6, (num_vertices + 63) >> 6):
        if w > v >> 6:
            bits = rows[w]
        while bits:
            u = w * 64 + np.int64(trailing_zeros(bits))
            bits &= bits - np.uint64(1)
            c = next_class(lookup, c, u)
            begin, end = row_of(lookup, c, u)
            begin = max(begin, first_edge)
            if begin >= end:
                continue
            if count and begin - runs[count - 1, 1] <= gap:
                runs[count - 1, 1] = end
            elif count == runs.shape[0]:
                return count, u
            else:
                runs[count, 0], runs[count, 1] = begin, end
                count += 1
    return count, num_vertices


def load_row_runs() -> None:
    """Bring the kernel into memory."""
    rows = explicit_rows(np.empty(0, np.int64))
    load_kernel(row_runs, (0, 0, rows, 0, 0, np.zeros(1, np.uint64), np.zeros((1, 2), np.int64)))
