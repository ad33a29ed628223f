"""Step 5: rename both ends of every edge, and deal the entries to bins by their new row.

In: clean edges by provisional id, and the ranks. Out: for each group (``out``, and ``in`` when directed) bins of
keys ``row << bits | col``.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from oocgraph.ingest.bins import BinFiles
from oocgraph.ingest.build_job import Job
from oocgraph.ingest.build_plan import MAX_BINS
from oocgraph.ingest.dedupe import CleanEdges
from oocgraph.ingest.key_bins import balanced_bins
from oocgraph.ingest.oversize import Piece
from oocgraph.ingest.ranks import DegreeClasses
from oocgraph.kernels.build import relabel_both
from oocgraph.types import Array


def entry_bits(num_vertices: int) -> int:
    """Bits of a vertex number in the keys of entries."""
    return max(1, (num_vertices - 1).bit_length())


def entry_bins(classes: DegreeClasses, job: Job, *, num_entries: int, known: bool) -> Callable[[str], BinFiles]:
    """Return what opens the bins of a group: balanced by the degrees when they are `known`, otherwise by half."""
    bits = entry_bits(classes.num_vertices)
    scale, total = float(1 << bits), max(1.0, float(classes.num_entries))
    last = max(1, classes.num_vertices)

    def weights(keys: Array) -> Array:
        rows = keys.astype(np.float64) / scale
        exact = classes.entries_below(rows) / total
        return exact if known else exact + rows / last

    count = job.sizes.num_bins(num_entries, max_bins=MAX_BINS // 2 if job.directed else MAX_BINS)
    bins = balanced_bins(0, last << bits, count, weights)
    return lambda group: BinFiles(job.folder(f"entries-{group}"), bins)


def relabel(clean: CleanEdges, classes: DegreeClasses, job: Job) -> dict[str, BinFiles]:
    """Deal all entries; the clean edges are removed on the way."""
    bits = np.uint64(entry_bits(classes.num_vertices))
    rank = clean.degree.resident
    num_entries = clean.num_edges * (1 if job.directed else 2)
    forward = entry_bins(classes, job, num_entries=num_entries, known=job.undirected and job.vertex_order == "degree")("out")
    backward = entry_bins(classes, job, num_entries=num_entries, known=job.vertex_order == "degree")("in") if job.directed else forward

    def rename(piece: Piece) -> None:
        for (keys,) in piece.files.blocks(piece.index, job.sizes.block_rows):
            back = job.scratch.get("backward", keys.size, np.uint64)
            num_back = relabel_both(keys, np.uint64(clean.col_bits), rank, bits, job.undirected, keys, back)
            forward.append((keys,), job.scratch)
            backward.append((back[:num_back],), job.scratch)
        piece.files.remove(piece.index)

    for done, _ in enumerate(job.workers.ordered(rename, clean.pieces)):
        job.progress("relabel", done + 1, len(clean.pieces))
    return {"out": forward, "in": backward} if job.directed else {"out": forward}
