"""Edges that two stores have in common: what the second one repeats is no new edge.

In: both stores, and the number in the first of each vertex of the second. Out: the edges that both have. Edges of the second are dealt to
bins by the row of the first that is looked through: of an undirected edge the shorter one, whose number is the larger. So only rows that
the second store touches are read, once.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from oocgraph.errors import DuplicateEdgeError
from oocgraph.external_sort.bins import BinFiles
from oocgraph.external_sort.key_bins import balanced_bins
from oocgraph.external_sort.oversize import Piece, pieces
from oocgraph.ingest.build_job import BIN_RECORDS, MAX_BINS, Job
from oocgraph.ingest.stored_rows import StoredRows
from oocgraph.kernels.append import find_entries, known_edges
from oocgraph.store.graph import CSRStore
from oocgraph.store.records import CODE, Records, group_starts, sort_records
from oocgraph.store.row_places import row_ends
from oocgraph.store.rows import RowBlock, row_blocks
from oocgraph.types import Array

LOW = np.uint64(0xFFFFFFFF)
"""Bits of a column in a key."""

PARTS = 4
"""Bins for each thread at the least, so that threads finish together."""

GROUP = "out"
"""Group that is looked through: every store has it."""


class CommonEdges:
    """Finds them.

    Parameters
    ----------
    first, second
        The stores.
    rows
        Reader of ``out`` of the first.
    number : (second.num_rows,) uint32
        Number in `first` of each vertex of `second`, or NO_RANK.
    codes
        What codes of string columns become, by column, of each store.
    job
        The merge.
    """

    def __init__(self, first: CSRStore, second: CSRStore, rows: StoredRows, number: Array, codes: list[dict[str, Array]], job: Job) -> None:
        self._first, self._second, self._rows, self._number, self._codes, self._job = first, second, rows, number, codes, job
        self._names = list(job.payload.extra)
        self._dtypes = [CODE if dtype is None else dtype for dtype in job.payload.extra.values()]

    def found(self) -> Iterator[tuple[Array, Array]]:
        """Iterate over the edges of `second` that `first` has, as numbers in `first`: sources and targets, (n,) int64 each.

        Raises
        ------
        DuplicateEdgeError
            There is one, and ``duplicates="error"``.
        """
        if self._job.payload.duplicates == "keep":
            return
        files = self._dealt()
        parts = pieces(files, self._job.sizes.capacity, self._job.workers)
        for source, target in self._job.results("find common edges", self._of_piece, parts):
            if source.size and self._job.payload.duplicates == "error":
                u, v = self._first.ids_of([int(source[0]), int(target[0])]).tolist()
                raise DuplicateEdgeError(
                    f"{self._second.attributes.source}: the edge {u!r} - {v!r} is in {self._first.url} already, which allows none twice; "
                    "remove it from what is added"
                )
            yield source, target

    def _dealt(self) -> BinFiles:
        """Deal edges whose ends are both in `first` to bins of its rows."""
        job = self._job
        most = max(1, job.sizes.block_rows // (job.workers.num_threads + 2))  # so many are there at a time
        num_bins = max(PARTS * job.workers.num_threads, job.sizes.num_bins(self._second.attributes.num_stored_edges))
        bins = balanced_bins(0, max(1, self._first.num_rows) << 32, min(MAX_BINS, num_bins), self._entries_before)
        files = BinFiles(job.folder("common"), bins, self._dtypes)
        for records in job.workers.ordered(self._known, row_blocks(self._second, GROUP, max_entries=most, whole_rows=False)):
            files.append(records, job.scratch)
        files.close()
        return files

    def _known(self, block: RowBlock) -> Records:
        """Return the edges of a block whose ends are both in `first`, by their keys there."""
        names = [f"{GROUP}/{name}" for name in ("indices", *self._names)]
        cols, *columns = (self._second.array(name).read(block.start, block.stop) for name in names)
        room = self._job.scratch.get
        keys, places = np.empty(cols.size, np.uint64), room("places", cols.size, np.int64)
        found = known_edges(block.indptr, block.first_row, block.start, cols, self._number, self._job.directed, keys, places)
        keys, places = keys[:found], places[:found]
        return (keys, *self._coded(1, [values[places] for values in columns]))

    def _entries_before(self, keys: Array) -> Array:
        """Return how many entries the first store has in rows before those of some keys: a bin takes as long as reading them."""
        rows, last = (keys >> np.uint64(32)).astype(np.int64), self._first.num_rows - 1
        begin, end = row_ends(self._first, GROUP, np.clip(rows, 0, last)) if last >= 0 else (rows, rows)
        return np.where(rows > last, end, begin)

    def _coded(self, store: int, columns: list[Any]) -> list[Array]:
        """Return columns with the codes that the merged store has."""
        codes = self._codes[store]
        return [codes[name][values] if name in codes else values for name, values in zip(self._names, columns, strict=True)]

    def _of_piece(self, piece: Piece[Any]) -> tuple[Array, Array]:
        records = piece.files.read(piece.index, self._job.scratch)
        piece.files.remove(piece.index)
        if len(records) > 1:
            records = sort_records(records)
        else:
            self._job.sort(records[0], PARTS)
        rows = (records[0] >> np.uint64(32)).astype(np.int64)
        first_of = np.flatnonzero(rows != np.append(-1, rows[:-1]))
        rows = rows[first_of]
        begin, end = row_ends(self._first, GROUP, rows)
        entries, limit, start, found = np.cumsum(end - begin), min(BIN_RECORDS, self._job.sizes.capacity), 0, [np.empty(0, np.uint64)]
        cuts = np.append(first_of, records[0].size)
        while start < rows.size:
            done = int(entries[start - 1]) if start else 0
            stop = max(start + 1, int(np.searchsorted(entries, done + limit, side="right")))
            part = tuple(values[cuts[start] : cuts[stop]] for values in records)
            found.append(self._in_rows(part, begin[start:stop], end[start:stop]))
            start = stop
        keys = np.concatenate(found)
        return (keys >> np.uint64(32)).astype(np.int64), (keys & LOW).astype(np.int64)

    def _in_rows(self, records: Records, begin: Array, end: Array) -> Array:
        """Return the keys of some rows' records that the rows have, once for each such entry; each of the rows has a record."""
        keys = records[0]
        entries, position = self._rows.read(f"{GROUP}/indices", begin, end, self._job.scratch.get)
        low, high = np.empty(keys.size, np.int64), np.empty(keys.size, np.int64)
        row = keys >> np.uint64(32)
        row_of = np.cumsum(row != np.append(row[:1], row[:-1]))
        find_entries(entries.astype(np.uint32, copy=False), position, end - begin, row_of, (keys & LOW).astype(np.int64), low, high)
        if not self._names:
            return keys[high > low]
        return self._with_columns(records, begin, end, low, high)

    def _with_columns(self, records: Records, begin: Array, end: Array, low: Array, high: Array) -> Array:
        """Compare edge columns too: entries ``low .. high - 1`` of the rows have a record's key."""
        new = np.append(True, records[0][1:] != records[0][:-1])  # records with one key look at the same entries
        counts = np.where(new, high - low, 0)
        at = np.repeat(low - np.append(0, np.cumsum(counts)[:-1]), counts) + np.arange(counts.sum())
        columns = [self._rows.read(f"{GROUP}/{name}", begin, end)[0][at] for name in self._names]
        ours = (np.repeat(records[0], counts), *self._coded(0, columns))
        theirs = high > low
        both = sort_records(tuple(np.concatenate([a, b[theirs]]) for a, b in zip(ours, records, strict=True)))
        starts = group_starts(both, len(self._names))
        return both[0][starts[np.diff(np.append(starts, both[0].size)) > 1]]
