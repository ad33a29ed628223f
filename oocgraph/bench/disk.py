"""The disk under a graph: its bandwidth, and files that leave the page cache, so that the next reader measures the disk.

In: arrays of a store, or files. Out: bytes per second of the graph's own chunks, read in order.
"""

from __future__ import annotations

import errno
import mmap
import os
import queue
import time
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from oocgraph.store.arrays import PlainArray, StoredArray

SEQUENTIAL_BYTES = 8 << 20
"""One read of the sequential reader."""

READ_BYTES = 4 << 20
READ_THREADS = 8
"""Ranges read at a time: deep enough a queue for fast disks."""

READ_LIMIT_BYTES = 8 << 30
"""Most bytes that are read to measure a disk."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DiskRate:
    """Bandwidth of the disk under a graph.

    Attributes
    ----------
    bytes_per_second
        Rate at which the graph's own chunks were read in order; None where that cannot be measured.
    how
        Number of bytes, and whether past the page cache; or why there is no rate.
    """

    bytes_per_second: float | None
    how: str


def drop_page_cache(paths: Iterable[Path]) -> None:
    """Write files to the disk and drop their pages."""
    for path in paths:
        if path.is_file():
            with path.open("rb") as file:
                drop_pages(file.fileno())


def drop_pages(descriptor: int) -> None:
    """Write an open file to the disk and drop its pages."""
    os.fdatasync(descriptor)
    with suppress(OSError):  # a file system without a cache has no pages to drop
        os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)


def chunk_files(arrays: Iterable[StoredArray]) -> list[Path]:
    """Return the chunk files of those arrays that have some: the uncompressed ones of a local store."""
    return [array.chunk_path(chunk) for array in arrays if isinstance(array, PlainArray) for chunk in range(array.num_chunks)]


def sequential_bytes_per_second(arrays: Sequence[StoredArray]) -> float | None:
    """Read chunks from first to last, uncached, as one thread does that does nothing else; None where they are not plain files."""
    if not all(isinstance(array, PlainArray) for array in arrays):
        return None
    paths = chunk_files(arrays)
    drop_page_cache(paths)
    buffer, num_bytes, began = bytearray(SEQUENTIAL_BYTES), 0, time.perf_counter()
    for path in paths:
        with path.open("rb", buffering=0) as file:
            while count := file.readinto(buffer):
                num_bytes += count
    return num_bytes / max(time.perf_counter() - began, 1e-9) if num_bytes else None


def measure_disk(arrays: Sequence[StoredArray], *, limit_bytes: int = READ_LIMIT_BYTES) -> DiskRate:
    """Read a graph's chunks in order, several ranges at a time, from the disk and not from the page cache."""
    plain = [array for array in arrays if isinstance(array, PlainArray)]
    if len(plain) < len(arrays):
        return DiskRate(bytes_per_second=None, how="the graph is not plain files on a local disk")
    how, fds = "past the page cache (O_DIRECT)", []
    try:
        try:
            fds = [array.open_chunk(chunk, os.O_DIRECT) for array in plain for chunk in range(array.num_chunks)]
        except OSError as error:
            if error.errno != errno.EINVAL:
                raise
            how = "through the page cache, emptied before: this file system has no O_DIRECT"
            fds = [array.open_chunk(chunk) for array in plain for chunk in range(array.num_chunks)]
        seconds, num_bytes = _read_all(fds, limit_bytes)
    finally:
        for fd in fds:
            os.close(fd)
    return DiskRate(bytes_per_second=num_bytes / max(seconds, 1e-9), how=f"{num_bytes:,} bytes {how}")


def _read_all(fds: list[int], limit_bytes: int) -> tuple[float, int]:
    """Return seconds and bytes of reading all files, up to a limit."""
    pieces = [(fd, offset) for fd in fds for offset in range(0, os.fstat(fd).st_size, READ_BYTES)]
    buffers: queue.SimpleQueue[mmap.mmap] = queue.SimpleQueue()
    for _ in range(READ_THREADS):
        buffers.put(mmap.mmap(-1, READ_BYTES))  # at a page boundary, as O_DIRECT requires
    for fd in fds:
        drop_pages(fd)

    def read(piece: tuple[int, int]) -> int:
        buffer = buffers.get()
        try:
            return os.preadv(piece[0], [buffer], piece[1])
        finally:
            buffers.put(buffer)

    with ThreadPoolExecutor(READ_THREADS, thread_name_prefix="oocgraph-bench") as pool:
        began = time.perf_counter()
        num_bytes = sum(pool.map(read, pieces[: max(1, limit_bytes // READ_BYTES)]))
        return time.perf_counter() - began, num_bytes
