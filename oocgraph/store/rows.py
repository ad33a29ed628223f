"""Streams over the rows of a stored CSR: blocks of bounded size, read and worked on by a few threads.

In: a store and a group (``out`` or ``in``). Out: `RowBlock`, a range of ``indices`` with the piece of ``indptr`` that
covers it; a range starts and ends anywhere in a row unless whole rows are asked for.
Used by whatever must see every edge once: validation, checks, export. A search never does.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, islice
from typing import TypeVar

import numpy as np

from oocgraph.errors import CorruptStoreError
from oocgraph.pool import Pool
from oocgraph.store.arrays import PlainArray, StoredArray, decoded_bytes
from oocgraph.store.graph_arrays import GraphArrays
from oocgraph.types import Array

BLOCK_ROWS = 1 << 19
"""Entries of ``indptr`` read at once: 4 MiB."""

_T = TypeVar("_T")
_R = TypeVar("_R")


@dataclass(frozen=True, slots=True)
class RowBlock:
    """Entries ``start .. stop - 1`` of ``indices`` and the rows that hold them.

    Attributes
    ----------
    first_row
        Row of entry `start`.
    indptr : (num_rows + 1,) int64
        Of those rows, as stored: the first row may begin before `start`, the last may end after `stop`.
    start, stop
        Range of entries, not empty.
    """

    first_row: int
    indptr: Array
    start: int
    stop: int

    @property
    def num_entries(self) -> int:
        """Length of the range."""
        return self.stop - self.start

    def rows(self) -> Array:
        """Row of each entry: (num_entries,) int64."""
        bounds = np.clip(self.indptr, self.start, self.stop)
        return np.repeat(np.arange(self.first_row, self.first_row + self.indptr.size - 1), np.diff(bounds))


def offset_blocks(store: GraphArrays, group: str, block_rows: int = BLOCK_ROWS) -> Iterator[tuple[int, Array]]:
    """Iterate over consecutive rows: the first of each block, and its piece of ``indptr``, (num_rows + 1,) int64."""
    indptr, num_rows = store.array(f"{group}/indptr"), store.num_rows
    for first in range(0, num_rows, block_rows):
        yield first, indptr.read(first, min(num_rows, first + block_rows) + 1)


def row_blocks(store: GraphArrays, group: str, *, max_entries: int, whole_rows: bool) -> Iterator[RowBlock]:
    """Cut the entries of a group into consecutive blocks.

    Parameters
    ----------
    group
        ``out`` or ``in``.
    max_entries
        Most entries of a block; with `whole_rows` a longer row is a block alone.

    Raises
    ------
    CorruptStoreError
        ``indptr`` is not ascending from 0 to the length of ``indices``.
    """
    num_entries, stop = store.array(f"{group}/indices").length, 0
    for first, part in offset_blocks(store, group):
        if part[0] != stop:  # it has changed since the piece before was read
            raise damaged_rows(store, group)
        while stop < part[-1]:
            start = stop
            low = int(np.searchsorted(part, start, side="right")) - 1
            stop = min(start + max_entries, int(part[-1]))
            if whole_rows:
                stop = int(part[max(low + 1, int(np.searchsorted(part, stop, side="right")) - 1)])
            high = int(np.searchsorted(part, stop))
            yield RowBlock(first + low, part[low : high + 1], start, stop)
    if stop != num_entries:
        raise damaged_rows(store, group)


def degree_blocks(store: GraphArrays, group: str, num_rows: int = BLOCK_ROWS) -> Iterator[tuple[int, Array]]:
    """Count the entries of all rows of a group, up to `num_rows` at once: first row of a block, and the counts."""
    for first, offsets in offset_blocks(store, group, num_rows):
        yield first, np.diff(offsets)


def declared_degrees(store: GraphArrays, group: str, num_rows: int = BLOCK_ROWS) -> Iterator[tuple[int, Array]]:
    """Iterate as `degree_blocks` does, without reading ``indptr`` where the classes of degrees tell."""
    if not are_by_degree(store, group):
        yield from degree_blocks(store, group, num_rows)
        return
    value, first = store.degree_classes
    ends = np.append(first, store.num_rows)
    for start in range(0, store.num_rows, num_rows):
        yield start, np.repeat(value, np.diff(np.clip(ends, start, start + num_rows)))


def are_by_degree(store: GraphArrays, group: str) -> bool:
    """Whether the rows of a group are sorted by their lengths, so that the classes of degrees tell where each is."""
    return store.attributes.vertex_order == "degree" and group == store.pull_group


def longest_row(store: GraphArrays, group: str) -> tuple[int, int]:
    """Return the first of the rows with most entries, and their number; (0, 0) where there is none."""
    if are_by_degree(store, group):
        return 0, int(store.degree_classes[0][:1].sum())
    row = most = 0
    for first, degree in degree_blocks(store, group):
        at = int(degree.argmax())
        if degree[at] > most:
            row, most = first + at, int(degree[at])
    return row, most


def damaged_rows(store: GraphArrays, group: str) -> CorruptStoreError:
    """Return the error of an ``indptr`` that no rows can be read by."""
    return CorruptStoreError(
        f"{store.url}: {group}/indptr does not ascend from 0 to the length of {group}/indices; "
        "`oocgraph check` tells where, restore the store or build it again"
    )


def edge_blocks(store: GraphArrays, group: str, names: Sequence[str], max_entries: int) -> Iterator[tuple[RowBlock, list[Array]]]:
    """Read some columns of a group's entries block by block: each block, and its part of each column, valid until the next one is read."""
    arrays = [store.array(f"{group}/{name}") for name in names]
    buffers = [np.empty(max_entries, array.dtype.newbyteorder("=")) for array in arrays]
    for block in row_blocks(store, group, max_entries=max_entries, whole_rows=False):
        yield block, [read_entries(array, block, buffer) for array, buffer in zip(arrays, buffers, strict=True)]


def edge_block_bytes(store: GraphArrays, group: str, names: Sequence[str], max_entries: int) -> int:
    """Return what `edge_blocks` holds, at the most."""
    arrays = [store.array(f"{group}/{name}") for name in names]
    return sum(max_entries * array.dtype.itemsize + decoded_bytes(array) for array in arrays) + 64 * BLOCK_ROWS


def read_entries(array: StoredArray, block: RowBlock, buffer: Array) -> Array:
    """Read a block of ``indices``, into `buffer` where the array can (a fresh 4 MiB costs a thousand page faults)."""
    if isinstance(array, PlainArray) and buffer.size >= block.num_entries:
        entries = buffer[: block.num_entries]
        array.read_into(block.start, entries)
        return entries
    return array.read(block.start, block.stop)


def map_bounded(function: Callable[[_T], _R], items: Iterable[_T], num_threads: int) -> Iterator[_R]:
    """Map with a few threads, results in order, at most two items a thread taken from `items` ahead. A single item needs no thread.

    Examples
    --------
    >>> list(map_bounded(abs, [-1, 2, -3], 2))
    [1, 2, 3]
    """
    left = iter(items)
    if len(first := list(islice(left, 2))) < 2:
        yield from map(function, first)
        return
    with Pool(num_threads, "oocgraph-rows") as pool:
        yield from pool.map(function, chain(first, left), 2 * num_threads - 1)
