"""Temporary files of strings by bin: as `bins.BinFiles`, with bytes of any length instead of keys.

A slice of a file is the number of strings and of bytes (int64), a key for each string (uint64, if the files have keys), the lengths
(uint32), and the bytes. In memory strings are pyarrow arrays of large_binary, whose order is that of their bytes.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from oocgraph.ingest.bins import read_into
from oocgraph.ingest.temporary import Folder
from oocgraph.store.files import write_all
from oocgraph.types import Array


def as_binary(strings: Any) -> Any:
    """View a pyarrow large string array as large_binary."""
    return strings.view(pa.large_binary()) if strings.type != pa.large_binary() else strings


def buffers(strings: Any) -> tuple[Array, Array]:
    """Offsets (n + 1,) int64 and bytes of a large_binary array, without a copy."""
    _, offsets, data = strings.buffers()
    if len(strings) == 0:
        offsets = bytes(8 * (strings.offset + 1))
    starts = np.frombuffer(offsets, np.int64)[strings.offset : strings.offset + len(strings) + 1]
    raw = np.frombuffer(data if data is not None else b"", np.uint8)
    starts.flags.writeable = raw.flags.writeable = False  # one compiled kernel, whoever owns the memory
    return starts, raw


def from_buffers(lengths: Array, data: Array) -> Any:
    """Make a large_binary array of lengths and bytes."""
    offsets = np.zeros(lengths.size + 1, np.int64)
    np.cumsum(lengths, out=offsets[1:])
    return pa.Array.from_buffers(pa.large_binary(), lengths.size, [None, pa.py_buffer(offsets), pa.py_buffer(data)])


@dataclass(frozen=True, slots=True)
class TextSlice:
    """Where one slice is: file offset, first string of the bin in it, number of strings and bytes."""

    offset: int
    first: int
    count: int
    num_bytes: int


class TextFiles:
    """One temporary file of strings for each of `num_bins` bins.

    Parameters
    ----------
    folder
        Made if it does not exist.
    num_bins
        Number of files.
    keyed
        Whether a uint64 key travels beside each string.
    """

    def __init__(self, folder: Folder, num_bins: int, *, keyed: bool = False) -> None:
        folder.path.mkdir(parents=True, exist_ok=True)
        folder.opened.append(self)
        self.num_bins, self._keyed, self._folder = num_bins, keyed, folder
        self.counts = np.zeros(num_bins, np.int64)
        self._lock = threading.Lock()
        self._files = [-1] * num_bins

    def append(self, strings: Any, bin_of: Array, keys: Array | None = None) -> None:
        """Deal strings to their bins."""
        if not len(strings):
            return
        order = np.argsort(bin_of, kind="stable")
        ends = np.cumsum(np.bincount(bin_of, minlength=self.num_bins))
        grouped = strings.take(pa.array(order))
        grouped_keys = keys[order] if keys is not None else None
        start = 0
        for index, stop in enumerate(ends.tolist()):
            if stop > start:
                own = grouped_keys[start:stop] if grouped_keys is not None else None
                self.append_slice(index, grouped.slice(start, stop - start), own)
            start = stop

    def append_slice(self, index: int, strings: Any, keys: Array | None = None) -> None:
        """Append strings to one bin."""
        offsets, data = buffers(strings)
        header = np.array([len(strings), offsets[-1] - offsets[0]], np.int64)
        parts = [header, *([keys] if keys is not None else []), np.diff(offsets).astype(np.uint32), data[offsets[0] : offsets[-1]]]
        with self._lock:
            self.counts[index] += len(strings)
        write_all(self._file(index), parts)

    def slices(self, index: int) -> Iterator[TextSlice]:
        """Iterate over what a bin holds."""
        offset = first = 0
        header = np.empty(2, np.int64)
        while first < self.counts[index]:
            read_into(self._file(index), [header], offset)
            count, num_bytes = header.tolist()
            yield TextSlice(offset, first, count, num_bytes)
            offset += 16 + count * (12 if self._keyed else 4) + num_bytes
            first += count

    def read(self, index: int, part: TextSlice) -> tuple[Any, Array]:
        """Return the strings of a slice, and their keys (empty without)."""
        keys = np.empty(part.count if self._keyed else 0, np.uint64)
        lengths, data = np.empty(part.count, np.uint32), np.empty(part.num_bytes, np.uint8)
        read_into(self._file(index), [keys, lengths, data], part.offset + 16)
        return from_buffers(lengths, data), keys

    def _file(self, index: int) -> int:
        if self._files[index] < 0:
            with self._lock:
                if self._files[index] < 0:
                    self._files[index] = os.open(self._folder.path / str(index), os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
        return self._files[index]

    def close_bin(self, index: int) -> None:
        """Close one file; it is opened again when needed."""
        if self._files[index] >= 0:
            os.close(self._files[index])
            self._files[index] = -1

    def close(self) -> None:
        """Close all files."""
        for index in range(self.num_bins):
            self.close_bin(index)

    def remove(self, index: int) -> None:
        """Delete a bin."""
        self.close_bin(index)
        (self._folder.path / str(index)).unlink(missing_ok=True)
