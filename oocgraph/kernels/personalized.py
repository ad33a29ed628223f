"""Kernels of PageRank for many personalizations at once: a vertex has a row of numbers, one for each.

In: shares, which are ranks divided by the sum of the weights of a vertex' out-edges, or by 1 where there are none. Out: those of the next
iteration. The numbers of a vertex lie side by side, so what an edge brings is one stretch of memory however many there are.
"""

from __future__ import annotations

from typing import Any

import numba as nb
import numpy as np

from oocgraph.compiled.intrinsics import prefetch

ROWS_AHEAD = 8
"""Entries by which a neighbour's row is asked for before it is used."""


@nb.njit(nogil=True, cache=True)
def spread(
    first: Any, pointers: Any, start: Any, indices: Any, values: Any, share: Any, strength: Any, new_share: Any, damping: Any, seeds: Any,
    jumps: Any,
) -> Any:  # fmt: skip
    """Make the shares of a piece's rows.

    Parameters
    ----------
    first, pointers, start, indices, values
        Of the rows: see `oocgraph.engine.sweeps`.
    share : (num_vertices, num_seeds) float64
    strength : (num_rows,)
        Sum of the weights of out-edges.
    new_share : (num_rows, num_seeds) float64
        Written.
    damping : float
    seeds : (num_seeds,) int64
        Store numbers; -1 where isolated.
    jumps : (num_seeds,) float64
        What each seed gets beside.

    Returns
    -------
    (2, num_seeds) float64: sums of the absolute changes of the ranks, and of ranks without out-edges.
    """
    num_seeds, last = seeds.size, np.int64(indices.size - 1)
    sums = np.zeros((2, num_seeds))
    for r in range(strength.size):
        v, found = np.int64(first + r), new_share[r]
        found[:] = 0.0
        for e in range(np.int64(pointers[r] - start), np.int64(pointers[r + 1] - start)):
            prefetch(share, np.int64(indices[min(e + ROWS_AHEAD, last)]) * num_seeds)
            u = np.int64(indices[e])
            if values is None:
                for c in range(num_seeds):
                    found[c] += share[u, c]
            else:
                weight = np.float64(values[e])
                for c in range(num_seeds):
                    found[c] += share[u, c] * weight
        divisor = np.float64(strength[r]) if strength[r] > 0 else 1.0
        for c in range(num_seeds):
            rank = damping * found[c] + (jumps[c] if seeds[c] == v else 0.0)
            sums[0, c] += abs(rank - share[v, c] * divisor)
            if not strength[r] > 0:
                sums[1, c] += rank
            found[c] = rank / divisor
    return sums


@nb.njit(nogil=True, cache=True)
def to_ranks(share: Any, strength: Any, start: Any, stop: Any) -> None:
    """Turn the shares of a range of vertices into ranks."""
    for v in range(start, stop):
        if strength[v] > 0:
            for c in range(share.shape[1]):
                share[v, c] *= strength[v]


@nb.njit(nogil=True, cache=True)
def add_up_weights(first: Any, pointers: Any, start: Any, indices: Any, values: Any, strength: Any) -> Any:
    """Set the sum of each row's weights; returns whether all of them are finite and not negative."""
    is_sound = True
    for r in range(strength.size):
        total = 0.0
        for e in range(np.int64(pointers[r] - start), np.int64(pointers[r + 1] - start)):
            weight = np.float64(values[e])
            is_sound = is_sound and 0 <= weight < np.inf
            total += weight
        strength[r] = total
    return is_sound
