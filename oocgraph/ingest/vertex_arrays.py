"""Step 4: the arrays that join store order with the user's ids.

In: ranks by ascending id. Out: ``vertices/sorted_id``, ``order`` and ``isolated_id``, written as they come, and
``vertices/id`` in store order, through bins by rank.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from oocgraph.arrow import from_numbers
from oocgraph.external_sort.bins import BinFiles
from oocgraph.external_sort.key_bins import KeyBins, uniform_bins
from oocgraph.external_sort.text_files import TextFiles
from oocgraph.ingest.build_job import BIN_RECORDS, MAX_BINS, MOST_BINS, Job
from oocgraph.ingest.ids import Ids
from oocgraph.ingest.ranks import RankBlock
from oocgraph.kernels.build import put_at
from oocgraph.store import layout
from oocgraph.store.strings import Placed
from oocgraph.store.writer import ArrayWriter, StringWriter
from oocgraph.types import Array, index_dtype

BIN_TEXTS = 4
"""Bytes of a bin's strings, in those that a thread may hold to sort: to put them in order takes three copies, not `TEXT_COPIES`. A larger
bin, of long strings or of very many, is dealt to more files: written and read once more."""


class IntegerIds:
    """How ids that are int64 are stored and brought into store order: in memory, where half of what a thread may sort has room for them."""

    def __init__(self, job: Job, num_vertices: int) -> None:
        self._job = job
        self._bins = rank_bins(num_vertices, job.sizes.capacity // 2, MAX_BINS)
        self._files = BinFiles(job.folder("ids"), self._bins, [np.int64])
        is_placed = 2 * 8 * num_vertices <= job.sizes.capacity * job.sizes.record_bytes
        self._placed: Array | None = np.empty(num_vertices, np.int64) if is_placed else None

    def create(self, name: str) -> ArrayWriter:
        """Begin an array of ids in the store."""
        return self._job.writer.create(name, np.int64)

    def select(self, ids: Array, places: Array) -> Array:
        """Return the ids at some places."""
        return ids[places]

    def bin(self, rank: Array, ids: Array) -> None:
        """Deal ids to bins by rank, or put them in their places."""
        if self._placed is not None:
            put_at(rank, 0, ids, self._placed)
        else:
            self._files.append((rank.astype(np.uint64), ids), self._job.scratch)

    def placed(self, job: Job) -> Iterator[Array]:
        """Ids in order of rank, in blocks."""
        self._files.close()

        def place(index: int) -> Array:
            rank, ids = self._files.read(index, job.scratch)
            placed = np.empty(ids.size, np.int64)
            put_at(rank, self._bins.starts[index], ids, placed)
            self._files.remove(index)
            return placed

        if self._placed is not None:
            return iter([self._placed])
        return job.workers.ordered(place, range(self._bins.num_bins))


class TextIds:
    """How ids that are strings, as pyarrow arrays of large_binary, are stored and brought into store order."""

    def __init__(self, job: Job, num_vertices: int, mean_bytes: float) -> None:
        self._job = job
        fitting = max(1, int(job.sizes.text_bytes / max(1.0, mean_bytes)))
        self._bins = rank_bins(num_vertices, min(job.sizes.capacity // 4, fitting), MOST_BINS)
        self._files = TextFiles(job.folder("ids"), self._bins.num_bins, keyed=True)

    def create(self, name: str) -> StringWriter:
        """Begin an array of ids in the store."""
        data, offsets = layout.string_arrays(name)
        return StringWriter(self._job.writer.create(data, np.uint8), self._job.writer.create(offsets, np.int64))

    def select(self, ids: Any, places: Array) -> Any:
        """Return the ids at some places."""
        return ids.take(from_numbers(places))

    def bin(self, rank: Array, ids: Any) -> None:
        """Deal ids to bins by rank."""
        keys, bin_of = rank.astype(np.uint64), np.empty(rank.size, np.uint16)
        self._bins.assign(keys, bin_of)
        self._files.append(Placed.of([ids]), bin_of, keys)

    def placed(self, job: Job) -> Iterator[Any]:
        """Ids in order of rank, in blocks."""
        self._files.close()

        def place(item: tuple[TextFiles, int, int]) -> Any:
            files, index, first = item
            parts = [files.read(index, part) for part in files.slices(index)]
            files.remove(index)
            rank = np.concatenate([np.empty(0, np.uint64), *(keys for _, keys in parts)])
            order = np.empty(rank.size, np.int64)
            order[rank - np.uint64(first)] = np.arange(rank.size)
            return Placed.of([strings for strings, _ in parts]).copied(order)

        return job.workers.ordered(place, self._fitting())

    def _fitting(self) -> Iterator[tuple[TextFiles, int, int]]:
        """Iterate over bins that a thread may hold, with their first rank: larger ones are dealt to more files."""
        most_bytes = BIN_TEXTS * self._job.sizes.text_bytes
        for index, first in enumerate(self._bins.starts[:-1]):
            if self._files.size(index) <= most_bytes or self._files.counts[index] < 2:
                yield self._files, index, first
                continue
            files, starts = self._dealt(index, first, most_bytes)
            for part, start in enumerate(starts.tolist()):
                yield files, part, first + start

    def _dealt(self, index: int, first: int, most_bytes: int) -> tuple[TextFiles, Array]:
        """Deal a bin to files of about so many bytes; return where, from `first` on, each begins."""
        num_bytes, slices = np.zeros(int(self._files.counts[index]), np.int64), list(self._files.slices(index))
        for part in slices:
            lengths, keys = self._files.lengths(index, part)
            num_bytes[keys - np.uint64(first)] = lengths
        stop = np.cumsum(num_bytes)
        wanted = (stop - num_bytes) // max(most_bytes, -(-int(stop[-1]) // MAX_BINS))
        starts = np.flatnonzero(np.append(True, np.diff(wanted)))
        bin_of = np.repeat(np.arange(starts.size, dtype=np.uint16), np.diff(np.append(starts, wanted.size)))
        files = TextFiles(self._job.folder(f"ids-{index}"), starts.size, keyed=True)
        for part in slices:
            strings, keys = self._files.read(index, part)
            files.append(Placed.of([strings]), bin_of[keys - np.uint64(first)], keys)
        self._files.remove(index)
        files.close()
        return files, starts


def rank_bins(num_vertices: int, capacity: int, most_bins: int) -> KeyBins:
    """Ranges of ranks that fit in memory, and in the cache, where ids are put in order."""
    return uniform_bins(0, max(1, num_vertices), min(most_bins, max(1, -(-num_vertices // max(1, min(capacity, BIN_RECORDS))))))


def write_vertices(blocks: Iterator[RankBlock], ids: Ids, id_kind: str, job: Job, *, num_vertices: int) -> int:
    """Write the arrays of vertices; return how many are in the input, isolated ones included."""
    kind = IntegerIds(job, num_vertices) if id_kind == "int64" else TextIds(job, num_vertices, ids.mean_bytes)
    sorted_id = kind.create(layout.SORTED_ID)
    order = job.writer.create(layout.ORDER, index_dtype(num_vertices))
    isolated_id = None if ids.implied else kind.create(layout.ISOLATED_ID)
    num_present = 0

    def with_ids() -> Iterator[tuple[RankBlock, Any]]:  # one after the other: ids of two stores are read from front to back
        for block in blocks:
            at = block.start
            while at < block.stop:
                own = ids.read(at, block.stop)
                yield block.part(at, at + len(own)), own
                at += len(own)

    def prepare(item: tuple[RankBlock, Any]) -> tuple[RankBlock, Array, Any, Any]:
        block, own = item
        used = np.flatnonzero(block.used)
        rank, used_ids = block.rank[used], kind.select(own, used)
        kind.bin(rank, used_ids)
        return block, rank, used_ids, None if isolated_id is None else kind.select(own, np.flatnonzero(block.present & ~block.used))

    for block, rank, used_ids, isolated in job.workers.ordered(prepare, with_ids()):
        sorted_id.append(used_ids)
        order.append(rank)
        if isolated_id is not None:
            isolated_id.append(isolated)
        num_present += int(np.count_nonzero(block.present))
        job.progress("number vertices", block.start + block.rank.size, ids.num_ids)
    out = kind.create(layout.VERTEX_ID)
    for placed in kind.placed(job):
        out.append(placed)
    return ids.implied[1] - ids.implied[0] if ids.implied else num_present
