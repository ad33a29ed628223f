"""NumPy .npy: a (num_edges, 2) array, or a structured array with a field for each column, read by blocks without mapping."""

from __future__ import annotations

import math
import struct
from collections.abc import Iterator
from functools import partial
from io import BytesIO
from pathlib import Path
from tokenize import TokenError
from typing import IO, Any

import numpy as np

from oocgraph.errors import InputError
from oocgraph.ingest.edges import EdgeBlock, EdgeStream
from oocgraph.ingest.sources.arrays import check_edge_shape
from oocgraph.ingest.sources.columns import choose_columns
from oocgraph.ingest.sources.ids import int_ids, numbers, numpy_column_dtype, row_place
from oocgraph.ingest.sources.source import (
    Request,
    Source,
    agreed_num_vertices,
    blocks_of,
    choose_values,
    file_bytes,
    open_file,
    reason,
    split_rows,
)
from oocgraph.types import Array

MAX_HEADER_BYTES = 10_000
"""NumPy's own limit for headers that are not trusted; a header of ten fields has 300 bytes."""

READ_BYTES = 8 << 20
"""Most that is read at once of rows with many fields."""

_PARSER_ERRORS = (ValueError, TypeError, LookupError, AttributeError, SyntaxError, TokenError, RecursionError, MemoryError, OverflowError)
"""What NumPy lets through of Python's parser where a header is damaged, or nested deeper than the parser goes."""


def read_header(file: IO[bytes], description: str) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
    """Read the header of a .npy stream, which is not trusted: shape, whether in Fortran order, dtype."""
    reading = {(1, 0): ("<H", np.lib.format.read_array_header_1_0), (2, 0): ("<I", np.lib.format.read_array_header_2_0)}
    try:
        version = np.lib.format.read_magic(file)
        if version not in reading:
            raise ValueError(f"format version {version}")
        length_format, read = reading[version]
        length = file.read(struct.calcsize(length_format))
        (num_bytes,) = struct.unpack(length_format, length)
        if num_bytes > MAX_HEADER_BYTES:
            raise ValueError(f"a header of {num_bytes} bytes")
        shape, fortran, dtype = read(BytesIO(length + file.read(num_bytes)))
    except (*_PARSER_ERRORS, struct.error) as error:
        raise InputError(
            f"{description} is not a NumPy array, or it is truncated ({reason(error)}); write it again with numpy.save"
        ) from error
    if dtype.hasobject:
        raise InputError(f"{description} holds pickled Python objects ({dtype}), which are not read; save integers, or strings as Parquet")
    if dtype.subdtype is not None:
        raise InputError(f"{description} holds arrays as elements ({dtype}); save an array of numbers, or with a field for each column")
    if not all(0 <= size < 2**63 for size in shape):
        raise InputError(f"{description} is damaged: its header has a shape that no array has; write it again with numpy.save")
    return shape, fortran, dtype


def open_npy(path: Path, request: Request) -> Source:
    """Open a .npy file."""
    size = file_bytes(path)
    with open_file(path) as file:
        shape, fortran, dtype = read_header(file, str(path))
        data_at = file.tell()
    expected = data_at + math.prod(shape) * dtype.itemsize
    if size < expected:
        raise InputError(f"{path} is truncated: {size} bytes, but its header ({shape}, {dtype}) means {expected}; write it again")
    if dtype.names is not None:
        return _open_structured(path, shape, dtype, data_at, request)
    check_edge_shape(str(path), shape)
    choose_values(str(path), {}, request)
    num_vertices = agreed_num_vertices(str(path), None, request)
    num_rows = shape[0]

    def stream(start: int, stop: int, block_rows: int) -> Iterator[EdgeBlock]:
        with open_file(path) as file:
            for low, high in blocks_of(start, stop, block_rows):
                if fortran:
                    ends = [_read(file, path, data_at + dtype.itemsize * (k * num_rows + low), dtype, high - low) for k in (0, 1)]
                else:
                    pairs = _read(file, path, data_at + dtype.itemsize * 2 * low, dtype, 2 * (high - low)).reshape(-1, 2)
                    ends = [pairs[:, 0], pairs[:, 1]]
                source, target = (
                    int_ids(end, row_place(str(path), name, low), num_vertices) for end, name in zip(ends, ("0", "1"), strict=True)
                )
                yield EdgeBlock(source, target, first_row=low)

    def streams(block_rows: int) -> list[EdgeStream]:
        return [partial(stream, low, high, block_rows) for low, high in split_rows(num_rows, block_rows)]

    int_ids(np.empty(0, dtype), row_place(str(path), "0", 0), None)  # refuses a dtype that cannot be ids
    return Source(description=str(path), id_kind="int64", make_streams=streams, num_rows=num_rows, num_vertices=num_vertices)


def _open_structured(path: Path, shape: tuple[int, ...], dtype: np.dtype[Any], data_at: int, request: Request) -> Source:
    if len(shape) != 1:
        raise InputError(f"{path} has shape {shape}; a structured array needs one dimension, one element for each edge")
    description, num_rows = str(path), shape[0]
    columns = choose_columns(description, list(dtype.names or ()), request)
    num_vertices = agreed_num_vertices(description, None, request)
    for name in columns.read:
        if dtype[name].subdtype is not None:
            raise InputError(f"{path}, column {name!r}: its elements are arrays ({dtype[name]}); a column holds one number for each edge")
    dtypes = {name: numpy_column_dtype(dtype[name]).name for name in columns.edge}

    def block(rows: Array, low: int) -> EdgeBlock:
        source, target = (int_ids(rows[name], row_place(description, name, low), num_vertices) for name in (columns.source, columns.target))
        values = {name: numbers(rows[name], row_place(description, name, low), weight=name == columns.weight) for name in columns.edge}
        return EdgeBlock(source, target, values, low)

    def stream(start: int, stop: int, block_rows: int) -> Iterator[EdgeBlock]:
        with open_file(path) as file:
            for low, high in blocks_of(start, stop, min(block_rows, max(1, READ_BYTES // dtype.itemsize))):
                yield block(_read(file, path, data_at + dtype.itemsize * low, dtype, high - low), low)

    def streams(block_rows: int) -> list[EdgeStream]:
        return [partial(stream, low, high, block_rows) for low, high in split_rows(num_rows, block_rows)]

    block(np.empty(0, dtype), 0)  # refuses dtypes that cannot be ids or columns
    return Source(
        description=description,
        id_kind="int64",
        make_streams=streams,
        num_rows=num_rows,
        num_vertices=num_vertices,
        weight=columns.weight,
        columns=dtypes,
    )


def _read(file: IO[bytes], path: Path, offset: int, dtype: np.dtype[Any], count: int) -> Array:
    file.seek(offset)
    array = np.empty(count, dtype)
    if file.readinto(array.view(np.uint8)) != array.nbytes:  # type: ignore[attr-defined]
        raise InputError(f"{path} ended at byte {file.tell()} while it was read; was it changed? Write it again")
    return array
