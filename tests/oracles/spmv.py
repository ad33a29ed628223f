"""Plain NumPy oracles of `oocgraph.kernels.spmv`: the same names and signatures, every product made and added one by one."""

from __future__ import annotations

import numpy as np

from oocgraph.kernels.semirings import MIN_PLUS, OR_AND, PLUS_SECOND, SEMIRINGS
from oocgraph.types import Array


def multiply_csr(
    semiring: int, first_line_partial: bool, pointers: Array, start: int, stop: int, indices: Array, values: Array | None,
    x: Array, y: Array, carry: Array,
) -> None:  # fmt: skip
    """See `oocgraph.kernels.spmv.multiply_csr`."""
    rows = _lines(pointers, start, stop)
    _add(semiring, rows, _products(semiring, values, x[indices]), y, carry if first_line_partial else None)


def multiply_csc(semiring: int, pointers: Array, start: int, stop: int, indices: Array, values: Array | None, x: Array, y: Array) -> None:
    """See `oocgraph.kernels.spmv.multiply_csc`."""
    _add(semiring, indices, _products(semiring, values, x[_lines(pointers, start, stop)]), y, None)


def multiply_coo(
    semiring: int, first_line_partial: bool, first_row: int, rows: Array, columns: Array, values: Array | None,
    x: Array, y: Array, carry: Array,
) -> None:  # fmt: skip
    """See `oocgraph.kernels.spmv.multiply_coo`."""
    _add(semiring, rows - first_row, _products(semiring, values, x[columns]), y, carry if first_line_partial else None)


def _lines(pointers: Array, start: int, stop: int) -> Array:
    """Line of each nonzero, from the part's first one."""
    return np.repeat(np.arange(pointers.size - 1), np.diff(np.clip(pointers, start, stop)))


def _products(semiring: int, values: Array | None, elements: Array) -> Array:
    values = np.ones(elements.size, elements.dtype) if values is None else values
    if semiring == MIN_PLUS:
        return np.asarray(elements + values)
    if semiring == OR_AND:
        return np.asarray((elements != 0) & (values != 0), elements.dtype)
    return elements if semiring == PLUS_SECOND else np.asarray(elements * values)


def _add(semiring: int, lines: Array, products: Array, y: Array, carry: Array | None) -> None:
    plus = next(one.plus for one in SEMIRINGS.values() if one.code == semiring)
    own = np.ones(lines.size, bool) if carry is None else lines != 0
    plus.at(y, lines[own], products[own].astype(y.dtype))
    if carry is not None:
        plus.at(carry, np.zeros(int((~own).sum()), np.int64), products[~own].astype(y.dtype))
