"""Where a row is, and reading its pages: what push and pull kernels share.

A row lookup is four arrays. A degree-sorted store has one entry per distinct degree: ``value`` (the degree),
``first`` (its first vertex), ``edge`` (the first edge of that vertex); rows of equal degree are evenly spaced.
Otherwise ``indptr`` is explicit and ``first`` is ``[0]``. ``indptr`` has length 0 where it is not used.

Edges before ``num_resident`` are in the array ``resident``; later ones are read from files, by pages.
"""

from __future__ import annotations

from typing import Any

import numba as nb
import numpy as np

from oocgraph.kernels.crc32c import crc32c
from oocgraph.kernels.intrinsics import pread
from oocgraph.kernels.sound import highest
from oocgraph.types import Array

READ_FAILED = -1
CHECKSUM_FAILED = -2
RANGE_FAILED = -(1 << 48)
"""Errors of `read_pages`; the page that was wrong is taken from the last two."""


def file_extent(num_bytes: int, stop: int, itemsize: int) -> Array:
    """Return what `read_pages` must know of an array: its bytes, what its values must be below, and the bytes of a value: (3,) int64."""
    return np.array([num_bytes, min(stop, np.iinfo(np.int64).max), itemsize], np.int64)


@nb.njit(nogil=True, cache=True)
def find_class(first: Any, v: Any) -> Any:
    """Index of the last entry of `first` that is at most `v`."""
    low, high = 0, first.size
    while high - low > 1:
        middle = (low + high) >> 1
        if first[middle] <= v:
            low = middle
        else:
            high = middle
    return low


@nb.njit(nogil=True, cache=True)
def row_begin(indptr: Any, first: Any, edge: Any, value: Any, c: Any, v: Any) -> Any:
    """First edge of vertex `v`, which lies in degree class `c`."""
    if indptr.size:
        return indptr[v]
    return edge[c] + (v - first[c]) * value[c]


@nb.njit(nogil=True, cache=True)
def row_end(indptr: Any, first: Any, edge: Any, value: Any, c: Any, v: Any) -> Any:
    """Edge after the last one of vertex `v`, which lies in degree class `c`."""
    if indptr.size:
        return indptr[v + 1]
    return edge[c] + (v - first[c] + 1) * value[c]


@nb.njit(nogil=True, cache=True)
def vertex_of_edge(indptr: Any, first: Any, edge: Any, value: Any, e: Any) -> Any:
    """Vertex whose row holds edge `e`."""
    if indptr.size:
        return find_class(indptr, e)
    c = find_class(edge, e)
    while value[c] == 0 and c > 0:
        c -= 1
    return first[c] + (e - edge[c]) // value[c]


@nb.njit(nogil=True, cache=True)
def read_pages(fds: Any, chunk_pages: Any, buffer: Any, page: Any, count: Any, checksums: Any, extent: Any) -> Any:
    """Read pages ``page .. page + count - 1`` of an array to the start of `buffer`; they lie in one chunk.

    Returns bytes read, `READ_FAILED`, ``CHECKSUM_FAILED - bad_page`` or ``RANGE_FAILED - first_page``: no number reaches a kernel that
    is not below the bound of `extent` (see `file_extent`). Checksums are compared when given.
    """
    chunk = page // chunk_pages
    offset = (page - chunk * chunk_pages) * 4096
    want = min(count * 4096, extent[0] - page * 4096)
    done = 0
    while done < want:  # whole pages are asked for, as O_DIRECT wants; at the end of a file fewer bytes come
        got = pread(fds[chunk], buffer[done:].ctypes, np.uint64(count * 4096 - done), offset + done)
        if got <= 0:
            return READ_FAILED
        done += got
    if checksums.size:
        for i in range(count):
            stop = min(want, (i + 1) * 4096)
            if crc32c(buffer, i * 4096, stop) != checksums[page + i]:
                return CHECKSUM_FAILED - (page + i)
    if highest(buffer, want, extent[2]) >= np.uint64(extent[1]):
        return RANGE_FAILED - page
    return want
