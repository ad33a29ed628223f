"""Tables for people, on stdout."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import click

from oocgraph.commands.common import human
from oocgraph.memory import format_bytes

if TYPE_CHECKING:
    from oocgraph.result import Iteration

SHOWN_LEVELS = 40
"""Levels of a listing: more are counted, not shown."""

FILE_WIDTH = 160
"""Characters of a line when the output is not a terminal."""


def print_table(rows: Iterable[Mapping[str, Any]]) -> None:
    """Print a table whose columns are the keys of the rows; units follow the names. Text that is too long is cut."""
    from rich.box import SIMPLE_HEAD
    from rich.console import Console
    from rich.table import Table

    table = Table(box=SIMPLE_HEAD)
    for i, row in enumerate(rows):
        if not i:
            for name, value in row.items():
                table.add_column(name.replace("_", " "), justify="left" if isinstance(value, str) else "right", no_wrap=True)
        table.add_row(*(human(name, value) for name, value in row.items()))
    console = Console()
    Console(width=None if console.is_terminal else FILE_WIDTH, highlight=False).print(table)


def print_levels(iterations: Sequence[Iteration]) -> None:
    """Print what each iteration did."""
    shown = ("level", "direction", "frontier", "undecided", "seconds", "bytes_read", "reason")
    print_table({name: getattr(one, name) for name in shown} for one in iterations[:SHOWN_LEVELS])
    if len(iterations) > SHOWN_LEVELS:
        rest = iterations[SHOWN_LEVELS:]
        seconds, num_bytes = sum(one.seconds for one in rest), sum(one.bytes_read for one in rest)
        click.echo(f"  ... and {len(rest):,} more levels, {seconds:.3f} s, {format_bytes(num_bytes)} read")
