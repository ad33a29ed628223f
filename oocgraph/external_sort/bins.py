"""Temporary files that hold keyed records by range of keys: what an external sort writes before it sorts.

In: blocks of uint64 keys with any columns beside them, from any thread. Out: all records of one range, whose order is arbitrary until
sorted. A file is a sequence of rows: a record's key and columns (`oocgraph.kernels.packed_rows`). Keys without columns are slices
as `oocgraph.kernels.packed_keys` packs them, or rows where they need 8 bytes. One append is one ``write``, so threads share a file
without a lock.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from copy import copy
from dataclasses import replace
from functools import partial
from itertools import accumulate, pairwise
from typing import Any

import numpy as np

from oocgraph.compiled.intrinsics import SPARE_BYTES
from oocgraph.external_sort.key_bins import KeyBins, SplitterBins
from oocgraph.external_sort.temporary import Folder, NumberedFiles, read_into
from oocgraph.external_sort.workers import Scratch
from oocgraph.kernels.build import scatter
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
from oocgraph.kernels.packed_rows import find_places, put_column, put_keys, take_column, take_keys
from oocgraph.store.files import write_views
from oocgraph.store.records import Records
from oocgraph.types import Array

CACHED_BYTES = 1 << 18
"""Of rows that are dealt, or read, at a time: they stay in a cache while each column is."""


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
        self._key_bytes = bins.key_bytes
        self._form = self._form_of(self.columns)
        self._retyped: BinFiles | None = None

    def _form_of(self, columns: Sequence[Any]) -> tuple[int, int]:
        """Bytes and upper bits of packed keys; 8 bytes where keys are not packed."""
        width = max((stop - start - 1).bit_length() for start, stop in pairwise(self.bins.starts))
        return (8, 0) if columns else packed_form(width)

    @property
    def _is_packed(self) -> bool:
        return self._form[0] <= MOST_BYTES

    @property
    def _offsets(self) -> list[int]:
        """Where each column of a row begins, and where the row ends."""
        return [*accumulate((column.itemsize for column in self.columns), initial=self._key_bytes)]

    def append(self, records: Records, scratch: Scratch) -> None:
        """Deal records to their files."""
        keys = records[0]
        bin_of = scratch.get("bin_of", keys.size, np.uint16)
        counts = self.bins.assign(keys, bin_of)
        with self._lock:
            self.counts += counts
        self._write(records, bin_of, range(self.bins.num_bins), counts, scratch)

    def end_dealing(self) -> None:
        """Forget the table by which `append` finds bins, 80 KiB: bins that are split are hundreds where memory is small."""
        if isinstance(self.bins, KeyBins):
            self.bins = replace(self.bins, table=self.bins.table[:0].copy())

    def append_to(self, index: int, records: Records, scratch: Scratch) -> None:
        """Append records that all belong to bin `index`."""
        count = records[0].size
        with self._lock:
            self.counts[index] += count
        bin_of = scratch.get("bin_of", count, np.uint16)
        bin_of[:] = 0
        self._write(records, bin_of, range(index, index + 1), np.array([count]), scratch)

    def _write(self, records: Records, bin_of: Array, indices: range, counts: Array, scratch: Scratch) -> None:
        """Write records to some bins: `bin_of` counts from the first of these, and `counts` has the size of each."""
        firsts = np.array(self.bins.starts[indices.start : indices.stop], np.uint64)
        starts = np.append(0, np.cumsum(counts))
        write = self._write_packed if self._is_packed else self._write_rows
        write(records, bin_of, indices, firsts, starts, scratch)

    def _write_rows(self, records: Records, bin_of: Array, indices: range, firsts: Array, starts: Array, scratch: Scratch) -> None:
        keys, *columns = records
        *offsets, row_bytes = self._offsets
        rows, places = scratch.get("rows", row_bytes * keys.size, np.uint8), scratch.get("places", keys.size, np.uint32)
        find_places(bin_of, starts[:-1].copy(), places)
        for low in range(0, keys.size, step := max(1, CACHED_BYTES // row_bytes)):
            own = slice(low, low + step)
            put_keys(keys[own], bin_of[own], firsts, places[own], row_bytes, self._key_bytes, rows)
            for offset, values in zip(offsets, columns, strict=True):
                put_column(_as_bits(values[own]), places[own], row_bytes, offset, rows)
        data, cuts = rows.data, (row_bytes * starts).tolist()
        for index, (begin, end) in zip(indices, pairwise(cuts), strict=True):
            if begin < end:
                write_views(self.fd(index), [data[begin:end]])

    def _write_packed(self, records: Records, bin_of: Array, indices: range, firsts: Array, starts: Array, scratch: Scratch) -> None:
        (keys,) = records
        if len(indices) > 1:
            grouped = scratch.get("grouped", keys.size, np.uint64)
            scatter(keys, bin_of, starts[:-1].copy(), grouped)
            keys = grouped
        rest, upper = self._form
        headers, places = np.empty((firsts.size, 4), np.int64), np.empty(firsts.size, np.int64)
        room = ROOM_BYTES * keys.size + COUNT_BYTES * min(keys.size, firsts.size << upper)
        out = scratch.get("packed", room + SPARE_BYTES, np.uint8)
        pack_slices(keys, starts, firsts, rest, upper, headers, places, out)
        heads, data, begin, sizes = headers.data.cast("B"), out.data, places.tolist(), headers[:, 1].tolist()
        for at in np.flatnonzero(np.diff(starts)).tolist():
            own = data[begin[at] : begin[at] + sizes[at]]
            write_views(self.fd(indices[at]), [heads[HEADER_BYTES * at : HEADER_BYTES * (at + 1)], own])

    def read(self, index: int, scratch: Scratch) -> Records:
        """Return all records of a bin, in arrays of this thread's scratch."""
        if self._is_packed:
            size, keys = self.size(index), scratch.get("read keys", int(self.counts[index]), np.uint64)
            data = scratch.get("read packed", size + SPARE_BYTES, np.uint8)
            read_into(self.fd(index), [data[:size]], 0)
            unpack_slices(data, size, np.uint64(self.bins.starts[index]), keys)
            return (keys,)
        return self._rows(index, 0, int(self.counts[index]), scratch.get)

    def blocks(self, index: int, block_length: int) -> Iterator[Records]:
        """Iterate over a bin's records, `block_length` at a time; of packed keys at most so many, or what was appended at once."""
        if self._is_packed:
            return ((keys,) for keys in self._slices(index, block_length))
        return self._blocks(index, block_length)

    def key_blocks(self, index: int, block_length: int) -> Iterator[Array]:
        """Iterate over a bin's keys alone, as over its records."""
        if self._is_packed:
            return self._slices(index, block_length)
        return (keys for (keys,) in self._blocks(index, block_length, only_keys=True))

    def _slices(self, index: int, most: int) -> Iterator[Array]:
        """Iterate over the packed keys of a bin, several slices at a time."""
        for data, size, count in self.windows(index, HEADER_BYTES + LEAST_BYTES * most, partial(whole_slices, most=most)):
            keys = np.empty(count, np.uint64)
            unpack_slices(data, size, np.uint64(self.bins.starts[index]), keys)
            yield keys

    def _blocks(self, index: int, block_length: int, *, only_keys: bool = False) -> Iterator[Records]:
        count = int(self.counts[index])
        for start in range(0, count, block_length):
            yield self._rows(index, start, min(block_length, count - start), _new, only_keys=only_keys)

    def _rows(self, index: int, start: int, count: int, new: Callable[[str, int, Any], Array], *, only_keys: bool = False) -> Records:
        """Read consecutive records of a bin into arrays that `new` makes of a name, a length and a dtype; keys are as they were given."""
        *offsets, row_bytes = self._offsets
        keys = new("read keys", count, np.uint64)
        columns = [] if only_keys else [new(f"read {position}", count, dtype) for position, dtype in enumerate(self.columns)]
        first, step = np.uint64(self.bins.starts[index]), max(1, CACHED_BYTES // row_bytes)
        window = new("read rows", row_bytes * min(step, count) + SPARE_BYTES, np.uint8)
        for low in range(0, count, step):
            own = slice(low, min(low + step, count))
            read_into(self.fd(index), [window[: row_bytes * (own.stop - low)]], row_bytes * (start + low))
            take_keys(window, first, row_bytes, self._key_bytes, keys[own])
            for offset, values in zip(offsets, columns, strict=False):
                take_column(window, row_bytes, offset, _as_bits(values[own]))
        return (keys, *columns)

    def read_keys(self, index: int, start: int, out: Array) -> None:
        """Fill `out` with keys of a bin without columns whose keys are stored whole, from position `start` on."""
        read_into(self.fd(index), [out], 8 * start)
        out += np.uint64(self.bins.starts[index])

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
    """View values as unsigned integers of their size, so that one compiled kernel serves all dtypes of a size."""
    return values.view(np.dtype(f"u{values.itemsize}"))


def _new(_: str, length: int, dtype: Any) -> Array:
    return np.empty(length, dtype)
