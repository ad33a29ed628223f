"""Where rows are in memory, for compiled code that goes from row to row: pieces that are kept, and few rows of the others.

In: an `EdgeStream` of whole rows. Out: a `PieceTable`, whose `bring` reads what a kernel has missed. Of pieces that are not kept it brings
a few hundred rows at a time, into the memory through which pieces are streamed at other times, and forgets the oldest for it: fronts of a
search that go through near rows level after level find them there. Where they do not, because neighbours are far apart in the
store, it brings nothing: reading each row by itself is quicker.
"""

from __future__ import annotations

import numpy as np

from oocgraph.kernels.piece_rows import BLOCK_ROWS, Pieces
from oocgraph.sparse.edge_stream import EdgeStream
from oocgraph.store.columns import distinct
from oocgraph.types import Array

LEAF_BYTES, LEAST_LEAF_ROWS = 32 << 10, 2 * BLOCK_ROWS
"""About what rows take that are brought at once, and how many these are at the least."""

LEAF_COST, MOST_CREDIT = 16, 1 << 12
"""Rows that have to be found in memory for each time that some are brought: so long takes reading these by themselves. So many at the most
count for later."""

TABLE_BYTES, LEAF_TABLE_BYTES = 36, 64
"""What it takes to make a table, for each block of rows and for each leaf."""


class PieceTable:
    """Where pieces that are kept are in memory, and rows of others.

    Attributes
    ----------
    values : (0,) of the dtype of values, bools as bytes, or None
    """

    def __init__(self, stream: EdgeStream) -> None:
        self._stream, parts = stream, stream.parts
        bounds, kept = np.array([*(part.first_line for part in parts), stream.part.stop_line], np.int64), min(stream.num_kept, len(parts))
        self._leaf_rows = _leaf_rows(stream)
        leaves = np.arange(bounds[kept], bounds[-1], self._leaf_rows)
        firsts = np.append(bounds[:kept], distinct(np.append(leaves, bounds[kept:])))
        self._part_of = (np.searchsorted(bounds, firsts[:-1], side="right") - 1).astype(np.int32)
        blocks = np.searchsorted(firsts, np.arange(0, firsts[-1], BLOCK_ROWS), side="right") - 1
        self._pieces = Pieces(
            firsts, blocks.astype(np.int32), np.zeros((firsts.size - 1, 4), np.int64), np.empty(0, parts[0].indices.dtype)
        )
        of_values = None if parts[0].values is None else parts[0].values.dtype
        self.values = None if of_values is None else np.empty(0, np.uint8 if of_values == np.bool_ else of_values.newbyteorder("="))
        self._slots: list[dict[str, Array]] = []
        self._held: list[tuple[Array, Array] | None] = []  # pointers and neighbours in each slot, and which these are
        self._numbers: list[int] = []
        self._loan, self._next, self._num_brought = -1, 0, 0
        self._credit: float = MOST_CREDIT
        self._is_too_long = np.zeros(firsts.size - 1, np.bool_)
        self._share = (bounds[-1] - bounds[kept]) / max(1, bounds[-1])

    @property
    def pieces(self) -> Pieces:
        """Where they are now: (num_pieces, 4) places are 0 of what is not, or no longer, in memory."""
        if self._loan not in (self._stream.num_loans, -1):
            self._pieces.places[[i for i in self._numbers if i >= 0]] = 0
            self._slots, self._held, self._numbers, self._loan = [], [], [], -1
        return self._pieces

    def bring(self, i: int) -> bool:
        """Enter a piece, and read it first if it is not in memory; returns whether it is now, and stays at least until others are brought.

        Raises
        ------
        CorruptStoreError
            As of `EdgeStream.piece`.
        """
        if not self.stays(i):
            return self._bring_leaf(i)
        with self._stream.piece(i) as part:
            assert (part.pointers.dtype, part.indices.dtype) == (np.int64, self._pieces.kind.dtype)
            values = 0 if part.values is None else part.values.ctypes.data
            self._pieces.places[i] = part.pointers.ctypes.data, part.indices.ctypes.data, part.start, values
        return True

    @property
    def are_kept(self) -> bool:
        """Whether all pieces stay in memory once they were brought."""
        return self.stays(len(self._stream.parts) - 1)

    def stays(self, i: int) -> bool:
        """Whether a piece stays in memory once it was brought."""
        return i < self._stream.num_kept

    def bring_all(self) -> None:
        """Enter all pieces, all of which stay in memory.

        Raises
        ------
        CorruptStoreError
            As of `EdgeStream.piece`.
        """
        for i in range(len(self._stream.parts)):
            stays = self.bring(i)
            assert stays

    def bring_rows(self, rows: Array) -> bool:
        """Enter the pieces of some rows that stay in memory; returns whether there were any."""
        pieces = distinct(np.searchsorted(self._pieces.firsts, rows, side="right") - 1).tolist()
        return any([self.bring(i) for i in pieces if self.stays(i)])

    def found(self, num_rows: int) -> None:
        """Take note that so many rows were found in memory: if those that do not stay are enough of them, more are brought."""
        self._credit, self._num_brought = min(MOST_CREDIT, self._credit + self._share * num_rows), 0

    def _bring_leaf(self, i: int) -> bool:
        firsts, _, places, _ = self.pieces
        if self._loan == -1:
            self._borrow()
        if self._is_too_long[i] or self._credit < LEAF_COST or self._num_brought == len(self._slots):
            self.found(1)
            return False
        slot = self._next
        if (oldest := self._numbers[slot]) >= 0:
            places[oldest] = 0
            self._numbers[slot] = -1
        rows = self._stream.read_rows(int(self._part_of[i]), int(firsts[i]), int(firsts[i + 1]), self._slots[slot])
        if rows is None:
            self._is_too_long[i] = True
            self.found(1)
            return False
        pointers, indices = self._held[slot] = rows
        assert pointers.dtype == np.int64
        assert indices.dtype == self._pieces.kind.dtype
        places[i] = pointers.ctypes.data, indices.ctypes.data, pointers[0], 0
        self._numbers[slot] = i
        self._next = (slot + 1) % len(self._slots)
        self._num_brought += 1
        self._credit -= LEAF_COST
        return True

    def _borrow(self) -> None:
        """Cut what is lent into slots: most leaves have twice the room that they need."""
        stream = self._stream
        parts = stream.parts[stream.num_kept :]
        length = 2 * (self._leaf_rows * sum(part.num_entries for part in parts) // max(1, sum(part.num_lines for part in parts)) + 1)
        for buffers in stream.lend_buffers():
            indices, pointers = buffers["indices"], buffers["pointers"]
            for k in range(min(indices.size // length, pointers.size // (self._leaf_rows + 1))):
                of_rows = slice(k * (self._leaf_rows + 1), (k + 1) * (self._leaf_rows + 1))
                self._slots.append({"indices": indices[k * length : (k + 1) * length], "pointers": pointers[of_rows]})
        self._held, self._numbers = [None] * len(self._slots), [-1] * len(self._slots)
        self._loan, self._next, self._num_brought = stream.num_loans, 0, 0


def table_bytes(num_rows: int) -> int:
    """Return what it takes to make a `PieceTable`, at the most."""
    return TABLE_BYTES * (num_rows // BLOCK_ROWS + 1) + LEAF_TABLE_BYTES * (num_rows // LEAST_LEAF_ROWS + 1)


def _leaf_rows(stream: EdgeStream) -> int:
    """Return how many rows of the pieces that are not kept are brought at once."""
    parts = stream.parts[stream.num_kept :]
    num_rows = sum(part.num_lines for part in parts)
    if not num_rows or not stream.can_lend:
        return max(1, stream.part.num_lines)
    row_bytes = 8 + parts[0].indices.dtype.itemsize * sum(part.num_entries for part in parts) / num_rows
    return max(LEAST_LEAF_ROWS, int(LEAF_BYTES / row_bytes) // BLOCK_ROWS * BLOCK_ROWS)
