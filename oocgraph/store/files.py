"""Bytes between memory and open files, also where the system takes or gives fewer of them than it was asked for."""

from __future__ import annotations

import ctypes
import errno
import logging
import mmap
import os
import threading
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from oocgraph.types import PAGE_BYTES, Array

logger = logging.getLogger(__name__)

DIRECT_BYTES = 1 << 20
"""Bytes that `PastCache` writes at a time."""

LEAST_DIRECT_BYTES = 1 << 18
"""Bytes from which on a write past the page cache is faster: each waits for the disk."""


def write_all(fd: int, arrays: Sequence[Array]) -> None:
    """Append arrays to a file, in one call unless the system writes less."""
    write_views(fd, _views(arrays))


def write_views(fd: int, waiting: list[memoryview]) -> None:
    """Append bytes, none of them empty, as `write_all` does; the list is emptied. Views are sliced in less time than arrays."""
    while waiting:
        _drop(waiting, os.writev(fd, waiting))


def write_at(fd: int, array: Array, offset: int) -> None:
    """Write an array to a file at `offset`."""
    (view,) = _views([array]) or [memoryview(b"")]
    while view:
        done = os.pwrite(fd, view, offset)
        view, offset = view[done:], offset + done


class PastCache:
    """Writes whole pages past the page cache (O_DIRECT); any thread may ask, each in turn.

    Pages of memory are written from where they are; what lies otherwise is copied through a buffer of `DIRECT_BYTES` first.

    What is forced to disk anyway gains nothing from the cache: the copy takes 0.25 s of processor time a GB, 0.8 to 1.8 s where the host of
    a virtual machine has taken free memory back, and evicts what others read. Only on file systems of a block device: others (network,
    FUSE, overlays) have device numbers of major 0, and may have each such write wait for a server.
    """

    def __init__(self) -> None:
        self._buffer: mmap.mmap | None = None
        self._lock, self._is_possible = threading.Lock(), True

    def write(self, path: Path, raw: Array, offset: int, flags: int) -> int:
        """Write bytes to a file at `offset`; return how many, from the first on, were written: none where they are few, or it cannot.

        Parameters
        ----------
        path
            The file; `flags` are more of ``os.open``.
        raw : (n,) uint8
        """
        whole = raw.size // PAGE_BYTES * PAGE_BYTES
        if whole < LEAST_DIRECT_BYTES or offset % PAGE_BYTES:
            return 0
        with self._lock:
            try:
                self._is_possible = self._is_possible and os.major(path.parent.stat().st_dev) > 0
                return self._write(path, raw[:whole], offset, flags) if self._is_possible else 0
            except OSError as error:
                if error.errno != errno.EINVAL:
                    raise
                self._is_possible = False
                logger.info("%s: this file system has no O_DIRECT; what is written goes through the page cache", path.parent)
                return 0

    def _write(self, path: Path, raw: Array, offset: int, flags: int) -> int:
        """Write whole pages, until the system takes less than it is given: a disk that is full tells why at the next write."""
        fd = os.open(path, os.O_WRONLY | os.O_CLOEXEC | os.O_DIRECT | flags, 0o666)
        try:
            if raw.ctypes.data % PAGE_BYTES == 0:  # as O_DIRECT wants
                return os.pwrite(fd, raw.data, offset) // PAGE_BYTES * PAGE_BYTES
            self._buffer = self._buffer or mmap.mmap(-1, DIRECT_BYTES)
            for done in range(0, raw.size, DIRECT_BYTES):
                size = min(DIRECT_BYTES, raw.size - done)
                self._buffer[:size] = raw[done : done + size].data
                written = os.pwrite(fd, memoryview(self._buffer)[:size], offset + done)
                if written < size:
                    return done + written // PAGE_BYTES * PAGE_BYTES
            return raw.size
        finally:
            os.close(fd)


def read_into(fd: int, arrays: Sequence[Array], offset: int) -> int:
    """Fill arrays from a file at `offset`; return the offset after what was read, less than wanted where the file ends."""
    waiting = _views(arrays)
    while waiting:
        done = os.preadv(fd, waiting, offset)
        if done <= 0:
            break
        offset += done
        _drop(waiting, done)
    return offset


def is_cached(fd: int, offset: int, num_bytes: int) -> bool:
    """Whether most pages of a range of a file are in the page cache; True where the system does not tell.

    The range is mapped and asked for (``mincore(2)``): to try to read it, without waiting, would have the system fetch it.
    """
    if not num_bytes:
        return True
    lead = offset % mmap.ALLOCATIONGRANULARITY
    pages = np.ones(-(-(lead + num_bytes) // PAGE_BYTES), np.uint8)
    try:
        with mmap.mmap(fd, lead + num_bytes, access=mmap.ACCESS_READ, offset=offset - lead) as mapped:
            address = ctypes.c_void_p(np.frombuffer(mapped, np.uint8).ctypes.data)
            ctypes.CDLL(None).mincore(address, ctypes.c_size_t(lead + num_bytes), ctypes.c_void_p(pages.ctypes.data))
    except OSError:
        return True
    return 2 * int((pages & 1).sum()) > pages.size


def _views(arrays: Sequence[Array]) -> list[memoryview]:
    return [array.data.cast("B") for array in arrays if array.size]


def _drop(waiting: list[memoryview], done: int) -> None:
    """Remove the first `done` bytes of some views."""
    while waiting and done >= len(waiting[0]):
        done -= len(waiting.pop(0))
    if waiting:
        waiting[0] = waiting[0][done:]
