"""Sums along whole rows, and steps on the vertices of a range: what `oocgraph.engine.sweeps` gives to power iterations."""

from __future__ import annotations

from typing import Any

import numba as nb
import numpy as np

from oocgraph.compiled.intrinsics import AHEAD, prefetch


@nb.njit(nogil=True, cache=True)
def multiply(
    first: Any, pointers: Any, start: Any, indices: Any, values: Any, x: Any, before: Any, y: Any, scale: Any, shift: Any, keep: Any
) -> Any:
    """Set ``y = scale * A x + shift + keep * before`` for the rows of a piece.

    Parameters
    ----------
    first, pointers, start, indices, values
        Of the rows: see `oocgraph.engine.sweeps`.
    x : (num_vertices,) float64
    before, y : (num_rows,) float64
        Read; written.
    scale, shift, keep : float

    Returns
    -------
    (change, total, squares, least): sum of ``abs(y - before)``, of y, and of its squares; the least weight, 1 without weights; NaN
    if one is, or is infinite.
    """
    change, total, squares, least = 0.0, 0.0, 0.0, 1.0
    last = np.int64(indices.size - 1)
    for r in range(y.size):
        found = 0.0
        for e in range(np.int64(pointers[r] - start), np.int64(pointers[r + 1] - start)):
            prefetch(x, np.int64(indices[min(e + AHEAD, last)]))
            if values is None:
                found += x[np.int64(indices[e])]
            else:
                weight = np.float64(values[e])
                found += x[np.int64(indices[e])] * weight
                if not least <= weight < np.inf:  # nor where there was NaN before
                    least = weight if weight < least else np.nan
        new = scale * found + shift + keep * before[r]
        change += abs(new - before[r])
        total += new
        squares += new * new
        y[r] = new
    return change, total, squares, least


@nb.njit(nogil=True, cache=True)
def rescale(y: Any, before: Any, start: Any, stop: Any, factor: Any) -> Any:
    """Multiply ``y[start:stop]`` by a factor; returns the sum of its absolute differences from `before`."""
    change = 0.0
    for v in range(start, stop):
        y[v] *= factor
        change += abs(y[v] - before[v])
    return change
