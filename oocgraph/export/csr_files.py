"""CSR arrays of a stored graph as files: SciPy ``.npz``, GAPBS ``.sg`` and ``.wsg``.

GAPBS ``.sg`` (its ``writer.h``): bool directed; int64 number of stored entries; int64 number of vertices; int64 offsets; int32
neighbours; then offsets and neighbours of the in-lists when directed. In ``.wsg`` an int32 weight follows each neighbour.
"""

from __future__ import annotations

import zipfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import IO, Any

import numpy as np

from oocgraph.errors import OutputError
from oocgraph.export.job import Job
from oocgraph.store.graph import CSRStore
from oocgraph.types import Array

MAX_SG_VERTICES = 2**31 - 1
"""A ``.sg`` file has 32-bit signed neighbours."""

GAPBS = (".sg", ".wsg")
"""Its files without and with weights."""


def check_gapbs(store: CSRStore, path: Path, form: str, column: str | None) -> None:
    """Refuse what GAPBS cannot have: more vertices than int32 numbers, other weights than integers.

    Raises
    ------
    OutputError
        The graph has such.
    """
    if store.attributes.num_input_vertices > MAX_SG_VERTICES:
        raise OutputError(
            f"{path}: {form} holds at most {MAX_SG_VERTICES} vertices, not {store.attributes.num_input_vertices}; use .npz or .parquet"
        )
    if form == ".wsg":
        _check_weights(store, path, column)


def _check_weights(store: CSRStore, path: Path, column: str | None) -> None:
    """Refuse weights that GAPBS cannot have: it has int32."""
    if column is None:
        raise OutputError(f"{path}: .wsg holds weights, and {store.url} has none; write .sg")
    kind = store.array(f"out/{column}").dtype
    if kind.kind not in "iu":
        raise OutputError(f"{path}: .wsg holds integer weights, and {column!r} is {kind}; use .npz or .parquet")


def _pairs(entries: Iterable[tuple[Array, Array | None]], path: Path) -> Iterator[Array]:
    """Put each neighbour and its weight side by side, as int32."""
    for neighbours, weights in entries:
        assert weights is not None
        if weights.size and not -(2**31) <= int(weights.min()) <= int(weights.max()) < 2**31:
            raise OutputError(f".wsg holds 32-bit weights, and there are {weights.min()} to {weights.max()}; use .npz or .parquet")
        yield np.stack([neighbours.astype("<i4"), weights.astype("<i4")], axis=1)


def write_sg(job: Job, file: Path, column: str | None) -> None:
    """Write GAPBS's file."""
    a = job.store.attributes
    groups = ("out", "in") if a.directed else ("out",)
    done = job.counter(len(groups))
    with file.open("wb") as stream:
        for group in groups:
            rows = job.rows(group, column)
            if group == "out":
                stream.write(np.array([a.directed], np.bool_).tobytes())
                stream.write(np.array([a.num_stored_edges, rows.num_rows], "<i8").tobytes())
            _write(stream, rows.offsets())
            entries = rows.entries(done)
            _write(stream, (neighbours.astype("<i4") for neighbours, _ in entries) if column is None else _pairs(entries, file))
            del rows  # one group's positions at a time


def write_npz(job: Job, file: Path, column: str | None) -> None:
    """Write the members that `scipy.sparse.save_npz` writes, each as a stream."""
    a, rows = job.store.attributes, job.rows("out", column)
    kind = np.dtype("<i4" if max(rows.num_rows, a.num_stored_edges) < 2**31 else "<i8")
    data = np.dtype(np.float32) if column is None else job.store.array(f"out/{column}").dtype
    values_file = file.with_name("values")
    with zipfile.ZipFile(file, "w", zipfile.ZIP_STORED, allowZip64=True) as archive:
        _member(archive, "format", np.dtype("S3"), (), [np.array(b"csr")])
        _member(archive, "_is_array", np.dtype(bool), (), [np.array(True)])
        _member(archive, "shape", np.dtype("<i8"), (2,), [np.array([rows.num_rows] * 2, np.int64)])
        _member(archive, "indptr", kind, (rows.num_rows + 1,), rows.offsets())
        with values_file.open("w+b") as values:
            _member(archive, "indices", kind, (a.num_stored_edges,), _saving_values(rows.entries(job.counter()), values))
            values.seek(0)
            _member(archive, "data", data, (a.num_stored_edges,), _values(values, data, a.num_stored_edges, ones=column is None))
    values_file.unlink()


def _saving_values(entries: Iterable[tuple[Array, Array | None]], values: IO[bytes]) -> Iterator[Array]:
    """Pass the neighbours on and put the values aside: a zip takes one member at a time."""
    for neighbours, data in entries:
        if data is not None:
            values.write(np.ascontiguousarray(data).data.cast("B"))
        yield neighbours


def _values(values: IO[bytes], dtype: np.dtype[Any], count: int, *, ones: bool) -> Iterator[Array]:
    block = 1 << 20
    for start in range(0, count, block):
        size = min(block, count - start)
        yield np.ones(size, dtype) if ones else np.frombuffer(values.read(size * dtype.itemsize), dtype)


def _member(archive: zipfile.ZipFile, name: str, dtype: np.dtype[Any], shape: tuple[int, ...], blocks: Iterable[Array]) -> None:
    """Write one .npy member from blocks."""
    header = {"descr": np.lib.format.dtype_to_descr(dtype), "fortran_order": False, "shape": shape}
    with archive.open(f"{name}.npy", "w", force_zip64=True) as stream:
        np.lib.format.write_array_header_1_0(stream, header)
        _write(stream, (block.astype(dtype, copy=False) for block in blocks))


def _write(stream: IO[bytes], blocks: Iterable[Array]) -> None:
    for block in blocks:
        if block.size:
            stream.write(np.ascontiguousarray(block).reshape(-1).view(np.uint8).data)
