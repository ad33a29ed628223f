"""What is asked of the vector and the values of a product, wherever it is made: lengths, dtypes, and that nothing is NaN.

In: what the user has given. Out: arrays that kernels take, or one error that says what is wrong with them.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from oocgraph.errors import ArgumentError
from oocgraph.kernels.semirings import Semiring
from oocgraph.sparse.partial import PartialCSR
from oocgraph.types import Array

NAN_WEIGHT = "weight {} of {} is NaN; give every edge a number, or drop those without"
"""Message, of a position and what the values are."""

CHECKED_ELEMENTS = 1 << 18
"""Elements looked at together when NaN is searched for."""


def is_labelled(given: Any) -> bool:
    """Whether a vector's elements go by labels of its own (a pandas Series with an index), not by their positions."""
    index = getattr(given, "index", None)
    if index is None or not hasattr(given, "reindex"):
        return False
    return (getattr(index, "start", None), getattr(index, "step", None)) != (0, 1)  # a RangeIndex counts positions


def checked_vector(given: Any, length: int, semiring: Semiring, why: str) -> Array:
    """Return the vector, or the vectors that are columns, as a contiguous array in the machine's byte order.

    Raises
    ------
    ArgumentError
        It has another number of dimensions than 1 or 2, another length (`why` says which one is expected), a dtype that is no number's,
        or is NaN somewhere.
    """
    x = np.asarray(given)
    check_shape(x, length, semiring, why, dimensions=(1, 2))
    step = max(1, CHECKED_ELEMENTS // max(1, x.size // max(1, length)))
    for start in range(0, length if x.dtype.kind == "f" else 0, step):
        bad = np.argwhere(np.isnan(x[start : start + step]))
        if bad.size:
            at = ", ".join(str(int(one)) for one in (start + bad[0][0], *bad[0][1:]))
            raise ArgumentError(f"x is NaN at position {at}; set a number there")
    return np.ascontiguousarray(x, x.dtype.newbyteorder("="))


def check_shape(x: Any, length: int, semiring: Semiring, why: str, *, dimensions: tuple[int, ...] = (1,)) -> None:
    """Refuse arrays, of any library, that are no vector of this length and of numbers that kernels take; or no vectors that are columns."""
    if x.ndim not in dimensions:
        shape = "one vector" if dimensions == (1,) else "a vector, or a matrix whose columns are vectors"
        raise ArgumentError(f"x has {x.ndim} dimensions; it must be {shape}")
    if x.shape[0] != length:
        raise ArgumentError(f"x has {x.shape[0]:,} {'elements' if x.ndim == 1 else 'rows'} but {why}; give one for each")
    if semiring.is_boolean and x.dtype != np.bool_:
        raise ArgumentError(f"x is of dtype {x.dtype}, but or_and takes bools; give x != 0 or x < inf, whichever is meant")
    if x.dtype.kind not in "biuf" or x.dtype.itemsize > 8:
        raise ArgumentError(f"x is of dtype {x.dtype}; it must be of bools, integers, or floats of at most 64 bits: convert it with astype")


def check_values_dtype(dtype: np.dtype[Any] | None) -> None:
    """Refuse values that kernels do not take."""
    if dtype is not None and (dtype.kind not in "biuf" or dtype.itemsize > 8 or dtype == np.float16 or not dtype.isnative):
        raise ArgumentError(f"values are of dtype {dtype}; they must be bools, integers, float32 or float64: convert them with astype")


def compute_dtype(x: np.dtype[Any], values: np.dtype[Any] | None, semiring: Semiring) -> np.dtype[Any]:
    """Return the dtype in which kernels compute; see `oocgraph.spmv`."""
    check_values_dtype(values)
    if semiring.is_boolean:
        return np.dtype(np.uint8)
    joint = x if values is None else np.result_type(x, values)
    return np.dtype(np.float32 if joint in (np.float32, np.float16) else np.float64)


def has_nan(y: Array) -> bool:
    """Whether a result is NaN somewhere."""
    return any(bool(np.isnan(y[start : start + CHECKED_ELEMENTS]).any()) for start in range(0, y.size, CHECKED_ELEMENTS))


def checked_piece(piece: PartialCSR, semiring: Semiring, where: str) -> PartialCSR:
    """Return a piece of a stored graph that was read; sums hand a NaN on, ``or_and`` does not and refuses it (`refuse_nan`)."""
    if semiring.is_boolean and piece.values is not None:
        refuse_nan([(piece.start, piece.values)], where)
    return piece


def refuse_nan(pieces: Iterable[tuple[int, Array]], where: str) -> None:
    """Raise if a value of the matrix is NaN; a NaN in y may also come from infinities, and then stands.

    Parameters
    ----------
    pieces
        First position and values of each.
    where
        Whose values they are, for the message.
    """
    for first, values in pieces:
        for start in range(0, values.size if values.dtype.kind == "f" else 0, CHECKED_ELEMENTS):
            bad = np.flatnonzero(np.isnan(values[start : start + CHECKED_ELEMENTS]))
            if bad.size:
                raise ArgumentError(NAN_WEIGHT.format(f"{first + start + int(bad[0]):,}", where))
