"""``oocgraph neighbors`` and ``oocgraph sample``: edges at some vertices, one a line or as one JSON object."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import islice
from math import isinf
from typing import Any

import click

from oocgraph.commands.common import as_json_text, check_pages_option, json_option, memory_option

LINES = 4096
"""Lines printed at once."""

ESCAPES = str.maketrans({"\\": r"\\", "\t": r"\t", "\n": r"\n", "\r": r"\r"})
"""What a string may not have in a line of columns between tabs, and what is printed in its place."""

_ids = click.argument("ids", metavar="ID...", nargs=-1, required=True)
_direction = click.option(
    "--direction", type=click.Choice(["out", "in"]), default="out", show_default=True, help="Where edges lead to, or where they come from."
)


def _parse_fanout(_context: click.Context, _option: click.Parameter, value: str) -> list[int]:
    """Turn "15,10" into numbers (a callback of click); what is negative the library refuses."""
    try:
        return [int(one) for one in value.split(",")]
    except ValueError:
        raise click.BadParameter(f"{value!r} is no list of whole numbers; give one for each hop, such as 15,10") from None


fanout_option = click.option(
    "--fanout", metavar="N,N...", default="15,10", show_default=True, callback=_parse_fanout, help="Neighbours drawn of a vertex, by hop."
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
    breaks as \n and \r, and a backslash as \\.
    """
    from oocgraph.store.graph import open_graph

    store = open_graph(graph, check_pages=check_pages)
    if columns:
        table = store.neighbors(list(ids), direction=direction, columns=columns, memory_budget=memory)
        _print({name: table[name].to_pylist() for name in table.column_names}, as_json=as_json)
        return
    lists = store.neighbors(list(ids), direction=direction, memory_budget=memory).to_pylist()
    near = [one for found in lists for one in found]
    given = [one for one, found in zip(ids, lists, strict=True) for _ in found]
    mine = given if store.attributes.id_kind == "string" else [int(one) for one in given]
    ends = {"source": mine, "target": near} if direction == "out" else {"source": near, "target": mine}
    _print(ends, as_json=as_json)


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
    """
    from oocgraph.store.graph import open_graph

    store = open_graph(graph, check_pages=check_pages)
    drawn = store.sample_neighbors(list(ids), fanout, seed=seed, replace=replace, direction=direction, memory_budget=memory)
    _print({"hop": drawn.hop.tolist(), "source": drawn.source.tolist(), "target": drawn.target.tolist()}, as_json=as_json)


def _print(columns: dict[str, list[Any]], *, as_json: bool) -> None:
    """Print columns of one length as lines, or as one JSON object, in which an infinite value is a string as JavaScript writes it."""
    if as_json:
        click.echo(as_json_text({name: [_finite(one) for one in values] for name, values in columns.items()}))
        return
    lines: Iterable[str] = ("\t".join(str(one).translate(ESCAPES) for one in row) for row in zip(*columns.values(), strict=True))
    while some := list(islice(lines, LINES)):
        click.echo("\n".join(some))


def _finite(value: Any) -> Any:
    """Return a value as JSON, which has no infinity, can hold it."""
    return ("Infinity" if value > 0 else "-Infinity") if isinstance(value, float) and isinf(value) else value
