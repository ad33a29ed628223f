"""The edges of a store as one Parquet file: source, target and the edge columns, under the user's ids.

In: a store. Out: rows in store order of their sources; an undirected edge once. Ids of all vertices are held (8 bytes each, or
the strings); threads turn blocks of edges into tables, one thread writes.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from oocgraph.errors import OutputError
from oocgraph.ingest.workers import Workers
from oocgraph.memory import Budget
from oocgraph.store.columns import IntColumn, StringColumn
from oocgraph.store.graph import CSRStore
from oocgraph.store.layout import VERTEX_ID, string_arrays
from oocgraph.store.rows import RowBlock, row_blocks

BLOCK_ENTRIES = 1 << 20
"""Stored entries of one table: a row group."""

ENTRY_BYTES = 96
"""Bytes of an entry on its way: row, neighbour, both ids, the table and its encoded pages."""

MIN_BLOCK_ENTRIES = 1 << 14


def write_parquet(store: CSRStore, file: Path, *, budget: Budget, workers: Workers, done: Callable[[int], None]) -> None:
    """Write all edges to `file`.

    Raises
    ------
    OutputError
        An edge column is called source or target.
    BudgetError
        The ids of all vertices do not fit.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    a = store.attributes
    if clash := {"source", "target"} & set(a.columns):
        raise OutputError(f"the edge column {clash.pop()!r} has the name of a column of ids; export to .npz, or rename it at the build")
    budget.reserve("ids of all vertices", _id_bytes(store))
    ids = pa.array(_read_ids(store))
    categories = {name: StringColumn(store, f"columns/{name}") for name, kind in a.columns.items() if kind == "string"}
    texts = {name: column.read(0, column.length) for name, column in categories.items()}
    schema = pa.schema([("source", ids.type), ("target", ids.type), *((name, _column_type(store, name, texts)) for name in a.columns)])
    if a.implied_ids is not None and a.implied_ids[0] == 0:  # so that a build from this file has the isolated vertices too
        schema = schema.with_metadata({"oocgraph.num_vertices": str(a.implied_ids[1])})

    def table(block: RowBlock) -> Any:
        rows, neighbours = block.rows(), store.array("out/indices").read(block.start, block.stop)
        kept = slice(None) if a.directed else rows <= neighbours
        columns = [ids.take(pa.array(rows[kept])), ids.take(pa.array(neighbours[kept]))]
        for name in a.columns:
            values = pa.array(store.array(f"out/{name}").read(block.start, block.stop)[kept])
            columns.append(pa.DictionaryArray.from_arrays(values, texts[name]) if name in texts else values)
        return block.num_entries, pa.table(columns, schema=schema)

    copies = workers.num_threads + 2
    budget.reserve("tables", copies * MIN_BLOCK_ENTRIES * ENTRY_BYTES)
    block = min(BLOCK_ENTRIES, MIN_BLOCK_ENTRIES + budget.available_bytes // (copies * ENTRY_BYTES))
    options = {"compression": "zstd", "compression_level": 1, "use_dictionary": list(texts) or False, "write_statistics": True}
    with pq.ParquetWriter(str(file), schema, **options) as writer:
        for num_entries, part in workers.ordered(table, row_blocks(store, "out", max_entries=block, whole_rows=False)):
            if part.num_rows:
                writer.write_table(part, row_group_size=part.num_rows)
            done(num_entries)


def _id_bytes(store: CSRStore) -> int:
    if store.attributes.id_kind == "int64":
        return 8 * store.num_vertices
    data, offsets = string_arrays(VERTEX_ID)
    return 2 * (store.array(data).length + 8 * store.array(offsets).length)


def _read_ids(store: CSRStore) -> Any:
    column = IntColumn(store, VERTEX_ID) if store.attributes.id_kind == "int64" else StringColumn(store, VERTEX_ID)
    return column.read(0, column.length)


def _column_type(store: CSRStore, name: str, texts: dict[str, Any]) -> Any:
    import pyarrow as pa

    dtype = store.array(f"out/{name}").dtype
    return pa.dictionary(pa.from_numpy_dtype(dtype), pa.large_string()) if name in texts else pa.from_numpy_dtype(dtype)
