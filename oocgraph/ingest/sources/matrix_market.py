"""Matrix Market (.mtx): a coordinate matrix as edges row -> column, its body streamed like any other text.

Indices count from 1 in the file and from 0 here. Values become the column ``weight``. A symmetric matrix stores each edge once
and is undirected; a directed graph of it has both. ``scipy.io.mmread`` holds the whole matrix, so only its format, not its code, is used.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from oocgraph.errors import InputError
from oocgraph.ingest.sources.arrow_values import ArrowLayout, ids_from_one
from oocgraph.ingest.sources.columns import fixed_layout
from oocgraph.ingest.sources.compressed import open_text, read_text
from oocgraph.ingest.sources.ids import Place
from oocgraph.ingest.sources.lines import HEADER_BYTES, Dialect, line_blocks
from oocgraph.ingest.sources.parsed_lines import open_counted
from oocgraph.ingest.sources.source import MAX_DIGITS, Request, Source, file_bytes

VALUE_TYPES = {"pattern": None, "integer": pa.int64(), "real": pa.float64(), "double": pa.float64()}

LINE_BYTES = 4
"""The shortest line of an entry: ``1 1`` and its end."""


@dataclass(frozen=True, slots=True)
class _Header:
    field: str
    symmetric: bool
    num_vertices: int
    num_entries: int


def open_matrix_market(path: Path, request: Request) -> Source:
    """Open a .mtx file, compressed or not."""
    file_bytes(path)
    header = _read_header(path)
    value_type = VALUE_TYPES[header.field]
    available = {} if value_type is None else {"weight": "int64" if value_type == pa.int64() else "float64"}
    layout = fixed_layout(str(path), available, request, ends=("row", "column"), declared=header.num_vertices, make=_OneBased)
    if value_type == pa.float64() and (asked := np.dtype(layout.dtypes.get("weight", "float64"))).kind == "f":
        value_type = pa.from_numpy_dtype(asked)  # 0.1 is a float32 where that is asked for
    dialect = Dialect(
        delimiter=" ",
        skip_rows=1,
        names=("row", "column") if value_type is None else ("row", "column", "weight"),
        types={0: pa.int64(), 1: pa.int64()} | ({2: value_type} if layout.dtypes else {}),
        ids=(0, 1),
        may_be_text=False,
    )

    directed = False if header.symmetric else None
    return open_counted(path, dialect, layout, header.num_entries, what="entries", line_bytes=LINE_BYTES, directed=directed)


class _OneBased(ArrowLayout):
    """Indices count from 1."""

    __slots__ = ()

    def ids(self, values: Any, place: Place) -> Any:
        """Return the ids of an end, checked."""
        largest = self.num_vertices
        assert largest is not None
        return ids_from_one(values, place, largest, what="index", remedy="correct the line or the sizes") - 1


def _read_header(path: Path) -> _Header:
    with open_text(path) as file:
        header = bytearray(HEADER_BYTES)
        words = header[: read_text(file, path, memoryview(header))].partition(b"\n")[0].decode("ascii", "replace").lower().split()
    if len(words) != 5 or words[0] != "%%matrixmarket" or words[1] != "matrix":
        raise InputError(f"{path}, line 1: not a Matrix Market header (%%MatrixMarket matrix coordinate ...); correct it or its extension")
    layout, field, symmetry = words[2:]
    if layout != "coordinate":
        raise InputError(f"{path}, line 1: a matrix in {layout!r} layout is dense; only coordinate matrices are edge lists, convert it")
    if field not in VALUE_TYPES:
        raise InputError(f"{path}, line 1: values of field {field!r} cannot be weights; write it as real, integer or pattern")
    if symmetry not in {"general", "symmetric"}:
        raise InputError(f"{path}, line 1: a {symmetry} matrix is not a graph's; write all of its entries, as general")
    number, sizes = _size_line(path)
    if len(sizes) != 3 or not all(size.isdigit() and len(size) < MAX_DIGITS for size in sizes):
        raise InputError(f"{path}, line {number}: {' '.join(sizes)!r:.200} is not 'rows columns entries'; correct the line")
    rows, columns, entries = (int(size) for size in sizes)
    if rows != columns:
        raise InputError(f"{path}, line {number}: the matrix is {rows} x {columns}; the adjacency matrix of a graph is square, correct it")
    return _Header(field, symmetry == "symmetric", rows, entries)


def _size_line(path: Path) -> tuple[int, list[str]]:
    for block in line_blocks(path, HEADER_BYTES):
        for number, line in block.data_lines():
            return number, line.decode("ascii", "replace").split()
    raise InputError(f"{path} is truncated: no line with its sizes; copy or write it again")
