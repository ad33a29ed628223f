"""Step 2: sort each bin of edges by provisional id, drop duplicates and self-loops, count degrees.

In: bins of raw edges, each edge once. Out: the same edges, clean (sorted, without duplicates); the degree of each vertex; and
which vertices had a dropped self-loop: with no other edge they are isolated, but part of the graph.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from oocgraph.errors import BudgetError
from oocgraph.external_sort.bins import BinFiles
from oocgraph.external_sort.key_bins import one_bin
from oocgraph.external_sort.oversize import Piece, pieces
from oocgraph.external_sort.vertex_file import VertexFile
from oocgraph.ingest.build_job import Job
from oocgraph.ingest.degrees import DegreeCounter
from oocgraph.kernels.build import compact_keys
from oocgraph.memory import format_bytes
from oocgraph.store.records import Records, clean_records
from oocgraph.types import Array


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

    pieces: list[Piece]
    col_bits: int
    degree: VertexFile
    has_out: VertexFile | None
    loops: BinFiles

    @property
    def num_edges(self) -> int:
        """Number of edges, an undirected one once."""
        return sum(piece.count for piece in self.pieces)

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

    def clean(piece: Piece) -> tuple[Piece, Array]:
        if piece.count > job.sizes.capacity:
            return _clean_repeated(piece, counter, job, col_bits=col_bits)
        records = piece.files.read(piece.index, job.scratch)
        records, looped = _clean_records(records, job, num_pieces=len(all_pieces), col_bits=col_bits, codes=codes)
        counter.count(records[0])
        piece = Piece(piece.files.retyped(job.payload.stored.values()), piece.index)
        piece.files.replace(piece.index, records, job.scratch)
        return piece, looped.copy()

    done = []
    for piece, looped in job.results("sort edges", clean, all_pieces):
        loops.append((looped,), job.scratch)
        done.append(piece)
    degree, has_out = counter.finish()
    return CleanEdges(done, col_bits, degree, has_out, loops)


def _clean_records(records: Records, job: Job, *, num_pieces: int, col_bits: int, codes: dict[int, Array]) -> tuple[Records, Array]:
    """Sort one of so many pieces, and drop what is to be dropped; without columns in place."""
    keys, *columns = records
    drop_loops = not job.options.keep_self_loops
    if not columns:
        job.sort(keys, num_pieces)
        looped = job.scratch.get("loops", keys.size if drop_loops else 0, np.uint64)
        kept, num_looped = compact_keys(keys, np.uint64(col_bits), job.payload.duplicates != "keep", drop_loops, looped)
        return (keys[:kept],), looped[:num_looped]
    columns = [codes[at][values] if at in codes else values for at, values in enumerate(columns)]
    return clean_records((keys, *columns), job.payload, col_bits, drop_loops=drop_loops)


def _clean_repeated(piece: Piece, counter: DegreeCounter, job: Job, *, col_bits: int) -> tuple[Piece, Array]:
    """Clean a piece that is one edge, repeated more often than fits in memory."""
    low = np.uint64(piece.low)
    if job.payload.binned:
        raise BudgetError(
            f"one edge occurs {piece.count:,} times with columns, more than fit in the memory budget "
            f"{format_bytes(job.budget.limit_bytes)} at once ({job.sizes.capacity:,}); raise memory_budget"
        )
    vertex = np.array([low & np.uint64((1 << col_bits) - 1)], np.uint64)
    if (low >> np.uint64(col_bits)) == vertex[0] and not job.options.keep_self_loops:
        piece.files.replace(piece.index, (np.empty(0, np.uint64),), job.scratch)
        return piece, vertex
    if job.payload.duplicates != "keep":
        piece.files.replace(piece.index, (np.array([low]),), job.scratch)
    for (keys,) in piece.files.blocks(piece.index, job.sizes.capacity):
        counter.count(keys)
    return piece, np.empty(0, np.uint64)
