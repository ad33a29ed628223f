"""What Arrow's reader holds of a Parquet file: for each column a page as it is stored, that page decompressed, and the dictionary.

The footer says nothing of pages, so the headers of the first ones are read, of the columns of the largest row group.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO, Any, NamedTuple

HEADER_BYTES = 64
"""As much as the first fields of a page's header take, and more."""

USUAL_BYTES = 4 << 20
"""What a column takes with the pages of 1 MiB that most programs write: 3.6 MiB of random numbers, half of that of small ones."""

DICTIONARY = 2
"""The type of a page that is a dictionary."""

_NEXT, _OF_DICTIONARY = b"\x15", (b"\x4c\x15", b"\x3c\x15")
"""The next field, a 32-bit integer; field 7, a dictionary's, behind field 3 or 4, and its first one, the number of its values."""


class _Page(NamedTuple):
    kind: int
    num_bytes: int
    stored_bytes: int
    num_values: int = 0  # of a dictionary


def reader_bytes(files: Sequence[tuple[Path, Any]], names: Sequence[str]) -> int:
    """Return what one reader of some columns holds; each file is given with its metadata.

    Notes
    -----
    Pages of other row groups may be larger; what cannot be read counts as a usual page, and reading the file reports it.
    """
    groups = [(metadata.row_group(i), path, metadata.schema) for path, metadata in files for i in range(metadata.num_row_groups)]
    if not groups:
        return 0
    group, path, schema = max(groups, key=lambda one: one[0].total_byte_size)
    places = {schema.column(i).path: i for i in range(group.num_columns)}
    with suppress(OSError), path.open("rb") as file:
        return sum(max(USUAL_BYTES, _column_bytes(file, group.column(places[name]))) for name in names)
    return USUAL_BYTES * len(names)


def _column_bytes(file: IO[bytes], chunk: Any) -> int:
    if chunk.total_uncompressed_size <= USUAL_BYTES:
        return 0
    offsets = [chunk.data_page_offset, *([chunk.dictionary_page_offset] if chunk.has_dictionary_page else [])]
    pages = [page for page in (_page(file, offset) for offset in offsets) if page is not None]
    data = max((page.num_bytes + page.stored_bytes for page in pages if page.kind != DICTIONARY), default=0)
    dictionary = max((_dictionary_bytes(page) for page in pages if page.kind == DICTIONARY), default=0)
    return int(min(data + dictionary, 4 * chunk.total_uncompressed_size))


def _dictionary_bytes(page: _Page) -> int:
    """Return what a dictionary takes: a large one as stored, decompressed and decoded at once."""
    return page.num_bytes if page.num_bytes <= USUAL_BYTES else page.stored_bytes + 2 * page.num_bytes


def text_bytes(path: Path, metadata: Any, group: int, names: Sequence[str]) -> float:
    """Return the bytes of a row's strings in some columns, as the dictionaries of a row group tell it; 0 where there are none."""
    places = {metadata.schema.column(i).path: i for i in range(metadata.num_columns)}
    chunks = [metadata.row_group(group).column(places[name]) for name in names]
    with suppress(OSError), path.open("rb") as file:
        pages = [_page(file, chunk.dictionary_page_offset) for chunk in chunks if chunk.has_dictionary_page]
        return sum(page.num_bytes / page.num_values for page in pages if page is not None and page.num_values > 0)
    return 0.0


def _page(file: IO[bytes], offset: int) -> _Page | None:
    """Return the first fields of a page's header, in Thrift's compact form: its type, and its bytes without and with compression."""
    file.seek(max(0, offset))
    header, at, fields = file.read(HEADER_BYTES), 0, list[int]()
    while len(fields) < 3 and header[at : at + 1] == _NEXT:
        value, at = _integer(header, at + 1)
        fields.append(value)
    if len(fields) < 3 or min(fields) < 0:
        return None
    kind, num_bytes, stored_bytes = fields
    if header[at : at + 1] == _NEXT:  # a checksum
        _, at = _integer(header, at + 1)
    values = _integer(header, at + 2)[0] if header[at : at + 2] in _OF_DICTIONARY else 0
    return _Page(kind, num_bytes, stored_bytes, values)


def _integer(header: bytes, at: int) -> tuple[int, int]:
    """Return a 32-bit integer, and where it ends."""
    value = shift = 0
    while True:
        byte = header[at] if at < len(header) else 0
        at, value, shift = at + 1, value | (byte & 0x7F) << shift, shift + 7
        if byte < 0x80:
            return (value >> 1) ^ -(value & 1), at
