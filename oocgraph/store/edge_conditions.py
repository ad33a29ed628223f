"""Conditions on edge columns, such as ``kind == "Depends" and year < 2020``: parsed, checked against a graph, and never executed as code.

In: the text that a user gives as ``where=``, and a graph. Out: `EdgeCondition`, which tells of blocks of the columns which edges count.
Python's parser makes a tree of the text, and only the nodes named here are accepted in it. A name that is none of Python's stands between
backticks; of every other the parser gives the NFKC form, so columns are found by theirs. A number is rounded to the dtype of the column
that it is compared with. A comparison of strings is evaluated once for each distinct string; edges then look its result up by their code.
"""

from __future__ import annotations

import ast
import math
import operator
import re
import unicodedata
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from oocgraph.arrow import from_strings, to_numbers
from oocgraph.errors import ArgumentError, ArgumentTypeError
from oocgraph.store.columns import StringColumn
from oocgraph.store.graph_arrays import GraphArrays
from oocgraph.types import Array

MOST_CHARACTERS = 10_000
"""Length of a condition."""

MOST_DEPTH = 100
"""Levels of ``and``, ``or`` and ``not`` inside of each other."""

BLOCK_CATEGORIES, CATEGORY_BYTES = 1 << 16, 64
"""Distinct strings compared at once, and about the bytes that each takes meanwhile."""

Block = Mapping[str, Array]
"""Some edges: their values in each column, of strings their codes."""

Test = Callable[[Block], Array]
"""Tells of a block of edges which of them meet a condition: (n,) bool, a new array."""

_COMPARISONS: dict[type[ast.cmpop], tuple[str, Callable[[Any, Any], Any], str]] = {
    ast.Eq: ("equal", operator.eq, "equal"),
    ast.NotEq: ("not_equal", operator.ne, "not_equal"),
    ast.Lt: ("less", operator.lt, "greater"),
    ast.LtE: ("less_equal", operator.le, "greater_equal"),
    ast.Gt: ("greater", operator.gt, "less"),
    ast.GtE: ("greater_equal", operator.ge, "less_equal"),
}
"""Arrow's name of each comparison, the function, and Arrow's name of it with the sides exchanged."""

_BY_NAME = {name: function for name, function, _ in _COMPARISONS.values()}


class Table:
    """What a comparison makes of each distinct string of a column.

    Attributes
    ----------
    strings : StringColumn
        The distinct strings.
    result : (num_strings,) bool
        Empty before `fill`.
    """

    def __init__(self, strings: StringColumn, compare: Callable[[Any], Any]) -> None:
        self.strings, self.result, self._compare = strings, np.empty(0, bool), compare

    def fill(self) -> None:
        """Compare all of them, some at once."""
        result = np.empty(self.strings.length, bool)
        for start in range(0, result.size, BLOCK_CATEGORIES):
            stop = min(result.size, start + BLOCK_CATEGORIES)
            result[start:stop] = to_numbers(self._compare(self.strings.read(start, stop)))
        self.result = result


@dataclass(frozen=True, slots=True)
class EdgeCondition:
    """A condition that a graph can evaluate.

    Attributes
    ----------
    text : str
        As it was given.
    columns : tuple of str
        Edge columns that it reads.
    test
        Tells of a block of these which edges count, once `tables` are filled.
    tables : tuple of Table
        Results for distinct strings.
    """

    text: str
    columns: tuple[str, ...]
    test: Test
    tables: tuple[Table, ...]

    @property
    def table_bytes(self) -> int:
        """Bytes that the results for distinct strings take, and comparing some of these."""
        return sum(table.strings.length + BLOCK_CATEGORIES * CATEGORY_BYTES for table in self.tables)

    def fill_tables(self) -> None:
        """Evaluate what is compared with distinct strings."""
        for table in self.tables:
            table.fill()


def edge_condition(text: Any, store: GraphArrays) -> EdgeCondition:
    """Parse a condition, and check that it fits the edge columns of a graph.

    Raises
    ------
    ArgumentTypeError, ArgumentError
        It is no text, or no condition on the columns of the graph; the message says what is wrong, and where.
    """
    if not isinstance(text, str):
        raise ArgumentTypeError(f"where is {text!r}; give a condition on edge columns as a text, such as 'year < 2020'")
    if len(text) > MOST_CHARACTERS:
        raise ArgumentError(f"where has {len(text):,} characters; give a condition of at most {MOST_CHARACTERS:,}")
    stripped = _on_one_line(text).strip()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", SyntaxWarning)
            warnings.simplefilter("ignore", DeprecationWarning)  # what Python 3.11 makes of an escape that it does not know
            plain, names = _without_backticks(stripped)
            tree = ast.parse(plain, mode="eval")
    except SyntaxError as error:
        place = max(1, error.offset or 1)
        raise ArgumentError(f"where is {text!r}, which is no condition ({error.msg}), at character {place}; {_EXAMPLES}") from None
    except (ValueError, RecursionError, MemoryError) as error:
        raise ArgumentError(f"where is {text[:80]!r}, which is no condition ({error or 'too deep'}); {_EXAMPLES}") from None
    reader = _Reader(stripped, store, names)
    test = reader.condition(tree.body, 0)
    return EdgeCondition(stripped, tuple(sorted(reader.used)), test, tuple(reader.tables))


_EXAMPLES = 'write it as in: kind == "Depends", year < 2020 and not kind in ["a", "b"]'


def _on_one_line(text: str) -> str:
    """Return the text with spaces for line breaks and comments; both stay as many bytes.

    Raises
    ------
    ArgumentError
        A line breaks inside of a string.
    """

    def spaces(found: re.Match[str]) -> str:
        if found["string"] and ("\n" in found[0] or "\r" in found[0]):
            raise ArgumentError(f"where is {text!r}: a line breaks in the text at character {found.start() + 1}; write the break as \\n")
        return " " * len(found[0].encode()) if found["comment"] or found["line_break"] else found[0]

    return _PIECES.sub(spaces, text)


def _without_backticks(text: str) -> tuple[str, dict[tuple[int, int], str]]:
    """Put underscores in place of each name between backticks; return the text, and the names by their first and last byte in it.

    They take as many bytes, so that places in the text are the same.
    """
    names: dict[tuple[int, int], str] = {}

    def underscores(found: re.Match[str]) -> str:
        if not (name := found["name"]):
            return found[0]
        start, num_bytes = len(text[: found.start()].encode()), len(found[0].encode())
        names[start, start + num_bytes] = name
        return "_" * num_bytes

    return _PIECES.sub(underscores, text), names


_PIECES = re.compile(
    r"""(?P<string>'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*")|`(?P<name>[^`]+)`|(?P<comment>#[^\r\n]*)|(?P<line_break>[\r\n])""", re.DOTALL
)
"""Strings, names between backticks, and what Python takes for space."""


class _Column(NamedTuple):
    name: str
    kind: str


class _Reader:
    """Reads the tree of one condition."""

    def __init__(self, text: str, store: GraphArrays, names: Mapping[tuple[int, int], str]) -> None:
        self.text, self.store, self.names, self.used, self.tables = text, store, names, set[str](), list[Table]()

    def fail(self, node: ast.AST, what: str) -> ArgumentError:
        """Return the error of a part of the text."""
        place = len(self.text.encode()[: getattr(node, "col_offset", 0)].decode())
        return ArgumentError(f"where is {self.text!r}: {what}, at character {place + 1}")

    def condition(self, node: ast.expr, depth: int) -> Test:
        """Return the test of a node that is true or false."""
        if depth > MOST_DEPTH:
            raise self.fail(node, f"more than {MOST_DEPTH} conditions are inside of each other")
        if isinstance(node, ast.BoolOp):
            join = np.logical_and if isinstance(node.op, ast.And) else np.logical_or
            return _joined([self.condition(value, depth + 1) for value in node.values], join)
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            inner = self.condition(node.operand, depth + 1)
            return lambda block: np.logical_not(test := inner(block), out=test)
        if isinstance(node, ast.Compare):
            sides = [node.left, *node.comparators]
            pairs = zip(sides[:-1], node.ops, sides[1:], strict=True)
            return _joined([self.comparison(left, op, right) for left, op, right in pairs], np.logical_and)
        if isinstance(node, ast.Name):
            column = self.column(node)
            if column.kind not in ("bool", "uint8"):  # truths of an input are stored as uint8
                raise self.fail(node, f"column {column.name!r} is {column.kind}, neither true nor false; compare it with a value")
            return lambda block: block[column.name] != 0
        raise self.fail(node, f"{_what(node)} is no condition; compare columns with values, and join that by and, or, not")

    def comparison(self, left: ast.expr, op: ast.cmpop, right: ast.expr) -> Test:
        """Return the test of one comparison."""
        if isinstance(op, ast.In | ast.NotIn):
            is_among = self.membership(left, right)
            return is_among if isinstance(op, ast.In) else lambda block: np.logical_not(test := is_among(block), out=test)
        if type(op) not in _COMPARISONS:
            raise self.fail(left, "`is` compares no values; write ==")
        name, function, exchanged = _COMPARISONS[type(op)]
        sides = self.operand(left), self.operand(right)
        if not any(isinstance(side, _Column) for side in sides):
            raise self.fail(left, "neither side of a comparison is a column")
        if not isinstance(sides[0], _Column):
            sides, (left, right), name = sides[::-1], (right, left), exchanged
            function = _BY_NAME[name]
        column, other = sides
        assert isinstance(column, _Column)
        strings = [side.kind == "string" if isinstance(side, _Column) else isinstance(side, str) for side in sides]
        if all(strings) and isinstance(other, _Column):
            raise self.fail(left, f"columns {column.name!r} and {other.name!r} are both strings; compare each with a text")
        if any(strings) and not all(strings):
            kinds = " and ".join(_kind_of(side) for side in sides)
            raise self.fail(right, f"{kinds} cannot be compared")
        if isinstance(other, str):
            import pyarrow.compute as pc  # here, not when it is used: before memory is counted

            (text,) = from_strings([other])
            return self.by_category(column.name, lambda strings: getattr(pc, name)(strings, text))
        if isinstance(other, _Column):
            return lambda block: function(block[column.name], block[other.name])
        value = self.number(column, other)
        return lambda block: np.asarray(function(block[column.name], value))

    def membership(self, left: ast.expr, right: ast.expr) -> Test:
        """Return the test of ``column in [...]``."""
        column = self.operand(left)
        if not isinstance(column, _Column):
            raise self.fail(left, "left of `in` must be a column")
        if not isinstance(right, ast.List | ast.Tuple | ast.Set):
            raise self.fail(right, "right of `in` must be a list, such as [1, 2]")
        values = [self.operand(one) for one in right.elts]
        for one, value in zip(right.elts, values, strict=True):
            if isinstance(value, _Column) or isinstance(value, str) != (column.kind == "string"):
                raise self.fail(one, f"{_kind_of(column)} cannot be among {_kind_of(value)}")
        if column.kind == "string":
            import pyarrow.compute as pc

            texts = from_strings(one for one in values if isinstance(one, str))
            return self.by_category(column.name, lambda strings: pc.is_in(strings, texts))
        numbers = [self.number(column, value) for value in values]
        dtype = np.dtype(column.kind)
        if dtype.kind in "iub":
            least, most = (0, 1) if dtype.kind == "b" else (np.iinfo(dtype).min, np.iinfo(dtype).max)
            numbers = [int(one) for one in numbers if least <= one <= most and one == int(one)]
        among = np.array(numbers, dtype)
        return lambda block: np.isin(block[column.name], among)

    def by_category(self, name: str, compare: Callable[[Any], Any]) -> Test:
        """Return the test that looks up what `compare` makes of each distinct string."""
        table = Table(StringColumn(self.store, f"columns/{name}"), compare)
        self.tables.append(table)
        return lambda block: table.result[block[name]]

    def operand(self, node: ast.expr) -> _Column | int | float | str:
        """Return a side of a comparison: a column, a number or a text."""
        if isinstance(node, ast.Name):
            return self.column(node)
        sign = 1
        while isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub | ast.UAdd):
            sign, node = -sign if isinstance(node.op, ast.USub) else sign, node.operand
            if not isinstance(node, ast.UnaryOp) and not (isinstance(node, ast.Constant) and type(node.value) in (int, float)):
                raise self.fail(node, f"{_what(node)} has no sign; give a number")
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            try:
                node.value.encode()
            except UnicodeEncodeError as error:
                raise self.fail(node, f"{node.value!r} is not Unicode text: UTF-8 cannot write it") from error
            return node.value
        if isinstance(node, ast.Constant) and isinstance(node.value, bool | int | float):
            return sign * node.value
        raise self.fail(node, f"{_what(node)} is neither a column, nor a number, nor a text")

    def column(self, node: ast.Name) -> _Column:
        """Return the column of a name."""
        columns = self.store.attributes.columns
        said = self.names.get((node.col_offset, node.end_col_offset or 0)) or self.name(node)
        if (name := self.store.attributes.stored_column(said)) not in columns:
            there = (
                ", ".join(one if one.isidentifier() else f"`{one}`" for one in self.store.attributes.input_columns)
                or "(none: name those to keep when the graph is built)"
            )
            raise self.fail(node, f"there is no edge column {said!r}; there are {there}")
        self.used.add(name)
        return _Column(name, columns[name])

    def name(self, node: ast.Name) -> str:
        """Return the name whose NFKC form Python's parser gives: a column's, or as it was written where there is none."""
        weight = self.store.attributes.weight_name
        known = dict.fromkeys([*self.store.attributes.columns, *([weight] if weight else [])])
        alike = [one for one in known if unicodedata.normalize("NFKC", one) == node.id]
        if len(alike) > 1:
            names = " and ".join(map(ascii, alike))
            raise self.fail(node, f"the columns {names} are one name to Python; write the one that you mean between backticks")
        return alike[0] if alike else self.text.encode()[node.col_offset : node.end_col_offset].decode()

    def number(self, column: _Column, value: Any) -> Any:
        """Return a number as the values of a column are compared with it."""
        if np.dtype(column.kind).kind == "f":
            with np.errstate(over="ignore"):
                try:
                    return np.dtype(column.kind).type(value)
                except OverflowError:
                    return np.dtype(column.kind).type(math.inf if value > 0 else -math.inf)
        if isinstance(value, float) and math.isfinite(value) and value == int(value):
            return int(value)  # of 64 bits not rounded to a float
        return int(value) if isinstance(value, bool) else value


def _joined(tests: Sequence[Test], join: Any) -> Test:
    """Return the test that all of some tests hold, or any of them."""
    if len(tests) == 1:
        return tests[0]

    def joined(block: Block) -> Array:
        found = tests[0](block)
        for test in tests[1:]:
            join(found, test(block), out=found)
        return found

    return joined


def _kind_of(side: _Column | float | str) -> str:
    if isinstance(side, _Column):
        return f"column {side.name!r} ({side.kind})"
    return f"the text {side!r}" if isinstance(side, str) else f"the number {side!r}"


def _what(node: ast.AST) -> str:
    """Name a part of an expression that is not accepted."""
    names = {
        ast.Call: "a call", ast.Attribute: "an attribute", ast.Subscript: "an index", ast.Lambda: "a function", ast.IfExp: "a choice",
        ast.BinOp: "a computed value", ast.Constant: "a value", ast.NamedExpr: "an assignment", ast.JoinedStr: "a formatted text",
    }  # fmt: skip
    return next((name for kind, name in names.items() if isinstance(node, kind)), "this")
