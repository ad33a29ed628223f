"""The edges of a subgraph's rows, gathered by host threads from wherever they are: host memory, chunk files, or any other store.

In: a SubCSR's ``start`` and ``offset`` (see `oocgraph.kernels.gather`) and where edges are. Out: a range of the rows' edges, one after the
other. The range is cut into parts of about equal work, a few for each reading thread; rows may be cut.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import numpy as np

from oocgraph.kernels import gather
from oocgraph.kernels.rows import no_files
from oocgraph.store.arrays import DECODED_COPIES, StoredArray, decoded_bytes
from oocgraph.store.fetched import ZarrArray
from oocgraph.store.gather import EdgeFiles, Gatherer
from oocgraph.types import PAGE_BYTES, Array

PARTS_PER_THREAD = 4
"""Parts of a piece a thread gets, so that one slow part does not hold up the rest."""

PART_BYTES = 128 << 10
"""Work below which a part is not worth a task (15 us): what a thread reads in that time from a cached file."""

CACHE_LINE_BYTES = 64
"""What a row in memory costs beyond its edges; one on disk costs a page."""

WINDOW_BYTES = 1 << 20
"""Edges read at once where they are not in plain local files."""

GAP_BYTES = 64 << 10
"""Bytes between two rows that are fetched with them from an object store, where a request takes longer than they do."""

RUN_ROWS = 4096
"""Rows that are looked through for one request."""


Part = tuple[int, int, int, int]
"""Edges of a piece: the row that holds the first, the first, the row that holds the last, the one behind the last (all in offset space)."""


def held_window_bytes(stored: StoredArray) -> int:
    """Return what a thread holds that reads windows of an array; nothing of plain local files."""
    if isinstance(stored, ZarrArray):
        return decoded_bytes(stored)
    return 0 if stored.unit == 1 else DECODED_COPIES * min(stored.chunk_length * stored.dtype.itemsize, WINDOW_BYTES)


@dataclass(frozen=True, slots=True)
class EdgeSource:
    """Where the host finds the edges of one adjacency.

    Attributes
    ----------
    resident : index dtype
        The first edges, in host memory; all of them where neither of the others is given.
    files
        Open chunk files of a store that is plain local files.
    stored
        The array of any other store.
    """

    resident: Array
    files: EdgeFiles | None = None
    stored: StoredArray | None = None


@dataclass(frozen=True, slots=True)
class RowGatherer:
    """Gathers ranges of some rows: what `oocgraph.subgraph.staging.Stager` calls.

    Attributes
    ----------
    gatherer
        Reading threads with a scratch buffer for each.
    source
        Where the edges are.
    start : (num_rows,) int64
        First edge of each row; ascending where pages are not to be read twice. Only read, as is `offset`.
    offset : (num_rows + 1,) int64
        Exclusive prefix sum of the degrees.
    gap_pages
        Pages read though not needed, to join two reads.
    stream
        Whether most of the file will be read (`EdgeFiles.stream_arguments`).
    """

    gatherer: Gatherer
    source: EdgeSource
    start: Array
    offset: Array
    gap_pages: int
    stream: bool

    def __call__(self, e0: int, e1: int, out: Array) -> int:
        """Fill ``out[e - e0]`` for the edges ``e0 .. e1 - 1`` of the rows; returns bytes read.

        Raises
        ------
        CorruptStoreError
            A read failed or a page differs from its checksum; the other threads have ended their parts by then.
        """
        return 0 if e0 == e1 else self.gather(self._parts(e0, e1, out.itemsize), e0, out)

    def gather(self, parts: list[Part], e0: int, out: Array) -> int:
        """Fill ``out[e - e0]`` for the edges of some parts; see `__call__`."""

        def call(part: Part, scratch: Array) -> tuple[int, int, int]:
            _, begin, _, end = part
            here = out[begin - e0 : end - e0]
            if self.source.stored is not None:
                return 0, self._copy_windows(part, self.source.stored, here), 0
            num_bytes, error = self._gather_files(part, scratch, here)
            return 0, num_bytes, error

        return sum(one[1] for one in self.gatherer.run(call, parts, self.source.files))

    def _parts(self, e0: int, e1: int, itemsize: int) -> list[Part]:
        """Cut a piece into parts of about equal work."""
        in_memory = self.source.files is None and self.source.stored is None
        row_bytes = CACHE_LINE_BYTES if in_memory else PAGE_BYTES
        num_rows = int(np.searchsorted(self.offset, e1) - np.searchsorted(self.offset, e0))
        work = (e1 - e0) * itemsize + num_rows * row_bytes
        num_parts = max(1, min(self.gatherer.num_threads * PARTS_PER_THREAD, work // PART_BYTES))
        cuts = np.empty((num_parts + 1, 2), np.int64)
        gather.cut_rows(self.offset, e0, e1, row_bytes // itemsize, cuts)
        return [(row, begin, last_row, end) for (row, begin), (last_row, end) in itertools.pairwise(cuts.tolist()) if begin < end]

    def _gather_files(self, part: Part, scratch: Array, out: Array) -> tuple[int, int]:
        row, begin, last_row, end = part
        files = self.source.files
        if files is None:
            arguments = no_files((PAGE_BYTES // out.itemsize).bit_length() - 1)
        else:
            arguments = files.stream_arguments if self.stream else files.arguments
        num_bytes, error = gather.gather_rows(
            self.start, self.offset, row, last_row + 1, begin, end, self.source.resident,
            arguments, self.gap_pages, scratch, scratch.view(out.dtype), out,
        )  # fmt: skip
        return int(num_bytes), int(error)

    def _copy_windows(self, part: Part, stored: StoredArray, out: Array) -> int:
        """Read windows of an array one after the other, each that holds an edge wanted next; returns their bytes."""
        row, begin, _, end = part
        size = max(1, min(stored.chunk_length, WINDOW_BYTES // stored.dtype.itemsize))
        resident, e, num_bytes = self.source.resident, begin, 0
        base, window = 0, resident[:0]
        while True:
            row, e = gather.copy_rows(self.start, self.offset, row, e, begin, end, resident, window, base, out)
            if e == end:
                return num_bytes
            base = int(self.start[row] + e - self.offset[row])
            if isinstance(stored, ZarrArray):  # a chunk is decoded as a whole
                base = base // size * size
                stop = min(base + size, stored.length)
            else:
                stop = min(base + size, self._run_end(row, e, end, GAP_BYTES // stored.dtype.itemsize))
            window = stored.read(base, stop).view(out.dtype)
            num_bytes += window.nbytes

    def _run_end(self, row: int, e: int, end: int, gap: int) -> int:
        """Return the end of what one read from edge `e` of `row` serves: rows with at most `gap` edges between one and the next."""
        last = min(row + RUN_ROWS, int(np.searchsorted(self.offset, end)))
        starts = self.start[row:last] + np.maximum(self.offset[row:last], e) - self.offset[row:last]
        ends = self.start[row:last] + np.minimum(self.offset[row + 1 : last + 1], end) - self.offset[row:last]
        apart = starts[1:] - ends[:-1]
        cut = np.flatnonzero((apart > gap) | (apart < 0))
        return int(ends[cut[0]] if cut.size else ends[-1])
