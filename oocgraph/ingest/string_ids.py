"""Positions of string ids, found on disk: sort the distinct strings by their bytes, join the edges under a 64-bit hash.

In: edges by string. Out: the table of distinct strings, and bins of raw edges by position. Strings go to ranges cut by a sample;
each range's distinct strings are sorted, and so all are. Edges carry only hashes; a table from hash to position joins them as
`sparse_ids` joins integers. Two strings with one hash are seen when the table is sorted; then all begins again with another seed.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from oocgraph.errors import OocGraphError
from oocgraph.external_sort.bins import BinFiles
from oocgraph.external_sort.key_bins import uniform_bins
from oocgraph.external_sort.text_files import TextFiles, TextSlice, as_binary, buffers
from oocgraph.ingest.build_job import MAX_BINS, Job
from oocgraph.ingest.edges import EdgeBlock, EdgeSource, read_streams
from oocgraph.ingest.read_edges import UNKNOWN_ROWS, ColumnReader, first_blocks
from oocgraph.ingest.sparse_ids import JoinTable, join_edges
from oocgraph.kernels.load import load_kernels
from oocgraph.kernels.strings import hash_strings, split_strings, string_calls
from oocgraph.types import Array

MAX_ATTEMPTS = 8
"""Seeds tried: two of 100 million strings share a hash once in 4,000 builds."""

BLOCK_SHARE = 8
"""A block of string edges has this fraction of the rows of one of integers."""

SLICE_STRINGS = 1 << 16
"""Strings in a slice of the sorted table: what a look-up by position reads at least."""

PLACE_BITS = 40
"""Bits of a string's place within its range; the range is above."""

logger = logging.getLogger(__name__)


class HashCollisionError(Exception):
    """Two different strings have the same hash under this seed."""


def hashes(strings: Any, seed: int) -> Array:
    """64-bit hash of each string: (n,) uint64."""
    data, offsets = buffers(strings)
    out = np.empty(len(strings), np.uint64)
    hash_strings(data, offsets, np.uint64(seed), out)
    return out


class StringIds:
    """Distinct strings on disk, ascending, in ranges."""

    all_used = True
    implied = None

    def __init__(self, files: TextFiles) -> None:
        self._files = files
        self.base = np.append(0, np.cumsum(files.counts))
        self.num_ids = int(self.base[-1])
        self._slices: list[tuple[int, TextSlice]] = [(index, part) for index in range(files.num_bins) for part in files.slices(index)]
        self._first = np.array([self.base[index] + part.first for index, part in self._slices], np.int64)

    def read(self, start: int, stop: int) -> Any:
        """Ids of the positions ``start .. stop - 1``: a large_binary array."""
        chunks = []
        at = int(np.searchsorted(self._first, start, side="right")) - 1
        while start < stop:
            index, part = self._slices[at]
            strings, _ = self._files.read(index, part)
            skip = start - int(self._first[at])
            chunks.append(strings.slice(skip, stop - start))
            start += len(chunks[-1])
            at += 1
        return pa.concat_arrays(chunks) if chunks else pa.array([], pa.large_binary())


def _hash_tables(files: BinFiles, base: Array, index: int, _most: int) -> Iterator[JoinTable]:
    """Return the hashes of a bin and the positions of their strings; ranges of strings begin at the positions `base`."""
    count = int(files.counts[index])
    if not count:
        return
    parts = list(files.blocks(index, count))
    keys, places = (np.concatenate([part[i] for part in parts]) for i in range(2))
    del parts
    order = np.argsort(keys)
    keys, places = keys[order], places[order]
    if np.any(keys[1:] == keys[:-1]):
        raise HashCollisionError
    ranges, within = (places >> np.uint64(PLACE_BITS)).astype(np.int64), places & np.uint64((1 << PLACE_BITS) - 1)
    yield JoinTable(keys, base[ranges].astype(np.uint64) + within, True)


def string_edges(edges: EdgeSource, job: Job) -> tuple[StringIds, BinFiles, ColumnReader]:
    """Find the distinct strings of a source and bin its edges by their positions."""
    load_kernels(string_calls())
    for seed in range(MAX_ATTEMPTS):
        try:
            return _with_seed(edges, job, 0x9E3779B97F4A7C15 * (2 * seed + 1) % 2**64, f"strings-{seed}")
        except HashCollisionError:
            logger.info("two strings have the same hash; trying again with another seed")
    raise OocGraphError(f"{edges.description}: strings collide under {MAX_ATTEMPTS} hash seeds; please report this input")


def _with_seed(edges: EdgeSource, job: Job, seed: int, name: str) -> tuple[StringIds, BinFiles, ColumnReader]:
    reader = ColumnReader(job, edges.num_rows)
    num_rows = edges.num_rows or UNKNOWN_ROWS
    sample = _unique([as_binary(ids) for block in first_blocks(edges) for ids in (block.source, block.target)])
    splitters = _splitters(sample, job, num_rows=num_rows)
    text = TextFiles(job.folder(f"{name}-text"), len(splitters) + 1)
    hash_bins = uniform_bins(0, 1 << 64, job.sizes.num_bins(2 * num_rows, max_bins=MAX_BINS // 2))
    by_source = BinFiles(job.folder(f"{name}-by-source"), hash_bins, [np.uint64, *job.payload.binned])

    def add_text(strings: Any) -> None:
        bin_of = np.empty(len(strings), np.uint16)
        split_strings(*buffers(strings), *buffers(splitters), bin_of)
        text.append(strings, bin_of)

    def distribute(block: EdgeBlock) -> None:
        source, target = as_binary(block.source), as_binary(block.target)
        by_source.append((hashes(source, seed), hashes(target, seed), *reader.columns(block)), job.scratch)
        add_text(_unique([source, target]))

    job.workers.drain(read_streams(edges, max(1 << 10, job.sizes.block_rows // BLOCK_SHARE)), distribute)
    if edges.extra_vertices is not None:
        add_text(_unique([as_binary(edges.extra_vertices)]))
    text.close()
    by_source.close()
    table, by_hash = TextFiles(job.folder(f"{name}-table"), text.num_bins), BinFiles(job.folder(f"{name}-by-hash"), hash_bins, [np.uint64])

    def number(index: int) -> None:
        at = index << PLACE_BITS
        for strings in _distinct(text, index, job.sizes.text_bytes):
            for start in range(0, len(strings), SLICE_STRINGS):
                part = strings.slice(start, SLICE_STRINGS)
                table.append_slice(index, part)
                by_hash.append((hashes(part, seed), np.arange(at, at + len(part), dtype=np.uint64)), job.scratch)
                at += len(part)
        table.close_bin(index)
        text.remove(index)

    job.each("sort ids", number, range(text.num_bins))
    by_hash.close()
    ids = StringIds(table)
    raw = join_edges(by_source, ids.num_ids, partial(_hash_tables, by_hash, ids.base), job)
    for index in range(hash_bins.num_bins):
        by_hash.remove(index)
    return ids, raw, reader


def _unique(arrays: list[Any]) -> Any:
    """Distinct strings of some arrays, in any order."""
    together = pa.chunked_array(arrays, pa.large_binary()).unique()
    return together.combine_chunks() if isinstance(together, pa.ChunkedArray) else together


def _sorted(strings: Any) -> Any:
    return strings.take(pc.array_sort_indices(strings))


def _splitters(sample: Any, job: Job, *, num_rows: int) -> Any:
    """Strings that cut all into ranges which fit in memory, by the sample."""
    mean_bytes = (sample.nbytes / len(sample) if len(sample) else 8) + 4
    count = min(MAX_BINS // 2, int(2 * num_rows * mean_bytes / max(1, job.sizes.text_bytes // 2)) + 1)
    ordered = _sorted(sample)
    positions = np.unique(np.linspace(0, len(ordered) - 1, count + 1).astype(np.int64)[1:-1]) if len(ordered) else np.empty(0, np.int64)
    return ordered.take(pa.array(positions))


def _distinct(files: TextFiles, index: int, most_bytes: int) -> Iterator[Any]:
    """Distinct strings of a bin, ascending, in as many passes over it as they need memory."""
    lowest = None
    while True:
        found, highest, pending, num_bytes = pa.array([], pa.large_binary()), None, [], 0
        for part in files.slices(index):
            strings, _ = files.read(index, part)
            if lowest is not None:
                strings = strings.filter(pc.greater(strings, lowest))
            if highest is not None:
                strings = strings.filter(pc.less_equal(strings, highest))
            pending.append(strings)
            num_bytes += strings.nbytes
            if num_bytes > most_bytes:
                found, pending = _unique([found, *pending]), []
                if found.nbytes > most_bytes // 2:
                    found = _sorted(found)
                    found = found.take(pa.array(np.arange(max(1, len(found) // 2))))
                    highest = found[-1]
                num_bytes = found.nbytes
        found = _sorted(_unique([found, *pending]))
        if len(found):
            yield found
        if highest is None:
            return
        lowest = highest
