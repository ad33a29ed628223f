"""Writes generated edges as a raw edge list: the input of a build, for measuring one.

In: a generator. Out: one Parquet file (columns ``source`` and ``target``, and ``weight``, if edges have one) or one ``.npy`` of shape
(num_edges, 2); int32 up to 2**31 vertices, else int64. Blocks are computed by a second thread while one writes, a few blocks at a time,
and the file appears when it is complete.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from oocgraph.allocator import returned_memory
from oocgraph.arrow import NUM_VERTICES_KEY, from_numbers, load_tables
from oocgraph.errors import OutputError
from oocgraph.external_sort.workers import Workers
from oocgraph.ingest.generators.generated import GeneratedEdges
from oocgraph.memory import Budget, limit_bytes_of
from oocgraph.progress import watched
from oocgraph.store.atomic_output import AtomicOutput
from oocgraph.store.outputs import local_path
from oocgraph.types import Array, Progress, ProgressOption, ignore_progress

ROW_GROUP_EDGES = 4 << 20
"""Edges of a Parquet row group: 32 MiB of int32, enough groups for parallel reading of any size worth it."""

BLOCK_BYTES, GROUP_BYTES = 128 << 20, 96 << 20
"""What blocks of edges take, made ahead and in work; and a row group, as collected and as encoded."""

_BLOCK_EDGES = 1 << 20
_BLOCKS_AHEAD = 3


def write_edges(
    source: GeneratedEdges, path: str | os.PathLike[str], *, overwrite: bool = False, memory_budget: str | int | None = None,
    progress: ProgressOption = None,
) -> tuple[int, int]:  # fmt: skip
    """Write the edges of a generator to ``FILE.parquet`` or ``FILE.npy``.

    Parameters
    ----------
    source
        What to write.
    path
        File to create; its extension chooses the format.
    overwrite
        Replace a file of that name.
    memory_budget
        Bytes that the whole process may hold; by default most of what the machine leaves.
    progress
        Called with ("writing edges", edges done, edges); True draws a bar.

    Returns
    -------
    num_edges, file_bytes

    Raises
    ------
    OutputError
        The file exists and `overwrite` is false, its extension is unknown, or it cannot be written.
    BudgetError
        The budget is too small; the message names the smallest that works.

    Notes
    -----
    Host memory: 128 MiB of blocks, and in Parquet 96 MiB of a row group, whatever the number of edges.
    """
    place = local_path(path)
    writers = {".parquet": _write_parquet, ".npy": _write_npy}
    if place.suffix not in writers:
        raise OutputError(f"{place}: unknown extension {place.suffix!r}; an edge list is written as .parquet or .npy")
    if place.suffix == ".npy" and source.columns:
        raise OutputError(f"{place}: .npy holds the ends of edges only, no weights; write .parquet")
    if place.suffix == ".parquet":
        load_tables()
    source.edges(0, min(1, source.num_positions))  # compiles, or loads, what makes edges
    budget = Budget(limit_bytes_of(memory_budget))
    budget.reserve("blocks of edges", BLOCK_BYTES + (GROUP_BYTES if place.suffix == ".parquet" else 0))
    with returned_memory(), AtomicOutput(place, overwrite=overwrite) as staged, watched(progress) as shown:
        num_edges = writers[place.suffix](source, staged.path, shown)
        staged.publish()
    return num_edges, place.stat().st_size


def _id_dtype(source: GeneratedEdges) -> np.dtype[Any]:
    return np.dtype(np.int32 if (source.num_vertices or 0) <= 1 << 31 else np.int64)


def _blocks(source: GeneratedEdges, progress: Progress) -> Iterator[list[Array]]:
    """Yield endpoints, and weights if there are any, in order, computed ahead by another thread."""
    total = source.num_positions
    dtype = _id_dtype(source)

    def make(first: int) -> list[Array]:
        src, dst = source.edges(first, min(_BLOCK_EDGES, total - first))
        return [src.astype(dtype), dst.astype(dtype), *source.columns_of(src, dst).values()]

    starts = range(0, total, _BLOCK_EDGES)
    with Workers(1) as workers:
        for first, block in zip(starts, workers.ordered(make, starts, most=_BLOCKS_AHEAD + 1), strict=True):
            yield block
            progress("writing edges", min(total, first + _BLOCK_EDGES), total)


def _write_parquet(source: GeneratedEdges, path: Path, progress: Progress) -> int:
    import pyarrow as pa
    import pyarrow.parquet as pq

    kind = pa.from_numpy_dtype(_id_dtype(source))
    fields = [pa.field(name, kind, nullable=False) for name in ("source", "target")]
    fields += [pa.field(name, pa.from_numpy_dtype(np.dtype(dtype)), nullable=False) for name, dtype in source.columns.items()]
    schema = pa.schema(fields, metadata={NUM_VERTICES_KEY: str(source.num_vertices).encode()})
    pending: list[Any] = []
    num_edges = 0
    with pq.ParquetWriter(path, schema, compression="none", use_dictionary=False, write_statistics=True, store_schema=True) as writer:
        for block in _blocks(source, progress):
            num_edges += block[0].size
            pending.append(pa.RecordBatch.from_arrays([from_numbers(one) for one in block], schema=schema))
            if sum(batch.num_rows for batch in pending) >= ROW_GROUP_EDGES:
                writer.write_table(pa.Table.from_batches(pending), row_group_size=ROW_GROUP_EDGES)
                pending = []
        if pending:
            writer.write_table(pa.Table.from_batches(pending), row_group_size=ROW_GROUP_EDGES)
    return num_edges


def _write_npy(source: GeneratedEdges, path: Path, progress: Progress) -> int:
    num_rows = source.num_rows if source.num_rows is not None else sum(block[0].size for block in _blocks(source, ignore_progress))
    header = {"descr": _id_dtype(source).newbyteorder("<").str, "fortran_order": False, "shape": (num_rows, 2)}
    with path.open("xb") as file:
        np.lib.format.write_array_header_1_0(file, header)
        for block in _blocks(source, progress):
            file.write(np.stack(block, axis=1).data)
    return num_rows
