"""Between the user's ids and store numbers by single pages, many at a time, for who has threads that read them.

In: ids or store numbers of a graph with integer ids in plain local files. Out: the other, as of `oocgraph.store.vertices.VertexIds`, which
serves all other graphs, and who asks for so many that all ids may as well be streamed. An id is looked for on the page where it would be
if ids were spread evenly between those that are known around it.
"""

from __future__ import annotations

import numpy as np

from oocgraph.store.arrays import PlainArray
from oocgraph.store.columns import Ids, distinct, lower_bounds
from oocgraph.store.id_order import ISOLATED
from oocgraph.store.layout import ORDER, SORTED_ID, VERTEX_ID
from oocgraph.store.scattered import RangeReader
from oocgraph.store.vertices import VertexIds
from oocgraph.types import PAGE_BYTES, Array

PAGE_IDS = PAGE_BYTES // 8
"""Ids on a page."""

PAGES_AN_ID = 3
"""Pages looked at for an id that is spread as others are."""

STREAMED_PAGES = 4
"""Pages that are read in order in the time of one that is not: 550 MB/s beside 37,000 pages a second."""

FEWEST = 8
"""Ids from which on threads are worth their while."""

MIDDLE_ROUND = 4
"""Rounds after which an id is looked for in the middle, so that the search ends soon whatever the ids are."""

BLOCK = 2048
"""Ids looked up at once: 8 MiB of pages."""


class PagedIds(VertexIds):
    """The vertex ids of a store, read by a `RangeReader`."""

    def __init__(self, reader: RangeReader) -> None:
        super().__init__(reader.store)
        self.reader = reader
        self._is_paged = self.kind == "int64" and isinstance(reader.store.array(SORTED_ID), PlainArray)

    def _positions(self, wanted: Array) -> Array:
        length = self.store.num_rows
        worth = FEWEST <= wanted.size <= length // PAGE_IDS // (PAGES_AN_ID * STREAMED_PAGES)
        if not self._is_paged or not worth:
            return super()._positions(wanted)
        self.reader.budget.reserve("pages of ids", 2 * PAGE_BYTES * min(BLOCK, wanted.size))
        return np.concatenate([_find(self.reader, length, wanted[start : start + BLOCK]) for start in range(0, wanted.size, BLOCK)])

    def _numbers_at(self, positions: Array) -> Array:
        return self.reader.read(ORDER, positions, positions + 1) if self._is_paged else super()._numbers_at(positions)

    def _ids_at(self, numbers: Array, most_bytes: int | None = None) -> Ids:
        if not self._is_paged:
            return super()._ids_at(numbers, most_bytes)
        return self.reader.read(VERTEX_ID, numbers, numbers + 1, gap_pages=STREAMED_PAGES - 1).astype(np.int64, copy=False)


def _find(reader: RangeReader, length: int, wanted: Array) -> Array:
    """Return the position of each wanted id in the ascending column of ids, -1 where absent."""
    position = np.full(wanted.size, ISOLATED, np.int64)
    low, high = np.zeros(wanted.size, np.int64), np.full(wanted.size, -(-length // PAGE_IDS))  # pages that may hold each
    known = reader.read(SORTED_ID, np.array([0, length - 1]), np.array([1, length])).astype(np.float64)
    before, after = np.full(wanted.size, known[0]), np.full(wanted.size, known[1])  # ids in front of these pages, and behind them
    num_rounds = 0
    while (here := np.flatnonzero(low < high)).size:
        num_rounds += 1
        share = (wanted[here] - before[here]) / np.maximum(after[here] - before[here], 1.0)
        if num_rounds % MIDDLE_ROUND == 0:
            share[:] = 0.5
        page = np.clip((low[here] + share * (high[here] - low[here])).astype(np.int64), low[here], high[here] - 1)
        pages = distinct(page)
        ends = np.minimum((pages + 1) * PAGE_IDS, length)
        values = reader.read(SORTED_ID, pages * PAGE_IDS, ends)
        at = np.searchsorted(pages, page)
        start = at * PAGE_IDS
        stop = start + (ends - pages * PAGE_IDS)[at]
        first, last = values[start], values[stop - 1]
        under, over = wanted[here] < first, wanted[here] > last
        high[here[under]], after[here[under]] = page[under], first[under]
        low[here[over]], before[here[over]] = page[over] + 1, last[over]
        on = ~(under | over)
        place = lower_bounds(values, start[on], stop[on], wanted[here[on]])
        place = np.where(values[np.minimum(place, values.size - 1)] == wanted[here[on]], place - start[on] + page[on] * PAGE_IDS, ISOLATED)
        position[here[on]], high[here[on]] = place, low[here[on]]
    return position
