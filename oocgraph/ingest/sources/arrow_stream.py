"""Streams of Arrow batches: readers, datasets, DuckDB relations, Polars' lazy frames, whatever has ``__arrow_c_stream__``.

Batches come as their producer makes them, one at a time; only the chosen columns of each are read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import pyarrow as pa

from oocgraph.errors import InputError
from oocgraph.ingest.sources.arrow_values import arrow_layout, with_declared_vertices
from oocgraph.ingest.sources.columns import Layout, choose_columns
from oocgraph.ingest.sources.ids import row_place
from oocgraph.ingest.sources.source import Request, reason
from oocgraph.ingest.sources.streamed import Part, StreamedSource, slices
from oocgraph.ingest.sources.table import polars_table
from oocgraph.memory import host_bytes

BATCH_ROWS = 1 << 17
"""Rows of a batch, where its size is ours to choose."""

READ_BUFFER_BYTES = 1 << 20
"""Read-ahead of each column chunk of a Parquet file."""


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
    import pyarrow.dataset as ds

    options: dict[str, Any] = {"batch_size": BATCH_ROWS, "batch_readahead": 1, "fragment_readahead": 1}
    if isinstance(getattr(dataset, "format", None), ds.ParquetFileFormat):  # else whole row groups are read ahead
        options["fragment_scan_options"] = ds.ParquetFragmentScanOptions(
            pre_buffer=False, use_buffered_stream=True, buffer_size=READ_BUFFER_BYTES
        )
    return _opened(description, dataset.schema, lambda names: dataset.to_batches(columns=names, **options), request)


def open_lazy_frame(frame: Any, request: Request) -> StreamedSource:
    """Open a ``polars.LazyFrame``, which its streaming engine collects batch by batch."""
    if not hasattr(frame, "collect_batches"):
        raise InputError("polars LazyFrame: this version of Polars cannot collect it in batches; update Polars, or give frame.collect()")
    description = "polars LazyFrame"
    chosen = choose_columns(description, frame.collect_schema().names(), request).read
    schema = polars_table(frame.select(chosen).limit(0).collect(), description).schema

    def batches(names: list[str]) -> Iterator[Any]:
        for part in frame.select(names).collect_batches(chunk_size=BATCH_ROWS, lazy=True):
            yield from pa.table(part).to_batches()

    return _opened(description, schema, batches, request)


def _opened(description: str, schema: Any, batches: Callable[[list[str]], Iterator[Any]], request: Request) -> StreamedSource:
    columns = choose_columns(description, schema.names, request)
    layout = with_declared_vertices(arrow_layout(description, columns, lambda name: schema.field(name).type, request), schema, request)
    return StreamedSource(layout, lambda: _parts(layout, batches(columns.read)))


def _parts(layout: Layout, batches: Iterator[Any]) -> Iterator[Part]:
    row, number, before = 0, 0, host_bytes()
    while (batch := _next(batches, layout.description, row)) is not None:
        blocks = partial(slices, layout, batch.num_rows, partial(_columns, batch), partial(_place, layout.description, row))
        row, number = row + batch.num_rows, number + 1
        held = min(batch.nbytes, max(0, host_bytes() - before))  # it may be a view of what its owner holds anyway
        del batch
        yield Part(f"batch {number} of {layout.description}", held, blocks)
        del blocks


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
