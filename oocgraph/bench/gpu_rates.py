"""How fast the memories are that a search on a GPU moves edges between: what its times are judged by.

In: a device, and the arrays of a graph on disk. Out: bytes per second. Copies are timed by the device's own events, reads by the host's
clock.
"""

from __future__ import annotations

import errno
import mmap
import os
import queue
import statistics
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np

from oocgraph.arrays import Device
from oocgraph.memory import available_bytes
from oocgraph.store.arrays import PlainArray, StoredArray
from oocgraph.types import PAGE_BYTES

COPY_BYTES = 1 << 30
"""One copy within the device, where it has room for both ends: beyond any cache."""

LINK_COPY_BYTES = 256 << 20
"""One copy over the link: 4 ms and more, so that what starting it takes does not count."""

COPIES = 10

READ_BYTES = 4 << 20
READ_THREADS = 8
"""Ranges read at a time: deep enough a queue for fast disks."""

READ_LIMIT_BYTES = 8 << 30
"""What is read at most to measure a disk."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceRates:
    """Bytes per second.

    Attributes
    ----------
    device_copy
        Within device memory, bytes read and bytes written.
    link
        From pinned host memory to the device.
    """

    device_copy: float
    link: float


@dataclass(frozen=True, slots=True, kw_only=True)
class DiskRate:
    """What the disk under a graph gives.

    Attributes
    ----------
    bytes_per_second
        Of the graph's own chunks, read in order; None where that cannot be measured.
    how
        Past the page cache or not, how much; or why there is no figure.
    """

    bytes_per_second: float | None
    how: str


def measure_device(device: Device, *, copy_bytes: int = COPY_BYTES, link_bytes: int = LINK_COPY_BYTES) -> DeviceRates:
    """Measure copies within the device and to it.

    Parameters
    ----------
    copy_bytes, link_bytes
        Of one copy, where there is room; less otherwise.
    """
    stream = device.stream()
    size = _rounded(min(copy_bytes, device.free_bytes() // 4))
    source, target = device.empty(size, np.uint8), device.empty(size, np.uint8)
    within = 2 * size / _median_seconds(device, stream, source, target)
    size = _rounded(min(link_bytes, size, available_bytes() // 8))
    pinned = device.pinned(size)
    pinned[:] = 1
    link = size / _median_seconds(device, stream, pinned, target[:size])
    del source, target, pinned
    device.close()
    return DeviceRates(device_copy=within, link=link)


def _rounded(num_bytes: int) -> int:
    return max(PAGE_BYTES, num_bytes // PAGE_BYTES * PAGE_BYTES)


def _median_seconds(device: Device, stream: object, source: np.ndarray, target: np.ndarray) -> float:
    start, stop, seconds = device.event(), device.event(), []
    for _ in range(COPIES + 1):
        device.record(start, stream)
        device.copy(source, target, stream)
        device.record(stop, stream)
        device.synchronize(stop)
        seconds.append(device.seconds(start, stop))
    return max(statistics.median(seconds[1:]), 1e-9)  # the first touches the memory


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
        buffers.put(mmap.mmap(-1, READ_BYTES))  # at a page boundary, as O_DIRECT wants
    for fd in fds:
        os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)

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


def empty_page_cache(arrays: Sequence[StoredArray]) -> None:
    """Let the page cache forget a graph's chunks, so that the next search reads them from the disk."""
    for array in arrays:
        if isinstance(array, PlainArray):
            for chunk in range(array.num_chunks):
                fd = array.open_chunk(chunk)
                try:
                    os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
                finally:
                    os.close(fd)
