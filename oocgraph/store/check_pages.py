"""Compares every stored page (or compressed chunk) of an array with its checksum.

In: a store and the name of an array. Out: problems as text, each with the file, the page and the byte where it starts.
Plain local files are read 4 MiB at a time; compressed and remote chunks whole, one a thread.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

import numpy as np

from oocgraph.compiled.crc32c import page_checksums
from oocgraph.errors import CorruptStoreError, StoreError
from oocgraph.store.arrays import PlainArray, StoredArray
from oocgraph.store.codecs import max_stored_bytes
from oocgraph.store.fetched import FetchedArray
from oocgraph.store.graph import CSRStore
from oocgraph.store.layout import CHECKSUMS
from oocgraph.store.rows import map_bounded
from oocgraph.types import PAGE_BYTES, Array

MAX_BROKEN = 20
"""Chunks that are not whole, after which no more are looked for: metadata may claim any number of them."""

READ_BYTES = 4 << 20
"""Bytes compared at once."""

_REMEDY = "restore the store or build it again"


@dataclass(frozen=True, slots=True)
class Piece:
    """What was compared at once: how many bytes and checksums, and what was wrong."""

    num_bytes: int
    num_checksums: int
    problems: tuple[str, ...]


def check_array(store: CSRStore, name: str, num_threads: int) -> Iterator[Piece]:
    """Compare an array with its checksums, piece by piece."""
    try:
        array, checksums = store.array(name).without_rule(), store.array(f"{CHECKSUMS}/{name}")
    except CorruptStoreError as error:
        yield Piece(0, 0, (str(error),))
        return
    if isinstance(array, PlainArray):
        whole, broken = _chunk_files(array)
        if broken:
            yield Piece(0, 0, tuple(broken))
        starts = (start for chunk in whole for start in _starts(array, chunk))
        yield from map_bounded(partial(_check_plain, array, checksums), starts, num_threads)
    else:
        assert isinstance(array, FetchedArray)
        yield from map_bounded(partial(_check_chunk, store.url, array, checksums), range(array.num_chunks), num_threads)


def _chunk_files(array: PlainArray) -> tuple[list[int], list[str]]:
    """Chunks whose file is whole, and what is wrong with the others; no further than enough of those."""
    whole: list[int] = []
    broken: list[str] = []
    for chunk in range(array.num_chunks):
        if len(broken) > MAX_BROKEN:
            break
        try:
            os.close(array.open_chunk(chunk))
            whole.append(chunk)
        except StoreError as error:
            broken.append(str(error))
    return whole, broken


def _starts(array: PlainArray, chunk: int) -> range:
    """First elements of the pieces of a chunk."""
    first = chunk * array.chunk_length
    return range(first, min(array.length, first + array.chunk_length), READ_BYTES // array.dtype.itemsize)


def _check_plain(array: PlainArray, checksums: StoredArray, start: int) -> Piece:
    itemsize, chunk = array.dtype.itemsize, start // array.chunk_length
    stop = min(array.length, (chunk + 1) * array.chunk_length, start + READ_BYTES // itemsize)
    try:
        raw = array.read(start, stop).view(np.uint8)
        bad, num_pages = _bad_pages(raw, checksums, start * itemsize)
    except (StoreError, OSError) as error:
        return Piece(0, 0, (f"{array.chunk_path(chunk)}: elements {start} to {stop} of {array.name} cannot be read ({error}); {_REMEDY}",))
    chunk_start = chunk * array.chunk_length * itemsize
    problems = [_bad_page(str(array.chunk_path(chunk)), array.name, page, page * PAGE_BYTES - chunk_start) for page in bad]
    return Piece(raw.size, num_pages, tuple(problems))


def _bad_pages(raw: Array, checksums: StoredArray, first_byte: int) -> tuple[list[int], int]:
    first = first_byte // PAGE_BYTES
    found = page_checksums(raw, PAGE_BYTES)
    return (np.flatnonzero(found != checksums.read(first, first + found.size)) + first).tolist(), found.size


def _bad_page(file: str, name: str, page: int, offset: int) -> str:
    return f"{file}: page {page} of {name}, at byte {offset} of this file, differs from its checksum; {_REMEDY}"


def _check_chunk(url: str, array: FetchedArray, checksums: StoredArray, chunk: int) -> Piece:
    """Check a chunk as it is stored: compressed, or anywhere that Zarr reaches."""
    where = f"{url}/{array.name}/c/{chunk}"
    chunk_bytes = array.chunk_length * array.dtype.itemsize
    compressed = array.codec != "none"
    most = max_stored_bytes(chunk_bytes) if compressed else chunk_bytes
    try:
        stored = np.frombuffer(array.stored(chunk, 0, most + 1), np.uint8)
    except CorruptStoreError as error:
        return Piece(0, 0, (f"{url}/{error}",))
    if stored.size > most:
        return Piece(0, 0, (f"{where}: this chunk of {array.name} has more than {most} bytes; {_REMEDY}",))
    if compressed:
        if stored.size and page_checksums(stored, stored.size)[0] == checksums.read(chunk, chunk + 1)[0]:
            return Piece(stored.size, 1, ())
        return Piece(
            stored.size, 1, (f"{where}: chunk {chunk} of {array.name} ({stored.size} bytes) differs from its checksum; {_REMEDY}",)
        )
    if stored.size != chunk_bytes:
        return Piece(0, 0, (f"{where}: this chunk of {array.name} has {stored.size} bytes instead of {chunk_bytes}; {_REMEDY}",))
    data = stored[: array.length * array.dtype.itemsize - chunk * chunk_bytes]
    bad, num_pages = _bad_pages(data, checksums, chunk * chunk_bytes)
    return Piece(data.size, num_pages, tuple(_bad_page(where, array.name, page, page * PAGE_BYTES - chunk * chunk_bytes) for page in bad))
