"""Temporary files of strings by bin: as `bins.BinFiles`, with bytes of any length instead of keys.

A slice of a file is the number of strings and of bytes (int64), a key for each string (uint64, if the files have keys), the lengths
(uint32), and the bytes. In memory strings are pyarrow arrays of large_binary, whose order is that of their bytes, or `Placed`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from oocgraph.external_sort.temporary import Folder, NumberedFiles, read_into
from oocgraph.kernels.build import scatter
from oocgraph.store.files import write_all
from oocgraph.store.strings import Placed, from_buffers, string_buffers
from oocgraph.types import Array


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

    def append(self, strings: Placed, bin_of: Array, keys: Array | None = None) -> None:
        """Deal strings to their bins."""
        if not len(strings):
            return
        starts = np.append(0, np.cumsum(np.bincount(bin_of, minlength=self.num_bins)))
        order = np.empty(len(strings), np.int64)
        scatter(np.arange(len(strings)).view(np.uint64), bin_of, starts[:-1].copy(), order.view(np.uint64))
        grouped, own = strings.copied(order), keys[order] if keys is not None else None
        for index in np.flatnonzero(np.diff(starts)).tolist():
            start, stop = int(starts[index]), int(starts[index + 1])
            self.append_slice(index, grouped.slice(start, stop - start), None if own is None else own[start:stop])

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

    def lengths(self, index: int, part: TextSlice) -> tuple[Array, Array]:
        """Return the lengths of a slice's strings, and their keys."""
        keys, lengths = np.empty(part.count if self._keyed else 0, np.uint64), np.empty(part.count, np.uint32)
        read_into(self.fd(index), [keys, lengths], part.offset + 16)
        return lengths, keys

    def read(self, index: int, part: TextSlice) -> tuple[Any, Array]:
        """Return the strings of a slice, and their keys (empty without)."""
        keys = np.empty(part.count if self._keyed else 0, np.uint64)
        lengths, data = np.empty(part.count, np.uint32), np.empty(part.num_bytes, np.uint8)
        read_into(self.fd(index), [keys, lengths, data], part.offset + 16)
        return from_buffers(lengths, data), keys
