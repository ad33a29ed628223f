"""A sparse matrix times a vector, over a range of nonzeros that is cut anywhere: nogil, run by a thread pool.

``y = plus(y, A x)`` in a semiring (`oocgraph.kernels.semirings`, by code). `values` is None where all are one; bools are bytes 0 and 1.
Lines are numbered from the part's first one. Kernels over rows write the rows that begin in their part straight to `y`, which no other part
writes, and what they find of a row that an earlier part began to `carry`, for the caller to add: one number a part. Kernels over columns
need a `y` of their own. Indices are trusted.

Sums of a row may be reassociated, so they differ from a sum in order by rounding; a NaN or an infinity comes out as in any order.

Elements that are gathered, by columns those that are added to, are asked for `AHEAD` nonzeros before they are used. A Kronecker graph of
scale 22 took 0.13 to 0.15 s instead of 0.20 (`oocgraph bench spmv`, two threads); in original order by rows 0.16 to 0.19 s instead of
0.41, by columns 0.19 to 0.28 s instead of 0.35 to 0.47, by coordinates 0.3 s instead of 0.86.

Chen et al., "MSREP: A Fast yet Light Sparse Matrix Framework for Multi-GPU Systems", 2022, algorithms 3, 5 and 7. The CUDA kernel is
``cuda/spmv.cu``.
"""

from __future__ import annotations

from typing import Any

import numba as nb
import numpy as np

from oocgraph.compiled.intrinsics import AHEAD, prefetch
from oocgraph.kernels.semirings import MIN_PLUS, OR_AND, PLUS_TIMES


@nb.njit(nogil=True, cache=True, fastmath={"reassoc", "contract"})
def _dot(indices: Any, values: Any, x: Any, begin: Any, end: Any) -> Any:
    """Sum of products; positions are unsigned because NumPy's negative ones cost a test each."""
    total = x.dtype.type(0)
    last = np.uint64(indices.size - 1)
    for e in range(np.uint64(begin), np.uint64(end)):
        prefetch(x, np.uint64(indices[min(e + np.uint64(AHEAD), last)]))
        if values is None:
            total += x[np.uint64(indices[e])]
        else:
            total += values[e] * x[np.uint64(indices[e])]
    return total


@nb.njit(nogil=True, cache=True)
def _smallest(indices: Any, values: Any, x: Any, begin: Any, end: Any) -> Any:
    """Smallest sum of a value and an element; NaN if one is."""
    total = np.inf
    last = np.uint64(indices.size - 1)
    for e in range(np.uint64(begin), np.uint64(end)):
        prefetch(x, np.uint64(indices[min(e + np.uint64(AHEAD), last)]))
        product = x[np.uint64(indices[e])] + (1 if values is None else values[e])
        if product < total or np.isnan(product):
            total = product
    return total


@nb.njit(nogil=True, cache=True)
def _any(indices: Any, values: Any, x: Any, begin: Any, end: Any) -> Any:
    """Whether an element is true where a value is not zero: 0 or 1."""
    for e in range(np.uint64(begin), np.uint64(end)):
        if x[np.uint64(indices[e])] and (values is None or values[e] != 0):
            return 1
    return 0


@nb.njit(nogil=True, cache=True)
def _plus(semiring: Any, a: Any, b: Any) -> Any:
    """Add two partial results."""
    if semiring == MIN_PLUS:
        return b if b < a or np.isnan(b) else a
    if semiring == OR_AND:
        return b if b else a
    return a + b


@nb.njit(nogil=True, cache=True)
def _times(semiring: Any, values: Any, e: Any, element: Any) -> Any:
    """Product of a value of the matrix and an element of the vector."""
    if semiring == MIN_PLUS:
        return element + (1.0 if values is None else values[e])
    if semiring == OR_AND:
        return element * 1.0 if values is None or values[e] != 0 else 0.0
    if semiring == PLUS_TIMES and values is not None:
        return element * 1.0 * values[e]
    return element * 1.0


@nb.njit(nogil=True, cache=True)
def multiply_csr(
    semiring: Any, first_line_partial: Any, pointers: Any, start: Any, stop: Any, indices: Any, values: Any, x: Any, y: Any, carry: Any
) -> None:
    """Multiply a `PartialCSR`.

    Parameters
    ----------
    pointers : (num_rows + 1,) integers
        Uncut: the first may lie before `start`, the last behind `stop`.
    start, stop : int
        Range of nonzeros.
    indices, values : (stop - start,)
        Column and value of each; `values` may be None.
    x : (num_columns of the matrix,) float32, float64 or uint8
    y : (num_rows,) like `x`
        Its rows; added to.
    carry : (1,) like `x`
        Added to by the first row where `first_line_partial`, in place of `y`.
    """
    for r in range(y.size):
        begin, end = max(pointers[r], start) - start, min(pointers[r + 1], stop) - start
        if begin >= end:
            continue
        if semiring == MIN_PLUS:
            total = _smallest(indices, values, x, begin, end)
        elif semiring == OR_AND:
            total = _any(indices, values, x, begin, end)
        elif semiring == PLUS_TIMES:
            total = _dot(indices, values, x, begin, end)
        else:
            total = _dot(indices, None, x, begin, end)
        if r == 0 and first_line_partial:
            carry[0] = _plus(semiring, carry[0], total)
        else:
            y[r] = _plus(semiring, y[r], total)


@nb.njit(nogil=True, cache=True)
def multiply_csr_dense(
    semiring: Any, first_line_partial: Any, pointers: Any, start: Any, stop: Any, indices: Any, values: Any, x: Any, y: Any, carry: Any
) -> None:
    """Multiply a `PartialCSR` and a matrix: as `multiply_csr` does each of its columns, in one pass over the nonzeros.

    Parameters
    ----------
    x : (num_columns of the matrix, width) float32, float64 or uint8
    y : (num_rows, width) like `x`
        Its rows; added to.
    carry : (1, width) like `x`
        Added to by the first row where `first_line_partial`, in place of `y`.
    """
    last, width, elements_of_all = np.uint64(indices.size - 1), y.shape[1], x.reshape(-1)
    for r in range(y.shape[0]):
        begin, end = max(pointers[r], start) - start, min(pointers[r + 1], stop) - start
        if begin >= end:
            continue
        total = carry[0] if r == 0 and first_line_partial else y[r]
        for e in range(np.uint64(begin), np.uint64(end)):
            ahead = np.uint64(indices[min(e + np.uint64(AHEAD), last)])
            prefetch(elements_of_all, ahead * np.uint64(width))
            elements = x[np.uint64(indices[e])]
            if semiring == PLUS_TIMES and values is not None:
                value = elements.dtype.type(values[e])
                for c in range(width):
                    total[c] += value * elements[c]
            elif semiring in (MIN_PLUS, OR_AND):
                for c in range(width):
                    total[c] = _plus(semiring, total[c], _times(semiring, values, e, elements[c]))
            else:
                for c in range(width):
                    total[c] += elements[c]


@nb.njit(nogil=True, cache=True)
def multiply_csc(semiring: Any, pointers: Any, start: Any, stop: Any, indices: Any, values: Any, x: Any, y: Any) -> None:
    """Multiply a `PartialCSC`.

    Parameters
    ----------
    pointers : (num_columns + 1,) integers
        Uncut, as in `multiply_csr`.
    indices, values : (stop - start,)
        Row and value of each nonzero.
    x : (num_columns,) float32, float64 or uint8
        Elements of the part's columns.
    y : (num_rows of the matrix,) like `x`
        Added to; no other call may do so meanwhile.
    """
    last = np.uint64(indices.size - 1)
    for c in range(x.size):
        begin, end = max(pointers[c], start) - start, min(pointers[c + 1], stop) - start
        if begin >= end:
            continue
        element = x[c]
        for e in range(np.uint64(begin), np.uint64(end)):
            prefetch(y, np.uint64(indices[min(e + np.uint64(AHEAD), last)]))
            i = np.uint64(indices[e])
            y[i] = _plus(semiring, y[i], _times(semiring, values, e, element))


@nb.njit(nogil=True, cache=True)
def multiply_coo(
    semiring: Any, first_line_partial: Any, first_row: Any, rows: Any, columns: Any, values: Any, x: Any, y: Any, carry: Any
) -> None:
    """Multiply a `PartialCOO`.

    Parameters
    ----------
    first_line_partial
        Sorted by row, and the first row was begun before: its sum goes to `carry`.
    first_row
        Row of ``y[0]``: the part's first, or 0 with a `y` of the call's own when sorted by column.
    rows, columns, values : (num_entries,)
        `values` may be None.
    x : (num_columns of the matrix,) float32, float64 or uint8
    y : like `x`
        Added to.
    carry : (1,) like `x`
    """
    last = np.uint64(rows.size - 1)
    for e in range(np.uint64(rows.size)):
        far = min(e + np.uint64(AHEAD), last)
        prefetch(x, np.uint64(columns[far]))
        prefetch(y, np.uint64(rows[far] - first_row))
        i = np.uint64(rows[e] - first_row)
        product = _times(semiring, values, e, x[np.uint64(columns[e])])
        if first_line_partial and i == 0:
            carry[0] = _plus(semiring, carry[0], product)
        else:
            y[i] = _plus(semiring, y[i], product)
