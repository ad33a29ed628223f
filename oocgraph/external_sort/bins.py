"""Temporary files that hold keyed records by range of keys: what an external sort writes before it sorts.

In: blocks of uint64 keys with any columns beside them, from any thread. Out: all records of one range, whose order is arbitrary until
sorted. A file is a sequence of slices: the number of records (int64), the keys in one or two parts, each column. Keys without columns are
as `oocgraph.kernels.packed_keys` packs them, or plain where they need 8 bytes. One append is one ``writev``, so threads share a file
without a lock.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from copy import copy
from dataclasses import replace
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np

from oocgraph.compiled.intrinsics import SPARE_BYTES
from oocgraph.external_sort.key_bins import KeyBins, SplitterBins
from oocgraph.external_sort.temporary import Folder, NumberedFiles, read_into
from oocgraph.external_sort.workers import Scratch
from oocgraph.kernels.build import pack_keys, scatter, unpack_keys
from oocgraph.kernels.packed_keys import (
    COUNT_BYTES,
    HEADER_BYTES,
    LEAST_BYTES,
    MOST_BYTES,
    ROOM_BYTES,
    pack_slices,
    packed_form,
    unpack_slices,
    whole_slices,
)
from oocgraph.store.files import write_all, write_views
from oocgraph.store.records import Records
from oocgraph.types import Array

_NO_BYTES = np.empty(0, np.uint8)


class BinFiles(NumberedFiles):
    """One temporary file per range of keys.

    Parameters
    ----------
    folder
        Made if it does not exist; one per instance.
    bins
        The ranges.
    columns
        Dtypes of what travels beside the keys.
    """

    def __init__(self, folder: Folder, bins: KeyBins | SplitterBins, columns: Sequence[Any] = ()) -> None:
        super().__init__(folder, bins.num_bins)
        self.bins, self.columns = bins, tuple(np.dtype(column) for column in columns)
        self.counts = np.zeros(bins.num_bins, np.int64)
        self._key_parts = [np.dtype(part) for part in bins.key_parts]
        self._form = self._form_of(self.columns)
        self._retyped: BinFiles | None = None

    def _form_of(self, columns: Sequence[Any]) -> tuple[int, int]:
        """Bytes and upper bits of packed keys; 8 bytes where keys are not packed."""
        width = max((stop - start - 1).bit_length() for start, stop in pairwise(self.bins.starts))
        return (8, 0) if columns else packed_form(width)

    @property
    def _is_packed(self) -> bool:
        return self._form[0] <= MOST_BYTES

    def append(self, records: Records, scratch: Scratch) -> None:
        """Deal records to their files."""
        keys = records[0]
        bin_of = scratch.get("bin_of", keys.size, np.uint16)
        counts = self.bins.assign(keys, bin_of)
        starts = np.append(0, np.cumsum(counts))
        grouped = []
        for position, values in enumerate(records):
            out = scratch.get(f"grouped {position}", values.size, values.dtype)
            scatter(_as_bits(values), bin_of, starts[:-1].copy(), _as_bits(out))
            grouped.append(out)
        with self._lock:
            self.counts += counts
        firsts = np.array(self.bins.starts[:-1], np.uint64)
        if self._is_packed:
            self._write_packed(grouped[0], firsts, starts, np.flatnonzero(counts), scratch)
            return
        packed = self._packed(grouped[0], firsts, starts, scratch)
        for index in np.flatnonzero(counts).tolist():
            self._write(index, [values[starts[index] : starts[index + 1]] for values in (*packed, *grouped[1:])])

    def end_dealing(self) -> None:
        """Forget the table by which `append` finds bins, 80 KiB: bins that are split are hundreds where memory is small."""
        if isinstance(self.bins, KeyBins):
            self.bins = replace(self.bins, table=self.bins.table[:0].copy())

    def append_to(self, index: int, records: Records, scratch: Scratch) -> None:
        """Append records that all belong to bin `index`."""
        with self._lock:
            self.counts[index] += records[0].size
        whole, firsts = np.array([0, records[0].size], np.int64), np.array(self.bins.starts[index : index + 1], np.uint64)
        if self._is_packed:
            self._write_packed(records[0], firsts, whole, np.array([index]), scratch)
            return
        packed = self._packed(records[0], firsts, whole, scratch)
        self._write(index, [*packed, *records[1:]])

    def _write_packed(self, keys: Array, firsts: Array, starts: Array, indices: Array, scratch: Scratch) -> None:
        """Write the slices of some bins, packed; `firsts` and `starts` are of all bins that `keys` are grouped by."""
        rest, upper = self._form
        headers, places = np.empty((firsts.size, 4), np.int64), np.empty(firsts.size, np.int64)
        room = ROOM_BYTES * keys.size + COUNT_BYTES * min(keys.size, firsts.size << upper)
        out = scratch.get("packed", room + SPARE_BYTES, np.uint8)
        pack_slices(keys, starts, firsts, rest, upper, headers, places, out)
        heads, data, begin, sizes = headers.data.cast("B"), out.data, places.tolist(), headers[:, 1].tolist()
        for index in indices.tolist():
            at = index if firsts.size > 1 else 0
            own = data[begin[at] : begin[at] + sizes[at]]
            write_views(self.fd(index), [heads[HEADER_BYTES * at : HEADER_BYTES * (at + 1)], own])

    def _packed(self, keys: Array, firsts: Array, starts: Array, scratch: Scratch) -> list[Array]:
        """Keys as they are stored: without the first key of their bin, in as few bytes as its range needs."""
        if self._key_parts[0].itemsize == 8:
            return [keys]
        parts = [scratch.get(f"packed {position}", keys.size, dtype) for position, dtype in enumerate(self._key_parts)]
        pack_keys(keys, firsts, starts, parts[0], parts[1] if len(parts) > 1 else _NO_BYTES)
        return parts

    def _write(self, index: int, arrays: Sequence[Array]) -> None:
        header = [np.array([arrays[0].size], np.int64)] if len(arrays) > 1 else []
        write_all(self.fd(index), [*header, *arrays])

    def read(self, index: int, scratch: Scratch) -> Records:
        """Return all records of a bin, in arrays of this thread's scratch."""
        if self._is_packed:
            size, keys = self.size(index), scratch.get("read keys", int(self.counts[index]), np.uint64)
            data = scratch.get("read packed", size + SPARE_BYTES, np.uint8)
            read_into(self.fd(index), [data[:size]], 0)
            unpack_slices(data, size, np.uint64(self.bins.starts[index]), keys)
            return (keys,)
        return self._next(self._cursor(index), int(self.counts[index]), self._dtypes, scratch.get)

    def blocks(self, index: int, block_length: int) -> Iterator[Records]:
        """Iterate over a bin's records, `block_length` at a time; of packed keys at most so many, or what was appended at once."""
        if self._is_packed:
            return ((keys,) for keys in self._slices(index, block_length))
        return self._blocks(index, block_length, self._dtypes)

    def key_blocks(self, index: int, block_length: int) -> Iterator[Array]:
        """Iterate over a bin's keys alone, as over its records."""
        if self._is_packed:
            return self._slices(index, block_length)
        return (keys for (keys,) in self._blocks(index, block_length, self._key_parts))

    def _slices(self, index: int, most: int) -> Iterator[Array]:
        """Iterate over the packed keys of a bin, several slices at a time."""
        for data, size, count in self.windows(index, HEADER_BYTES + LEAST_BYTES * most, partial(whole_slices, most=most)):
            keys = np.empty(count, np.uint64)
            unpack_slices(data, size, np.uint64(self.bins.starts[index]), keys)
            yield keys

    def _blocks(self, index: int, block_length: int, dtypes: list[np.dtype[Any]]) -> Iterator[Records]:
        cursor, count = self._cursor(index), int(self.counts[index])
        for start in range(0, count, block_length):
            yield self._next(cursor, min(block_length, count - start), dtypes, lambda _, length, dtype: np.empty(length, dtype))

    def _next(self, cursor: _Cursor, count: int, dtypes: list[np.dtype[Any]], new: Callable[[str, int, Any], Array]) -> Records:
        """Read the next records of a bin into arrays that `new` makes of a name, a length and a dtype; keys are as they were given."""
        stored = tuple(new(f"read {position}", count, dtype) for position, dtype in enumerate(dtypes))
        cursor.fill(stored)
        if self._key_parts[0].itemsize == 8:
            return stored
        keys, num_parts = new("read keys", count, np.uint64), len(self._key_parts)
        unpack_keys(stored[0], stored[1] if num_parts > 1 else _NO_BYTES, np.uint64(self.bins.starts[cursor.index]), keys)
        return (keys, *stored[num_parts:])

    @property
    def _dtypes(self) -> list[np.dtype[Any]]:
        return [*self._key_parts, *self.columns]

    def _cursor(self, index: int) -> _Cursor:
        return _Cursor(self, index, [dtype.itemsize for dtype in self._dtypes])

    def read_keys(self, index: int, start: int, out: Array) -> None:
        """Fill `out` with keys of a bin without columns whose keys are stored whole, from position `start` on."""
        read_into(self.fd(index), [out], 8 * start)

    def retyped(self, columns: Iterable[Any]) -> BinFiles:
        """Return these files as `replace` left them, when the columns have changed."""
        dtypes = tuple(np.dtype(column) for column in columns)
        if dtypes == self.columns:
            return self
        if self._retyped is None:
            self._retyped = copy(self)
            self._retyped.columns = dtypes
            self._retyped._form = self._form_of(dtypes)
        return self._retyped

    def replace(self, index: int, records: Records, scratch: Scratch) -> None:
        """Put other records in the place of a bin's; its file is closed."""
        self.remove(index)
        self.counts[index] = 0
        if records[0].size:
            self.append_to(index, records, scratch)
            self.close_bin(index)


def _as_bits(values: Array) -> Array:
    """View values as unsigned integers of their size, so that one compiled `scatter` serves every dtype."""
    return values.view(np.dtype(f"u{values.itemsize}"))


class _Cursor:
    """Reads a bin's file from its start, across slices.

    Parameters
    ----------
    files, index
        The bin.
    itemsizes
        Bytes of a key and of each column.
    """

    def __init__(self, files: BinFiles, index: int, itemsizes: list[int]) -> None:
        self.index, self._fd, self._itemsizes = index, files.fd(index), itemsizes
        self._offset = 0  # of the slice's first key
        self._plain = len(itemsizes) == 1
        self._count = self._left = int(files.counts[index]) if self._plain else 0  # of the slice

    def fill(self, arrays: Records) -> None:
        """Fill arrays with the next records; only keys when no other arrays are given."""
        at = 0
        while at < arrays[0].size:
            if not self._left:
                self._next_slice()
            take, skip = min(self._left, arrays[0].size - at), self._count - self._left
            part = [array[at : at + take] for array in arrays]
            if take == self._count:
                read_into(self._fd, part, self._offset)
            else:
                position = self._offset
                for values, itemsize in zip(part, self._itemsizes, strict=False):
                    read_into(self._fd, [values], position + skip * itemsize)
                    position += self._count * itemsize
            self._left -= take
            at += take

    def _next_slice(self) -> None:
        header = np.empty(1, np.int64)
        self._offset = read_into(self._fd, [header], self._offset + self._count * sum(self._itemsizes))
        self._count = self._left = int(header[0])
