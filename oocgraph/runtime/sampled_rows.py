"""The rows of chosen vertices of a stored graph, piece by piece: for whoever looks at a part of the edges, or once at all of them.

In: a store, and which vertices. Out: `RowReader.pieces`, an iterator of bounded pieces of whole rows. Nothing of O(edges) is held; a
stratum of one byte a vertex is.
"""

from __future__ import annotations

from collections.abc import Iterator
from types import TracebackType
from typing import NamedTuple, Self

import numpy as np

from oocgraph.errors import CorruptStoreError
from oocgraph.runtime.engine import BUFFER_BYTES
from oocgraph.store.arrays import PlainArray
from oocgraph.store.graph import CSRStore
from oocgraph.store.rows import BLOCK_ROWS
from oocgraph.subgraph.gather import EdgeFiles, Gatherer
from oocgraph.subgraph.rows import EdgeSource, RowGatherer
from oocgraph.types import Array

PIECE_EDGES = 1 << 20
"""Entries of a piece; a longer row is a piece alone."""

GAP_PAGES = 1
"""Pages read though not needed, to join two reads."""

NOT_CHOSEN = 255
"""Stratum of vertices that are not looked at."""


class Piece(NamedTuple):
    """Whole rows of some vertices.

    Attributes
    ----------
    vertices : (n,) int64
        Ascending.
    stratum : (n,) uint8
        Of each.
    offset : (n + 1,) int64
        Where the neighbours of each are in `edges`.
    edges : index dtype
        Valid until the next piece.
    """

    vertices: Array
    stratum: Array
    offset: Array
    edges: Array


class RowReader:
    """Reads rows of one group of a store. Use it in a ``with`` statement.

    Parameters
    ----------
    store
        The graph.
    group
        ``out`` or ``in``.
    io_threads
        Reading threads.
    """

    def __init__(self, store: CSRStore, group: str, *, io_threads: int) -> None:
        self.store, self.group = store, group
        self._indptr, self._array = store.array(f"{group}/indptr"), store.array(f"{group}/indices")
        self._gatherer = Gatherer(io_threads, BUFFER_BYTES)
        self._files = EdgeFiles(self._array, stream_direct=False) if isinstance(self._array, PlainArray) else None
        stored = None if self._files is not None else self._array
        self._source = EdgeSource(np.empty(0, store.index_dtype), self._files, stored)
        self._buffer = np.empty(PIECE_EDGES, store.index_dtype)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._gatherer.close()
        if self._files is not None:
            self._files.close()

    def indptr_blocks(self) -> Iterator[tuple[int, Array]]:
        """Iterate over first vertex and offsets, (k + 1,) int64, of consecutive vertices."""
        n = self.store.num_vertices
        for first in range(0, n, BLOCK_ROWS):
            yield first, self._indptr.read(first, min(n, first + BLOCK_ROWS) + 1).astype(np.int64, copy=False)

    def pieces(self, stratum: Array | None) -> Iterator[Piece]:
        """Read the rows of chosen vertices.

        Parameters
        ----------
        stratum : (num_vertices,) uint8, or None
            `NOT_CHOSEN` where the row is not read; None: all rows are, as stratum 0.

        Raises
        ------
        CorruptStoreError
            The store cannot be read, or a neighbour is no vertex.
        """
        for first, pointers in self.indptr_blocks():
            here = np.zeros(pointers.size - 1, np.uint8) if stratum is None else stratum[first : first + pointers.size - 1]
            rows = np.flatnonzero(here != NOT_CHOSEN)
            start, ends = pointers[rows], np.cumsum(pointers[rows + 1] - pointers[rows])
            low = 0
            while low < rows.size:
                done = int(ends[low - 1]) if low else 0
                high = max(low + 1, int(np.searchsorted(ends, done + PIECE_EDGES, side="right")))
                offset = np.concatenate([[0], ends[low:high] - done])
                yield Piece(first + rows[low:high], here[rows[low:high]], offset, self._read(start[low:high], offset))
                low = high

    def _read(self, start: Array, offset: Array) -> Array:
        size = int(offset[-1])
        out = self._buffer[:size] if size <= self._buffer.size else np.empty(size, self._buffer.dtype)
        RowGatherer(self._gatherer, self._source, start, offset, GAP_PAGES, False)(0, size, out)
        if size and (int(out.max()) >= self.store.num_vertices or int(out.min()) < 0):
            raise CorruptStoreError(
                f"{self.store.url}: a neighbour in {self.group}/indices is {int(out.max()):,}, but there are {self.store.num_vertices:,} "
                "vertices; run `oocgraph check`, then restore the store or build it again"
            )
        return out


def count_edges_by(reader: RowReader, key: Array, num_keys: int) -> Array:
    """Return the entries of the rows of vertices with each key: (num_keys,) int64.

    Parameters
    ----------
    key : (num_vertices,) integers
        Negative: not counted.
    """
    total = np.zeros(num_keys + 1, np.float64)  # whole numbers, exact below 2**53
    for first, pointers in reader.indptr_blocks():
        here = key[first : first + pointers.size - 1].astype(np.int64) + 1
        total += np.bincount(np.maximum(here, 0), weights=np.diff(pointers), minlength=num_keys + 1)
    return total[1:].astype(np.int64)
