"""A stored graph's edges, piece by piece, to any function: as often as wanted, as many pieces kept as the budget allows.

In: a store, a budget that is charged before anything is read. Out: `EdgeStream.each`, which hands every piece to a function in one of
several threads: more than cores, so that some read while others compute. A piece is a `PartialCSR` that is cut anywhere. Pieces that are
kept are visited between those that are read, so that neither the disk nor the processor waits for the other.

The others are read in the same order again and again: a page cache that does not hold all of them has each page driven out before it
is asked for again. They are then read around it (`EdgeStream.read_directly`): under a cap of 400 MiB the PageRank of a Kronecker graph of
scale 22 took 0.24 to 0.46 s an iteration in this way, 0.39 to 0.53 s through the cache, and half the processor's time inside of the kernel.
"""

from __future__ import annotations

import queue
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, TypeVar

import numpy as np

from oocgraph.memory import Budget
from oocgraph.sparse.balanced import balanced_partition, cut
from oocgraph.sparse.partial import PartialCSR
from oocgraph.sparse.stored import StoredMatrix
from oocgraph.store.arrays import aligned, decoded_bytes
from oocgraph.store.graph import CSRStore
from oocgraph.store.rows import damaged_rows
from oocgraph.team import team_of
from oocgraph.types import PAGE_BYTES, Array

PIECE_BYTES = 2 << 20
"""Neighbours read at once. Pieces of 1, 2 and 4 MiB took the same time (Kronecker graph of scale 22, uncached: 0.94 to 1.05 times the
bandwidth of one sequential reader of the same chunks); larger ones only cost memory."""

READ_AHEAD = 2
"""Threads beyond those that compute, which read meanwhile."""

Ranges = Mapping[int, Array | None]
"""Pieces that are needed, by number, and the rows of each: (num_ranges, 2) int64, or None for all."""

_ALIGNED = ("indices", "values")
"""What of a piece lies in whole pages of its file."""

_T = TypeVar("_T")


class EdgeStream:
    """The edges of a graph, or a range of them, as pieces of its adjacency matrix in store order.

    Parameters
    ----------
    store
        The graph.
    budget
        Charged with what is held; nothing of the edges has been read by then.
    transpose
        Of the transpose: a directed graph's ``in`` lists.
    column
        Stored edge column of the values; None: all are one.
    threads
        Threads that compute.
    keep_edges
        Keep pieces for the next time, as many as the budget has room for.
    entries
        First edge and the one behind the last; by default all.
    resident
        Neighbours of the first edges, which are in memory elsewhere: pieces of these are kept without another copy.
    whole_rows
        Cut between rows, not inside of one: the longest row is then a piece at least.

    Attributes
    ----------
    part : PartialCSR
        All of them, unread.
    parts : list of PartialCSR
        The pieces, unread.
    values_name : str
        The values, in messages.
    bytes_requested : int
        Asked of the store's files so far.
    num_loans : int
        How often buffers were lent (`lend_buffers`), or were taken back.

    Raises
    ------
    BudgetError
        The pieces in work do not fit.
    """

    def __init__(
        self, store: CSRStore, budget: Budget, *, transpose: bool, column: str | None, threads: int, keep_edges: bool = False,
        entries: tuple[int, int] | None = None, resident: Array | None = None, whole_rows: bool = False,
    ) -> None:  # fmt: skip
        self.threads, self.bytes_requested = threads, 0
        self._store, self._group = store, "in" if transpose and store.attributes.directed else "out"
        self.values_name = f"{column and store.attributes.input_column(column)} of {store.url}"
        self._direct = False  # whether pieces are read around the page cache
        matrix = stored_matrix(store, transpose=transpose, column=column)
        self.part = part_of(matrix, entries)
        bounds = _bounds(self.part)
        self.parts: list[PartialCSR] = cut(self.part, _between_rows(self.part, bounds) if whole_rows else bounds)
        self._is_plain = self.part.indices.array.unit == 1
        self._num_workers = min(threads + READ_AHEAD, max(1, len(self.parts)))
        slices = {"indices": matrix.indices, "pointers": matrix.indptr} | ({} if matrix.data is None else {"values": matrix.data})
        self._held = {name for name, slice_ in slices.items() if slice_.array.is_held}
        self._dtypes = {name: slice_.dtype for name, slice_ in slices.items()}
        self._lengths = {name: max(getattr(part, name).size for part in self.parts) for name in self._dtypes if name not in self._held}
        worker_bytes = sum(decoded_bytes(slices[name].array, n) or n * self._dtypes[name].itemsize for name, n in self._lengths.items())
        self._spare_pages = 2 if whole_rows else 0  # of a piece that begins and ends inside of pages
        worker_bytes += len({*_ALIGNED} - self._held) * (1 + self._spare_pages) * PAGE_BYTES
        budget.reserve("pieces of edges", self._num_workers * worker_bytes + matrix.indptr.page_bytes)
        self._kept: dict[int, PartialCSR] = {}
        self._resident = np.empty(0, self._dtypes["indices"]) if resident is None or entries is not None else resident
        self._num_resident = sum(part.stop <= self._resident.size for part in self.parts) if self._is_plain else 0
        self._num_kept = self._keep(budget) if keep_edges else 0
        kept = self.parts[: self._num_kept] if self._is_plain else []
        self._room_bounds = {
            name: np.cumsum([0, *(getattr(part, name).size * (not self._has(i, name)) for i, part in enumerate(kept))])
            for name in self._dtypes
        }
        self._room = {name: np.empty(self._room_bounds[name][-1], dtype) for name, dtype in self._dtypes.items()}
        self._counting = threading.Lock()
        self._buffers: queue.SimpleQueue[dict[str, Array]] = queue.SimpleQueue()
        for _ in range(self._num_workers):
            self._buffers.put({})
        self._lent: list[dict[str, Array]] = []
        self.num_loans = 0

    @property
    def num_kept(self) -> int:
        """Pieces that stay in memory once they were read."""
        return self._num_kept

    @property
    def edge_bytes(self) -> int:
        """Bytes of all edges."""
        return sum(part.entry_bytes for part in self.parts)

    @property
    def kept_bytes(self) -> int:
        """Bytes of the edges that stay in memory once they were read."""
        return sum(part.entry_bytes for part in self.parts[: self.num_kept])

    @property
    def unkept_bytes(self) -> int:
        """Bytes that are read each time."""
        return sum(self._read_bytes(i) for i in range(self._num_kept, len(self.parts)))

    @property
    def is_direct(self) -> bool:
        """Whether pieces are read around the page cache."""
        return self._direct

    def read_directly(self, cache_bytes: int) -> None:
        """Read around the page cache from now on, if it can hold no more than `cache_bytes` and what is not kept is more."""
        direct = self.unkept_bytes > cache_bytes
        if direct != self._direct:
            self._direct = direct
            self._buffers = queue.SimpleQueue()  # others, at the boundaries of pages
            for _ in range(self._num_workers):
                self._buffers.put({})

    def each(self, use: Callable[[PartialCSR], _T], ranges: Ranges | None = None, *, is_backwards: bool = False) -> list[_T]:
        """Return what `use` makes of every piece, in the order of the pieces.

        Parameters
        ----------
        use
            Called in several threads at once; a piece is in memory for as long as the call lasts.
        ranges
            Of the pieces that are needed alone; the others are not read. Of a piece that is not kept no more than the ranges of rows is
            read, and each of them is given to `use` (`whole_rows`). By default all pieces.
        is_backwards
            Begin with the last piece.

        Raises
        ------
        CorruptStoreError
            The store cannot be read, or a neighbour is no vertex.
        """
        num_parts = len(self.parts)
        needed = range(num_parts) if ranges is None else sorted(ranges)
        rows: Ranges = ranges or {}
        if len(needed) < 2:
            return [one for i in needed for one in self._visit(i, use, rows.get(i))]
        order = _interleaved(self._num_kept, num_parts) if self._kept else list(range(num_parts))
        if is_backwards:
            order.reverse()
        if ranges is not None:
            order = [i for i in order if i in ranges]
        threads = self.threads if all(i in self._kept for i in needed) else self._num_workers
        with team_of(threads) as team:
            made = dict(zip(order, team.run(lambda i: self._visit(i, use, rows.get(i)), order), strict=True))
        return [one for i in needed for one in made[i]]

    def values(self) -> Iterator[tuple[int, Array]]:
        """Iterate over the values of all edges, read again: first position and values of each piece."""
        for part in self.parts:
            if part.values is not None:
                yield part.start, part.values.read()

    def _visit(self, i: int, use: Callable[[PartialCSR], _T], rows: Array | None) -> list[_T]:
        if rows is None or i < self._num_kept or not self._is_plain:
            with self.piece(i) as part:
                return [use(part)]
        found = []
        with self._lent_buffers() as buffers:
            for first, stop in rows.tolist():
                read = self.read_rows(i, first, stop, buffers)
                assert read is not None, "buffers have room for all of a piece"
                found.append(use(read))
        return found

    @contextmanager
    def piece(self, i: int) -> Iterator[PartialCSR]:
        """Yield a piece by its number, in memory; any thread may ask, and waits while as many as are read at once are in use.

        Raises
        ------
        CorruptStoreError
            The store cannot be read, or a neighbour is no vertex.
        """
        if i < self._num_kept:
            if i not in self._kept:
                self._kept[i] = self._read(i, self._room_of(i))
            yield self._kept[i]
            return
        with self._lent_buffers() as buffers:
            yield self._read(i, buffers)

    @property
    def can_lend(self) -> bool:
        """Whether there is memory into which pieces of neighbours alone are read."""
        return self._is_plain and {"indices", "pointers"} == {*self._lengths}

    def lend_buffers(self) -> list[dict[str, Array]]:
        """Lend the memory into which pieces are read, for rows that are read meanwhile (`read_rows`); none, if not `can_lend`.

        Once a piece is read, or it is lent again, `num_loans` is another number, and what is in the memory another's.
        """
        self._take_back()
        if self.can_lend:
            for _ in range(self._num_workers):
                self._lent.append(self._buffers.get())
                self._make(self._lent[-1])
        return self._lent

    def _take_back(self) -> None:
        with self._counting:
            self.num_loans += bool(self._lent)
            for buffers in self._lent:
                self._buffers.put(buffers)
            self._lent = []

    @contextmanager
    def _lent_buffers(self) -> Iterator[dict[str, Array]]:
        self._take_back()
        buffers = self._buffers.get()
        try:
            self._make(buffers)
            yield buffers
        finally:
            self._buffers.put(buffers)

    def _make(self, buffers: dict[str, Array]) -> None:
        if not buffers and self._is_plain:
            buffers |= {name: self._buffer(name) for name in self._lengths}

    def read_rows(self, i: int, first: int, stop: int, buffers: Mapping[str, Array]) -> PartialCSR | None:
        """Read rows ``first .. stop - 1`` of a piece, through the page cache; None, where `buffers` have no room for their neighbours.

        Raises
        ------
        CorruptStoreError
            The store cannot be read, rows are not where the piece is, or a neighbour is no vertex.
        """
        part = self.parts[i]
        pointers = part.pointers[first - part.first_line : stop + 1 - part.first_line].read(buffers.get("pointers"))
        start, end = pointers.item(0), pointers.item(-1)
        if not part.start <= start <= end <= part.stop:
            raise damaged_rows(self._store, self._group)
        if "indices" in buffers and end - start > buffers["indices"].size:
            return None
        here = slice(start - part.start, end - part.start)
        unread = replace(
            part, start=start, stop=end, first_line=first, stop_line=stop, pointers=pointers,
            values=None if part.values is None else part.values[here],
            indices=self._resident[start:end] if i < self._num_resident else part.indices[here],
        )  # fmt: skip
        rows = unread.load(buffers)
        with self._counting:
            self.bytes_requested += sum(array.nbytes for name, array in _fields(rows) if not self._has(i, name))
        return rows

    def _read(self, i: int, buffers: dict[str, Array]) -> PartialCSR:
        part = self.parts[i]
        unread = part if i >= self._num_resident else replace(part, indices=self._resident[part.start : part.stop])
        loaded = unread.load(buffers, direct=_ALIGNED if self._direct else ())
        with self._counting:
            self.bytes_requested += self._read_bytes(i)
        return loaded

    def _read_bytes(self, i: int) -> int:
        return sum(int(slice_.nbytes) for name, slice_ in _fields(self.parts[i]) if not self._has(i, name))

    def _buffer(self, name: str) -> Array:
        """Return memory for one field of any piece; at a page boundary where it is read around the page cache."""
        length, dtype = self._lengths[name], self._dtypes[name]
        if self._direct and name in _ALIGNED:
            return aligned(length + self._spare_pages * PAGE_BYTES // dtype.itemsize, dtype)
        return np.empty(length, dtype)

    def _room_of(self, i: int) -> dict[str, Array]:
        """Return where a piece that is kept is read to: places in one large array each, which goes back to the system as a whole.

        (Of arrays of 2 MiB, made in several threads, the allocator kept 180 MB for itself after the end, and a second run did not fit.)
        """
        return {
            name: self._room[name][at[i] : at[i + 1]]
            for name, at in self._room_bounds.items()
            if i + 1 < at.size and not self._has(i, name)
        }

    def _has(self, i: int, name: str) -> bool:
        """Whether a field of a piece is in memory elsewhere."""
        return name in self._held or (name == "indices" and i < self._num_resident)

    def _keep(self, budget: Budget) -> int:
        """Reserve room for as many pieces, from the first, as there is; return how many."""
        ends = np.cumsum([self._read_bytes(i) for i in range(len(self.parts))])
        num_kept = int(np.searchsorted(ends, budget.available_bytes, side="right"))
        if num_kept:
            budget.reserve("resident edges", int(ends[num_kept - 1]))
        return num_kept


def _fields(part: PartialCSR) -> list[tuple[str, Any]]:
    """Return what a piece has: names and slices."""
    named = {"pointers": part.pointers, "indices": part.indices, "values": part.values}
    return [(name, slice_) for name, slice_ in named.items() if slice_ is not None]


def pieces_bytes(store: CSRStore, **options: Any) -> int:
    """Return what an `EdgeStream` with these options holds at least."""
    alone = Budget(sys.maxsize, baseline_bytes=0)
    EdgeStream(store, alone, **options)
    return alone.reserved_bytes


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


def _bounds(part: PartialCSR) -> list[int]:
    """Where pieces begin: inside of chunk files, or at chunks that are decoded as a whole."""
    array = part.indices.array
    length = max(1, PIECE_BYTES // array.dtype.itemsize) if array.unit == 1 else array.unit
    return [part.start, *range((part.start // length + 1) * length, part.stop, length), part.stop]


def _between_rows(part: PartialCSR, bounds: list[int]) -> list[int]:
    """Move where pieces begin back to where their rows begin."""
    rows, _ = part.pointers.last_at_most(bounds[1:-1])
    first, last = bounds[0], bounds[-1]
    return [first, *sorted({int(part.pointers[row]) for row in rows} - {first}), last]


def _interleaved(num_kept: int, num_parts: int) -> list[int]:
    """Order of visit: pieces that are kept spread evenly between those that are read.

    Examples
    --------
    >>> _interleaved(2, 6)
    [2, 0, 3, 4, 1, 5]
    """
    num_read = num_parts - num_kept
    kept = [((i + 0.5) / num_kept, i) for i in range(num_kept)]
    return [i for _, i in sorted(kept + [((i + 0.5) / num_read, num_kept + i) for i in range(num_read)])]
