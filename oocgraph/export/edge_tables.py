"""The edges of a store as Arrow tables: source, target and the edge columns, under the user's ids.

In: a store. Out: tables of blocks of edges, in store order of their sources; an undirected edge once. Ids of all vertices are held (8 bytes
each, or the strings); threads turn blocks of edges into tables.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import chain
from typing import Any

from oocgraph.allocator import map_buffers_of_codecs
from oocgraph.arrow import NUM_VERTICES_KEY, from_numbers
from oocgraph.errors import OutputError
from oocgraph.memory import Budget
from oocgraph.store.arrays import decoded_bytes
from oocgraph.store.columns import as_arrow, id_bytes
from oocgraph.store.edge_columns import EdgeColumns, column_bytes, linked_ids_bytes
from oocgraph.store.graph import CSRStore
from oocgraph.store.id_order import id_column
from oocgraph.store.layout import ENDS, VERTEX_ID, string_arrays
from oocgraph.store.rows import BLOCK_ROWS, RowBlock, row_blocks
from oocgraph.store.strings import bytes_at

BLOCK_ENTRIES = 1 << 20
"""Stored entries of one table."""

ENTRY_BYTES = 96
"""Bytes of an entry on its way beside ids and columns: row, neighbour, what is kept, encoded pages."""

NUMBER_BYTES = 21
"""Characters of a number and what ends it, in text; of floats four more."""

WRITER_BYTES = 12 << 20
"""What Arrow's writer holds beside tables."""

MIN_BLOCK_ENTRIES, MIN_BLOCK_BYTES = 1 << 14, 8 << 20
"""Stored entries of a table at the least, and bytes of them after which there are fewer: where ids are long."""

STRINGS_SHARE = 4
"""One in so many of the bytes of a table on its way are its strings, which are held as taken and as encoded."""


class EdgeTables:
    """Makes tables of blocks of edges.

    Parameters
    ----------
    store
        The graph.
    text
        Whether the tables become text, which has strings of edge columns as often as edges do.

    Attributes
    ----------
    schema
        Of the tables; strings of edge columns are dictionaries.
    texts
        Names of the edge columns that hold strings.

    Raises
    ------
    OutputError
        An edge column is called source or target.
    """

    def __init__(self, store: CSRStore, *, text: bool = False) -> None:
        import pyarrow as pa

        self._is_text = text
        a = store.attributes
        if clash := set(ENDS) & set(map(a.column_beside_ends, a.columns)):
            raise OutputError(f"the edge column {clash.pop()!r} has the name of a column of ids; export to .npz, or rename it at the build")
        self._store, self._columns = store, EdgeColumns(store, tuple(a.columns))
        self._ids = as_arrow(id_column(store, VERTEX_ID).read(0, store.num_rows))
        self.texts = list(self._columns.texts)
        self.schema = pa.schema([("source", self._ids.type), ("target", self._ids.type), *self._columns.fields()])
        if a.implied_ids is not None and a.implied_ids[0] == 0:  # so that a build from this file has the isolated vertices too
            self.schema = self.schema.with_metadata({NUM_VERTICES_KEY: str(a.implied_ids[1])})

    def tables(self, block: RowBlock) -> Iterable[Any]:
        """Return the edges of a block, of an undirected edge the entry that has the smaller store number first.

        In one table, or, where strings are much longer than the graph's are on average, in several that are made as they are asked for.
        """
        entries = max(block.num_entries, _least_entries(self._store, text=self._is_text))
        return self._tables(block, entries * entry_bytes(self._store, text=self._is_text) // STRINGS_SHARE)

    def _tables(self, block: RowBlock, most_bytes: int) -> Iterable[Any]:
        import pyarrow as pa

        store = self._store
        rows, neighbours = block.rows(), store.array("out/indices").read(block.start, block.stop)
        kept = slice(None) if store.attributes.directed else rows <= neighbours
        ends = [rows[kept], neighbours[kept]]
        values = {name: store.array(f"out/{name}").read(block.start, block.stop)[kept] for name in self._columns.names}
        expanded = [(self._ids, places) for places in ends] if self._ids.type == "large_string" else []
        if self._is_text:
            expanded += [(strings, values[name]) for name, strings in self._columns.texts.items()]
        if block.num_entries > 1 and sum(bytes_at(strings, places[places >= 0]) for strings, places in expanded) > most_bytes:  # -1: null
            middle = (block.start + block.stop) // 2
            halves = [replace(block, stop=middle), replace(block, start=middle)]
            map_buffers_of_codecs()  # those of many small tables would leave holes
            return chain.from_iterable(self._tables(half, most_bytes) for half in halves)
        arrays = [self._ids.take(from_numbers(places)) for places in ends]
        arrays += [self._columns.arrow(name, found) for name, found in values.items()]
        return [pa.Table.from_arrays(arrays, schema=self.schema)]


def table_blocks(store: CSRStore, *, budget: Budget, num_threads: int, text: bool = False) -> Iterator[RowBlock]:
    """Cut the edges into blocks, as large as what is left of the budget allows."""
    each = budget.available_bytes // copies(num_threads) // entry_bytes(store, text=text)
    yield from row_blocks(store, "out", max_entries=min(BLOCK_ENTRIES, _least_entries(store, text=text) + each), whole_rows=False)


def charge_tables(store: CSRStore, *, budget: Budget, num_threads: int, text: bool = False) -> None:
    """Reserve what writing tables holds at the least, as `text` or in binary; what is imported for it is loaded by then.

    Raises
    ------
    BudgetError
        It does not fit.
    """
    a = store.attributes
    budget.reserve("ids of all vertices", linked_ids_bytes(store) + column_bytes(store, tuple(a.columns)))
    chunks = sum(decoded_bytes(store.array(f"out/{name}")) for name in ("indices", "indptr", *a.columns))
    budget.reserve("row starts", 3 * 8 * BLOCK_ROWS)
    block = _least_entries(store, text=text) * entry_bytes(store, text=text) + chunks
    budget.reserve("tables", WRITER_BYTES + copies(num_threads) * block)


def _least_entries(store: CSRStore, *, text: bool) -> int:
    return min(MIN_BLOCK_ENTRIES, max(1, MIN_BLOCK_BYTES // entry_bytes(store, text=text)))


def copies(num_threads: int) -> int:
    """Blocks that are held at once."""
    return num_threads + 2


def entry_bytes(store: CSRStore, *, text: bool) -> int:
    """Bytes of an entry on its way: both ids and the columns as taken and as encoded, in `text` in a buffer that grows by half."""
    columns = sum(store.array(f"out/{name}").dtype.itemsize for name in store.attributes.columns)
    taken = ENTRY_BYTES + 4 * (id_bytes(store, VERTEX_ID) + columns)
    if not text:
        return taken
    strings = [string_arrays(f"columns/{name}") for name, kind in store.attributes.columns.items() if kind == "string"]
    lengths = sum(8 + store.array(data).length // store.array(offsets).length for data, offsets in strings)
    numbers = len(store.attributes.columns) - len(strings)
    ends = 2 * (NUMBER_BYTES if store.attributes.id_kind == "int64" else 4 + id_bytes(store, VERTEX_ID))
    return taken + 3 * (ends + numbers * (NUMBER_BYTES + 4) + 2 * (4 + lengths))
