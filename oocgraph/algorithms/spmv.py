"""A sparse matrix, or a graph's adjacency matrix, times a vector: in memory by threads, out of core as a stream.

Chen et al., "MSREP: A Fast yet Light Sparse Matrix Framework for Multi-GPU Systems", 2022: the matrix is cut into parts of equal numbers of
nonzeros, rows or columns cut anywhere, whose results are put together at the cuts (rows) or added as a tree (columns). Differs from the
paper in: workers are threads; a graph's parts are read while others are multiplied; semirings.
"""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from oocgraph.config import settings
from oocgraph.errors import OocGraphError
from oocgraph.kernels import spmv as kernels
from oocgraph.kernels.semirings import Semiring, SemiringName, semiring_of
from oocgraph.memory import Budget, effective_budget_bytes
from oocgraph.partition.balanced import balanced_partition
from oocgraph.runtime.product import multiply, num_private_vectors
from oocgraph.runtime.stored_product import StoredProduct, nan_message
from oocgraph.store.graph import CSRStore, open_graph
from oocgraph.store.input_order import BLOCK_BYTES, to_input_order, to_store_order
from oocgraph.store.scipy import weight_column
from oocgraph.types import Array

PARTS_PER_THREAD = 8
"""Parts of a matrix in memory for each thread, so that one that is held up does not hold up the others."""

CHECKED_ELEMENTS = 1 << 18
"""Elements looked at together when NaN is searched for."""


def spmv(
    graph_or_matrix: Any,
    x: Any,
    *,
    transpose: bool = False,
    semiring: SemiringName = "plus_times",
    weight: str | None = None,
    threads: int | None = None,
    memory_budget: str | int | None = None,
) -> Array:
    """Multiply a matrix and a vector: ``y_i = plus over j of times(A_ij, x_j)``.

    Parameters
    ----------
    graph_or_matrix
        A graph store or its path: A has an entry for each stored edge from i to j, an undirected edge both ways. Or a SciPy sparse
        matrix or array in CSR, CSC, or COO sorted by row or by column.
    x : (num_columns,) bools or real numbers
        Of a graph: one for each input id, ascending, isolated ones included, as `BFSResult.vertices`. Bools in ``or_and``.
    transpose
        Multiply by the transpose: along edges from i to j, y_j is made of x_i.
    semiring
        ``plus_times``; ``min_plus`` (minimum of sums); ``or_and`` (of bools; a value is true if it is not 0); ``plus_second`` (sum of
        elements of x, whatever the values). Entries of a graph without weights are 1.
    weight
        Edge column that holds a graph's values; by default its weight.
    threads
        Compute threads; by default the cores this process may use.
    memory_budget
        Bytes that the whole process may hold (text such as ``"640M"``); by default most of what the machine leaves.

    Returns
    -------
    (num_rows,) float64, float32 or bool
        Float32 where neither x nor values are wider; float64 otherwise, also of integers; bool of ``or_and``. A row without entries has the
        identity of plus: 0, infinity in ``min_plus``, False. Of a graph: by input id, as `x`.

    Raises
    ------
    OocGraphError
        `x` has the wrong length or dtype, `x` or a weight is NaN, or an argument cannot be meant.
    BudgetError
        The budget is too small; the message names the smallest that works.
    StoreError, CorruptStoreError
        The store cannot be opened or read.

    Notes
    -----
    Edges of a graph are streamed, each read once, even if they would fit: for many products of one graph use
    `oocgraph.runtime.stored_product.StoredProduct`, which keeps them. Host bytes of a graph: x in store order, y in both, and a few
    pieces of 2 MiB of neighbours (of a compressed or remote store a few chunks); of a matrix: y, and by column a vector like it for each
    thread but one. All is charged before the run.

    Examples
    --------
    >>> from scipy.sparse import csr_array
    >>> spmv(csr_array([[1, 2, 0], [0, 0, 4]]), [1, 10, 100]).tolist()
    [21.0, 400.0]
    """
    ring = semiring_of(semiring)
    if threads is not None and (not isinstance(threads, int) or isinstance(threads, bool) or threads < 1):
        raise OocGraphError(f"threads is {threads!r}; it must be 1 or more, or None for all cores")
    knobs = settings()
    threads = threads or knobs.threads
    limit_bytes = effective_budget_bytes(memory_budget if memory_budget is not None else knobs.memory_budget)
    if isinstance(graph_or_matrix, str | os.PathLike):
        graph_or_matrix = open_graph(graph_or_matrix)
    if isinstance(graph_or_matrix, CSRStore):
        return _of_graph(graph_or_matrix, x, ring, transpose=transpose, weight=weight, threads=threads, limit_bytes=limit_bytes)
    if weight is not None:
        raise OocGraphError(f"weight={weight!r} names an edge column of a graph; a matrix has values of its own")
    return _of_matrix(graph_or_matrix, x, ring, transpose=transpose, threads=threads, limit_bytes=limit_bytes)


def _of_graph(store: CSRStore, given: Any, ring: Semiring, *, transpose: bool, weight: str | None, threads: int, limit_bytes: int) -> Array:
    """Multiply the adjacency matrix of a store, out of core."""
    column = weight_column(store, weight) if ring.uses_values or weight is not None else None
    column = column if ring.uses_values else None
    values_dtype = None if column is None else store.array(f"out/{column}").dtype
    num_ids, n = store.attributes.num_input_vertices, store.num_vertices
    x = _checked_vector(given, num_ids, ring, f"{store.url} has {num_ids:,} vertices, isolated ones included")
    dtype = _dtype(x, values_dtype, ring)
    _load_kernel(store.index_dtype, values_dtype, dtype, ring)
    budget = Budget(limit_bytes)
    budget.reserve("vectors", (2 * n + num_ids) * dtype.itemsize)
    budget.reserve("vertex ids", BLOCK_BYTES)
    product = StoredProduct(store, budget, transpose=transpose, column=column, threads=threads)
    inner, sums = np.empty(n, dtype), ring.zeros(n, dtype)
    to_store_order(store, x, inner)
    product.multiply(inner, sums, ring)
    if not ring.is_boolean and _has_nan(sums):
        _refuse_nan(product.values(), f"{column} of {store.url}")
    y = ring.zeros(num_ids, dtype)
    to_input_order(store, sums, y)
    return y.view(np.bool_) if ring.is_boolean else y


def _of_matrix(given: Any, x: Any, ring: Semiring, *, transpose: bool, threads: int, limit_bytes: int) -> Array:
    """Multiply a matrix that is in memory."""
    parts: list[Any] = list(balanced_partition(given, PARTS_PER_THREAD * threads))
    if not isinstance(given.data, np.ndarray):
        raise OocGraphError(f"the matrix holds arrays of {type(given.data).__module__}; only those in host memory are multiplied here")
    if transpose:
        parts = [part.transposed() for part in parts]
    num_rows, num_columns = parts[0].shape
    values_dtype = given.data.dtype if ring.uses_values else None
    _check_values_dtype(values_dtype)
    if ring.is_boolean:
        _refuse_nan([(0, given.data)], "the matrix")
    x = _checked_vector(x, num_columns, ring, f"the matrix has {num_columns:,} columns" + (" when transposed" if transpose else ""))
    dtype = _dtype(x, values_dtype, ring)
    budget = Budget(limit_bytes)
    private = num_private_vectors(parts, threads)
    budget.reserve("vectors", ((1 + private) * num_rows + (num_columns if x.dtype != dtype else 0)) * dtype.itemsize)
    y = ring.zeros(num_rows, dtype)
    inner = x.view(np.uint8) if ring.is_boolean else x.astype(dtype, copy=False)
    multiply(parts, inner, y, ring, threads=threads)
    if not ring.is_boolean and _has_nan(y):
        _refuse_nan([(0, given.data)] if ring.uses_values else [], "the matrix")
    return y.view(np.bool_) if ring.is_boolean else y


def _checked_vector(given: Any, length: int, ring: Semiring, why: str) -> Array:
    """Return the vector as a contiguous array; refuse what cannot be multiplied."""
    x = np.asarray(given)
    if x.ndim != 1:
        raise OocGraphError(f"x has {x.ndim} dimensions; it must be one vector")
    if x.size != length:
        raise OocGraphError(f"x has {x.size:,} elements but {why}; give one element for each")
    if ring.is_boolean and x.dtype != np.bool_:
        raise OocGraphError(f"x is of dtype {x.dtype}, but or_and takes bools; give x != 0 or x < inf, whichever is meant")
    if x.dtype.kind not in "biuf" or x.dtype.itemsize > 8:
        raise OocGraphError(f"x is of dtype {x.dtype}; it must be of bools, integers, or floats of at most 64 bits: convert it with astype")
    for start in range(0, x.size if x.dtype.kind == "f" else 0, CHECKED_ELEMENTS):
        bad = np.flatnonzero(np.isnan(x[start : start + CHECKED_ELEMENTS]))
        if bad.size:
            raise OocGraphError(f"x is NaN at position {start + int(bad[0])}; set a number there")
    return np.ascontiguousarray(x)


def _check_values_dtype(dtype: np.dtype[Any] | None) -> None:
    if dtype is not None and (dtype.kind not in "biuf" or dtype.itemsize > 8 or dtype == np.float16 or not dtype.isnative):
        raise OocGraphError(f"values are of dtype {dtype}; they must be bools, integers, float32 or float64: convert them with astype")


def _dtype(x: Array, values_dtype: np.dtype[Any] | None, ring: Semiring) -> np.dtype[Any]:
    """Dtype in which kernels compute."""
    _check_values_dtype(values_dtype)
    if ring.is_boolean:
        return np.dtype(np.uint8)
    joint = x.dtype if values_dtype is None else np.result_type(x.dtype, values_dtype)
    return np.dtype(np.float32 if joint in (np.float32, np.float16) else np.float64)


def _load_kernel(index_dtype: np.dtype[Any], values_dtype: np.dtype[Any] | None, dtype: np.dtype[Any], ring: Semiring) -> None:
    """Bring the kernel into memory before memory is counted, compiled if it is not cached."""
    values = None if values_dtype is None else np.ones(1, np.uint8 if values_dtype == np.bool_ else values_dtype.newbyteorder("="))
    one = np.zeros(1, dtype)
    kernels.multiply_csr(ring.code, False, np.arange(2), 0, 1, np.zeros(1, index_dtype), values, one, one.copy(), one.copy())


def _has_nan(y: Array) -> bool:
    return any(bool(np.isnan(y[start : start + CHECKED_ELEMENTS]).any()) for start in range(0, y.size, CHECKED_ELEMENTS))


def _refuse_nan(pieces: Any, where: str) -> None:
    """Raise if a value of the matrix is NaN; a NaN in y may also come from infinities, and then stands."""
    for first, values in pieces:
        for start in range(0, values.size if values.dtype.kind == "f" else 0, CHECKED_ELEMENTS):
            bad = np.flatnonzero(np.isnan(values[start : start + CHECKED_ELEMENTS]))
            if bad.size:
                raise OocGraphError(nan_message(first + start + int(bad[0]), where))
