"""GAPBS serialized graphs (.sg, and .wsg with int32 weights): a CSR in one binary file, read by ranges.

Layout (GAPBS ``writer.h``): bool directed; int64 number of stored edges; int64 number of vertices; int64 offsets (n + 1);
int32 neighbours; when directed the same two arrays again for in-edges. An undirected graph stores each edge in both lists; it
is given once, from its smaller end.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import IO, Any

import numpy as np

from oocgraph.errors import InputError
from oocgraph.ingest.edges import EdgeBlock, EdgeStream
from oocgraph.ingest.sources.ids import Place, int_ids
from oocgraph.ingest.sources.rows import rows_of_entries
from oocgraph.ingest.sources.source import Request, Source, agreed_num_vertices, blocks_of, choose_values, file_bytes, open_file, split_rows
from oocgraph.types import Array

HEADER_BYTES = 17
NEIGHBOUR = np.dtype("<i4")
WEIGHTED_NEIGHBOUR = np.dtype([("vertex", "<i4"), ("weight", "<i4")])


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
    columns, weight = choose_values(str(path), {"weight": "int32"} if entry == WEIGHTED_NEIGHBOUR else {}, request)

    def streams(block_rows: int) -> list[EdgeStream]:
        ranges = [(0, n)] if num_stored <= block_rows else split_rows(n, 1)
        return [partial(_rows, path, (n, num_stored), low, high, entry, block_rows, directed=directed) for low, high in ranges]

    return Source(
        description=str(path),
        id_kind="int64",
        make_streams=streams,
        num_rows=num_stored if directed else None,
        num_vertices=agreed_num_vertices(str(path), n, request),
        directed=directed,
        weight=weight,
        columns=columns,
    )


def _rows(
    path: Path, sizes: tuple[int, int], start: int, stop: int, entry: np.dtype[Any], block_rows: int, *, directed: bool
) -> Iterator[EdgeBlock]:
    """Give the edges of the rows ``start .. stop``; offsets and neighbours are read a block at a time."""
    n, num_stored = sizes
    neighbours_at = HEADER_BYTES + 8 * (n + 1)
    with open_file(path) as file:
        for first, last in blocks_of(start, stop, block_rows):
            indptr = _read(file, path, HEADER_BYTES + 8 * first, np.dtype("<i8"), last - first + 1)
            if (np.diff(indptr) < 0).any() or indptr[0] < 0 or indptr[-1] > num_stored:
                raise InputError(f"{path}: the offsets of vertices {first} to {last} do not ascend to {num_stored}; write it again")
            for low, high in blocks_of(int(indptr[0]), int(indptr[-1]), block_rows):
                entries = _read(file, path, neighbours_at + entry.itemsize * low, entry, high - low)
                yield _block(path, entries, rows_of_entries(indptr, first, low, high), low, n, directed=directed)


def _block(path: Path, entries: Array, source: Array, low: int, n: int, *, directed: bool) -> EdgeBlock:
    place = Place(str(path), "target", lambda position: f"stored edge {low + position} (counted from 0)")
    weighted = entries.dtype == WEIGHTED_NEIGHBOUR
    target = int_ids(entries["vertex"] if weighted else entries, place, n)
    columns = {"weight": np.ascontiguousarray(entries["weight"])} if weighted else {}
    if not directed:
        once = source <= target
        source, target = source[once], target[once]
        columns = {name: values[once] for name, values in columns.items()}
    return EdgeBlock(source, target, columns, low)


def _read(file: IO[bytes], path: Path, offset: int, dtype: np.dtype[Any], count: int) -> Array:
    file.seek(offset)
    array = np.empty(count, dtype)
    if file.readinto(array.view(np.uint8)) != array.nbytes:  # type: ignore[attr-defined]
        raise InputError(f"{path} ended at byte {file.tell()} while it was read; was it changed? Write it again")
    return array
