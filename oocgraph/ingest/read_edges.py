"""Step 1: read every edge once and distribute it to bins by provisional row, with its columns.

In: an edge source whose ids are positions in a range, plus `first`. Out: bins of raw edges, each edge once, and the number of rows read.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from oocgraph.errors import BudgetError, InputError
from oocgraph.external_sort.bins import BinFiles
from oocgraph.external_sort.key_bins import KeyBins, sampled_bins
from oocgraph.ingest.build_job import Job, with_more
from oocgraph.ingest.edges import EdgeBlock, EdgeSource, read_streams
from oocgraph.ingest.ids import RangeIds
from oocgraph.ingest.payload import Categories
from oocgraph.kernels.build import edge_keys
from oocgraph.memory import enough_memory
from oocgraph.store.records import Records, canonical, key_bits
from oocgraph.types import Array

SAMPLED_STREAMS = 8
"""Parts of the source whose first rows are the sample for balancing bins."""

SAMPLED_ROWS = 1 << 15

CATEGORY_SHARE = 0.25
"""Share of the free budget that the categories of all string columns may take."""

CATEGORY_MARGIN = 1.1
"""How much more a refusal names than what the categories found so far would grow to."""

UNKNOWN_ROWS = 1 << 27
"""Edges assumed when the source does not know: bins that come out too large are split, too small ones cost little."""


@dataclass(slots=True)
class ColumnReader:
    """Turns the columns of a block into those of records.

    Attributes
    ----------
    job, edges
        The build, and what it reads.
    categories
        Of each string column, by position.
    num_rows
        Rows read so far.
    """

    job: Job
    edges: EdgeSource
    categories: dict[int, Categories] = field(default_factory=dict)
    num_rows: int = 0
    _most_bytes: int = 0
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def __post_init__(self) -> None:
        names = [name for name, dtype in self.job.payload.extra.items() if dtype is None]
        self._most_bytes = int(CATEGORY_SHARE * self.job.budget.available_bytes / max(1, len(names)))
        order = list(self.job.payload.extra)
        self.categories = {order.index(name): Categories() for name in names}

    def columns(self, block: EdgeBlock) -> Records:
        """Columns of a block, as `Payload.binned`; counts its rows.

        Raises
        ------
        BudgetError
            A column has more distinct strings than fit.
        """
        payload = self.job.payload
        out = []
        for position, (name, dtype) in enumerate(payload.extra.items()):
            values = block.columns[name]
            if dtype is None:
                out.append(self.categories[position].encode(values))
                self._check(name, self.categories[position])
            else:
                out.append(canonical(np.asarray(values), dtype))
        if payload.needs_rows:
            out.append(np.arange(block.first_row, block.first_row + len(block.source), dtype=np.uint64))
        if payload.weight:
            name, dtype = payload.weight
            out.append(canonical(np.asarray(block.columns[name]), dtype))
        with self._lock:
            self.num_rows += len(block.source)
            self.job.progress("read edges", self.num_rows, self.edges.num_rows or 0)
        return tuple(out)

    def _check(self, name: str, categories: Categories) -> None:
        """Refuse distinct strings that do not fit; the budget that is named is for as many in the rows that follow."""
        if categories.num_bytes <= self._most_bytes:
            return
        found, read = categories.counts()
        share = max(1.0, (self.edges.num_rows or self.edges.likely_rows or read) / read)
        wanted = int(CATEGORY_MARGIN * share * categories.num_bytes * len(self.categories) / CATEGORY_SHARE)
        raise BudgetError(
            f"edge column {name!r} has {found:,} distinct strings in {read:,} rows, which do not fit the memory budget; "
            f"{enough_memory(with_more(self.job, wanted))}, if the others have as many, or leave the column out"
        )

    def finish(self) -> dict[int, Array]:
        """Write the categories of string columns to the store; return what each provisional code becomes, by column."""
        codes = {}
        names = list(self.job.payload.extra)
        for position, categories in self.categories.items():
            words, codes[position] = categories.finish()
            offsets = np.append(0, np.cumsum([len(word) for word in words], dtype=np.int64))
            self.job.writer.write(f"columns/{names[position]}/bytes", np.frombuffer(b"".join(words), np.uint8))
            self.job.writer.write(f"columns/{names[position]}/offsets", offsets)
        return codes


def expected_rows(edges: EdgeSource) -> int:
    """Return about how many edges a source has."""
    return edges.num_rows or edges.likely_rows or UNKNOWN_ROWS


def raw_bins(num_ids: int, sample: Array, job: Job, *, num_rows: int) -> KeyBins:
    """Ranges of edge keys for about `num_rows` edges."""
    return sampled_bins(0, max(1, num_ids) << key_bits(num_ids), job.sizes.num_bins(num_rows), sample)


def read_edges(edges: EdgeSource, ids: RangeIds, job: Job) -> tuple[BinFiles, ColumnReader]:
    """Bin every edge of a source whose ids fill a range."""
    reader = ColumnReader(job, edges)

    def keys_of(block: EdgeBlock) -> Array:
        keys = job.scratch.get("keys", block.source.size, np.uint64)
        first, length, bits = np.int64(ids.first), np.uint64(ids.num_ids), np.uint64(key_bits(ids.num_ids))
        bad = edge_keys(block.source, block.target, first, length, bits, not job.directed, keys)
        if bad >= 0:
            declared = "that were declared; correct num_vertices, or the edge"
            if edges.num_vertices is None:
                declared = "that the statistics of the file give; they are wrong: write the file again"
            raise InputError(
                f"{edges.description}: row {block.first_row + bad + 1} is an edge from {block.source[bad]} to {block.target[bad]}, outside "
                f"the ids {ids.first} to {ids.first + ids.num_ids - 1} {declared}"
            )
        return keys

    sample = [keys_of(block).copy() for block in first_blocks(edges)]
    bins = raw_bins(ids.num_ids, np.concatenate([np.empty(0, np.uint64), *sample]), job, num_rows=expected_rows(edges))
    files = BinFiles(job.folder("edges"), bins, job.payload.binned)

    gathered = _Gathered(files, job)

    def distribute(block: EdgeBlock) -> None:
        columns = reader.columns(block)
        if columns:
            files.append((keys_of(block), *columns), job.scratch)
        else:
            gathered.append(keys_of(block))

    job.workers.drain(read_streams(edges, job.sizes.block_rows), distribute)
    gathered.finish()
    files.close()
    return files, reader


class _Gathered:
    """Gathers the keys of small blocks, such as those of Parquet files, before they are dealt: a write costs as much as 4 KiB."""

    def __init__(self, files: BinFiles, job: Job) -> None:
        self._files, self._job = files, job
        self._waiting: list[tuple[Array, int]] = []  # buffers that no thread is at, and how many keys each has

    def append(self, keys: Array) -> None:
        """Add keys, from any thread."""
        try:
            buffer, count = self._waiting.pop()
        except IndexError:
            buffer, count = np.empty(max(keys.size, self._job.sizes.block_rows), np.uint64), 0
        if count + keys.size > buffer.size:
            self._files.append((buffer[:count],), self._job.scratch)
            count = 0
        buffer[count : count + keys.size] = keys
        self._waiting.append((buffer, count + keys.size))

    def finish(self) -> None:
        """Deal what is left."""
        for buffer, count in self._waiting:
            self._files.append((buffer[:count],), self._job.scratch)
        self._waiting.clear()


def first_blocks(edges: EdgeSource, num_rows: int = SAMPLED_ROWS) -> Iterator[EdgeBlock]:
    """First rows of a few parts of the source, as a sample."""
    streams = read_streams(edges, num_rows)
    chosen = streams[:: max(1, -(-len(streams) // SAMPLED_STREAMS))]
    for stream in chosen:
        if (block := next(stream(), None)) is not None:
            yield block
