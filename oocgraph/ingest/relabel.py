"""Step 5: rename both ends of every edge, and distribute the entries to bins by their new row.

In: clean edges by provisional id, and the ranks. Out: for each group (``out``, and ``in`` when directed) bins of
keys ``row << bits | col``. An edge is renamed end by end. With the ranks in memory both lookups follow one another; with
the ranks on disk half-renamed edges go through bins by their other end, and each lookup needs one slice of the ranks.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from oocgraph.external_sort.bins import BinFiles
from oocgraph.external_sort.key_bins import KeyBins, balanced_bins, uniform_bins
from oocgraph.ingest.build_job import Job
from oocgraph.ingest.dedupe import CleanEdges, CleanPiece
from oocgraph.ingest.entries import EntryFiles, deal_edges
from oocgraph.kernels.build import rename_cols, rename_rows
from oocgraph.store.degrees import DegreeClasses
from oocgraph.store.records import Records, key_bits
from oocgraph.types import Array

Files = EntryFiles | BinFiles
"""Entries of a group by range of rows."""


def entry_bins(classes: DegreeClasses, job: Job, bits: int, *, num_entries: int, known: bool) -> KeyBins:
    """Ranges of a group's keys, of which a long row may have several, or with 0 `bits` of a column of its rows.

    They are balanced by the degrees when these are `known`, otherwise by half.
    """
    scale, total = float(1 << bits), max(1.0, float(classes.num_entries))
    last = max(1, classes.num_vertices)

    def weights(keys: Array) -> Array:
        rows = keys.astype(np.float64) / scale
        exact = classes.entries_below(rows) / total
        return exact if known else exact + rows / last

    count = job.sizes.num_bins(num_entries, shares=2 if job.directed else 1)
    return balanced_bins(0, last << bits, count, weights)


def relabel(clean: CleanEdges, classes: DegreeClasses, job: Job) -> dict[str, Files]:
    """Deal all entries; the clean edges are removed on the way."""
    rank = clean.degree.resident
    bits = key_bits(classes.num_vertices)
    num_entries = clean.num_edges * (1 if job.directed else 2)
    columns = list(job.payload.stored.values())

    def files(name: str, *, known: bool) -> Files:
        known = known and job.options.vertex_order == "degree"
        if rank is not None and not columns:
            return EntryFiles(job.folder(name), entry_bins(classes, job, 0, num_entries=num_entries, known=known), bits, rank)
        return BinFiles(job.folder(name), entry_bins(classes, job, bits, num_entries=num_entries, known=known), columns)

    groups = {"out": files("entries-out", known=not job.directed)}
    if job.directed:
        groups["in"] = files("entries-in", known=True)
    forward, backward = groups["out"], groups.get("in", groups["out"])
    if isinstance(forward, EntryFiles) and isinstance(backward, EntryFiles):
        _deal_in_memory(clean, forward, backward, job)
    elif isinstance(forward, BinFiles) and isinstance(backward, BinFiles):
        dealer = _Dealer(forward, backward, bits, job)
        if rank is not None:
            _rename_in_memory(clean, rank, dealer, job)
        else:
            _rename_through_bins(clean, dealer, job)
    return groups


def _deal_in_memory(clean: CleanEdges, forward: EntryFiles, backward: EntryFiles, job: Job) -> None:
    def deal(piece: CleanPiece) -> None:
        for (keys,) in clean.blocks(piece, job):
            deal_edges(keys, clean.col_bits, forward, backward, job.scratch)
        piece.remove()

    job.each("relabel", deal, clean.pieces)


class _Dealer:
    """Gives half-renamed edges their second name and distributes both entries."""

    def __init__(self, forward: BinFiles, backward: BinFiles, bits: int, job: Job) -> None:
        self._forward, self._backward, self._bits, self._job = forward, backward, np.uint64(bits), job

    def distribute(self, half: Array, columns: Records, rank: Array, first: int) -> None:
        """Deal edges ``col << 32 | new row``; `rank` begins at the provisional id `first`."""
        scratch = self._job.scratch
        back = scratch.get("backward", half.size, np.uint64)
        num_back = rename_cols(half, rank, np.uint64(first), self._bits, not self._job.directed, half, back)
        self._forward.append((half, *columns), scratch)
        if num_back < half.size and columns:
            straight = (half >> self._bits) != (half & ((np.uint64(1) << self._bits) - np.uint64(1)))
            columns = tuple(values[straight] for values in columns)
        self._backward.append((back[:num_back], *columns), scratch)


def _rename_in_memory(clean: CleanEdges, rank: Array, dealer: _Dealer, job: Job) -> None:
    def rename(piece: CleanPiece) -> None:
        for keys, *columns in clean.blocks(piece, job):
            rename_rows(keys, np.uint64(clean.col_bits), rank, np.uint64(0), keys)
            dealer.distribute(keys, tuple(columns), rank, 0)
        piece.remove()

    job.each("relabel", rename, clean.pieces)


def _rename_through_bins(clean: CleanEdges, dealer: _Dealer, job: Job) -> None:
    slice_ids = job.sizes.slice_ids
    bins = uniform_bins(0, clean.degree.length << 32, job.sizes.num_slices(clean.degree.length))
    by_col = BinFiles(job.folder("half-renamed"), bins, list(job.payload.stored.values()))

    def rename_first(piece: CleanPiece) -> None:
        for block in clean.blocks(piece, job):
            for keys, *columns in _narrow(block, clean.col_bits, slice_ids):
                first, last = int(keys[0]) >> clean.col_bits, int(keys[-1]) >> clean.col_bits
                rename_rows(keys, np.uint64(clean.col_bits), clean.degree.read(first, last + 1), np.uint64(first), keys)
                by_col.append((keys, *columns), job.scratch)
        piece.remove()

    def rename_second(index: int) -> None:
        first, stop = bins.starts[index] >> 32, ((bins.starts[index + 1] - 1) >> 32) + 1
        rank = clean.degree.read(first, stop)
        for half, *columns in by_col.blocks(index, job.sizes.block_rows):
            dealer.distribute(half, tuple(columns), rank, first)
        by_col.remove(index)

    job.each("relabel rows", rename_first, clean.pieces)
    by_col.close()
    job.each("relabel columns", rename_second, range(bins.num_bins))


def _narrow(block: Records, col_bits: int, most_rows: int) -> Iterator[Records]:
    """Cut sorted records where their rows span more than `most_rows`; what was yielded may be overwritten."""
    keys, start = block[0], 0
    while start < keys.size:
        limit = ((int(keys[start]) >> col_bits) + most_rows) << col_bits
        stop = start + int(np.searchsorted(keys[start:], np.uint64(limit))) if limit < 1 << 64 else keys.size
        yield tuple(values[start:stop] for values in block)
        start = stop
