"""Loads the compiled kernels of a partitioned traversal; where the disk cache is cold they are compiled first, in a process of its own.

As `oocgraph.kernels.warm` does for a search, and for the same reason: a compiler would leave 100 MB behind in the process.
``python -m oocgraph.kernels.warm_traverse uint32 uint32`` fills the cache for the index dtypes of a graph and of its parts.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

from oocgraph.kernels import cpu, partition, pieces, traverse
from oocgraph.kernels.load import compile_elsewhere
from oocgraph.types import Progress, ignore_progress

KERNELS = (
    "expand", "count_places", "pack_places", "apply_list", "apply_bitmap", "receive_list", "receive_bitmap", "spread", "own_rows",
    "count_row_edges",
)  # fmt: skip

PIECES_KERNELS = ("cut_pieces", "mark_blocks")


def load_traverse_kernels(graph_dtype: str, local_dtype: str, progress: Progress = ignore_progress) -> None:
    """Bring every kernel of a partitioned traversal into memory, compiling what is not cached."""
    folder = Path(traverse.expand.stats.cache_path)
    patterns = [f"traverse.{name}-*.nbi" for name in KERNELS] + [f"pieces.{name}-*.nbi" for name in PIECES_KERNELS]
    if not all(any(folder.glob(pattern)) for pattern in patterns):
        progress("compiling kernels (once)", 0, 1)
        compile_elsewhere("oocgraph.kernels.warm_traverse", graph_dtype, local_dtype)
        progress("compiling kernels (once)", 1, 1)
    call_traverse_kernels(graph_dtype, local_dtype)


def call_traverse_kernels(graph_dtype: str, local_dtype: str) -> None:
    """Call every kernel once on a part of one master and one mirror with an edge between them."""
    ids, edges = np.zeros(2, graph_dtype), np.ones(1, local_dtype)
    queue, places, words = np.zeros(2, np.uint32), np.zeros(64, graph_dtype), np.zeros(1, np.uint64)
    indptr, found, first = np.array([0, 1, 1]), np.zeros(2, np.int64), np.array([0, 64])
    seen = np.zeros(1, np.uint64)
    rows = queue[:1]
    for begin, end, by_row in ((indptr[:-1], indptr[1:], True), (indptr[:1].copy(), indptr[1:2].copy(), False)):
        traverse.expand(
            rows, 0, 1, begin, end, by_row, edges, 1, seen, ids, ids[:1].copy(), queue.copy(), rows, places, queue.copy(), found.copy()
        )
    traverse.count_places(rows, first, found[:1])
    traverse.pack_places(rows, first, np.zeros(1, np.bool_), np.zeros(1, np.int64), queue.copy(), words)
    traverse.apply_list(rows, ids[:1], rows, 1, 2, seen, ids, queue.copy(), found)
    traverse.apply_bitmap(words, ids[:0], rows, 1, 2, seen, ids, queue.copy(), found)
    traverse.receive_list(rows[:0], rows, seen, queue, 0)
    traverse.receive_bitmap(words, rows, seen, queue, 0)
    traverse.spread(rows, indptr, rows, queue.copy())
    traverse.own_rows(rows, 1, indptr, queue, 0)
    traverse.count_row_edges(rows, indptr)
    held, slots = np.zeros((1, 3), np.int64), np.zeros(1, np.int32)
    pieces.cut_pieces(rows, np.zeros(2, np.int64), indptr, slots, 10, held, held.copy(), 10, np.zeros(3, np.int64))
    pieces.mark_blocks(rows, indptr, slots, 10, np.zeros(1, np.int64))
    cpu.mark_vertices(queue, 1, words)
    cpu.list_vertices(words, queue)
    partition.take_marked(words, places, ids)


if __name__ == "__main__":
    call_traverse_kernels(*sys.argv[1:])
