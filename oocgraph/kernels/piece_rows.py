"""Rows of pieces that are in memory, for compiled code that goes from row to row: levels of few vertices are found in it, many in a call.

In: a table of pieces (`oocgraph.sparse.piece_table.PieceTable`) and a row. Out: its neighbours, or which piece has yet to be read.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numba as nb
import numpy as np

from oocgraph.compiled.intrinsics import pointer_to

DONE, GROWN, FULL, MISSING = range(4)
"""Why a call has ended: nothing is left to find; a level is so much work that threads had better share it; no room, for vertices or for
levels; a piece that is not in memory."""


BLOCK_ROWS = 64
"""Rows of a block, for each of which it is noted which piece has the first."""


class Pieces(NamedTuple):
    """Where pieces of rows are in memory.

    Attributes
    ----------
    firsts : (num_pieces + 1,) int64
        First row of each piece; behind the last one all rows.
    blocks : (num_blocks,) int32
        The piece that has the first of `BLOCK_ROWS` rows: to look for it in `firsts` takes as long as the row.
    places : (num_pieces, 4) int64
        Addresses of a piece's pointers (int64) and neighbours, its first edge, and the address of its values, if it has some; addresses are
        0 of a piece that was not brought.
    kind : (0,) of the dtype of neighbours
    """

    firsts: Any
    blocks: Any
    places: Any
    kind: Any


def empty_pieces(dtype: Any) -> Pieces:
    """Return a table of no pieces, to load kernels with."""
    return Pieces(np.empty(0, np.int64), np.empty(0, np.int32), np.empty((0, 4), np.int64), np.empty(0, dtype))


@nb.njit(nogil=True, cache=True, inline="always")
def piece_of(pieces: Any, v: Any) -> Any:
    """Return the piece that has row v."""
    piece = np.int64(pieces.blocks[v // BLOCK_ROWS])
    while pieces.firsts[piece + 1] <= v:
        piece += 1
    return piece


@nb.njit(nogil=True, cache=True, inline="always")
def row_of(pieces: Any, v: Any, piece: Any) -> Any:
    """Return the row v of a piece that is in memory: ``(low, high, indices)``, of which ``indices[low:high]`` are its neighbours."""
    firsts, places = pieces.firsts, pieces.places
    pointers = nb.carray(pointer_to(places[piece, 0]), (firsts[piece + 1] - firsts[piece] + 1,), np.int64)
    low, high = pointers[v - firsts[piece]] - places[piece, 2], pointers[v - firsts[piece] + 1] - places[piece, 2]
    return low, high, nb.carray(pointer_to(places[piece, 1]), (high,), pieces.kind.dtype)


@nb.njit(nogil=True, cache=True)
def work_of(pieces: Any, vertices: Any, most: Any) -> Any:
    """Count the neighbours of some vertices, and these themselves.

    Parameters
    ----------
    pieces : Pieces
    vertices : (num,) int64
    most : int
        Above it the count ends.

    Returns
    -------
    (work, missing): the count, and the first piece that is not in memory, at which it ends, or -1.
    """
    work, firsts, places = 0, pieces.firsts, pieces.places
    for i in range(vertices.size):
        v = np.int64(vertices[i])
        piece = piece_of(pieces, v)
        if places[piece, 0] == 0:
            return work, piece
        pointers = nb.carray(pointer_to(places[piece, 0]), (firsts[piece + 1] - firsts[piece] + 1,), np.int64)
        work += 1 + pointers[v - firsts[piece] + 1] - pointers[v - firsts[piece]]
        if work > most:
            break
    return work, -1
