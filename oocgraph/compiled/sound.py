"""Reads pages and checks them while the processor still holds them: checksums, and that no number reaches its bound.

In: an open file, the checksums of the pages, a bound. Out: a filled array, and whether it is sound.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numba as nb
import numpy as np

from oocgraph.compiled.crc32c import crc32c
from oocgraph.compiled.intrinsics import address_of, pread
from oocgraph.compiled.load import Call, load_kernels

READ_BYTES = 1 << 20
"""Read at once by `read_sound`: checked while a cache holds it. By eight reads of 256 KiB at a time a disk is not busy."""


@nb.njit(nogil=True, cache=True)
def highest(buffer: Any, num_bytes: Any, itemsize: Any) -> Any:
    """Return the largest of the unsigned numbers of 4 or 8 bytes at the start of `buffer`: what is negative is large. uint64."""
    if itemsize == 4:
        narrow, most = buffer[: num_bytes // 4 * 4].view(np.uint32), np.uint32(0)
        for i in range(narrow.size):
            most = max(most, narrow[i])
        return np.uint64(most)
    wide, top = buffer[: num_bytes // 8 * 8].view(np.uint64), np.uint64(0)
    for i in range(wide.size):
        top = max(top, wide[i])
    return top


@nb.njit(nogil=True, cache=True)
def read_sound(fd: Any, offset: Any, out: Any, checksums: Any, stop: Any, itemsize: Any) -> Any:
    """Fill `out` (uint8) from byte `offset` of a file; return whether all was there, has its checksums, and is of numbers below `stop`.

    `checksums` are of the pages of `out`, of which the last may be short. What is wrong has to be found out by reading it again.
    """
    start = 0
    while start < out.size:
        end = min(out.size, start + READ_BYTES)
        done = start
        while done < end:
            got = pread(fd, address_of(out, done), np.uint64(end - done), offset + done)
            if got <= 0:
                return False
            done += got
        for page in range(start // 4096, -(-end // 4096)):
            if crc32c(out, page * 4096, min(out.size, (page + 1) * 4096)) != checksums[page]:
                return False
        if highest(out[start:end], end - start, itemsize) >= stop:
            return False
        start = end
    return True


@cache
def load_read_sound() -> None:
    """Bring `read_sound` into memory."""
    load_kernels(sound_calls())


def sound_calls() -> list[Call]:
    """Return what reads of arrays call."""
    return [(read_sound, (1, 1, np.empty(0, np.uint8), np.empty(0, np.uint32), np.uint64(1), 4))]
