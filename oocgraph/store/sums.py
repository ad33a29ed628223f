"""Sums of the weights of duplicate edges, the same however they are cut into blocks.

In: weights, sorted. Out: a sum for each group of them, of their own dtype, or an error where it does not fit. Floats are added in 64 bits
in the order of the weights; integers exactly, as high and low halves, so that only the sum itself has to fit. Sums of a part of a group
are `terms` again, and go on with the next part.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from oocgraph.errors import InputError
from oocgraph.kernels.build import sum_groups
from oocgraph.types import Array

Terms = tuple[Array, ...]
"""What is added: of integers the high and low 32 bits, int64; of floats the numbers, float64, and whether any was infinite."""

_HALF = 32
_LOW = (1 << _HALF) - 1


def terms(weights: Array) -> Terms:
    """Return weights as what is added."""
    if weights.dtype.kind == "f":
        return weights.astype(np.float64), np.isinf(weights)
    wide = weights.astype(np.uint64 if weights.dtype.kind == "u" else np.int64)
    return (wide >> _HALF).astype(np.int64), (wide & _LOW).astype(np.int64)


def sums_of(some: Terms, starts: Array) -> Terms:
    """Return the sum of each group of consecutive terms; `starts` are the first of each."""
    numbers, others = some
    if others.dtype == bool:
        sums = np.empty(starts.size)
        sum_groups(numbers, starts, sums)
        return sums, np.logical_or.reduceat(others, starts)
    high, low = np.add.reduceat(numbers, starts), np.add.reduceat(others, starts)
    return high + (low >> _HALF), low & _LOW


def total(sums: Terms, dtype: np.dtype[Any]) -> Array:
    """Return sums as numbers of a dtype.

    Raises
    ------
    InputError
        One does not fit.
    """
    if dtype.kind == "f":
        numbers, was_infinite = sums
        with np.errstate(over="ignore", invalid="ignore"):
            narrow = np.where(np.isnan(numbers), np.nan, numbers).astype(dtype)
        if np.any(np.isinf(narrow) & ~was_infinite):
            raise _too_much(dtype)
        return narrow
    high, low = sums
    limits = np.iinfo(dtype)
    is_above = (high > limits.max >> _HALF) | ((high == limits.max >> _HALF) & (low > limits.max & _LOW))
    is_below = (high < limits.min >> _HALF) | ((high == limits.min >> _HALF) & (low < limits.min & _LOW))
    if np.any(is_above | is_below):
        raise _too_much(dtype)
    if dtype.kind == "u":
        return ((high.astype(np.uint64) << np.uint64(_HALF)) | low.astype(np.uint64)).astype(dtype)
    return ((high << _HALF) | low).astype(dtype)


def _too_much(dtype: np.dtype[Any]) -> InputError:
    remedy = "give them as float64" if dtype.itemsize == 8 else "give them as float64 or int64"
    if dtype.kind == "f":
        remedy = "give them as float64" if dtype.itemsize < 8 else "scale them down"
    return InputError(f"the weights of duplicate edges sum to more than {dtype} can hold; {remedy}")
