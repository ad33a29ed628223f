"""Copies edges that can be read only once to a temporary file, from which the build reads them as often as it must.

In: a streamed source. Out: a source of the same edges, whose bounds and number of rows are known. The file holds blocks of edges as Arrow
record batches, uncompressed: 16 bytes an edge, and its columns.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from oocgraph.allocator import return_all_freed
from oocgraph.errors import BudgetError
from oocgraph.ingest.build_job import Job, rows_beside
from oocgraph.ingest.edges import EdgeBlock, EdgeStream, cut_by_text, guarded
from oocgraph.ingest.sources.arrow_values import as_numpy, whole_strings
from oocgraph.ingest.sources.source import MAX_STREAMS, Source
from oocgraph.ingest.sources.streamed import Part, StreamedSource
from oocgraph.store.columns import as_arrow
from oocgraph.types import Array


@contextmanager
def spooled(edges: StreamedSource, job: Job) -> Iterator[Source]:
    """Copy the edges, and remove the copy afterwards."""
    folder = job.folder("input").path
    folder.mkdir(parents=True)
    file = folder / "edges.arrow"
    counts, bounds = _copy(edges, file, job)
    return_all_freed()  # the last part, which Arrow may keep
    starts = np.append(0, np.cumsum(counts, dtype=np.int64))
    yield Source.like(edges, partial(_streams, file, list(edges.columns), starts), num_rows=int(starts[-1]), id_bounds=bounds)
    file.unlink()


def _copy(edges: StreamedSource, file: Path, job: Job) -> tuple[list[int], tuple[int, int] | None]:
    """Write all blocks; return the rows of each, and the smallest and the largest id, where there are integers."""
    kinds = [pa.int64() if edges.id_kind == "int64" else pa.large_string()] * 2
    kinds += [pa.large_string() if kind == "string" else pa.from_numpy_dtype(np.dtype(kind)) for kind in edges.columns.values()]
    schema = pa.schema([(str(i), kind) for i, kind in enumerate(kinds)])
    counts: list[int] = []
    low, high, row, parts = 2**63, -1, 0, guarded(edges.description, edges.parts())
    with pa.OSFile(str(file), "wb") as sink, pa.ipc.new_file(sink, schema) as writer:
        while (part := next(parts, None)) is not None:
            for block in guarded(edges.description, part.blocks(row, _block_rows(part, job))):
                if edges.id_kind == "int64":
                    low = min(low, int(block.source.min()), int(block.target.min()))
                    high = max(high, int(block.source.max()), int(block.target.max()))
                for piece in [block] if edges.id_kind == "int64" else cut_by_text(block, job.sizes.text_bytes):
                    values = [piece.source, piece.target, *(piece.columns[name] for name in edges.columns)]
                    writer.write_batch(pa.record_batch([as_arrow(one) for one in values], schema=schema))
                    counts.append(len(piece.source))
                    row += counts[-1]
                    job.progress("copy edges", row, 0)
                    del piece, values
                del block  # it is a view of the part
            del part
    return counts, (low, high) if counts and edges.id_kind == "int64" else None


def _block_rows(part: Part, job: Job) -> int:
    """Return how many rows are copied at a time, for which there is room beside the part."""
    try:
        return rows_beside(job, part.name, part.num_bytes)
    except BudgetError as error:
        raise BudgetError(f"{error}, or make it smaller") from error


def _streams(file: Path, names: list[str], starts: Array, block_rows: int) -> list[EdgeStream]:
    """Return streams of about equally many rows each."""
    cuts = np.unique(np.searchsorted(starts, np.linspace(0, starts[-1], MAX_STREAMS + 1)))
    return [partial(_read, file, names, starts, range(a, b), block_rows) for a, b in pairwise(cuts.tolist())]


def _read(file: Path, names: list[str], starts: Array, batches: range, block_rows: int) -> Iterator[EdgeBlock]:
    with pa.OSFile(str(file)) as source, pa.ipc.open_file(source) as reader:
        for number in batches:
            batch = reader.get_batch(number)
            for low in range(0, batch.num_rows, block_rows):
                ends_and_columns = [_plain(column) for column in batch.slice(low, block_rows).columns]
                columns = dict(zip(names, ends_and_columns[2:], strict=True))
                yield EdgeBlock(ends_and_columns[0], ends_and_columns[1], columns, int(starts[number]) + low)


def _plain(column: Any) -> Any:
    return whole_strings(column) if pa.types.is_large_string(column.type) else as_numpy(column)
