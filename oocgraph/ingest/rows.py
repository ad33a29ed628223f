"""Step 6: sort each bin of entries and write the rows: indices, indptr, and the planes of the group that a pull walks.

In: bins of keys ``row << bits | col`` in store order. Out: the arrays of one group, appended in order.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from oocgraph.external_sort.oversize import Piece, RangedFiles, column_pieces, pieces, same_key
from oocgraph.external_sort.workers import Spare
from oocgraph.ingest.build_job import Job
from oocgraph.ingest.planes import Planes
from oocgraph.kernels.build import deal_planes, fill_row_starts, rows_with_entries, split_rows
from oocgraph.store import layout
from oocgraph.store.degrees import DegreeClasses
from oocgraph.store.records import Records, key_bits, sort_records
from oocgraph.store.writer import ArrayWriter
from oocgraph.types import Array, index_dtype

STARTS_ROWS = 1 << 18
"""Rows whose starts are made at a time where most have no entries."""


@dataclass(frozen=True, slots=True)
class RowBlock:
    """The entries of one piece, ready to be written; `indptr` in pieces."""

    indices: Array
    columns: Records
    indptr: Iterable[Array]
    planes: Array
    plane_offsets: Array
    loops: Array
    num_loops: int


@dataclass(frozen=True, slots=True)
class SparseStarts:
    """Where rows begin, most of which have no entries: those that have some, and the number of keys below each.

    Rows without entries may be any number more than keys: the sinks of a directed graph in degree order are one piece.
    """

    first: int
    stop: int
    offset: int
    num_keys: int
    rows: Array
    starts: Array

    def __iter__(self) -> Iterator[Array]:
        place = 0
        for first in range(self.first, self.stop, STARTS_ROWS):
            indptr = np.empty(min(STARTS_ROWS, self.stop - first), np.int64)
            place = fill_row_starts(self.rows, self.starts, first, self.offset, self.num_keys, place, indptr)
            yield indptr

    @property
    def lengths(self) -> Array:
        """Number of keys of rows, (n,) int64: first those of a row that began before, or 0."""
        if self.rows.size and int(self.rows[0]) < self.first:
            return np.diff(self.starts.astype(np.int64), append=self.num_keys)
        return np.diff(self.starts.astype(np.int64), prepend=0, append=self.num_keys)


def write_group(group: str, entries: RangedFiles, classes: DegreeClasses, job: Job, *, num_planes: int) -> tuple[int, int]:
    """Write one group; return its number of entries and of self-loops."""
    num_vertices = classes.num_vertices
    bits, dtype = key_bits(num_vertices), index_dtype(num_vertices)
    parts = _parts(pieces(entries, job.sizes.capacity, job.workers), job, num_vertices, bits)
    spare = Spare(dtype)  # memory of indices that are written

    def rows(part: _Part) -> RowBlock:
        offset, first, stop = part.offset, part.first_row, part.stop_row
        keys, *columns = _sorted_records(part, job, len(parts))
        is_sparse = stop - first > max(keys.size, STARTS_ROWS)
        indices, starts = spare.get(keys.size, offset), np.empty(0 if is_sparse else stop - first, np.int64)
        num_loops = split_rows(keys, np.uint64(bits), first, offset, indices, starts)
        indptr = _sparse_starts(keys, bits, first, stop, offset, dtype) if is_sparse else (starts,)
        loops = np.empty(0, dtype)
        if num_loops:
            loops = indices[(keys >> np.uint64(bits)) == indices]
        plane_offsets, planes = np.zeros(num_planes + 1, np.int64), np.empty(0, dtype)
        if num_planes and keys.size:
            planes = job.scratch.get("planes", keys.size, dtype)
            carry = offset - classes.row_start(int(keys[0]) >> bits)
            # the first is what is here of a row that began before
            lengths = indptr.lengths if isinstance(indptr, SparseStarts) else np.diff(starts, prepend=offset, append=offset + keys.size)
            deal_planes(indices, lengths, carry, plane_offsets, planes)
            planes = planes[: plane_offsets[-1]].copy()
        return RowBlock(indices, tuple(columns), indptr, planes, plane_offsets, loops, num_loops)

    target = GroupWriter(group, classes, job, num_planes)
    for block in job.results(f"write {group}", rows, parts):
        target.append(block)
        spare.put(block.indices)
    return target.finish()


def _sparse_starts(keys: Array, bits: int, first: int, stop: int, offset: int, dtype: np.dtype[Any]) -> SparseStarts:
    found, starts = np.empty(keys.size, dtype), np.empty(keys.size, np.uint32)
    count = rows_with_entries(keys, np.uint64(bits), found, starts)
    return SparseStarts(first, stop, offset, keys.size, found[:count], starts[:count])


class GroupWriter:
    """Writes the arrays of one group, block by block."""

    def __init__(self, group: str, classes: DegreeClasses, job: Job, num_planes: int) -> None:
        self._group, self._classes, self._job = group, classes, job
        self._dtype, self._plane_offsets = index_dtype(classes.num_vertices), classes.plane_offsets(num_planes)
        with_planes = group == layout.plane_group(job.directed) and job.options.vertex_order == "degree"
        self._planes = Planes(f"{group}/planes/indices", self._dtype, self._plane_offsets, job) if with_planes else None
        self._indices, self._indptr = (
            job.writer.create(f"{group}/{name}", kind) for name, kind in (("indices", self._dtype), ("indptr", np.int64))
        )
        self._columns = [job.writer.create(f"{group}/{name}", column) for name, column in job.payload.stored.items()]
        self._self_loops: ArrayWriter | None = None
        self.num_entries = self.num_loops = 0

    def append(self, block: RowBlock) -> None:
        """Write the next entries."""
        self._indices.append(block.indices)
        for column, values in zip(self._columns, block.columns, strict=True):
            column.append(values)
        for starts in block.indptr:
            self._indptr.append(starts)
        if self._planes is not None:
            self._planes.append(block.planes, block.plane_offsets)
        self.num_entries, self.num_loops = self.num_entries + block.indices.size, self.num_loops + block.num_loops
        if block.num_loops and self._group == "out":  # they ascend, as the rows do
            self._self_loops = self._self_loops or self._job.writer.create(layout.SELF_LOOPS, self._dtype)
            self._self_loops.append(block.loops)

    def _start_rows(self, stop: int) -> None:
        """Begin rows up to `stop` behind all entries."""
        while (missing := stop - self._indptr.length) > 0:
            self._indptr.append(np.full(min(missing, STARTS_ROWS), self.num_entries))

    def finish(self) -> tuple[int, int]:
        """End after the last block; return the number of entries and of self-loops."""
        self._start_rows(self._classes.num_vertices + 1)
        if self._planes is not None:
            self._planes.finish()
            writer, classes = self._job.writer, self._classes
            writer.write(f"{self._group}/planes/offsets", self._plane_offsets)
            writer.write(f"{self._group}/degrees/value", classes.value)
            writer.write(f"{self._group}/degrees/first_vertex", classes.first_vertex[:-1])
        return self.num_entries, self.num_loops


@dataclass(frozen=True, slots=True)
class _Part:
    """What one thread sorts at a time: a piece, or a share of one that is a single entry repeated too often. It begins some rows.

    A piece of `column_pieces` has the `key`, others none.
    """

    piece: Piece[RangedFiles]
    offset: int
    length: int
    first_row: int
    stop_row: int
    key: int | None


def _parts(all_pieces: Sequence[Piece[RangedFiles]], job: Job, num_rows: int, bits: int) -> list[_Part]:
    """Cut what is sorted. Rows between two pieces, of which there are no keys, are begun by the second; those behind the last by nobody."""
    parts = []
    offset, row, capacity = 0, 0, job.sizes.capacity
    for piece in all_pieces:
        stop, key = min(num_rows, -(-piece.high >> bits)), None
        in_order: Sequence[Piece[RangedFiles]] = [piece]
        if piece.count > capacity and piece.files.columns:
            in_order, key = column_pieces(piece, capacity, job.scratch), piece.low
        for own in in_order:
            step = min(max(1, own.count), capacity)
            for skip in range(0, max(1, own.count), step):
                before, row = row, max(row, stop)
                parts.append(_Part(own, offset + skip, min(step, own.count - skip), before, row, key))
            offset += own.count
    return parts


def _sorted_records(part: _Part, job: Job, num_parts: int) -> Records:
    piece = part.piece
    if part.length < piece.count:  # they are all the same
        columns = next(iter(piece.files.blocks(piece.index, 1)))[1:] if piece.files.columns else ()
        keys = np.full(part.length, piece.low if part.key is None else part.key, np.uint64)
        return (keys, *(np.full(part.length, values[0]) for values in columns))
    records = piece.files.read(piece.index, job.scratch)
    piece.files.remove(piece.index)
    if len(records) > 1:
        records = sort_records(records)
        return records if part.key is None else same_key(records, part.key)
    job.sort(records[0], num_parts)
    return records
