"""A graph in memory from any source of edges.

In: an edge source, of which every edge is read and kept. Out: the graph that `oocgraph.store.in_memory.build_in_memory` makes of them. What
is held is charged to the budget as it is read, and refused where a build on disk would go on.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from oocgraph.arrow import from_strings
from oocgraph.config import settings
from oocgraph.errors import BudgetError
from oocgraph.ingest.build_job import MAX_BLOCK_ROWS, MIN_BLOCK_ROWS, PAYLOAD_COPIES, READER_BYTES, ROW_BYTES, BuildOptions, input_bytes
from oocgraph.ingest.edges import EdgeBlock, EdgeSource, read_streams
from oocgraph.ingest.payload import choose_payload
from oocgraph.ingest.sources.source import Source
from oocgraph.memory import Budget
from oocgraph.store.in_memory import MemoryGraph, build_bytes, build_in_memory
from oocgraph.types import Progress

REMEDY = "give build_csr a path: a store on disk needs no memory for its edges"

BLOCK_SHARE = 1 / 16
"""Share of the free budget that a block takes while it is read."""

READ_COPIES = 2
"""Copies of ids and columns as they are read: of blocks, and of all together."""

ESTIMATE_MARGIN = 1.1
"""How much more a refusal names where rows and strings are counted by what was read until then."""


def build_from_source(edges: EdgeSource, options: BuildOptions, budget: Budget, progress: Progress) -> MemoryGraph:
    """Read all edges, and build a graph of them in memory.

    Raises
    ------
    BudgetError
        The edges and what a build holds beside them do not fit.
    DuplicateEdgeError, InputError
        As of a build on disk.
    """
    payload = choose_payload(edges, options.duplicates)
    blocks = _read(edges, budget, progress)
    source, target = (_together([getattr(one, end) for one in blocks], edges.id_kind) for end in ("source", "target"))
    columns = {name: _joined([one.columns[name] for one in blocks], kind) for name, kind in edges.columns.items()}
    rows = [np.arange(one.first_row, one.first_row + len(one.source), dtype=np.uint64) for one in blocks] if payload.needs_rows else None
    del blocks
    return build_in_memory(
        source, target, directed=bool(edges.directed) if options.directed is None else options.directed, columns=columns,
        weight=edges.weight, vertices=edges.extra_vertices, num_vertices=edges.num_vertices, duplicates=payload.duplicates,
        keep_self_loops=options.keep_self_loops, vertex_order=options.vertex_order,
        rows=None if rows is None else np.concatenate([np.empty(0, np.uint64), *rows]), description=edges.description,
        threads=options.threads or settings().threads,
    )  # fmt: skip


def source_bytes(num_rows: int, column_bytes: int, text_bytes: int = 0) -> int:
    """Return what `build_from_source` holds at the most of so many edges, whose columns have so many bytes each, and of strings."""
    held = READ_COPIES * (num_rows * (16 + column_bytes) + text_bytes)
    return held + build_bytes(num_rows, column_bytes=num_rows * column_bytes, text_bytes=text_bytes)


def reading_bytes(edges: EdgeSource, column_bytes: int) -> int:
    """Return what one reader of files holds beside what is kept; arrays and tables are read where they are."""
    if not isinstance(edges, Source) or not edges.files:
        return 0
    return READER_BYTES + input_bytes(edges, 1) + MIN_BLOCK_ROWS * (ROW_BYTES + PAYLOAD_COPIES * column_bytes)


def _read(edges: EdgeSource, budget: Budget, progress: Progress) -> list[EdgeBlock]:
    """Read all edges; charge what a build holds of them as they come, or at once where their number is known.

    A refusal names a budget for all edges, by what has been read so far where their number or the length of strings is not known.
    """
    column_bytes = sum(np.dtype(kind).itemsize for kind in edges.columns.values() if kind != "string")
    reading = reading_bytes(edges, column_bytes)
    blocks, num_rows, charged, text_bytes = [], 0, 0, 0

    def expect() -> None:
        likely = edges.num_rows or max(edges.likely_rows or 0, num_rows)
        likely_bytes = source_bytes(likely, column_bytes, int(text_bytes * likely / max(1, num_rows)))
        is_known = edges.num_rows is not None and not text_bytes
        budget.following_bytes = reading + int(likely_bytes * (1 if is_known else ESTIMATE_MARGIN))

    def charge(rows: int, more_text: int) -> None:
        nonlocal charged, text_bytes
        more, text_bytes = max(0, rows - charged), text_bytes + more_text
        charged += more
        expect()
        _reserve(budget, "edges in memory", source_bytes(more, column_bytes, more_text))

    expect()
    if reading:
        _reserve(budget, "reading", reading)
    block_rows = min(MAX_BLOCK_ROWS, max(MIN_BLOCK_ROWS, int(budget.available_bytes * BLOCK_SHARE) // ROW_BYTES))
    charge(edges.num_rows or 0, 0)
    for stream in read_streams(edges, block_rows):
        for block in stream():
            num_rows += len(block.source)
            texts = [one for one in (block.source, block.target, *block.columns.values()) if not isinstance(one, np.ndarray)]
            charge(num_rows, sum(one.nbytes for one in texts))
            blocks.append(block)
            progress("read edges", num_rows, edges.num_rows or 0)
    return blocks


def _reserve(budget: Budget, name: str, num_bytes: int) -> None:
    try:
        budget.reserve(name, num_bytes)
    except BudgetError as error:
        raise BudgetError(f"{error}, or {REMEDY}") from error


def _together(parts: list[Any], kind: str) -> Any:
    """Return ids of one kind together: strings stay where they are."""
    if kind != "string":
        return _joined(parts, kind)
    import pyarrow as pa

    return pa.chunked_array(parts, pa.large_string())


def _joined(parts: list[Any], kind: str) -> Any:
    """Return arrays of one kind as one: NumPy's of numbers, or Arrow's of strings."""
    if kind != "string":
        return parts[0] if len(parts) == 1 else np.concatenate([np.empty(0, kind), *parts])
    import pyarrow as pa

    return parts[0] if len(parts) == 1 else pa.concat_arrays([from_strings([]), *parts])
