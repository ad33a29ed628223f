"""Draws of positions in rows, by counters: what is drawn of a vertex depends on the seed and the vertex, on nothing drawn before.

In: where rows begin and how long they are. Out: positions in ``indices``, ascending within a row. The j-th random number of a vertex is a
hash of (seed, vertex, j); scaled to a range of n it is uniform but for n / 2**53.

References
----------
Bentley, Floyd 1987, "A sample of brilliance" (samples without replacement, as many random numbers as elements).
Knuth, The Art of Computer Programming 2, 3.4.2, algorithm S (large samples, by a pass over the row).
Salmon et al. 2011, "Parallel random numbers: as easy as 1, 2, 3" (counters instead of states).
"""

from __future__ import annotations

from typing import Any

import numba as nb
import numpy as np

from oocgraph.kernels.check import mix, splitmix64
from oocgraph.kernels.rows import find_class

LARGE_SAMPLE = 512
"""Elements from which on a pass over the row is quicker than keeping what was drawn in order (at most 65,536 moves)."""


@nb.njit(nogil=True, cache=True)
def below(key: Any, draw: Any, stop: Any) -> Any:
    """Return a random number of ``0 .. stop - 1``, the `draw`-th of a key."""
    word = mix(key + np.uint64(draw) * np.uint64(0x9E3779B97F4A7C15))
    return np.int64(np.float64(word >> np.uint64(11)) * (1.0 / 9007199254740992.0) * stop)


@nb.njit(nogil=True, cache=True)
def key_of(seed: Any, vertex: Any) -> Any:
    """Return the key of a vertex."""
    return mix(splitmix64(seed) ^ mix(np.uint64(vertex) + np.uint64(0xD1B54A32D192ED03)))


@nb.njit(nogil=True, cache=True)
def draw_without(key: Any, begin: Any, length: Any, out: Any) -> None:
    """Draw ``out.size`` different positions of a row of `length` entries from `begin` on, every set of them equally likely; ascending."""
    size = out.size
    if size == length:
        for j in range(size):
            out[j] = begin + j
    elif size >= LARGE_SAMPLE:
        chosen = 0
        for j in range(length):
            if below(key, j, length - j) < size - chosen:
                out[chosen] = begin + j
                chosen += 1
    else:
        for j in range(size):
            last = begin + length - size + j
            found = begin + below(key, j, length - size + j + 1)
            at = find_class(out[:j], found) if j else 0
            if j and out[at] == found:
                found, at = last, j  # it is above all that were drawn
            elif j and out[at] < found:
                at += 1
            for i in range(j, at, -1):
                out[i] = out[i - 1]
            out[at] = found


@nb.njit(nogil=True, cache=True)
def draw_positions(seed: Any, vertex: Any, begin: Any, length: Any, offset: Any, replace: Any, out: Any) -> None:
    """Draw positions of rows.

    Parameters
    ----------
    seed : uint64
    vertex, begin, length : (num_rows,) int64
    offset : (num_rows + 1,) int64
        Where the draws of each row begin in `out`; of an empty row there are none, without replacement at most as many as entries.
    replace : bool
        Whether an entry may be drawn again.
    out : int64
        Filled, ascending within each row.
    """
    for i in range(vertex.size):
        here = out[offset[i] : offset[i + 1]]
        key = key_of(seed, vertex[i])
        if replace:
            for j in range(here.size):
                here[j] = begin[i] + below(key, j, length[i])
            here.sort()
        else:
            draw_without(key, begin[i], length[i], here)


@nb.njit(nogil=True, cache=True)
def draw_steps(seed: Any, first: Any, step: Any, length: Any, out: Any) -> None:
    """Draw an entry of each row, ``0 .. length - 1``, for step `step` of the walks ``first, first + 1, ...``; 0 of an empty row."""
    for i in range(length.size):
        out[i] = below(key_of(seed, first + i), step, length[i])
