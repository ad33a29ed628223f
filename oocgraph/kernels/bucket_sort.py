"""Sort keys that agree in their upper bits, as those of a bin do, in one thread: one step to buckets, then digits of half as many bytes.

In: uint64 keys, the smallest, and the bits of their range. Out: the same keys ascending, in their place. The upper bits of a key's distance
from the smallest give its bucket, so that the rest fits 32 bits and buckets have about half of `BUCKET_KEYS`. In a core's first cache a
bucket is sorted by digits, the least significant first, all of which are counted in one pass. A million keys of 40 bits take 8 ns each,
by `oocgraph.kernels.sort` 13.
"""

from __future__ import annotations

from typing import Any

import numba as nb
import numpy as np

BUCKET_KEYS = 1 << 13
"""Keys of a bucket, with room for as many 64 KiB."""

MOST_BUCKET_BITS = 10
"""Up to so many buckets are written side by side: 512 take 1.6 ns a key, 1,024 take 3.3."""

WIDEST = 32 + MOST_BUCKET_BITS
"""Bits of the longest range."""

DIGIT, VALUES = 8, 256

FEW = 32
"""Keys that are sorted by insertion."""


def bucket_bits(num_keys: int, width: int) -> int:
    """Bits of a bucket's number, for keys of a range of so many bits: at most `MOST_BUCKET_BITS` where the range is not above `WIDEST`."""
    return min(width, max(width - 32, min(MOST_BUCKET_BITS - 1, (2 * num_keys // BUCKET_KEYS).bit_length())))


@nb.njit(nogil=True, cache=True)
def range_of(keys: Any) -> Any:
    """Return the smallest and the largest of some keys, of which there is one at least."""
    low = high = keys[0]
    for i in range(keys.size):
        low, high = min(low, keys[i]), max(high, keys[i])
    return low, high


@nb.njit(nogil=True, cache=True)
def _to_buckets(keys: Any, low: Any, shift: Any, ends: Any, rest: Any) -> None:
    """Write the lower bits of keys to their buckets; ``ends : (num_buckets + 1,)`` become the ends of the buckets but for the last one."""
    ends[:] = 0
    one, mask = np.uint64(1), (np.uint64(1) << shift) - np.uint64(1)
    for i in range(keys.size):
        ends[((keys[i] - low) >> shift) + one] += 1
    for b in range(ends.size - 1):
        ends[b + 1] += ends[b]
    for i in range(keys.size):
        key = keys[i] - low
        b = key >> shift
        rest[np.uint64(ends[b])] = np.uint32(key & mask)
        ends[b] += 1


@nb.njit(nogil=True, cache=True)
def _insert(values: Any, begin: Any, end: Any) -> None:
    for i in range(begin + 1, end):
        value, j = values[i], i
        while j > begin and values[j - 1] > value:
            values[j] = values[j - 1]
            j -= 1
        values[j] = value


@nb.njit(nogil=True, cache=True)
def _move(source: Any, target: Any, begin: Any, end: Any, shift: Any, base: Any, at: Any) -> None:
    for i in range(begin, end):
        value = source[i]
        digit = base + ((value >> shift) & np.uint32(VALUES - 1))
        place = at[digit]
        target[place] = value
        at[digit] = place + np.uint32(1)


@nb.njit(nogil=True, cache=True)
def _sort_bucket(values: Any, other: Any, begin: Any, end: Any, at: Any) -> Any:
    """Sort uint32 values; returns whether they are in `other` then. ``at : (4 * VALUES,) uint32`` is scratch."""
    size, one, byte = end - begin, np.uint32(1), np.uint32(VALUES - 1)
    if size <= FEW:
        _insert(values, begin, end)
        return False
    at[:] = 0
    for i in range(begin, end):
        value = values[i]
        at[value & byte] += one
        at[np.uint32(VALUES) + ((value >> np.uint32(DIGIT)) & byte)] += one
        at[np.uint32(2 * VALUES) + ((value >> np.uint32(2 * DIGIT)) & byte)] += one
        at[np.uint32(3 * VALUES) + (value >> np.uint32(3 * DIGIT))] += one
    is_moved = False
    first = values[begin]
    for digit in range(4):
        shift, base = np.uint32(DIGIT * digit), np.uint32(VALUES * digit)
        if at[base + ((first >> shift) & byte)] == size:
            continue
        place = np.uint32(begin)
        for value in range(VALUES):
            count = at[base + np.uint32(value)]
            at[base + np.uint32(value)] = place
            place += count
        if is_moved:
            _move(other, values, begin, end, shift, base, at)
        else:
            _move(values, other, begin, end, shift, base, at)
        is_moved = not is_moved
    return is_moved


@nb.njit(nogil=True, cache=True)
def sort_in_buckets(keys: Any, low: Any, shift: Any, ends: Any, rest: Any, other: Any, at: Any) -> None:
    """Sort keys in their place.

    Parameters
    ----------
    keys : (n,) uint64
        None below `low`.
    shift
        Bits below those of a bucket's number, at most 32.
    ends : (num_buckets + 1,) int64
    rest, other : (n,) uint32
    at : (4 * VALUES,) uint32
        Scratch.
    """
    _to_buckets(keys, low, shift, ends, rest)
    begin = 0
    for b in range(ends.size - 1):
        end = ends[b]
        first = low + (np.uint64(b) << shift)
        if _sort_bucket(rest, other, begin, end, at):
            for i in range(begin, end):
                keys[i] = first + np.uint64(other[i])
        else:
            for i in range(begin, end):
                keys[i] = first + np.uint64(rest[i])
        begin = end
