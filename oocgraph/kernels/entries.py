"""Entries of rows in few bytes, on their way to bins (`oocgraph.ingest.entries`): how a block of edges is divided and read back.

In: a block of sorted keys ``row << col_bits | col`` of provisional ids, and ranks. Each edge gives two entries. Forward, the row's rank
is the same for a run of edges: all of them go to one bin, as a list. Backward, the rank of the column is the row; the bin receives it
less the bin's first, and the provisional row as the distance from the one before, whose rank is looked up again when the bin is read.

A slice is `HEADER_BYTES`, (kind, number of lists or entries, bytes after the header, provisional row to begin from), and

- of lists: row in the bin (uint32), length (uint32), the low bytes of the columns' ranks, `low_bytes` each, and the bits above them,
  0, 1, 2 or 4 `high_bits` each, the first in the lowest bits of a byte;
- of entries: distance (7 bits a byte, the last with the top bit clear), row in the bin in `row_bytes`.
"""

from __future__ import annotations

from typing import Any

import numba as nb
import numpy as np

from oocgraph.compiled.intrinsics import AHEAD, load_four, prefetch, store_four
from oocgraph.compiled.load import Call
from oocgraph.kernels.build import cell_of

LISTS, ENTRIES = 0, 1
"""Kinds of slices."""

HEADER_BYTES = 32

LIST_BYTES = 8
"""Of a list beside its columns."""

LEAST_BYTES = 2
"""Of an entry."""

MOST_HIGH_BITS = 4
"""Bits above whole bytes that are stored beside them; more take another byte."""

AT_ONCE = 64
"""Backward entries that are read before their rows' ranks are: these are on their way from memory meanwhile."""

NO_BIN = 2**16 - 1
"""Instead of a bin: an undirected self-loop has no backward entry."""


def column_form(bits: int) -> tuple[int, int]:
    """Return low bytes and high bits of a column's rank below ``2**bits``.

    Examples
    --------
    >>> [column_form(bits) for bits in (3, 24, 25, 27, 29)]
    [(1, 0), (3, 0), (3, 1), (3, 4), (4, 0)]
    """
    low, high = divmod(bits, 8)
    if not low or high > MOST_HIGH_BITS:
        return low + 1, 0
    return low, 1 << (high - 1).bit_length() if high else 0


@nb.njit(nogil=True, cache=True)
def _high_bytes(length: Any, high_bits: Any) -> Any:
    """Bytes of the high bits of a list."""
    return (length * high_bits + 7) // 8


@nb.njit(nogil=True, cache=True)
def measure_lists(
    keys: Any, col_bits: Any, rank: Any, table: Any, low_bytes: Any, high_bits: Any, counts: Any, lists: Any, sizes: Any
) -> None:
    """Add up entries, lists and bytes of the forward entries for each bin: (num_bins,) int64 each."""
    begin = 0
    while begin < keys.size:
        row, end = keys[begin] >> col_bits, begin + 1
        while end < keys.size and keys[end] >> col_bits == row:
            end += 1
        b = table[cell_of(np.uint64(rank[row]))]
        counts[b] += end - begin
        lists[b] += 1
        sizes[b] += LIST_BYTES + (end - begin) * low_bytes + _high_bytes(end - begin, high_bits)
        begin = end


@nb.njit(nogil=True, cache=True)
def measure_entries(
    keys: Any,
    col_bits: Any,
    rank: Any,
    table: Any,
    row_bytes: Any,
    skip_loops: Any,
    last: Any,
    cols: Any,
    bin_of: Any,
    counts: Any,
    sizes: Any,
) -> None:
    """Find ranks and bins of the columns, and add up entries and bytes of the backward entries for each bin.

    ``cols : (n,) uint32`` and ``bin_of : (n,) uint16`` are written. ``last : (num_bins,) uint64`` begins as the first row.
    """
    mask = (np.uint64(1) << col_bits) - np.uint64(1)
    for i in range(keys.size):
        prefetch(rank, keys[min(i + AHEAD, keys.size - 1)] & mask)
        cols[i] = rank[keys[i] & mask]
    for i in range(keys.size):
        row = keys[i] >> col_bits
        if skip_loops and row == keys[i] & mask:
            bin_of[i] = NO_BIN
            continue
        b = table[cell_of(np.uint64(cols[i]))]
        bin_of[i] = b
        distance = row - last[b]
        last[b] = row
        size = np.int64(1) + row_bytes[b]
        while distance > np.uint64(127):
            distance >>= np.uint64(7)
            size += 1
        counts[b] += 1
        sizes[b] += size


@nb.njit(nogil=True, cache=True)
def write_lists(
    keys: Any, col_bits: Any, rank: Any, cols: Any, table: Any, firsts: Any, low_bytes: Any, high_bits: Any, at: Any, out: Any
) -> None:
    """Write the forward entries; ``firsts : (num_bins,) int64`` are rows, and `at` where each bin's next byte goes in ``out``, uint8."""
    begin, low_bits = 0, np.uint32(8 * low_bytes)
    while begin < keys.size:
        row, end = keys[begin] >> col_bits, begin + 1
        while end < keys.size and keys[end] >> col_bits == row:
            end += 1
        b = table[cell_of(np.uint64(rank[row]))]
        place = at[b]
        store_four(out, place, np.uint32(rank[row] - firsts[b]))
        store_four(out, place + 4, np.uint32(end - begin))
        place += LIST_BYTES
        for i in range(begin, end):
            store_four(out, place, cols[i])
            place += low_bytes
        if high_bits:
            for first in range(begin, end, 8 // high_bits):
                byte = np.uint32(0)
                for i in range(first, min(first + 8 // high_bits, end)):
                    byte |= (cols[i] >> low_bits) << np.uint32((i - first) * high_bits)
                out[place] = byte
                place += 1
        at[b] = place
        begin = end


@nb.njit(nogil=True, cache=True)
def write_entries(keys: Any, col_bits: Any, cols: Any, bin_of: Any, firsts: Any, row_bytes: Any, last: Any, at: Any, out: Any) -> None:
    """Write the backward entries; arguments as of `measure_entries` and `write_lists`."""
    for i in range(keys.size):
        b = bin_of[i]
        if b == NO_BIN:
            continue
        row, place = keys[i] >> col_bits, at[b]
        distance = row - last[b]
        last[b] = row
        while distance > np.uint64(127):
            out[place] = np.uint8(distance & np.uint64(127)) | np.uint8(128)
            distance >>= np.uint64(7)
            place += 1
        out[place] = np.uint8(distance)
        store_four(out, place + 1, np.uint32(cols[i] - firsts[b]))
        at[b] = place + 1 + row_bytes[b]


@nb.njit(nogil=True, cache=True)
def _mask_of(num_bytes: Any) -> Any:
    return np.uint32(0xFFFFFFFF) >> np.uint32(32 - 8 * num_bytes)


@nb.njit(nogil=True, cache=True)
def read_slice(
    data: Any,
    place: Any,
    kind: Any,
    number: Any,
    row: Any,
    first: Any,
    bits: Any,
    low_bytes: Any,
    high_bits: Any,
    row_bytes: Any,
    rank: Any,
    keys: Any,
    count: Any,
) -> Any:
    """Write the entries of a slice, whose first byte after the header is at `place`, as keys ``row << bits | col`` from `count` on.

    Returns how many keys there are then.
    """
    if kind == LISTS:
        mask, low_bits, high_mask = _mask_of(low_bytes), np.uint64(8 * low_bytes), np.uint64((1 << high_bits) - 1)
        for _ in range(number):
            key = (first + np.uint64(load_four(data, place))) << bits
            length = np.int64(load_four(data, place + 4))
            place += LIST_BYTES
            for i in range(count, count + length):
                keys[i] = key | np.uint64(load_four(data, place) & mask)
                place += low_bytes
            if high_bits:
                for i in range(length):
                    byte = np.uint64(data[place + i * high_bits // 8]) >> np.uint64(i * high_bits % 8)
                    keys[count + i] |= (byte & high_mask) << low_bits
                place += _high_bytes(length, high_bits)
            count += length
        return count
    mask, rows = _mask_of(row_bytes), np.empty(AT_ONCE, np.uint64)
    for begin in range(count, count + number, AT_ONCE):
        end = min(begin + AT_ONCE, count + number)
        for i in range(begin, end):
            byte = data[place]
            place += 1
            distance, shift = np.uint64(byte & np.uint8(127)), np.uint64(7)
            while byte > np.uint8(127):
                byte = data[place]
                place += 1
                distance |= np.uint64(byte & np.uint8(127)) << shift
                shift += np.uint64(7)
            row += distance
            rows[i - begin] = row
            prefetch(rank, row)
            keys[i] = (first + np.uint64(load_four(data, place) & mask)) << bits
            place += row_bytes
        for i in range(begin, end):
            keys[i] |= np.uint64(rank[rows[i - begin]])
    return count + number


@nb.njit(nogil=True, cache=True)
def read_slices(data: Any, size: Any, first: Any, bits: Any, low_bytes: Any, high_bits: Any, row_bytes: Any, rank: Any, keys: Any) -> Any:
    """Write the entries of all slices of a bin, whose bytes are ``data[:size]``, as keys; return how many they are."""
    words = np.empty(4, np.int64)
    place, count = 0, 0
    while place < size:
        for word in range(4):
            low, high = load_four(data, place + 8 * word), load_four(data, place + 8 * word + 4)
            words[word] = np.int64(low) | (np.int64(high) << 32)
        place += HEADER_BYTES
        row = np.uint64(words[3])
        count = read_slice(data, place, words[0], words[1], row, first, bits, low_bytes, high_bits, row_bytes, rank, keys, count)
        place += words[2]
    return count


@nb.njit(nogil=True, cache=True)
def whole_slices(data: Any, size: Any, low_bytes: Any, most: Any) -> Any:
    """Return the bytes of the first slices that are whole in ``data[:size]``, and room for their entries: `most`, or one slice."""
    place, count = np.int64(0), np.int64(0)
    while place + HEADER_BYTES <= size:
        kind, more, num_bytes = load_four(data, place), np.int64(load_four(data, place + 8)), np.int64(load_four(data, place + 16))
        if kind == LISTS:
            more = (num_bytes - LIST_BYTES * more) // low_bytes
        if place + HEADER_BYTES + num_bytes > size or (count and count + more > most):
            break
        place, count = place + HEADER_BYTES + num_bytes, count + more
    return place, count


def entry_calls() -> list[Call]:
    """Return what every build without edge columns calls whose ranks are in memory."""
    keys, ids, ranks, data, one = (
        np.zeros(1, np.uint64),
        np.zeros(1, np.int64),
        np.zeros(1, np.uint32),
        np.zeros(64, np.uint8),
        np.uint64(1),
    )
    bins, rows = np.zeros(1, np.uint16), np.zeros(1, np.uint64)
    return [
        (measure_lists, (keys, one, ranks, bins, 1, 0, ids, ids, ids)),
        (measure_entries, (keys, one, ranks, bins, ids, True, rows, ranks, bins, ids, ids)),
        (write_lists, (keys, one, ranks, ranks, bins, ids, 1, 0, ids, data)),
        (write_entries, (keys, one, ranks, bins, ids, ids, rows, ids, data)),
        (read_slices, (data, 0, one, one, 1, 0, 1, ranks, keys)),
        (whole_slices, (data, 0, 1, 1)),
    ]
