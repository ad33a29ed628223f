"""Compiled steps over strings in Arrow's layout (uint8 bytes, int64 offsets): hashing, and bins by order of bytes."""

from __future__ import annotations

from typing import Any

import numba as nb
import numpy as np

from oocgraph.kernels.load import Call


@nb.njit(nogil=True, cache=True)
def hash_strings(data: Any, offsets: Any, seed: Any, out: Any) -> None:
    """64-bit hash of each string ``data[offsets[i]:offsets[i + 1]]`` (MurmurHash64A, Appleby 2008)."""
    factor = np.uint64(0xC6A4A7935BD1E995)
    for i in range(out.size):
        start, stop = offsets[i], offsets[i + 1]
        h = seed ^ (np.uint64(stop - start) * factor)
        while start < stop:
            word = np.uint64(0)
            for b in range(min(np.int64(8), stop - start)):
                word |= np.uint64(data[start + b]) << np.uint64(8 * b)
            word *= factor
            word ^= word >> np.uint64(47)
            word *= factor
            h = (h ^ word) * factor
            start += 8
        h ^= h >> np.uint64(47)
        h *= factor
        out[i] = h ^ (h >> np.uint64(47))


@nb.njit(nogil=True, cache=True)
def split_strings(data: Any, offsets: Any, split_data: Any, split_offsets: Any, bin_of: Any) -> None:
    """Write how many splitters each string is not below, in order of bytes, by bisection over (num_bins - 1) sorted strings."""
    for i in range(bin_of.size):
        start, length = offsets[i], offsets[i + 1] - offsets[i]
        low, high = 0, split_offsets.size - 1
        while low < high:
            middle = (low + high) // 2
            other, other_length = split_offsets[middle], split_offsets[middle + 1] - split_offsets[middle]
            b = 0
            shorter = min(length, other_length)
            while b < shorter and data[start + b] == split_data[other + b]:
                b += 1
            below = length < other_length if b == shorter else data[start + b] < split_data[other + b]
            if below:
                high = middle
            else:
                low = middle + 1
        bin_of[i] = low


def string_calls() -> list[Call]:
    """Return what a build of string ids calls: columns of Arrow may not be written to."""
    data, offsets = (np.frombuffer(b"", dtype) for dtype in (np.uint8, np.int64))
    return [
        (split_strings, (data, offsets, data, offsets, np.empty(0, np.uint16))),
        (hash_strings, (data, offsets, np.uint64(0), np.empty(0, np.uint64))),
    ]
