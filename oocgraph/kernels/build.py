"""Compiled steps of the external build: keys from edges, keys to bins, sorted keys to rows and planes.

An entry (row, col) is one uint64 key, ``row << col_bits | col``: sorting keys sorts entries by row, then by
column. All functions work on plain arrays, hold no lock of the interpreter and are called by a pool of
threads on blocks of their own; where two threads share an array, the caller holds a lock.

The bin of a key is looked up by its *cell*: the leading `CELL_BITS` bits after the first one, as in a
floating-point number, so that cells are narrow where keys are small. Degree order puts the long rows first,
and so a small table balances hubs and leaves alike (the idea of HdrHistogram).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numba as nb
import numpy as np
from llvmlite import ir
from numba.extending import intrinsic

from oocgraph.compiled.intrinsics import AHEAD, prefetch
from oocgraph.compiled.load import Call
from oocgraph.kernels.packed_rows import row_calls

CELL_BITS = 10
"""A cell is at most 2**-10 of its distance from the start of the range wide."""

KEY_BITS = 52
"""A float64 counts exactly this far; longer ranges drop their low bits."""

_ONE = 1023 << CELL_BITS  # cell of the number one
_SHIFT = KEY_BITS - CELL_BITS

NO_RANK = np.uint32(2**32 - 1)
"""Rank of a vertex that is not in the store: isolated, or absent from the input."""


@intrinsic
def _float_bits(_context: Any, _value: Any) -> Any:
    def generate(_codegen: Any, builder: Any, _signature: Any, args: Any) -> Any:
        return builder.bitcast(args[0], ir.IntType(64))

    return nb.uint64(nb.float64), generate


@nb.njit(nogil=True, cache=True)
def cell_of(distance: Any) -> Any:
    """Return the cell of a key's distance from the start of its range."""
    return (_float_bits(np.float64(distance + np.uint64(1))) >> np.uint64(_SHIFT)) - np.uint64(_ONE)


@nb.njit(nogil=True, cache=True)
def count_bins(keys: Any, low: Any, drop_bits: Any, table: Any, bin_of: Any, counts: Any) -> None:
    """Write the bin of each key and add up the size of each bin.

    ``keys : (n,) uint64``, none below ``low``;
    ``table : (num_cells,) uint16``; ``bin_of : (n,) uint16`` and ``counts : (num_bins,) int64`` are written.
    """
    for i in range(keys.size):
        chosen = table[cell_of((keys[i] - low) >> drop_bits)]
        bin_of[i] = chosen
        counts[chosen] += 1


@nb.njit(nogil=True, cache=True)
def count_cells(keys: Any, low: Any, drop_bits: Any, counts: Any) -> None:
    """Add the number of keys in each cell to ``counts : (num_cells,) int64``."""
    for i in range(keys.size):
        counts[cell_of((keys[i] - low) >> drop_bits)] += 1


@nb.njit(nogil=True, cache=True)
def scatter(values: Any, bin_of: Any, cursor: Any, out: Any) -> None:
    """Group ``values`` by bin into ``out``; ``cursor : (num_bins,) int64`` holds each bin's start and is advanced."""
    for i in range(values.size):
        chosen = bin_of[i]
        out[cursor[chosen]] = values[i]
        cursor[chosen] += 1


@nb.njit(nogil=True, cache=True)
def edge_keys(source: Any, target: Any, first: Any, length: Any, col_bits: Any, undirected: Any, keys: Any) -> Any:
    """Write one key per edge, of positions ``id - first``; return the first edge with an id outside, or -1.

    An undirected edge is kept once. Which end is its row is decided by the parity of the sum, not by size, so that
    rows are loaded evenly and a star's edges do not all fall into one row.
    """
    for i in range(source.size):
        u = np.uint64(source[i] - first)
        v = np.uint64(target[i] - first)
        if u >= length or v >= length:
            return i
        if undirected:  # without a branch on u and v: a wrong guess costs 4 ns
            low, high = min(u, v), max(u, v)
            odd = np.uint64(0) - ((u + v) & np.uint64(1))
            swap = (low ^ high) & odd
            u, v = low ^ swap, high ^ swap
        keys[i] = (u << col_bits) | v
    return -1


@nb.njit(nogil=True, cache=True)
def compact_keys(keys: Any, col_bits: Any, drop_duplicates: Any, drop_loops: Any, loops: Any) -> Any:
    """Remove duplicates and self-loops from sorted keys, in place.

    Returns the number of keys that remain, and of distinct vertices with a dropped self-loop, which are written to ``loops``.
    """
    mask = (np.uint64(1) << col_bits) - np.uint64(1)
    kept = 0
    num_loops = 0
    for i in range(keys.size):
        key = keys[i]
        if drop_loops and (key >> col_bits) == (key & mask):
            if num_loops == 0 or loops[num_loops - 1] != (key & mask):
                loops[num_loops] = key & mask
                num_loops += 1
            continue
        if drop_duplicates and kept > 0 and keys[kept - 1] == key:
            continue
        keys[kept] = key
        kept += 1
    return kept, num_loops


@nb.njit(nogil=True, cache=True)
def sum_groups(values: Any, starts: Any, sums: Any) -> None:
    """Write the sum of each group of consecutive values, added in their order in 64 bits; ``starts`` are the first of each group."""
    for group in range(starts.size):
        stop = starts[group + 1] if group + 1 < starts.size else values.size
        total = np.float64(values[starts[group]])
        for i in range(starts[group] + 1, stop):
            total += values[i]
        sums[group] = total


@nb.njit(nogil=True, cache=True)
def add_degrees(keys: Any, col_bits: Any, undirected: Any, degree: Any, has_out: Any) -> None:
    """Count entries by vertex: both ends when undirected (a self-loop once), else columns, flagging rows in ``has_out``.

    ``degree : (num_ids,) uint32`` is shared: the caller holds a lock (4 ns an edge, against 8 ns for sorting it).
    """
    mask = (np.uint64(1) << col_bits) - np.uint64(1)
    for i in range(keys.size):
        prefetch(degree, keys[min(i + AHEAD, keys.size - 1)] & mask)
        row, col = keys[i] >> col_bits, keys[i] & mask
        degree[col] += np.uint32(1)
        if undirected:
            if row != col:
                degree[row] += np.uint32(1)
        else:
            has_out[row] = 1


@nb.njit(nogil=True, cache=True)
def put_at(places: Any, first: Any, values: Any, out: Any) -> None:
    """Set ``out[places[i] - first]`` to ``values[i]``: places are unsigned; those outside are passed over."""
    for i in range(places.size):
        if i + AHEAD < places.size:
            prefetch(out, np.uint64(places[i + AHEAD]) - np.uint64(first))
        at = np.int64(places[i]) - np.int64(first)
        if 0 <= at < out.size:
            out[at] = values[i]


@nb.njit(nogil=True, cache=True)
def count_degrees(degree: Any, used: Any, small: Any) -> Any:
    """Count used vertices by degree, in ``small : (limit,) int64`` those whose degree is below; return how many the others are."""
    num_large = 0
    for i in range(degree.size):
        if used[i]:
            if degree[i] < small.size:
                small[degree[i]] += 1
            else:
                num_large += 1
    return num_large


@nb.njit(nogil=True, cache=True)
def assign_ranks(
    degree: Any, used: Any, class_of_small: Any, large_degrees: Any, num_small_classes: Any, next_rank: Any, rank: Any
) -> None:
    """Give each used vertex the next rank of its degree class; the others `NO_RANK`.

    ``class_of_small : (limit,) int64`` maps a degree below its length to its class, ``large_degrees`` (ascending) the
    others: class ``num_small_classes + position``. ``next_rank : (num_classes,) int64`` is advanced. ``rank`` may be ``degree`` itself.
    """
    for i in range(degree.size):
        if not used[i]:
            rank[i] = NO_RANK
            continue
        d = degree[i]
        if d < class_of_small.size:
            c = class_of_small[d]
        else:
            low, high = np.int64(0), np.int64(large_degrees.size)
            while low < high:  # bisected here: NumPy's takes as long to compile as all of this
                middle = (low + high) >> 1
                if large_degrees[middle] < d:
                    low = middle + 1
                else:
                    high = middle
            c = num_small_classes + low
        rank[i] = np.uint32(next_rank[c])
        next_rank[c] += 1


@nb.njit(nogil=True, cache=True)
def count_ids(ids: Any, first: Any, degree: Any) -> None:
    """Add up how often each of ``first .. first + degree.size - 1`` occurs in ``ids : (n,) uint64``."""
    for i in range(ids.size):
        degree[ids[i] - first] += np.uint32(1)


@nb.njit(nogil=True, cache=True)
def rename_rows(keys: Any, col_bits: Any, rank: Any, first: Any, out: Any) -> None:
    """Rename the rows of entries and transpose them: ``out`` becomes ``col << 32 | rank[row - first]``."""
    mask = (np.uint64(1) << col_bits) - np.uint64(1)
    for i in range(keys.size):
        out[i] = ((keys[i] & mask) << np.uint64(32)) | np.uint64(rank[(keys[i] >> col_bits) - first])


@nb.njit(nogil=True, cache=True)
def rename_cols(half: Any, rank: Any, first: Any, bits: Any, undirected: Any, forward: Any, backward: Any) -> Any:
    """Finish what `rename_rows` began: write each entry to ``forward`` and its transpose to ``backward``.

    Returns how many were written to ``backward``; an undirected self-loop has no second entry. ``forward`` may be ``half``.
    """
    written = 0
    for i in range(half.size):
        u = half[i] & np.uint64(0xFFFFFFFF)
        v = np.uint64(rank[(half[i] >> np.uint64(32)) - first])
        forward[i] = (u << bits) | v
        if not (undirected and u == v):
            backward[written] = (v << bits) | u
            written += 1
    return written


@nb.njit(nogil=True, cache=True)
def split_rows(keys: Any, col_bits: Any, first_row: Any, offset: Any, indices: Any, indptr: Any) -> Any:
    """Write the columns of sorted keys, and where each row starts that begins here; return the number of self-loops.

    ``indptr[r]`` becomes ``offset`` plus the number of keys below row ``first_row + r``.
    """
    mask = (np.uint64(1) << col_bits) - np.uint64(1)
    row = 0
    num_loops = 0
    for i in range(keys.size):
        key_row = np.int64(keys[i] >> col_bits) - first_row
        while row < indptr.size and row <= key_row:
            indptr[row] = offset + i
            row += 1
        col = keys[i] & mask
        indices[i] = col
        if (keys[i] >> col_bits) == col:
            num_loops += 1
    while row < indptr.size:
        indptr[row] = offset + keys.size
        row += 1
    return num_loops


@nb.njit(nogil=True, cache=True)
def rows_with_entries(keys: Any, col_bits: Any, rows: Any, starts: Any) -> Any:
    """Write the rows of sorted keys, each once, and the number of keys below each; return how many they are."""
    count = np.int64(0)
    for i in range(keys.size):
        row = keys[i] >> col_bits
        if i == 0 or row != keys[i - 1] >> col_bits:
            rows[count], starts[count] = row, i
            count += 1
    return count


@nb.njit(nogil=True, cache=True)
def fill_row_starts(rows: Any, starts: Any, first_row: Any, offset: Any, num_keys: Any, place: Any, indptr: Any) -> Any:
    """Write ``indptr[r]``, ``offset`` plus the number of keys below row ``first_row + r``, from what `rows_with_entries` found.

    ``place`` is the first of `rows` that is not below ``first_row``, or one before it; returns it for the row behind these.
    """
    for i in range(indptr.size):
        while place < rows.size and np.int64(rows[place]) < first_row + i:
            place += 1
        indptr[i] = offset + (np.int64(starts[place]) if place < rows.size else num_keys)
    return place


@nb.njit(nogil=True, cache=True)
def deal_planes(indices: Any, lengths: Any, carry: Any, offsets: Any, out: Any) -> None:
    """Deal each row's first neighbours to the planes.

    ``lengths : (num_rows,) int64``; ``carry`` is how many neighbours of the first row came before these. ``offsets : (K + 1,) int64`` is
    overwritten: plane k of these rows is ``out[offsets[k]:offsets[k + 1]]``. ``out`` holds K neighbours of each row, or all.
    """
    num_planes = offsets.size - 1
    offsets[:] = 0
    for row in range(1, lengths.size):  # rows by their number of neighbours, then those with more than k
        offsets[min(num_planes, lengths[row])] += 1
    longer = np.int64(0)
    for k in range(num_planes, -1, -1):
        longer, offsets[k] = longer + offsets[k], longer
    for k in range(carry, min(num_planes, carry + lengths[0]) if lengths.size else 0):
        offsets[k] += 1
    before = np.int64(0)
    for k in range(num_planes + 1):
        before, offsets[k] = before + offsets[k], before
    start, first = np.int64(0), np.int64(carry)
    for row in range(lengths.size):
        for k in range(first, min(num_planes, first + lengths[row])):
            out[offsets[k]] = indices[start + k - first]
            offsets[k] += 1
        start += lengths[row]
        first = np.int64(0)
    for k in range(num_planes, 0, -1):
        offsets[k] = offsets[k - 1]
    offsets[0] = 0


def memory_build_calls(dtypes: Iterable[np.dtype[Any]] = ()) -> list[Call]:
    """Return what builds in memory call, with arguments of the types that they have; builds on disk call it too.

    Columns of some dtypes are beside the edges.
    """
    keys, one, zero = np.zeros(1, np.uint64), np.uint64(1), np.uint64(0)
    ids, numbers = np.zeros(1, np.int64), np.zeros(1, np.uint32)
    return [
        (split_rows, (keys, one, 0, 0, numbers, ids)),
        (deal_planes, (numbers, ids, 0, ids, numbers)),
        (edge_keys, (ids, ids, np.int64(0), one, one, True, keys)),
        (compact_keys, (keys, one, True, True, keys)),
        (add_degrees, (keys, one, True, numbers, np.zeros(1, np.uint8))),
        (rename_rows, (keys, one, numbers, zero, keys)),
        (rename_cols, (keys, numbers, zero, one, True, keys, keys)),
        *([(sum_groups, (np.zeros(1), ids, np.zeros(1)))] if any(dtype.kind == "f" for dtype in dtypes) else []),
    ]


def dealing_calls(dtypes: Iterable[np.dtype[Any]] = ()) -> list[Call]:
    """Return what deals records to bins calls, keys with columns of some dtypes, and splits a bin that is too large."""
    keys, zero, ids, small = np.zeros(1, np.uint64), np.uint64(0), np.zeros(1, np.int64), np.zeros(1, np.uint16)
    return [
        (count_bins, (keys, zero, zero, small, small, ids)),
        (count_cells, (keys, zero, zero, ids)),
        (scatter, (keys, small, ids, keys)),
        *row_calls(dtypes),
    ]


def build_calls(dtypes: Iterable[np.dtype[Any]] = ()) -> list[Call]:
    """Return what every build on disk calls, with arguments of the types that it has; columns of some dtypes are beside its edges."""
    keys, ids, numbers, flags = np.zeros(1, np.uint64), np.zeros(1, np.int64), np.zeros(1, np.uint32), np.zeros(1, bool)
    return [
        *memory_build_calls(dtypes),
        (rows_with_entries, (keys, np.uint64(1), numbers, numbers)),
        (fill_row_starts, (numbers, numbers, 0, 0, 0, 0, ids)),
        *((put_at, (places, 0, ids, ids)) for places in (keys, numbers)),
        (count_degrees, (numbers, flags, ids)),
        (count_ids, (keys, np.uint64(0), numbers)),
        (assign_ranks, (numbers, flags, ids, numbers, 0, ids, numbers)),
        *dealing_calls(dtypes),
    ]
