"""A stored graph as a SciPy matrix in memory.

In: a store. Out: a ``csr_array`` whose row and column i are the i-th input id ascending (so vertex i when the ids are
0 .. n-1), isolated vertices included; neighbours ascend within each row.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from oocgraph.compiled.load import load_kernels
from oocgraph.config import num_cores
from oocgraph.errors import ArgumentError
from oocgraph.kernels.export import place, row_keys
from oocgraph.store.graph_arrays import GraphArrays
from oocgraph.store.input_order import input_positions
from oocgraph.store.row_places import check_no_view
from oocgraph.store.rows import RowBlock, degree_blocks, map_bounded, row_blocks
from oocgraph.types import Array

BLOCK_ENTRIES = 1 << 20
"""Entries sorted at once: 8 MiB of keys stay in the cache."""


def row_degrees(store: GraphArrays, group: str) -> Array:
    """Entries in each stored row: (num_vertices,) uint32, or int64 where 2**32 edges make that possible."""
    degree = np.empty(store.num_rows, np.uint32 if store.attributes.num_stored_edges < 2**32 else np.int64)
    for start, counts in degree_blocks(store, group):
        degree[start : start + counts.size] = counts
    return degree


def weight_column(store: GraphArrays, weight: str | bool | None) -> str | None:
    """Return the name of the numeric column that gives a matrix its values; None when the graph has no weights, or `weight` is False.

    Raises
    ------
    ArgumentError
        `weight` is no numeric edge column, or the graph is weighted by a column that must be named.
    """
    numeric = [name for name, kind in store.attributes.columns.items() if kind != "string"]
    if weight is False or (weight is None and not store.attributes.weighted):
        return None
    only = numeric[0] if len(numeric) == 1 else ""
    chosen = store.attributes.stored_column(str(weight)) if weight is not None else "weight" if "weight" in numeric else only
    if chosen not in numeric:
        named = f"{weight!r} is no numeric edge column" if weight is not None else "which column is the weight is not clear"
        remedy = (
            f"give weight=, one of {', '.join(map(store.attributes.input_column, numeric))}"
            if numeric
            else "it has none: name the column of weights when it is built"
        )
        raise ArgumentError(f"{store.url}: {named}; {remedy}")
    return chosen


def to_scipy(store: GraphArrays, *, weight: str | bool | None = None, dtype: npt.DTypeLike = np.float32, threads: int | None = None) -> Any:
    """Return the graph as a ``scipy.sparse.csr_array``: entry (i, j) is the edge from the i-th to the j-th input id ascending.

    Parameters
    ----------
    store
        The graph. An undirected edge is stored both ways, a self-loop once.
    weight
        Numeric edge column of the values; the graph's weight when not given, ones when it has none; False: ones.
    dtype
        Dtype of the ones.
    threads
        Threads that read and sort; all usable processors when not given.

    Returns
    -------
    scipy.sparse.csr_array
        Shape (num_input_vertices, num_input_vertices), indices sorted; isolated vertices have empty rows. Duplicates that the
        build kept are entries of their own.

    Raises
    ------
    ArgumentError
        `weight` is no numeric column.

    Notes
    -----
    Peak host bytes: the matrix, 8 per vertex, and 50 MiB a thread.
    """
    from scipy.sparse import csr_array

    check_no_view(store)
    size, num_entries = store.attributes.num_input_vertices, store.attributes.num_stored_edges
    column = weight_column(store, weight)
    kind = np.int32 if max(size, num_entries) < 2**31 else np.int64
    position = input_positions(store)
    indptr = np.zeros(size + 1, kind)
    indptr[1 + position.astype(np.int64)] = row_degrees(store, "out")
    np.cumsum(indptr, out=indptr)
    indices = np.empty(num_entries, kind)
    data = np.ones(num_entries, dtype) if column is None else np.empty(num_entries, store.array(f"out/{column}").dtype)

    keys, destination = np.empty(0, np.uint64), np.empty(0, np.int64)
    load_kernels([
        (row_keys, (destination, 0, 0, store.array("out/indices").read(0, 0), position, keys)),
        (place, (keys, indptr, destination)),
    ])  # fmt: skip

    def fill(block: RowBlock) -> None:
        keys = np.empty(block.num_entries, np.uint64)
        row_keys(block.indptr, block.first_row, block.start, store.array("out/indices").read(block.start, block.stop), position, keys)
        destination = np.empty(keys.size, np.int64)
        if column is not None:
            order = np.argsort(keys, kind="stable")
            keys = keys[order]
            place(keys, indptr, destination)
            data[destination] = store.array(f"out/{column}").read(block.start, block.stop)[order]
        else:
            keys.sort()
            place(keys, indptr, destination)
        indices[destination] = keys.view(np.uint32)[::2]  # the low halves

    for _ in map_bounded(fill, row_blocks(store, "out", max_entries=BLOCK_ENTRIES, whole_rows=True), threads or num_cores()):
        pass
    matrix = csr_array((data, indices, indptr), shape=(size, size))
    matrix.has_sorted_indices = True
    return matrix
