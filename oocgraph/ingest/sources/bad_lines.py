"""What is wrong with a line of text: of a block that Arrow has refused, or would read as what it is not.

In: a block of lines. Out: InputError with the line, the column and the remedy.
"""

from __future__ import annotations

import math
import re
from typing import Any, NoReturn

import pyarrow as pa
import pyarrow.csv as pacsv

from oocgraph.errors import InputError
from oocgraph.ingest.sources.ids import MAX_ID
from oocgraph.ingest.sources.lines import PARSE_BYTES, Dialect, LineBlock, decoded, is_comment, split_line, too_long

MISSING = {"", "na", "nan", "null", "n/a", "#n/a"}
"""Fields that stand for no value, in small letters."""

NULLS = frozenset(pacsv.ConvertOptions().null_values)
"""Fields that Arrow takes for no value, in these letters and without spaces."""

_INTEGER = re.compile(r"\s*[+-]?\d+\s*", re.ASCII)
_PLAIN_INTEGER, _PLAIN_NUMBER = re.compile(r"-?[0-9]{1,18}"), re.compile(r"-?[0-9]{1,15}(\.[0-9]{1,20})?")
"""What Arrow reads as int64, and as a float, without being asked: it takes 0.1 ms to answer."""

_HEXADECIMAL = re.compile(r"\s*0x", re.IGNORECASE)
_NOT_CLOSED = (
    "a quotation mark is not closed (line breaks within quotes are not read); correct it, or give the table that pandas or DuckDB "
    "makes of the file"
)
_QUOTED_FIELD = re.compile(rb'(?:^|[ \t])"')


def refuse_quoted_break(block: LineBlock) -> NoReturn:
    """Refuse a quoted field that goes on in the next line: Arrow would join the lines, a block's end would cut them."""
    number = next((number for number, line in block.data_lines() if line.count(b'"') % 2), block.first_line)
    raise InputError(f"{block.path}, line {number}: {_NOT_CLOSED}")


def refuse_quotes(block: LineBlock) -> None:
    """Refuse a field that begins with a quotation mark, where white space separates fields: they would be cut within the quotes."""
    if not block.has(b'"') or not (block.buffer.startswith(b'"') or any(block.has(before) for before in (b' "', b'\t"', b'\n"'))):
        return  # to find one byte takes little
    for number, line in block.data_lines():
        if _QUOTED_FIELD.search(line):
            if line.count(b'"') % 2:  # the fields may be separated by something else, which stands within the quotes
                raise InputError(f"{block.path}, line {number}: {_NOT_CLOSED}")
            raise InputError(
                f"{block.path}, line {number}: a field begins with a quotation mark; where spaces separate fields quotes are not read: "
                "separate them by commas or tabs, or remove the quotes"
            )


def refuse_long_line(block: LineBlock) -> None:
    """Refuse a line of more than `PARSE_BYTES`; where every half of so many bytes has the end of a line there is none."""
    half = PARSE_BYTES // 2
    if all(block.buffer.find(b"\n", at, at + half) >= 0 for at in range(0, block.length - half + 1, half)):
        return
    for number, line in block.data_lines():
        if len(line) > PARSE_BYTES:
            raise too_long(block, number)


def refuse_first_bad_line(block: LineBlock, first_row: int, dialect: Dialect, cause: Exception | None) -> None:
    """Search a block that Arrow refused, or should have, for the line that is to blame."""
    for row, (number, line) in enumerate(block.data_lines()):
        if row < first_row:
            continue
        where, text = f"{block.path}, line {number}", decoded(block, number, line)
        if len(line) > PARSE_BYTES:
            raise too_long(block, number) from cause
        if dialect.delimiter != " " and text.count('"') % 2:
            raise InputError(f"{where}: {_NOT_CLOSED}") from cause
        fields = split_line(text, dialect.delimiter, where)
        if len(fields) != len(dialect.names):
            expected = f"{len(dialect.names)} columns are expected ({', '.join(dialect.names)})"
            comment = " (where ids are text, comments stand before the first row only)" if dialect.may_be_text and is_comment(line) else ""
            raise InputError(f"{where} has {len(fields)} columns but {expected}{comment}; correct the line") from cause
        for position, value_type in dialect.types.items():
            _refuse_bad_field(fields[position], value_type, dialect, position, where, cause)


def _refuse_bad_field(field: str, value_type: Any, dialect: Dialect, position: int, where: str, cause: Exception | None) -> None:
    plain = _PLAIN_INTEGER if value_type == pa.int64() else _PLAIN_NUMBER if pa.types.is_floating(value_type) else None
    if plain is not None and plain.fullmatch(field):
        return
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
    remedy = "correct it, or say what it is to be, float64 or string (dtypes)"
    raise InputError(f"{what}: {field.strip()!r} is not {value_type}, which the column is read as; {remedy}") from cause


def _is_number(field: str, value_type: Any) -> bool:
    """Return whether Arrow reads a field as a number of this type."""
    try:
        pa.array([field]).cast(value_type)
    except pa.ArrowInvalid:
        return False
    return True
