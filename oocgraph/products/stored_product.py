"""A stored graph times vectors in store order: its neighbours are streamed in pieces, as many of which stay in memory as the budget allows.

In: a store, a budget that is charged before anything is read. Out: `StoredProduct`, which multiplies any number of vectors. A piece is a
`PartialCSR` that is cut anywhere; more threads than cores take pieces, so that some read while others multiply.
"""

from __future__ import annotations

import queue
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from oocgraph.kernels.semirings import Semiring
from oocgraph.memory import Budget
from oocgraph.products.product import multiply
from oocgraph.products.product_checks import refuse_nan
from oocgraph.sparse.balanced import balanced_partition, cut
from oocgraph.sparse.partial import PartialCSR
from oocgraph.sparse.stored import StoredMatrix
from oocgraph.store.arrays import PlainArray, decoded_bytes
from oocgraph.store.graph import CSRStore
from oocgraph.types import Array

PIECE_BYTES = 2 << 20
"""Neighbours read at once. Pieces of 1, 2 and 4 MiB took the same time (Kronecker graph of scale 22, uncached: 0.94 to 1.05 times the
bandwidth of one sequential reader of the same chunks); larger ones only cost memory."""

READ_AHEAD = 2
"""Threads beyond those that multiply, which read meanwhile."""


class StoredProduct:
    """The matrix of a graph, by which vectors in store order are multiplied.

    Parameters
    ----------
    store
        The graph.
    budget
        Charged with what is held; nothing of the edges has been read by then.
    transpose
        Multiply by the transpose: a directed graph's ``in`` lists.
    column
        Stored edge column of the values; None: all are one.
    threads
        Threads that multiply.
    keep_edges
        Keep pieces for the next product, as many as the budget has room for.
    entries
        First nonzero and the one behind the last, of a part of the matrix; by default all of it.

    Attributes
    ----------
    part : PartialCSR
        What is multiplied.
    parts : list of PartialCSR
        Its pieces.
    bytes_requested : int
        Asked of the store's files by all products so far.

    Raises
    ------
    BudgetError
        The pieces in work do not fit.
    """

    def __init__(
        self, store: CSRStore, budget: Budget, *, transpose: bool, column: str | None, threads: int, keep_edges: bool = False,
        entries: tuple[int, int] | None = None,
    ) -> None:  # fmt: skip
        self.store, self.column, self.threads, self.bytes_requested = store, column, threads, 0
        self._direct = False  # whether pieces are read around the page cache
        matrix = stored_matrix(store, transpose=transpose, column=column)
        self.part = part_of(matrix, entries)
        self.parts: list[PartialCSR] = cut(self.part, _bounds(self.part))
        self._num_workers = min(threads + READ_AHEAD, max(1, len(self.parts)))
        self._lengths = {
            name: max(getattr(part, name).size for part in self.parts)
            for name in ("indices", "values", "pointers")
            if _has(self.parts, name)
        }
        slices = {"indices": matrix.indices, "values": matrix.data, "pointers": matrix.indptr}
        worker_bytes = sum(_held_bytes(slices[name], length) for name, length in self._lengths.items())
        budget.reserve("pieces of edges", self._num_workers * worker_bytes + matrix.indptr.page_bytes)
        self._kept: dict[int, PartialCSR] = {}
        self._num_kept = self._keep(budget) if keep_edges else 0
        self._buffers: queue.SimpleQueue[dict[str, Array]] = queue.SimpleQueue()
        for _ in range(self._num_workers):
            self._buffers.put({})

    @property
    def num_kept(self) -> int:
        """Pieces that stay in memory once they were read."""
        return self._num_kept

    def multiply(self, x: Array, y: Array, semiring: Semiring) -> None:
        """Add the product to `y`.

        Parameters
        ----------
        x : (num_vertices,) float32 or float64; uint8 in ``or_and``
            In store order.
        y : (rows of the part,) like `x`
            The first may have been begun by an earlier part: then what is added to it is only this part's share of it.

        Raises
        ------
        CorruptStoreError
            The store cannot be read, or a neighbour is no vertex.
        """
        all_kept = len(self._kept) == len(self.parts)

        def visit(i: int, use: Callable[[PartialCSR], Array]) -> Array:
            if i in self._kept:
                return use(self._kept[i])
            if i < self._num_kept:
                self._kept[i] = self._read(self.parts[i], None, semiring)
                return use(self._kept[i])
            buffers = self._buffers.get()
            try:
                return use(self._read(self.parts[i], buffers, semiring))
            finally:
                self._buffers.put(buffers)

        threads = self.threads if all_kept else self._num_workers
        multiply(self.parts, x, y, semiring, threads=threads, visit=visit, first_row=self.part.first_line)

    def values(self) -> Iterator[tuple[int, Array]]:
        """Iterate over the values of all edges, read again: first position and values of each piece."""
        for part in self.parts:
            if part.values is not None:
                yield part.start, part.values.read()

    def _read(self, part: PartialCSR, buffers: dict[str, Array] | None, semiring: Semiring) -> PartialCSR:
        if buffers is not None and not buffers and isinstance(part.indices.array, PlainArray):
            buffers |= {name: np.empty(length, getattr(part, name).dtype) for name, length in self._lengths.items()}
        loaded = read_piece(part, buffers, self.store, self.column, semiring, direct=self._direct)
        self.bytes_requested += part.entry_bytes + part.pointers.nbytes
        return loaded

    def _keep(self, budget: Budget) -> int:
        """Reserve room for as many pieces, from the first, as there is; return how many."""
        ends = np.cumsum([part.entry_bytes + part.pointers.nbytes for part in self.parts])
        num_kept = int(np.searchsorted(ends, budget.available_bytes, side="right"))
        if num_kept:
            budget.reserve("resident edges", int(ends[num_kept - 1]))
        return num_kept


def stored_matrix(store: CSRStore, *, transpose: bool, column: str | None) -> StoredMatrix:
    """Return the adjacency matrix of a graph, or its transpose; an undirected graph's is the same."""
    return StoredMatrix(store, "in" if transpose and store.attributes.directed else "out", column)


def part_of(matrix: StoredMatrix, entries: tuple[int, int] | None) -> PartialCSR:
    """Return the part that has these nonzeros; None: all."""
    if entries is None:
        (part,) = balanced_partition(matrix, 1)
    else:
        _, part, _ = cut(matrix, [0, *entries, matrix.indices.size])
    assert isinstance(part, PartialCSR)
    return part


def read_piece(
    part: PartialCSR, buffers: dict[str, Array] | None, store: CSRStore, column: str | None, semiring: Semiring, *, direct: bool = False
) -> PartialCSR:  # fmt: skip
    """Read a part of a stored matrix, into `buffers` where given (`direct`: around the page cache).

    Raises
    ------
    CorruptStoreError
        It cannot be read, or a neighbour is no vertex.
    OocGraphError
        A value is NaN, in a semiring that would not hand it on.
    """
    loaded = part.load(buffers, direct=direct)
    if semiring.is_boolean and loaded.values is not None:
        refuse_nan([(part.start, loaded.values)], f"{column} of {store.url}")  # sums hand a NaN on, this semiring does not
    return loaded


def _has(parts: list[PartialCSR], name: str) -> bool:
    return getattr(parts[0], name) is not None


def _held_bytes(slice_: Any, length: int) -> int:
    """Bytes that a thread holds to read `length` elements: a buffer, or what is decoded."""
    return decoded_bytes(slice_.array, length) or int(length * slice_.dtype.itemsize)


def _bounds(part: PartialCSR) -> list[int]:
    """Where pieces begin: inside of chunk files, or at chunks that are decoded as a whole."""
    length = max(1, PIECE_BYTES // part.indices.dtype.itemsize)
    if not isinstance(part.indices.array, PlainArray):
        length = max(1, part.indices.array.chunk_length)
    return [part.start, *range((part.start // length + 1) * length, part.stop, length), part.stop]
