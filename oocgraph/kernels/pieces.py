"""Kernels that say where the edges of some rows are: in blocks that are held in memory, or still in a file.

In: rows of a CSR, ascending, and where each block of ``1 << shift`` edges is held. Out: pieces of rows, each in blocks that follow one
another in memory or in the file; and the blocks that rows would need.
"""

from __future__ import annotations

from typing import Any

import numba as nb
import numpy as np


@nb.njit(nogil=True, cache=True)
def cut_pieces(rows: Any, at: Any, indptr: Any, slot_of: Any, shift: Any, held: Any, missing: Any, max_staged: Any, counts: Any) -> None:
    """Cut the edges of rows into pieces that are in blocks held in memory and pieces that must be read.

    Parameters
    ----------
    rows : (n,) uint32
        Ascending.
    at : (2,) int64
        Row (index in `rows`) and edge, counted from the row's first, to begin with; where to go on afterwards.
    slot_of : (num_blocks,) int32
        Where a block of ``1 << shift`` edges is held; -1: nowhere.
    held, missing : (capacity, 3) int64
        Overwritten: row, first edge and end of each piece: among the blocks held; among all edges.
    max_staged : int
        Edges of `missing` at most.
    counts : (3,) int64
        Overwritten: pieces in `held`, in `missing`, and edges of those.
    """
    num_held, num_missing, staged = 0, 0, 0
    i, skip = at[0], at[1]
    while i < rows.size:
        u = np.int64(rows[i])
        e, stop = indptr[u] + skip, indptr[u + 1]
        while e < stop and num_held < held.shape[0] and num_missing < missing.shape[0] and staged < max_staged:
            block = e >> shift
            end = min(stop, (block + 1) << shift)
            slot = np.int64(slot_of[block])
            if slot >= 0:
                base = (slot - block) << shift
                if num_held and held[num_held - 1, 0] == u and held[num_held - 1, 2] == e + base:
                    held[num_held - 1, 2] = end + base
                else:
                    held[num_held, 0], held[num_held, 1], held[num_held, 2] = u, e + base, end + base
                    num_held += 1
            else:
                end = min(end, e + max_staged - staged)
                staged += end - e
                if num_missing and missing[num_missing - 1, 0] == u and missing[num_missing - 1, 2] == e:
                    missing[num_missing - 1, 2] = end
                else:
                    missing[num_missing, 0], missing[num_missing, 1], missing[num_missing, 2] = u, e, end
                    num_missing += 1
            e = end
        if e < stop:
            skip = e - indptr[u]
            break
        i, skip = i + 1, 0
    at[0], at[1] = i, skip
    counts[0], counts[1], counts[2] = num_held, num_missing, staged


@nb.njit(nogil=True, cache=True)
def mark_blocks(rows: Any, indptr: Any, slot_of: Any, shift: Any, wanted: Any) -> Any:
    """List in `wanted` the blocks that rows, which ascend, have edges in and that are not held; returns how many fit and are listed."""
    count, last = 0, np.int64(-1)
    for i in range(rows.size):
        u = np.int64(rows[i])
        if indptr[u] == indptr[u + 1]:
            continue
        for block in range(max(last + 1, indptr[u] >> shift), ((indptr[u + 1] - 1) >> shift) + 1):
            if slot_of[block] < 0:
                if count == wanted.size:
                    return count
                wanted[count] = block
                count += 1
            last = block
    return count
