"""Step 6: sort each bin of entries and write the rows: indices, indptr, and the planes of the group that a pull walks.

In: bins of keys ``row << bits | col`` in store order. Out: the arrays of one group, appended in order.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from oocgraph.external_sort.oversize import Piece, RangedFiles, pieces
from oocgraph.external_sort.workers import Spare
from oocgraph.ingest.build_job import Job
from oocgraph.ingest.planes import new_planes
from oocgraph.kernels.build import deal_planes, split_rows
from oocgraph.store import layout
from oocgraph.store.degrees import DegreeClasses
from oocgraph.store.records import Records, key_bits, sort_records
from oocgraph.store.writer import ArrayWriter
from oocgraph.types import Array, index_dtype


@dataclass(frozen=True, slots=True)
class RowBlock:
    """The entries of one piece, ready to be written."""

    indices: Array
    columns: Records
    indptr: Array
    planes: Array
    plane_offsets: Array
    loops: Array
    num_loops: int


def write_group(group: str, entries: RangedFiles, classes: DegreeClasses, job: Job, *, num_planes: int) -> tuple[int, int]:
    """Write one group; return its number of entries and of self-loops."""
    num_vertices = classes.num_vertices
    bits, dtype = key_bits(num_vertices), index_dtype(num_vertices)
    parts = _parts(pieces(entries, job.sizes.capacity, job.workers), job.sizes.capacity)
    spare = Spare(dtype)  # memory of indices that are written

    def rows(part: _Part) -> RowBlock:
        piece, offset = part.piece, part.offset
        keys, *columns = _sorted_records(part, job, len(parts))
        if part.skip:
            first, stop = 0, 0
        else:
            first, stop = -(-piece.low >> bits), min(num_vertices, -(-piece.high >> bits))
        indices, indptr = spare.get(keys.size, offset), np.empty(max(0, stop - first), np.int64)
        num_loops = split_rows(keys, np.uint64(bits), first, offset, indices, indptr)
        loops = np.empty(0, dtype)
        if num_loops:
            loops = indices[(keys >> np.uint64(bits)) == indices]
        plane_offsets, planes = np.zeros(num_planes + 1, np.int64), np.empty(0, dtype)
        if num_planes and keys.size:
            planes = job.scratch.get("planes", keys.size, dtype)
            carry = offset - classes.row_start(int(keys[0]) >> bits)
            lengths = np.diff(indptr, prepend=offset, append=offset + keys.size)  # the first is what is here of a row that began before
            deal_planes(indices, lengths, carry, plane_offsets, planes)
            planes = planes[: plane_offsets[-1]].copy()
        return RowBlock(indices, tuple(columns), indptr, planes, plane_offsets, loops, num_loops)

    target = GroupWriter(group, classes, job, num_planes)
    for block in job.results(f"write {group}", rows, parts):
        target.append(block)
        spare.put(block.indices)
    return target.finish()


class GroupWriter:
    """Writes the arrays of one group, block by block."""

    def __init__(self, group: str, classes: DegreeClasses, job: Job, num_planes: int) -> None:
        self._group, self._classes, self._job = group, classes, job
        self._dtype, self._plane_offsets = index_dtype(classes.num_vertices), classes.plane_offsets(num_planes)
        with_planes = group == layout.plane_group(job.directed) and job.options.vertex_order == "degree"
        self._planes = new_planes(f"{group}/planes/indices", self._dtype, self._plane_offsets, job) if with_planes else None
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
        self._indptr.append(block.indptr)
        if self._planes is not None:
            self._planes.append(block.planes, block.plane_offsets)
        self.num_entries, self.num_loops = self.num_entries + block.indices.size, self.num_loops + block.num_loops
        if block.num_loops and self._group == "out":  # they ascend, as the rows do
            self._self_loops = self._self_loops or self._job.writer.create(layout.SELF_LOOPS, self._dtype)
            self._self_loops.append(block.loops)

    def finish(self) -> tuple[int, int]:
        """End after the last block; return the number of entries and of self-loops."""
        self._indptr.append(np.array([self.num_entries]))
        if self._planes is not None:
            self._planes.finish()
            writer, classes = self._job.writer, self._classes
            writer.write(f"{self._group}/planes/offsets", self._plane_offsets)
            writer.write(f"{self._group}/degrees/value", classes.value)
            writer.write(f"{self._group}/degrees/first_vertex", classes.first_vertex[:-1])
        return self.num_entries, self.num_loops


@dataclass(frozen=True, slots=True)
class _Part:
    """What one thread sorts at a time: a piece, or a share of one that is a single entry repeated too often."""

    piece: Piece[RangedFiles]
    offset: int
    skip: int
    length: int


def _parts(all_pieces: Sequence[Piece[RangedFiles]], capacity: int) -> list[_Part]:
    parts = []
    offset = 0
    for piece in all_pieces:
        step = max(1, piece.count if piece.count <= capacity or piece.files.columns else capacity)
        for skip in range(0, max(1, piece.count), step):
            parts.append(_Part(piece, offset + skip, skip, min(step, piece.count - skip)))
        offset += piece.count
    return parts


def _sorted_records(part: _Part, job: Job, num_parts: int) -> Records:
    piece = part.piece
    if part.length < piece.count:
        return (np.full(part.length, piece.low, np.uint64),)
    records = piece.files.read(piece.index, job.scratch)
    piece.files.remove(piece.index)
    if len(records) > 1:
        return sort_records(records)
    job.sort(records[0], num_parts)
    return records
