"""Positions of sparse integer ids, found on disk: sort the endpoints, number the distinct ones, join the edges with them twice.

In: edges by id. Out: the table of distinct ids, and bins of raw edges by position. Bins of ids are cut by a sample; each bin's
distinct ids ascend, so a position is the bin's base plus the place within. Edges travel once by their source, to learn its
position, and once by their target. Strings take the same way under a hash that stands for them (`string_ids`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from oocgraph.compiled.load import load_kernels
from oocgraph.external_sort.bins import BinFiles
from oocgraph.external_sort.key_bins import SplitterBins
from oocgraph.ingest.build_job import Job
from oocgraph.ingest.edges import EdgeBlock, EdgeSource, read_streams
from oocgraph.ingest.read_edges import ColumnReader, expected_rows, first_blocks, raw_bins
from oocgraph.kernels.build import edge_keys
from oocgraph.kernels.join import cut_cells, find_keys, join_calls, table_of_hashes
from oocgraph.store.columns import without_repeats
from oocgraph.store.records import key_bits
from oocgraph.types import Array

SIGN = np.uint64(1 << 63)
"""Flipped, it makes the order of int64 that of uint64."""


def sortable(ids: Array) -> Array:
    """Map int64 ids to uint64 in the same order."""
    return np.ascontiguousarray(ids, np.int64).view(np.uint64) ^ SIGN


def position_dtype(num_ids: int) -> np.dtype[Any]:
    """Return the dtype in which so many positions travel."""
    return np.dtype(np.uint32 if num_ids <= 1 << 32 else np.uint64)


@dataclass(frozen=True, slots=True)
class JoinTable:
    """Keys of one bin, ascending, and their positions.

    Attributes
    ----------
    keys : (n,) uint64
    positions : (n,) of `position_dtype`, or int
        Position of each key; or that of the first one, where they follow each other.
    whole
        No other part of the bin has keys.
    shift, starts
        Its cells (`oocgraph.kernels.join`).
    """

    keys: Array
    positions: Array | int
    whole: bool
    shift: Any
    starts: Array

    @classmethod
    def of_ids(cls, keys: Array, first: int, *, whole: bool) -> JoinTable:
        """Keys that ascend, as do their positions from `first` on."""
        shift, starts = _cells(keys)
        cut_cells(keys, shift, starts)
        return cls(keys, first, whole, shift, starts)

    @classmethod
    def of_hashes(cls, hashes: Array, positions: Array) -> JoinTable | None:
        """Hashes in any order, each with its position; None if two are equal."""
        shift, starts = _cells(hashes)
        keys, ordered = np.empty_like(hashes), np.empty_like(positions)
        is_strict = table_of_hashes(hashes, positions, shift, starts, keys, ordered)
        return cls(keys, ordered, True, shift, starts) if is_strict else None

    def find(self, wanted: Array, dtype: np.dtype[Any]) -> Array:
        """Positions of keys that are all in the table: (n,) of `dtype`."""
        found = np.empty(wanted.size, np.int64)
        find_keys(self.keys, self.shift, self.starts, wanted, found)
        if isinstance(self.positions, int):
            found += self.positions
            return found.astype(dtype)
        return self.positions[found]


def _cells(keys: Array) -> tuple[Any, Array]:
    """Width of about as many cells as there are keys, in bits, and room for where each begins."""
    span = int(keys.max()) - int(keys.min())
    shift = max(0, span.bit_length() - keys.size.bit_length())
    return np.uint64(shift), np.empty((span >> shift) + 2, np.int64)


JoinTables = Callable[[int, int], Iterator[JoinTable]]
"""Returns the keys of a bin and their positions, in parts of at most some length."""


class TableIds:
    """Distinct ids on disk, ascending, in bins.

    Attributes
    ----------
    base : (num_bins + 1,) int64
        Position of each bin's first id.
    """

    all_used, mean_bytes = True, 8.0

    def __init__(self, files: BinFiles, implied: tuple[int, int] | None) -> None:
        self.files, self.implied = files, implied
        self.base = np.append(0, np.cumsum(files.counts))
        self.num_ids = int(self.base[-1])

    def read(self, start: int, stop: int) -> Array:
        """Ids of the positions ``start .. stop - 1``: (n,) int64."""
        out = np.empty(stop - start, np.uint64)
        at = start
        while at < stop:
            index = int(np.searchsorted(self.base, at, side="right")) - 1
            end = min(stop, int(self.base[index + 1]))
            self.files.read_keys(index, at - int(self.base[index]), out[at - start : end - start])
            at = end
        return (out ^ SIGN).view(np.int64)

    def tables(self, index: int, most: int) -> Iterator[JoinTable]:
        """Ids of a bin and their positions, in ascending parts of at most `most`."""
        at = int(self.base[index])
        for (ids,) in self.files.blocks(index, most):
            yield JoinTable.of_ids(ids, at, whole=ids.size == self.files.counts[index])
            at += ids.size


def sparse_edges(edges: EdgeSource, job: Job) -> tuple[TableIds, BinFiles, ColumnReader]:
    """Find the distinct ids of a source and bin its edges by position."""
    load_kernels(join_calls())
    reader = ColumnReader(job, edges)
    extra = sortable(edges.extra_vertices) if edges.extra_vertices is not None else np.empty(0, np.uint64)
    sample = [sortable(ids) for block in first_blocks(edges) for ids in (block.source, block.target)]
    everything = np.concatenate([extra, *sample])
    bins = id_bins(everything, job, num_rows=expected_rows(edges))
    by_source, targets = BinFiles(job.folder("by-source"), bins, [np.uint64, *job.payload.binned]), BinFiles(job.folder("targets"), bins)

    def distribute(block: EdgeBlock) -> None:
        source, target = sortable(block.source), sortable(block.target)
        by_source.append((source, target, *reader.columns(block)), job.scratch)
        targets.append((target,), job.scratch)

    job.workers.drain(read_streams(edges, job.sizes.block_rows), distribute)
    targets.append((extra,), job.scratch)
    by_source.close()
    targets.close()
    table = BinFiles(job.folder("table"), bins)

    def number(index: int) -> None:
        for ids in _distinct([by_source, targets], index, job.sizes.capacity):
            table.append_to(index, (ids,), job.scratch)
        table.close_bin(index)
        targets.remove(index)

    job.each("find ids", number, range(bins.num_bins))
    implied = None if edges.num_vertices is None else (0, edges.num_vertices)
    ids = TableIds(table, implied)
    return ids, join_edges(by_source, ids.num_ids, ids.tables, job), reader


def id_bins(sample: Array, job: Job, *, num_rows: int) -> SplitterBins:
    """Ranges of 64-bit ids, half as many as usual because two kinds of files are written at once.

    Half of the splitters are quantiles of the sample, half divide its range evenly.
    """
    count = job.sizes.num_bins(2 * num_rows, shares=2)
    if not sample.size or count == 1:
        return SplitterBins(np.empty(0, np.uint64))
    ordered = np.sort(sample)
    quantiles = ordered[np.linspace(0, ordered.size - 1, count // 2 + 1).astype(np.int64)[1:]]
    low, high = int(ordered[0]), int(ordered[-1])
    even = np.array([low + (high - low) * i // (count // 2 + 1) for i in range(1, count // 2 + 1)], np.uint64)
    return SplitterBins(np.unique(np.concatenate([quantiles, even])))


def _distinct(files: list[BinFiles], index: int, capacity: int) -> Iterator[Array]:
    """Distinct keys of a bin, ascending, in as many passes over it as its distinct keys need memory.

    Peak: `capacity` keys.
    """
    lowest, most = np.uint64(0), max(2, capacity // 4)
    while True:
        found, pending, size, cut = np.empty(0, np.uint64), [], 0, False
        for source in files:
            for keys in source.key_blocks(index, most):
                pending.append(keys[keys >= lowest] if lowest else keys)
                size += keys.size
                if size >= most:
                    found = _sorted_unique([found, *pending])
                    cut |= found.size > most
                    found, pending, size = found[:most].copy(), [], 0
        found = _sorted_unique([found, *pending])
        cut |= found.size > most
        found = found[:most]
        if found.size:
            yield found
        if not cut:
            return
        lowest = found[-1] + np.uint64(1)


def _sorted_unique(arrays: list[Array]) -> Array:
    """Distinct values of some arrays, ascending."""
    together = np.concatenate(arrays)
    together.sort()
    return without_repeats(together)


def join_edges(by_source: BinFiles, num_ids: int, tables: JoinTables, job: Job) -> BinFiles:
    """Replace ids by positions at both ends of every edge; `by_source` holds (source; target, columns) and is used up."""
    columns, dtype = list(by_source.columns[1:]), position_dtype(num_ids)
    by_target = BinFiles(job.folder("by-target"), by_source.bins, [dtype, *columns])

    def join_source(index: int) -> None:
        for found, (_, target, *rest) in _joined(by_source, tables, index, dtype, job):
            by_target.append((target, found, *rest), job.scratch)
        by_source.remove(index)

    job.each("join sources", join_source, range(by_source.bins.num_bins))
    by_target.close()
    bits = key_bits(num_ids)
    raw = BinFiles(job.folder("edges"), raw_bins(num_ids, np.empty(0, np.uint64), job, num_rows=int(by_target.counts.sum())), columns)

    def join_target(index: int) -> None:
        for found, (_, source, *rest) in _joined(by_target, tables, index, dtype, job):
            keys = job.scratch.get("keys", found.size, np.uint64)
            edge_keys(source, found, np.int64(0), np.uint64(num_ids), np.uint64(bits), not job.directed, keys)
            raw.append((keys, *rest), job.scratch)
        by_target.remove(index)

    job.each("join targets", join_target, range(by_target.bins.num_bins))
    raw.close()
    return raw


def _joined(files: BinFiles, tables: JoinTables, index: int, dtype: np.dtype[Any], job: Job) -> Iterator[tuple[Array, tuple[Array, ...]]]:
    """Iterate over the records of a bin, in blocks, each with the positions of its keys."""
    for table in tables(index, max(1 << 10, job.sizes.capacity)):
        for block in files.blocks(index, job.sizes.block_rows):
            records = block
            if not table.whole:
                inside = (records[0] >= table.keys[0]) & (records[0] <= table.keys[-1])
                records = tuple(values[inside] for values in records)
            yield table.find(records[0], dtype), records
