"""The edges of a store as one Parquet file; each block of edges is a row group."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from oocgraph.export.edge_tables import EdgeTables, table_blocks
from oocgraph.export.job import Job
from oocgraph.store.rows import RowBlock


def write_parquet(job: Job, file: Path, _: str | None) -> None:
    """Write all edges to `file`; threads make the tables, one thread writes.

    Raises
    ------
    OutputError
        An edge column is called source or target.
    """
    import pyarrow.parquet as pq

    tables, done = EdgeTables(job.store), job.counter()

    def made(block: RowBlock) -> tuple[int, Iterable[Any]]:
        return block.num_entries, tables.tables(block)

    blocks = table_blocks(job.store, budget=job.budget, num_threads=job.workers.num_threads)
    short = [name for name in tables.schema.names if tables.schema.field(name).type != "large_string"]  # statistics are held until the end
    options = {"compression": "zstd", "compression_level": 1, "use_dictionary": tables.texts or False, "write_statistics": short or False}
    with pq.ParquetWriter(str(file), tables.schema, **options) as writer:
        for num_entries, parts in job.workers.ordered(made, blocks):
            for part in parts:
                if part.num_rows:
                    writer.write_table(part, row_group_size=part.num_rows)
            done(num_entries)
