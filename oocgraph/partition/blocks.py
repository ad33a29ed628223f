"""The blocks of whole rows in which a graph is read: contiguous ranges of about equal weight, one for each reader, cut into blocks.

In: a store, and how vertices and edges weigh. Out: `Blocks`. Which rows form a block does not depend on who reads them unless a policy has
a state: then readers go on in rounds of a fixed number of vertices, and no block goes beyond the end of a round.

Hoang et al., "CuSP", IPDPS 2019, section 4.2 (graph reading).
"""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass

import numpy as np

from oocgraph.store.graph import CSRStore
from oocgraph.store.rows import damaged_rows
from oocgraph.store.slices import StoredSlice
from oocgraph.types import Array

BLOCK_ENTRIES = 1 << 19
"""Entries of a block: 2 MiB of neighbours."""

BLOCK_ROWS = 1 << 18
"""Rows of a block, of all partitions together: their local pointers take 2 MiB."""

PIECE_ROWS = 1 << 19
"""Elements of ``indptr`` read at once."""


@dataclass(frozen=True, slots=True, eq=False)
class Blocks:
    """Consecutive blocks of rows.

    Attributes
    ----------
    first_row, first_entry : (num_blocks + 1,) int64
        Where each begins, then where the last ends.
    reader : (num_blocks,) int64
        Who reads it; ascending.
    round : (num_blocks,) int64
        In which round of its reader.
    """

    first_row: Array
    first_entry: Array
    reader: Array
    round: Array

    def __len__(self) -> int:
        return int(self.reader.size)

    @property
    def num_rounds(self) -> int:
        """Rounds of the reader that has most."""
        return int(self.round.max(initial=-1)) + 1

    @property
    def max_entries(self) -> int:
        """Entries of the largest block: a row is not divided."""
        return int(np.diff(self.first_entry).max(initial=0))

    @property
    def max_rows(self) -> int:
        """Rows of the longest block."""
        return int(np.diff(self.first_row).max(initial=0))

    def of(self, reader: int, round_: int | None = None) -> range:
        """Return the blocks of a reader, of one round if given."""
        mine = self.reader == reader if round_ is None else (self.reader == reader) & (self.round == round_)
        found = np.flatnonzero(mine)
        return range(int(found[0]), int(found[-1]) + 1) if found.size else range(0)


def cut_blocks(
    store: CSRStore, group: str, num_readers: int, *, vertex_weight: float, edge_weight: float, max_rows: int,
    round_vertices: int | None = None, max_entries: int = BLOCK_ENTRIES,
) -> Blocks:  # fmt: skip
    """Cut the rows of a group into blocks and share them out.

    Parameters
    ----------
    num_readers
        At least 1; each gets a contiguous range.
    vertex_weight, edge_weight
        What counts as work where ranges are made equal.
    max_rows, max_entries
        Largest block; a longer row is a block alone.
    round_vertices
        Vertices after which readers exchange what they know; None: blocks do not depend on the number of readers.

    Returns
    -------
    Blocks
        Of every vertex of the graph; none of an empty graph.

    Raises
    ------
    CorruptStoreError
        ``indptr`` is not ascending from 0 to the length of ``indices``.

    Notes
    -----
    Streams ``indptr``; 4 MiB, and 32 bytes a block, are held.
    """
    n, indptr = store.num_rows, StoredSlice(store.array(f"{group}/indptr"))

    def weight(v: int) -> float:
        return edge_weight * int(indptr[v]) + vertex_weight * v

    shares = [weight(n) * r / num_readers for r in range(1, num_readers)]
    ranges = np.maximum.accumulate([0, *(bisect_left(range(n + 1), share, key=weight) for share in shares), n])
    first_row, first_entry, rounds = [0], [0], list[int]()
    ends = ranges[1:] if round_vertices is not None else np.array([n])
    for start, stop in zip([0, *ends[:-1].tolist()], ends.tolist(), strict=True):
        step = stop - start if round_vertices is None else round_vertices
        for k, low in enumerate(range(start, stop, max(1, step))):
            block_rows, block_entries = _cut(indptr, low, min(stop, low + step), max_rows, max_entries)
            if not block_rows:
                raise damaged_rows(store, group)
            first_row += block_rows
            first_entry += block_entries
            rounds += [k] * len(block_rows)
    if int(indptr[0]) != 0 or first_entry[-1] != store.array(f"{group}/indices").length:
        raise damaged_rows(store, group)
    rows = np.array(first_row, np.int64)
    # a block that spans two ranges, which only those of no rounds may, is read by the reader of its beginning
    reader = np.searchsorted(ranges[1:], rows[:-1], side="right")
    return Blocks(rows, np.array(first_entry, np.int64), np.minimum(reader, num_readers - 1), np.array(rounds, np.int64))


def _cut(indptr: StoredSlice, start: int, stop: int, max_rows: int, max_entries: int) -> tuple[list[int], list[int]]:
    """Return row and entry after each block of the rows ``start .. stop - 1``; none if their pointers change meanwhile."""
    rows, entries = list[int](), list[int]()
    for low in range(start, stop, PIECE_ROWS):
        part = indptr[low : min(stop, low + PIECE_ROWS) + 1].read()
        if entries and entries[-1] != part[0]:
            return [], []
        at, last = 0, part.size - 1
        while at < last:
            end = int(np.searchsorted(part, part[at] + max_entries, side="right")) - 1
            at = min(max(at + 1, end), at + max_rows, last)
            rows.append(low + at)
            entries.append(int(part[at]))
    return rows, entries
