"""NumPy and SciPy .npz: arrays in a zip, each member read as a stream (compressed or not) beside the others.

A SciPy matrix is recognised by its members (``scipy.sparse.save_npz``); any other .npz holds one array for each column, or a
single (num_edges, 2) array.
"""

from __future__ import annotations

import lzma
import math
import struct
import zipfile
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import IO, Any

import numpy as np

from oocgraph.errors import InputError
from oocgraph.ingest.edges import EdgeBlock, EdgeStream
from oocgraph.ingest.sources.arrays import check_edge_shape
from oocgraph.ingest.sources.columns import choose_columns
from oocgraph.ingest.sources.ids import int_ids, numbers, numpy_column_dtype, row_place
from oocgraph.ingest.sources.npy import read_header
from oocgraph.ingest.sources.rows import rows_of_entries
from oocgraph.ingest.sources.source import (
    MAX_INFLATION,
    Request,
    Source,
    agreed_num_vertices,
    blocks_of,
    choose_values,
    file_bytes,
    reason,
)
from oocgraph.types import Array

SCIPY_FORMATS = ("coo", "csc", "csr")

SMALL_BYTES = 1 << 10
"""More than the arrays "format" and "shape" of a SciPy matrix have."""


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
        self.member, self.file = member, file
        read_header(file, f"{member.path}, array {member.name!r}")

    def read(self, count: int) -> Array:
        """Return the next `count` elements (rows, when two-dimensional)."""
        return self._read((count, *self.member.shape[1:]))

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
        return _open_edge_array(path, next(iter(members.values())), request)
    columns = choose_columns(str(path), list(members), request)
    chosen = [members[name] for name in columns.read]
    for member in chosen:
        if len(member.shape) != 1 or member.shape != chosen[0].shape:
            shapes = f"array {member.name!r} has shape {member.shape} and {chosen[0].name!r} has {chosen[0].shape}"
            raise InputError(f"{path}: {shapes}; both need (num_edges,)")
    num_vertices = agreed_num_vertices(str(path), None, request)

    def block(values: dict[str, Array], low: int) -> EdgeBlock:
        source, target = (int_ids(values[name], row_place(str(path), name, low), num_vertices) for name in (columns.source, columns.target))
        edge = {name: numbers(values[name], row_place(str(path), name, low), weight=name == columns.weight) for name in columns.edge}
        return EdgeBlock(source, target, edge, low)

    def stream(block_rows: int) -> Iterator[EdgeBlock]:
        with _open_readers(chosen) as readers:
            for low, high in blocks_of(0, chosen[0].shape[0], block_rows):
                yield block({name: reader.read(high - low) for name, reader in readers.items()}, low)

    block({member.name: np.empty(0, member.dtype) for member in chosen}, 0)  # refuses dtypes that cannot be ids or columns
    dtypes = {name: numpy_column_dtype(members[name].dtype).name for name in columns.edge}
    return _source(path, stream, chosen[0].shape[0], num_vertices, columns.weight, dtypes)


def _open_edge_array(path: Path, member: _Member, request: Request) -> Source:
    description = f"{path}, array {member.name!r}"
    check_edge_shape(description, member.shape)
    choose_values(description, {}, request)
    if member.fortran:
        raise InputError(f"{description} is in Fortran order, which cannot be streamed; save numpy.ascontiguousarray of it, or a .npy")
    num_vertices = agreed_num_vertices(description, None, request)

    def block(edges: Array, low: int) -> EdgeBlock:
        source, target = (int_ids(edges[:, k], row_place(description, str(k), low), num_vertices) for k in (0, 1))
        return EdgeBlock(source, target, first_row=low)

    def stream(block_rows: int) -> Iterator[EdgeBlock]:
        with _open_readers([member]) as readers:
            for low, high in blocks_of(0, member.shape[0], block_rows):
                yield block(readers[member.name].read(high - low), low)

    block(np.empty((0, 2), member.dtype), 0)  # refuses a dtype that cannot be ids
    return _source(path, stream, member.shape[0], num_vertices, None, {})


def _open_scipy(path: Path, members: dict[str, _Member], request: Request) -> Source:
    """Entries of a COO, CSR or CSC matrix, in stored order."""
    with _open_readers([members["format"], members["shape"]]) as readers:
        stored, shape = (readers[name].read_all().tolist() for name in ("format", "shape"))
    layout = stored.decode() if isinstance(stored, bytes) else str(stored)
    shape = shape if isinstance(shape, list) and all(isinstance(size, int) for size in shape) else []
    if layout not in SCIPY_FORMATS:
        raise InputError(f"{path}: a SciPy matrix in {layout!r} layout; save it as CSR (matrix.tocsr())")
    if len(shape) != 2 or shape[0] != shape[1]:
        raise InputError(f"{path}: the matrix has shape {tuple(shape)}; the adjacency matrix of a graph is square")
    ends = ("row", "col") if layout == "coo" else ("indptr", "indices")
    missing = [name for name in (*ends, "data") if name not in members]
    if missing:
        raise InputError(f"{path}: a SciPy matrix without the array {missing[0]!r}; save it again with scipy.sparse.save_npz")
    lengths = {name: members[name].shape for name in (*ends, "data")}
    if layout != "coo" and members["indptr"].dtype.kind not in "iu":
        raise InputError(f"{path}: array 'indptr' holds {members['indptr'].dtype}, not integers; save the matrix again")
    num_entries, n = math.prod(lengths[ends[1]]), shape[0]
    wanted = {ends[0]: (num_entries if layout == "coo" else n + 1,), ends[1]: (num_entries,), "data": (num_entries,)}
    for name, length in lengths.items():
        if length != wanted[name]:
            raise InputError(f"{path}: array {name!r} has shape {length} where {wanted[name]} is needed; save the matrix again")
    values = {} if members["data"].dtype.kind == "b" else {"weight": numpy_column_dtype(members["data"].dtype).name}
    columns, weight = choose_values(str(path), values, request)
    chosen = [members[name] for name in (*ends, *(["data"] if weight else []))]

    def stream(block_rows: int) -> Iterator[EdgeBlock]:
        with _open_readers(chosen) as readers:
            ranges = (
                _coo_rows(readers, num_entries, block_rows) if layout == "coo" else _csr_rows(path, readers, n, num_entries, block_rows)
            )
            for low, rows, indices in ranges:
                row, column = (int_ids(a, row_place(str(path), name, low), n) for a, name in ((rows, ends[0]), (indices, ends[1])))
                source, target = (column, row) if layout == "csc" else (row, column)
                edge = (
                    {"weight": numbers(readers["data"].read(row.size), row_place(str(path), "weight", low), weight=True)} if weight else {}
                )
                yield EdgeBlock(source, target, edge, low)

    return _source(path, stream, num_entries, agreed_num_vertices(str(path), n, request), weight, columns)


def _coo_rows(readers: dict[str, _Reader], num_entries: int, block_rows: int) -> Iterator[tuple[int, Array, Array]]:
    for low, high in blocks_of(0, num_entries, block_rows):
        yield low, readers["row"].read(high - low), readers["col"].read(high - low)


def _csr_rows(path: Path, readers: dict[str, _Reader], n: int, num_entries: int, block_rows: int) -> Iterator[tuple[int, Array, Array]]:
    """Rows and columns of the entries; the offsets are read beside them, never as a whole."""
    last = readers["indptr"].read(1).astype(np.int64)
    for first, stop in blocks_of(0, n, block_rows):
        indptr = np.concatenate([last, readers["indptr"].read(stop - first)], dtype=np.int64)
        last = indptr[-1:]
        if (np.diff(indptr) < 0).any() or indptr[0] < 0 or last[0] > num_entries:
            raise InputError(f"{path}: array 'indptr' does not ascend from 0 to {num_entries}; save the matrix again")
        for low, high in blocks_of(int(indptr[0]), int(last[0]), block_rows):
            yield low, rows_of_entries(indptr, first, low, high), readers["indices"].read(high - low)


def _source(
    path: Path,
    stream: Callable[[int], Iterator[EdgeBlock]],
    num_rows: int,
    num_vertices: int | None,
    weight: str | None,
    columns: dict[str, str],
) -> Source:
    def streams(block_rows: int) -> list[EdgeStream]:
        return [partial(stream, block_rows)]

    return Source(
        description=str(path),
        id_kind="int64",
        make_streams=streams,
        num_rows=num_rows,
        num_vertices=num_vertices,
        weight=weight,
        columns=columns,
    )


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
                shape, fortran, dtype = read_header(file, f"{path}, array {name!r}")
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
