"""Where a row is, and reading its pages: what push and pull kernels share.

Kernels take what belongs together as one named tuple: a call from Python costs 1 to 2 us more than with its fields as arguments, compiling
a tenth more. Edges before ``num_resident`` are in the array ``resident``; later ones are read from files, by pages.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numba as nb
import numpy as np

from oocgraph.compiled.crc32c import crc32c
from oocgraph.compiled.intrinsics import address_of, call, pread
from oocgraph.compiled.sound import highest
from oocgraph.types import Array

READ_FAILED = -1
CHECKSUM_FAILED = -2
RANGE_FAILED = -(1 << 48)
"""Errors of `read_pages`; the page that was wrong is taken from the last two."""


class RowLookup(NamedTuple):
    """Where each row begins.

    A degree-sorted store has one entry per distinct degree, because rows of equal degree are evenly spaced. Otherwise `indptr` is explicit.

    Attributes
    ----------
    indptr : (num_rows + 1,) int64
        Length 0 where it is not used.
    first, edge, value : (num_classes,) int64
        First vertex of a degree, that vertex's first edge, the degree; of an explicit `indptr` one entry that is 0.
    """

    indptr: Array
    first: Array
    edge: Array
    value: Array


class Planes(NamedTuple):
    """The resident jagged diagonals: plane k is the k-th neighbour of each of the first vertices.

    Attributes
    ----------
    edges : index dtype
        All planes, one after the other.
    offset : (num_planes + 1,) int64
        Where plane k begins.
    length : (num_planes + 1,) int64
        How many vertices plane k covers; ``length[num_planes]`` is the number of vertices with a tail behind the planes.
    """

    edges: Array
    offset: Array
    length: Array


class Repair(NamedTuple):
    """What replaces some of the values that were read (`oocgraph.kernels.live`), called by its address.

    So it is compiled only where it is used: as part of the kernels that read pages it took three fifths of their compilation.

    Attributes
    ----------
    function : int
        Address of ``function(data, first, values, num_values)``, whose ``values`` is an address; 0: all stay as they are.
    data : int
        Address of what it has to know.
    """

    function: int
    data: int


NO_REPAIR = Repair(0, 0)


class ChunkFiles(NamedTuple):
    """The chunk files of an array of edges.

    Attributes
    ----------
    fds : (num_chunks,) int32
        Open files.
    chunk_pages : int
        Pages of each.
    extent : (3,) int64
        As of `file_extent`.
    checksums : uint32
        Of each page; length 0 where they are not compared.
    page_shift : int
        Binary logarithm of the edges in a page.
    repair : Repair
        What replaces values that do not count.
    """

    fds: Array
    chunk_pages: int
    extent: Array
    checksums: Array
    page_shift: int
    repair: Repair = NO_REPAIR


class Marks(NamedTuple):
    """Where a search notes what it finds.

    Attributes
    ----------
    parent : (num_vertices,) index dtype
    level8, level32 : (num_vertices,) uint8 and int32
        Views of one buffer.
    wide : bool
        Whether `level32` is in use.
    level : int
        What is found now is at this level.
    """

    parent: Array
    level8: Array
    level32: Array
    wide: bool
    level: int


class Tails(NamedTuple):
    """Tails that a pull has read without a hit.

    Attributes
    ----------
    vertex : (num_entries,) int64
        Whose.
    begin : (num_entries, 2) int64
        Where it is in `edges`.
    edges : index dtype
    """

    vertex: Array
    begin: Array
    edges: Array


class LongRows(NamedTuple):
    """Rows that a pull puts off after their first `limit` entries: threads look through the rest together (`oocgraph.engine.long_rows`).

    Attributes
    ----------
    count : (1,) int64
        Rows that were to be put off: more than there is room for are looked through as they come.
    place : (num_rows, 4) int64
        Vertex, first entry that was not looked at, the one behind the last that may be, and the one behind the end of the row.
    hit : (num_rows,) int64
        First entry known to be in the frontier.
    limit : int
    """

    count: Array
    place: Array
    hit: Array
    limit: int


def new_long_rows(num_rows: int, limit: int) -> LongRows:
    """Return room for so many rows."""
    return LongRows(np.zeros(1, np.int64), np.empty((num_rows, 4), np.int64), np.empty(num_rows, np.int64), limit)


NO_LONG_ROWS = new_long_rows(0, 1)
"""Where none is put off."""

NO_HIT = 2**62
"""Of a long row."""


def explicit_rows(indptr: Array) -> RowLookup:
    """Return the lookup of rows that begin where `indptr` says, (num_rows + 1,) int64; of none where it is empty."""
    zero = np.zeros(1, np.int64)
    return RowLookup(indptr, zero, zero, zero)


def no_planes(dtype: Any, num_vertices: int) -> Planes:
    """Return what stands for no planes: every vertex has a tail."""
    return Planes(np.empty(0, dtype), np.zeros(1, np.int64), np.full(1, num_vertices, np.int64))


def no_files(page_shift: int) -> ChunkFiles:
    """Return what stands for files where nothing is read from them."""
    return ChunkFiles(np.empty(0, np.int32), 1, file_extent(0, 0, 4), np.empty(0, np.uint32), page_shift)


def file_extent(num_bytes: int, stop: int, itemsize: int) -> Array:
    """Return what `read_pages` must know of an array: its bytes, what its values must be below, and the bytes of a value: (3,) int64.

    An `itemsize` of 0 stands for any values.
    """
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


@nb.njit(nogil=True, cache=True, inline="always")
def set_level(level8: Any, level32: Any, wide: Any, v: Any, level: Any) -> None:
    """Set the level of vertex `v` in the width in use."""
    if wide:
        level32[v] = level
    else:
        level8[v] = level


@nb.njit(nogil=True, cache=True, inline="always")
def next_class(lookup: Any, c: Any, v: Any) -> Any:
    """Degree class of vertex `v`, which is `c` or one after it."""
    while c + 1 < lookup.first.size and v >= lookup.first[c + 1]:
        c += 1
    return c


@nb.njit(nogil=True, cache=True, inline="always")
def row_of(lookup: Any, c: Any, v: Any) -> Any:
    """First edge of vertex `v`, which lies in degree class `c`, and the edge after its last one."""
    if lookup.indptr.size:
        begin, end = lookup.indptr[v], lookup.indptr[v + 1]
    else:
        begin = lookup.edge[c] + (v - lookup.first[c]) * lookup.value[c]
        end = begin + lookup.value[c]
    return begin, end


@nb.njit(nogil=True, cache=True)
def vertex_of_edge(lookup: Any, e: Any) -> Any:
    """Vertex whose row holds edge `e`."""
    indptr, first, edge, value = lookup
    if indptr.size:
        return find_class(indptr, e)
    c = find_class(edge, e)
    while value[c] == 0 and c > 0:
        c -= 1
    return first[c] + (e - edge[c]) // value[c]


@nb.njit(nogil=True, cache=True)
def read_pages(files: Any, buffer: Any, page: Any, count: Any) -> Any:
    """Read pages ``page .. page + count - 1`` of an array to the start of `buffer`; they lie in one chunk.

    Returns bytes read, `READ_FAILED`, ``CHECKSUM_FAILED - bad_page`` or ``RANGE_FAILED - first_page``: no number reaches a kernel that
    is not below the bound of ``files.extent``. Checksums are compared when given.
    """
    fds, chunk_pages, extent, checksums, page_shift, repair = files
    chunk = page // chunk_pages
    offset = (page - chunk * chunk_pages) * 4096
    want = min(count * 4096, extent[0] - page * 4096)
    done = 0
    while done < want:  # whole pages are asked for, as O_DIRECT wants; at the end of a file fewer bytes come
        got = pread(fds[chunk], address_of(buffer, done), np.uint64(count * 4096 - done), offset + done)
        if got <= 0:
            return READ_FAILED
        done += got
    if checksums.size:
        for i in range(count):
            stop = min(want, (i + 1) * 4096)
            if crc32c(buffer, i * 4096, stop) != checksums[page + i]:
                return CHECKSUM_FAILED - (page + i)
    if extent[2] and highest(buffer, want, extent[2]) >= np.uint64(extent[1]):
        return RANGE_FAILED - page
    if repair.function:
        call(repair.function, repair.data, page << page_shift, address_of(buffer, 0), (want << page_shift) >> 12)
    return want
