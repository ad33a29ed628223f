"""Loading a graph into memory with an empty page cache, beside plain reads of the same bytes, and the searches that follow.

In: a graph of plain local files. Out: a `Report`. Two threads read what a load keeps in memory, in order: once into memory as large, as a
load does, which the system has to give first; once into a small buffer each, again and again. Files leave the page cache before each
(`oocgraph.bench.disk.drop_page_cache`).
"""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from queue import SimpleQueue
from typing import Any

import numpy as np

from oocgraph.bench.disk import chunk_files, drop_page_cache
from oocgraph.bench.harness import Report, in_turn, paired_ratios
from oocgraph.engine.local import LocalRuntime
from oocgraph.errors import ArgumentError
from oocgraph.memory import PeakSampler
from oocgraph.store.arrays import PlainArray
from oocgraph.store.graph import CSRStore
from oocgraph.types import Array, Progress

READ_BYTES = 4 << 20
"""One read of a plain reader."""

READ_THREADS = 2


def bench_load(store: CSRStore, *, num_rounds: int, num_searches: int, memory_budget: str | None, progress: Progress) -> Report:
    """Measure.

    Parameters
    ----------
    store
        The graph.
    num_rounds
        Loads, and reads of either kind.
    num_searches
        Searches after the first, from the first vertex in store order: where lists are in degree order the one with most edges.
    memory_budget
        As of `oocgraph.bfs`.
    progress
        Called with ("loading", calls done, calls).
    """
    names = [name for name in store.array_names() if name.endswith("indices")]
    plain = {name: array for name in names if isinstance(array := store.array(name), PlainArray)}
    if len(plain) < len(names) or not store.num_rows:
        raise ArgumentError(f"{store.url}: only plain local files with edges are read; build the graph without a codec, on a local disk")
    with LocalRuntime.open(store, memory_budget=memory_budget) as runtime:  # libraries and kernels are in memory after this
        sizes = {name: array.nbytes for name, array in runtime.resident.items() if array.size}
        runtime.search(np.zeros(1, np.int64))
    files = {plain[name]: num_bytes for name, num_bytes in sizes.items()}
    with PeakSampler() as sampler:
        found = in_turn(
            {
                "load": lambda _: _load(store, files, num_searches, memory_budget),
                "read": lambda _: read_seconds(files, keep=True),
                "pass": lambda _: read_seconds(files, keep=False),
            },
            range(num_rounds), progress, phase="loading",
        )  # fmt: skip
    loads: list[dict[str, Any]] = found["load"]
    seconds = [one["seconds"] for one in loads]
    metrics = {
        "graph": store.url, "resident_bytes": sum(sizes.values()),
        "median_load_seconds": statistics.median(seconds),
        "median_read_seconds": statistics.median(found["read"]), "median_pass_seconds": statistics.median(found["pass"]),
        **paired_ratios("ratio_to_read", seconds, found["read"]), **paired_ratios("ratio_to_pass", seconds, found["pass"]),
        "first_to_median_search": statistics.median(one["searches"][0] / statistics.median(one["searches"][1:]) for one in loads),
        "peak_host_bytes": sampler.peak_bytes, "loads": loads,
    }  # fmt: skip
    return Report(title=repr(store), metrics=metrics)


def _load(store: CSRStore, files: Mapping[PlainArray, int], num_searches: int, memory_budget: str | None) -> dict[str, Any]:
    """Load, and search from one vertex; `seconds` are until the first search may begin."""
    drop_page_cache(chunk_files(files))
    began = time.perf_counter()
    with LocalRuntime.open(store, memory_budget=memory_budget) as runtime:
        seconds = time.perf_counter() - began
        searches = [runtime.search(np.zeros(1, np.int64)).seconds for _ in range(1 + num_searches)]
        num_bytes = sum(array.nbytes for array in runtime.resident.values())
        return {"seconds": seconds, "resident_bytes": num_bytes, "searches": searches}


def read_seconds(files: Mapping[PlainArray, int], *, keep: bool) -> float:
    """Read the first bytes of some arrays from the disk, into memory as large or into small buffers; returns how long that takes."""
    drop_page_cache(chunk_files(files))
    fds, pieces, total = [], [], 0
    try:
        for array, num_bytes in files.items():
            chunk_bytes = array.chunk_length * array.dtype.itemsize
            for chunk in range(-(-num_bytes // chunk_bytes)):
                fds.append(array.open_chunk(chunk))
                size = min(chunk_bytes, num_bytes - chunk * chunk_bytes)
                for offset in range(0, size, READ_BYTES):
                    pieces.append((fds[-1], offset, total, min(READ_BYTES, size - offset)))
                    total += pieces[-1][-1]
        buffers: SimpleQueue[Array] = SimpleQueue()
        for _ in range(READ_THREADS):
            buffers.put(np.empty(READ_BYTES, np.uint8))
        began = time.perf_counter()
        kept = np.empty(total if keep else 0, np.uint8)

        def read(piece: tuple[int, int, int, int]) -> None:
            fd, offset, at, size = piece
            buffer = buffers.get()
            os.preadv(fd, [(kept[at : at + size] if keep else buffer[:size]).data], offset)
            buffers.put(buffer)

        with ThreadPoolExecutor(READ_THREADS, thread_name_prefix="oocgraph-bench") as pool:
            list(pool.map(read, pieces))
        return time.perf_counter() - began
    finally:
        for fd in fds:
            os.close(fd)
