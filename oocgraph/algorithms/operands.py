"""What is multiplied, checked before anything is read: a graph or a matrix, and a vector that fits.

In: what the user has given. Out: a `GraphOperand` or a `MatrixOperand`, from which a product is made in this process
(`oocgraph.algorithms.spmv`), on a cluster (`spmv_on_cluster`) or on GPUs (`spmv_on_device`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from oocgraph.engine.vertex_order import VertexOrder
from oocgraph.errors import ArgumentError
from oocgraph.kernels.semirings import Semiring
from oocgraph.products.product_checks import check_values_dtype, checked_vector, compute_dtype, is_labelled, refuse_nan
from oocgraph.sparse.balanced import balanced_partition
from oocgraph.store.graph import CSRStore
from oocgraph.store.scipy import weight_column
from oocgraph.types import Array


def _width(x: Array) -> int:
    return 1 if x.ndim == 1 else int(x.shape[1])


def _as_given(y: Array, x: Array, semiring: Semiring) -> Array:
    shaped = y.reshape(-1) if x.ndim == 1 else y
    return shaped.view(np.bool_) if semiring.is_boolean else shaped


@dataclass(frozen=True, slots=True, eq=False)
class GraphOperand:
    """The adjacency matrix of a graph, and a vector.

    Attributes
    ----------
    store
        The graph.
    column : str or None
        Edge column of the values; None: all are one, or do not matter.
    transpose : bool
        Whether the transpose is multiplied.
    semiring
        How products are made and added.
    x : (num_input_vertices,) or (num_input_vertices, width)
        By input id, as given.
    dtype
        In which kernels compute.
    """

    store: CSRStore
    column: str | None
    transpose: bool
    semiring: Semiring
    x: Array
    dtype: np.dtype[Any]

    @property
    def width(self) -> int:
        """Vectors that are multiplied."""
        return _width(self.x)

    @property
    def result_bytes(self) -> int:
        """Bytes of the result by input id."""
        return self.store.attributes.num_input_vertices * self.width * self.dtype.itemsize

    @property
    def num_entries(self) -> int:
        """Nonzeros of the matrix."""
        return self.store.attributes.num_stored_edges

    @property
    def entry_bytes(self) -> int:
        """Bytes of a nonzero, as a device takes it."""
        return self.store.index_dtype.itemsize + (0 if self.column is None else self.dtype.itemsize)

    @property
    def index_dtype(self) -> np.dtype[Any]:
        """Dtype in which a device takes the places of nonzeros: uint32 or int64."""
        return self.store.index_dtype

    @property
    def values_name(self) -> str:
        """What the values are, for messages."""
        return f"{self.column and self.store.attributes.input_column(self.column)} of {self.store.url}"

    @property
    def vector_bytes(self) -> int:
        """Bytes of the vector and the result in store order, and of the result by input id."""
        return 2 * self.store.num_rows * self.width * self.dtype.itemsize + self.result_bytes

    def identities(self) -> Array:
        """Return what a result begins with, by input id: (num_input_vertices, width) `dtype`."""
        return self.semiring.zeros((self.store.attributes.num_input_vertices, self.width), self.dtype)

    def as_given(self, y: Array) -> Array:
        """Return a result as the user gets it: of as many dimensions as `x`."""
        return _as_given(y, self.x, self.semiring)

    def in_store_order(self, order: VertexOrder) -> Array:
        """Return `x` in store order: (num_vertices,) or (num_vertices, width) `dtype`."""
        inner = np.empty((self.store.num_rows, *self.x.shape[1:]), self.dtype)
        order.to_store(self.x, inner)
        return inner

    def in_input_order(self, sums: Array, order: VertexOrder) -> Array:
        """Return a result in store order by input id, as the user gets it."""
        y = self.semiring.zeros((self.store.attributes.num_input_vertices, *self.x.shape[1:]), self.dtype)
        order.to_input(sums, y)
        return self.as_given(y)


def graph_operand(store: CSRStore, given: Any, semiring: Semiring, *, transpose: bool, weight: str | bool | None) -> GraphOperand:
    """Check what a graph is multiplied by; see `oocgraph.spmv`."""
    column = weight_column(store, weight) if semiring.uses_values or weight is not None else None
    column = column if semiring.uses_values else None
    values_dtype = None if column is None else store.array(f"out/{column}").dtype.newbyteorder("=")
    num_ids = store.attributes.num_input_vertices
    if is_labelled(given):
        raise ArgumentError(
            "x is a Series with an index of its own, but elements go by the order of the graph's ids; give x.reindex(ids).to_numpy(), with "
            "ids such as the vertices of a result"
        )
    x = checked_vector(given, num_ids, semiring, f"{store.url} has {num_ids:,} vertices, isolated ones included")
    return GraphOperand(store, column, transpose, semiring, x, compute_dtype(x.dtype, values_dtype, semiring))


@dataclass(frozen=True, slots=True, eq=False)
class MatrixOperand:
    """A matrix in memory, and a vector.

    Attributes
    ----------
    matrix
        In CSR, CSC or sorted COO.
    transpose : bool
        Whether the transpose is multiplied.
    semiring
        How products are made and added.
    x : (num_columns,) or (num_columns, width)
        Contiguous, as given.
    dtype
        In which kernels compute.
    """

    matrix: Any
    transpose: bool
    semiring: Semiring
    x: Array
    dtype: np.dtype[Any]

    @property
    def width(self) -> int:
        """Vectors that are multiplied."""
        return _width(self.x)

    @property
    def result_bytes(self) -> int:
        """Bytes of the result."""
        return self.num_rows * self.width * self.dtype.itemsize

    def identities(self) -> Array:
        """Return what a result begins with: (num_rows, width) `dtype`."""
        return self.semiring.zeros((self.num_rows, self.width), self.dtype)

    def as_given(self, y: Array) -> Array:
        """Return a result as the user gets it: of as many dimensions as `x`."""
        return _as_given(y, self.x, self.semiring)

    @property
    def num_entries(self) -> int:
        """Nonzeros of the matrix."""
        return int(self.matrix.nnz)

    @property
    def entry_bytes(self) -> int:
        """Bytes of a nonzero, as a device takes it."""
        return self.index_dtype.itemsize + (self.dtype.itemsize if self.semiring.uses_values else 0)

    @property
    def index_dtype(self) -> np.dtype[Any]:
        """Dtype in which a device takes the places of nonzeros: uint32 or int64."""
        found = getattr(self.matrix, "indices", None)
        given = self.matrix.row.dtype if found is None else found.dtype
        return np.dtype(np.int64 if given.itemsize == 8 else np.uint32)

    @property
    def num_rows(self) -> int:
        """Length of the result."""
        return int(self.matrix.shape[1 if self.transpose else 0])

    @property
    def converted_bytes(self) -> int:
        """Bytes of the vector when it has to be converted."""
        return 0 if self.x.dtype.itemsize == self.dtype.itemsize and self.x.dtype.kind in "fb" else self.x.size * self.dtype.itemsize

    def converted(self) -> Array:
        """Return the vector as kernels take it."""
        return self.x.view(np.uint8) if self.semiring.is_boolean else self.x.astype(self.dtype, copy=False)

    def parts(self, num_parts: int, numa: Any = None) -> list[Any]:
        """Cut the matrix; see `oocgraph.balanced_partition`."""
        parts: list[Any] = list(balanced_partition(self.matrix, num_parts, numa=numa))
        return [part.transposed() for part in parts] if self.transpose else parts


def matrix_operand(matrix: Any, given: Any, semiring: Semiring, *, transpose: bool) -> MatrixOperand:
    """Check a matrix in host memory and its vector; see `oocgraph.spmv`."""
    balanced_partition(matrix, 1)  # which refuses what cannot be cut
    if not isinstance(matrix.data, np.ndarray):
        raise ArgumentError(f"the matrix holds arrays of {type(matrix.data).__module__}; only those of NumPy and CuPy are multiplied")
    values_dtype = matrix.data.dtype if semiring.uses_values else None
    num_columns = int(matrix.shape[0 if transpose else 1])
    why = f"the matrix has {num_columns:,} columns" + (" when transposed" if transpose else "")
    check_values_dtype(values_dtype)
    if semiring.is_boolean:
        refuse_nan([(0, matrix.data)], "the matrix")
    x = checked_vector(given, num_columns, semiring, why)
    return MatrixOperand(matrix, transpose, semiring, x, compute_dtype(x.dtype, values_dtype, semiring))
