"""The kernels of a partitioned traversal, with arguments of the types that it calls them with; brings them into memory.

These depend on the index dtypes of a graph and of its parts.
"""

from __future__ import annotations

import numpy as np

from oocgraph.compiled.load import Call, load_kernels
from oocgraph.kernels import cpu, partition, traverse
from oocgraph.types import Progress, ignore_progress


def load_traverse_kernels(graph_dtype: str, local_dtype: str, progress: Progress = ignore_progress) -> None:
    """Bring every kernel of a partitioned traversal into memory, compiling what is not cached."""
    load_kernels(traverse_calls(graph_dtype, local_dtype), progress)


def traverse_calls(graph_dtype: str, local_dtype: str) -> list[Call]:
    """Return every kernel."""
    ids, edges, places = np.zeros(2, graph_dtype), np.ones(1, local_dtype), np.zeros(64, graph_dtype)
    rows, words, numbers, flags = np.zeros(2, np.uint32), np.zeros(1, np.uint64), np.zeros(2, np.int64), np.zeros(1, np.bool_)
    return [
        (traverse.expand, (rows, 0, 1, numbers, numbers, True, edges, 1, words, ids, ids, rows, rows, places, rows, numbers)),
        (traverse.count_places, (rows, numbers, numbers)),
        (traverse.pack_places, (rows, numbers, flags, numbers, rows, words)),
        (traverse.apply_list, (rows, ids, rows, 1, 2, words, ids, rows, numbers)),
        (traverse.apply_bitmap, (words, ids, rows, 1, 2, words, ids, rows, numbers)),
        (traverse.receive_list, (rows, rows, words, rows, 0)),
        (traverse.receive_bitmap, (words, rows, words, rows, 0)),
        (traverse.spread, (rows, numbers, rows, rows)),
        (traverse.own_rows, (rows, 1, numbers, rows, 0)),
        (traverse.count_row_edges, (rows, numbers)),
        (cpu.mark_vertices, (rows, 1, words)),
        (cpu.list_vertices, (words, rows)),
        (partition.take_marked, (words, places, ids)),
    ]
