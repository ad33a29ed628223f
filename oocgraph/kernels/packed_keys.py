"""Keys of bins in few bytes (`oocgraph.external_sort.bins`): less the bin's first key, and less the upper bits that order can tell.

In: keys grouped by bin. Out: for each bin a slice, `HEADER_BYTES` of (number of keys, bytes behind these, bytes of a key, upper bits), and

- how many keys there are of each value of the upper bits (7 bits a byte, the last with the top bit clear), where there are upper bits;
- the rest of each key, ordered by these upper bits.

So a million keys of 48 bits in 256 bins of 4,000 keys take 4.1 bytes each.
"""

from __future__ import annotations

from typing import Any

import numba as nb
import numpy as np

from oocgraph.compiled.intrinsics import load_four, store_four
from oocgraph.compiled.load import Call

HEADER_BYTES = 32

MOST_UPPER_BITS = 9
"""Of the upper bits, which are counted instead of stored: each of their values takes a byte in a slice."""

LEAST_BYTES, MOST_BYTES = 4, 6
"""Of the rest of a key; keys that need more are stored whole, and those of a slice with fewer keys than values of the upper bits."""

ROOM_BYTES = 8
"""Room for a key that is stored whole."""

COUNT_BYTES = 5
"""A count takes so many at the most."""


def packed_form(width: int) -> tuple[int, int]:
    """Bytes of the rest of a key, and upper bits, for distances of so many bits.

    Examples
    --------
    >>> packed_form(41), packed_form(30), packed_form(44), packed_form(64)
    ((4, 9), (4, 0), (5, 4), (7, 8))
    """
    rest = max(LEAST_BYTES, -(-(width - MOST_UPPER_BITS) // 8))
    return rest, max(0, width - 8 * rest)


@nb.njit(nogil=True, cache=True)
def pack_slices(keys: Any, starts: Any, firsts: Any, rest_bytes: Any, upper_bits: Any, headers: Any, places: Any, out: Any) -> None:
    """Write a slice for each bin.

    Parameters
    ----------
    keys : (n,) uint64
        Bin b is ``keys[starts[b]:starts[b + 1]]`` and begins at ``firsts[b]``.
    headers : (num_bins, 4) int64
        Written.
    places : (num_bins,) int64
        Written: where the bytes of each begin in ``out``, uint8, which has room for `ROOM_BYTES` for each key and `COUNT_BYTES` for each
        key or value of the upper bits, whichever are fewer.
    """
    at = np.empty((1 << upper_bits) + 1, np.int64)
    place = 0
    for b in range(firsts.size):
        begin, end = starts[b], starts[b + 1]
        upper = upper_bits if end - begin >= 1 << upper_bits else 0
        size = rest_bytes if upper == upper_bits else (8 * rest_bytes + upper_bits + 7) // 8
        headers[b, 0], headers[b, 2], headers[b, 3], places[b] = end - begin, size, upper, place
        shift = np.uint64(8 * size)
        at[:] = 0
        if upper:
            for i in range(begin, end):
                at[((keys[i] - firsts[b]) >> shift) + np.uint64(1)] += 1
            for one in range(1 << upper):
                count = at[one + 1]
                while count > 127:
                    out[place] = np.uint8(count & 127) | np.uint8(128)
                    count >>= 7
                    place += 1
                out[place] = np.uint8(count)
                place += 1
                at[one + 1] += at[one]
        for i in range(begin, end):
            key = keys[i] - firsts[b]
            value = key >> shift if upper else np.uint64(0)
            own = place + size * at[value]
            at[value] += 1
            store_four(out, own, np.uint32(key & np.uint64(0xFFFFFFFF)))
            for byte in range(4, size):
                out[own + byte] = np.uint8((key >> np.uint64(8 * byte)) & np.uint64(255))
        place += size * (end - begin)
        headers[b, 1] = place - places[b]


@nb.njit(nogil=True, cache=True)
def unpack_slices(data: Any, size: Any, first: Any, keys: Any) -> None:
    """Write the keys of all slices of a bin, whose bytes are ``data[:size]`` with `SPARE_BYTES` behind them."""
    place, done = 0, 0
    while place < size:
        count, rest, upper = load_four(data, place), np.int64(load_four(data, place + 16)), np.int64(load_four(data, place + 24))
        counts = place + HEADER_BYTES
        place = counts
        if upper:
            for _ in range(1 << upper):
                while data[place] > np.uint8(127):
                    place += 1
                place += 1
        left, value = np.int64(count), np.uint64(0)
        while left:
            run, moved = left, 0
            if upper:
                run = np.int64(0)
                while data[counts] > np.uint8(127):
                    run |= np.int64(data[counts] & np.uint8(127)) << moved
                    counts, moved = counts + 1, moved + 7
                run |= np.int64(data[counts]) << moved
                counts += 1
            base = first + (value << np.uint64(8 * rest))
            if rest == 4:
                for i in range(done, done + run):
                    keys[i] = base + np.uint64(load_four(data, place))
                    place += 4
            else:
                mask = np.uint64(0xFFFFFFFF) >> np.uint64(64 - 8 * rest)
                for i in range(done, done + run):
                    high = np.uint64(load_four(data, place + 4)) & mask
                    keys[i] = base + (np.uint64(load_four(data, place)) | (high << np.uint64(32)))
                    place += rest
            done, left, value = done + run, left - run, value + np.uint64(1)


@nb.njit(nogil=True, cache=True)
def whole_slices(data: Any, size: Any, most: Any) -> Any:
    """Return the bytes of the first slices that are whole in ``data[:size]``, and their keys: `most`, or one slice."""
    place, count = np.int64(0), np.int64(0)
    while place + HEADER_BYTES <= size:
        more, end = np.int64(load_four(data, place)), place + HEADER_BYTES + np.int64(load_four(data, place + 8))
        if end > size or (count and count + more > most):
            break
        place, count = end, count + more
    return place, count


def packing_calls() -> list[Call]:
    """Return what every build calls."""
    keys, ids, data = np.zeros(1, np.uint64), np.zeros(2, np.int64), np.zeros(64, np.uint8)
    return [
        (pack_slices, (keys, ids, keys, 4, 0, np.zeros((1, 4), np.int64), ids, data)),
        (unpack_slices, (data, 0, np.uint64(0), keys)),
        (whole_slices, (data, 0, 1)),
    ]
