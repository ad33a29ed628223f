"""Compiled steps over strings where they are in memory: hashes, the distinct ones, bins and order by bytes, copies.

A string is an address and a length in bytes (int64 both), so that a kernel takes the strings of several arrays together; its caller keeps
these. Nothing outside of a string is read: its last eight bytes are one word, which may overlap the word before.
"""

from __future__ import annotations

from typing import Any

import numba as nb
import numpy as np

from oocgraph.compiled.intrinsics import byte_at, bytes_at, memcpy, reversed_bytes, trailing_zeros
from oocgraph.compiled.load import Call

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
def group_hashes(hashes: Any, shift: Any, starts: Any, grouped: Any, order: Any) -> None:
    """Bring hashes together that agree in the bits from `shift` on, in their order.

    ``starts : (num_groups + 1,) int64`` is written, ``grouped : (n,) uint64`` too, and ``order : (n,) int32``: where each of these was.
    """
    starts[:] = 0
    for i in range(hashes.size):
        starts[(hashes[i] >> shift) + np.uint64(1)] += 1
    for g in range(starts.size - 1):
        starts[g + 1] += starts[g]
    for i in range(hashes.size):
        g = hashes[i] >> shift
        grouped[starts[g]], order[starts[g]] = hashes[i], i
        starts[g] += 1
    for g in range(starts.size - 1, 0, -1):
        starts[g] = starts[g - 1]
    starts[0] = 0


@nb.njit(nogil=True, cache=True)
def distinct_hashes(grouped: Any, order: Any, starts: Any, first: Any, stop: Any, same: Any) -> None:
    """Write of each hash in the groups ``first .. stop - 1`` where the first one was that equals it.

    Arguments are as `group_hashes` writes them; ``same : (n,) int32`` is by the hashes' own positions.
    """
    most = 0
    for g in range(first, stop):
        most = max(most, starts[g + 1] - starts[g])
    room = 2
    while room < 2 * most:
        room *= 2
    slots = np.empty(room, np.int32)
    for g in range(first, stop):
        begin, end, room = starts[g], starts[g + 1], 2
        while room < 2 * (end - begin):
            room *= 2
        mask = np.uint64(room - 1)
        for slot in range(room):
            slots[slot] = -1
        for j in range(begin, end):
            place = grouped[j] & mask
            while slots[place] >= 0 and grouped[slots[place]] != grouped[j]:
                place = (place + np.uint64(1)) & mask
            if slots[place] < 0:
                slots[place] = j
            same[order[j]] = order[slots[place]]


@nb.njit(nogil=True, cache=True)
def are_same(place: Any, length: Any, same: Any, start: Any, stop: Any) -> Any:
    """Whether each of the strings ``start .. stop - 1`` equals the one at the position in `same`."""
    for i in range(start, stop):
        other = same[i]
        if place[i] == place[other] and length[i] == length[other]:
            continue
        if length[i] != length[other] or _first_difference(place[i], place[other], length[i]) != length[i]:
            return False
    return True


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
def sort_strings(
    place: Any, length: Any, order: Any, keys: Any, begin: Any, end: Any, depth: Any, has_keys: Any, most: Any, left: Any
) -> Any:
    """Sort positions of distinct strings by the strings' bytes (multikey quicksort, Bentley and Sedgewick 1997, by words).

    Parameters
    ----------
    order : (n,) int64
        Positions, of which ``begin .. end - 1`` are sorted. Their strings agree in the first `depth` bytes.
    keys : (n,) uint64
        Scratch; with `has_keys`, keys of these strings from `depth` on.
    most
        Ranges of up to so many strings are not sorted but left, while there is room; 0: none.
    left : (k, 4) int64
        Written: begin, end, depth and `has_keys` of each range that is left.

    Returns
    -------
    int
        How many are left.
    """
    waiting = np.empty((MOST_RANGES, 4), np.int64)
    waiting[0, 0], waiting[0, 1], waiting[0, 2], waiting[0, 3] = begin, end, depth, has_keys
    num_waiting, num_left = 1, 0
    while num_waiting:
        num_waiting -= 1
        begin, end, depth = waiting[num_waiting, 0], waiting[num_waiting, 1], waiting[num_waiting, 2]
        if end - begin <= FEW:
            _insert(place, length, order, begin, end, depth)
            continue
        if end - begin <= most and num_left < left.shape[0]:
            for k in range(4):
                left[num_left, k] = waiting[num_waiting, k]
            num_left += 1
            continue
        if not waiting[num_waiting, 3]:
            for i in range(begin, end):
                keys[i] = _key(place[order[i]], length[order[i]], depth)
        low, high = _cut(order, keys, begin, end)
        num_waiting = _put_off(waiting, num_waiting, begin, low, high, end, depth)
    return num_left


def string_calls() -> list[Call]:
    """Return what a build of string ids calls."""
    numbers, words, raw, bins = np.empty(0, np.int64), np.zeros(1, np.uint64), np.empty(0, np.uint8), np.empty(0, np.uint16)
    order, starts, none, shift = np.zeros(1, np.int32), np.zeros(3, np.int64), words[:0], np.uint64(63)
    return [
        (sort_strings, (numbers, numbers, numbers, words, 0, 0, 0, 0, 0, np.empty((0, 4), np.int64))),
        (group_hashes, (none, shift, starts, words, order)),
        (distinct_hashes, (none, order, starts, 0, 0, order)),
        (are_same, (numbers, numbers, order, 0, 0)),
        (hash_strings, (numbers, numbers, np.uint64(0), none)),
        (split_strings, (numbers, numbers, numbers, numbers, bins)),
        (copy_strings, (numbers, numbers, numbers, raw)),
    ]
