"""The compiled part of joining results with ids: the ids of the vertices that others are named after (their parents, their groups).

In: store numbers in store order, and the ids of the first vertices by store number. Out: ids by position.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numba as nb
import numpy as np

from oocgraph.kernels.load import Call, load_kernels

STORED_DTYPES = ("uint32", "int64")
"""Dtypes of store numbers that there is a kernel for: those of indices."""


@nb.njit(nogil=True, cache=True)
def take_ids(stored: Any, numbers: Any, found: Any, ids: Any, out: Any) -> Any:
    """Set ``out[i]`` to ``ids[stored[numbers[i]]]`` where ``found[i]``; return how many of these `ids` ends before: they stay as they are.

    Parameters
    ----------
    stored : (num_vertices,) uint32 or int64
        By store number.
    numbers : (n,) int64
        Store numbers, below ``stored.size`` where `found`.
    found : (n,) bool
    ids : (k,) int64
        Of the first vertices by store number.
    out : (n,) int64
    """
    num_beyond = 0
    for i in range(numbers.size):
        if found[i]:
            at = np.int64(stored[numbers[i]])
            if 0 <= at < ids.size:
                out[i] = ids[at]
            else:
                num_beyond += 1
    return num_beyond


@cache
def load_take_ids(dtype: str) -> None:
    """Bring `take_ids` into memory for store numbers of a dtype."""
    load_kernels(take_ids_calls(dtype))


def take_ids_calls(dtype: str) -> list[Call]:
    """Return what joins call."""
    numbers = np.zeros(1, np.int64)
    return [(take_ids, (np.zeros(1, dtype), numbers, np.ones(1, np.bool_), numbers, numbers))]
