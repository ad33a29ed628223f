"""Edges as text: CSV and TSV under the user's ids, and Matrix Market.

Threads turn blocks of edges into text, one thread writes it. A ``.gz`` has many members; readers take them for one.

Matrix Market (https://math.nist.gov/MatrixMarket/formats.html): ``coordinate``; ``symmetric`` with the lower triangle of an undirected
graph, else ``general``; ``pattern``, ``integer`` or ``real``; rows and columns count from 1.
"""

from __future__ import annotations

import gzip
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from oocgraph.arrow import from_numbers, header_text, table_text, to_numbers
from oocgraph.errors import OutputError
from oocgraph.export.edge_tables import EdgeTables, table_blocks
from oocgraph.export.job import Job
from oocgraph.export.ordered_rows import stream_bytes
from oocgraph.memory import Budget
from oocgraph.store.arrays import decoded_bytes
from oocgraph.store.graph import CSRStore
from oocgraph.store.input_order import input_positions
from oocgraph.store.rows import BLOCK_ROWS, RowBlock, row_blocks
from oocgraph.types import Array

GZIP_LEVEL = 4

PIECE_BYTES = 1 << 18
"""Text of one member of a compressed file."""

BLOCK_ENTRIES = 1 << 18
"""Entries of a matrix that become text at once: about 5 MiB."""

MIN_BLOCK_ENTRIES = 1 << 14

NUM_ENDS = 2
"""Columns of a table of edges that are ids: the first ones."""

ENTRY_BYTES = 200
"""Bytes of an entry on its way: row, neighbour and value as read, chosen and numbered, and 46 characters in a buffer that grows."""


def write_table_text(job: Job, file: Path, _: str | None) -> None:
    """Write all edges as CSV, or TSV.

    Raises
    ------
    OutputError
        An edge column is called source or target, or a string or number is one that no build reads from text.
    """
    import pyarrow as pa

    tables = EdgeTables(job.store, text=True)
    delimiter = "\t" if job.form.startswith(".tsv") else ","

    def texts(block: RowBlock) -> Iterable[bytes]:
        found = tables.tables(block)
        return list(map(text, found)) if isinstance(found, list) else map(text, found)

    def text(table: Any) -> bytes:
        for name in table.column_names[NUM_ENDS:]:
            if table.schema.field(name).type == pa.uint64():
                _refuse_wide(job, name, to_numbers(table.column(name).combine_chunks()))
        for name in tables.texts:
            position = table.schema.get_field_index(name)
            table = table.set_column(position, name, table.column(name).cast("large_string"))
        written = table_text(table, delimiter)
        if written.count(b"\n") != table.num_rows or b"\r" in written or b"\0" in written or b'""' in written:
            _refuse_strings(job, table)
        return written

    header = header_text(tables.schema, delimiter)
    _write(job, file, header, table_blocks(job.store, budget=job.budget, num_threads=job.workers.num_threads, text=True), texts)


def _refuse_strings(job: Job, table: Any) -> None:
    """Refuse strings with a line break or NUL, which `oocgraph.ingest.sources.lines` does not read, and empty ids.

    Raises
    ------
    OutputError
        There is one.
    """
    import pyarrow.compute as pc

    for position, (name, values) in enumerate(zip(table.column_names, table.columns, strict=True)):
        if not str(values.type).endswith("string"):
            continue
        refused = {"has a line break or NUL": pc.match_substring_regex(values, r"[\n\r\x00]")}
        if position < NUM_ENDS:
            refused["is empty"] = pc.equal(pc.binary_length(values), 0)
        for what, found in refused.items():
            if (at := pc.index(found, True).as_py()) >= 0:
                raise OutputError(
                    f"{job.store.url}: {name} {values[at].as_py()!r} {what}, which no build reads from text; export to .parquet"
                )


def _refuse_wide(job: Job, name: str, values: Array) -> None:
    """Refuse integers that are above those of 64 bits with a sign, which alone a build reads from text.

    Raises
    ------
    OutputError
        There is one.
    """
    if (largest := int(values.max(initial=0))) > np.iinfo(np.int64).max:
        raise OutputError(f"{job.store.url}: {name} {largest} is 2**63 or more, which no build reads from text; export to .parquet or .npz")


def write_matrix(job: Job, file: Path, column: str | None) -> None:
    """Write the adjacency matrix; entry (i, j) is the edge from the i-th to the j-th input id ascending, or store number.

    Raises
    ------
    OutputError
        A value is one that no build reads from text.
    """
    import pyarrow as pa

    store, a = job.store, job.store.attributes
    position = input_positions(store) if job.order == "input" else np.arange(store.num_rows, dtype=np.uint32)

    def text(block: RowBlock) -> list[bytes]:
        ends = [position[one] for one in (block.rows(), store.array("out/indices").read(block.start, block.stop))]
        kept = slice(None) if a.directed else ends[0] >= ends[1]
        columns = [from_numbers(end[kept].astype(np.int64) + 1) for end in ends]
        if column is not None:
            values = store.array(f"out/{column}").read(block.start, block.stop)[kept]
            if values.dtype == np.uint64:
                _refuse_wide(job, column, values)
            columns.append(from_numbers(values))
        return [table_text(pa.Table.from_arrays(columns, names=["row", "column", "value"][: len(columns)]), " ")]

    each = MIN_BLOCK_ENTRIES + job.budget.available_bytes // (job.workers.num_threads + 2) // ENTRY_BYTES
    blocks = row_blocks(store, "out", max_entries=min(BLOCK_ENTRIES, each), whole_rows=False)
    _write(job, file, _matrix_header(job, column).encode(), blocks, text)


def charge_matrix(store: CSRStore, column: str | None, *, order: str, budget: Budget, num_threads: int) -> None:
    """Reserve what `write_matrix` holds at the least.

    Raises
    ------
    BudgetError
        It does not fit.
    """
    names = ["indptr", "indices", *([] if column is None else [column])]
    budget.reserve("vertex positions", 5 * store.num_rows + (stream_bytes(store) if order == "input" else 0))
    chunks = sum(decoded_bytes(store.array(f"out/{name}")) for name in names)
    budget.reserve("blocks", 3 * 8 * BLOCK_ROWS + (num_threads + 2) * (MIN_BLOCK_ENTRIES * ENTRY_BYTES + chunks))


def _matrix_header(job: Job, column: str | None) -> str:
    a = job.store.attributes
    field = "pattern" if column is None else "real" if job.store.array(f"out/{column}").dtype.kind == "f" else "integer"
    size = job.store.num_rows if job.order == "store" else a.num_input_vertices
    kind = "vertex id, ascending" if job.order == "input" else "vertex of the store"
    comment = f"% Row and column i are of the i-th {kind}.\n" if job.order == "store" or a.implied_ids != (0, size) else ""
    symmetry = "general" if a.directed else "symmetric"
    return f"%%MatrixMarket matrix coordinate {field} {symmetry}\n{comment}{size} {size} {a.num_edges}\n"


def _write(job: Job, file: Path, header: bytes, blocks: Iterator[RowBlock], texts: Callable[[RowBlock], Iterable[bytes]]) -> None:
    parts = _texts(job, header, blocks, texts)
    if job.form.endswith(".gz"):
        parts = job.workers.ordered(_packed, _pieces(parts))
    with file.open("wb") as stream:
        for part in parts:
            stream.write(part)


def _texts(job: Job, header: bytes, blocks: Iterator[RowBlock], texts: Callable[[RowBlock], Iterable[bytes]]) -> Iterator[bytes]:
    """Iterate over the text of the file, however the blocks are cut."""
    yield header
    done = job.counter()
    for num_entries, parts in job.workers.ordered(lambda block: (block.num_entries, texts(block)), blocks):
        yield from parts
        done(num_entries)


def _pieces(texts: Iterator[bytes]) -> Iterator[bytes]:
    """Cut text into pieces of one size, so that a compressed file has the same bytes whatever the blocks are."""
    held = bytearray()
    for part in texts:
        held += part
        for start in range(0, len(held) - PIECE_BYTES + 1, PIECE_BYTES):
            yield bytes(held[start : start + PIECE_BYTES])
        del held[: len(held) // PIECE_BYTES * PIECE_BYTES]
    yield bytes(held)


def _packed(text: bytes) -> bytes:
    return gzip.compress(text, GZIP_LEVEL, mtime=0)
