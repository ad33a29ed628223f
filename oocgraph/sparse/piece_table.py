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
from oocgraph.sparse.partial import PartialCSR
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
        self._slots: list[dict[str, Array]] = []  # memory, for a leaf each
        self._held: dict[int, tuple[int, PartialCSR]] = {}  # leaves, and which they are, by slot
        self._loan, self._next, self._num_brought = -1, 0, 0
        self._credit: float = MOST_CREDIT
        self._is_too_long = np.zeros(firsts.size - 1, np.bool_)
        self._share = (bounds[-1] - bounds[kept]) / max(1, bounds[-1])

    @property
    def pieces(self) -> Pieces:
        """Where they are now: (num_pieces, 4) places are 0 of what is not, or no longer, in memory."""
        if self._loan not in (self._stream.num_loans, -1):
            for i, _ in self._held.values():
                self._pieces.places[i] = 0
            self._slots, self._held, self._loan = [], {}, -1
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
            self._enter(i, part)
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
        leaf = None
        if not self._is_too_long[i] and self._credit >= LEAF_COST and self._num_brought < len(self._slots):
            oldest, _ = self._held.pop(self._next, (i, None))
            places[oldest] = 0
            leaf = self._stream.read_rows(int(self._part_of[i]), int(firsts[i]), int(firsts[i + 1]), self._slots[self._next])
            self._is_too_long[i] = leaf is None
        if leaf is None:
            self.found(1)
            return False
        self._enter(i, leaf)
        self._held[self._next] = i, leaf
        self._next = (self._next + 1) % len(self._slots)
        self._num_brought += 1
        self._credit -= LEAF_COST
        return True

    def _enter(self, i: int, part: PartialCSR) -> None:
        assert (part.pointers.dtype, part.indices.dtype) == (np.int64, self._pieces.kind.dtype)
        values = 0 if part.values is None else part.values.ctypes.data
        self._pieces.places[i] = part.pointers.ctypes.data, part.indices.ctypes.data, part.start, values

    def _borrow(self) -> None:
        """Cut what is lent into slots: most leaves have twice the room that they need."""
        num_rows, num_entries = _unkept(self._stream)
        rows, entries = self._leaf_rows + 1, 2 * (self._leaf_rows * num_entries // max(1, num_rows) + 1)
        for buffers in self._stream.lend_buffers():
            indices, pointers = buffers["indices"], buffers["pointers"]
            for k in range(min(indices.size // entries, pointers.size // rows)):
                slot = {"indices": indices[k * entries : (k + 1) * entries], "pointers": pointers[k * rows : (k + 1) * rows]}
                self._slots.append(slot)
        self._loan, self._next, self._num_brought = self._stream.num_loans, 0, 0


def table_bytes(num_rows: int) -> int:
    """Return what it takes to make a `PieceTable`, at the most."""
    return TABLE_BYTES * (num_rows // BLOCK_ROWS + 1) + LEAF_TABLE_BYTES * (num_rows // LEAST_LEAF_ROWS + 1)


def _leaf_rows(stream: EdgeStream) -> int:
    """Return how many rows of the pieces that are not kept are brought at once."""
    num_rows, num_entries = _unkept(stream)
    if not num_rows or not stream.can_lend:
        return max(1, stream.part.num_lines)
    row_bytes = 8 + stream.part.indices.dtype.itemsize * num_entries / num_rows
    return max(LEAST_LEAF_ROWS, int(LEAF_BYTES / row_bytes) // BLOCK_ROWS * BLOCK_ROWS)


def _unkept(stream: EdgeStream) -> tuple[int, int]:
    """Return how many rows and entries are in pieces that are not kept."""
    parts = stream.parts[stream.num_kept :]
    return sum(part.num_lines for part in parts), sum(part.num_entries for part in parts)
