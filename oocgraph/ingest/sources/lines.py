"""Text files as blocks of whole lines, and the parsing of one block with Arrow's CSV reader.

A block is parsed on its own, so memory is that of one block and the number of its first line is known: when a value is bad,
only its block is searched for the line. All blocks of a file are read into one buffer, because fresh memory for each costs as much as
parsing. Comments (whole lines that begin with ``#`` or ``%``; where ids are text, before the first row only, since an id may begin so),
lines of white space and runs of spaces, which Arrow's reader does not know, are removed by bytes operations that cost nothing where there
are none. Refused are line breaks within quotes, quotes where white space separates fields, and integers in hexadecimal.
"""

from __future__ import annotations

import gzip
import math
import re
import time
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import IO, Any, Literal, NoReturn

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pacsv

from oocgraph.errors import InputError
from oocgraph.ingest.edges import EdgeBlock
from oocgraph.ingest.sources.columns import Layout
from oocgraph.ingest.sources.ids import MAX_ID, Place
from oocgraph.ingest.sources.source import open_file

BLOCK_BYTES, BLOCK_ROW_BYTES = 4 << 20, 16
"""Bytes of a block at the most, or so many for each row that is asked for: in larger blocks Arrow's threads wait less for each other."""

PARSE_BYTES = 1 << 20
"""Arrow parses pieces of this size or more in parallel; a line must not be longer."""

PIECES_PER_THREAD = 2
"""Into how many pieces a large block is cut for each of Arrow's threads; of a few large ones no thread waits for the last."""

WAITS = (0.0, *(min(2e-5 * 2**i, 0.01) for i in range(200)))
"""Seconds between two looks at whether Arrow has let go of a block: 2 s in all, after which something else holds it."""

COUNTED_BYTES = 1 << 17
"""Bytes that are compared at a time: what comes of it stays in cache."""

MIN_BLOCK_BYTES = 1 << 16
ROW_BYTES = 8
"""A short row of text; turns a number of rows into a number of bytes to read."""

_COMMENT_LINE = re.compile(rb"^[ \t\v\f]*[#%][^\n]*(\n|$)", re.MULTILINE)
_BLANK_LINE = re.compile(rb"^[ \t\v\f]*\r?\n|^[ \t\v\f]+\Z", re.MULTILINE)
_BLANK_LINE_WITHOUT_TABS = re.compile(_BLANK_LINE.pattern.replace(rb"\t", b""), re.MULTILINE)
_QUOTED_FIELD = re.compile(rb'(?:^|[ \t])"')
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_TO_SPACE = bytes.maketrans(b"\t\v\f\r", b"    ")
MISSING = {"", "na", "nan", "null", "n/a", "#n/a"}
"""Fields that stand for no value, in small letters."""

NULLS = frozenset(pacsv.ConvertOptions().null_values)
"""Fields that Arrow takes for no value, in these letters and without spaces."""

_INTEGER = re.compile(r"\s*[+-]?\d+\s*", re.ASCII)
_HEXADECIMAL = re.compile(r"\s*0x", re.IGNORECASE)

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
    """

    delimiter: str
    skip_rows: int
    names: tuple[str, ...]
    types: dict[int, Any]
    ids: tuple[int, int]
    row_bytes: int = ROW_BYTES
    may_be_text: bool = True
    comments: Comments = "anywhere"


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
    """

    path: Path
    buffer: bytearray
    length: int
    first_line: int
    comments: Comments = "anywhere"
    delimiter: str = " "

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
            if not _is_blank(line, self.delimiter) and (comments == "none" or not is_comment(line)):
                comments = "none" if comments == "first" else comments
                yield number, line.rstrip(b"\r")

    def line_of(self, row: int) -> int:
        """Line number of the data line `row` (from 0) of this block."""
        return next(number for position, (number, _) in enumerate(self.data_lines()) if position == row)

    def cleaned(self) -> bytes | memoryview:
        """Return the data lines as Arrow's reader wants them: where they stand, if nothing is to be removed."""
        is_commented = self.comments != "none" and (self.has(b"#") or self.has(b"%"))
        if not is_commented and self.delimiter != " " and not self.buffer.startswith((b"\r", b"\n", b" ", b"\t", b"\v", b"\f")):
            return memoryview(self.buffer)[: self.length]
        data = self.raw
        if is_commented and self.comments == "first":
            data = _without_first_comments(data, self.delimiter)
        elif is_commented:
            data = _COMMENT_LINE.sub(b"", data)
        if self.delimiter == " ":
            data = data.translate(_TO_SPACE)
            while b"  " in data:
                data = data.replace(b"  ", b" ")
            data = data.replace(b" \n", b"\n").replace(b"\n ", b"\n").strip(b" ")
        return _without_first_blanks(data, self.delimiter)


def _is_blank(line: bytes, delimiter: str) -> bool:
    return not line.strip() and not (delimiter == "\t" and b"\t" in line)


def is_comment(line: bytes) -> bool:
    """Return whether a line is a comment, where there are any."""
    return line.lstrip().startswith((b"#", b"%"))


def _blank_line(delimiter: str) -> re.Pattern[bytes]:
    return _BLANK_LINE_WITHOUT_TABS if delimiter == "\t" else _BLANK_LINE


def _without_first_blanks(data: bytes, delimiter: str) -> bytes:
    """Return lines without the blank ones before the first that is not."""
    start = 0
    while found := _blank_line(delimiter).match(data, start):
        start = found.end()
    return data[start:]


def _without_first_comments(data: bytes, delimiter: str) -> bytes:
    """Return lines without the comments and blank lines before the first of another kind."""
    start = 0
    while start < len(data):
        end = data.find(b"\n", start) + 1 or len(data)
        line = data[start:end]
        if not _is_blank(line, delimiter) and not is_comment(line):
            break
        start = end
    return data[start:]


def line_blocks(path: Path, block_bytes: int) -> Iterator[LineBlock]:
    """Cut a file, or what a .gz holds, into blocks of whole lines."""
    with open_text(path) as file:
        buffer, rest, first_line, start = bytearray(PARSE_BYTES + block_bytes), 0, 1, True
        while True:
            read = read_text(file, path, memoryview(buffer)[rest : rest + block_bytes])
            length, is_last = rest + read, read < block_bytes
            if start and buffer.startswith(_BYTE_ORDER_MARK):
                length -= len(_BYTE_ORDER_MARK)
                buffer[:length] = buffer[len(_BYTE_ORDER_MARK) : len(_BYTE_ORDER_MARK) + length]
            start, cut = False, length if is_last else buffer.rfind(b"\n", 0, length) + 1
            block = LineBlock(path, buffer, cut or length, first_line)
            if cut:
                _refuse_strange_bytes(block)
                yield block
                first_line += block.count(b"\n")
            elif length > PARSE_BYTES:
                _refuse_strange_bytes(block)
                raise _too_long(block, first_line)
            if is_last:
                return
            rest = length - cut
            buffer[:rest] = buffer[cut:length]


def open_text(path: Path) -> IO[bytes]:
    """Open a text file or a gzip."""
    if path.suffix.lower() == ".gz":
        open_file(path).close()  # says what is wrong with the path
        return gzip.open(path, "rb")  # type: ignore[return-value]
    return open_file(path)


def read_text(file: IO[bytes], path: Path, out: memoryview) -> int:
    """Fill a buffer from what `open_text` opened; return how many bytes there were: fewer than it holds at the end of the file alone."""
    filled = 0
    try:
        while filled < len(out) and (read := file.readinto(out[filled:])):  # type: ignore[attr-defined]
            filled += read
        return filled
    except EOFError as error:
        raise InputError(f"{path} is truncated: the gzip stream has no end; copy or write it again") from error
    except (gzip.BadGzipFile, zlib.error) as error:
        raise InputError(f"{path} is not a gzip file, or it is damaged ({error}); copy or write it again") from error


def block_bytes_for(block_rows: int, row_bytes: int) -> int:
    """How much to read at once for blocks of about `block_rows` rows."""
    return min(max(BLOCK_BYTES, block_rows * BLOCK_ROW_BYTES), max(MIN_BLOCK_BYTES, block_rows * row_bytes))


def row_batches(path: Path, dialect: Dialect, block_rows: int) -> Iterator[tuple[Any, LineBlock, int]]:
    """Parse a file: record batches of at most `block_rows` rows, each with its block and its first row therein."""
    skip, comments = dialect.skip_rows, dialect.comments
    for lines in line_blocks(path, block_bytes_for(block_rows, dialect.row_bytes)):
        block = replace(lines, comments=comments, delimiter=dialect.delimiter)
        data, row = block.cleaned(), 0
        if data and comments == "first":
            comments = "none"
        while skip and data:
            data = _without_first_blanks(bytes(data).partition(b"\n")[2], dialect.delimiter)
            skip, row = skip - 1, row + 1
        if not data:
            continue
        _refuse_long_line(block)  # Arrow takes some, by where pieces end
        if dialect.delimiter == " " and dialect.may_be_text:
            refuse_quotes(block)
        table = _parsed(data, block, row, dialect)
        for batch in table.to_batches(block_rows):
            yield batch, block, row
            row += batch.num_rows


def _parsed(data: bytes | memoryview, block: LineBlock, first_row: int, dialect: Dialect) -> Any:
    """Parse the data lines of a block from `first_row` on."""
    try:
        table = _parse(data, dialect)
    except pa.ArrowInvalid as error:
        without_blanks, num_blanks = _blank_line(dialect.delimiter).subn(b"", data)  # of which Arrow skips only empty ones
        if num_blanks:
            return _parsed(without_blanks, block, first_row, dialect)
        _refuse_first_bad_line(block, first_row, dialect, error)
        last = block.first_line + block.count(b"\n")
        raise InputError(f"{block.path}, lines {block.first_line} to {last}: {error}; correct the file") from error
    if block.has(b'"') and table.num_rows != _num_lines(bytes(data)):
        _refuse_quoted_break(block)
    if (block.has(b"x") and block.has(b"0x")) or (block.has(b"X") and block.has(b"0X")):  # to find one byte takes little
        _refuse_hexadecimal(data, block, first_row, dialect)
    return table


def parsed_blocks(path: Path, dialect: Dialect, layout: Layout, block_rows: int) -> Iterator[EdgeBlock]:
    """Parse a file with an edge on each line."""
    first_row = 0
    for batch, block, row in row_batches(path, dialect, block_rows):
        yield _edges(batch, partial(line_place, block, first_row=row), first_row, dialect, layout)
        first_row += batch.num_rows


def _edges(batch: Any, place_of: Callable[[str], Place], first_row: int, dialect: Dialect, layout: Layout) -> EdgeBlock:
    def values(name: str) -> Any:
        position = dialect.names.index(name)
        column = batch.column(str(position))
        if position in dialect.ids and pa.types.is_large_string(column.type):
            lengths = pc.binary_length(column)
            if pc.min(lengths).as_py() == 0:  # to look for a number first imports pandas, where it is installed
                place_of(name).refuse(pc.index(lengths, 0).as_py(), "the id is missing (empty)", "fill it in or drop the line")
        return column

    return layout.block(values, first_row, place_of)


def line_place(block: LineBlock, column: str, first_row: int) -> Place:
    """Place of values that begin at data line `first_row` of `block`."""
    return Place(str(block.path), column, lambda position: f"line {block.line_of(first_row + position)}")


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


def _parse(data: bytes | memoryview, dialect: Dialect) -> Any:
    """Have Arrow parse lines."""
    names = [str(position) for position in range(len(dialect.names))]
    piece_bytes = max(PARSE_BYTES, -(-len(data) // (PIECES_PER_THREAD * pa.cpu_count())))
    table = _read_lent(
        data,
        read_options=pacsv.ReadOptions(column_names=names, block_size=piece_bytes),
        parse_options=pacsv.ParseOptions(delimiter=dialect.delimiter, quote_char=False if dialect.delimiter == " " else '"'),
        convert_options=pacsv.ConvertOptions(
            column_types={str(position): value_type for position, value_type in dialect.types.items()},
            include_columns=[str(position) for position in dialect.types],
            strings_can_be_null=False,
        ),
    )
    # each piece becomes a chunk; fewer and larger blocks are dealt in less time
    return table.combine_chunks() if piece_bytes == PARSE_BYTES else table


def _read_lent(data: bytes | memoryview, **options: Any) -> Any:
    """Have Arrow parse memory of Python's, and wait until its threads have let go of that, as they do soon after the table is there.

    To let go, a thread asks for the interpreter. One that asks while the program ends is ended instead, in the middle of a destructor: the
    process would abort (one in 25 that ended at once did).
    """
    lent = memoryview(data)
    try:
        return pacsv.read_csv(pa.BufferReader(lent), **options)
    finally:
        for wait in WAITS:
            try:
                lent.release()
                break
            except BufferError:  # it is lent still
                time.sleep(wait)


def _num_lines(data: bytes) -> int:
    """Lines that are not blank."""
    if b"\n\n" in data or b"\n\r" in data:
        return sum(1 for _ in re.finditer(rb"[^\r\n]+", data))
    return data.count(b"\n") + (not data.endswith(b"\n"))


def _refuse_quoted_break(block: LineBlock) -> NoReturn:
    """Refuse a quoted field that goes on in the next line: Arrow would join the lines, a block's end would cut them."""
    number = next((number for number, line in block.data_lines() if line.count(b'"') % 2), block.first_line)
    raise InputError(f"{block.path}, line {number}: a quotation mark is not closed (line breaks within quotes are not read); correct it")


def refuse_quotes(block: LineBlock) -> None:
    """Refuse a field that begins with a quotation mark, where white space separates fields: they would be cut within the quotes."""
    if not block.has(b'"') or not (block.buffer.startswith(b'"') or any(block.has(before) for before in (b' "', b'\t"', b'\n"'))):
        return  # to find one byte takes little
    for number, line in block.data_lines():
        if _QUOTED_FIELD.search(line):
            raise InputError(
                f"{block.path}, line {number}: a field begins with a quotation mark; where spaces separate fields quotes are not read: "
                "separate them by commas or tabs, or remove the quotes"
            )


def _refuse_hexadecimal(data: bytes | memoryview, block: LineBlock, first_row: int, dialect: Dialect) -> None:
    """Refuse an integer that is written in hexadecimal: parse the columns of integers again, as text."""
    integers = [position for position, value_type in dialect.types.items() if pa.types.is_integer(value_type)]
    if not integers:
        return
    table = _parse(data, replace(dialect, types=dict.fromkeys(integers, pa.large_string())))
    if any(pc.any(pc.match_substring_regex(column, "(?i)^\\s*0x")).as_py() for column in table.columns):
        _refuse_first_bad_line(block, first_row, dialect, None)


def _refuse_long_line(block: LineBlock) -> None:
    """Refuse a line of more than `PARSE_BYTES`; where every half of so many bytes has the end of a line there is none."""
    half = PARSE_BYTES // 2
    if all(block.buffer.find(b"\n", at, at + half) >= 0 for at in range(0, block.length - half + 1, half)):
        return
    for number, line in block.data_lines():
        if len(line) > PARSE_BYTES:
            raise _too_long(block, number)


def _too_long(block: LineBlock, number: int) -> InputError:
    return InputError(f"{block.path}, line {number} is longer than {PARSE_BYTES} bytes: not an edge list? Name another file")


def _refuse_first_bad_line(block: LineBlock, first_row: int, dialect: Dialect, cause: Exception | None) -> None:
    """Search a block that Arrow refused, or should have, for the line that is to blame."""
    for row, (number, line) in enumerate(block.data_lines()):
        if row < first_row:
            continue
        where, text = f"{block.path}, line {number}", decoded(block, number, line)
        if len(line) > PARSE_BYTES:
            raise _too_long(block, number) from cause
        if dialect.delimiter != " " and text.count('"') % 2:
            raise InputError(f"{where}: a quotation mark is not closed (line breaks within quotes are not read); correct it") from cause
        fields = split_line(text, dialect.delimiter, where)
        if len(fields) != len(dialect.names):
            expected = f"{len(dialect.names)} columns are expected ({', '.join(dialect.names)})"
            comment = " (where ids are text, comments stand before the first row only)" if is_comment(line) else ""
            raise InputError(f"{where} has {len(fields)} columns but {expected}{comment}; correct the line") from cause
        for position, value_type in dialect.types.items():
            _refuse_bad_field(fields[position], value_type, dialect, position, where, cause)


def _refuse_bad_field(field: str, value_type: Any, dialect: Dialect, position: int, where: str, cause: Exception | None) -> None:
    what = f"{where}, column {dialect.names[position]!r}"
    is_id = position in dialect.ids
    if pa.types.is_integer(value_type) and _INTEGER.fullmatch(field) and not -MAX_ID <= int(field) <= MAX_ID:
        raise InputError(f"{what}: {field.strip()} overflows int64; values must be at most {MAX_ID}, correct it or renumber") from cause
    if pa.types.is_string(value_type) or pa.types.is_large_string(value_type):
        return
    if field in NULLS or (not _HEXADECIMAL.match(field) and _is_number(field.strip(), value_type)):
        return
    if field.strip().lower() in MISSING:
        raise InputError(f"{what}: the {'id' if is_id else 'value'} is missing ({field!r}); fill it in or drop the line") from cause
    if is_id:
        try:
            number = float(field)
        except ValueError:
            remedy = "correct it" + (", or give id_kind='string', which takes all ids as text" if dialect.may_be_text else "")
            raise InputError(f"{what}: the id {field.strip()!r} is not a number; {remedy}") from cause
        trouble = "is not written as a plain integer, as most others are" if number.is_integer() else "is fractional"
        trouble = trouble if math.isfinite(number) else "is not finite"
        raise InputError(f"{what}: the id {field.strip()!r} {trouble}; ids must be whole numbers, correct it") from cause
    remedy = f"correct it, or write the first rows so that they are not taken for {value_type} (1.0, or a name)"
    raise InputError(f"{what}: {field.strip()!r} is not {value_type}, as the first ones are; {remedy}") from cause


def _is_number(field: str, value_type: Any) -> bool:
    """Return whether Arrow reads a field as a number of this type."""
    try:
        pa.array([field]).cast(value_type)
    except pa.ArrowInvalid:
        return False
    return True


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
