"""The compiled parts of an export in input order: entries as sortable keys, and where sorted entries go.

A key is ``position of the row << 32 | position of the neighbour``: sorted keys are the rows in input order, each with its
neighbours ascending.
"""

from __future__ import annotations

from typing import Any

import numba as nb
import numpy as np

KEY_SHIFT = 32
"""Bits of a position within a key."""


@nb.njit(nogil=True, cache=True)
def row_keys(indptr: Any, first_row: int, first_edge: int, indices: Any, position: Any, keys: Any) -> None:
    """Write the key of each entry of a block of rows.

    Parameters
    ----------
    indptr : (num_rows + 1,) int64
        Of rows `first_row`, ...; the first and the last may reach beyond the block.
    first_edge
        Entry that ``indices[0]`` is.
    position : (num_vertices,) uint32
        Position of each vertex among the input ids.
    keys : (indices.size,) uint64
        Overwritten.
    """
    for r in range(indptr.size - 1):
        row = np.uint64(position[first_row + r]) << np.uint64(KEY_SHIFT)
        for i in range(max(indptr[r] - first_edge, 0), min(indptr[r + 1] - first_edge, indices.size)):
            keys[i] = row | np.uint64(position[indices[i]])


@nb.njit(nogil=True, cache=True)
def place(keys: Any, indptr: Any, destination: Any) -> None:
    """Write where each of the sorted `keys` of whole rows goes, in a CSR with `indptr`, into ``destination : int64``."""
    last, at = np.uint64(0xFFFFFFFFFFFFFFFF), np.int64(0)
    for i in range(keys.size):
        row = keys[i] >> np.uint64(KEY_SHIFT)
        if row != last:
            last, at = row, np.int64(indptr[np.int64(row)])
        destination[i] = at
        at += 1
