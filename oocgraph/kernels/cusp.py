"""Counting and inserting the edges of a block into partitions, once the owner of each is known: nogil, run by a thread pool.

A block is a range of whole rows. `owners` and `masters` are partition numbers (int16 or int32), by entry and by vertex. A vertex's proxy in
a partition is its master or a mirror; which vertices have one is a bitmap for each partition, ``(num_partitions, num_words) uint64``.
Local ids are ranks in such bitmaps: masters first, then mirrors. A row's edges in one partition ascend by local id, so its masters come
first: each row is divided in two, in order, which is what makes insertion a single pass.

Hoang et al., "CuSP", IPDPS 2019, algorithms 3 and 4.
"""

from __future__ import annotations

from typing import Any

import numba as nb
import numpy as np

from oocgraph.compiled.intrinsics import atomic_or, count_ones, trailing_zeros

MIX = np.uint64(0x9E3779B97F4A7C15)
"""Odd constant of multiplicative hashing (2**64 / golden ratio)."""


@nb.njit(nogil=True, cache=True)
def _mark(words: Any, v: Any) -> None:
    """Set a bit that other threads may set too; most are set already, and looking costs less than setting."""
    w, bit = np.int64(v >> np.uint64(6)), np.uint64(1) << (v & np.uint64(63))
    if not words[w] & bit:
        atomic_or(words, w, bit)


@nb.njit(nogil=True, cache=True)
def count_owned(first_row: Any, row_indptr: Any, indices: Any, begin: Any, owners: Any, masters: Any, proxies: Any, counts: Any) -> Any:
    """Count a block's edges by partition and mark the proxies that they need.

    Parameters
    ----------
    first_row : int
    row_indptr : (num_rows + 1,) int64
        Entries of the rows from `first_row`.
    indices : (num_entries,) integers
        Of entries from `begin`.
    owners : (num_entries,) integers
    masters : (num_vertices,) integers
    proxies : (num_partitions, num_words) uint64
        Bits are set, also by other threads meanwhile.
    counts : (num_partitions, 2) int64
        Added to: edges in rows of masters, in rows of mirrors.

    Returns
    -------
    uint64
        Hash of all owners, by position.
    """
    digest = np.uint64(0)
    for r in range(row_indptr.size - 1):
        v = np.uint64(first_row + r)
        master = masters[v]
        for k in range(np.uint64(row_indptr[r] - begin), np.uint64(row_indptr[r + 1] - begin)):
            p, u = np.int64(owners[k]), np.uint64(indices[k])
            counts[p, np.int64(p != master)] += 1
            _mark(proxies[p], v)
            _mark(proxies[p], u)
            digest += (np.uint64(p) + np.uint64(1)) * ((k + np.uint64(begin)) * MIX | np.uint64(1))
    return digest


@nb.njit(nogil=True, cache=True)
def hash_owners(begin: Any, owners: Any) -> Any:
    """Return the hash of `count_owned`."""
    digest = np.uint64(0)
    for k in range(np.uint64(owners.size)):
        digest += (np.uint64(owners[k]) + np.uint64(1)) * ((k + np.uint64(begin)) * MIX | np.uint64(1))
    return digest


@nb.njit(nogil=True, cache=True)
def split_proxies(partition: Any, masters: Any, proxies: Any, own: Any, mirrors: Any) -> None:
    """Divide the words of a partition's proxies into masters and mirrors.

    Parameters
    ----------
    masters : (at most 64 * num_words,) integers
        Of the vertices from the first of the words.
    proxies, own, mirrors : (num_words,) uint64
        The latter two are set.
    """
    for w in range(proxies.size):
        word = proxies[w]
        mine = np.uint64(0)
        for b in range(min(64, masters.size - 64 * w)):
            if masters[64 * w + b] == partition:
                mine |= np.uint64(1) << np.uint64(b)
        own[w] = word & mine
        mirrors[w] = word & ~mine


@nb.njit(nogil=True, cache=True)
def rank_words(words: Any, before: Any, ranked: Any) -> Any:
    """Set ``ranked[w]`` to a word and to `before` and the bits of the words before; returns that of the end.

    Parameters
    ----------
    words : (num_words,) uint64
    before : int
    ranked : (num_words, 2) uint64
        A word and its rank lie side by side: looking up a local id touches one line of the cache.
    """
    for w in range(words.size):
        ranked[w, 0] = words[w]
        ranked[w, 1] = np.uint64(before)
        before += np.int64(count_ones(words[w]))
    return before


@nb.njit(nogil=True, cache=True)
def list_bits(words: Any, first: Any, out: Any) -> Any:
    """List the vertices whose bits are set, ascending, to `out`; returns how many."""
    found = 0
    for w in range(words.size):
        word = words[w]
        while word:
            out[found] = first + 64 * w + np.int64(trailing_zeros(word))
            found += 1
            word &= word - np.uint64(1)
    return found


@nb.njit(nogil=True, cache=True)
def _local(ranked: Any, v: Any) -> Any:
    """Local id of a vertex that has a proxy."""
    w = v >> np.uint64(6)
    return ranked[w, 1] + count_ones(ranked[w, 0] & ((np.uint64(1) << (v & np.uint64(63))) - np.uint64(1)))


@nb.njit(nogil=True, cache=True)
def insert_edges(
    first_row: Any, row_indptr: Any, indices: Any, begin: Any, owners: Any, masters: Any, ranked: Any, cursor: Any,
    room: Any, slots: Any, out: Any, place: Any, local_indptr: Any, row_cursor: Any, self_loops: Any,
) -> Any:  # fmt: skip
    """Insert a block's edges into the places that were counted for them.

    Parameters
    ----------
    first_row, row_indptr, indices, begin, owners, masters
        As in `count_owned`.
    ranked : (2 * num_partitions, num_words, 2) uint64
        Of each partition masters, then mirrors, with an edge there (`rank_words`): the local id of the first of each word.
    cursor : (2 * num_partitions,) int64
        Where in `out` the next row of a master, of a mirror of each partition goes; advanced.
    room : (2 * num_partitions,) int64
        End of the room of each.
    slots : (num_entries,) int32
        Scratch.
    out : (num_entries,) integers
        Local ids.
    place : (num_entries,) int64, or empty
        Set to where each entry went.
    local_indptr : (num_rows in all,) int64
        Set to the end, in `out`, of each local row of the block.
    row_cursor : (2 * num_partitions,) int64
        Where in `local_indptr` the next row of a master, of a mirror goes; advanced.
    self_loops : (num_partitions,) int64
        Added to.

    Returns
    -------
    int
        0, or 1 where more came than there is room for.
    """
    num_partitions = cursor.size // 2
    count, at = np.zeros(2 * num_partitions, np.int64), np.zeros(2 * num_partitions, np.int64)
    for r in range(np.uint64(row_indptr.size - 1)):
        v = np.uint64(first_row) + r
        master = masters[v]
        low, high = np.uint64(row_indptr[r] - begin), np.uint64(row_indptr[r + np.uint64(1)] - begin)
        for k in range(low, high):
            p, u = owners[k], np.uint64(indices[k])
            slot = np.uint64(2 * np.int64(p) + np.int64(masters[u] != p))
            slots[k] = slot
            count[slot] += 1
            if u == v:
                self_loops[np.uint64(p)] += 1
        for p in range(np.uint64(num_partitions)):
            own = np.uint64(2) * p
            row = own + np.uint64(master != p)
            at[own] = cursor[row]
            at[own + np.uint64(1)] = cursor[row] + count[own]
            cursor[row] += count[own] + count[own + np.uint64(1)]
            count[own] = count[own + np.uint64(1)] = 0
            if cursor[row] > room[row]:
                return 1
            if (ranked[row, v >> np.uint64(6), np.uint64(0)] >> (v & np.uint64(63))) & np.uint64(1):
                local_indptr[row_cursor[row]] = cursor[row]
                row_cursor[row] += 1
        for k in range(low, high):
            slot = np.uint64(slots[k])
            position = np.uint64(at[slot])
            at[slot] += 1
            out[position] = _local(ranked[slot], np.uint64(indices[k]))
            if place.size:
                place[k] = position
    return 0


@nb.njit(nogil=True, cache=True)
def scatter(values: Any, place: Any, out: Any) -> None:
    """Put each value to its place."""
    for k in range(values.size):
        out[place[k]] = values[k]


@nb.njit(nogil=True, cache=True)
def count_columns(indices: Any, counts: Any) -> None:
    """Count how often each index occurs: ``counts[i + 1]`` is added to."""
    for k in range(indices.size):
        counts[np.uint64(indices[k]) + np.uint64(1)] += 1


@nb.njit(nogil=True, cache=True)
def transpose_rows(
    first_row: Any, row_indptr: Any, indices: Any, begin: Any, low: Any, high: Any, cursor: Any, out: Any, place: Any
) -> None:
    """Append each row's number to the lists of its neighbours within ``low .. high - 1``.

    Parameters
    ----------
    cursor : (high - low,) int64
        Where in `out` the next entry of each list goes; advanced.
    out : (entries of these lists,) integers
    place : (num_entries,) int64, or empty
        Set to where each entry went, -1 for others.
    """
    for r in range(row_indptr.size - 1):
        for k in range(np.uint64(row_indptr[r] - begin), np.uint64(row_indptr[r + 1] - begin)):
            u = np.int64(indices[k])
            here = low <= u < high
            if here:
                out[cursor[u - low]] = first_row + r
            if place.size:
                place[k] = cursor[u - low] if here else -1
            if here:
                cursor[u - low] += 1
