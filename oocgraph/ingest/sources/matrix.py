"""SciPy sparse matrices in memory: each stored entry is an edge row -> column, its value the weight (unless it is a truth value).

Whether the graph is directed is not said by a matrix, even a symmetric one: `directed` is None.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np

from oocgraph.errors import InputError
from oocgraph.ingest.edges import EdgeBlock, EdgeStream
from oocgraph.ingest.sources.ids import int_ids, numbers, numpy_column_dtype, row_place
from oocgraph.ingest.sources.rows import rows_of_entries
from oocgraph.ingest.sources.source import Request, Source, agreed_num_vertices, blocks_of, choose_values, split_rows


def open_matrix(matrix: Any, request: Request) -> Source:
    """Open a scipy.sparse matrix or array; other layouts than CSR, CSC and COO are converted to CSR first."""
    description = f"SciPy sparse {matrix.format} {'x'.join(str(size) for size in matrix.shape)}"
    if len(matrix.shape) != 2 or matrix.shape[0] != matrix.shape[1]:
        raise InputError(f"{description}: the adjacency matrix of a graph is square")
    if matrix.format not in {"csr", "csc", "coo"}:
        matrix = matrix.tocsr()
    n, num_entries = int(matrix.shape[0]), int(matrix.data.shape[0])
    values = {} if matrix.data.dtype.kind == "b" else {"weight": numpy_column_dtype(matrix.data.dtype).name}
    columns, weight = choose_values(description, values, request)

    def stream(start: int, stop: int, block_rows: int) -> Iterator[EdgeBlock]:
        for low, high in blocks_of(start, stop, block_rows):
            if matrix.format == "coo":
                ends = [matrix.row[low:high], matrix.col[low:high]]
            else:
                ends = [rows_of_entries(matrix.indptr, 0, low, high), matrix.indices[low:high]]
            if matrix.format == "csc":
                ends.reverse()
            source, target = (int_ids(end, row_place(description, name, low), n) for end, name in zip(ends, ("row", "column"), strict=True))
            edge = {name: numbers(matrix.data[low:high], row_place(description, name, low), weight=True) for name in columns}
            yield EdgeBlock(source, target, edge, low)

    def streams(block_rows: int) -> list[EdgeStream]:
        return [partial(stream, low, high, block_rows) for low, high in split_rows(num_entries, block_rows)]

    numbers(np.empty(0, matrix.data.dtype), row_place(description, "weight", 0), weight=True)  # refuses complex values and objects
    return Source(
        description=description,
        id_kind="int64",
        make_streams=streams,
        num_rows=num_entries,
        num_vertices=agreed_num_vertices(description, n, request),
        weight=weight,
        columns=columns,
    )
