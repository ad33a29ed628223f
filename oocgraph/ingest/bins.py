"""Temporary files that hold keyed records by range of keys: what an external sort writes before it sorts.

In: blocks of uint64 keys with any columns beside them, from any thread. Out: all records of one range, whose order
is arbitrary until sorted. A file is a sequence of slices: the number of records (int64), the keys in one or two parts, each column; without
columns plain keys. One append is one ``writev``, so threads share a file without a lock.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterable, Iterator, Sequence
from copy import copy
from itertools import pairwise
from typing import Any

import numpy as np

from oocgraph.ingest.key_bins import KeyBins, SplitterBins
from oocgraph.ingest.temporary import Folder
from oocgraph.ingest.workers import Scratch
from oocgraph.kernels.build import pack_keys, scatter, unpack_keys
from oocgraph.store import files
from oocgraph.store.files import write_all
from oocgraph.types import Array

Records = tuple[Array, ...]
"""Keys (uint64) and the columns beside them, all of one length."""


def read_into(fd: int, arrays: Sequence[Array], offset: int) -> int:
    """Fill arrays from a temporary file at `offset`; return the offset after them."""
    end = files.read_into(fd, arrays, offset)
    if end < offset + sum(array.nbytes for array in arrays):
        raise OSError(f"temporary file ends at byte {end}")
    return end


def key_parts(bins: KeyBins | SplitterBins) -> tuple[str, ...]:
    """Dtypes in which a key is stored, less its bin's first key: 4, 5, 6 or 8 bytes, for the disk is slower than packing (1 ns)."""
    if isinstance(bins, SplitterBins):
        return ("u8",)
    bits = max((stop - start - 1).bit_length() for start, stop in pairwise(bins.starts))
    return {0: ("u4",), 1: ("u4", "u1"), 2: ("u4", "u2")}.get(max(0, -(-(bits - 32) // 8)), ("u8",))


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
        self._key_parts = [np.dtype(part) for part in key_parts(bins)]
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
        packed = self._packed(grouped[0], np.array(self.bins.starts[:-1], np.uint64), starts, scratch)
        for index in np.flatnonzero(counts).tolist():
            self._write(index, [values[starts[index] : starts[index + 1]] for values in (*packed, *grouped[1:])])

    def append_to(self, index: int, records: Records, scratch: Scratch) -> None:
        """Append records that all belong to bin `index`."""
        with self._lock:
            self.counts[index] += records[0].size
        whole = np.array([0, records[0].size], np.int64)
        packed = self._packed(records[0], np.array(self.bins.starts[index : index + 1], np.uint64), whole, scratch)
        self._write(index, [*packed, *records[1:]])

    def _packed(self, keys: Array, firsts: Array, starts: Array, scratch: Scratch) -> list[Array]:
        """Keys as they are stored: without the first key of their bin, in as few bytes as its range needs."""
        if self._key_parts[0].itemsize == 8:
            return [keys]
        parts = [scratch.get(f"packed {position}", keys.size, dtype) for position, dtype in enumerate(self._key_parts)]
        pack_keys(keys, firsts, starts, parts[0], parts[1] if len(parts) > 1 else np.empty(0, np.uint8))
        return parts

    def _unpacked(self, index: int, parts: Records, keys: Array) -> Array:
        unpack_keys(parts[0], parts[1] if len(parts) > 1 else np.empty(0, np.uint8), np.uint64(self.bins.starts[index]), keys)
        return keys

    def _write(self, index: int, arrays: Sequence[Array]) -> None:
        header = [np.array([arrays[0].size], np.int64)] if len(arrays) > 1 else []
        write_all(self._file(index), [*header, *arrays])

    def read(self, index: int, scratch: Scratch) -> Records:
        """Return all records of a bin, in arrays of this thread's scratch."""
        count, num_parts = int(self.counts[index]), len(self._key_parts)
        arrays = tuple(scratch.get(f"read {position}", count, dtype) for position, dtype in enumerate(self._dtypes))
        self._cursor(index).fill(arrays)
        if self._key_parts[0].itemsize == 8:
            return arrays
        return (self._unpacked(index, arrays[:num_parts], scratch.get("read keys", count, np.uint64)), *arrays[num_parts:])

    def blocks(self, index: int, block_length: int) -> Iterator[Records]:
        """Iterate over a bin's records, `block_length` at a time."""
        return self._blocks(index, block_length, self._dtypes)

    def key_blocks(self, index: int, block_length: int) -> Iterator[Array]:
        """Iterate over a bin's keys alone, `block_length` at a time."""
        return (keys for (keys,) in self._blocks(index, block_length, list(self._key_parts)))

    def _blocks(self, index: int, block_length: int, dtypes: list[np.dtype[Any]]) -> Iterator[Records]:
        cursor, left, num_parts = self._cursor(index), int(self.counts[index]), len(self._key_parts)
        while left:
            size = min(block_length, left)
            arrays = tuple(np.empty(size, dtype) for dtype in dtypes)
            cursor.fill(arrays)
            left -= size
            if self._key_parts[0].itemsize == 8:
                yield arrays
            else:
                yield (self._unpacked(index, arrays[:num_parts], np.empty(size, np.uint64)), *arrays[num_parts:])

    @property
    def _dtypes(self) -> list[np.dtype[Any]]:
        return [*self._key_parts, *self.columns]

    def _cursor(self, index: int) -> _Cursor:
        return _Cursor(self._file(index), int(self.counts[index]), [dtype.itemsize for dtype in self._dtypes])

    def read_keys(self, index: int, start: int, out: Array) -> None:
        """Fill `out` with keys of a bin without columns whose keys are stored whole, from position `start` on."""
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

    def replace(self, index: int, records: Records, scratch: Scratch) -> None:
        """Put other records in the place of a bin's; its file is closed."""
        self.remove(index)
        self.counts[index] = 0
        if records[0].size:
            self.append_to(index, records, scratch)
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
