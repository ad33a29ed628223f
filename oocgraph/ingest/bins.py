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
from pathlib import Path
from typing import Any

import numpy as np

from oocgraph.ingest.key_bins import KeyBins, SplitterBins
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

    def __init__(self, folder: Path, bins: KeyBins | SplitterBins, columns: Sequence[Any] = ()) -> None:
        folder.mkdir(parents=True, exist_ok=True)
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
                    self._files[index] = os.open(self.folder / str(index), os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
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
        dtypes = [np.dtype(np.uint64), *self.columns]
        out = tuple(scratch.get(f"read {position}", count, dtype) for position, dtype in enumerate(dtypes))
        at = 0
        for piece in self.slices(index, out):
            at += piece[0].size
        assert at == count, (at, count)
        return out

    def blocks(self, index: int, block_length: int) -> Iterator[Records]:
        """Iterate over a bin's records, `block_length` at a time at most."""
        fd = self._file(index)
        dtypes = [np.dtype(np.uint64), *self.columns]
        offset, left = 0, int(self.counts[index])
        while left:
            count = left
            if self.columns:
                header = np.empty(1, np.int64)
                offset = read_into(fd, [header], offset)
                count = int(header[0])
            for start in range(0, count, block_length):
                size = min(block_length, count - start)
                arrays = [np.empty(size, dtype) for dtype in dtypes]
                position = offset
                for array in arrays:
                    read_into(fd, [array], position + start * array.itemsize)
                    position += count * array.itemsize
                yield tuple(arrays)
            offset += count * sum(dtype.itemsize for dtype in dtypes)
            left -= count

    def key_blocks(self, index: int, block_length: int) -> Iterator[Array]:
        """Iterate over a bin's keys alone, `block_length` at a time at most."""
        fd = self._file(index)
        offset, left = 0, int(self.counts[index])
        while left:
            count = left
            if self.columns:
                header = np.empty(1, np.int64)
                offset = read_into(fd, [header], offset)
                count = int(header[0])
            for start in range(0, count, block_length):
                keys = np.empty(min(block_length, count - start), np.uint64)
                read_into(fd, [keys], offset + 8 * start)
                yield keys
            offset += count * (8 + sum(dtype.itemsize for dtype in self.columns))
            left -= count

    def read_keys(self, index: int, start: int, out: Array) -> None:
        """Fill `out` with keys of a bin without columns, from position `start` on."""
        read_into(self._file(index), [out], 8 * start)

    def slices(self, index: int, out: Records) -> Iterator[Records]:
        """Fill `out` slice by slice, giving the part that each one filled."""
        fd = self._file(index)
        if not self.columns:
            if out[0].size:
                read_into(fd, [out[0]], 0)
                yield out
            return
        header = np.empty(1, np.int64)
        offset = at = 0
        while at < out[0].size:
            offset = read_into(fd, [header], offset)
            part = tuple(array[at : at + int(header[0])] for array in out)
            offset = read_into(fd, part, offset)
            at += int(header[0])
            yield part

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
        (self.folder / str(index)).unlink(missing_ok=True)

    def close(self) -> None:
        """Close all files; what is left is removed with the writer's scratch folder."""
        for index in range(len(self._files)):
            self.close_bin(index)


def _as_bits(values: Array) -> Array:
    """View values as unsigned integers of their size, so that one compiled `scatter` serves every dtype."""
    return values.view(np.dtype(f"u{values.itemsize}"))
