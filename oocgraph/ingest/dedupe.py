"""Step 2: sort each bin of edges by provisional id, drop duplicates and self-loops, count degrees.

In: bins of raw edges, each edge once. Out: the same edges, clean (sorted, without duplicates); the degree of each vertex; and
which vertices had a dropped self-loop: with no other edge they are isolated, but part of the graph.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from oocgraph.external_sort.bins import BinFiles
from oocgraph.external_sort.key_bins import one_bin
from oocgraph.external_sort.oversize import Piece, column_pieces, pieces, same_key
from oocgraph.external_sort.vertex_file import VertexFile
from oocgraph.ingest.build_job import Job
from oocgraph.ingest.degrees import DegreeCounter
from oocgraph.kernels.build import compact_keys
from oocgraph.store.records import Records, clean_records, has_repeated, reduce_blocks, sort_records
from oocgraph.types import Array

STORED_BELOW = 0.75
"""Share of a bin's edges below which those that remain are written: to read and sort them all again would take more."""


@dataclass(frozen=True, slots=True)
class CleanPiece:
    """Edges of one range of keys, clean.

    Attributes
    ----------
    piece
        Where they are.
    count
        Number of edges.
    is_stored
        Whether the file holds them as they are; otherwise it is as it was, and is cleaned again whenever it is read.
    has_parallel
        Whether some have the same ends, as far as duplicates or columns leave that open.
    """

    piece: Piece[BinFiles]
    count: int
    is_stored: bool
    has_parallel: bool = False

    def remove(self) -> None:
        """Delete the file, which is not needed any more."""
        self.piece.files.remove(self.piece.index)


@dataclass(frozen=True, slots=True)
class CleanEdges:
    """Edges by provisional id, each once.

    Attributes
    ----------
    pieces
        Sorted keys ``row << col_bits | col``, and the columns.
    col_bits
        Bits of a provisional id.
    degree : VertexFile of uint32
        Length of the list that a pull walks: all entries when undirected, entries of ``in/`` when directed.
    has_out : VertexFile of uint8, or None
        Directed only: whether the vertex has an out-edge.
    loops : BinFiles
        One bin: vertices with a dropped self-loop, ascending.
    """

    pieces: list[CleanPiece]
    col_bits: int
    degree: VertexFile
    has_out: VertexFile | None
    loops: BinFiles

    @property
    def num_edges(self) -> int:
        """Number of edges, an undirected one once."""
        return sum(piece.count for piece in self.pieces)

    @property
    def has_parallel(self) -> bool:
        """Whether several edges have the same ends."""
        return any(piece.has_parallel for piece in self.pieces)

    def blocks(self, piece: CleanPiece, job: Job) -> Iterator[Records]:
        """Iterate over the edges of a piece, ascending; arrays are valid until the next block."""
        if piece.is_stored:
            yield from piece.piece.files.blocks(piece.piece.index, job.sizes.block_rows)
            return
        (keys,) = piece.piece.files.read(piece.piece.index, job.scratch)
        keys, _ = _clean_keys(keys, job, num_pieces=len(self.pieces), col_bits=self.col_bits)
        for start in range(0, keys.size, job.sizes.block_rows):
            yield (keys[start : start + job.sizes.block_rows],)

    def close(self) -> None:
        """Free what holds a number for each vertex."""
        for file in (self.degree, self.has_out):
            if file is not None:
                file.close()


def clean_edges(raw: BinFiles, job: Job, *, num_ids: int, col_bits: int, codes: dict[int, Array]) -> CleanEdges:
    """Clean every bin; `codes` maps the provisional codes of string columns, by position, to final ones."""
    counter = DegreeCounter(job, num_ids=num_ids, col_bits=col_bits)
    loops = BinFiles(job.folder("loops"), one_bin(num_ids))

    all_pieces = pieces(raw, job.sizes.capacity, job.workers)
    is_read_often = job.options.vertex_order in ("auto", "locality")

    def clean(piece: Piece[BinFiles]) -> tuple[CleanPiece, Array]:
        if piece.count > job.sizes.capacity:
            return _clean_repeated(piece, counter, job, col_bits=col_bits, codes=codes)
        num_read, records = piece.count, piece.files.read(piece.index, job.scratch)
        records, looped = _clean_records(records, job, num_pieces=len(all_pieces), col_bits=col_bits, codes=codes)
        count, has_parallel = records[0].size, job.payload.leaves_parallel and has_repeated(records[0])
        counter.count(records[0])
        is_stored = bool(piece.files.columns) or is_read_often or count < STORED_BELOW * num_read
        if is_stored:
            piece = Piece(piece.files.retyped(job.payload.stored.values()), piece.index)
            piece.files.replace(piece.index, records, job.scratch)
        else:
            piece.files.close_bin(piece.index)
        return CleanPiece(piece, count, is_stored, has_parallel), looped.copy()

    done = []
    for piece, looped in job.results("sort edges", clean, all_pieces):
        loops.append((looped,), job.scratch)
        done.append(piece)
    degree, has_out = counter.finish()
    return CleanEdges(done, col_bits, degree, has_out, loops)


def _clean_records(records: Records, job: Job, *, num_pieces: int, col_bits: int, codes: dict[int, Array]) -> tuple[Records, Array]:
    """Sort one of so many pieces, and drop what is to be dropped; without columns in place."""
    keys, *columns = records
    if not columns:
        keys, looped = _clean_keys(keys, job, num_pieces=num_pieces, col_bits=col_bits)
        return (keys,), looped
    columns = [codes[at][values] if at in codes else values for at, values in enumerate(columns)]
    return clean_records((keys, *columns), job.payload, col_bits, drop_loops=not job.options.keep_self_loops)


def _clean_keys(keys: Array, job: Job, *, num_pieces: int, col_bits: int) -> tuple[Array, Array]:
    """Sort keys and drop what is to be dropped, in place; returns the vertices of dropped self-loops, too."""
    job.sort(keys, num_pieces)
    drop_loops = not job.options.keep_self_loops
    looped = job.scratch.get("loops", keys.size if drop_loops else 0, np.uint64)
    kept, num_looped = compact_keys(keys, np.uint64(col_bits), job.payload.duplicates != "keep", drop_loops, looped)
    return keys[:kept], looped[:num_looped]


def _clean_repeated(
    piece: Piece[BinFiles], counter: DegreeCounter, job: Job, *, col_bits: int, codes: dict[int, Array]
) -> tuple[CleanPiece, Array]:
    """Clean a piece that is one edge, repeated more often than fits in memory."""
    low = np.uint64(piece.low)
    vertex = np.array([low & np.uint64((1 << col_bits) - 1)], np.uint64)
    if (low >> np.uint64(col_bits)) == vertex[0] and not job.options.keep_self_loops:
        piece.files.replace(piece.index, (np.empty(0, np.uint64),), job.scratch)
        return CleanPiece(piece, 0, True), vertex
    if piece.files.columns:
        cleaned = Piece(piece.files.retyped(job.payload.stored.values()), piece.index)
        sorted_pieces = column_pieces(piece, job.sizes.capacity // 2, job.scratch, codes=codes)
        cleaned.files.counts[piece.index] = 0
        for records in reduce_blocks(_ascending(sorted_pieces, piece.low, job), job.payload):
            counter.count(records[0])
            cleaned.files.append_to(piece.index, records, job.scratch)
        cleaned.files.close_bin(piece.index)
        return CleanPiece(cleaned, cleaned.count, True, cleaned.count > 1), vertex[:0]
    if job.payload.duplicates != "keep":
        piece.files.replace(piece.index, (np.array([low]),), job.scratch)
    for (keys,) in piece.files.blocks(piece.index, job.sizes.capacity):
        counter.count(keys)
    return CleanPiece(piece, piece.count, True, piece.count > 1 and job.payload.duplicates == "keep"), vertex[:0]


def _ascending(sorted_pieces: Sequence[Piece[BinFiles]], key: int, job: Job) -> Iterator[Records]:
    """Iterate over the records of `column_pieces`, ascending."""
    for piece in sorted_pieces:
        if piece.count <= job.sizes.capacity // 2:
            yield same_key(sort_records(piece.files.read(piece.index, job.scratch)), key)
        else:  # they are all the same
            yield from (same_key(records, key) for records in piece.files.blocks(piece.index, job.sizes.capacity // 4))
        piece.files.remove(piece.index)
