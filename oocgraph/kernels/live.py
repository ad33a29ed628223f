"""Which edges count: what replaces and counts those that do not.

In: an `EdgeMask`. A dead edge becomes one to its own row's vertex: no search finds anything along it, and it joins nothing.
Kernels that read pages have edges replaced by a `oocgraph.kernels.rows.Repair`: the `words_of` a mask and a function of `REPLACE`.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numba as nb
import numpy as np

from oocgraph.compiled.intrinsics import count_ones, pointer_to
from oocgraph.kernels.rows import Repair, RowLookup, find_class, next_class, row_of, vertex_of_edge
from oocgraph.types import Array


class EdgeMask(NamedTuple):
    """Which edges of a group count; in what is read, the others are replaced (`replace_dead`).

    Attributes
    ----------
    live : (num_edges // 64 + 1,) uint64
        Bit per edge.
    rows : RowLookup
        Where rows begin: of neighbours, a dead edge becomes one to its row's own vertex. Without any row it becomes 0: a weight.
    """

    live: Array
    rows: RowLookup


NO_ROWS = RowLookup(*(np.empty(0, np.int64) for _ in range(4)))

NO_MASK = EdgeMask(np.empty(0, np.uint64), NO_ROWS)
"""Where kernels are to be known by the types of their arguments."""

STRETCH, LANES = 1024, 8
"""Edges of which dead ones are replaced at once; those whose vertex is written down at once."""


def words_of(mask: EdgeMask) -> Array:
    """Return the addresses and lengths of a mask's arrays, (10,) int64: good as long as the mask is held."""
    return np.array([word for array in (mask.live, *mask.rows) for word in (array.ctypes.data, array.size)], np.int64)


@nb.njit(nogil=True, cache=True)
def _array_at(words: Any, i: Any) -> Any:
    return nb.carray(pointer_to(words[2 * i]), (words[2 * i + 1],), np.int64)


@nb.njit(nogil=True, cache=True)
def _mask_at(data: Any) -> Any:
    """Return the mask whose words are at an address."""
    words = nb.carray(pointer_to(data), (10,), np.int64)
    rows = RowLookup(_array_at(words, 1), _array_at(words, 2), _array_at(words, 3), _array_at(words, 4))
    return EdgeMask(_array_at(words, 0).view(np.uint64), rows)


@nb.njit(nogil=True, cache=True)
def replace_dead(mask: Any, first: Any, values: Any) -> None:
    """Replace the dead ones of the edges ``first .. first + values.size - 1``, in `values`; see `EdgeMask`.

    Stretch by stretch: the vertex of each edge is written down first, several at once, so that what follows is the same for all edges, and
    the compiler makes it instructions for 16 of them: 0.25 ns an edge (Kronecker graph), a fifth of what replacing row by row takes.
    """
    live, rows = mask
    own = np.zeros(STRETCH + LANES, values.dtype)
    e, last = np.int64(first), np.int64(first + values.size)
    v, c = np.int64(0), np.int64(0)
    has_rows = rows.first.size > 0
    if has_rows and e < last:
        v = vertex_of_edge(rows, e)
        c = find_class(rows.first, v)
    while e < last:
        stop = min(last, (e | (STRETCH - 1)) + 1)
        if has_rows:
            v, c = _list_owners(rows, v, c, e, stop, own)
        _replace_stretch(live, e, own, values[e - first : stop - first])
        e = stop


@nb.njit(nogil=True, cache=True)
def _list_owners(rows: Any, v: Any, c: Any, start: Any, stop: Any, own: Any) -> Any:
    """Write down the vertices of edges ``start .. stop - 1``, of which the first is in the row of `v` or one after it.

    Returns the vertex of the last one, and its class.
    """
    e = start
    while True:
        c = next_class(rows, c, v)
        _, end = row_of(rows, c, v)
        end = min(end, stop)
        at, vertex = np.uint64(e - start), own.dtype.type(v)
        for i in range(at, np.uint64(end - start), np.uint64(LANES)):
            for k in range(LANES):  # of known length; what is too much is written over, or lies behind the end
                own[i + np.uint64(k)] = vertex
        e = end
        if e >= stop:
            return v, c
        v += 1


@nb.njit(nogil=True, cache=True)
def _replace_stretch(live: Any, first: Any, own: Any, values: Any) -> None:
    """Replace the dead ones of the edges from `first` on by what `own` has in their place."""
    kind, i, size = values.dtype.type, np.int64(0), values.size
    while i < size:
        e = first + i
        bits = live[e >> 6] >> np.uint64(e & 63)
        if size - i < 32 or e & 31:
            if not bits & np.uint64(1):
                values[i] = own[i]
            i += 1
            continue
        dead, at = np.int32(~np.uint32(bits)), np.uint64(i)
        for k in range(32 if dead else 0):  # of known length and without a branch; unsigned places, which are not compared with 0
            place = at + np.uint64(k)
            is_dead = kind(np.int32(np.int32(dead << np.int32(31 - k)) >> np.int32(31)))
            values[place] ^= (values[place] ^ own[place]) & is_dead
        i += 32


@nb.njit(nogil=True, cache=True, no_cfunc_wrapper=False)
def replace_dead_1(data: Any, first: Any, values: Any, num_values: Any) -> None:
    """`replace_dead` of values of one byte at an address, by the mask whose words are at another."""
    replace_dead(_mask_at(data), first, nb.carray(pointer_to(values), (num_values,), np.uint8))


@nb.njit(nogil=True, cache=True, no_cfunc_wrapper=False)
def replace_dead_2(data: Any, first: Any, values: Any, num_values: Any) -> None:
    """As `replace_dead_1`, of values of two bytes."""
    replace_dead(_mask_at(data), first, nb.carray(pointer_to(values), (num_values,), np.uint16))


@nb.njit(nogil=True, cache=True, no_cfunc_wrapper=False)
def replace_dead_4(data: Any, first: Any, values: Any, num_values: Any) -> None:
    """As `replace_dead_1`, of values of four bytes."""
    replace_dead(_mask_at(data), first, nb.carray(pointer_to(values), (num_values,), np.uint32))


@nb.njit(nogil=True, cache=True, no_cfunc_wrapper=False)
def replace_dead_8(data: Any, first: Any, values: Any, num_values: Any) -> None:
    """As `replace_dead_1`, of values of eight bytes."""
    replace_dead(_mask_at(data), first, nb.carray(pointer_to(values), (num_values,), np.int64))


REPLACE = {1: replace_dead_1, 2: replace_dead_2, 4: replace_dead_4, 8: replace_dead_8}
"""By the bytes of a value."""


def repair_by(itemsize: int, words: Array) -> Repair:
    """Return what replaces the dead edges of a mask in what kernels read, values of so many bytes; `words` must be held meanwhile."""
    (compiled,) = REPLACE[itemsize].overloads.values()
    return Repair(compiled.library.get_pointer_to_function(compiled.fndesc.llvm_cfunc_wrapper_name), words.ctypes.data)


@nb.njit(nogil=True, cache=True)
def replace_dead_of_plane(mask: Any, plane: Any, first: Any, neighbours: Any) -> None:
    """Replace the dead edges in a stretch of a plane: of the vertices from `first` on, in place."""
    live, rows = mask
    v, stop = np.int64(first), np.int64(first + neighbours.size)
    c = find_class(rows.first, v)
    while v < stop:
        c = next_class(rows, c, v)
        same = min(stop, rows.first[c + 1]) if c + 1 < rows.first.size else stop  # rows of one degree are evenly spaced
        e, degree = rows.edge[c] + (v - rows.first[c]) * rows.value[c] + plane, rows.value[c]
        for u in range(v, same):
            keep = -np.int64((live[e >> 6] >> np.uint64(e & 63)) & np.uint64(1))  # without a branch
            neighbours[u - first] = (neighbours[u - first] & keep) | (u & ~keep)
            e += degree
        v = same


@nb.njit(nogil=True, cache=True)
def count_dead(mask: Any, first: Any, chosen: Any) -> Any:
    """Count the dead edges of the rows from `first` on that are chosen: (num_rows,), 0 or not."""
    live, rows = mask
    dead = 0
    c = find_class(rows.first, first)
    for i in range(chosen.size):
        if not chosen[i]:
            continue
        c = next_class(rows, c, first + i)
        begin, end = row_of(rows, c, first + i)
        e = begin
        while e < end:
            word = ~live[e >> 6] >> np.uint64(e & 63)
            span = min(end, (e | 63) + 1) - e
            if span < 64:
                word &= (np.uint64(1) << np.uint64(span)) - np.uint64(1)
            dead += np.int64(count_ones(word))
            e += span
    return dead


@nb.njit(nogil=True, cache=True)
def list_live_loops(indptr: Any, first_row: Any, first_edge: Any, neighbours: Any, live: Any, loops: Any, size: Any) -> Any:
    """Append to ``loops[:size]`` the vertex of each self-loop that counts in a block of rows; returns the new size.

    Parameters
    ----------
    indptr : (num_rows + 1,) int64
        As stored; the first and the last row may be cut.
    first_edge
        Edge that ``neighbours[0]`` is.
    """
    for i in range(indptr.size - 1):
        v = first_row + i
        for e in range(max(indptr[i], first_edge), min(indptr[i + 1], first_edge + neighbours.size)):
            if np.int64(neighbours[e - first_edge]) == v and (live[e >> 6] >> np.uint64(e & 63)) & np.uint64(1):
                if size < loops.size:
                    loops[size] = v
                size += 1
    return size
