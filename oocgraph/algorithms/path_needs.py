"""What counting shortest paths needs: memory by name, kernels, lists (`oocgraph.algorithms.path_counts`)."""

from __future__ import annotations

import numpy as np

from oocgraph.algorithms.lone_paths import lone_bytes, lone_kernels
from oocgraph.algorithms.path_counts import UNSEEN, most_listed
from oocgraph.algorithms.path_rows import rows_bytes
from oocgraph.engine.sweeps import Needs
from oocgraph.kernels import betweenness as kernels
from oocgraph.kernels.betweenness import LANES, WORD
from oocgraph.kernels.piece_rows import empty_pieces
from oocgraph.sparse.piece_table import table_bytes
from oocgraph.store.graph import CSRStore


def path_needs(store: CSRStore, vectors: dict[str, int]) -> Needs:
    """Return what an algorithm needs that adds up by `PathCounts`, and holds `vectors` beside."""
    n = store.num_rows
    numbers, words, paths, level = np.empty(0), np.empty(0, WORD), np.empty((0, LANES)), np.empty((LANES, 0), np.uint16)
    pieces, listed, ends = empty_pieces(store.index_dtype), np.empty((2, 0), np.int64), np.empty(0, np.int64)
    return Needs(
        vectors={
            "numbers of paths": 8 * LANES * n, "levels": 2 * LANES * n, "lanes": 3 * n, "centrality": 8 * n,
            "listed vertices": 2 * 9 * most_listed(n), "sizes of levels": 20 * UNSEEN, "tables of pieces": 2 * table_bytes(n),
            "levels by rows": rows_bytes(n), **vectors,
        },
        result_bytes=8 * n, lists=("in", "out"), spare_bytes=lone_bytes(store), selects=True,
        kernels=[
            (kernels.count_paths, words, paths, words, words, level, 0), (kernels.add_dependencies, words, paths, words, numbers),
            (kernels.mark_neighbours, words, words, words),
        ],
        vertex_kernels=[
            (kernels.find_level, level, 0, words, 0, 0), (kernels.invert_last, words, paths, 0, 0),
            (kernels.find_huge, words, paths, 0, 0), (kernels.scale_down, words, paths, WORD(0), 0, 0),
            (kernels.count_ends, words, WORD(0), numbers, 0, 0), (kernels.rescale, numbers, 0.0, 0, 0),
            (kernels.list_front, words, ends), (kernels.list_levels, level, 0, ends, words, ends),
            (kernels.count_listed, pieces, pieces, words, paths, words, words, level, 0, listed, 0, listed, 0),
            (kernels.mark_read, ends, ends, pieces.kind, words, words, words, ends, 0),
            (kernels.count_read, ends, ends, pieces.kind, words, paths, words, words, level, 0),
            (kernels.add_read, ends, words, ends, pieces.kind, words, paths, numbers),
            (kernels.add_listed, pieces, words, paths, words, numbers, ends, words, ends, 0), *lone_kernels(store),
        ],
    )  # fmt: skip
