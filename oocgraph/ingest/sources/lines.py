"""Text files as blocks of whole lines.

The number of a block's first line is known: when a value is bad, only its block is searched for the line. All blocks of a file are read
into one buffer, because fresh memory for each costs as much as parsing. Comments (whole lines that begin with ``#`` or ``%``; where ids are
text, before the first row only, since an id may begin so), lines of white space and runs of spaces, which Arrow's reader does not know, are
removed by bytes operations that cost nothing where there are none.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np

from oocgraph.errors import InputError
from oocgraph.ingest.sources.compressed import held_bytes, most_bytes, open_text, read_text
from oocgraph.ingest.sources.source import file_bytes

BLOCK_BYTES, BLOCK_ROW_BYTES = 4 << 20, 16
"""Bytes of a block at the most, or so many for each row that is asked for: in larger blocks Arrow's threads wait less for each other."""

PARSE_BYTES = 1 << 20
"""Arrow parses pieces of this size or more in parallel; a line must not be longer."""

COUNTED_BYTES = 1 << 17
"""Bytes that are compared at a time: what comes of it stays in cache."""

MIN_BLOCK_BYTES = 1 << 16
ROW_BYTES = 8
"""A short row of text; turns a number of rows into a number of bytes to read."""

HEADER_BYTES = 1 << 16
"""Bytes that are looked at for a header."""

LINES_BYTES = 30 << 20
"""What a block takes with all that is made of it."""

MARKS = b"#%"
"""What comments begin with in most files."""

_BLANK_LINE = re.compile(rb"^[ \t\v\f]*\r?\n|^[ \t\v\f]+\Z", re.MULTILINE)
_BLANK_LINE_WITHOUT_TABS = re.compile(_BLANK_LINE.pattern.replace(rb"\t", b""), re.MULTILINE)
BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_TO_SPACE = bytes.maketrans(b"\t\v\f\r", b"    ")
Comments = Literal["anywhere", "first", "none"]
"""Where lines are comments: anywhere, before the first row, or nowhere (any more)."""


@dataclass(frozen=True, slots=True)
class Dialect:
    """How the lines of a file become columns.

    Attributes
    ----------
    delimiter
        One character; a space means any run of spaces and tabs.
    skip_rows
        Rows before the first edge (a header, the sizes of a Matrix Market file).
    names
        Columns as the user knows them.
    types
        Arrow type of each column that is read, by position; these alone are converted.
    ids
        The positions that hold ids.
    row_bytes
        Bytes of a line, about.
    may_be_text
        Whether ids may be text where the user says so.
    comments
        Where lines that begin with ``#`` or ``%`` are comments.
    marks
        What comments begin with, where it is something else.
    """

    delimiter: str
    skip_rows: int
    names: tuple[str, ...]
    types: dict[int, Any]
    ids: tuple[int, int]
    row_bytes: int = ROW_BYTES
    may_be_text: bool = True
    comments: Comments = "anywhere"
    marks: bytes = MARKS


@dataclass(frozen=True, slots=True)
class LineBlock:
    """Whole lines of a file, as they stand there; valid until the next block is asked for, which takes its place.

    Attributes
    ----------
    path
        The file.
    buffer
        Begins with the lines.
    length
        Bytes of the lines.
    first_line
        Number of the first line, from 1.
    comments
        Where lines of the block are comments.
    delimiter
        Of their fields; a line of tabs alone is blank unless these separate fields.
    marks
        What comments begin with.
    """

    path: Path
    buffer: bytearray
    length: int
    first_line: int
    comments: Comments = "anywhere"
    delimiter: str = " "
    marks: bytes = MARKS

    @property
    def raw(self) -> bytes:
        """A copy of the lines."""
        return bytes(memoryview(self.buffer)[: self.length])

    def has(self, found: bytes) -> bool:
        """Return whether the lines contain some bytes."""
        return self.buffer.find(found, 0, self.length) >= 0

    def count(self, found: bytes, stop: int | None = None) -> int:
        """Return how often the lines, or the bytes before `stop`, contain a byte; ``bytes.count`` takes 16 ns for each."""
        values, (byte,) = np.frombuffer(self.buffer, np.uint8, self.length if stop is None else stop), found
        return sum(int(np.count_nonzero(values[at : at + COUNTED_BYTES] == byte)) for at in range(0, values.size, COUNTED_BYTES))

    def data_lines(self) -> Iterator[tuple[int, bytes]]:
        """Yield number and text of each line that is neither blank nor a comment."""
        comments = self.comments
        for number, line in enumerate(self.raw.split(b"\n"), self.first_line):
            if not _is_blank(line, self.delimiter) and (comments == "none" or not is_comment(line, self.marks)):
                comments = "none" if comments == "first" else comments
                yield number, line.rstrip(b"\r")

    def line_of(self, row: int) -> int:
        """Line number of the data line `row` (from 0) of this block."""
        return next(number for position, (number, _) in enumerate(self.data_lines()) if position == row)

    def cleaned(self) -> bytes | memoryview:
        """Return the data lines as Arrow's reader wants them: where they stand, if nothing is to be removed."""
        is_commented = self.comments != "none" and any(self.has(self.marks[i : i + 1]) for i in range(len(self.marks)))
        if not is_commented and self.delimiter != " " and not self.buffer.startswith((b"\r", b"\n", b" ", b"\t", b"\v", b"\f")):
            return memoryview(self.buffer)[: self.length]
        data = self.raw
        if is_commented and self.comments == "first":
            data = _without_first_comments(data, self.delimiter, self.marks)
        elif is_commented:
            data = re.sub(rb"(?m)^[ \t\v\f]*[%b][^\n]*(\n|$)" % self.marks, b"", data)
        if self.delimiter == " ":
            data = data.translate(_TO_SPACE)
            while b"  " in data:
                data = data.replace(b"  ", b" ")
            data = data.replace(b" \n", b"\n").replace(b"\n ", b"\n").strip(b" ")
        return without_first_blanks(data, self.delimiter)


def _is_blank(line: bytes, delimiter: str) -> bool:
    return not line.strip() and not (delimiter == "\t" and b"\t" in line)


def is_comment(line: bytes, marks: bytes = MARKS) -> bool:
    """Return whether a line is a comment, where there are any."""
    first = line.lstrip()[:1]
    return bool(first) and first in marks


def blank_line(delimiter: str) -> re.Pattern[bytes]:
    """Return what matches a line of white space, where a delimiter separates fields."""
    return _BLANK_LINE_WITHOUT_TABS if delimiter == "\t" else _BLANK_LINE


def without_first_blanks(data: bytes, delimiter: str) -> bytes:
    """Return lines without the blank ones before the first that is not."""
    start = 0
    while found := blank_line(delimiter).match(data, start):
        start = found.end()
    return data[start:]


def _without_first_comments(data: bytes, delimiter: str, marks: bytes) -> bytes:
    """Return lines without the comments and blank lines before the first of another kind."""
    start = 0
    while start < len(data):
        end = data.find(b"\n", start) + 1 or len(data)
        line = data[start:end]
        if not _is_blank(line, delimiter) and not is_comment(line, marks):
            break
        start = end
    return data[start:]


def line_blocks(path: Path, block_bytes: int) -> Iterator[LineBlock]:
    """Cut a file, decompressed, into blocks of whole lines."""
    with open_text(path) as file:
        block_bytes = min(
            block_bytes, most_bytes(path, file_bytes(path)) + 1
        )  # there may be thousands of small files, and a buffer is filled with zeros
        buffer, rest, first_line, start = bytearray(PARSE_BYTES + block_bytes), 0, 1, True
        while True:
            read = read_text(file, path, memoryview(buffer)[rest : rest + block_bytes])
            length, is_last = rest + read, read < block_bytes
            if start and buffer.startswith(BYTE_ORDER_MARK):
                length -= len(BYTE_ORDER_MARK)
                buffer[:length] = buffer[len(BYTE_ORDER_MARK) : len(BYTE_ORDER_MARK) + length]
            start, cut = False, length if is_last else buffer.rfind(b"\n", 0, length) + 1
            block = LineBlock(path, buffer, cut or length, first_line)
            if cut:
                _refuse_strange_bytes(block)
                yield block
                first_line += block.count(b"\n")
            elif length > PARSE_BYTES:
                _refuse_strange_bytes(block)
                raise too_long(block, first_line)
            if is_last:
                return
            rest = length - cut
            buffer[:rest] = buffer[cut:length]


def check_length(path: Path, num_bytes: int, said: str) -> None:
    """Refuse a file that is shorter than what its header says takes at the least.

    Raises
    ------
    InputError
        It has fewer than so many bytes.
    """
    if num_bytes > most_bytes(path, size := file_bytes(path)):
        raise InputError(f"{path} is truncated: {size} bytes, but its header says {said}; copy or write it again")


def text_readers(paths: Sequence[Path]) -> tuple[int, int]:
    """Return `Source.readers` of text files that are read one after the other: of a decompressor that holds much."""
    most = max(map(held_bytes, paths))
    return (1, LINES_BYTES + most) if most else (0, 0)


def block_bytes_for(block_rows: int, row_bytes: int) -> int:
    """How much to read at once for blocks of about `block_rows` rows."""
    return min(max(BLOCK_BYTES, block_rows * BLOCK_ROW_BYTES), max(MIN_BLOCK_BYTES, block_rows * row_bytes))


def split_line(line: str, delimiter: str, where: str) -> list[str]:
    """Fields of one line that Arrow does not parse: of the sample, or of a block that it refused; `where` begins the message about it."""
    if delimiter == " ":
        return line.split()
    if '"' not in line:
        return line.split(delimiter)
    import csv

    try:
        return next(csv.reader([line], delimiter=delimiter))
    except csv.Error as error:
        raise InputError(f"{where}: {error}; correct the line") from error


def too_long(block: LineBlock, number: int) -> InputError:
    """Return the refusal of a line of more than `PARSE_BYTES`."""
    return InputError(f"{block.path}, line {number} is longer than {PARSE_BYTES} bytes: not an edge list? Name another file")


def _refuse_strange_bytes(block: LineBlock) -> None:
    position = block.buffer.find(b"\0", 0, block.length)
    if position >= 0:
        line = block.first_line + block.count(b"\n", position)
        raise InputError(
            f"{block.path}, line {line}: a NUL byte, so this is binary or UTF-16, not UTF-8 text; convert it or check its extension"
        )
    if block.has(b"\r") and block.count(b"\r") != block.buffer.count(b"\r\n", 0, block.length):
        position = next(match.start() for match in re.finditer(rb"\r(?!\n)", block.raw))
        line = block.first_line + block.count(b"\n", position)
        raise InputError(f"{block.path}, line {line}: a carriage return without a line feed (old Mac text?); convert the line ends")


def decoded(block: LineBlock, number: int, line: bytes) -> str:
    """Text of line `number` of a block."""
    try:
        return line.decode()
    except UnicodeDecodeError as error:
        raise InputError(f"{block.path}, line {number}: not UTF-8 text ({error.reason}); convert the file") from error
