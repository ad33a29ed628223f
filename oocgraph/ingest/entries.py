"""Temporary files of entries by range of rows, without columns, in about three bytes each (`oocgraph.kernels.entries` has the format).

In: blocks of sorted edges under provisional ids, from any thread, and the ranks, which stay in memory until the files are read. Out: the
entries of a range of rows as keys ``row << bits | col`` of store numbers, in any order.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np

from oocgraph.compiled.intrinsics import SPARE_BYTES
from oocgraph.external_sort.key_bins import KeyBins
from oocgraph.external_sort.temporary import Folder, NumberedFiles, read_into
from oocgraph.external_sort.workers import Scratch
from oocgraph.kernels.entries import (
    ENTRIES,
    HEADER_BYTES,
    LEAST_BYTES,
    LISTS,
    column_form,
    measure_entries,
    measure_lists,
    read_slices,
    whole_slices,
    write_entries,
    write_lists,
)
from oocgraph.store.files import write_views
from oocgraph.store.records import Records
from oocgraph.types import Array


@dataclass(frozen=True, slots=True)
class RowRanges:
    """Consecutive ranges of keys that begin with a row.

    Attributes
    ----------
    starts
        First key of each range, and the end of the last.
    """

    starts: tuple[int, ...]

    @property
    def num_bins(self) -> int:
        """Number of ranges."""
        return len(self.starts) - 1


class EntryFiles(NumberedFiles):
    """One temporary file per range of rows; read like `oocgraph.external_sort.bins.BinFiles` without columns.

    Parameters
    ----------
    folder
        Made if it does not exist; one per instance.
    rows
        Ranges of rows, as store numbers.
    bits
        Bits of a store number in a key.
    rank : (num_ids,) uint32
        Store number of each provisional id.
    """

    columns: tuple[Any, ...] = ()

    def __init__(self, folder: Folder, rows: KeyBins, bits: int, rank: Array) -> None:
        super().__init__(folder, rows.num_bins)
        self.bins, self.table, self.rank = RowRanges(tuple(start << bits for start in rows.starts)), rows.table, rank
        self.firsts = np.array(rows.starts[:-1], np.int64)
        self.row_bytes = np.array([_bytes_of(stop - start) for start, stop in pairwise(rows.starts)], np.int64)
        self.column_form, self.bits = column_form(bits), np.uint64(bits)
        self.counts = np.zeros(rows.num_bins, np.int64)

    def append(self, counts: Array, slices: Sequence[Slices]) -> None:
        """Write the slices of a block, those of a bin in one call; `counts` are the entries of each bin."""
        with self._lock:
            self.counts += counts
        for index in np.flatnonzero(counts).tolist():
            write_views(self.fd(index), [view for one in slices for view in one.of(index)])

    def read(self, index: int, scratch: Scratch) -> Records:
        """Return all entries of a bin, in arrays of this thread's scratch."""
        size = self.size(index)
        data, keys = scratch.get("slices", size + SPARE_BYTES, np.uint8), scratch.get("read keys", int(self.counts[index]), np.uint64)
        read_into(self.fd(index), [data[:size]], 0)
        read_slices(data, size, np.uint64(self.firsts[index]), self.bits, *self.column_form, self.row_bytes[index], self.rank, keys)
        return (keys,)

    def blocks(self, index: int, block_length: int) -> Iterator[Records]:
        """Iterate over a bin's entries, `block_length` at a time or what came of one block of edges."""
        whole, first = partial(whole_slices, low_bytes=self.column_form[0], most=block_length), np.uint64(self.firsts[index])
        for data, size, room in self.windows(index, HEADER_BYTES + LEAST_BYTES * block_length, whole):
            keys = np.empty(room, np.uint64)
            count = read_slices(data, size, first, self.bits, *self.column_form, self.row_bytes[index], self.rank, keys)
            yield (keys[:count],)


@dataclass(frozen=True, slots=True)
class Slices:
    """A slice of a block for each bin, in one buffer.

    Attributes
    ----------
    starts : (num_bins,) int64
        Where each begins in `data`.
    places, sizes
        The same, and its bytes, as lists.
    views
        Bytes of the headers, and of `data`.
    """

    starts: Array
    data: Array
    places: list[int]
    sizes: list[int]
    views: tuple[memoryview, memoryview]

    @classmethod
    def of_sizes(cls, kind: int, numbers: Array, sizes: Array, row: int, name: str, scratch: Scratch) -> Slices:
        """Make room for slices of so many lists or entries, and bytes."""
        ends = np.cumsum(sizes + SPARE_BYTES)
        headers = np.stack([np.full(sizes.size, kind), numbers, sizes, np.full(sizes.size, row)], axis=1)
        starts, data = ends - sizes - SPARE_BYTES, scratch.get(name, int(ends[-1]), np.uint8)
        return cls(starts, data, starts.tolist(), sizes.tolist(), (headers.data.cast("B"), data.data))

    def of(self, index: int) -> list[memoryview]:
        """Return header and bytes of a bin's slice; nothing if it has none."""
        size, start, (headers, data) = self.sizes[index], self.places[index], self.views
        return [headers[HEADER_BYTES * index : HEADER_BYTES * (index + 1)], data[start : start + size]] if size else []


def deal_edges(keys: Array, col_bits: int, forward: EntryFiles, backward: EntryFiles, scratch: Scratch) -> None:
    """Deal both entries of each edge; the same files receive both where the graph is undirected.

    Parameters
    ----------
    keys : (n,) uint64
        Edges ``row << col_bits | col`` by provisional id, ascending.
    """
    if not keys.size:
        return
    bits, rank, row, is_undirected = np.uint64(col_bits), forward.rank, keys[0] >> np.uint64(col_bits), forward is backward
    lists, list_sizes, list_counts = (np.zeros(forward.counts.size, np.int64) for _ in range(3))
    sizes, counts = (np.zeros(backward.counts.size, np.int64) for _ in range(2))
    cols, bin_of = scratch.get("columns", keys.size, np.uint32), scratch.get("bin_of", keys.size, np.uint16)
    measure_lists(keys, bits, rank, forward.table, *forward.column_form, list_counts, lists, list_sizes)
    last = np.full(backward.counts.size, row)
    measure_entries(keys, bits, rank, backward.table, backward.row_bytes, is_undirected, last, cols, bin_of, counts, sizes)
    ahead = Slices.of_sizes(LISTS, lists, list_sizes, int(row), "lists", scratch)
    back = Slices.of_sizes(ENTRIES, counts, sizes, int(row), "entries", scratch)
    write_lists(keys, bits, rank, cols, forward.table, forward.firsts, *forward.column_form, ahead.starts.copy(), ahead.data)
    last[:] = row
    write_entries(keys, bits, cols, bin_of, backward.firsts, backward.row_bytes, last, back.starts.copy(), back.data)
    if is_undirected:
        forward.append(list_counts + counts, (ahead, back))
    else:
        forward.append(list_counts, (ahead,))
        backward.append(counts, (back,))


def _bytes_of(number: int) -> int:
    """Bytes of a number below `number`."""
    return max(1, -(-(number - 1).bit_length() // 8))
