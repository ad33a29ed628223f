"""The edges of one part of a partitioned graph: all in memory, or blocks of them, the rest read by ranges when they are asked for.

In: ``indices`` of a part and how many blocks may be held. Out: `LocalEdges.pieces`, which calls a kernel with arrays of edges that
hold those of some rows. A search asks for each row once, so a block is worth holding because its rows are asked for on
different levels, and in the next search. So a block that a row is in is read as a whole, as long as there is room, and never
given up; `BLOCK_BYTES` is what a disk reads in about the time in which it finds a page. Where there is no room
left, exactly the pages of the missing pieces are read (`oocgraph.store.row_gatherer`), coalesced, by host threads.

What this cache of chunks saves (Kronecker graph of scale 22, 2 x 2 parts, page cache dropped before each search; edge bytes read, in
multiples of all edge bytes, by the first search and by the next, which begins with the blocks that the first has left):

=========== ===== ===== ===== ===== =====
blocks held 0 %   10 %  25 %  50 %  90 %
=========== ===== ===== ===== ===== =====
first       1.39  1.38  1.35  1.26  1.17
next        1.40  1.29  1.11  0.78  0.25
=========== ===== ===== ===== ===== =====

So within one search it saves little: a page is read again only because its rows are in frontiers of different levels, 1.4 times on
average. Between searches it saves what it holds.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np

from oocgraph.kernels import pieces
from oocgraph.store.arrays import PlainArray, StoredArray
from oocgraph.store.gather import EdgeFiles, Gatherer
from oocgraph.store.row_gatherer import EdgeSource, RowGatherer
from oocgraph.types import Array

BLOCK_BYTES = 64 << 10
"""A block of edges."""

STAGED_EDGES = 1 << 20
"""Edges read at once that are not held."""

NUM_PIECES = 1 << 15
"""Pieces of rows expanded at once."""

GAP_PAGES = 1
"""Pages read though not needed, to join two reads."""

Expand = Callable[[Array, Array, Array, bool, Array], None]
"""Called with rows, where their edges begin and end, whether that is by row, and the edges."""


@dataclass(slots=True)
class Staging:
    """What one thread needs to expand rows whose edges are not all held.

    Attributes
    ----------
    held, missing : (NUM_PIECES, 3) int64
    edges : (STAGED_EDGES,) index dtype
    """

    held: Array
    missing: Array
    edges: Array
    wanted: Array = field(default_factory=lambda: np.empty(NUM_PIECES, np.int64))

    @classmethod
    def make(cls, dtype: np.dtype[np.generic]) -> Staging:
        """Allocate."""
        return cls(np.empty((NUM_PIECES, 3), np.int64), np.empty((NUM_PIECES, 3), np.int64), np.empty(STAGED_EDGES, dtype))


def staging_bytes(itemsize: int) -> int:
    """Bytes of a `Staging`, and of what is copied from its pieces."""
    return 2 * (2 * NUM_PIECES * 24) + NUM_PIECES * 8 + STAGED_EDGES * itemsize


class LocalEdges:
    """Edges of one part.

    Parameters
    ----------
    array
        ``indices`` of the part.
    indptr : (num_rows + 1,) int64
        Its row pointers.
    num_slots
        Blocks that may be held; all are then read at once where that is enough.
    gatherer
        Reads what is not held; None where all is.

    Attributes
    ----------
    num_bytes_read : int
        Bytes requested of the part's files.
    num_loaded : int
        Blocks held.
    """

    def __init__(self, array: StoredArray, indptr: Array, *, num_slots: int, gatherer: Gatherer | None) -> None:
        self.array, self.indptr, self._gatherer = array, indptr, gatherer
        self.dtype = array.dtype.newbyteorder("=")
        self._shift = (BLOCK_BYTES // self.dtype.itemsize).bit_length() - 1
        self.num_blocks = num_blocks(array.length, self.dtype.itemsize)
        self.all_resident = num_slots >= self.num_blocks
        self.num_bytes_read = self.num_loaded = 0
        self._files: EdgeFiles | None = None
        if self.all_resident:
            self._edges = array.read(0, array.length).astype(self.dtype, copy=False)
            self.num_loaded = self.num_blocks
        else:
            self._edges = np.empty(num_slots << self._shift, self.dtype)
            self._slot_of = np.full(self.num_blocks, -1, np.int32)
            if isinstance(array, PlainArray):
                self._files = EdgeFiles(array, stream_direct=False)

    @property
    def num_slots(self) -> int:
        """Blocks that may be held."""
        return self.num_blocks if self.all_resident else self._edges.size >> self._shift

    def cut(self, rows: Array, max_ranges: int, min_edges: int) -> list[tuple[int, int]]:
        """Cut rows into ranges of about equal numbers of edges, for threads; one where edges have to be read."""
        if not self.all_resident or max_ranges < 2 or rows.size < 2:
            return [(0, rows.size)]
        ends = np.cumsum(self.indptr[rows.astype(np.int64) + 1] - self.indptr[rows])
        ranges = min(max_ranges, max(1, int(ends[-1]) // min_edges))
        at = [0, *np.searchsorted(ends, np.arange(1, ranges) * (int(ends[-1]) // ranges)).tolist(), rows.size]
        return [(a, z) for a, z in pairwise(at) if a < z]

    def pieces(self, rows: Array, expand: Expand, staging: Staging | None) -> None:
        """Have all edges of rows expanded.

        Parameters
        ----------
        rows : (n,) uint32
            Ascending.
        expand
            Called for each array of edges that holds some.
        staging
            Not needed where all edges are held.
        """
        if self.all_resident:
            expand(rows, self.indptr[:-1], self.indptr[1:], True, self._edges)
            return
        assert staging is not None
        self._load_blocks(rows, staging.wanted)
        at, counts = np.zeros(2, np.int64), np.zeros(3, np.int64)
        while at[0] < rows.size:
            pieces.cut_pieces(rows, at, self.indptr, self._slot_of, self._shift, staging.held, staging.missing, staging.edges.size, counts)
            num_held, num_missing, staged = counts.tolist()
            if num_held:
                held = staging.held[:num_held]
                expand(held[:, 0].astype(np.uint32), held[:, 1].copy(), held[:, 2].copy(), False, self._edges)
            if num_missing:
                missing = staging.missing[:num_missing]
                offset = np.concatenate([[0], np.cumsum(missing[:, 2] - missing[:, 1])])
                self._read(missing[:, 1].copy(), offset, staging.edges[:staged])
                expand(missing[:, 0].astype(np.uint32), offset[:-1], offset[1:], False, staging.edges)

    def _load_blocks(self, rows: Array, wanted: Array) -> None:
        """Read the blocks that rows are in, as many as there is room for."""
        while free := self.num_slots - self.num_loaded:
            count = pieces.mark_blocks(rows, self.indptr, self._slot_of, self._shift, wanted[:free])
            if not count:
                return
            blocks, length = wanted[:count], 1 << self._shift
            start = blocks << self._shift
            sizes = np.minimum(length, self.array.length - start)  # the last block may be short; it is the last in memory then, too
            offset = np.concatenate([[0], np.cumsum(sizes)])
            base = self.num_loaded << self._shift
            self._read(start, offset, self._edges[base : base + int(offset[-1])])
            self._slot_of[blocks] = np.arange(self.num_loaded, self.num_loaded + count)
            self.num_loaded += count

    def _read(self, start: Array, offset: Array, out: Array) -> None:
        assert self._gatherer is not None
        source = EdgeSource(self._edges[:0], self._files, None if self._files is not None else self.array)
        gather = RowGatherer(self._gatherer, source, start, offset, GAP_PAGES, False)
        self.num_bytes_read += gather(0, int(offset[-1]), out)

    def close(self) -> None:
        """Close the files."""
        if self._files is not None:
            self._files.close()
            self._files = None
        self._edges = self._edges[:0]


def num_blocks(num_edges: int, itemsize: int) -> int:
    """Blocks of some edges."""
    return -(-num_edges * itemsize // BLOCK_BYTES)


__all__ = ["BLOCK_BYTES", "LocalEdges", "Staging", "num_blocks", "staging_bytes"]
