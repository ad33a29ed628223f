"""Which columns of a table are the edges: the user's choice, else the usual names, else the only two that there are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from oocgraph.errors import InputError
from oocgraph.ingest.sources.source import Request

USUAL_NAMES = (("source", "target"), ("src", "dst"), ("from", "to"))
"""Tried in this order, in any case, when the user names no columns."""


@dataclass(frozen=True, slots=True)
class Columns:
    """Names of the chosen columns; `edge` holds the weight first and has no name twice."""

    source: str
    target: str
    weight: str | None
    edge: tuple[str, ...]

    @property
    def read(self) -> list[str]:
        """Every column to read, once."""
        return list(dict.fromkeys((self.source, self.target, *self.edge)))


def choose_columns(description: str, names: Sequence[str], request: Request) -> Columns:
    """Choose among the columns `names` of the table `description`."""
    for name in request.named:
        if name not in names:
            raise InputError(f"{description} has no column {name!r}; its columns are: {_listed(names)}")
    source, target = _endpoints(description, names, request)
    edge = tuple(dict.fromkeys(([request.weight_column] if request.weight_column else []) + list(request.edge_columns)))
    for name in (source, target, *edge):
        if list(names).count(name) > 1:
            raise InputError(f"{description} has more than one column {name!r}; rename one (columns: {_listed(names)})")
    return Columns(source, target, request.weight_column, edge)


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
            raise InputError(f"{description}: source_column and target_column are both {source!r}; an edge needs two columns")
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
        f"{description}: which columns are the edges? Give source_column and target_column; "
        f"the columns are: {_listed(names)} (found by themselves: {pairs}, or the only two)"
    )


def _listed(names: Sequence[str]) -> str:
    return ", ".join(repr(name) for name in names) or "none"
