"""Rows so long that one thread would hold up the others: what a pull has put off of them is looked through in parts, by all threads.

In: the rows that `oocgraph.kernels.cpu.pull_heads` and `pull_tails` have put off. Out: their vertices are visited, or undecided. Of the
parts that have a hit the first one counts, so that parents do not depend on threads.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from oocgraph.engine.shard import Adjacency
from oocgraph.engine.state import SearchState
from oocgraph.kernels import cpu
from oocgraph.kernels.rows import NO_HIT, ChunkFiles, LongRows
from oocgraph.types import Array

Part = tuple[int, int, int]
"""Number of a row, first entry, and the one behind the last."""

Look = Callable[[Part, Array], tuple[int, int, int]]
"""Looks through a part, with a buffer; returns a neighbour in the frontier or -1, bytes read, and what `read_pages` returned."""


def look_through(
    state: SearchState, adjacency: Adjacency, long_rows: LongRows, files: ChunkFiles,
    run: Callable[[Look, Sequence[Part]], Sequence[tuple[int, int, int]]],
) -> int:  # fmt: skip
    """Look through what was put off; returns how many vertices that leaves undecided. `run` calls for all parts."""
    count = min(int(long_rows.count[0]), long_rows.hit.size)
    long_rows.count[0] = 0
    if not count:
        return 0
    vertex, first, stop, end = long_rows.place[:count].T
    parts = [
        (i, a, min(a + long_rows.limit, z)) for i, (a, z) in enumerate(zip(first.tolist(), stop.tolist(), strict=True))
        for a in range(a, z, long_rows.limit)
    ]  # fmt: skip

    def look(part: Part, buffer: Array) -> tuple[int, int, int]:
        result: tuple[int, int, int] = cpu.pull_part(
            *part, adjacency.resident, files, buffer, buffer.view(adjacency.resident.dtype), state.frontier, long_rows
        )
        return result

    neighbour = np.full(count, -1, np.int64)
    for (i, a, z), (y, _, _) in zip(parts, run(look, parts), strict=True):
        if y >= 0 and a <= long_rows.hit[i] < z:
            neighbour[i] = y
    found = long_rows.hit[:count] != NO_HIT
    new, rest = vertex[found], vertex[~found & (stop < end)]
    state.parent[new] = neighbour[found]
    state.levels[new] = state.marks.level
    for bitmap, vertices in ((state.visited, new), (state.undecided, rest)):
        np.bitwise_or.at(bitmap, vertices >> 6, np.uint64(1) << (vertices & 63).astype(np.uint64))
    return int(rest.size)
