"""The compiled parts of a store's check: order within rows, permutations, and hashes that prove two arrays equal as sets.

The sum of a hash over all edges does not depend on their order, so the entries of ``out`` and those of ``in`` turned
around (or of an undirected ``out`` both ways) are the same edges when the sums agree: one stream each and eight bytes.
Hash: splitmix64 (Steele, Lea, Flood, OOPSLA 2014).
"""

from __future__ import annotations

from typing import Any

import numba as nb
import numpy as np

SOUND = 0
OUT_OF_RANGE = 1
NOT_ASCENDING = 2


@nb.njit(nogil=True, cache=True)
def mix(x: Any) -> Any:
    """Return the finalizer of splitmix64 of a uint64."""
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


@nb.njit(nogil=True, cache=True)
def splitmix64(number: Any) -> Any:
    """Return the splitmix64 hash of an integer."""
    return mix(np.uint64(number) + np.uint64(0x9E3779B97F4A7C15))


@nb.njit(nogil=True, cache=True)
def pair_hash(u: Any, w: Any) -> Any:
    """Hash an ordered pair of integers."""
    return mix(splitmix64(u) + np.uint64(w))


@nb.njit(nogil=True, cache=True)
def check_rows(indptr: Any, first_row: int, first_edge: int, lead: int, indices: Any, num_vertices: int, strict: int) -> Any:
    """Check that neighbours are vertices and ascend within their row.

    Parameters
    ----------
    lead
        1 when ``indices[0]``, entry `first_edge`, was looked at already and is only there to be compared.
    strict
        1 when no neighbour may occur twice.

    Returns
    -------
    (rule, row, entry, num_loops, hash of all (row, neighbour), hash of all (neighbour, row))
    """
    forward, backward = np.uint64(0), np.uint64(0)
    num_loops = 0
    for r in range(indptr.size - 1):
        u = first_row + r
        a = max(indptr[r] - first_edge, 0)
        b = min(indptr[r + 1] - first_edge, indices.size)
        last = np.int64(-1)
        for i in range(a, b):
            w = np.int64(indices[i])
            if w < 0 or w >= num_vertices:
                return OUT_OF_RANGE, u, first_edge + i, num_loops, forward, backward
            if w < last or (strict and w == last):
                return NOT_ASCENDING, u, first_edge + i, num_loops, forward, backward
            last = w
            if i >= lead:
                num_loops += w == u
                forward += pair_hash(u, w)
                backward += pair_hash(w, u)
    return SOUND, -1, -1, num_loops, forward, backward


@nb.njit(nogil=True, cache=True)
def mark(values: Any, seen: Any, size: int) -> int:
    """Set the bit of each value in `seen`; return the first position whose value is no new one of ``0 .. size - 1``, or -1."""
    for i in range(values.size):
        v = np.int64(values[i])
        if v < 0 or v >= size:
            return i
        bit = np.uint64(1) << np.uint64(v & 63)
        if seen[v >> 6] & bit:
            return i
        seen[v >> 6] |= bit
    return -1


@nb.njit(nogil=True, cache=True)
def hash_pairs(numbers: Any, ids: Any) -> Any:
    """Sum of the hashes of pairs (vertex number, id)."""
    total = np.uint64(0)
    for i in range(numbers.size):
        total += pair_hash(numbers[i], ids[i])
    return total


@nb.njit(nogil=True, cache=True)
def hash_strings(data: Any, offsets: Any, out: Any) -> None:
    """Hash each string (FNV-1a) of Arrow's layout into `out : (n,) int64`."""
    for i in range(out.size):
        h = np.uint64(0xCBF29CE484222325)
        for j in range(offsets[i], offsets[i + 1]):
            h = (h ^ np.uint64(data[j])) * np.uint64(0x100000001B3)
        out[i] = np.int64(h)
