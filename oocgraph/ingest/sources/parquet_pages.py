"""What Arrow's reader holds of a Parquet file: for each column a page as it is stored, that page decompressed, and the dictionary.

The footer says nothing of pages, so their headers are read, from one to the next: of strings, a thousand to a page, some pages may be
hundreds of times as large as the first.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO, Any, NamedTuple

from oocgraph.allocator import arrow_bytes

HEADER_BYTES = 64, 1 << 14
"""As much as the header of a page takes mostly, and with the longest statistics that are written."""

MAX_PAGES = 1 << 14
"""Pages of a column chunk that are looked at."""

MAX_DEPTH = 4
"""Structures within structures: statistics are in the second one."""

USUAL_BYTES = 4 << 20
"""What a column takes with the pages of 1 MiB that most programs write: 3.6 MiB of random numbers, half of that of small ones."""

DICTIONARY = 2
"""The type of a page that is a dictionary."""

KIND, NUM_BYTES, STORED_BYTES, *OF_KINDS = 1, 2, 3, 5, 7, 8
"""Fields of a page's header; the last ones, one of which is there, begin with the number of values of the page."""

TRUTHS, INTEGERS, BINARY, STRUCT = (1, 2), (4, 5, 6), 8, 12
"""Types of Thrift's compact form that headers of pages have."""

SPREAD = 8
"""How many times as long as the average strings next to each other in a large page may be."""


class _Page(NamedTuple):
    kind: int
    num_bytes: int
    stored_bytes: int
    num_values: int
    end: int  # where the next one begins


def reader_bytes(files: Sequence[tuple[Path, Any]], names: Sequence[str]) -> int:
    """Return what one reader of some columns holds; each file is given with its metadata.

    Notes
    -----
    What cannot be read counts as a usual page, and reading the file reports it. Arrow's own allocator keeps large pages that are freed for
    a tenth of a second, which is when the next reader takes as much.
    """
    return sum(max([USUAL_BYTES, *_bytes_of_column(files, name)]) for name in names) if any(data.num_row_groups for _, data in files) else 0


def _bytes_of_column(files: Sequence[tuple[Path, Any]], name: str) -> Iterator[int]:
    kept = 2 if arrow_bytes() else 1
    for path, chunk in _heaviest(files, name):
        with suppress(OSError), path.open("rb") as file:
            if chunk.total_uncompressed_size > USUAL_BYTES:
                num_bytes = _bytes_of_chunk(list(_pages(file, chunk)), chunk)
                yield min(num_bytes, USUAL_BYTES) + kept * max(0, num_bytes - USUAL_BYTES)


def _heaviest(files: Sequence[tuple[Path, Any]], name: str) -> list[tuple[Path, Any]]:
    """Return the chunks of a column that are largest, as a whole and for each of their values, with their files."""
    chunks = [(path, chunk) for path, data in files for chunk in _chunks(data, range(data.num_row_groups), name)]
    sizes = [chunk.total_uncompressed_size for _, chunk in chunks]
    of_values = [size / max(1, chunk.num_values) for size, (_, chunk) in zip(sizes, chunks, strict=True)]
    return [chunks[i] for i in {sizes.index(max(sizes)), of_values.index(max(of_values))}] if chunks else []


def _chunks(metadata: Any, groups: Sequence[int], name: str) -> list[Any]:
    place = next(i for i in range(metadata.num_columns) if metadata.schema.column(i).path == name)
    return [metadata.row_group(group).column(place) for group in groups]


def _bytes_of_chunk(pages: list[_Page], chunk: Any) -> int:
    data = max((page.num_bytes + page.stored_bytes for page in pages if page.kind != DICTIONARY), default=0)
    dictionary = max((_bytes_of_dictionary(page) for page in pages if page.kind == DICTIONARY), default=0)
    return int(min(data + dictionary, 4 * chunk.total_uncompressed_size))


def _bytes_of_dictionary(page: _Page) -> int:
    """Return what a dictionary takes: a large one as stored, decompressed and decoded at once."""
    return page.num_bytes if page.num_bytes <= USUAL_BYTES else page.stored_bytes + 2 * page.num_bytes


def longest_text_bytes(files: Sequence[tuple[Path, Any]], names: Sequence[str], even_bytes: int) -> float:
    """Return the bytes of a row's strings in some columns, where they are longest, as the pages of the heaviest chunks tell it.

    Strings of a page of more than `even_bytes` may be `SPREAD` times as long as they are on average.
    """
    return sum(max((_longest(path, chunk, even_bytes) for path, chunk in _heaviest(files, name)), default=0.0) for name in names)


def text_bytes(path: Path, metadata: Any, groups: Sequence[int], names: Sequence[str], even_bytes: int) -> float:
    """Return the same of some row groups, of which all are looked at."""
    return sum(max(_longest(path, chunk, even_bytes) for chunk in _chunks(metadata, groups, name)) for name in names)


def _longest(path: Path, chunk: Any, even_bytes: int) -> float:
    with suppress(OSError), path.open("rb") as file:
        pages = (page for page in _pages(file, chunk) if page.num_values > 0)
        return max((page.num_bytes / page.num_values * min(SPREAD, max(1, page.num_bytes / even_bytes)) for page in pages), default=0.0)
    return 0.0


def _pages(file: IO[bytes], chunk: Any) -> Iterator[_Page]:
    """Yield what the headers of the pages of a column chunk say, as far as they can be read."""
    at = chunk.dictionary_page_offset if chunk.has_dictionary_page else chunk.data_page_offset
    end = at + chunk.total_compressed_size
    for _ in range(MAX_PAGES):
        page = _page(file, at) if 0 <= at < end else None
        if page is None:
            return
        yield page
        at = page.end


def _page(file: IO[bytes], offset: int) -> _Page | None:
    """Return what the header of a page says, which is in Thrift's compact form; None if it is none."""
    for num_bytes in HEADER_BYTES:
        file.seek(offset)
        with suppress(IndexError):  # it is longer
            fields, end = _struct(file.read(num_bytes), 0)
            kind, size, stored = (fields.get(i) for i in (KIND, NUM_BYTES, STORED_BYTES))
            if (
                not (isinstance(kind, int) and isinstance(size, int) and isinstance(stored, int))
                or not 0 <= min(kind, size, stored) <= max(size, stored) < 1 << 31
            ):
                return None
            num_values = next((fields[i].get(1) for i in OF_KINDS if isinstance(fields.get(i), dict)), None)
            return _Page(kind, size, stored, num_values if isinstance(num_values, int) else 0, offset + end + stored)
    return None


def _struct(header: bytes, at: int, depth: int = 0) -> tuple[dict[int, Any], int]:
    """Return the fields of a structure that begins at a place, by their numbers, and where it ends."""
    fields, number = dict[int, Any](), 0
    if depth > MAX_DEPTH:
        raise IndexError
    while head := header[at]:
        at += 1
        if head >> 4:
            number += head >> 4
        else:
            number, at = _integer(header, at)
        fields[number], at = _value(header, at, head & 15, depth)
    return fields, at + 1


def _value(header: bytes, at: int, kind: int, depth: int) -> tuple[Any, int]:
    """Return a value, None if it is no number or structure, and where it ends."""
    if kind in TRUTHS:
        return None, at
    if kind in INTEGERS:
        return _integer(header, at)
    if kind == STRUCT:
        return _struct(header, at, depth + 1)
    if kind == BINARY:
        length, at = _number(header, at)
        return None, at + length
    raise IndexError


def _integer(header: bytes, at: int) -> tuple[int, int]:
    """Return an integer with a sign, and where it ends."""
    value, at = _number(header, at)
    return (value >> 1) ^ -(value & 1), at


def _number(header: bytes, at: int) -> tuple[int, int]:
    """Return an integer without a sign, and where it ends."""
    value = shift = 0
    while True:
        byte = header[at]
        at, value, shift = at + 1, value | (byte & 0x7F) << shift, shift + 7
        if byte < 0x80:
            return value, at
