"""Bytes between memory and open files, also where the system takes or gives fewer of them than it was asked for."""

from __future__ import annotations

import ctypes
import mmap
import os
from collections.abc import Sequence

import numpy as np

from oocgraph.types import PAGE_BYTES, Array


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
