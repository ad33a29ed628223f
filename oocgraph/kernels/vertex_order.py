"""Values of vertices from the order of the input's ids to that of the store, and back, by the position of each vertex among the ids."""

from __future__ import annotations

from functools import cache
from typing import Any

import numba as nb
import numpy as np

from oocgraph.compiled.intrinsics import AHEAD, prefetch
from oocgraph.compiled.load import Call, load_kernels

DTYPES = ("float64", "float32", "uint8")
"""Of values that there are kernels for."""


@nb.njit(nogil=True, cache=True)
def take_values(position: Any, values: Any, width: Any, start: Any, stop: Any, out: Any) -> None:
    """Set the values of vertices ``start .. stop - 1``.

    Parameters
    ----------
    position : (num_vertices,) uint32
        Of each vertex among the ids, below ``values.size // width``.
    values : (num_ids * width,)
        By id, `width` each.
    out : (num_vertices * width,)
    """
    for v in range(start, stop):
        if v + AHEAD < stop:
            prefetch(values, np.uint64(position[v + AHEAD]) * np.uint64(width))
        at = np.int64(position[v]) * width
        for i in range(width):
            out[v * width + i] = values[at + i]


@nb.njit(nogil=True, cache=True)
def put_values(position: Any, values: Any, width: Any, start: Any, stop: Any, out: Any) -> None:
    """Set the values of the ids that vertices ``start .. stop - 1`` have; the other way round, `out` by id."""
    for v in range(start, stop):
        if v + AHEAD < stop:
            prefetch(out, np.uint64(position[v + AHEAD]) * np.uint64(width))
        at = np.int64(position[v]) * width
        for i in range(width):
            out[at + i] = values[v * width + i]


@cache
def load_vertex_order(dtype: str) -> None:
    """Bring both into memory for values of a dtype."""
    load_kernels(vertex_order_calls(dtype))


def vertex_order_calls(dtype: str) -> list[Call]:
    """Return what changes of order call."""
    return [(kernel, (np.zeros(1, np.uint32), np.zeros(1, dtype), 1, 0, 1, np.zeros(1, dtype))) for kernel in (take_values, put_values)]
