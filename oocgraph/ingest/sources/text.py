"""CSV, TSV and other text: one edge a line, fields between commas, semicolons, tabs or white space.

What a file is follows from its first lines (1 MiB of them):

- *delimiter*: the first of the extension's candidates that cuts every line into the same number (two or more) of fields.
- *header*: the first row is one if it holds the names that the user gave, or a usual pair (source/target, src/dst, from/to), or
  text in a column whose other rows are all numbers and nothing that begins like a number. So an all-text file without such names
  has no header, and a damaged first edge is not taken for one.
- *columns* of a file without header: ``f0``, ``f1``, ... (Arrow's names); the first two are the edges unless others are named.
- *comments*: lines that begin with ``#`` or ``%``; where ids are names, those before the first row only, which may be the header. If there
  are no other lines below a header, and they have as many fields, they are refused unless the user says what ids are.
- *types*: a column is int64, else float64, else text; ids are names when half or more of them are, or as the user says. A value
  that does not fit is an error, never a guess.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pyarrow as pa

from oocgraph.errors import InputError
from oocgraph.ingest.sources.arrow_values import arrow_layout
from oocgraph.ingest.sources.bad_lines import MISSING, refuse_quotes
from oocgraph.ingest.sources.columns import Columns, choose_columns, usual_pair
from oocgraph.ingest.sources.compressed import compression_of, plain_name
from oocgraph.ingest.sources.lines import Comments, Dialect, LineBlock, decoded, line_blocks, split_line, text_readers
from oocgraph.ingest.sources.parsed_lines import parsed_blocks
from oocgraph.ingest.sources.source import Request, Source, file_bytes, single_stream
from oocgraph.types import IdKind

logger = logging.getLogger(__name__)

MAX_SAMPLE_BYTES, LEAST_SAMPLE_BYTES, MAX_SAMPLE_ROWS, LEAST_SAMPLE_ROWS = 1 << 20, 1 << 16, 10_000, 100
"""Bytes and rows that are looked at, of all files together; but so many of each."""

ANY = "\t,; "
DELIMITERS = {".csv": ",;\t ", ".tsv": "\t ", ".txt": ANY, ".edges": ANY, ".edgelist": ANY, ".el": " ", ".wel": " "}
"""Candidates by extension, the likeliest first; a space stands for any white space. Other names are those of KONECT."""

GAPBS_NAMES = {".el": ("source", "target"), ".wel": ("source", "target", "weight")}
"""GAPBS text never has a header."""

WITH_DICTS, _DICT = (".edges", ".edgelist"), re.compile(r"\{.+\}\s*$")

KONECT_NAMES = ("source", "target", "weight", "time")
"""Nor has KONECT's; there may be two columns or more."""

_INTEGER = re.compile(r"\s*-?\d+\s*", re.ASCII)
_FLOAT = re.compile(r"\s*-?((\d+\.?\d*|\.\d+)(e[+-]?\d+)?|inf(inity)?)\s*", re.IGNORECASE | re.ASCII)
_NUMBER_LIKE = re.compile(r"[-+.]?\d", re.ASCII)
_MAY_BE_NUMBER = re.compile(r"[-.\diIn#N\s]|$")
"""Matches the beginning of every field that is a number or a missing value: most names need no other test than this one."""

FieldKind = Literal["missing", "integer", "float", "text"]
KINDS: tuple[FieldKind, ...] = ("missing", "integer", "float", "text")
"""Each is what values of it and of those before it have in common."""

TYPES = {"missing": pa.float64(), "integer": pa.int64(), "float": pa.float64(), "text": pa.large_string()}
"""Arrow types; an integer that has no place in int64 is refused with its line when it is read."""


def open_text_edges(path: Path, request: Request) -> Source:
    """Open a text file, compressed or not."""
    return _opened([_looked_at(path, request)], request, str(path))


def open_text_files(paths: Sequence[Path], request: Request, description: str, *, are_named: bool) -> Source:
    """Open text files that are read together, in this order.

    Parameters
    ----------
    are_named
        Whether the user has named files or a pattern; of a folder, several are read only if their headers tell what they are.

    Raises
    ------
    InputError
        They have not the same columns, or ids are numbers in one and names in another.
    """
    files = _with_headers([_looked_at(path, request, 1 / len(paths)) for path in paths], request)
    first = files[0]
    if len(files) > 1 and not (are_named or first.sample.skip_rows):
        raise InputError(
            f"{description}: {first.path} has no header that tells whether it and the others hold the same; name those to be read by a "
            f"list or a pattern, such as {description}/*{first.path.suffix}; if the first row is a header, name its columns"
        )
    if empty := next((one for one in files if not (one.sample.rows or one.sample.skip_rows)), None):
        raise InputError(f"{description}: {empty.path} has neither rows nor a header; write it again, or leave it out")
    for other in files[1:]:
        is_alike = other.sample.skip_rows == first.sample.skip_rows and other.sample.columns == first.sample.columns
        if not is_alike or not (first.sample.skip_rows or other.sample.names == first.sample.names):
            raise InputError(
                f"{description}: {other.path} has {_said(other)}, and {first.path} {_said(first)}; files that are read together have the "
                "same columns, so name others by themselves"
            )
    by_kind = {one.kind: one for one in reversed(files) if one.sample.rows}
    if len(by_kind) > 1:
        raise InputError(
            f"{description}: ids of {by_kind['string'].path} are names, those of {by_kind['int64'].path} are numbers; give "
            "id_kind='string', which takes all ids as text"
        )
    return _opened(files, request, description)


def _with_headers(files: list[_LookedAt], request: Request) -> list[_LookedAt]:
    """Look again at files whose first row has the names of another file's header, which makes it a header, too."""
    named = next((one.sample for one in files if one.sample.skip_rows), None)
    if named is None:
        return files
    asked = replace(request, source_column=named.columns.source, target_column=named.columns.target)
    return [_looked_at(one.path, asked, 1 / len(files)) if one.first_row == set(named.names) else one for one in files]


@dataclass(frozen=True, slots=True)
class _LookedAt:
    """What a file is, by its first lines.

    Attributes
    ----------
    kind
        Kind of its ids.
    row_bytes, likely_rows
        Estimates: the mean length of a line, and the number of lines; None of a compressed file, whose size does not tell.
    may_be_header
        Whether the first row, taken for an edge, may be a header: no later row of the sample has either of its names.
    """

    path: Path
    sample: _Sample
    kind: IdKind
    row_bytes: int
    likely_rows: int | None
    may_be_header: bool

    @property
    def first_row(self) -> set[str]:
        """Fields of the first row; none if it is a header."""
        return {field.strip() for _, row in self.sample.rows for field in row if not self.sample.skip_rows}


def _looked_at(path: Path, request: Request, share: float = 1.0) -> _LookedAt:
    """Look at the first lines of a file; at as many as those of a share of all files may be."""
    num_rows = max(LEAST_SAMPLE_ROWS, int(share * MAX_SAMPLE_ROWS))
    num_bytes, extension = file_bytes(path), _text_extension(path)
    first = next(line_blocks(path, max(LEAST_SAMPLE_BYTES, int(share * MAX_SAMPLE_BYTES))), None)
    if first is None:
        raise InputError(f"{path} has nothing in it (0 bytes when decompressed); write the edge list again, or name another file")
    sample = _sampled(first, extension, request, "first" if request.id_kind == "string" else "anywhere", num_rows)
    kind = request.id_kind or ("string" if _ids_are_text(path, sample) else "int64")
    if request.id_kind is None and (kind == "string" or not sample.rows) and (first.has(b"#") or first.has(b"%")):
        with_signs = _sampled(first, extension, request, "first", num_rows)
        _refuse_unclear(path, sample, with_signs)
        sample = with_signs if kind == "string" else sample
    is_known = bool(sample.skip_rows or request.named or extension in GAPBS_NAMES)
    may_be_header = kind == "string" and sample.has_names and not is_known and _is_alone([row for _, row in sample.rows], sample.ends)
    row_bytes = max(1, first.length // max(1, first.count(b"\n")))
    likely_rows = None if compression_of(path) else num_bytes // row_bytes
    return _LookedAt(path, replace(sample, rows=sample.rows[:1]), kind, row_bytes, likely_rows, may_be_header)  # there may be thousands


def _opened(files: Sequence[_LookedAt], request: Request, description: str) -> Source:
    """Open files with the same columns: the type of each is one that all of its values have, as far as they were looked at."""
    columns, kind = files[0].sample.columns, next((one.kind for one in files if one.sample.rows), files[0].kind)
    _warn_of_headers(files, kind, request)
    types: dict[str, Any] = {}
    for name in columns.read:
        found = max((one.sample.kinds[name] for one in files), key=KINDS.index)
        types[name] = TYPES[found]
        if name in (columns.source, columns.target):
            types[name] = pa.large_string() if kind == "string" else pa.int64() if found == "text" else types[name]  # refused with its line
        elif (asked := request.dtypes.get(name)) is not None:
            types[name] = pa.large_string() if asked == "string" else pa.from_numpy_dtype(np.dtype(asked))
    layout = arrow_layout(description, columns, types.__getitem__, request)
    comments: Comments = "first" if kind == "string" else "anywhere"
    dialects = [(one.path, one.sample.dialect(types, one.row_bytes, comments)) for one in files]
    rows = [one.likely_rows for one in files if one.likely_rows is not None]
    return layout.open(
        single_stream(partial(parsed_blocks, dialects, layout)), likely_rows=sum(rows) if len(rows) == len(files) else None,
        readers=text_readers([one.path for one in files]),
    )  # fmt: skip


def _said(file: _LookedAt) -> str:
    """Say what columns a file has."""
    names = ", ".join(file.sample.names)
    return f"the columns {names}" if file.sample.skip_rows else f"{len(file.sample.names)} columns without a header ({names})"


@dataclass(frozen=True, slots=True)
class _Sample:
    """What the first lines of a file say of it.

    Attributes
    ----------
    delimiter, skip_rows, names
        As of `Dialect`.
    columns
        Columns that are read.
    kinds
        What the values of each column that is read are.
    rows
        Number and fields of each row below the header that has as many fields as there are names.
    """

    delimiter: str
    skip_rows: int
    names: tuple[str, ...]
    columns: Columns
    kinds: dict[str, FieldKind]
    rows: list[tuple[int, list[str]]]

    @property
    def ends(self) -> tuple[int, int]:
        """Positions of the columns that hold ids."""
        return self.names.index(self.columns.source), self.names.index(self.columns.target)

    @property
    def has_names(self) -> bool:
        """Whether an id is text."""
        return "text" in (self.kinds[self.columns.source], self.kinds[self.columns.target])

    def dialect(self, types: Mapping[str, Any], row_bytes: int, comments: Comments) -> Dialect:
        """Return how lines become columns of some Arrow types."""
        by_position = {self.names.index(name): kind for name, kind in types.items()}
        return Dialect(self.delimiter, self.skip_rows, self.names, by_position, self.ends, row_bytes, comments=comments)


def _sampled(first: LineBlock, extension: str, request: Request, comments: Comments, num_rows: int) -> _Sample:
    """Find out what the first lines say, where comments are as given."""
    path = first.path
    block = replace(first, comments=comments)
    lines = [(number, decoded(first, number, line)) for number, line in islice(block.data_lines(), num_rows)]
    if extension in WITH_DICTS and (found := next((one for one in lines if _DICT.search(one[1])), None)):
        raise InputError(
            f"{path}, line {found[0]}: {found[1]!r:.60} has a dict, as NetworkX writes it; write the list with data=['weight'] or "
            "data=False, or give the graph itself"
        )
    delimiter = _find_delimiter(path, lines, DELIMITERS.get(extension, ANY))
    if delimiter == " ":
        refuse_quotes(block)
    rows = [split_line(line, delimiter, f"{path}, line {number}") for number, line in lines]
    names, skip_rows = _find_names(path, rows, extension, request)
    columns = _choose(str(path), names, skip_rows, extension, request)
    sample = [(number, row) for (number, _), row in zip(lines[skip_rows:], rows[skip_rows:], strict=True) if len(row) == len(names)]
    kinds = {name: _common_kind([row[names.index(name)] for _, row in sample]) for name in columns.read}
    return _Sample(delimiter, skip_rows, names, columns, kinds, sample)


def _refuse_unclear(path: Path, sample: _Sample, with_signs: _Sample) -> None:
    """Refuse a file with a header and, below it, only lines that may be comments or edges."""
    if sample.skip_rows and not sample.rows and with_signs.rows:
        number, row = with_signs.rows[0]
        raise InputError(
            f"{path}, line {number}: {row[0].strip()!r} begins as a comment does, as all lines below the header; give id_kind='string' if "
            "these are edges, id_kind='int64' if they are comments"
        )


def _is_alone(rows: Sequence[list[str]], ends: tuple[int, int]) -> bool:
    """Whether there are several rows, and none of the names in the first is in another."""
    first = [rows[0][end].strip() for end in ends] if rows else []
    return len(rows) > 1 and not any(row[end].strip() in first for row in rows[1:] for end in ends)


def _warn_of_headers(files: Sequence[_LookedAt], kind: IdKind, request: Request) -> None:
    """Warn that first rows that may be headers are taken for edges; of files that begin with the same row, only once."""
    begin_alike = kind == "string" and len(files) > 1 and all(one.first_row and one.first_row == files[0].first_row for one in files)
    for file in files[:1] if begin_alike and not request.named else [one for one in files if one.may_be_header]:
        first = [file.sample.rows[0][1][end].strip() for end in file.sample.ends]
        logger.warning(
            "%s: the first row (%s) is taken for an edge; if it is a header, name its columns, as in columns=(%r, %r) or --source-column "
            "and --target-column", file.path, ", ".join(first), *first,
        )  # fmt: skip


def _text_extension(path: Path) -> str:
    return Path(plain_name(path)).suffix


def _find_delimiter(path: Path, lines: Sequence[tuple[int, str]], candidates: str) -> str:
    if not lines:
        return candidates[0]
    for delimiter in candidates:
        counts = {_num_fields(line, delimiter, path, number) for number, line in lines}
        if len(counts) == 1 and min(counts) > 1:
            return delimiter
    number, first = lines[0]
    for delimiter in candidates:  # a ragged line is refused later, with its number
        if len(split_line(first, delimiter, f"{path}, line {number}")) > 1:
            return delimiter
    shown = first if len(first) <= 60 else first[:60] + "..."
    tried = ", ".join({"\t": "tab", " ": "white space"}.get(delimiter, repr(delimiter)) for delimiter in candidates)
    raise InputError(f"{path}: the first row {shown!r} has one column only (tried {tried}); an edge needs two, correct the file")


def _num_fields(line: str, delimiter: str, path: Path, number: int) -> int:
    if delimiter == " " or '"' in line:
        return len(split_line(line, delimiter, f"{path}, line {number}"))
    return line.count(delimiter) + 1


def _find_names(path: Path, rows: Sequence[list[str]], extension: str, request: Request) -> tuple[tuple[str, ...], int]:
    """Names of the columns, and how many rows they take up (0 or 1)."""
    if extension in GAPBS_NAMES:
        names = GAPBS_NAMES[extension]
        if rows and len(rows[0]) != len(names):
            raise InputError(f"{path}: the first row has {len(rows[0])} columns, but {extension} means {' '.join(names)}; rename it .txt")
        return names, 0
    if extension not in DELIMITERS and rows and len(rows[0]) <= len(KONECT_NAMES):
        return KONECT_NAMES[: len(rows[0])], 0
    if not rows:
        ends = (request.source_column or "source", request.target_column or "target")
        return tuple(dict.fromkeys((*ends, *request.named))), 0
    header = [name.strip() for name in rows[0]]
    rest = [row for row in rows[1:] if len(row) == len(header)]
    if all(name in header for name in request.named) and (request.named or usual_pair(header)):
        return tuple(header), 1
    if any(_NUMBER_LIKE.match(name) for name in header):
        return tuple(f"f{position}" for position in range(len(header))), 0  # an edge, or a damaged one; never a header
    for position, name in enumerate(header):
        below = _common_kind([row[position] for row in rest])
        if _field_kind(name) == "text" and below in {"integer", "float"}:
            return tuple(header), 1
    return tuple(f"f{position}" for position in range(len(header))), 0


def _choose(description: str, names: tuple[str, ...], skip_rows: int, extension: str, request: Request) -> Columns:
    if extension == ".wel" and request.weight_column is None:
        request = replace(request, weight_column="weight")
    if extension not in GAPBS_NAMES and skip_rows == 0:
        if any(name not in names for name in request.named):
            description = f"{description} (without a header)"
        if request.source_column is None and request.target_column is None and usual_pair(names) is None:
            request = replace(request, source_column=names[0], target_column=names[1])
    return choose_columns(description, names, request)


def _field_kind(field: str) -> FieldKind:
    if not _MAY_BE_NUMBER.match(field):
        return "text"
    if field.strip().lower() in MISSING:
        return "missing"
    if _INTEGER.fullmatch(field):
        return "integer"
    return "float" if _FLOAT.fullmatch(field) else "text"


def _common_kind(fields: Sequence[str]) -> FieldKind:
    common = KINDS[0]
    for field in fields:
        common = max(common, _field_kind(field), key=KINDS.index)
        if common == KINDS[-1]:  # as of the first name in a column of names
            break
    return common


def _ids_are_text(path: Path, sample: _Sample) -> bool:
    """Whether the ids are names: half or more of them are. Fewer are damage in a file of numbers, and refused."""
    if not sample.has_names:
        return False
    found = ((number, end, row[end].strip()) for number, row in sample.rows for end in sample.ends if _field_kind(row[end]) == "text")
    text = list(islice(found, len(sample.rows)))
    if text and len(text) < len(sample.rows):
        number, end, field = text[0]
        raise InputError(
            f"{path}, line {number}, column {sample.names[end]!r}: the id {field!r} is not a number as most others; "
            "correct it, or give id_kind='string', which takes all ids as text"
        )
    return bool(text)
