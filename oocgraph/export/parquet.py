"""The edges of a store as one Parquet file: source, target and the edge columns, under the user's ids.

In: a store. Out: rows in store order of their sources; an undirected edge once. Ids of all vertices are held (8 bytes each, or
the strings); threads turn blocks of edges into tables, one thread writes.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from oocgraph.arrow import NUM_VERTICES_KEY, from_numbers
from oocgraph.errors import OutputError
from oocgraph.external_sort.workers import Workers
from oocgraph.memory import Budget
from oocgraph.store.arrays import decoded_bytes
from oocgraph.store.columns import IntColumn, StringColumn, id_bytes
from oocgraph.store.graph import CSRStore
from oocgraph.store.layout import VERTEX_ID, string_arrays
from oocgraph.store.rows import BLOCK_ROWS, RowBlock, row_blocks

BLOCK_ENTRIES = 1 << 20
"""Stored entries of one table: a row group."""

ENTRY_BYTES = 96
"""Bytes of an entry on its way beside ids and columns: row, neighbour, what is kept, encoded pages."""

WRITER_BYTES = 12 << 20
"""What Arrow's writer holds beside tables."""

MIN_BLOCK_ENTRIES = 1 << 14


def write_parquet(store: CSRStore, file: Path, *, budget: Budget, workers: Workers, done: Callable[[int], None]) -> None:
    """Write all edges to `file`.

    Raises
    ------
    OutputError
        An edge column is called source or target.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    a = store.attributes
    if clash := {"source", "target"} & set(a.columns):
        raise OutputError(f"the edge column {clash.pop()!r} has the name of a column of ids; export to .npz, or rename it at the build")
    ids = _read_ids(store)
    categories = {name: StringColumn(store, f"columns/{name}") for name, kind in a.columns.items() if kind == "string"}
    texts = {name: column.read(0, column.length) for name, column in categories.items()}
    schema = pa.schema([("source", ids.type), ("target", ids.type), *((name, _column_type(store, name, texts)) for name in a.columns)])
    if a.implied_ids is not None and a.implied_ids[0] == 0:  # so that a build from this file has the isolated vertices too
        schema = schema.with_metadata({NUM_VERTICES_KEY: str(a.implied_ids[1])})

    def table(block: RowBlock) -> Any:
        rows, neighbours = block.rows(), store.array("out/indices").read(block.start, block.stop)
        kept = slice(None) if a.directed else rows <= neighbours
        columns = [ids.take(from_numbers(rows[kept])), ids.take(from_numbers(neighbours[kept]))]
        for name in a.columns:
            values = from_numbers(store.array(f"out/{name}").read(block.start, block.stop)[kept])
            columns.append(pa.DictionaryArray.from_arrays(values, texts[name]) if name in texts else values)
        return block.num_entries, pa.Table.from_arrays(columns, schema=schema)

    block = min(BLOCK_ENTRIES, MIN_BLOCK_ENTRIES + budget.available_bytes // _copies(workers.num_threads) // _entry_bytes(store))
    options = {"compression": "zstd", "compression_level": 1, "use_dictionary": list(texts) or False, "write_statistics": True}
    with pq.ParquetWriter(str(file), schema, **options) as writer:
        for num_entries, part in workers.ordered(table, row_blocks(store, "out", max_entries=block, whole_rows=False)):
            if part.num_rows:
                writer.write_table(part, row_group_size=part.num_rows)
            done(num_entries)


def charge_parquet(store: CSRStore, *, budget: Budget, num_threads: int) -> None:
    """Reserve what `write_parquet` holds at the least; what it imports is loaded by then.

    Raises
    ------
    BudgetError
        It does not fit.
    """
    a = store.attributes
    texts = [f"columns/{name}" for name, kind in a.columns.items() if kind == "string"]
    budget.reserve("ids of all vertices", _id_bytes(store) + sum(2 * _string_bytes(store, name) for name in texts))
    chunks = sum(decoded_bytes(store.array(f"out/{name}")) for name in ("indices", "indptr", *a.columns))
    budget.reserve("row starts", 3 * 8 * BLOCK_ROWS)
    budget.reserve("tables", WRITER_BYTES + _copies(num_threads) * (MIN_BLOCK_ENTRIES * _entry_bytes(store) + chunks))


def _copies(num_threads: int) -> int:
    """Blocks that are held at once."""
    return num_threads + 2


def _entry_bytes(store: CSRStore) -> int:
    """Bytes of an entry on its way: both ids and the columns as taken and as encoded."""
    columns = sum(store.array(f"out/{name}").dtype.itemsize for name in store.attributes.columns)
    return ENTRY_BYTES + 4 * (id_bytes(store, VERTEX_ID) + columns)


def _string_bytes(store: CSRStore, name: str) -> int:
    data, offsets = string_arrays(name)
    return store.array(data).length + 8 * store.array(offsets).length


def _id_bytes(store: CSRStore) -> int:
    if store.attributes.id_kind == "int64":
        return 8 * store.num_rows
    return 2 * _string_bytes(store, VERTEX_ID)


def _read_ids(store: CSRStore) -> Any:
    column = IntColumn(store, VERTEX_ID) if store.attributes.id_kind == "int64" else StringColumn(store, VERTEX_ID)
    ids = column.read(0, column.length)
    return from_numbers(ids) if isinstance(ids, np.ndarray) else ids


def _column_type(store: CSRStore, name: str, texts: dict[str, Any]) -> Any:
    import pyarrow as pa

    dtype = store.array(f"out/{name}").dtype
    return pa.dictionary(pa.from_numpy_dtype(dtype), pa.large_string()) if name in texts else pa.from_numpy_dtype(dtype)
