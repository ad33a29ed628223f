"""All edges of a graph as a stream of Arrow batches, under the user's ids.

In: a store. Out: a ``pyarrow.RecordBatchReader``; an undirected edge comes once. Entries are read in order, a block for each batch; the ids
of all vertices with edges are held.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from oocgraph.arguments import check_whole
from oocgraph.arrow import from_numbers
from oocgraph.store.answering import budget_of
from oocgraph.store.columns import as_arrow, id_bytes
from oocgraph.store.edge_columns import EdgeColumns, check_columns, column_bytes, linked_ids_bytes
from oocgraph.store.graph_arrays import GraphArrays
from oocgraph.store.id_order import id_column
from oocgraph.store.layout import VERTEX_ID
from oocgraph.store.row_places import check_no_view
from oocgraph.store.rows import edge_block_bytes, edge_blocks

EDGE_BYTES = 40
"""What an edge of a batch takes beside its ids and columns: its row, whether it is kept, and its numbers."""


def edges(store: GraphArrays, *, columns: Sequence[str] | None, batch_size: int, memory_budget: str | int | None) -> Any:
    """Return all edges as a stream; see `oocgraph.store.access.GraphAccess.edges`."""
    import pyarrow as pa

    check_whole("batch_size", batch_size, least=1)
    check_no_view(store)
    names = check_columns(store, tuple(store.attributes.columns) if columns is None else columns)
    group, size = store.attributes.stored_groups[0], min(int(batch_size), max(1, store.attributes.num_stored_edges))
    budget_of(store, memory_budget, tables=True).reserve_all(stream_bytes(store, names, size))
    ids, edge_columns = as_arrow(id_column(store, VERTEX_ID).read(0, store.num_rows)), EdgeColumns(store, names, columns)
    schema = pa.schema([pa.field("source", ids.type), pa.field("target", ids.type), *edge_columns.fields()])
    return pa.RecordBatchReader.from_batches(schema, _batches(store, group, ids, edge_columns, schema, size))


def stream_bytes(store: GraphArrays, names: Sequence[str], batch_size: int) -> dict[str, int]:
    """Return the bytes that a stream of edges with these columns holds, by purpose."""
    group = store.attributes.stored_groups[0]
    each = EDGE_BYTES + 4 * id_bytes(store, VERTEX_ID) + sum(2 * store.array(f"{group}/{name}").dtype.itemsize for name in names)
    return {
        "ids of all vertices": linked_ids_bytes(store) + column_bytes(store, names),
        "batches": 2 * batch_size * each,
        "blocks": edge_block_bytes(store, group, ["indices", *names], batch_size),
    }


def _batches(store: GraphArrays, group: str, ids: Any, columns: EdgeColumns, schema: Any, size: int) -> Iterator[Any]:
    import pyarrow as pa

    for block, (near, *values) in edge_blocks(store, group, ["indices", *columns.names], size):
        rows = block.rows()
        kept = np.arange(rows.size) if store.attributes.directed else np.flatnonzero(rows <= near)
        ends = [ids.take(from_numbers(rows[kept])), ids.take(from_numbers(near[kept]))]
        if group == "in":
            ends.reverse()
        arrays = [columns.arrow(name, found[kept]) for name, found in zip(columns.names, values, strict=True)]
        if kept.size:
            yield pa.RecordBatch.from_arrays([*ends, *arrays], schema=schema)
