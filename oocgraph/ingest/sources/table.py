"""Tables in memory: pyarrow, pandas, and whatever else speaks Arrow's C interface (Polars, DuckDB)."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import pyarrow as pa

from oocgraph.errors import InputError
from oocgraph.ingest.edges import EdgeBlock, EdgeStream
from oocgraph.ingest.sources.arrow_values import arrow_column, arrow_ids, column_dtype, common_id_kind
from oocgraph.ingest.sources.columns import choose_columns
from oocgraph.ingest.sources.ids import row_place
from oocgraph.ingest.sources.source import Request, Source, agreed_num_vertices, blocks_of, split_rows


def open_pandas(frame: Any, request: Request) -> Source:
    """Open a pandas.DataFrame; its index is not read."""
    description = "pandas DataFrame"
    names = [str(name) for name in frame.columns]
    columns = choose_columns(description, names, request)
    arrays = {}
    for name in columns.read:
        try:
            arrays[name] = pa.array(frame.iloc[:, names.index(name)], from_pandas=True)
        except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError, OverflowError, TypeError) as error:
            raise InputError(f"{description}, column {name!r}: neither all numbers nor all strings ({error}); convert it") from error
    table = pa.table(arrays)
    return open_table(table, request, description)


def open_table(table: Any, request: Request, description: str = "pyarrow Table") -> Source:
    """Open a pyarrow.Table."""
    columns = choose_columns(description, table.column_names, request)
    types = {name: table.schema.field(name).type for name in columns.read}
    kind = common_id_kind(description, *((name, types[name]) for name in (columns.source, columns.target)))
    dtypes = {name: column_dtype(types[name], description, name, weight=name == columns.weight) for name in columns.edge}
    num_vertices = agreed_num_vertices(description, None, request)
    table = table.select(columns.read)

    def stream(start: int, stop: int, block_rows: int) -> Iterator[EdgeBlock]:
        for low, high in blocks_of(start, stop, block_rows):
            part = table.slice(low, high - low)
            block = {name: _one_array(part.column(name)) for name in columns.read}
            source, target = (
                arrow_ids(block[name], kind, row_place(description, name, low), num_vertices) for name in (columns.source, columns.target)
            )
            values = {
                name: arrow_column(block[name], dtype, row_place(description, name, low), weight=name == columns.weight)
                for name, dtype in dtypes.items()
            }
            yield EdgeBlock(source, target, values, low)

    def streams(block_rows: int) -> list[EdgeStream]:
        return [partial(stream, low, high, block_rows) for low, high in split_rows(table.num_rows, block_rows)]

    return Source(
        description=description,
        id_kind=kind,
        make_streams=streams,
        num_rows=table.num_rows,
        num_vertices=num_vertices,
        weight=columns.weight,
        columns=dtypes,
    )


def _one_array(column: Any) -> Any:
    if column.num_chunks == 1:
        return column.chunk(0)
    # combine_chunks may keep dictionaries apart, which one array cannot hold
    return column.unify_dictionaries().combine_chunks() if pa.types.is_dictionary(column.type) else column.combine_chunks()
