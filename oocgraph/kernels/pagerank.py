"""One iteration of PageRank over a range of in-neighbours that is cut anywhere: nogil, run by a thread pool.

In: a piece of the transposed adjacency matrix (`oocgraph.sparse.partial.PartialCSR`), and of every vertex its share: its rank divided
by the sum of its out-edges' weights. Out: new ranks and new shares of the rows that lie wholly in the piece, and of a row that is cut the
piece's part of its sum, for the caller to put together. Each row is written by one call, so nothing is atomic; shares are read from one
array and written to another, so every call sees the ranks of the iteration before.

Shares are float32 or float64 (`oocgraph.products.ranking` says when); sums and ranks are float64. Sums follow the order of the entries:
several accumulators, or vector instructions that gather, were no faster or slower (processor time of one iteration of a Kronecker graph of
scale 22: 0.14 s, 0.15 to 0.18 s). Asking for shares `AHEAD` entries before they are used is: 0.087 and 0.093 s an iteration of two threads
instead of 0.098 and 0.113 (`oocgraph bench pagerank`, two runs each). `values` is None where all weights are one; bools are bytes.
"""

from __future__ import annotations

from typing import Any

import numba as nb
import numpy as np

from oocgraph.compiled.intrinsics import AHEAD, prefetch

CHANGE, DANGLING, CARRY_FIRST, CARRY_LAST = 0, 1, 2, 3
"""What is where in `sums`: sum of the absolute changes of ranks, sum of new ranks of vertices without out-edges, sum of the first row
if it was begun before the piece, sum of the last row if it goes on behind it."""

NUM_SUMS = 4


@nb.njit(nogil=True, cache=True)
def _sum(indices: Any, values: Any, share: Any, begin: Any, end: Any) -> Any:
    """Sum of shares, times values; positions are unsigned because NumPy's negative ones cost a test each."""
    total = 0.0
    last = np.uint64(indices.size - 1)
    for e in range(np.uint64(begin), np.uint64(end)):
        prefetch(share, np.uint64(indices[min(e + np.uint64(AHEAD), last)]))
        if values is None:
            total += np.float64(share[np.uint64(indices[e])])
        else:
            total += np.float64(share[np.uint64(indices[e])]) * np.float64(values[e])
    return total


@nb.njit(nogil=True, cache=True)
def _finish(r: Any, total: Any, damping: Any, jump: Any, teleport: Any, rank: Any, strength: Any, share: Any) -> Any:
    """Set the rank and the share of row r, whose in-neighbours' shares sum up to `total`; return its change, and its rank if it dangles."""
    new = damping * total + (jump if teleport is None else jump * teleport[r])
    change = abs(new - rank[r])
    rank[r] = new
    if strength[r] > 0:
        share[r] = new / strength[r]
        return change, 0.0
    share[r] = 0
    return change, new


@nb.njit(nogil=True, cache=True)
def pull_ranks(
    first_row_partial: Any, pointers: Any, start: Any, stop: Any, indices: Any, values: Any, share: Any, damping: Any, jump: Any,
    teleport: Any, rank: Any, strength: Any, new_share: Any, sums: Any,
) -> None:  # fmt: skip
    """Make the new ranks of a piece's rows.

    Parameters
    ----------
    first_row_partial : bool
        Whether the first row was begun before the piece.
    pointers : (num_rows + 1,) integers
        Uncut: the first may lie before `start`, the last behind `stop`.
    start, stop : int
        Range of entries.
    indices, values : (stop - start,)
        In-neighbour and weight of each; `values` may be None.
    share : (num_vertices,) float32 or float64
        Of the iteration before.
    damping : float
    jump : float
        What each vertex gets whatever its neighbours; times `teleport`, where that is given.
    teleport : (num_rows,) float64, or None
        Personalization.
    rank, strength, new_share : (num_rows,)
        Of the piece's rows: float64, written; sum of the weights of out-edges, any dtype; float32 or float64, written.
    sums : (NUM_SUMS,) float64
        Added to.
    """
    change = dangling = 0.0
    for r in range(rank.size):
        begin, end = max(pointers[r], start) - start, min(pointers[r + 1], stop) - start
        total = _sum(indices, values, share, begin, end) if begin < end else 0.0
        if r == 0 and first_row_partial:
            sums[CARRY_FIRST] += total
        elif pointers[r + 1] > stop:
            sums[CARRY_LAST] += total
        else:
            moved, lost = _finish(r, total, damping, jump, teleport, rank, strength, new_share)
            change += moved
            dangling += lost
    sums[CHANGE] += change
    sums[DANGLING] += dangling


@nb.njit(nogil=True, cache=True)
def finish_rows(
    rows: Any, totals: Any, damping: Any, jump: Any, teleport: Any, rank: Any, strength: Any, new_share: Any, sums: Any
) -> None:
    """Make the new ranks of rows that were cut, as `pull_ranks` makes the others.

    Parameters
    ----------
    rows : (num_cut,) int64
        In the whole matrix, as the arrays are here.
    totals : (num_cut,) float64
        Sums of their in-neighbours' shares.
    """
    for i in range(rows.size):
        moved, lost = _finish(rows[i], totals[i], damping, jump, teleport, rank, strength, new_share)
        sums[CHANGE] += moved
        sums[DANGLING] += lost


@nb.njit(nogil=True, cache=True)
def update_ranks(
    first: Any, pointers: Any, start: Any, indices: Any, values: Any, share: Any, damping: Any, jump: Any, teleport: Any, rank: Any,
    strength: Any, own_share: Any, in_place: Any,
) -> Any:  # fmt: skip
    """Make the new ranks of a piece's rows, all of them whole.

    Parameters
    ----------
    first : int
        Number of the first row.
    pointers : (num_rows + 1,) integers
    start : int
        First entry.
    indices, values : (num_entries,)
        In-neighbour and weight of each; `values` may be None.
    share : (num_vertices,) float64
        Read.
    damping, jump, teleport, rank, strength
        As for `pull_ranks`.
    own_share : (num_rows,) float64
        Written.
    in_place : bool
        Whether the shares of these rows are read there, so that a row has what earlier ones have become.

    Returns
    -------
    (change, total, dangling): sum of the absolute changes of the ranks; of the new ranks; of the changes where there are no out-edges.
    """
    change = total = dangling = 0.0
    stop, last = np.int64(first + rank.size if in_place else first), np.int64(indices.size - 1)
    for r in range(rank.size):
        found = 0.0
        for e in range(np.int64(pointers[r] - start), np.int64(pointers[r + 1] - start)):
            prefetch(share, np.int64(indices[min(e + AHEAD, last)]))
            u = np.int64(indices[e])
            one = own_share[u - first] if first <= u < stop else share[u]
            found += one if values is None else one * np.float64(values[e])
        before = rank[r]
        moved, _ = _finish(r, found, damping, jump, teleport, rank, strength, own_share)
        change += moved
        total += rank[r]
        if not strength[r] > 0:
            dangling += rank[r] - before
    return change, total, dangling


@nb.njit(nogil=True, cache=True)
def rescale_ranks(rank: Any, strength: Any, share: Any, own_share: Any, factor: Any, start: Any, stop: Any) -> Any:
    """Multiply the ranks of a range by a factor, and set both shares of each; returns the sum of ranks without out-edges."""
    dangling = 0.0
    for v in range(start, stop):
        rank[v] *= factor
        if strength[v] > 0:
            share[v] = rank[v] / strength[v]
        else:
            share[v] = 0
            dangling += rank[v]
        own_share[v] = share[v]
    return dangling


@nb.njit(nogil=True, cache=True)
def divide(rank: Any, strength: Any, share: Any) -> None:
    """Set each share to rank / strength, and to 0 where there are no out-edges: the shares that the first iteration begins with."""
    for v in range(rank.size):
        share[v] = rank[v] / strength[v] if strength[v] > 0 else 0.0


@nb.njit(nogil=True, cache=True)
def add_weights(first_row_partial: Any, pointers: Any, start: Any, stop: Any, values: Any, strength: Any, carry: Any) -> Any:
    """Add the weights of a piece to the sums of its rows.

    Parameters
    ----------
    values : (stop - start,)
    strength : (num_rows,) float64
        Added to.
    carry : (1,) float64
        Added to by the first row where `first_row_partial`, in place of `strength`.

    Returns
    -------
    int
        Position in `values` of the first that is negative, NaN or infinite; -1 if there is none.
    """
    for r in range(strength.size):
        total = 0.0
        for e in range(max(pointers[r], start) - start, min(pointers[r + 1], stop) - start):
            weight = np.float64(values[e])
            if not 0 <= weight < np.inf:
                return e
            total += weight
        if r == 0 and first_row_partial:
            carry[0] += total
        else:
            strength[r] += total
    return -1
