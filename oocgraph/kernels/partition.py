"""Compiled kernels of a partitioned graph: cutting blocks, and moving bits and values between store order and local order.

A partition owns blocks of vertices, given as three (num_blocks,) int64 arrays, ascending: ``first`` and ``stop`` (store numbers) and
``local`` (the position of ``first`` among the partition's own vertices). Bitmaps are uint64 words, vertex ``v`` is bit ``v & 63`` of
word ``v >> 6``; a bitmap over local positions is one of the partition's own vertices. Blocks start and end anywhere in a word.

Each loop is inside its function: a call with arrays as arguments costs 20 ns, a word moved in place 1 ns.
"""

from __future__ import annotations

from typing import Any

import numba as nb
import numpy as np

from oocgraph.compiled.intrinsics import count_ones, trailing_zeros


@nb.njit(nogil=True, cache=True)
def cut_blocks(degree_first: Any, degree_value: Any, num_vertices: Any, max_vertices: Any, max_edges: Any, out: Any) -> Any:
    """Cut degree-sorted vertices into consecutive blocks of at most `max_vertices` vertices and `max_edges` edges.

    A vertex with more edges than that is a block alone. Work is linear in blocks and degree classes, not in vertices.

    Parameters
    ----------
    degree_first, degree_value : (num_distinct,) int64
        First vertex and degree of each degree class, in vertex order.
    out : (at least num_vertices // max_vertices + 2 * (num_edges // max_edges) + 2,) int64
        Receives the first vertex of each block.

    Returns
    -------
    num_blocks
    """
    num_blocks, vertices, edges = 0, 0, 0
    for c in range(degree_first.size):
        v, degree = degree_first[c], degree_value[c]
        end = degree_first[c + 1] if c + 1 < degree_first.size else num_vertices
        while v < end:
            room = max_vertices - vertices
            if edges > max_edges:
                room = 0
            elif degree:
                room = min(room, (max_edges - edges) // degree)
            if room <= 0 and vertices:
                vertices, edges = 0, 0
                continue
            if vertices == 0:
                out[num_blocks] = v
                num_blocks += 1
            take = min(max(room, 1), end - v)
            v += take
            vertices += take
            edges += take * degree
    return num_blocks


@nb.njit(nogil=True, cache=True)
def scatter_bits(first: Any, stop: Any, local: Any, part: Any, out: Any) -> None:
    """Set in `out`, a bitmap over store numbers, the vertices that `part`, a bitmap over local positions, marks.

    Words of `out` at the ends of blocks are shared with other partitions: two threads may not scatter into one bitmap.
    """
    _or_runs(local, first, first, stop, part, out)


@nb.njit(nogil=True, cache=True)
def gather_bits(first: Any, stop: Any, local: Any, rows: Any, out: Any) -> None:
    """Overwrite `out`, a bitmap over local positions, with the owned vertices that `rows`, a bitmap over store numbers, marks."""
    out[:] = 0
    _or_runs(first, local, first, stop, rows, out)


@nb.njit(nogil=True, cache=True)
def _or_runs(begin: Any, end: Any, first: Any, stop: Any, source: Any, target: Any) -> None:
    """Or into `target`, from bit ``end[i]``, the ``stop[i] - first[i]`` bits of `source` from bit ``begin[i]``."""
    one = np.uint64(1)
    for i in range(first.size):
        s, t = begin[i], end[i]
        last = t + stop[i] - first[i]
        while t < last:
            bit, shift, w = t & 63, s & 63, s >> 6
            take = min(64 - bit, last - t)
            bits = source[w] >> np.uint64(shift)
            if shift + take > 64:
                bits |= source[w + 1] << np.uint64(64 - shift)
            if take < 64:
                bits &= (one << np.uint64(take)) - one
            target[t >> 6] |= bits << np.uint64(bit)
            s += take
            t += take


@nb.njit(nogil=True, cache=True)
def own_bits(first: Any, stop: Any, out: Any) -> None:
    """Set the vertices of all blocks in `out`, a bitmap over store numbers; other bits stay as they are."""
    one, every = np.uint64(1), ~np.uint64(0)
    for i in range(first.size):
        v, end = first[i], stop[i]
        while v < end:
            take = min(64 - (v & 63), end - v)
            bits = every if take == 64 else (one << np.uint64(take)) - one
            out[v >> 6] |= bits << np.uint64(v & 63)
            v += take


@nb.njit(nogil=True, cache=True)
def rank_words(owned: Any, rank: Any) -> Any:
    """Fill ``rank[w]`` with the number of bits in words before `w` of `owned`; returns the number of all bits."""
    total = 0
    for w in range(owned.size):
        rank[w] = total
        total += np.int64(count_ones(owned[w]))
    return total


@nb.njit(nogil=True, cache=True)
def to_global(local_positions: Any, count: Any, first: Any, stop: Any, local: Any, out: Any) -> None:
    """Fill ``out[:count]`` with the store numbers of ``local_positions[:count]``, which ascend."""
    block, num_blocks = 0, first.size
    for i in range(count):
        position = np.int64(local_positions[i])
        while block + 1 < num_blocks and local[block + 1] <= position:
            block += 1
        out[i] = first[block] + position - local[block]


@nb.njit(nogil=True, cache=True)
def take_marked(rows: Any, values: Any, out: Any) -> Any:
    """Fill ``out[i]`` with ``values[v]`` of the i-th vertex `v` marked in `rows`, ascending; returns their number."""
    one = np.uint64(1)
    count = 0
    for w in range(rows.size):
        bits = rows[w]
        while bits:
            out[count] = values[w * 64 + np.int64(trailing_zeros(bits))]
            count += 1
            bits &= bits - one
    return count


@nb.njit(nogil=True, cache=True)
def take_runs(first: Any, stop: Any, local: Any, piece: Any, piece_first: Any, out: Any) -> Any:
    """Copy the elements of own vertices from a piece of an array in store order to their local positions in `out`.

    Parameters
    ----------
    piece, piece_first
        Elements of vertices ``piece_first .. piece_first + piece.size - 1``.

    Returns
    -------
    num_copied
    """
    low, high = 0, first.size
    while low < high:  # the first block that ends after the piece begins
        middle = (low + high) >> 1
        if stop[middle] > piece_first:
            high = middle
        else:
            low = middle + 1
    piece_stop = piece_first + piece.size
    count = 0
    while low < first.size and first[low] < piece_stop:
        a, z = max(first[low], piece_first), min(stop[low], piece_stop)
        shift = local[low] - first[low]
        for v in range(a, z):
            out[v + shift] = piece[v - piece_first]
        count += z - a
        low += 1
    return count
