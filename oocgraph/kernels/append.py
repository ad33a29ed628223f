"""Compiled steps of merging two stores: rows renumbered and put together, and which edges of one the other has.

Entries are renumbered by a table from old numbers to new ones. Vertices whose degree stays keep their order, so a row is nearly sorted
afterwards: it is sorted by insertion, and by digits once that has moved too much. Long rows whose entries are a set of numbers are bits of
a bitmap, which gives them back in order. A key is ``new number << shift | place``; without columns ``shift`` is 0 and keys are plain
numbers, with columns it is 32 and the place says where a record's columns are.
"""

from __future__ import annotations

from typing import Any

import numba as nb
import numpy as np

from oocgraph.kernels.intrinsics import AHEAD, prefetch, trailing_zeros
from oocgraph.kernels.load import Call

MOVES = 4
"""Moves per entry after which insertion gives up: moving one takes 0.5 ns, a sort by digits 3 to 4 ns in all."""

MARKED = 1 << 8
"""Entries from which on a row is sorted by a bitmap, where its upper words are few beside them."""

DIGIT_BITS = 8
"""Bits of a digit: 256 counters stay in the first cache, whatever a row holds."""


@nb.njit(nogil=True, cache=True)
def _sort_by_digits(keys: Any, at: Any, length: Any, low: Any, bits: Any, other: Any, counts: Any) -> None:
    """Sort ``keys[at : at + length]`` by `bits` bits from bit `low` on, the least significant digit first; equal keys keep their order."""
    is_moved = False
    for digit in range((bits + DIGIT_BITS - 1) // DIGIT_BITS):
        shift, mask = np.uint64(low + DIGIT_BITS * digit), np.uint64((1 << DIGIT_BITS) - 1)
        counts[:] = 0
        for i in range(length):
            key = np.uint64(other[i] if is_moved else keys[at + i])
            counts[(key >> shift) & mask] += 1
        if counts[(np.uint64(other[0] if is_moved else keys[at]) >> shift) & mask] == length:
            continue
        place = 0
        for value in range(1 << DIGIT_BITS):
            size = counts[value]
            counts[value] = place
            place += size
        for i in range(length):
            key = other[i] if is_moved else keys[at + i]
            value = (np.uint64(key) >> shift) & mask
            if is_moved:
                keys[at + counts[value]] = key
            else:
                other[counts[value]] = key
            counts[value] += 1
        is_moved = not is_moved
    if is_moved:
        for i in range(length):
            keys[at + i] = other[i]


@nb.njit(nogil=True, cache=True)
def renumber(entries: Any, new_of: Any) -> None:
    """Replace old numbers by new ones, in place: a pass of its own, in which loads are asked for ahead and wait for no comparison."""
    for i in range(entries.size):
        if i + AHEAD < entries.size:
            prefetch(new_of, entries[i + AHEAD])
        entries[i] = new_of[entries[i]]


@nb.njit(nogil=True, cache=True)
def _sort(entries: Any, begin: Any, length: Any, first: Any, shift: Any, bits: Any, keys: Any, at: Any, other: Any, counts: Any) -> None:
    """Write the keys of a row's entries to ``keys[at : at + length]``, ascending; places count from `first`."""
    places = np.uint64(0) if shift == 0 else np.uint64(0xFFFFFFFF)
    moves, most, i = 0, MOVES * length + 64, 0
    while i < length and moves <= most:
        key = (np.uint64(entries[begin + i]) << shift) | (np.uint64(first + i) & places)
        j = i
        while j > 0 and np.uint64(keys[at + j - 1]) > key:
            keys[at + j] = keys[at + j - 1]
            j -= 1
        keys[at + j] = key
        moves += i - j
        i += 1
    if i == length:
        return
    while i < length:
        keys[at + i] = (np.uint64(entries[begin + i]) << shift) | (np.uint64(first + i) & places)
        i += 1
    _sort_by_digits(keys, at, length, shift, bits, other, counts)


@nb.njit(nogil=True, cache=True)
def _mark(entries: Any, begin: Any, length: Any, marks: Any) -> None:
    """Set the bits of a row's entries, of the words that have one, and of the words of those."""
    for i in range(begin, begin + length):
        number = np.uint64(entries[i])
        for level in range(3):
            word = number >> np.uint64(6)
            marks[level][word] |= np.uint64(1) << (number & np.uint64(63))
            number = word


@nb.njit(nogil=True, cache=True)
def _take_marks(marks: Any, out: Any, at: Any) -> Any:
    """Write the numbers whose bits are set to `out` from `at` on, ascending, and clear them; return the end of what was written."""
    numbers, words, tops = marks
    for top in range(tops.size):
        blocks = tops[top]
        tops[top] = np.uint64(0)
        while blocks:
            block = np.uint64(top << 6) + np.uint64(trailing_zeros(blocks))
            blocks &= blocks - np.uint64(1)
            found = words[block]
            words[block] = np.uint64(0)
            while found:
                word = (block << np.uint64(6)) + np.uint64(trailing_zeros(found))
                found &= found - np.uint64(1)
                left = numbers[word]
                numbers[word] = np.uint64(0)
                while left:
                    out[at] = (word << np.uint64(6)) + np.uint64(trailing_zeros(left))
                    left &= left - np.uint64(1)
                    at += 1
    return at


@nb.njit(nogil=True, cache=True)
def merge_rows(
    a: Any, a_begin: Any, a_length: Any, b: Any, b_begin: Any, b_length: Any, shift: Any, bits: Any, drop: Any, work: Any, counts: Any,
    marks: Any, out: Any, lengths: Any,
) -> Any:  # fmt: skip
    """Put the rows of two stores together; return how many keys were written.

    Parameters
    ----------
    a, b : (n,) uint32
        Entries of each store's rows, renumbered.
    a_begin, a_length, b_begin, b_length : (num_rows,) int64
        Where each new row's entries are; a row that a store lacks has none.
    shift, bits
        Lowest bit of a number in a key, and its bits; see the module.
    drop
        Whether an entry of `b` that `a` has is left out; only where `shift` is 0.
    work : (3, n) of the dtype of `out`
        As many columns as the longest row has entries.
    counts : (256,) int64
        Scratch.
    marks : tuple of three uint64 arrays
        A bit for each vertex, for each word of these, and for each word of those; all are clear before and afterwards.
    out : (n,) uint32 or uint64
        Keys, one row after the other; of equal ones those of `a` first.
    lengths : (num_rows,) int64
        Overwritten: entries of each row.
    """
    written, drops = 0, drop and shift == 0
    most_unmarked = max(MARKED, 4 * marks[2].size) if drops else np.iinfo(np.int64).max
    for row in range(lengths.size):
        num_a, num_b = a_length[row], b_length[row]
        if num_a + num_b > most_unmarked:
            _mark(a, a_begin[row], num_a, marks)
            _mark(b, b_begin[row], num_b, marks)
            lengths[row] = -written
            written = _take_marks(marks, out, written)
            lengths[row] += written
            continue
        if num_a == 0 or num_b == 0:
            if num_b == 0:
                _sort(a, a_begin[row], num_a, a_begin[row], shift, bits, out, written, work[2], counts)
            else:
                _sort(b, b_begin[row], num_b, a.size + b_begin[row], shift, bits, out, written, work[2], counts)
            lengths[row] = num_a + num_b
            written += num_a + num_b
            continue
        ours, theirs = work[0], work[1]
        _sort(a, a_begin[row], num_a, a_begin[row], shift, bits, ours, 0, work[2], counts)
        _sort(b, b_begin[row], num_b, a.size + b_begin[row], shift, bits, theirs, 0, work[2], counts)
        start, j = written, 0
        i = 0
        while j < num_b:
            key = theirs[j]
            while i < num_a and ours[i] < key:
                out[written] = ours[i]
                written += 1
                i += 1
            if not (drops and i < num_a and ours[i] == key):
                if not drops:  # equal keys of `a` come first; places make those of keys with columns differ
                    while i < num_a and ours[i] == key:
                        out[written] = ours[i]
                        written += 1
                        i += 1
                out[written] = key
                written += 1
            j += 1
        while i < num_a:
            out[written] = ours[i]
            written += 1
            i += 1
        lengths[row] = written - start
    return written


@nb.njit(nogil=True, cache=True)
def find_entries(entries: Any, begin: Any, length: Any, row_of: Any, wanted: Any, low: Any, high: Any) -> None:
    """Find where rows hold wanted numbers: entries ``low .. high - 1`` of each, none where there is no such entry.

    Parameters
    ----------
    entries : (n,) uint32
        Rows, each ascending.
    begin, length : (num_rows,) int64
        Where each row is.
    row_of, wanted : (num_wanted,) int64
        The row to look through, and what for.
    low, high : (num_wanted,) int64
        Overwritten.
    """
    for i in range(wanted.size):
        first, stop = begin[row_of[i]], begin[row_of[i]] + length[row_of[i]]
        end = stop
        while first < stop:
            middle = (first + stop) >> 1
            if entries[middle] < wanted[i]:
                first = middle + 1
            else:
                stop = middle
        low[i] = first
        while first < end and entries[first] == wanted[i]:
            first += 1
        high[i] = first


@nb.njit(nogil=True, cache=True)
def merge_ids(
    ids: Any, numbers: Any, other_ids: Any, other_numbers: Any, absent: Any, out: Any, first: Any, second: Any
) -> Any:  # fmt: skip
    """Merge two runs of distinct ascending ids; return how many there are.

    Parameters
    ----------
    ids, numbers, other_ids, other_numbers : (n,) int64
        Each run, and the numbers of its ids.
    absent
        Number of an id that a run lacks.
    out, first, second : (n,) int64
        Overwritten: ids, and their numbers in each run; as many as both have elements.
    """
    i = j = k = 0
    while i < ids.size or j < other_ids.size:
        ours = j == other_ids.size or (i < ids.size and ids[i] <= other_ids[j])
        theirs = i == ids.size or (j < other_ids.size and other_ids[j] <= ids[i])
        out[k] = ids[i] if ours else other_ids[j]
        first[k], second[k] = absent, absent
        if ours:
            first[k] = numbers[i]
            i += 1
        if theirs:
            second[k] = other_numbers[j]
            j += 1
        k += 1
    return k


@nb.njit(nogil=True, cache=True)
def place_ids(first: Any, second: Any, start: Any, first_place: Any, second_place: Any, in_first: Any) -> None:
    """Note where the ids of a block are by their numbers, and which of the second store the first has.

    Parameters
    ----------
    first, second : (n,) int64
        Numbers of the ids in each store, negative without edges there.
    start
        Position of the block's first id.
    first_place, second_place, in_first : (num_rows,) uint32
        Positions by number of each store, and numbers in the first by those in the second: what the block tells is written.
    """
    for i in range(first.size):
        if first[i] >= 0:
            first_place[first[i]] = start + i
        if second[i] >= 0:
            second_place[second[i]] = start + i
            if first[i] >= 0:
                in_first[second[i]] = first[i]


@nb.njit(nogil=True, cache=True)
def add_at(totals: Any, places: Any, amounts: Any) -> None:
    """Add ``amounts[i]`` to ``totals[places[i]]``."""
    for i in range(places.size):
        if i + AHEAD < places.size:
            prefetch(totals, places[i + AHEAD])
        totals[places[i]] += amounts[i]


def merge_calls(*, columns: bool) -> list[Call]:
    """Return what a merge calls, of graphs with or without edge columns."""
    marks = np.empty(0, np.uint64)
    entries, places, keys = np.empty(0, np.uint32), np.empty(0, np.int64), np.empty(0, np.uint64 if columns else np.uint32)
    return [
        (renumber, (entries, entries)),
        (merge_ids, (places, places, places, places, 0, places, places, places)),
        (place_ids, (places, places, 0, entries, entries, entries)),
        (add_at, (entries, entries, entries)),
        (
            merge_rows,
            (entries, places, places, entries, places, places, 0, 1, True, keys.reshape(3, 0), places, (marks,) * 3, keys, places),
        ),
        (find_entries, (entries, places, places, places, places, places, places)),
    ]
