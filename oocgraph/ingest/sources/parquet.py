"""Parquet: one file, a folder, or several files, read page by page.

The row group is the writer's unit and may hold the whole graph, so it is never read at once: ``pre_buffer=False`` with a
`buffer_size` makes Arrow stream the pages of each column chunk. Without them a row group of 268 M edges takes 2 GB.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pyarrow.types as kinds

from oocgraph.allocator import release_arrow
from oocgraph.errors import InputError
from oocgraph.ingest.edges import EdgeBlock, EdgeStream
from oocgraph.ingest.sources.arrow_values import arrow_layout, with_declared_vertices
from oocgraph.ingest.sources.columns import Layout, choose_columns
from oocgraph.ingest.sources.ids import MAX_ID, row_place
from oocgraph.ingest.sources.parquet_pages import longest_text_bytes, reader_bytes, text_bytes
from oocgraph.ingest.sources.source import MAX_STREAMS, Request, Source, file_bytes, reading, reason

READ_BUFFER_BYTES, FEW_COLUMNS = 1 << 20, 8
"""Read-ahead of each column chunk, a quarter of it where there are more columns; 256 KiB to 4 MiB stream equally fast here."""

MAX_BLOCK_ROWS = 1 << 16
"""Blocks are no larger than this: of 2**18 rows most is fresh memory that the kernel must clear first (67 M edges of int32 ids: 0.48 s of
processor time in three threads, 0.21 s with 2**16)."""

TEXT_ROWS, TEXT_READS = 1 << 11, 32
"""Rows of strings that are read at once, for any of them may be long, or this share of a block, if that is more: blocks are large where
there is memory (10 M edges with 4 GB: 1.1 x the time without it)."""

TEXT_BYTES, ROW_TEXT = 2 << 20, 64
"""Bytes of such reads that are put together as a block, and for each of its rows."""

LEAST_ROWS, TEXT_COPIES = 16, 4
"""Rows of the longest strings that are read at once, and how often they are held: as read, as a block, and by threads that sort them."""

RELEASED_BYTES = 8 << 20
"""Bytes of strings after which Arrow's allocator gives back what it keeps of their buffers, of which each batch takes others."""

_DAMAGED = (pa.ArrowException, OSError, UnicodeDecodeError)
"""What Arrow raises where a file is damaged; in some footers it ends the process instead (`_statistics`)."""


@dataclass(frozen=True, slots=True)
class _File:
    path: Path
    metadata: Any
    first_row: int


def open_parquet(paths: Path | Sequence[Path], request: Request, description: str = "") -> Source:
    """Open a Parquet file, or several, in the order of `paths`, as one edge list; `description` names them together."""
    files, first_row = [], 0
    for path in [paths] if isinstance(paths, Path) else paths:
        with _open(path, None) as file:
            files.append(_File(path, file.metadata, first_row))
            first_row += file.metadata.num_rows
    leading = next((file for file in files if file.metadata.num_rows), files[0])
    layout = _describe(leading, request)
    for file in files:
        if file.metadata.num_rows:
            _check_agreement(file, _describe(file, request), leading, layout)
    together = replace(layout, description=description or layout.description)
    return together.open(
        lambda block_rows: _streams(files, together, block_rows),
        first_row,
        id_bounds=_id_bounds(files, layout),
        readers=(
            sum(file.metadata.num_row_groups for file in files),
            _held_bytes([(file.path, file.metadata) for file in files], layout),
        ),
    )


def _held_bytes(files: Sequence[tuple[Path, Any]], layout: Layout) -> int:
    """Return what one reader holds beside blocks of usual strings."""
    ends = [layout.columns.source, layout.columns.target] if layout.kind == "string" else []
    text = LEAST_ROWS * longest_text_bytes(files, ends, TEXT_BYTES)
    return reader_bytes(files, layout.columns.read) + TEXT_COPIES * max(0, int(text) - TEXT_BYTES)


def _open(path: Path, metadata: Any, num_columns: int = 0) -> Any:
    file_bytes(path)
    buffer_bytes = READ_BUFFER_BYTES if num_columns <= FEW_COLUMNS else READ_BUFFER_BYTES // 4
    try:
        with reading(path):
            return pq.ParquetFile(path, metadata=metadata, pre_buffer=False, buffer_size=buffer_bytes)
    except UnicodeEncodeError as error:
        raise InputError(f"{path}: the name is not UTF-8, and Arrow opens no other Parquet files; rename it") from error
    except _DAMAGED as error:
        raise InputError(f"{path} is not a Parquet file, or it is truncated ({reason(error)}); write it again") from error


def _describe(file: _File, request: Request) -> Layout:
    """Choose the columns of one file and check their types."""
    path = str(file.path)
    try:
        schema = file.metadata.schema.to_arrow_schema()
    except _DAMAGED as error:
        raise InputError(f"{path}: its schema cannot be read ({reason(error)}); write the file again") from error
    columns = choose_columns(path, schema.names, request)
    return with_declared_vertices(arrow_layout(path, columns, lambda name: schema.field(name).type, request), schema, request)


def _check_agreement(file: _File, layout: Layout, leading: _File, expected: Layout) -> None:
    for what in ("columns", "kind", "dtypes", "num_vertices"):
        found, wanted = getattr(layout, what), getattr(expected, what)
        if found != wanted:
            agree = "must agree; say what columns are to be (dtypes)" if what == "dtypes" else "must agree"
            raise InputError(f"{file.path} and {leading.path} differ in {what}: {found} and {wanted}; files read together {agree}")


def _id_bounds(files: Sequence[_File], layout: Layout) -> tuple[int, int] | None:
    """Smallest and largest id by the statistics, or None when a row group lacks them or holds what is no id."""
    if layout.kind != "int64":
        return None
    low, high = MAX_ID, 0
    for file in files:
        schema = file.metadata.schema
        names = [schema.column(i).path for i in range(len(schema))]
        arrow = schema.to_arrow_schema()
        for name in (layout.columns.source, layout.columns.target):
            if file.metadata.num_rows and not kinds.is_integer(arrow.field(name).type):
                return None
            for group in range(file.metadata.num_row_groups if file.metadata.num_rows else 0):
                statistics = _statistics(file, group, names.index(name))
                if file.metadata.row_group(group).num_rows == 0:
                    continue
                if statistics is None or not statistics.has_min_max:
                    return None
                low, high = min(low, statistics.min), max(high, statistics.max)
    return (low, high) if 0 <= low <= high <= MAX_ID else None


def _statistics(file: _File, group: int, column: int) -> Any:
    """Statistics of a column of a row group, or None."""
    stored, declared = file.metadata.row_group(group).column(column), file.metadata.schema.column(column)
    if stored.physical_type != declared.physical_type:  # Arrow ends the process when it is asked for these statistics
        raise InputError(
            f"{file.path} is damaged: row group {group} says that {declared.name!r} is {stored.physical_type}, the schema "
            f"{declared.physical_type}; write the file again"
        )
    return stored.statistics


def _streams(files: Sequence[_File], layout: Layout, block_rows: int) -> list[EdgeStream]:
    """One stream for each run of row groups that is worth a thread's while."""
    total = sum(file.metadata.num_rows for file in files)
    worthwhile = max(block_rows, -(-total // MAX_STREAMS))
    parts: list[tuple[_File, list[int], int]] = []
    for file in files:
        groups: list[int] = []
        start = row = 0
        for group in range(file.metadata.num_row_groups):
            groups.append(group)
            row += file.metadata.row_group(group).num_rows
            if row - start >= worthwhile:
                parts.append((file, groups, start))
                groups, start = [], row
        if row > start:
            parts.append((file, groups, start))
    # One part alone may use all cores: Arrow decodes its columns in parallel.
    return [partial(_read, *part, layout, block_rows=block_rows, use_threads=len(parts) == 1) for part in parts]


def _read(file: _File, groups: list[int], start: int, layout: Layout, *, block_rows: int, use_threads: bool) -> Iterator[EdgeBlock]:
    rows, row, freed = min(block_rows, MAX_BLOCK_ROWS), start, 0
    try:
        with _open(file.path, file.metadata, len(layout.columns.read)) as reader:
            batches = reader.iter_batches(
                min(rows, _text_rows(file, groups, layout, block_rows)) if layout.kind == "string" else rows,
                row_groups=groups,
                columns=layout.columns.read,
                use_threads=use_threads,
            )
            while taken := _taken(file, batches, row, rows):
                yield layout.block(partial(_column, taken), file.first_row + row, partial(row_place, str(file.path), first_row=row))
                row, freed = row + sum(batch.num_rows for batch in taken), freed + sum(batch.nbytes for batch in taken)
                del taken
                if layout.kind == "string" and freed >= RELEASED_BYTES:
                    release_arrow()
                    freed = 0
    finally:
        release_arrow()


def _taken(file: _File, batches: Iterator[Any], row: int, most_rows: int) -> list[Any]:
    """Take the next batches, which begin at a row; none at the end."""
    try:
        return _together(batches, most_rows)
    except _DAMAGED as error:
        raise InputError(f"{file.path}, row {row} or after: cannot be decoded ({reason(error)}); write the file again") from error


def _text_rows(file: _File, groups: list[int], layout: Layout, block_rows: int) -> int:
    """Return the rows of strings that are read at once for blocks of so many: fewer where the pages say that they are long."""
    groups_bytes = [file.metadata.row_group(group) for group in groups]
    row_bytes = max(
        text_bytes(file.path, file.metadata, groups, [layout.columns.source, layout.columns.target], TEXT_BYTES),
        *(group.total_byte_size / max(1, group.num_rows) for group in groups_bytes),
    )
    most_bytes = max(TEXT_BYTES, ROW_TEXT * min(block_rows, MAX_BLOCK_ROWS))
    return min(max(TEXT_ROWS, block_rows // TEXT_READS), max(LEAST_ROWS, int(most_bytes / max(1, row_bytes))))


def _together(batches: Iterator[Any], most_rows: int) -> list[Any]:
    """Take the next batches, of at most so many rows, as long as they are not too many bytes."""
    taken, num_rows, num_bytes = [], 0, 0
    for batch in batches:
        taken.append(batch)
        num_rows, num_bytes = num_rows + batch.num_rows, num_bytes + batch.nbytes
        if num_rows + batch.num_rows > most_rows or num_bytes >= max(TEXT_BYTES, ROW_TEXT * most_rows):
            break
    return taken


def _column(batches: list[Any], name: str) -> Any:
    """Return a column of some batches."""
    return batches[0].column(name) if len(batches) == 1 else pa.concat_arrays([batch.column(name) for batch in batches])
