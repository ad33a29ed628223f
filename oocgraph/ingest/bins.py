"""Temporary files that hold keyed records by range of keys: what an external sort writes before it sorts.

In: blocks of uint64 keys with any columns beside them, from any thread. Out: all records of one range, whose order
is arbitrary until sorted. A file is a sequence of slices: the number of records (int64), the keys, each column; without columns
plain keys. One append is one ``writev``, so threads share a file without a lock. The page cache of a bin is dropped when it is read.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterable, Iterator, Sequence
from copy import copy
from typing import Any

import numpy as np

from oocgraph.ingest.key_bins import KeyBins, SplitterBins
from oocgraph.ingest.temporary import Folder
from oocgraph.ingest.workers import Scratch
from oocgraph.kernels.build import scatter
from oocgraph.types import Array

Records = tuple[Array, ...]
"""Keys (uint64) and the columns beside them, all of one length."""


def write_all(fd: int, arrays: Sequence[Array]) -> None:
    """Append arrays to a file in one call, or several when the system writes less."""
    views = [array.data.cast("B") for array in arrays if array.size]
    while views:
        done = os.writev(fd, views)
        while views and done >= len(views[0]):
            done -= len(views.pop(0))
        if views:
            views[0] = views[0][done:]


def read_into(fd: int, arrays: Sequence[Array], offset: int) -> int:
    """Fill arrays from a file at `offset`; return the offset after them."""
    views = [array.data.cast("B") for array in arrays if array.size]
    while views:
        done = os.preadv(fd, views, offset)
        if done <= 0:
            raise OSError(f"temporary file ends at byte {offset}")
        offset += done
        while views and done >= len(views[0]):
            done -= len(views.pop(0))
        if views:
            views[0] = views[0][done:]
    return offset


class BinFiles:
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
        folder.path.mkdir(parents=True, exist_ok=True)
        folder.opened.append(self)
        self.bins, self.columns = bins, tuple(np.dtype(column) for column in columns)
        self.counts = np.zeros(bins.num_bins, np.int64)
        self.folder = folder
        self._lock = threading.Lock()
        self._files = [-1] * bins.num_bins
        self._retyped: BinFiles | None = None

    def _file(self, index: int) -> int:
        if self._files[index] < 0:
            with self._lock:
                if self._files[index] < 0:
                    self._files[index] = os.open(self.folder.path / str(index), os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
        return self._files[index]

    def append(self, records: Records, scratch: Scratch) -> None:
        """Deal records to their files."""
        keys = records[0]
        num_bins = self.bins.num_bins
        bin_of = scratch.get("bin_of", keys.size, np.uint16)
        counts = self.bins.assign(keys, bin_of)
        starts = np.zeros(num_bins + 1, np.int64)
        np.cumsum(counts, out=starts[1:])
        grouped = []
        for position, values in enumerate(records):
            out = scratch.get(f"grouped {position}", values.size, values.dtype)
            scatter(_as_bits(values), bin_of, starts[:-1].copy(), _as_bits(out))
            grouped.append(out)
        with self._lock:
            self.counts += counts
        for index in np.flatnonzero(counts).tolist():
            self.append_slice(index, [values[starts[index] : starts[index + 1]] for values in grouped])

    def append_counted(self, index: int, records: Records) -> None:
        """Append records that all belong to bin `index`, and count them."""
        with self._lock:
            self.counts[index] += records[0].size
        self.append_slice(index, records)

    def append_slice(self, index: int, records: Sequence[Array]) -> None:
        """Append records that all belong to bin `index`; `append` counts them."""
        header = [np.array([records[0].size], np.int64)] if self.columns else []
        write_all(self._file(index), [*header, *records])

    def read(self, index: int, scratch: Scratch) -> Records:
        """Return all records of a bin, in arrays of this thread's scratch."""
        count = int(self.counts[index])
        out = tuple(scratch.get(f"read {position}", count, dtype) for position, dtype in enumerate(self._dtypes))
        self._cursor(index).fill(out)
        return out

    def blocks(self, index: int, block_length: int) -> Iterator[Records]:
        """Iterate over a bin's records, `block_length` at a time."""
        cursor, left = self._cursor(index), int(self.counts[index])
        while left:
            arrays = tuple(np.empty(min(block_length, left), dtype) for dtype in self._dtypes)
            cursor.fill(arrays)
            left -= arrays[0].size
            yield arrays

    def key_blocks(self, index: int, block_length: int) -> Iterator[Array]:
        """Iterate over a bin's keys alone, `block_length` at a time."""
        cursor, left = self._cursor(index), int(self.counts[index])
        while left:
            keys = np.empty(min(block_length, left), np.uint64)
            cursor.fill((keys,))
            left -= keys.size
            yield keys

    @property
    def _dtypes(self) -> list[np.dtype[Any]]:
        return [np.dtype(np.uint64), *self.columns]

    def _cursor(self, index: int) -> _Cursor:
        return _Cursor(self._file(index), int(self.counts[index]), [dtype.itemsize for dtype in self._dtypes])

    def read_keys(self, index: int, start: int, out: Array) -> None:
        """Fill `out` with keys of a bin without columns, from position `start` on."""
        read_into(self._file(index), [out], 8 * start)

    def retyped(self, columns: Iterable[Any]) -> BinFiles:
        """Return these files as `replace` left them, when the columns have changed."""
        dtypes = tuple(np.dtype(column) for column in columns)
        if dtypes == self.columns:
            return self
        if self._retyped is None:
            self._retyped = copy(self)
            self._retyped.columns = dtypes
        return self._retyped

    def close_bin(self, index: int) -> None:
        """Close one file; it is opened again when needed."""
        if self._files[index] >= 0:
            os.close(self._files[index])
            self._files[index] = -1

    def replace(self, index: int, records: Records) -> None:
        """Put other records in the place of a bin's; its file is closed."""
        self.remove(index)
        self.counts[index] = records[0].size
        if records[0].size:
            self.append_slice(index, records)
            self.close_bin(index)

    def remove(self, index: int) -> None:
        """Delete a bin that is not needed any more; its page cache goes with it."""
        self.close_bin(index)
        (self.folder.path / str(index)).unlink(missing_ok=True)

    def close(self) -> None:
        """Close all files; what is left is removed with the writer's scratch folder."""
        for index in range(len(self._files)):
            self.close_bin(index)


def _as_bits(values: Array) -> Array:
    """View values as unsigned integers of their size, so that one compiled `scatter` serves every dtype."""
    return values.view(np.dtype(f"u{values.itemsize}"))


class _Cursor:
    """Reads a bin's file from its start, across slices.

    Parameters
    ----------
    fd
        The file.
    count
        Records in it.
    itemsizes
        Bytes of a key and of each column.
    """

    def __init__(self, fd: int, count: int, itemsizes: list[int]) -> None:
        self._fd, self._itemsizes = fd, itemsizes
        self._offset = 0  # of the slice's first key
        self._plain = len(itemsizes) == 1
        self._count = self._left = count if self._plain else 0  # of the slice

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
