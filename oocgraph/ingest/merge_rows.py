"""Rows of two stores become the rows of one: renumbered, merged, and written in the new order.

In: both stores, and the old rows of each new one. Out: the arrays of a group, appended in order. Vertices of one degree keep their order,
so the rows of a block lie near each other in the old files, and what is read is the file once and some pages again.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

import numpy as np

from oocgraph.external_sort.workers import Scratch, Spare, Workers
from oocgraph.ingest.build_job import BIN_RECORDS, RECORD_BYTES, Job
from oocgraph.ingest.rows import GroupWriter, RowBlock
from oocgraph.ingest.stored_rows import Room, StoredRows
from oocgraph.kernels.append import SLACK, end_of_block, locate_rows, merge_rows, renumber
from oocgraph.kernels.build import NO_RANK, deal_planes
from oocgraph.store.degrees import DegreeClasses
from oocgraph.store.graph import CSRStore
from oocgraph.store.records import Records, drop_duplicates, group_starts, sort_records
from oocgraph.store.row_lookup import sorted_lookup
from oocgraph.store.row_places import row_ends
from oocgraph.store.rows import are_by_degree
from oocgraph.types import Array, index_dtype

WINDOW_ROWS = 1 << 17
"""Rows whose places are found at a time: 32 bytes each."""

MOST_ENTRIES, ENTRY_BYTES = 1 << 22, 24
"""Entries of a block without columns, and bytes of each: as read, as merged, in the planes, waiting to be written. Rows of neighbouring
blocks come from the same pages: the more entries a block has, the fewer are read again (kron24: 3.2 times the file with 2**20)."""

ROW_COST = 2
"""Entries that a row counts for beside its own: places and lengths."""

TIED_ENTRIES = 1 << 18
"""Entries among which those of the same ends are treated at a time: some 100 bytes each."""

LOW = np.uint64(0xFFFFFFFF)
"""Bits of a key that say where a record's columns are."""


@dataclass(frozen=True, slots=True)
class Side:
    """One of the stores.

    Attributes
    ----------
    store, rows
        The graph, and a reader of its rows.
    new_of : (store.num_rows,) uint32
        New number of each vertex.
    row_of : (num_vertices,) uint32
        The store's number of each new vertex, or NO_RANK.
    codes : dict
        What the codes of string columns become.
    """

    store: CSRStore
    rows: StoredRows
    new_of: Array
    row_of: Array
    codes: dict[str, Array]

    def locate(self, group: str, rows: Array, begin: Array, end: Array) -> None:
        """Write where some rows begin and end, (n,) int64 each; those that the store lacks (NO_RANK) are empty."""
        if are_by_degree(self.store, group):
            lookup = sorted_lookup(self.store)
            locate_rows(rows, lookup.first, lookup.edge, lookup.value, begin, end)
            return
        begin[:], end[:] = 0, 0
        there = np.flatnonzero(rows != NO_RANK)
        begin[there], end[there] = row_ends(self.store, group, rows[there].astype(np.int64))


@dataclass(frozen=True, slots=True)
class Rows:
    """New rows ``first .. first + n - 1``: where each begins and ends in either store, (2, n) int64 each; entries of all."""

    first: int
    begin: Array
    end: Array
    num_entries: int


def block_entries(job: Job) -> int:
    """Return how many entries a block may have, where it is not a single row."""
    if job.payload.stored:
        return min(BIN_RECORDS, job.sizes.capacity)
    return min(MOST_ENTRIES, job.sizes.capacity * RECORD_BYTES // ENTRY_BYTES)


def write_merged(group: str, sides: Sequence[Side], classes: DegreeClasses, job: Job, *, num_planes: int) -> tuple[int, int, bool]:
    """Write one group; return its number of entries, of self-loops, and whether several entries of a row are the same."""
    num_vertices = classes.num_vertices
    limit = block_entries(job)
    merging = _Merging(group, sides, classes, job, num_planes, limit)
    target, total = GroupWriter(group, classes, job, num_planes), sum(side.store.attributes.num_stored_edges for side in sides)
    for block in _results(merging, _blocks(group, sides, num_vertices, limit, job.workers), limit, job):
        for starts in block.indptr:
            np.add(starts, target.num_entries, out=starts)
        target.append(block)
        merging.reuse(block)
        job.progress(f"write {group}", target.num_entries, total)
    return *target.finish(), merging.has_parallel


def _results(merging: _Merging, blocks: Iterator[Rows], limit: int, job: Job) -> Iterator[RowBlock]:
    """Merge blocks in the threads, in order; a row that is longer than a block should be is merged alone."""
    for is_long, run in groupby(blocks, lambda rows: rows.num_entries > limit):
        yield from map(merging.merged, run) if is_long else job.workers.ordered(merging.merged, run)  # noqa: B031 - one of both


def _blocks(group: str, sides: Sequence[Side], num_vertices: int, limit: int, workers: Workers) -> Iterator[Rows]:
    """Cut the new rows into blocks; where they are is found in the threads."""

    def located(low: int) -> tuple[int, Array, Array]:
        size = min(WINDOW_ROWS, num_vertices - low)
        begin, end = np.empty((2, size), np.int64), np.empty((2, size), np.int64)
        for at, side in enumerate(sides):
            side.locate(group, side.row_of[low : low + size], begin[at], end[at])
        return low, begin, end

    for low, begin, end in workers.ordered(located, range(0, num_vertices, WINDOW_ROWS), most=2):
        start, size = 0, begin.shape[1]
        while start < size:
            stop, num_entries = end_of_block(begin, end, start, limit, ROW_COST)
            yield Rows(low + start, begin[:, start:stop], end[:, start:stop], num_entries)
            start = stop


def _room(scratch: Scratch, at: int) -> Room:
    return lambda name, length, dtype: scratch.get(f"{name} {at}", length, dtype)


def _groups(same: Array) -> Iterator[tuple[int, int]]:
    """Cut n entries into ranges of about `TIED_ENTRIES`, none within a group; `same`, (n + 1,), says which are as those before."""
    start, size = 0, same.size - 1
    while start < size:
        stop = min(size, start + TIED_ENTRIES)
        stop += int(np.argmin(same[stop:]))
        yield start, stop
        start = stop


class _Merging:
    """Merges blocks of rows of one group, in any thread."""

    def __init__(self, group: str, sides: Sequence[Side], classes: DegreeClasses, job: Job, num_planes: int, limit: int) -> None:
        self._group, self._sides, self._classes, self._job, self._num_planes = group, sides, classes, job, num_planes
        self._drop = job.payload.duplicates != "keep"
        self._has_loops = any(side.store.attributes.num_self_loops for side in sides)
        self.has_parallel = False
        self._columns = list(job.payload.stored)
        self._kind = np.dtype(np.uint64 if self._columns else np.uint32)
        self._keys, self._planes = Spare(self._kind, limit + SLACK), Spare(np.dtype(np.uint32), limit)

    def merged(self, rows: Rows) -> RowBlock:
        """Return what is written of some rows; where each begins, counted from the first."""
        scratch, lengths = self._job.scratch, np.empty(rows.begin.shape[1], np.int64)
        read = [
            side.rows.read(f"{self._group}/indices", begin, end, _room(scratch, at))
            for at, (side, begin, end) in enumerate(zip(self._sides, rows.begin, rows.end, strict=True))
        ]
        (a, a_begin), (b, b_begin) = ((entries.astype(np.uint32, copy=False), begin) for entries, begin in read)
        a_length, b_length = rows.end - rows.begin
        width = SLACK + int(max(a_length.max(initial=0), b_length.max(initial=0)))
        work = scratch.get("work", 2 * width, self._kind).reshape(2, width)
        out = self._keys.get(a.size + b.size + SLACK, self._classes.row_start(rows.first))  # of lists sorted by degree it will be there
        renumber(a, self._sides[0].new_of)
        renumber(b, self._sides[1].new_of)
        drop = self._drop and not self._columns
        written = merge_rows(a, a_begin, a_length, b, b_begin, b_length, drop, work, out, lengths)
        indices, columns = out[:written], tuple[Array, ...]()
        if self._columns:
            places = (indices & LOW).astype(np.int64)
            indices = (indices >> np.uint64(32)).astype(np.uint32)
            indices, columns = self._with_columns(rows, indices, places, a.size, lengths)
        return self._block(rows.first, indices, columns, lengths)

    def reuse(self, block: RowBlock) -> None:
        """Take back the memory of a block that is written."""
        self._keys.put(block.indices)
        self._planes.put(block.planes)

    def _with_columns(self, rows: Rows, indices: Array, places: Array, num_a: int, lengths: Array) -> tuple[Array, Records]:
        """Bring the columns into the order of the rows, and treat entries of the same ends; `lengths` are made those that remain."""
        columns = [self._column(name, rows)[places] for name in self._columns]
        same = np.zeros(indices.size + 1, bool)
        same[1:-1] = indices[1:] == indices[:-1]
        begin = np.cumsum(lengths) - lengths
        same[begin] = False
        kept = np.ones(indices.size, bool)
        for start, stop in _groups(same):
            tied = start + np.flatnonzero(same[start:stop] | same[start + 1 : stop + 1])
            if tied.size:
                row = np.searchsorted(begin, tied, side="right") - 1
                self._treat(tied, row, indices, places, num_a, columns, kept)
                found, gone = np.unique(row[~kept[tied]], return_counts=True)
                lengths[found] -= gone
        if kept.all():
            return indices, tuple(columns)
        return indices[kept], tuple(values[kept] for values in columns)

    def _column(self, name: str, rows: Rows) -> Array:
        """Return a column of the rows of both sides, one behind the other."""
        parts = []
        for side, *ends in zip(self._sides, rows.begin, rows.end, strict=True):
            values = side.rows.read(f"{self._group}/{name}", *ends)[0]
            parts.append(side.codes[name][values] if name in side.codes else values)
        return np.concatenate(parts)

    def _treat(self, tied: Array, row: Array, indices: Array, places: Array, num_a: int, columns: list[Array], kept: Array) -> None:
        """Treat entries of the same ends: those that remain are `kept`, with their columns.

        Parameters
        ----------
        tied, row : (n,) int64
            Their places, whole groups of them, ascending, and their rows.
        indices, places, num_a, columns, kept
            Of all entries: neighbours, places in what was read (so many of the first side), columns in order, and what remains.
        """
        payload = self._job.payload
        keys = (row.astype(np.uint64) << np.uint64(32)) | indices[tied]
        beside = [values[tied] for values in columns]
        if payload.needs_rows:
            beside.insert(len(payload.extra), (places[tied] >= num_a).astype(np.uint64))
        records = sort_records((keys, *beside))
        reduced = drop_duplicates(records, payload)
        starts = group_starts(records, len(payload.extra)) if payload.duplicates != "keep" else np.arange(tied.size)
        kept[tied] = False
        kept[tied[starts]] = True
        for values, better in zip(columns, reduced[1:], strict=True):
            values[tied[starts]] = better

    def _block(self, first: int, indices: Array, columns: Records, lengths: Array) -> RowBlock:
        plane_offsets, planes, loops = np.zeros(self._num_planes + 1, np.int64), np.empty(0, np.uint32), np.empty(0, np.uint32)
        if self._num_planes:
            planes = self._planes.get(int(np.minimum(lengths, self._num_planes).sum()))
            deal_planes(indices, lengths, 0, plane_offsets, planes)
        if self._has_loops:
            loops = indices[indices == np.repeat(np.arange(first, first + lengths.size), lengths)]
        indptr = np.cumsum(lengths) - lengths
        if self._job.payload.leaves_parallel and not self.has_parallel:
            same = indices[1:] == indices[:-1]
            same[indptr[(indptr > 0) & (indptr < indices.size)] - 1] = False  # in different rows
            if same.any():  # another thread may have found some meanwhile
                self.has_parallel = True
        return RowBlock(
            indices,
            columns,
            (indptr,),
            planes.astype(index_dtype(self._classes.num_vertices), copy=False),
            plane_offsets,
            loops,
            loops.size,
        )
