"""Positions of string ids, found on disk: sort the distinct strings by their bytes, join the edges under a 64-bit hash.

In: edges by string. Out: the table of distinct strings, and bins of raw edges by position. Strings go to ranges cut by a sample;
each range's distinct strings are sorted, and so all are. Edges carry only hashes; a table from hash to position joins them as
`sparse_ids` joins integers. Two strings with one hash are seen when the table is sorted; then all begins again with another seed.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa

from oocgraph.arrow import from_numbers
from oocgraph.compiled.load import load_kernels
from oocgraph.external_sort.bins import BinFiles
from oocgraph.external_sort.key_bins import uniform_bins
from oocgraph.external_sort.text_files import TextFiles, TextSlice
from oocgraph.ingest.build_job import MAX_BINS, Job
from oocgraph.ingest.edges import EdgeBlock, EdgeSource, cut_by_text, read_streams
from oocgraph.ingest.read_edges import ColumnReader, expected_rows, first_blocks
from oocgraph.ingest.sparse_ids import JoinTable, join_edges, position_dtype
from oocgraph.kernels.join import hash_join_calls
from oocgraph.kernels.strings import split_strings, string_calls
from oocgraph.store.strings import HashCollisionError, Placed, with_a_seed
from oocgraph.types import Array

SLICE_STRINGS = 1 << 16
"""Strings in a slice of the sorted table: what a look-up by position reads at least."""

SAMPLED_STRINGS = 1 << 12
"""Rows of a block that are sampled."""

SAMPLED_BYTES = 1 << 19
"""Bytes of strings of a block that are sampled: 16 blocks, and copies of them, are held before the budget's shares are in use."""

MOST_PARTS = 32
"""Files that a bin is dealt to which does not fit in memory; each thread may deal one, and these are open at once."""

PLACE_BITS = 40
"""Bits of a string's place within its range; the range is above."""


class StringIds:
    """Distinct strings on disk, ascending, in ranges; `most_bytes` of them, or one, are read at once."""

    all_used = True
    implied = None

    def __init__(self, files: TextFiles, most_bytes: int) -> None:
        self._files, self._most_bytes = files, most_bytes
        self.base = np.append(0, np.cumsum(files.counts))
        self.num_ids = int(self.base[-1])
        self._slices: list[tuple[int, TextSlice]] = [(index, part) for index in range(files.num_bins) for part in files.slices(index)]
        self._first = np.array([self.base[index] + part.first for index, part in self._slices], np.int64)
        self.mean_bytes = sum(part.num_bytes for _, part in self._slices) / max(1, self.num_ids)

    def read(self, start: int, stop: int) -> Any:
        """Ids of the positions ``start .. stop - 1``, or the first of them: a large_binary array."""
        chunks: list[Any] = []
        num_bytes = 0
        at = int(np.searchsorted(self._first, start, side="right")) - 1
        while start < stop:
            index, part = self._slices[at]
            num_bytes += part.num_bytes
            if chunks and num_bytes > self._most_bytes:
                break
            strings, _ = self._files.read(index, part)
            skip = start - int(self._first[at])
            chunks.append(strings.slice(skip, stop - start))
            start += len(chunks[-1])
            at += 1
        return pa.concat_arrays(chunks) if chunks else pa.nulls(0, pa.large_binary())


def _hash_tables(files: BinFiles, base: Array, index: int, _most: int) -> Iterator[JoinTable]:
    """Return the hashes of a bin and the positions of their strings; ranges of strings begin at the positions `base`."""
    count = int(files.counts[index])
    if not count:
        return
    ((hashes, places),) = files.blocks(index, count)
    ranges, within = (places >> np.uint64(PLACE_BITS)).astype(np.int64), places & np.uint64((1 << PLACE_BITS) - 1)
    table = JoinTable.of_hashes(hashes, (base[ranges].astype(np.uint64) + within).astype(position_dtype(int(base[-1]))))
    if table is None:
        raise HashCollisionError
    yield table


def string_edges(edges: EdgeSource, job: Job) -> tuple[StringIds, BinFiles, ColumnReader]:
    """Find the distinct strings of a source and bin its edges by their positions."""
    load_kernels([*string_calls(), *hash_join_calls()])
    return with_a_seed(lambda seed, attempt: _with_seed(edges, job, seed, f"strings-{attempt}"), edges.description)


def _with_seed(edges: EdgeSource, job: Job, seed: int, name: str) -> tuple[StringIds, BinFiles, ColumnReader]:
    reader = ColumnReader(job, edges)
    num_rows = expected_rows(edges)
    ends = [_first(ids) for block in first_blocks(edges, SAMPLED_STRINGS) for ids in (block.source, block.target)]
    sample, num_sampled = _distinct(ends, seed), sum(map(len, ends))
    del ends
    block_rows = _block_rows(sample, job)
    splitters = _splitters(sample, job, num_strings=2 * num_rows * len(sample) // max(1, num_sampled))
    del sample
    cuts = Placed.of([splitters])
    text = TextFiles(job.folder(f"{name}-text"), len(splitters) + 1)
    hash_bins = uniform_bins(0, 1 << 64, job.sizes.num_bins(2 * num_rows, shares=2))
    by_source = BinFiles(job.folder(f"{name}-by-source"), hash_bins, [np.uint64, *job.payload.binned])

    def add_text(strings: Placed, hashes: Array) -> None:
        own = strings.chosen(strings.distinct(hashes)[0])
        bin_of = np.empty(len(own), np.uint16)
        split_strings(own.place, own.length, cuts.place, cuts.length, bin_of)
        text.append(own, bin_of)

    def distribute(block: EdgeBlock) -> None:
        for part in cut_by_text(block, job.sizes.text_bytes):
            strings = Placed.of([part.source, part.target])
            hashes = strings.hashes(seed)
            by_source.append((*np.split(hashes, 2), *reader.columns(part)), job.scratch)
            add_text(strings, hashes)

    job.workers.drain(read_streams(edges, block_rows), distribute)
    if edges.extra_vertices is not None:
        strings = Placed.of([edges.extra_vertices])
        add_text(strings, strings.hashes(seed))
    text.close()
    by_source.close()
    table, by_hash = TextFiles(job.folder(f"{name}-table"), text.num_bins), BinFiles(job.folder(f"{name}-by-hash"), hash_bins, [np.uint64])

    def number(index: int) -> None:
        at = index << PLACE_BITS
        for strings in _distinct_of_bin(text, index, job.sizes.text_bytes, seed):
            for start in range(0, len(strings), SLICE_STRINGS):
                part = strings.slice(start, SLICE_STRINGS)
                table.append_slice(index, part)
                by_hash.append((Placed.of([part]).hashes(seed), np.arange(at, at + len(part), dtype=np.uint64)), job.scratch)
                at += len(part)
        table.close_bin(index)
        text.remove(index)

    job.each("sort ids", number, range(text.num_bins))
    by_hash.close()
    ids = StringIds(table, job.sizes.text_bytes)
    raw = join_edges(by_source, ids.num_ids, partial(_hash_tables, by_hash, ids.base), job)
    for index in range(hash_bins.num_bins):
        by_hash.remove(index)
    return ids, raw, reader


def _first(strings: Any) -> Any:
    """Return a copy of the first strings of a block, of at most `SAMPLED_BYTES`, or one."""
    fitting = max(1, int(SAMPLED_BYTES * len(strings) / max(1, strings.nbytes)))
    return strings.take(from_numbers(np.arange(min(len(strings), fitting))))


def _block_rows(sample: Any, job: Job) -> int:
    """Return the rows of a block whose strings, if they are as long as those of a sample, take the bytes that a thread may sort."""
    mean_bytes = sample.nbytes / len(sample) if len(sample) else 8
    return min(job.sizes.block_rows, max(1 << 10, int(job.sizes.text_bytes / (2 * mean_bytes))))


def _distinct(arrays: list[Any], seed: int) -> Any:
    """Distinct strings of some arrays, ascending."""
    strings = Placed.of(arrays)
    first, _ = strings.distinct(strings.hashes(seed))
    return strings.copied(strings.ascending(first))


def _splitters(sample: Any, job: Job, *, num_strings: int) -> Any:
    """Strings that cut all into ranges which fit in memory, by the sample."""
    mean_bytes = (sample.nbytes / len(sample) if len(sample) else 8) + 4
    return _evenly(sample, min(MAX_BINS // 2, int(num_strings * mean_bytes / max(1, job.sizes.text_bytes // 2)) + 1))


def _evenly(sample: Any, num_ranges: int) -> Any:
    """Return those of some distinct strings, ascending, that cut them into so many ranges, or fewer."""
    places = np.unique(np.ceil(np.linspace(0, len(sample) - 1, num_ranges + 1)[1:-1]).astype(np.int64)) if len(sample) else np.empty(0, int)
    return sample.take(from_numbers(places))


def _distinct_of_bin(files: TextFiles, index: int, most_bytes: int, seed: int) -> Iterator[Any]:
    """Distinct strings of a bin, ascending; those of one that has more than fit in memory are dealt to more files first."""
    found = pa.nulls(0, pa.large_binary())
    for arrays in _gathered(files, index, most_bytes):
        found = _distinct([found, *arrays], seed)
        if found.nbytes > most_bytes and len(found) > 1:
            break
    else:
        if len(found):
            yield found
        return
    middle = found.take(from_numbers(np.array([0, len(found) // 2])))
    del found, arrays
    dealt = _dealt(files, index, most_bytes, middle, seed)
    for part_index in range(dealt.num_bins):
        yield from _distinct_of_bin(dealt, part_index, most_bytes, seed)
        dealt.remove(part_index)


def _dealt(files: TextFiles, index: int, most_bytes: int, known: Any, seed: int) -> TextFiles:
    """Deal a bin to several files, by a sample of all of it; `known` are two of its strings, ascending."""
    total = sum(part.num_bytes for part in files.slices(index))
    taken, owed = [known], 0.0  # bytes of a sample that is spread over all slices
    for part in files.slices(index):
        owed += SAMPLED_BYTES * part.num_bytes / total
        count = int(owed * part.count / max(1, part.num_bytes))
        if count > 0:
            strings = files.read(index, part)[0]
            taken.append(strings.take(from_numbers(np.linspace(0, part.count - 1, min(count, part.count)).astype(np.int64))))
            owed -= taken[-1].nbytes
    splitters = _evenly(_distinct(taken, seed), min(MOST_PARTS, max(2, -(-2 * total // most_bytes))))
    del taken
    cuts = Placed.of([splitters])
    dealt = TextFiles(files.folder.child(f"split-{index}"), len(splitters) + 1)
    for arrays in _gathered(files, index, most_bytes):
        strings = Placed.of(arrays)
        bin_of = np.empty(len(strings), np.uint16)
        split_strings(strings.place, strings.length, cuts.place, cuts.length, bin_of)
        dealt.append(strings, bin_of)
    files.remove(index)
    dealt.close()
    return dealt


def _gathered(files: TextFiles, index: int, most_bytes: int) -> Iterator[list[Any]]:
    """Iterate over the slices of a bin, several at a time that have more than so many bytes together, and what is left."""
    arrays: list[Any] = []
    num_bytes = 0
    for part in files.slices(index):
        arrays.append(files.read(index, part)[0])
        num_bytes += part.num_bytes + 8 * part.count
        if num_bytes > most_bytes:
            yield arrays
            arrays, num_bytes = [], 0
    if arrays:
        yield arrays
