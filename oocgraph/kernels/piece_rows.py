"""Rows of pieces that are in memory, for compiled code that goes from row to row: levels of few vertices are found in it, many in a call.

In: a table of pieces (`oocgraph.sparse.edge_stream.PieceTable`) and a row. Out: its neighbours, or which piece has yet to be read.
"""

from __future__ import annotations

from typing import Any

import numba as nb
import numpy as np

from oocgraph.kernels.intrinsics import pointer_to

DONE, GROWN, FULL, MISSING = range(4)
"""Why a call has ended: nothing is left to find; a level is so much work that threads had better share it; no room, for vertices or for
levels; a piece that is not in memory."""


@nb.njit(nogil=True, cache=True, inline="always")
def piece_of(firsts: Any, v: Any, piece: Any) -> Any:
    """Return the piece that has row v, perhaps the one before."""
    if firsts[piece] <= v < firsts[piece + 1]:
        return piece
    return np.searchsorted(firsts, v, side="right") - 1


@nb.njit(nogil=True, cache=True, inline="always")
def row_of(firsts: Any, places: Any, kind: Any, v: Any, piece: Any) -> Any:
    """Return the row v of a piece that is in memory: ``(low, high, indices)``, of which ``indices[low:high]`` are its neighbours."""
    pointers = nb.carray(pointer_to(places[piece, 0]), (firsts[piece + 1] - firsts[piece] + 1,), np.int64)
    low, high = pointers[v - firsts[piece]] - places[piece, 2], pointers[v - firsts[piece] + 1] - places[piece, 2]
    return low, high, nb.carray(pointer_to(places[piece, 1]), (high,), kind.dtype)


@nb.njit(nogil=True, cache=True)
def work_of(firsts: Any, places: Any, vertices: Any, most: Any) -> Any:
    """Count the neighbours of some vertices, and these themselves.

    Parameters
    ----------
    firsts, places
        Of a `oocgraph.sparse.edge_stream.PieceTable`.
    vertices : (num,) int64
    most : int
        Above it the count ends.

    Returns
    -------
    (work, missing): the count, and the first piece that is not in memory, at which it ends, or -1.
    """
    work, piece = 0, 0
    for i in range(vertices.size):
        v = np.int64(vertices[i])
        piece = piece_of(firsts, v, piece)
        if places[piece, 0] == 0:
            return work, piece
        pointers = nb.carray(pointer_to(places[piece, 0]), (firsts[piece + 1] - firsts[piece] + 1,), np.int64)
        work += 1 + pointers[v - firsts[piece] + 1] - pointers[v - firsts[piece]]
        if work > most:
            break
    return work, -1
