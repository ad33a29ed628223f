"""Temporary files of strings by bin: as `bins.BinFiles`, with bytes of any length instead of keys.

A slice of a file is the number of strings and of bytes (int64), a key for each string (uint64, if the files have keys), the lengths
(uint32), and the bytes. In memory strings are pyarrow arrays of large_binary, whose order is that of their bytes.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from oocgraph.external_sort.temporary import Folder, NumberedFiles, read_into
from oocgraph.store.files import write_all
from oocgraph.store.strings import string_buffers
from oocgraph.types import Array


def as_binary(strings: Any) -> Any:
    """View a pyarrow large string array as large_binary."""
    return strings.view(pa.large_binary()) if strings.type != pa.large_binary() else strings


def buffers(strings: Any) -> tuple[Array, Array]:
    """Bytes and offsets (n + 1,) int64 of a large_binary array, for kernels."""
    raw, offsets = string_buffers(strings)
    raw.flags.writeable = offsets.flags.writeable = False  # one compiled kernel for memory of any owner
    return raw, offsets


def from_buffers(lengths: Array, data: Array) -> Any:
    """Make a large_binary array of lengths and bytes."""
    offsets = np.append(0, np.cumsum(lengths, dtype=np.int64))
    return pa.Array.from_buffers(pa.large_binary(), lengths.size, [None, pa.py_buffer(offsets), pa.py_buffer(data)])


@dataclass(frozen=True, slots=True)
class TextSlice:
    """Where one slice is: file offset, first string of the bin in it, number of strings and bytes."""

    offset: int
    first: int
    count: int
    num_bytes: int


class TextFiles(NumberedFiles):
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
        super().__init__(folder, num_bins)
        self.num_bins, self._keyed = num_bins, keyed
        self.counts = np.zeros(num_bins, np.int64)

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
        data, offsets = string_buffers(strings)
        header = np.array([len(strings), data.size], np.int64)
        parts = [header, *([keys] if keys is not None else []), np.diff(offsets).astype(np.uint32), data]
        with self._lock:
            self.counts[index] += len(strings)
        write_all(self.fd(index), parts)

    def slices(self, index: int) -> Iterator[TextSlice]:
        """Iterate over what a bin holds."""
        offset = first = 0
        header = np.empty(2, np.int64)
        while first < self.counts[index]:
            read_into(self.fd(index), [header], offset)
            count, num_bytes = header.tolist()
            yield TextSlice(offset, first, count, num_bytes)
            offset += 16 + count * (12 if self._keyed else 4) + num_bytes
            first += count

    def read(self, index: int, part: TextSlice) -> tuple[Any, Array]:
        """Return the strings of a slice, and their keys (empty without)."""
        keys = np.empty(part.count if self._keyed else 0, np.uint64)
        lengths, data = np.empty(part.count, np.uint32), np.empty(part.num_bytes, np.uint8)
        read_into(self.fd(index), [keys, lengths, data], part.offset + 16)
        return from_buffers(lengths, data), keys
