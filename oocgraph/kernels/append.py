"""Compiled steps of merging two stores: rows renumbered and put together, and which edges of one the other has.

Entries are renumbered by a table from old numbers to new ones. Vertices whose degree stays keep their order, and others move a few places,
so a row is nearly sorted afterwards (`oocgraph.kernels.nearly_sorted`). Without columns keys are plain numbers, uint32; with columns they
are ``new number << 32 | place``, uint64, and the place says where a record's columns are.
"""

from __future__ import annotations

from typing import Any

import numba as nb
import numpy as np

from oocgraph.compiled.intrinsics import AHEAD, prefetch
from oocgraph.compiled.load import Call
from oocgraph.compiled.vectors import LANES, copy_below, pad, pointer_of
from oocgraph.kernels.build import NO_RANK
from oocgraph.kernels.nearly_sorted import sort_nearly
from oocgraph.kernels.rows import find_class

SLACK = 2 * LANES
"""Elements behind keys: vectors are written whole, and one more behind a row."""


@nb.njit(nogil=True, cache=True)
def renumber(entries: Any, new_of: Any) -> None:
    """Replace old numbers by new ones, in place: a pass of its own, in which loads are asked for ahead and wait for no comparison."""
    for i in range(entries.size):
        if i + AHEAD < entries.size:
            prefetch(new_of, entries[i + AHEAD])
        entries[i] = new_of[entries[i]]


@nb.njit(nogil=True, cache=True)
def merge_rows(
    a: Any, a_begin: Any, a_length: Any, b: Any, b_begin: Any, b_length: Any, drop: Any, work: Any, out: Any, lengths: Any
) -> Any:
    """Put the rows of two stores together; return how many keys were written.

    Parameters
    ----------
    a, b : (n,) uint32
        Entries of each store's rows, renumbered.
    a_begin, a_length, b_begin, b_length : (num_rows,) int64
        Where each new row's entries are; a row that a store lacks has none.
    drop
        Whether an entry of `b` that `a` has is left out; only of keys without places.
    work : (2, n) of the dtype of `out`
        `SLACK` more columns than the longest row has entries.
    out : (n,) uint32 or uint64
        Keys, one row after the other; of equal numbers those of `a` first. It has `SLACK` more elements than `a` and `b` have.
    lengths : (num_rows,) int64
        Overwritten: entries of each row.
    """
    written = 0
    a_entries, b_entries, keys = pointer_of(a), pointer_of(b), pointer_of(out)
    ours, theirs = pointer_of(work[0]), pointer_of(work[1])
    for row in range(lengths.size):
        num_a, num_b, start = a_length[row], b_length[row], written
        if num_a == 0 or num_b == 0:
            if num_b == 0:
                sort_nearly(a_entries, a.size, a_begin[row], num_a, a_begin[row], keys, written)
            else:
                sort_nearly(b_entries, b.size, b_begin[row], num_b, a.size + b_begin[row], keys, written)
            lengths[row] = num_a + num_b
            written += num_a + num_b
            continue
        sort_nearly(a_entries, a.size, a_begin[row], num_a, a_begin[row], ours, 0)
        sort_nearly(b_entries, b.size, b_begin[row], num_b, a.size + b_begin[row], theirs, 0)
        pad(ours, num_a)
        i = 0
        for j in range(num_b):
            key, below = theirs[j], LANES
            while below == LANES:
                below = copy_below(ours, i, key, keys, written)
                i += below
                written += below
            if not (drop and ours[i] == key):
                keys[written] = key
                written += 1
        while i < num_a:
            copy_below(ours, i, ours[i], keys, written)
            below = min(LANES, num_a - i)
            i += below
            written += below
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
def union_ids(ids: Any, other_ids: Any, out: Any) -> Any:
    """Merge two runs of distinct ascending ids, int64, to `out`, which has room for all; return how many there are."""
    i = k = 0
    for other in other_ids:
        while i < ids.size and ids[i] < other:
            out[k] = ids[i]
            i += 1
            k += 1
        out[k] = other
        k += 1
        if i < ids.size and ids[i] == other:
            i += 1
    while i < ids.size:
        out[k] = ids[i]
        i += 1
        k += 1
    return k


@nb.njit(nogil=True, cache=True)
def place_ids(
    ids: Any, numbers: Any, other_ids: Any, other_numbers: Any, start: Any, first_place: Any, second_place: Any, in_first: Any
) -> Any:
    """Note where the ids of two runs are among those of both, by their numbers, and which of the second store the first has.

    Parameters
    ----------
    ids, numbers, other_ids, other_numbers : (n,) int64
        Distinct ascending ids of each store, and their numbers, negative without edges there.
    start
        Position of the first id.
    first_place, second_place, in_first : (num_rows,) uint32
        Positions by number of each store, and numbers in the first by those in the second: what the runs tell is written.

    Returns
    -------
    How many ids there are.
    """
    i, place = 0, start
    for j in range(other_ids.size):
        other, number = other_ids[j], other_numbers[j]
        while i < ids.size and ids[i] < other:
            if numbers[i] >= 0:
                first_place[numbers[i]] = place
            i += 1
            place += 1
        if number >= 0:
            second_place[number] = place
        if i < ids.size and ids[i] == other:
            if numbers[i] >= 0:
                first_place[numbers[i]] = place
                if number >= 0:
                    in_first[number] = numbers[i]
            i += 1
        place += 1
    while i < ids.size:
        if numbers[i] >= 0:
            first_place[numbers[i]] = place
        i += 1
        place += 1
    return place - start


@nb.njit(nogil=True, cache=True)
def add_at(totals: Any, places: Any, amounts: Any) -> None:
    """Add ``amounts[i]`` to ``totals[places[i]]``."""
    for i in range(places.size):
        if i + AHEAD < places.size:
            prefetch(totals, places[i + AHEAD])
        totals[places[i]] += amounts[i]


@nb.njit(nogil=True, cache=True)
def invert(new_of: Any, first: Any, row_of: Any) -> None:
    """Write the rows of new numbers: ``row_of[new_of[i]] = first + i``, uint32 both; the others are left as they are."""
    for i in range(new_of.size):
        row_of[new_of[i]] = first + i


@nb.njit(nogil=True, cache=True)
def known_edges(indptr: Any, first_row: Any, start: Any, cols: Any, number: Any, directed: Any, keys: Any, places: Any) -> Any:
    """Find the edges of consecutive rows whose ends another store has; return how many there are.

    Parameters
    ----------
    indptr : (num_rows + 1,) int64
        Of the rows from `first_row` on; the first may begin before `start`, and the last end behind the last of `cols`.
    start : int
        Entry that comes first.
    cols : (n,) of the dtype of neighbours
    number : (num_vertices,) uint32
        Numbers in the other store, or NO_RANK.
    directed
        Otherwise an edge is found from the end with the larger number.
    keys : (n,) uint64
        Out: ``number of the row << 32 | number of the neighbour``.
    places : (n,) int64
        Out: where in `cols` each is.
    """
    found, place = 0, np.int64(0)
    for r in range(indptr.size - 1):
        end, own = min(max(place, indptr[r + 1] - start), cols.size), number[first_row + r]
        if own != NO_RANK:
            for i in range(place, end):
                other = number[cols[i]]
                if other != NO_RANK and (directed or own >= other):
                    keys[found], places[found] = (np.uint64(own) << np.uint64(32)) | np.uint64(other), i
                    found += 1
        place = end
    return found


@nb.njit(nogil=True, cache=True)
def locate_rows(row_of: Any, first: Any, edge: Any, degree: Any, begin: Any, end: Any) -> None:
    """Find where rows of a store sorted by degree begin and end.

    Parameters
    ----------
    row_of : (n,) uint32
        Rows, or NO_RANK for one that the store lacks: it is empty.
    first, edge, degree : (num_classes,) int64
        First row and first entry of each class of degrees, and the degree.
    begin, end : (n,) int64
        Overwritten.
    """
    one, last = 0, first.size - 1
    for i in range(row_of.size):
        if row_of[i] == NO_RANK:
            begin[i] = end[i] = 0
            continue
        row, at = np.int64(row_of[i]), one
        if row < first[one] or (one < last and row >= first[one + 1]):
            at = one + 1  # where the degree has grown by one
            if at > last or row < first[at] or (at < last and row >= first[at + 1]):
                at = one = find_class(first, row)
        begin[i] = edge[at] + (row - first[at]) * degree[at]
        end[i] = begin[i] + degree[at]


@nb.njit(nogil=True, cache=True)
def end_of_block(begin: Any, end: Any, start: Any, limit: Any, row_cost: Any) -> Any:
    """Find how many rows from `start` on are a block of at most `limit` entries, of which each row counts for `row_cost` more.

    Parameters
    ----------
    begin, end : (num_stores, n) int64
        Where rows are in each store.

    Returns
    -------
    (stop, num_entries): the row behind the last, at least ``start + 1``; entries of all.
    """
    num_entries, cost = 0, 0
    for i in range(start, begin.shape[1]):
        own = 0
        for side in range(begin.shape[0]):
            own += end[side, i] - begin[side, i]
        cost += own + row_cost
        if cost > limit and i > start:
            return i, num_entries
        num_entries += own
    return begin.shape[1], num_entries


@nb.njit(nogil=True, cache=True)
def order_rows(begin: Any, low: Any, high: Any, order: Any, other: Any, counts: Any) -> None:
    """Sort rows by where they begin, digit by digit, the least significant first.

    Parameters
    ----------
    begin : (n,) int64
    low, high : int
        The least and the greatest of `begin`.
    order : (n,) int32
        Overwritten: which row comes when.
    other : (n,) int32
    counts : (num_values,) int64
        Scratch; the number of values of a digit is a power of 2.
    """
    mask, bits, shift = counts.size - 1, 0, 0
    while counts.size >> bits > 1:
        bits += 1
    source, target = order, other
    for i in range(begin.size):
        source[i] = i
    while (high - low) >> shift:
        counts[:] = 0
        for i in range(begin.size):
            counts[((begin[i] - low) >> shift) & mask] += 1
        before = 0
        for value in range(counts.size):
            count = counts[value]
            counts[value] = before
            before += count
        for i in range(begin.size):
            row = source[i]
            value = ((begin[row] - low) >> shift) & mask
            target[counts[value]] = row
            counts[value] += 1
        source, target = target, source
        shift += bits
    if (shift // bits) & 1:
        order[:] = other


@nb.njit(nogil=True, cache=True)
def lay_out_rows(begin: Any, end: Any, order: Any, start: Any, offset: Any, position: Any) -> Any:
    """Put rows one after the other, in an order, without the empty ones; return how many there are, or -1 where one ends before it begins.

    Parameters
    ----------
    begin, end : (n,) int64
        Where rows are.
    order : (n,) int32
        Which comes when.
    start : (n,) int64
        Overwritten: where the rows are that are not empty, in order.
    offset : (n + 1,) int64
        Overwritten: where they are put.
    position : (n,) int64
        Overwritten: where each row is put, or 0.
    """
    found, offset[0] = 0, 0
    for at in order:
        position[at] = 0
        if end[at] < begin[at]:
            return -1
        if end[at] > begin[at]:
            start[found], position[at] = begin[at], offset[found]
            offset[found + 1] = offset[found] + end[at] - begin[at]
            found += 1
    return found


def merge_calls(*, columns: bool) -> list[Call]:
    """Return what a merge calls, of graphs with or without edge columns."""
    entries, places, rows = np.empty(0, np.uint32), np.empty(0, np.int64), np.empty(0, np.int32)
    wide = np.empty(0, np.uint64)
    keys = wide if columns else entries
    known = [(known_edges, (places, 0, 0, cols, entries, True, wide, places)) for cols in (entries, places)]
    return [
        *known,
        (renumber, (entries, entries)),
        (union_ids, (places, places, places)),
        (place_ids, (places, places, places, places, 0, entries, entries, entries)),
        (add_at, (entries, entries, entries)),
        (invert, (entries, 0, entries)),
        (locate_rows, (entries, *[places] * 5)),
        (end_of_block, (places.reshape(2, 0), places.reshape(2, 0), 0, 0, 0)),
        (order_rows, (places, 0, 0, rows, rows, places)),
        (lay_out_rows, (places, places, rows, places, places, places)),
        (merge_rows, (entries, places, places, entries, places, places, True, keys.reshape(2, 0), keys, places)),
        (find_entries, (entries, places, places, places, places, places, places)),
    ]
