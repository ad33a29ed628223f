"""Adjacency matrices by rows: SciPy's in memory, and GAPBS serialized graphs (.sg, and .wsg with int32 weights), read by ranges.

Each stored entry of a SciPy matrix is an edge row -> column, its value the weight (unless it is a truth value). Whether the graph is
directed is not said by a matrix, even a symmetric one: `directed` is None.

Layout of a .sg (GAPBS ``writer.h``): bool directed; int64 number of stored edges; int64 number of vertices; int64 offsets (n + 1);
int32 neighbours; when directed the same two arrays again for in-edges. An undirected graph stores each edge in both lists; it
is given once, from its smaller end, unless a directed graph is to be made of it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from oocgraph.errors import InputError
from oocgraph.ingest.edges import EdgeBlock, EdgeStream
from oocgraph.ingest.sources.columns import fixed_layout
from oocgraph.ingest.sources.ids import Place, int_ids, numpy_column_dtype
from oocgraph.ingest.sources.source import Request, Source, blocks_of, file_bytes, open_file, range_streams, read_elements, split_rows
from oocgraph.types import Array

CHECKED_ROWS = 1 << 20
"""Offsets that are compared at once."""

HEADER_BYTES = 17
NEIGHBOUR = np.dtype("<i4")
WEIGHTED_NEIGHBOUR = np.dtype([("vertex", "<i4"), ("weight", "<i4")])


def rows_of_entries(indptr: Array, first_row: int, low: int, high: int) -> Array:
    """Row of each of the entries ``low .. high``.

    Parameters
    ----------
    indptr : (num_rows + 1,) int64
        Offsets of consecutive rows, of which the first is row `first_row`; they cover the entries asked for.

    Returns
    -------
    (high - low,) int64

    Examples
    --------
    >>> rows_of_entries(np.array([0, 2, 2, 5]), 10, 1, 4).tolist()
    [10, 12, 12]
    """
    begin = int(np.searchsorted(indptr, low, side="right")) - 1
    end = int(np.searchsorted(indptr, high, side="left"))
    lengths = np.diff(np.clip(indptr[begin : end + 1], low, high))
    return np.repeat(np.arange(first_row + begin, first_row + begin + lengths.size, dtype=np.int64), lengths)


def row_blocks(
    what: str, pointers: Callable[[int, int], Array], bounds: tuple[int, int], num_entries: int, block_rows: int
) -> Iterator[tuple[int, int, Array]]:
    """Iterate over the entries of a range of rows in blocks: first entry, entry after the last, and the row of each.

    Parameters
    ----------
    what
        Beginning of the message about offsets that do not ascend.
    pointers
        Returns the offsets of the rows ``first .. stop``, `stop` included; called with consecutive ranges.
    bounds
        First row, and row after the last.
    """
    for first, stop in blocks_of(*bounds, block_rows):
        indptr = pointers(first, stop)
        if (np.diff(indptr) < 0).any() or indptr[0] < 0 or (first == 0 and indptr[0] > 0) or indptr[-1] > num_entries:
            raise InputError(f"{what} of vertices {first} to {stop} do not ascend from 0 to {num_entries}; write it again")
        for low, high in blocks_of(int(indptr[0]), int(indptr[-1]), block_rows):
            yield low, high, rows_of_entries(indptr, first, low, high)


def weight_column(dtype: np.dtype[Any]) -> dict[str, str]:
    """Edge column of a matrix whose values have this dtype."""
    return {} if dtype.kind == "b" else {"weight": numpy_column_dtype(dtype).name}


def open_matrix(matrix: Any, request: Request) -> Source:
    """Open a scipy.sparse matrix or array; other layouts than CSR, CSC and COO are converted to CSR first."""
    description = f"SciPy sparse {matrix.format} {'x'.join(str(size) for size in matrix.shape)}"
    if len(matrix.shape) != 2 or matrix.shape[0] != matrix.shape[1]:
        raise InputError(f"{description}: the adjacency matrix of a graph is square")
    if matrix.format not in {"csr", "csc", "coo"}:
        matrix = matrix.tocsr()
    n, num_entries = int(matrix.shape[0]), _num_entries(matrix, description)
    layout = fixed_layout(description, weight_column(matrix.data.dtype), request, ends=("row", "column"), declared=n)

    def read(low: int, high: int) -> EdgeBlock:
        if matrix.format == "coo":
            ends = [matrix.row[low:high], matrix.col[low:high]]
        else:
            ends = [rows_of_entries(matrix.indptr, 0, low, high), matrix.indices[low:high]]
        if matrix.format == "csc":
            ends.reverse()
        return layout.block({"row": ends[0], "column": ends[1], "weight": matrix.data[low:high]}.__getitem__, low)

    read(0, 0)  # refuses complex values and objects
    return layout.open(range_streams(num_entries, read), num_entries)


def _num_entries(matrix: Any, description: str) -> int:
    """Return the number of entries of a CSR, CSC or COO matrix, whose arrays anybody may have set to others since SciPy checked them.

    Behind the entries of a CSR or CSC matrix its arrays may have room that is not used.

    Raises
    ------
    InputError
        The arrays do not fit each other.
    """
    names = ("row", "col", "data") if matrix.format == "coo" else ("indices", "data")
    shapes = [getattr(matrix, name).shape for name in names]
    if len(set(shapes)) > 1 or len(shapes[0]) != 1:
        found = ", ".join(f"{name!r} {shape}" for name, shape in zip(names, shapes, strict=True))
        raise InputError(f"{description}: its arrays differ in shape ({found}); make the matrix again")
    size: int = shapes[0][0]
    if matrix.format == "coo":
        return size
    indptr, n = matrix.indptr, matrix.shape[0]
    if indptr.dtype.kind not in "iu" or indptr.shape != (n + 1,):
        raise InputError(
            f"{description}: array 'indptr' has shape {indptr.shape} of {indptr.dtype}, not {(n + 1,)} of integers; make it again"
        )
    ascends = all((indptr[low:high] <= indptr[low + 1 : high + 1]).all() for low, high in blocks_of(0, n, CHECKED_ROWS))
    if indptr[0] != 0 or not ascends or indptr[-1] > size:
        raise InputError(f"{description}: the offsets in array 'indptr' do not ascend from 0 to at most {size}; make the matrix again")
    return int(indptr[-1])


def open_sg(path: Path, request: Request) -> Source:
    """Open a .sg or .wsg file."""
    size = file_bytes(path)
    with open_file(path) as file:
        header = file.read(HEADER_BYTES)
    if size < HEADER_BYTES or header[0] > 1:
        raise InputError(f"{path} is not a GAPBS serialized graph (its header is wrong); write it again with `converter -b`")
    directed = bool(header[0])
    num_stored, n = (int(value) for value in np.frombuffer(header, "<i8", 2, 1))
    entry = WEIGHTED_NEIGHBOUR if path.suffix.lower() == ".wsg" else NEIGHBOUR
    expected = HEADER_BYTES + (8 * (n + 1) + entry.itemsize * num_stored) * (2 if directed else 1)
    if num_stored < 0 or n < 0 or size != expected:
        raise InputError(
            f"{path} has {size} bytes but its header ({num_stored} stored edges, {n} vertices) means {expected}: "
            "truncated, or with weights (.wsg) under the wrong name; write it again"
        )
    if [int(read_elements(path, HEADER_BYTES + 8 * vertex, np.dtype("<i8"), 1)[0]) for vertex in (0, n)] != [0, num_stored]:
        raise InputError(f"{path}: the offsets of vertices 0 to {n} do not ascend from 0 to {num_stored}; write it again")
    is_once = not directed and not request.directed
    available = {"weight": "int32"} if entry == WEIGHTED_NEIGHBOUR else {}
    layout = fixed_layout(str(path), available, request, declared=n)
    neighbours_at = HEADER_BYTES + 8 * (n + 1)

    def pointers(first: int, stop: int) -> Array:
        return read_elements(path, HEADER_BYTES + 8 * first, np.dtype("<i8"), stop - first + 1)

    def stream(start: int, stop: int, block_rows: int) -> Iterator[EdgeBlock]:
        for low, high, rows in row_blocks(f"{path}: the offsets", pointers, (start, stop), num_stored, block_rows):
            entries = read_elements(path, neighbours_at + entry.itemsize * low, entry, high - low)
            yield _block(path, entries, rows, low, n, is_once=is_once)

    def streams(block_rows: int) -> list[EdgeStream]:
        ranges = [(0, n)] if num_stored <= block_rows else split_rows(n, 1)
        return [partial(stream, low, high, block_rows) for low, high in ranges]

    return layout.open(streams, None if is_once else num_stored, directed=not is_once)


def _block(path: Path, entries: Array, source: Array, low: int, n: int, *, is_once: bool) -> EdgeBlock:
    place = Place(str(path), "target", lambda position: f"stored edge {low + position} (counted from 0)")
    weighted = entries.dtype == WEIGHTED_NEIGHBOUR
    target = int_ids(entries["vertex"] if weighted else entries, place, n)
    columns = {"weight": np.ascontiguousarray(entries["weight"])} if weighted else {}
    if is_once:
        once = source <= target
        source, target = source[once], target[once]
        columns = {name: values[once] for name, values in columns.items()}
    return EdgeBlock(source, target, columns, low)
