"""Which columns of a table are the edges, and how their values become blocks of edges.

The ends are the user's choice, else the columns with the usual names, else the only two that there are; formats whose ends are
fixed say so. Values are NumPy arrays here; `arrays` and `arrow_values` have layouts for other values.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from oocgraph.errors import InputError
from oocgraph.ingest.edges import EdgeBlock
from oocgraph.ingest.sources.ids import Place, as_dtype, int_ids, numbers, numpy_column_dtype, row_place
from oocgraph.ingest.sources.source import Request, Source, StreamMaker, agreed_num_vertices
from oocgraph.types import IdKind

USUAL_NAMES = (("source", "target"), ("src", "dst"), ("from", "to"))
"""Tried in this order, in any case, when the user names no columns."""


@dataclass(frozen=True, slots=True)
class Columns:
    """Names of the chosen columns; `edge` holds the weight first and has no name twice; `are_fixed`: the format has named the ends."""

    source: str
    target: str
    weight: str | None
    edge: tuple[str, ...]
    are_fixed: bool = False

    @property
    def read(self) -> list[str]:
        """Every column to read, once."""
        return list(dict.fromkeys((self.source, self.target, *self.edge)))


@dataclass(frozen=True, slots=True)
class Layout:
    """How the columns of an input become edges.

    Attributes
    ----------
    description
        The file, or the kind of object.
    columns
        Columns of the ends, and those beside them.
    kind
        Kind of the ids.
    dtypes
        NumPy dtype name of each edge column, ``"string"`` for text.
    num_vertices
        Declared number of vertices, or None.
    """

    description: str
    columns: Columns
    kind: IdKind
    dtypes: dict[str, str]
    num_vertices: int | None

    @property
    def ends(self) -> tuple[str, str] | None:
        """Names of the columns of sources and targets, unless the format has named them."""
        return None if self.columns.are_fixed else (self.columns.source, self.columns.target)

    def ids(self, values: Any, place: Place) -> Any:
        """Return the ids of an end, checked."""
        return int_ids(values, place, self.num_vertices)

    def column(self, values: Any, dtype: str, place: Place, *, weight: bool) -> Any:
        """Return an edge column, checked."""
        return numbers(values, place, weight=weight)

    def block(self, values: Callable[[str], Any], first_row: int, place_of: Callable[[str], Place] | None = None) -> EdgeBlock:
        """Return consecutive edges of the values of each column; messages call them rows from `first_row` on, or as `place_of` says."""
        named, columns = place_of or (lambda name: row_place(self.description, name, first_row)), self.columns
        source, target = (self.ids(values(name), named(name)) for name in (columns.source, columns.target))
        edge = {
            name: as_dtype(self.column(values(name), dtype, named(name), weight=name == columns.weight), dtype, named(name))
            for name, dtype in self.dtypes.items()
        }
        return EdgeBlock(source, target, edge, first_row)

    def open(self, make_streams: StreamMaker, num_rows: int | None = None, **facts: Any) -> Source:
        """Return the source of edges laid out like this, with what else is known of them: attributes of `Source`."""
        return Source(
            self.description, self.kind, make_streams, num_rows, self.num_vertices,
            weight=self.columns.weight, columns=self.dtypes, ends=self.ends, **facts,
        )  # fmt: skip


def numpy_layout(description: str, dtypes: Mapping[str, np.dtype[Any]], request: Request) -> Layout:
    """Return the layout of named NumPy arrays of these dtypes; those that cannot be ids or columns are refused."""
    columns = choose_columns(description, list(dtypes), request)
    edge = asked_dtypes(description, {name: numpy_column_dtype(dtypes[name]).name for name in columns.edge}, request)
    layout = Layout(description, columns, "int64", edge, agreed_num_vertices(description, None, request))
    layout.block(lambda name: np.empty(0, dtypes[name]), 0)
    return layout


def fixed_layout(
    description: str,
    available: Mapping[str, str],
    request: Request,
    *,
    ends: tuple[str, str] = ("source", "target"),
    kind: IdKind = "int64",
    declared: int | None = None,
    make: type[Layout] = Layout,
) -> Layout:
    """Return the layout of a format whose ends are fixed: it has all edge columns that there are, unless the user names some of them.

    Parameters
    ----------
    available
        Columns beside the ends and their dtype names. One called ``weight`` is the weight unless another is named.
    ends
        Columns of the ends.
    declared
        Number of vertices that the input declares.
    make
        Class of the layout.
    """
    refuse_endpoint_columns(description, request)
    for name in request.named:
        if name not in available and name not in (request.source_column, request.target_column):
            raise InputError(f"{description} has no column {name!r}; its edge columns are: {', '.join(available) or 'none'}")
    weight = request.weight_column or ("weight" if "weight" in available else None)
    chosen = tuple(dict.fromkeys(([weight] if weight else []) + list(request.edge_columns)))
    dtypes = asked_dtypes(description, {name: available[name] for name in chosen}, request)
    return make(
        description, Columns(*ends, weight, chosen, are_fixed=True), kind, dtypes, agreed_num_vertices(description, declared, request)
    )


def asked_dtypes(description: str, found: Mapping[str, str], request: Request) -> dict[str, str]:
    """Return the dtype name of each edge column as it is asked for, or as it was found.

    Raises
    ------
    InputError
        Text is asked for as numbers, or numbers as text; only text files can be read by either.
    """
    for name, kind in found.items():
        asked = request.dtypes.get(name, kind)
        if (asked == "string") != (kind == "string"):
            raise InputError(f"{description}, column {name!r}: it is {kind}, and {asked} is asked for; convert it")
    return {name: request.dtypes.get(name, kind) for name, kind in found.items()}


def refuse_endpoint_columns(description: str, request: Request) -> None:
    """Refuse other names for the source and target columns than the usual ones, where the format has none."""
    for name, usual in ((request.source_column, "source"), (request.target_column, "target")):
        if name not in (None, usual):
            raise InputError(f"{description} has no column {name!r}: the format fixes source and target; give None for both in columns")


def choose_columns(description: str, names: Sequence[str], request: Request) -> Columns:
    """Choose among the columns `names` of the table `description`."""
    for name in request.named:
        if name not in names:
            raise InputError(f"{description} has no column {name!r}; its columns are: {_listed(names)}")
    source, target = _endpoints(description, names, request)
    for name in (source, target, *request.beside):
        if list(names).count(name) > 1:
            raise InputError(f"{description} has more than one column {name!r}; rename one (columns: {_listed(names)})")
    return Columns(source, target, request.weight_column, request.beside)


def usual_pair(names: Sequence[str]) -> tuple[str, str] | None:
    """Return the columns with the usual names of source and target, if there are such."""
    lower = {name.strip().lower(): name for name in reversed(names)}
    for source, target in USUAL_NAMES:
        if source in lower and target in lower:
            return lower[source], lower[target]
    return None


def _endpoints(description: str, names: Sequence[str], request: Request) -> tuple[str, str]:
    source, target = request.source_column, request.target_column
    if source is not None and target is not None:
        if source == target:
            raise InputError(f"{description}: {source!r} is the column of sources and of targets; an edge needs two columns")
        return source, target
    if source is not None or target is not None:
        missing = "source_column" if source is None else "target_column"
        raise InputError(f"{description}: give {missing} too; the columns are: {_listed(names)}")
    usual = usual_pair(names)
    if usual is not None:
        return usual
    rest = [name for name in names if name not in request.named]
    if len(rest) == 2:
        return rest[0], rest[1]
    pairs = ", ".join(f"{a}/{b}" for a, b in USUAL_NAMES)
    raise InputError(
        f"{description}: which columns are the edges? Name those of source and target in columns; "
        f"the columns are: {_listed(names)} (found by themselves: {pairs}, or the only two)"
    )


def _listed(names: Sequence[str]) -> str:
    return ", ".join(repr(name) for name in names) or "none"
