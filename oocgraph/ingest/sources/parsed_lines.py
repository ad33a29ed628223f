"""Lines of text as edges, parsed by Arrow's CSV reader.

A block of lines is parsed on its own, so memory is that of one block. Refused are line breaks within quotes, quotes where white space
separates fields, and integers in hexadecimal, which Arrow would read (`oocgraph.ingest.sources.bad_lines`).
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pacsv

from oocgraph.errors import InputError
from oocgraph.ingest.edges import EdgeBlock
from oocgraph.ingest.sources.bad_lines import refuse_first_bad_line, refuse_long_line, refuse_quoted_break, refuse_quotes
from oocgraph.ingest.sources.columns import Layout
from oocgraph.ingest.sources.ids import Place
from oocgraph.ingest.sources.lines import (
    PARSE_BYTES,
    Dialect,
    LineBlock,
    blank_line,
    block_bytes_for,
    check_length,
    line_blocks,
    text_readers,
    without_first_blanks,
)
from oocgraph.ingest.sources.source import Source, single_stream

PIECES_PER_THREAD = 2
"""Into how many pieces a large block is cut for each of Arrow's threads; of a few large ones no thread waits for the last."""

WAITS = (0.0, *(min(2e-5 * 2**i, 0.01) for i in range(200)))
"""Seconds between two looks at whether Arrow has let go of a block: 2 s in all, after which something else holds it."""


def row_batches(path: Path, dialect: Dialect, block_rows: int) -> Iterator[tuple[Any, LineBlock, int]]:
    """Parse a file: record batches of at most `block_rows` rows, each with its block and its first row therein."""
    skip, comments = dialect.skip_rows, dialect.comments
    for lines in line_blocks(path, block_bytes_for(block_rows, dialect.row_bytes)):
        block = replace(lines, comments=comments, delimiter=dialect.delimiter, marks=dialect.marks)
        data, row = block.cleaned(), 0
        if data and comments == "first":
            comments = "none"
        while skip and data:
            data = without_first_blanks(bytes(data).partition(b"\n")[2], dialect.delimiter)
            skip, row = skip - 1, row + 1
        if not data:
            continue
        refuse_long_line(block)  # Arrow takes some, by where pieces end
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
        without_blanks, num_blanks = blank_line(dialect.delimiter).subn(b"", data)  # of which Arrow skips only empty ones
        if num_blanks:
            return _parsed(without_blanks, block, first_row, dialect)
        refuse_first_bad_line(block, first_row, dialect, error)
        last = block.first_line + block.count(b"\n")
        raise InputError(f"{block.path}, lines {block.first_line} to {last}: {error}; correct the file") from error
    if block.has(b'"') and table.num_rows != _num_lines(bytes(data)):
        refuse_quoted_break(block)
    if (block.has(b"x") and block.has(b"0x")) or (block.has(b"X") and block.has(b"0X")):  # to find one byte takes little
        _refuse_hexadecimal(data, block, first_row, dialect)
    _refuse_overflow(table, data, block, first_row, dialect)
    return table


def parsed_blocks(files: Sequence[tuple[Path, Dialect]], layout: Layout, block_rows: int) -> Iterator[EdgeBlock]:
    """Parse files with an edge on each line, one after the other."""
    first_row = 0
    for path, dialect in files:
        for batch, block, row in row_batches(path, dialect, block_rows):
            yield _edges(batch, partial(line_place, block, first_row=row), first_row, dialect, layout)
            first_row += batch.num_rows


def open_counted(path: Path, dialect: Dialect, layout: Layout, num_rows: int, *, what: str, line_bytes: int, **facts: Any) -> Source:
    """Open a file whose header says how many edges follow.

    Parameters
    ----------
    what
        What edges are called there.
    line_bytes
        Bytes of the shortest line.
    **facts
        Attributes of `Source`.

    Raises
    ------
    InputError
        The file is too short for as many; there are more or fewer, which is found at its end.
    """
    check_length(path, line_bytes * num_rows, f"{num_rows} {what}")

    def stream(block_rows: int) -> Iterator[EdgeBlock]:
        num_read = 0
        for block in parsed_blocks([(path, dialect)], layout, block_rows):
            yield block
            num_read = block.first_row + len(block.source)
        if num_read != num_rows:
            trouble = "is truncated" if num_read < num_rows else "has too many lines"
            raise InputError(f"{path} {trouble}: {num_read} {what}, but its header says {num_rows}; copy or write it again")

    return layout.open(single_stream(stream), num_rows, readers=text_readers([path]), **facts)


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


def _refuse_hexadecimal(data: bytes | memoryview, block: LineBlock, first_row: int, dialect: Dialect) -> None:
    """Refuse an integer that is written in hexadecimal: parse the columns of integers again, as text."""
    integers = [position for position, value_type in dialect.types.items() if pa.types.is_integer(value_type)]
    if not integers:
        return
    table = _parse(data, replace(dialect, types=dict.fromkeys(integers, pa.large_string())))
    if any(pc.any(pc.match_substring_regex(column, "(?i)^\\s*0x")).as_py() for column in table.columns):
        refuse_first_bad_line(block, first_row, dialect, None)


def _refuse_overflow(table: Any, data: bytes | memoryview, block: LineBlock, first_row: int, dialect: Dialect) -> None:
    """Refuse a number too large for float32, of which Arrow makes an infinity: parse columns that have one again, as float64."""
    narrow = [position for position, value_type in dialect.types.items() if value_type == pa.float32()]
    are_infinite = {position: pc.is_inf(table.column(str(position))) for position in narrow}
    doubtful = [position for position in narrow if pc.any(are_infinite[position]).as_py()]
    if not doubtful:
        return
    wide = _parse(data, replace(dialect, types=dict.fromkeys(doubtful, pa.float64())))
    for position in doubtful:
        values = wide.column(str(position))
        if (row := pc.index(pc.and_(are_infinite[position], pc.is_finite(values)), True).as_py()) >= 0:
            line_place(block, dialect.names[position], first_row).refuse(
                row, f"the value {values[row].as_py()!r} is no float32", "correct it, or build with another dtype (dtypes)"
            )
