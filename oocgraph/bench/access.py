"""What a graph on disk answers by pages: neighbours of random vertices, and samples of neighbours beside random reads of the same files.

In: a graph of plain local files. Out: a `Report`: pages asked by pages that hold the answer; batches of samples a second by what random
reads of 4 KiB, measured in turn with them, would allow. The page cache is emptied before each.
"""

from __future__ import annotations

import os
import statistics
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

from oocgraph.bench.disk import chunk_files, drop_page_cache
from oocgraph.bench.harness import Report, in_turn, paired_ratios
from oocgraph.config import settings
from oocgraph.errors import ArgumentError
from oocgraph.memory import Budget, PeakSampler, device_bytes_read
from oocgraph.store.answering import budget_of, ids_of
from oocgraph.store.arrays import PlainArray, StoredArray
from oocgraph.store.columns import as_numpy, distinct
from oocgraph.store.graph import CSRStore
from oocgraph.store.layout import ORDER, SORTED_ID, VERTEX_ID, string_arrays
from oocgraph.store.paged_ids import PagedIds
from oocgraph.store.row_places import row_ends
from oocgraph.store.sampling import draw_hops
from oocgraph.store.scattered import RangeReader
from oocgraph.types import PAGE_BYTES, Array, Progress

INDICES = "out/indices"

ID_ARRAYS = (ORDER, VERTEX_ID)
"""Arrays whose pages hold the numbers of given ids, and the ids of drawn vertices."""

CHECKED = 1000
"""Edges of an answer that are looked up in the graph."""


class CountingReader(RangeReader):
    """A reader that counts the pages that hold the edges it is asked for, by another way than by which it reads them."""

    def __init__(self, store: CSRStore, budget: Budget) -> None:
        super().__init__(store, budget)
        self.num_pages = Counter[str]()

    def __enter__(self) -> CountingReader:
        return self

    @property
    def asked_pages(self) -> int:
        """Pages of edges that were asked for."""
        return -(-self.bytes_read[INDICES] // PAGE_BYTES)

    def read(self, of: str | StoredArray, begin: Array, end: Array, *, gap_pages: int = 0) -> Array:
        """See `RangeReader.read`."""
        name = of if isinstance(of, str) else of.name
        if name in (INDICES, *ID_ARRAYS):
            self.num_pages[name] += pages_of(begin, end, PAGE_BYTES // self.store.array(name).dtype.itemsize)
        return super().read(of, begin, end, gap_pages=gap_pages)


def pages_of(begin: Array, end: Array, per_page: int) -> int:
    """Count the pages that hold some of the elements of ranges, by marking their first and last pages.

    Examples
    --------
    >>> pages_of(np.array([0, 3, 40]), np.array([2, 4, 65]), 8)
    5
    """
    filled = end > begin
    if not filled.any():
        return 0
    first, last = begin[filled] // per_page, (end[filled] - 1) // per_page
    marks = np.zeros(int(last.max()) + 2, np.int64)
    np.add.at(marks, first, 1)
    np.subtract.at(marks, last + 1, 1)
    return int(np.count_nonzero(np.cumsum(marks)))


def bench_access(
    store: CSRStore, *, num_ids: int, num_seeds: int, fanout: Sequence[int], num_rounds: int, seed: int, memory_budget: str | None,
    progress: Progress,
) -> Report:  # fmt: skip
    """Measure.

    Parameters
    ----------
    store
        The graph.
    num_ids
        Vertices, of those that have edges, whose neighbours are asked for.
    num_seeds, fanout
        Vertices of a batch, and neighbours drawn in each hop.
    num_rounds
        Batches, and measurements of random reads.
    seed
        The same seed draws the same vertices.
    memory_budget
        As of `CSRStore.neighbors`.
    progress
        Called with ("sampling", calls done, calls).
    """
    if not isinstance(store.array(INDICES), PlainArray) or not store.num_rows:
        raise ArgumentError(
            f"{store.url}: pages are those of plain local files with edges; build the graph without a codec, on a local disk"
        )
    rng = np.random.default_rng(seed)
    with PeakSampler() as sampler:
        near, invalid = _neighbours(store, _draw(store, rng, num_ids), memory_budget)
        batches, reads = _samples(store, [_draw(store, rng, num_seeds) for _ in range(num_rounds)], fanout, memory_budget, progress)
        drawn = store.sample_neighbors(_draw(store, rng, num_seeds), fanout, memory_budget=memory_budget)
        invalid += _no_edges(store, drawn.source[-CHECKED:], drawn.target[-CHECKED:], memory_budget)
    seconds = [one["seconds"] for one in batches]
    metrics = {
        "graph": store.url, "vertices": store.num_vertices, "edges": store.num_edges, **near,
        "num_seeds": num_seeds, "fanout": list(fanout),
        "median_sample_pages": statistics.median(one["num_pages"] for one in batches),
        "median_sample_id_pages": statistics.median(one["id_pages"] for one in batches),
        "sample_page_ratio": sum(one["asked_pages"] for one in batches) / max(1, sum(one["num_pages"] for one in batches)),
        "batches_per_second": 1 / statistics.median(seconds),
        "random_reads_per_second": statistics.median(reads),
        **paired_ratios("ratio_to_random_reads", _allowed_seconds(batches, reads), seconds),
        **paired_ratios("edge_ratio_to_random_reads", _allowed_seconds(batches, reads, ids=False), seconds),
        "peak_host_bytes": sampler.peak_bytes, "batches": batches,
    }  # fmt: skip
    return Report(title=repr(store), metrics=metrics, invalid=tuple(invalid))


def _allowed_seconds(batches: Sequence[Mapping[str, Any]], rates: Sequence[float], *, ids: bool = True) -> list[float]:
    """Return what random reads of the pages of each batch would take, those of ids included or not."""
    return [(one["num_pages"] + ids * one["id_pages"]) / rate for one, rate in zip(batches, rates, strict=True)]


def _draw(store: CSRStore, rng: np.random.Generator, count: int) -> Any:
    """Return ids of random vertices that have edges."""
    return store.ids_of(rng.integers(0, store.num_rows, count))


def _id_arrays(store: CSRStore) -> list[str]:
    columns = (SORTED_ID, VERTEX_ID)
    return [ORDER, *(columns if store.attributes.id_kind == "int64" else [one for name in columns for one in string_arrays(name)])]


def _empty_cache(store: CSRStore) -> None:
    """Drop the pages of all that an answer reads."""
    drop_page_cache(chunk_files(store.array(name) for name in (INDICES, *_id_arrays(store))))


def _neighbours(store: CSRStore, ids: Any, memory_budget: str | None) -> tuple[dict[str, Any], list[str]]:
    """Ask for neighbours once, cold; count pages by reading the same rows again."""
    store.neighbors(ids[:10])  # what is loaded at first is not measured
    _empty_cache(store)
    before, began = device_bytes_read(), time.perf_counter()
    lists = store.neighbors(ids, memory_budget=memory_budget)
    seconds, num_bytes = time.perf_counter() - began, device_bytes_read() - before
    near = lists.flatten()
    sources = np.repeat(ids, np.diff(lists.offsets.to_numpy()))[:CHECKED]
    invalid = _no_edges(store, sources, as_numpy(near[:CHECKED]), memory_budget)
    with CountingReader(store, budget_of(store, memory_budget)) as reader:
        reader.read(INDICES, *row_ends(store, "out", distinct(PagedIds(reader).vertices_of(ids))))
    metrics = {
        "num_ids": len(ids), "num_neighbours": len(near), "neighbour_pages": reader.num_pages[INDICES],
        "neighbour_page_ratio": reader.asked_pages / max(1, reader.num_pages[INDICES]), "neighbour_seconds": seconds,
        "neighbour_device_bytes": num_bytes,
    }  # fmt: skip
    return metrics, invalid


def _samples(
    store: CSRStore, seeds: Sequence[Any], fanout: Sequence[int], memory_budget: str | None, progress: Progress
) -> tuple[list[dict[str, Any]], list[float]]:  # fmt: skip
    """Draw batches and read random pages in turn, each with an empty cache."""
    store.sample_neighbors(seeds[0][:2], fanout)
    num_reads = _count(store, seeds[0], fanout, memory_budget).num_pages[INDICES]
    subjects = {
        "batch": lambda one: _cold_batch(store, one[1], fanout, memory_budget),
        "reads": lambda one: random_reads_per_second(store, num_reads, seed=one[0]),  # others each time: disks have caches, too
    }
    found = in_turn(subjects, list(enumerate(seeds)), progress, phase="sampling", alternate=True)
    return found["batch"], found["reads"]


def _cold_batch(store: CSRStore, ids: Any, fanout: Sequence[int], memory_budget: str | None) -> dict[str, Any]:
    """Draw a batch with an empty cache; seconds and bytes from the disk include those of ids, as `id_pages` does."""
    _empty_cache(store)
    before, began = device_bytes_read(), time.perf_counter()
    drawn = store.sample_neighbors(ids, fanout, memory_budget=memory_budget)
    seconds, num_bytes = time.perf_counter() - began, device_bytes_read() - before
    counted = _count(store, ids, fanout, memory_budget)
    return {
        "num_edges": drawn.hop.size,
        "num_pages": counted.num_pages[INDICES],  # that hold the drawn positions, counted hop by hop
        "id_pages": sum(counted.num_pages[name] for name in ID_ARRAYS),
        "asked_pages": counted.asked_pages,
        "seconds": seconds,
        "device_bytes_read": num_bytes,
    }


def _count(store: CSRStore, ids: Any, fanout: Sequence[int], memory_budget: str | None) -> CountingReader:
    """Draw a batch again, and return the reader that counts the pages."""
    with CountingReader(store, budget_of(store, memory_budget)) as reader:
        numbers = distinct(PagedIds(reader).vertices_of(ids))
        hops = list(draw_hops(reader, "out", numbers, fanout, 0, replace=False))
        ids_of(reader, np.concatenate([numbers, *(one.neighbour for one in hops)]))
    return reader


def random_reads_per_second(store: CSRStore, num_reads: int, *, seed: int) -> float:
    """Read random pages of the edges, as many threads at a time as the library's, and not from the page cache."""
    array = store.array(INDICES)
    assert isinstance(array, PlainArray)
    num_pages, chunk_bytes = -(-array.length * array.dtype.itemsize // PAGE_BYTES), array.chunk_length * array.dtype.itemsize
    places = np.random.default_rng(seed).choice(num_pages, min(num_reads, num_pages), replace=False) * PAGE_BYTES
    _empty_cache(store)
    fds, num_threads = [array.open_chunk(chunk) for chunk in range(array.num_chunks)], settings().io_threads
    try:
        for fd in fds:
            os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_RANDOM)

        def read(part: list[int]) -> None:
            buffer = bytearray(PAGE_BYTES)
            for place in part:
                os.preadv(fds[place // chunk_bytes], [buffer], place % chunk_bytes)

        parts = [places[i::num_threads].tolist() for i in range(num_threads)]
        with ThreadPoolExecutor(num_threads, thread_name_prefix="oocgraph-bench") as pool:
            began = time.perf_counter()
            list(pool.map(read, parts))
            return places.size / max(time.perf_counter() - began, 1e-9)
    finally:
        for fd in fds:
            os.close(fd)


def _no_edges(store: CSRStore, source: Any, target: Any, memory_budget: str | None) -> list[str]:
    """Return the first pair that is no edge of the graph, in words."""
    wrong = np.flatnonzero(~store.has_edge(source, target, memory_budget=memory_budget))
    return [f"{source[i]} - {target[i]} is no edge" for i in wrong[:1]]
