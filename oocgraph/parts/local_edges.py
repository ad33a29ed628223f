"""The edges of one part of a partitioned graph: the first in memory, as many as fit, the rest read when rows that have them are expanded.

In: the store of a part and how many of its edges may be held. Out: `LocalEdges.pieces`, which calls a kernel with arrays of edges that
hold those of some rows. Of the rest exactly the pages of the rows asked for are read (`oocgraph.store.row_gatherer`), coalesced, by host
threads. A search asks for each row once, but for a page as often as rows that it holds are in frontiers of different levels: of a
Kronecker graph of scale 20, in 2 x 2 parts, a search reads 1.66 times all edge bytes with none held, 1.35 with a quarter, 0.89 with half
(what is held was read before).
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

import numpy as np

from oocgraph.engine.resident import LOAD_THREADS, for_loading, read_parallel
from oocgraph.pool import Pool
from oocgraph.store.arrays import PlainArray
from oocgraph.store.gather import EdgeFiles, Gatherer
from oocgraph.store.graph import CSRStore
from oocgraph.store.row_gatherer import EdgeSource, RowGatherer
from oocgraph.types import Array

STAGED_EDGES = 1 << 20
"""Edges read at once that are not held."""

BATCH_ROWS = 1 << 15
"""Rows whose edges are looked for at once."""

GAP_PAGES = 1
"""Pages read though not needed, to join two reads."""

Expand = Callable[[Array, Array, Array, bool, Array], None]
"""Called with rows, where their edges begin and end, whether that is by row, and the edges."""


def staging_bytes(itemsize: int) -> int:
    """Bytes that one thread needs to expand rows whose edges are not all held: those that are read, and nine numbers for each row."""
    return STAGED_EDGES * itemsize + 9 * 8 * BATCH_ROWS


class LocalEdges:
    """Edges of one part.

    Parameters
    ----------
    store
        Store of the part.
    name
        Name of the array of its edges.
    indptr : (num_rows + 1,) int64
        Its row pointers.
    num_held
        Edges that are held: the first.
    gatherer
        Reads the others; None where there are none.

    Attributes
    ----------
    num_bytes_read : int
        Bytes requested of the part's files by searches.
    """

    def __init__(self, store: CSRStore, name: str, indptr: Array, *, num_held: int, gatherer: Gatherer | None) -> None:
        array = store.array(name)
        self.indptr, self.dtype, self.num_bytes_read = indptr, array.dtype.newbyteorder("="), 0
        self.all_resident = num_held == array.length
        self._gatherer, self._num_held_rows = gatherer, int(np.searchsorted(indptr[1:], num_held, "right"))
        with Pool(LOAD_THREADS, "oocgraph-load") as pool:
            held = read_parallel(for_loading(store).array(name), 0, num_held, pool)
        files = EdgeFiles(array, stream_direct=False) if isinstance(array, PlainArray) and not self.all_resident else None
        self._source = EdgeSource(held, files, None if self.all_resident or files is not None else array)

    def cut(self, rows: Array, max_ranges: int, min_edges: int) -> list[tuple[int, int]]:
        """Cut rows into ranges of about equal numbers of edges, for threads; one where edges have to be read."""
        if not self.all_resident or max_ranges < 2 or rows.size < 2:
            return [(0, rows.size)]
        ends = np.cumsum(self.indptr[rows.astype(np.int64) + 1] - self.indptr[rows])
        ranges = min(max_ranges, max(1, int(ends[-1]) // min_edges))
        at = [0, *np.searchsorted(ends, np.arange(1, ranges) * (int(ends[-1]) // ranges)).tolist(), rows.size]
        return [(a, z) for a, z in pairwise(at) if a < z]

    def pieces(self, rows: Array, expand: Expand, staging: Array | None) -> None:
        """Have all edges of rows expanded.

        Parameters
        ----------
        rows : (n,) uint32
            Ascending.
        expand
            Called for each array of edges that holds some.
        staging : (STAGED_EDGES,) index dtype
            Overwritten; not needed where all edges are held.
        """
        num_held = rows.size if self.all_resident else int(np.searchsorted(rows, rows.dtype.type(self._num_held_rows)))
        expand(rows[:num_held], self.indptr[:-1], self.indptr[1:], True, self._source.resident)
        for first in range(num_held, rows.size, BATCH_ROWS):
            assert staging is not None
            self._read_and_expand(rows[first : first + BATCH_ROWS], expand, staging)

    def _read_and_expand(self, rows: Array, expand: Expand, staging: Array) -> None:
        """Have the edges of some rows expanded, as many of them at once as are staged."""
        assert self._gatherer is not None
        start = self.indptr[rows]
        offset = np.zeros(rows.size + 1, np.int64)
        np.cumsum(self.indptr[1:][rows] - start, out=offset[1:])
        gather = RowGatherer(self._gatherer, self._source, start, offset, GAP_PAGES, False)
        for e0 in range(0, int(offset[-1]), staging.size):
            e1 = min(e0 + staging.size, int(offset[-1]))
            self.num_bytes_read += gather(e0, e1, staging[: e1 - e0])
            a, z = int(np.searchsorted(offset, e0, "right")) - 1, int(np.searchsorted(offset, e1))
            expand(rows[a:z], np.maximum(offset[a:z] - e0, 0), np.minimum(offset[a + 1 : z + 1], e1) - e0, False, staging)

    def close(self) -> None:
        """Close the files."""
        if self._source.files is not None:
            self._source.files.close()
        self._source = EdgeSource(np.empty(0, self.dtype))


__all__ = ["LocalEdges", "staging_bytes"]
