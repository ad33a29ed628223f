"""``oocgraph neighbors`` and ``oocgraph sample``: edges at some vertices, one a line or as one JSON object."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import isinf
from typing import Any

import click

from oocgraph.commands.common import as_json_text, check_pages_option, json_option, memory_option, parse_numbers

LINES = 4096
"""Lines printed at once."""

ESCAPES = str.maketrans({"\\": r"\\", "\t": r"\t", "\n": r"\n", "\r": r"\r"})
"""What a string may not have in a line of columns between tabs, and what is printed in its place."""

_ids = click.argument("ids", metavar="ID...", nargs=-1, required=True)
_direction = click.option(
    "--direction", type=click.Choice(["out", "in"]), default="out", show_default=True, help="Where edges lead to, or where they come from."
)


fanout_option = click.option(
    "--fanout", metavar="N,N...", default="15,10", show_default=True, callback=parse_numbers, help="Neighbours drawn of a vertex, by hop."
)


@click.command()
@click.argument("graph", metavar="GRAPH")
@_ids
@_direction
@click.option("--column", "columns", metavar="NAME", multiple=True, help="Edge column to print beside; repeat for several.")
@check_pages_option
@memory_option
@json_option
def neighbors(
    graph: str, ids: Sequence[str], *, direction: str, columns: Sequence[str], check_pages: bool, memory: str | None, as_json: bool
) -> None:
    r"""Print the edges of vertices of the graph store GRAPH: source, target and columns of an edge a line, separated by tabs.

    Only the pages that hold the edges are read. Those to vertices of large degree come first. In strings a tab is printed as \t, line
    breaks as \n and \r, and a backslash as \\. An ID that begins with - stands behind --.
    """
    from oocgraph.arrow import to_numbers
    from oocgraph.store.graph import open_graph

    store = open_graph(graph, check_pages=check_pages)
    if columns:
        table = store.neighbors(list(ids), direction=direction, columns=columns, memory_budget=memory)
        _print({name: _values_of(table[name]) for name in table.column_names}, table.num_rows, as_json=as_json)
        return
    lists = store.neighbors(list(ids), direction=direction, memory_budget=memory)
    near, starts = lists.values, to_numbers(lists.offsets)
    names = ids if store.attributes.id_kind == "string" else [int(one) for one in ids]

    def given(start: int, stop: int) -> list[Any]:
        """Return which of the vertices some of the edges are at."""
        return [names[at] for at in starts[1:].searchsorted(range(start, stop), side="right")]

    ends = {"source": given, "target": _values_of(near)} if direction == "out" else {"source": _values_of(near), "target": given}
    _print(ends, len(near), as_json=as_json)


@click.command()
@click.argument("graph", metavar="GRAPH")
@_ids
@fanout_option
@click.option("--seed", type=int, default=0, show_default=True, help="The same seed draws the same edges.")
@click.option("--replace", is_flag=True, help="Draw with replacement.")
@_direction
@check_pages_option
@memory_option
@json_option
def sample(
    graph: str, ids: Sequence[str], *, fanout: list[int], seed: int, replace: bool, direction: str, check_pages: bool, memory: str | None,
    as_json: bool,
) -> None:  # fmt: skip
    """Draw neighbours of vertices of the graph store GRAPH, of these neighbours, and so on: hop, source and target of an edge a line.

    All edges of a vertex are equally likely. Only the pages of the drawn edges are read. Strings are printed as `oocgraph neighbors` does.
    An ID that begins with - stands behind --.
    """
    from oocgraph.store.graph import open_graph

    store = open_graph(graph, check_pages=check_pages)
    drawn = store.sample_neighbors(list(ids), fanout, seed=seed, replace=replace, direction=direction, memory_budget=memory)
    columns = {"hop": drawn.hop, "source": drawn.source, "target": drawn.target}
    _print({name: _values_of(found) for name, found in columns.items()}, len(drawn.hop), as_json=as_json)


Values = Callable[[int, int], list[Any]]
"""Gives a range of the values of a column."""


def _values_of(column: Any) -> Values:
    """Take values from an array of NumPy or Arrow: a million of them as objects would be 30 MB that no budget has."""
    return lambda start, stop: column[start:stop].to_pylist() if hasattr(column, "to_pylist") else column[start:stop].tolist()


def _print(columns: dict[str, Values], num_edges: int, *, as_json: bool) -> None:
    """Print columns as lines, or as one JSON object, in which an infinite value is a string as JavaScript writes it; some at a time."""
    ranges = [(start, min(num_edges, start + LINES)) for start in range(0, num_edges, LINES)]
    if not as_json:
        for one in ranges:
            rows = zip(*(values(*one) for values in columns.values()), strict=True)
            click.echo("\n".join("\t".join(str(value).translate(ESCAPES) for value in row) for row in rows))
        return
    click.echo("{", nl=False)
    for at, (name, values) in enumerate(columns.items()):
        click.echo(f"{', ' if at else ''}{as_json_text(name)}: [", nl=False)
        for start, stop in ranges:
            text = as_json_text([_finite(one) for one in values(start, stop)])
            click.echo(f"{', ' if start else ''}{text[1:-1]}", nl=False)
        click.echo("]", nl=False)
    click.echo("}")


def _finite(value: Any) -> Any:
    """Return a value as JSON, which has no infinity, can hold it."""
    return ("Infinity" if value > 0 else "-Infinity") if isinstance(value, float) and isinf(value) else value
