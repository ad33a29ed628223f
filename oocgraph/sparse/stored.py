"""A stored graph as a sparse matrix that is on disk: CSR in store order, whose arrays are ranges that nothing has read yet.

In: a store, a group and an edge column. Out: `StoredMatrix`, with the attributes by which matrices are recognised and cut.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from oocgraph.store.graph import CSRStore
from oocgraph.store.slices import StoredSlice
from oocgraph.types import Array


class StoredMatrix:
    """The neighbours of a graph as a CSR matrix in store order.

    Parameters
    ----------
    store
        The graph.
    group
        ``out``: entry (i, j) is the edge from store number i to j; ``in``, of a directed graph: the transpose.
    column
        Stored edge column of the values; None: all are one.

    Attributes
    ----------
    format, shape, indptr, indices, data
        As SciPy has them; the arrays are `StoredSlice`, `data` is None without a column.
    """

    format = "csr"

    def __init__(self, store: CSRStore, group: str, column: str | None = None) -> None:
        self.shape = (store.num_rows, store.num_rows)
        self.indptr, self.indices = StoredSlice(store.array(f"{group}/indptr")), StoredSlice(store.array(f"{group}/indices"))
        self.data = None if column is None else StoredSlice(store.array(f"{group}/{column}"))

    def make(self, arrays: tuple[Array | None, Array, Array], shape: tuple[int, int]) -> Any:
        """Return a ``scipy.sparse.csr_array`` of values, indices and pointers that were read."""
        from scipy.sparse import csr_array

        values, indices, pointers = arrays
        return csr_array((np.ones(indices.size, np.float32) if values is None else values, indices, pointers), shape=shape)
