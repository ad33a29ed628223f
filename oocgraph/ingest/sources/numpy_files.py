"""NumPy files: .npy, read by ranges without mapping, and .npz, whose arrays are streamed (compressed or not) beside each other.

A .npy holds a (num_edges, 2) array, or a structured array with a field for each column. A .npz holds one array for each column, a single
(num_edges, 2) array, or a SciPy matrix, recognised by its members (``scipy.sparse.save_npz``).
"""

from __future__ import annotations

import lzma
import math
import struct
import zipfile
import zlib
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from io import BytesIO
from pathlib import Path
from tokenize import TokenError
from typing import IO, Any

import numpy as np

from oocgraph.errors import InputError
from oocgraph.ingest.edges import EdgeBlock
from oocgraph.ingest.sources.arrays import check_edge_shape
from oocgraph.ingest.sources.columns import Layout, fixed_layout, numpy_layout
from oocgraph.ingest.sources.csr import row_blocks, weight_column
from oocgraph.ingest.sources.source import (
    MAX_INFLATION,
    Request,
    Source,
    blocks_of,
    file_bytes,
    open_file,
    range_streams,
    read_elements,
    reason,
    single_stream,
)
from oocgraph.types import Array

MAX_HEADER_BYTES = 10_000
"""NumPy's own limit for headers that are not trusted; a header of ten fields has 300 bytes."""

READ_BYTES = 8 << 20
"""Most that is read at once of rows with many fields."""

READ_ROWS = 1 << 17
"""Offsets that are read at once to come to the last."""

SCIPY_FORMATS = ("coo", "csc", "csr")

SMALL_BYTES = 1 << 10
"""More than the arrays "format" and "shape" of a SciPy matrix have."""

_PARSER_ERRORS = (ValueError, TypeError, LookupError, AttributeError, SyntaxError, TokenError, RecursionError, MemoryError, OverflowError)
"""What NumPy lets through of Python's parser where a header is damaged, or nested deeper than the parser goes."""


def _read_header(file: IO[bytes], description: str) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
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
        shape, fortran, dtype = _read_header(file, str(path))
        data_at = file.tell()
    expected = data_at + math.prod(shape) * dtype.itemsize
    if size < expected:
        raise InputError(f"{path} is truncated: {size} bytes, but its header ({shape}, {dtype}) means {expected}; write it again")
    if dtype.names is not None:
        return _open_structured(path, shape, dtype, data_at, request)
    layout = _pair_layout(str(path), shape, dtype, request)
    num_rows = shape[0]

    def read(low: int, high: int) -> EdgeBlock:
        if fortran:
            ends = [read_elements(path, data_at + dtype.itemsize * (k * num_rows + low), dtype, high - low) for k in (0, 1)]
        else:
            ends = list(read_elements(path, data_at + dtype.itemsize * 2 * low, dtype, 2 * (high - low)).reshape(-1, 2).T)
        return layout.block(lambda name: ends[int(name)], low)

    return layout.open(range_streams(num_rows, read), num_rows)


def _pair_layout(description: str, shape: tuple[int, ...], dtype: np.dtype[Any], request: Request) -> Layout:
    """Layout of a (num_edges, 2) array; a dtype that cannot be ids is refused."""
    check_edge_shape(description, shape)
    layout = fixed_layout(description, {}, request, ends=("0", "1"))
    layout.block(lambda _: np.empty(0, dtype), 0)
    return layout


def _open_structured(path: Path, shape: tuple[int, ...], dtype: np.dtype[Any], data_at: int, request: Request) -> Source:
    if len(shape) != 1:
        raise InputError(f"{path} has shape {shape}; a structured array needs one dimension, one element for each edge")
    layout = numpy_layout(str(path), {name: dtype[name] for name in dtype.names or ()}, request)
    for name in layout.columns.read:
        if dtype[name].subdtype is not None:
            raise InputError(f"{path}, column {name!r}: its elements are arrays ({dtype[name]}); a column holds one number for each edge")

    def read(low: int, high: int) -> EdgeBlock:
        return layout.block(read_elements(path, data_at + dtype.itemsize * low, dtype, high - low).__getitem__, low)

    return layout.open(range_streams(shape[0], read, most_rows=max(1, READ_BYTES // dtype.itemsize)), shape[0])


@dataclass(frozen=True, slots=True)
class _Member:
    """One array of the archive."""

    path: Path
    name: str
    entry: str
    shape: tuple[int, ...]
    fortran: bool
    dtype: np.dtype[Any]


class _Reader:
    """Reads a member from its beginning, some elements at a time."""

    def __init__(self, member: _Member, file: IO[bytes]) -> None:
        self.member, self.file, self._last = member, file, np.empty(0, np.int64)
        _read_header(file, f"{member.path}, array {member.name!r}")

    def read(self, count: int) -> Array:
        """Return the next `count` elements (rows, when two-dimensional)."""
        return self._read((count, *self.member.shape[1:]))

    def pointers(self, first: int, stop: int) -> Array:
        """Return the offsets ``first .. stop`` as int64, of which the first is the last of the range before."""
        found = np.concatenate([self._last, self.read(stop - first + 1 - self._last.size)], dtype=np.int64)
        self._last = found[-1:]
        return found

    def read_all(self) -> Array:
        """Return the whole of a small array, of any number of dimensions."""
        if math.prod(self.member.shape) * self.member.dtype.itemsize > SMALL_BYTES:
            raise InputError(f"{self.member.path}, array {self.member.name!r} has shape {self.member.shape}; write the file again")
        return self._read(self.member.shape)

    def _read(self, shape: tuple[int, ...]) -> Array:
        num_bytes = math.prod(shape) * self.member.dtype.itemsize
        with _decoding(self.member.path, self.member.name):
            data = self.file.read(num_bytes)
        if len(data) != num_bytes:
            raise InputError(f"{self.member.path}, array {self.member.name!r} is truncated; write the file again")
        return np.frombuffer(bytearray(data), self.member.dtype).reshape(shape)


def open_npz(path: Path, request: Request) -> Source:
    """Open a .npz of NumPy arrays or of a SciPy sparse matrix."""
    file_bytes(path)
    members = _members(path)
    if {"format", "shape"} <= members.keys():
        return _open_scipy(path, members, request)
    if not members:
        raise InputError(f"{path} holds no arrays; save source and target in it, or an array (num_edges, 2)")
    if len(members) == 1:
        return _open_single(path, next(iter(members.values())), request)
    layout = numpy_layout(str(path), {name: member.dtype for name, member in members.items()}, request)
    chosen = [members[name] for name in layout.columns.read]
    for member in chosen:
        if len(member.shape) != 1 or member.shape != chosen[0].shape:
            shapes = f"array {member.name!r} has shape {member.shape} and {chosen[0].name!r} has {chosen[0].shape}"
            raise InputError(f"{path}: {shapes}; both need (num_edges,)")
    num_rows = chosen[0].shape[0]

    def stream(block_rows: int) -> Iterator[EdgeBlock]:
        with _open_readers(chosen) as readers:
            for low, high in blocks_of(0, num_rows, block_rows):
                yield layout.block({name: reader.read(high - low) for name, reader in readers.items()}.__getitem__, low)

    return layout.open(single_stream(stream), num_rows)


def _open_single(path: Path, member: _Member, request: Request) -> Source:
    description = f"{path}, array {member.name!r}"
    layout = _pair_layout(description, member.shape, member.dtype, request)
    if member.fortran:
        raise InputError(f"{description} is in Fortran order, which cannot be streamed; save numpy.ascontiguousarray of it, or a .npy")

    def stream(block_rows: int) -> Iterator[EdgeBlock]:
        with _open_readers([member]) as readers:
            for low, high in blocks_of(0, member.shape[0], block_rows):
                edges = readers[member.name].read(high - low)
                yield layout.block(partial(_end, edges), low)

    return replace(layout, description=str(path)).open(single_stream(stream), member.shape[0])


def _end(edges: Array, name: str) -> Array:
    """Column of a (num_edges, 2) array."""
    end: Array = edges[:, int(name)]
    return end


def _open_scipy(path: Path, members: dict[str, _Member], request: Request) -> Source:
    """Entries of a COO, CSR or CSC matrix, in stored order."""
    with _open_readers([members["format"], members["shape"]]) as readers:
        stored, shape = (readers[name].read_all().tolist() for name in ("format", "shape"))
    kind = stored.decode() if isinstance(stored, bytes) else str(stored)
    shape = shape if isinstance(shape, list) and all(isinstance(size, int) for size in shape) else []
    if kind not in SCIPY_FORMATS:
        raise InputError(f"{path}: a SciPy matrix in {kind!r} layout; save it as CSR (matrix.tocsr())")
    if len(shape) != 2 or shape[0] != shape[1]:
        raise InputError(f"{path}: the matrix has shape {tuple(shape)}; the adjacency matrix of a graph is square")
    ends = ("row", "col") if kind == "coo" else ("indptr", "indices")
    missing = [name for name in (*ends, "data") if name not in members]
    if missing:
        raise InputError(f"{path}: a SciPy matrix without the array {missing[0]!r}; save it again with scipy.sparse.save_npz")
    lengths = {name: members[name].shape for name in (*ends, "data")}
    if kind != "coo" and members["indptr"].dtype.kind not in "iu":
        raise InputError(f"{path}: array 'indptr' holds {members['indptr'].dtype}, not integers; save the matrix again")
    num_entries, n = math.prod(lengths[ends[1]]), shape[0]
    wanted = {ends[0]: (num_entries if kind == "coo" else n + 1,), ends[1]: (num_entries,), "data": (num_entries,)}
    for name, length in lengths.items():
        if length != wanted[name]:
            raise InputError(f"{path}: array {name!r} has shape {length} where {wanted[name]} is needed; save the matrix again")
    if kind != "coo":  # behind the entries the arrays may have room that is not used
        last = _last_offset(members["indptr"])
        num_entries = last if 0 <= last <= num_entries else num_entries
    named = (ends[1], ends[0]) if kind == "csc" else ends
    layout = fixed_layout(str(path), weight_column(members["data"].dtype), request, ends=named, declared=n)
    dtypes = {name: members[name].dtype for name in ends} | {"weight": members["data"].dtype}
    layout.block(lambda name: np.empty(0, dtypes[name]), 0)
    chosen = [members[name] for name in (*ends, *(["data"] if layout.dtypes else []))]

    def stream(block_rows: int) -> Iterator[EdgeBlock]:
        with _open_readers(chosen) as readers:
            rows: Iterator[tuple[int, int, Array]]
            if kind == "coo":
                rows = ((low, high, readers["row"].read(high - low)) for low, high in blocks_of(0, num_entries, block_rows))
            else:
                rows = row_blocks(f"{path}: the offsets in array 'indptr'", readers["indptr"].pointers, (0, n), num_entries, block_rows)
            for low, high, lines in rows:
                values = {ends[0]: lines, ends[1]: readers[ends[1]].read(high - low)}
                if layout.dtypes:
                    values["weight"] = readers["data"].read(high - low)
                yield layout.block(values.__getitem__, low)

    return layout.open(single_stream(stream), num_entries)


def _last_offset(member: _Member) -> int:
    """Return the last of the offsets of a matrix, for which all are read."""
    with _open_readers([member]) as readers:
        last = [0]
        for low, high in blocks_of(0, member.shape[0], READ_ROWS):
            last = readers[member.name].read(high - low)[-1:].tolist()
    return int(last[0])


@contextmanager
def _decoding(path: Path, name: str) -> Iterator[None]:
    try:
        yield
    except (zipfile.BadZipFile, zlib.error, lzma.LZMAError, EOFError, OSError, ValueError, struct.error) as error:
        raise InputError(f"{path}, array {name!r} is damaged or truncated ({reason(error)}); write the file again") from error
    except RuntimeError as error:  # encrypted, or compressed by a method that Python does not know
        raise InputError(f"{path}, array {name!r} cannot be read ({reason(error)}); write the file again with numpy.savez") from error


def _archive(path: Path) -> zipfile.ZipFile:
    try:
        return zipfile.ZipFile(path)
    except (zipfile.BadZipFile, ValueError, struct.error, NotImplementedError) as error:
        raise InputError(f"{path} is not a .npz archive, or it is truncated ({reason(error)}); write it again with numpy.savez") from error


def _members(path: Path) -> dict[str, _Member]:
    members = {}
    with _archive(path) as archive:
        for entry in archive.infolist():
            name = entry.filename.removesuffix(".npy")
            with _decoding(path, name), archive.open(entry) as file:
                shape, fortran, dtype = _read_header(file, f"{path}, array {name!r}")
                _check_size(path, name, entry, file.tell() + math.prod(shape) * dtype.itemsize)
            members[name] = _Member(path, name, entry.filename, shape, fortran, dtype)
    return members


def _check_size(path: Path, name: str, entry: zipfile.ZipInfo, expected: int) -> None:
    """Compare what a member's header means with what the archive has of it."""
    inflation = {zipfile.ZIP_STORED: 1, zipfile.ZIP_DEFLATED: MAX_INFLATION}.get(entry.compress_type, expected)
    if entry.file_size < expected or entry.compress_size * inflation < expected:
        raise InputError(f"{path}, array {name!r} is truncated: its header means {expected} bytes, the archive has fewer; write it again")


@contextmanager
def _open_readers(members: Sequence[_Member]) -> Iterator[dict[str, _Reader]]:
    with ExitStack() as stack:
        archive = stack.enter_context(_archive(members[0].path))
        readers = {}
        for member in members:
            with _decoding(member.path, member.name):
                readers[member.name] = _Reader(member, stack.enter_context(archive.open(member.entry)))
        yield readers
