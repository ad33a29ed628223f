"""Step 2: sort each bin of edges by provisional id, drop duplicates and self-loops, count degrees.

In: bins of raw edges, each edge once. Out: the same edges, clean (sorted, without duplicates); the degree of each vertex; and
which vertices had a dropped self-loop: with no other edge they are isolated, but part of the graph.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass

import numpy as np

from oocgraph.ingest.bins import BinFiles
from oocgraph.ingest.build_job import Job
from oocgraph.ingest.key_bins import one_bin
from oocgraph.ingest.oversize import Piece, pieces
from oocgraph.ingest.vertex_file import VertexFile
from oocgraph.kernels.build import add_degrees, compact_keys
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


def clean_edges(raw: BinFiles, job: Job, *, num_ids: int, col_bits: int) -> CleanEdges:
    """Clean every bin."""
    in_memory = num_ids <= job.sizes.resident_ids
    degree = VertexFile(job.folder("degree"), num_ids, np.uint32, in_memory=in_memory)
    has_out = VertexFile(job.folder("has-out"), num_ids, np.uint8, in_memory=in_memory) if job.directed else None
    flags = has_out.resident if has_out is not None and has_out.resident is not None else np.empty(0, np.uint8)
    lock = threading.Lock()
    drop_duplicates, drop_loops = job.duplicates != "keep", not job.keep_self_loops
    loops = BinFiles(job.folder("loops"), one_bin(num_ids))

    def clean(piece: Piece) -> tuple[Piece, Array]:
        (keys,) = piece.files.read(piece.index, job.scratch)
        keys.sort()
        looped = job.scratch.get("loops", keys.size if drop_loops else 0, np.uint64)
        kept, num_looped = compact_keys(keys, np.uint64(col_bits), drop_duplicates, drop_loops, looped)
        keys = keys[:kept]
        with lock:
            add_degrees(keys, np.uint64(col_bits), job.undirected, degree.resident, flags)
        piece.files.replace(piece.index, (keys,))
        return piece, looped[:num_looped].copy()

    done = []
    ready = pieces(raw, job.sizes.capacity, job.workers)
    for piece, looped in job.workers.ordered(clean, ready):
        loops.append((looped,), job.scratch)
        done.append(piece)
        job.progress("sort edges", len(done), len(ready))
    return CleanEdges(done, col_bits, degree, has_out, loops)
