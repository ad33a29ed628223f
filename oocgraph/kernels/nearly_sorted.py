"""Rows that are nearly in order are sorted by vectors: what moves, moves a few places, and no step depends on a comparison.

Vectors are sorted, then merged to blocks of twice the size until an entry is at most half a block from its place. Then merging
the halves of neighbouring blocks, and the halves of each block once more, puts every entry there. Where one moves further, it goes on with
blocks of twice the size, at the last of all entries, so that any row is sorted, however it is.
"""

from __future__ import annotations

from typing import Any

import numba as nb

from oocgraph.compiled.vectors import LANES, finish_one, finish_two, key_of, merge_two, order, order_across, order_four, pad, sort_keys

FEW = 8
"""Entries of a row that is likely to be in order: of 9 of 10 such rows in an append of 1 % to a Kronecker graph all are."""


@nb.njit(nogil=True, cache=True)
def _merge_block(keys: Any, begin: Any, half: Any, stop: Any) -> None:
    """Merge ``keys[begin : begin + half]`` and what is behind, up to `stop`: each ascends, and the second is no longer."""
    middle, size = begin + half, 2 * half
    for i in range(0, stop - middle, LANES):
        order_across(keys, middle - LANES - i, middle + i)
    distance = half >> 1
    while distance >= 4 * LANES and stop - begin == size:
        step = distance >> 1
        for start in range(begin, stop, 2 * distance):
            for i in range(start, start + step, LANES):
                order_four(keys, i, step)
        distance >>= 2
    while distance >= 2 * LANES:
        for start in range(begin, stop - distance, 2 * distance):
            for i in range(start, min(start + distance, stop - distance), LANES):
                order(keys, i, i + distance)
        distance >>= 1
    for i in range(begin, stop - LANES, 2 * LANES):
        finish_two(keys, i)
    if (stop - begin) & LANES:
        finish_one(keys, stop - LANES)


@nb.njit(nogil=True, cache=True)
def _merge_blocks(keys: Any, begin: Any, stop: Any, half: Any) -> None:
    """Merge neighbouring blocks of `half` keys, each of which ascends, two and two; the last may be shorter."""
    if half == LANES:
        for block in range(begin, stop - LANES, 2 * LANES):
            merge_two(keys, block)
        return
    for block in range(begin, stop - half, 2 * half):
        if keys[block + half - 1] > keys[block + half]:
            _merge_block(keys, block, half, min(block + 2 * half, stop))


@nb.njit(nogil=True, cache=True)
def _is_out_of_order(keys: Any, begin: Any, stop: Any, distance: Any) -> bool:
    """Return whether a vector has a key above one of the vector `distance` keys behind it; each ascends."""
    for i in range(begin, stop - distance, LANES):  # noqa: SIM110 - numba has no generators
        if keys[i + LANES - 1] > keys[i + distance]:
            return True
    return False


@nb.njit(nogil=True, cache=True)
def _are_sorted(keys: Any, begin: Any, stop: Any, size: Any) -> bool:
    """Return whether blocks of `size` keys, each of which ascends, ascend together."""
    for i in range(begin + size, stop, size):  # noqa: SIM110
        if keys[i - 1] > keys[i]:
            return False
    return True


@nb.njit(nogil=True, cache=True)
def _sort_vectors(entries: Any, size: Any, begin: Any, length: Any, place: Any, keys: Any, at: Any) -> None:
    """Write the keys of a row, each vector in order."""
    for i in range(0, length, LANES):
        if begin + i + LANES <= size:
            sort_keys(entries, begin + i, length - i, keys, at + i, place + i)
        else:  # what is behind the last entry must not be read
            pad(keys, at + i)
            for j in range(i, min(length, i + LANES)):
                keys[at + j] = key_of(keys, entries[begin + j], place + j)
            sort_keys(keys, at + i, LANES, keys, at + i, 0)


@nb.njit(nogil=True, cache=True)
def sort_nearly(entries: Any, size: Any, begin: Any, length: Any, place: Any, keys: Any, at: Any) -> None:
    """Write the keys of ``entries[begin : begin + length]`` to ``keys[at : at + length]``, ascending.

    Parameters
    ----------
    entries : pointer to uint32
        Of `size` entries.
    place
        Of the first entry; see `oocgraph.compiled.vectors.key_of`.
    keys : pointer to uint32 or uint64
        Overwritten, perhaps up to the end of the last vector, ``at + length`` rounded up to `LANES`. No key has all bits set.
    """
    if length <= FEW:
        ascend = True
        for i in range(begin + 1, begin + length):
            ascend &= entries[i - 1] <= entries[i]
        if ascend:
            for i in range(length):
                keys[at + i] = key_of(keys, entries[begin + i], place + i)
            return
    _sort_vectors(entries, size, begin, length, place, keys, at)
    if length <= LANES:
        return
    stop, half, enough = at + -(-length // LANES) * LANES, LANES, LANES
    while 2 * enough < length and _is_out_of_order(keys, at, stop, 2 * enough):
        enough *= 2
    while True:
        _merge_blocks(keys, at, stop, half)
        if 2 * half >= length:
            return
        if half >= enough:
            _merge_blocks(keys, at + half, stop, half)
            _merge_blocks(keys, at, stop, half)
            if _are_sorted(keys, at, stop, 2 * half):
                return
        half *= 2
