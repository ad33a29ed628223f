"""Provisional ids: the position of a vertex in ascending order of the user's ids.

Integer ids that fill a range well enough need no table: the position is ``id - first``, with gaps that turn out to
be no vertices. The ids of sparse integers and of strings are tables on disk (`sparse_ids`, `string_ids`).
"""

from __future__ import annotations

import threading
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from oocgraph.ingest.build_job import Job
from oocgraph.ingest.edges import EdgeBlock, EdgeSource, read_streams
from oocgraph.types import MAX_UINT32_VERTICES, Array

MAX_GAPS = 4
"""Positions per endpoint up to which a range of ids is used as it is: each costs 4 bytes of degree, a table costs two sorts."""

FREE_POSITIONS = 1 << 20
"""A range up to this long needs no table, however few its edges."""


class Ids(Protocol):
    """Ids by position.

    Attributes
    ----------
    num_ids
        Number of positions.
    implied : (first, stop) or None
        When every id of that range is a vertex, used or not.
    all_used
        Whether every position is a vertex that occurs in the input.
    mean_bytes
        Of an id, about.
    """

    @property
    def num_ids(self) -> int: ...  # noqa: D102
    @property
    def mean_bytes(self) -> float: ...  # noqa: D102
    @property
    def implied(self) -> tuple[int, int] | None: ...  # noqa: D102
    @property
    def all_used(self) -> bool: ...  # noqa: D102

    def read(self, start: int, stop: int) -> Any:
        """Ids of the positions ``start .. stop - 1``, (n,) int64 or a pyarrow array of large_binary: of strings, the first of them."""
        ...


@dataclass(slots=True)
class RangeIds:
    """Integer ids that are positions in a range.

    Attributes
    ----------
    first
        The id of position 0.
    """

    first: int
    num_ids: int
    implied: tuple[int, int] | None
    mean_bytes: float = 8

    @property
    def all_used(self) -> bool:
        """Whether there are no gaps."""
        return self.implied is not None

    def read(self, start: int, stop: int) -> Array:
        """Ids of the positions ``start .. stop - 1``: (n,) int64."""
        return np.arange(self.first + start, self.first + stop, dtype=np.int64)


def range_ids(edges: EdgeSource, job: Job) -> RangeIds | None:
    """Return the range of the source's integer ids, or None when they are too sparse for it."""
    bounds, num_rows = edges.id_bounds, edges.num_rows
    if edges.num_vertices is not None:
        bounds = (0, edges.num_vertices - 1)
    if bounds is None or num_rows is None:
        found, num_rows = _scan(edges, job)
        bounds = bounds or found
    if edges.num_vertices is None and edges.extra_vertices is not None and len(edges.extra_vertices):
        extra = edges.extra_vertices
        low, high = int(np.min(extra)), int(np.max(extra))
        bounds = (min(bounds[0], low), max(bounds[1], high)) if bounds else (low, high)
    if bounds is None:
        return RangeIds(0, 0, None)
    length = bounds[1] - bounds[0] + 1
    if length > max(FREE_POSITIONS, 2 * MAX_GAPS * num_rows) or length > MAX_UINT32_VERTICES:
        return None
    return RangeIds(bounds[0], length, None if edges.num_vertices is None else (0, edges.num_vertices))


def _scan(edges: EdgeSource, job: Job) -> tuple[tuple[int, int] | None, int]:
    """Read the source once for its bounds and its number of rows."""
    lock = threading.Lock()
    low, high, num_rows = 2**63, -(2**63), 0

    def look(block: EdgeBlock) -> None:
        nonlocal low, high, num_rows
        if not block.source.size:
            return
        ends = [int(f(ids)) for ids in (block.source, block.target) for f in (np.min, np.max)]
        with lock:
            low, high, num_rows = min(low, *ends), max(high, *ends), num_rows + block.source.size
            job.progress("scan ids", num_rows, edges.num_rows or 0)

    job.workers.drain(read_streams(edges, job.sizes.block_rows), look)
    return ((low, high) if num_rows else None), num_rows
