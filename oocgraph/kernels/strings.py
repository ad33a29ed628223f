"""Compiled steps over strings where they are in memory: hashes, the distinct ones, bins and order by bytes, copies.

A string is an address and a length in bytes (int64 both), so that a kernel takes the strings of several arrays together; its caller keeps
these. Nothing outside of a string is read: its last eight bytes are one word, which may overlap the word before.
"""

from __future__ import annotations

from typing import Any

import numba as nb
import numpy as np

from oocgraph.kernels.intrinsics import byte_at, bytes_at, memcpy, reversed_bytes, trailing_zeros
from oocgraph.kernels.load import Call

FEW = 12
"""Strings that are sorted by insertion."""

KEY_BYTES = 7
"""Bytes of a string that are compared at once. The word's last byte is their number, so that the end of a string is below a zero."""

MOST_RANGES = 256
"""Ranges that wait to be sorted: of three parts of a range the smallest comes first, so these are at most 2 log3 of the strings."""


@nb.njit(nogil=True, cache=True)
def _short(place: Any, length: Any) -> Any:
    """Return fewer than eight bytes as a word, the first one lowest."""
    word = np.uint64(0)
    for b in range(length):
        word |= byte_at(place + b) << np.uint64(8 * b)
    return word


@nb.njit(nogil=True, cache=True)
def _mixed(h: Any, word: Any) -> Any:
    factor = np.uint64(0xC6A4A7935BD1E995)
    word *= factor
    word ^= word >> np.uint64(47)
    return (h ^ (word * factor)) * factor


@nb.njit(nogil=True, cache=True)
def hash_strings(place: Any, length: Any, seed: Any, out: Any) -> None:
    """64-bit hash of each string (MurmurHash64A, Appleby 2008, but for the last word, which may overlap)."""
    factor = np.uint64(0xC6A4A7935BD1E995)
    for i in range(out.size):
        at, size = place[i], length[i]
        h = seed ^ (np.uint64(size) * factor)
        if size < 8:
            h = _mixed(h, _short(at, size))
        else:
            for b in range(0, size - 8, 8):
                h = _mixed(h, bytes_at(at + b))
            h = _mixed(h, bytes_at(at + size - 8))
        h ^= h >> np.uint64(47)
        h *= factor
        out[i] = h ^ (h >> np.uint64(47))


@nb.njit(nogil=True, cache=True)
def _first_difference(p: Any, q: Any, size: Any) -> Any:
    """Return where two strings differ within their first `size` bytes, or `size`."""
    b = np.int64(0)
    while b + 8 <= size:
        differ = bytes_at(p + b) ^ bytes_at(q + b)
        if differ:
            return b + (np.int64(trailing_zeros(differ)) >> 3)
        b += 8
    while b < size and byte_at(p + b) == byte_at(q + b):
        b += 1
    return b


@nb.njit(nogil=True, cache=True)
def _is_below(p: Any, p_length: Any, q: Any, q_length: Any) -> Any:
    """Whether a string is below another, in order of bytes."""
    shorter = min(p_length, q_length)
    b = _first_difference(p, q, shorter)
    return p_length < q_length if b == shorter else byte_at(p + b) < byte_at(q + b)


@nb.njit(nogil=True, cache=True)
def distinct_strings(place: Any, length: Any, hashes: Any, slots: Any, chosen: Any, number_of: Any) -> Any:
    """Write the position of the first one of each distinct string to `chosen`; return their number, or -1 if two have the same hash.

    ``slots : (2**k,) int32`` is a table with more room than there are strings; it is overwritten. ``number_of : (n,) int32`` becomes
    where in `chosen` the first one of each string is.
    """
    slots[:] = -1
    mask, num_chosen = np.uint64(slots.size - 1), 0
    for i in range(place.size):
        if i and place[i] == place[i - 1] and length[i] == length[i - 1]:
            number_of[i] = number_of[i - 1]
            continue
        slot = hashes[i] & mask
        while True:
            other = slots[slot]
            if other < 0:
                slots[slot] = i
                chosen[num_chosen], number_of[i] = i, num_chosen
                num_chosen += 1
                break
            if hashes[other] == hashes[i]:
                if length[other] != length[i] or _first_difference(place[other], place[i], length[i]) != length[i]:
                    return -1
                number_of[i] = number_of[other]
                break
            slot = (slot + np.uint64(1)) & mask
    return num_chosen


@nb.njit(nogil=True, cache=True)
def split_strings(place: Any, length: Any, splitter_place: Any, splitter_length: Any, bin_of: Any) -> None:
    """Write how many splitters each string is not below, in order of bytes, by bisection over (num_bins - 1) ascending strings."""
    for i in range(bin_of.size):
        low, high = 0, splitter_place.size
        while low < high:
            middle = (low + high) // 2
            if _is_below(place[i], length[i], splitter_place[middle], splitter_length[middle]):
                high = middle
            else:
                low = middle + 1
        bin_of[i] = low


@nb.njit(nogil=True, cache=True)
def copy_strings(place: Any, length: Any, order: Any, out: Any) -> None:
    """Copy the bytes of strings after one another to `out`, in an order."""
    target = np.int64(out.ctypes.data)
    for i in order:
        memcpy(target, place[i], length[i])
        target += length[i]


@nb.njit(nogil=True, cache=True)
def _key(place: Any, length: Any, depth: Any) -> Any:
    """Return the bytes of a string from `depth` on as a number in order of bytes, with their count (see `KEY_BYTES`)."""
    left = length - depth
    if left >= 8:
        return (reversed_bytes(bytes_at(place + depth)) & ~np.uint64(0xFF)) | np.uint64(8)
    if length >= 8:
        word = reversed_bytes(bytes_at(place + length - 8) >> np.uint64(8 * (8 - left))) if left else np.uint64(0)
    else:
        word = reversed_bytes(_short(place + depth, left))
    return word | np.uint64(left)


@nb.njit(nogil=True, cache=True)
def _insert(place: Any, length: Any, order: Any, begin: Any, end: Any, depth: Any) -> None:
    """Sort few strings that agree in their first `depth` bytes."""
    for i in range(begin + 1, end):
        one, j = order[i], i
        while j > begin and _is_below(
            place[one] + depth, length[one] - depth, place[order[j - 1]] + depth, length[order[j - 1]] - depth
        ):  # fmt: skip
            order[j] = order[j - 1]
            j -= 1
        order[j] = one


@nb.njit(nogil=True, cache=True)
def _cut(order: Any, keys: Any, begin: Any, end: Any) -> Any:
    """Bring keys below a pivot to the front and those above it to the end, with their strings; return where those equal to it are."""
    a, b, c = keys[begin], keys[(begin + end) // 2], keys[end - 1]
    pivot = max(min(a, b), min(max(a, b), c))
    low, i, high = begin, begin, end
    while i < high:
        key = keys[i]
        if key < pivot:
            keys[low], keys[i] = key, keys[low]
            order[low], order[i] = order[i], order[low]
            low += 1
            i += 1
        elif key > pivot:
            high -= 1
            keys[high], keys[i] = key, keys[high]
            order[high], order[i] = order[i], order[high]
        else:
            i += 1
    return low, high


@nb.njit(nogil=True, cache=True)
def _put_off(waiting: Any, num_waiting: Any, begin: Any, low: Any, high: Any, end: Any, depth: Any) -> Any:
    """Add the three parts of a range to those that wait, the largest first; return how many wait. Keys of the outer two are known."""
    at, first = num_waiting, num_waiting
    for part in range(3):
        start, stop = (begin, low) if part == 0 else (low, high) if part == 1 else (high, end)
        at = num_waiting
        while at > first and waiting[at - 1, 1] - waiting[at - 1, 0] < stop - start:
            for k in range(4):  # to assign a row takes the compiler two seconds
                waiting[at, k] = waiting[at - 1, k]
            at -= 1
        waiting[at, 0], waiting[at, 1] = start, stop
        waiting[at, 2], waiting[at, 3] = (depth + KEY_BYTES, 0) if part == 1 else (depth, 1)
        num_waiting += 1
    return num_waiting


@nb.njit(nogil=True, cache=True)
def sort_strings(place: Any, length: Any, order: Any, keys: Any) -> None:
    """Sort the positions of distinct strings, in `order`, by the strings' bytes (multikey quicksort, Bentley and Sedgewick 1997, by words).

    ``keys : (n,) uint64`` is scratch.
    """
    waiting = np.empty((MOST_RANGES, 4), np.int64)
    waiting[0, 0], waiting[0, 1], waiting[0, 2], waiting[0, 3] = 0, order.size, 0, 0
    num_waiting = 1
    while num_waiting:
        num_waiting -= 1
        begin, end, depth = waiting[num_waiting, 0], waiting[num_waiting, 1], waiting[num_waiting, 2]
        if end - begin <= FEW:
            _insert(place, length, order, begin, end, depth)
            continue
        if not waiting[num_waiting, 3]:
            for i in range(begin, end):
                keys[i] = _key(place[order[i]], length[order[i]], depth)
        low, high = _cut(order, keys, begin, end)
        num_waiting = _put_off(waiting, num_waiting, begin, low, high, end, depth)


def string_calls() -> list[Call]:
    """Return what a build of string ids calls."""
    numbers, words, raw, bins = np.empty(0, np.int64), np.empty(0, np.uint64), np.empty(0, np.uint8), np.empty(0, np.uint16)
    return [
        (sort_strings, (numbers, numbers, numbers, words)),
        (distinct_strings, (numbers, numbers, words, np.empty(1, np.int32), numbers, np.empty(0, np.int32))),
        (hash_strings, (numbers, numbers, np.uint64(0), words)),
        (split_strings, (numbers, numbers, numbers, numbers, bins)),
        (copy_strings, (numbers, numbers, numbers, raw)),
    ]
