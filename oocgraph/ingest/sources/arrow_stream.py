"""Streams of Arrow batches: readers, datasets, DuckDB relations, Polars' lazy frames, whatever has ``__arrow_c_stream__``.

Batches come as their producer makes them, one at a time; only the chosen columns of each are read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pyarrow.types as kinds
from pyarrow.fs import LocalFileSystem

from oocgraph.errors import InputError
from oocgraph.ingest.sources.arrow_values import arrow_layout, with_declared_vertices
from oocgraph.ingest.sources.columns import Layout, choose_columns
from oocgraph.ingest.sources.ids import row_place
from oocgraph.ingest.sources.parquet import LEAST_ROWS, MAX_BLOCK_ROWS, READ_BUFFER_BYTES, TEXT_BYTES, TEXT_ROWS
from oocgraph.ingest.sources.parquet_pages import reader_bytes
from oocgraph.ingest.sources.source import Request, reason
from oocgraph.ingest.sources.streamed import Part, StreamedSource, slices
from oocgraph.ingest.sources.table import polars_table
from oocgraph.memory import host_bytes

BATCH_ROWS = 1 << 17
"""Rows of a batch, where its size is ours to choose."""

GATHERED_BYTES = 1 << 20
"""Bytes of small batches that are put together."""

SCAN = {"batch_size": BATCH_ROWS, "batch_readahead": 1, "fragment_readahead": 1}
"""How Arrow's scanner reads."""


def open_stream(source: Any, request: Request) -> StreamedSource:
    """Open an object with ``__arrow_c_stream__``."""
    description = type(source).__name__
    try:
        reader = source if isinstance(source, pa.RecordBatchReader) else pa.RecordBatchReader.from_stream(source)
    except Exception as error:  # of any library, and whatever it runs to make the stream
        raise InputError(f"{description}: no stream of Arrow record batches ({reason(error)}); give a table or a stream of them") from error
    return _opened(description, reader.schema, lambda _: reader, request)


def open_dataset(dataset: Any, request: Request, description: str = "pyarrow Dataset") -> StreamedSource:
    """Open a ``pyarrow.dataset.Dataset``, of any format and file system that Arrow reads."""
    return _opened(description, dataset.schema, lambda names: _scanned(dataset, names), request, partial(_reader_bytes, dataset))


def _reader_bytes(dataset: Any, names: list[str]) -> int:
    """Return what a reader of some columns holds of the files of a dataset that are read page by page, as far as they are local."""
    import pyarrow.dataset as ds

    files = []
    for fragment in () if getattr(dataset, "_scan_options", None) else dataset.get_fragments():
        if isinstance(fragment, ds.ParquetFileFragment) and isinstance(fragment.filesystem, LocalFileSystem):
            with suppress(pa.ArrowException, OSError):  # reading it says what is wrong
                if _has_all(fragment, dataset.schema, names):
                    files.append((Path(fragment.path), fragment.metadata))
    return reader_bytes(files, names)


def _scanned(dataset: Any, names: list[str]) -> Iterator[Any]:
    """Yield the batches of a dataset; of Parquet page by page where all is in the files, for Arrow's scanner holds whole row groups."""
    import pyarrow.dataset as ds

    if getattr(dataset, "_scan_options", None):  # a filter
        yield from dataset.to_batches(columns=names, **SCAN)
        return
    wanted = pa.schema([dataset.schema.field(name) for name in names])
    for fragment in dataset.get_fragments():
        if isinstance(fragment, ds.ParquetFileFragment) and _has_all(fragment, dataset.schema, names):
            with fragment.open() as file:
                reader = pq.ParquetFile(file, metadata=fragment.metadata, pre_buffer=False, buffer_size=READ_BUFFER_BYTES)
                for group in fragment.row_groups:
                    for batch in reader.iter_batches(_batch_rows(group, dataset.schema, names), row_groups=[group.id], columns=names):
                        yield pa.RecordBatch.from_arrays([batch.column(name) for name in names], schema=wanted)  # in a file's own order
        else:
            yield from fragment.to_batches(schema=dataset.schema, columns=names, **SCAN)


def _has_all(fragment: Any, schema: Any, names: list[str]) -> bool:
    """Whether a file has some columns as its dataset has them, none by the name of a folder."""
    import pyarrow.dataset as ds

    own, by_folder = fragment.physical_schema, ds.get_partition_keys(fragment.partition_expression)
    places = [own.get_field_index(name) for name in names]  # -1: none, or several
    return all(
        at >= 0 and own.field(at).type == schema.field(name).type and name not in by_folder for at, name in zip(places, names, strict=True)
    )


def _batch_rows(group: Any, schema: Any, names: list[str]) -> int:
    """Return the rows of a row group that are read at once: `TEXT_ROWS` of strings, fewer where they are long."""
    is_text = any(not pa.types.is_primitive(schema.field(name).type) for name in names)
    return max(LEAST_ROWS, min(TEXT_ROWS if is_text else BATCH_ROWS, int(TEXT_BYTES * group.num_rows / max(1, group.total_byte_size))))


def open_lazy_frame(frame: Any, request: Request) -> StreamedSource:
    """Open a ``polars.LazyFrame``, which its streaming engine collects batch by batch."""
    if not hasattr(frame, "collect_batches"):
        raise InputError("polars LazyFrame: this version of Polars cannot collect it in batches; update Polars, or give frame.collect()")
    description = "polars LazyFrame"
    chosen = choose_columns(description, frame.collect_schema().names(), request).read
    schema = polars_table(frame.select(chosen).limit(0).collect(), description).schema

    def batches(names: list[str]) -> Iterator[Any]:
        for part in frame.select(names).collect_batches(chunk_size=BATCH_ROWS, lazy=True):
            yield from polars_table(part, description).to_batches()

    return _opened(description, schema, batches, request)


def _opened(
    description: str, schema: Any, batches: Callable[[list[str]], Iterator[Any]], request: Request,
    producer_bytes: Callable[[list[str]], int] = lambda _: 0,
) -> StreamedSource:  # fmt: skip
    columns = choose_columns(description, schema.names, request)
    layout = with_declared_vertices(arrow_layout(description, columns, lambda name: schema.field(name).type, request), schema, request)
    return StreamedSource(layout, lambda: _parts(layout, batches(columns.read)), producer_bytes(columns.read))


def _parts(layout: Layout, batches: Iterator[Any]) -> Iterator[Part]:
    row, number, before, gathered = 0, 0, host_bytes(), _gathered(batches, layout.description)
    while (taken := next(gathered, None)) is not None:
        num_bytes = sum(map(_bytes_of, taken))
        batch = taken[0] if len(taken) == 1 else pa.Table.from_batches(taken).combine_chunks().to_batches()[0]
        blocks = partial(slices, layout, batch.num_rows, partial(_columns, batch), partial(_place, layout.description, row))
        name = f"batch {number + 1} of {layout.description}"
        row, number = row + batch.num_rows, number + len(taken)
        held = min(num_bytes, max(0, host_bytes() - before))  # it may be a view of what its owner holds anyway
        del batch, taken
        yield Part(name, held, blocks)
        del blocks


def _gathered(batches: Iterator[Any], description: str) -> Iterator[list[Any]]:
    """Yield batches that have rows, small ones of usual types together: each takes 0.3 ms, however small it is."""
    taken, row, num_rows, num_bytes = list[Any](), 0, 0, 0
    while (batch := _next(batches, description, row)) is not None:
        row, is_small = row + batch.num_rows, _bytes_of(batch) < GATHERED_BYTES and all(map(_is_usual, batch.schema.types))
        if taken and not is_small:
            yield taken
            taken, num_rows, num_bytes = [], 0, 0
        if batch.num_rows:
            taken.append(batch)
            num_rows, num_bytes = num_rows + batch.num_rows, num_bytes + _bytes_of(batch)
        del batch
        if taken and (not is_small or num_rows >= MAX_BLOCK_ROWS or num_bytes >= GATHERED_BYTES):
            yield taken
            taken, num_rows, num_bytes = [], 0, 0
    if taken:
        yield taken


def _bytes_of(batch: Any) -> int:
    """Return what the rows of a batch take, or its buffers where this version of Arrow does not know (16, of string views)."""
    try:
        return int(batch.nbytes)
    except pa.ArrowTypeError:
        return int(batch.get_total_buffer_size())


def _is_usual(kind: Any) -> bool:
    return bool(kinds.is_primitive(kind) or kinds.is_string(kind) or kinds.is_large_string(kind))


def _next(batches: Iterator[Any], description: str, row: int) -> Any:
    try:
        return next(batches, None)
    except Exception as error:  # whatever its producer raises
        raise InputError(f"{description}, row {row} or after: the stream broke off ({reason(error)}); mend that and start again") from error


def _columns(batch: Any, low: int, high: int) -> Callable[[str], Any]:
    column: Callable[[str], Any] = batch.slice(low, high - low).column
    return column


def _place(description: str, first_row: int, name: str, low: int) -> Any:
    return row_place(description, name, first_row + low)
