"""Tables for people, on stdout."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby
from typing import TYPE_CHECKING, Any

import click

from oocgraph.listing import human, label
from oocgraph.memory import format_bytes
from oocgraph.partition.balance import imbalance
from oocgraph.results.search import by_worker

if TYPE_CHECKING:
    from oocgraph.results.histogram import Histogram
    from oocgraph.results.search import Iteration, WorkerMetrics

SHOWN_LEVELS = 40
"""Levels of a listing: more are counted, not shown."""

SHOWN_BINS, BAR_WIDTH = 20, 40
"""Lines of a histogram; characters of its longest bar."""

MAX_EMPTY = 2
"""Empty bins one after the other that have lines of their own."""

SHOWN_SHARES = 4
"""Workers whose shares of a level are shown in its line."""

FILE_WIDTH = 160
"""Characters of a line when the output is not a terminal."""

COLUMN_GAP, MIN_WIDTH = 3, 10
"""Characters between columns; those that are left of a column that is cut."""


def print_table(rows: Iterable[Mapping[str, Any]]) -> None:
    """Print a table whose columns are the keys of the rows; units follow the names. Text is cut where it is too wide."""
    from rich.box import SIMPLE_HEAD
    from rich.console import Console
    from rich.table import Table

    console = _console(Console)
    if not console.is_terminal:
        console.width = FILE_WIDTH
    values = list(rows)
    most = max(MIN_WIDTH, console.width // 2)
    heads, last = ([label(name) for name in values[0]], list(values[0])[-1]) if values else ([], "")

    def shown(name: str, value: Any) -> str:
        return _cut(human(name, value), most if isinstance(value, str) and name != last else None)

    texts = [[shown(name, value) for name, value in row.items()] for row in values]
    room = console.width - sum(max(map(len, column)) + COLUMN_GAP for column in zip(heads[:-1], *(row[:-1] for row in texts), strict=True))
    table = Table(box=SIMPLE_HEAD)
    for head, value in zip(heads, values[0].values() if values else (), strict=True):
        width = max(MIN_WIDTH, room - COLUMN_GAP - 1) if head is heads[-1] else None
        table.add_column(head, justify="left" if isinstance(value, str) else "right", no_wrap=True, max_width=width)
    for text in texts:
        table.add_row(*text)
    console.print(table)


def _console(base: Any) -> Any:
    """Return a console that prints ids as they are, and raises when the reader of a pipe has gone: rich would end the process."""

    class Plain(base):  # type: ignore[misc]
        def on_broken_pipe(self) -> None:
            raise BrokenPipeError

    return Plain(highlight=False, markup=False, emoji=False)


def _cut(text: str, most: int | None) -> str:
    return text if most is None or len(text) <= most else f"{text[: most - 3]}..."


def print_histogram(histogram: Histogram) -> None:
    """Print how many there are of which value: a line for each bin, with a bar."""
    if not histogram.counts.size:
        return
    labels, counts = [histogram.name, *histogram.labels()], [histogram.things, *(f"{count:,}" for count in histogram.counts.tolist())]
    widths = max(map(len, labels)), max(map(len, counts))
    most, block = int(histogram.counts.max()), "█" if "utf" in (sys.stdout.encoding or "").lower() else "#"
    bars = ["", *(block * -(-BAR_WIDTH * count // most) for count in histogram.counts.tolist())]
    click.echo()
    for is_empty, lines in groupby(zip(labels, counts, bars, strict=True), lambda line: line[1] == "0"):
        shown = list(lines)
        if is_empty and len(shown) > MAX_EMPTY:
            shown = [("...", "0", "")]
        for name, count, bar in shown:
            click.echo(f"  {name:>{widths[0]}}  {count:>{widths[1]}}  {bar}".rstrip())
    click.echo()


def print_levels(iterations: Sequence[Iteration]) -> None:
    """Print what each iteration did, on a cluster also how evenly; then the sums of each worker."""
    workers = by_worker(iterations)
    on_device = any(one.device is not None for one in iterations)
    print_table(_level_row(one, list(workers), on_device=on_device) for one in iterations[:SHOWN_LEVELS])
    if len(iterations) > SHOWN_LEVELS:
        rest, num_levels = iterations[SHOWN_LEVELS:], iterations[-1].level - iterations[SHOWN_LEVELS - 1].level
        seconds, num_bytes = sum(one.seconds for one in rest), sum(one.bytes_read for one in rest)
        click.echo(f"  ... and {num_levels:,} more levels, {seconds:.3f} s, {format_bytes(num_bytes)} read")
    if workers:
        _print_workers(workers)


def _level_row(iteration: Iteration, workers: Sequence[str], *, on_device: bool = False) -> dict[str, Any]:
    """Columns of one level.

    `link_bytes` are those that went to a GPU; `busy` has the share of each of a few workers, in the order of the table of workers.
    """
    row = {name: getattr(iteration, name) for name in ("level", "direction", "frontier", "undecided", "seconds", "bytes_read")}
    if iteration.exchanged:
        row |= {f"{kind.kind}_bytes": kind.num_bytes for kind in iteration.exchanged}
        row["messages"] = sum(kind.num_messages for kind in iteration.exchanged)
    if on_device:
        row["link_bytes"] = iteration.device.link_bytes if iteration.device else 0
    if workers:
        metrics = by_worker([iteration])
        busy = [metrics[name].busy_seconds if name in metrics else 0.0 for name in workers]
        if len(workers) <= SHOWN_SHARES:
            row["busy"] = _shares(busy)
        row["imbalance"] = f"{imbalance(busy):.2f}" if metrics else "-"
        row["sent_bytes"] = sum(one.sent_bytes for one in metrics.values())
    return row | {"reason": iteration.reason}


def _shares(busy_seconds: Sequence[float]) -> str:
    """Share of each in the sum.

    Examples
    --------
    >>> _shares([0.3, 0.1]), _shares([0.0, 0.0])
    ('75 : 25 %', '-')
    """
    total = sum(busy_seconds)
    return " : ".join(f"{100 * one / total:.0f}" for one in busy_seconds) + " %" if total > 0 else "-"


def _print_workers(workers: Mapping[str, WorkerMetrics]) -> None:
    """Print what each worker did in the whole search."""
    shown = list(workers.items())[:SHOWN_LEVELS]
    names = ("busy_seconds", "bytes_read", "sent_bytes", "num_found")
    print_table({"worker": name, "partitions": _few(one.partitions)} | {name: getattr(one, name) for name in names} for name, one in shown)
    if len(workers) > len(shown):
        click.echo(f"  ... and {len(workers) - len(shown):,} more workers")
    click.echo(f"  busiest worker: {imbalance([one.busy_seconds for one in workers.values()]):.2f} x the mean")


def _few(numbers: Sequence[int]) -> str:
    """Numbers as text, shortened.

    Examples
    --------
    >>> _few((0, 2)), _few(range(9))
    ('0, 2', '0, 1, 2, 3, ... (9)')
    """
    text = ", ".join(map(str, numbers[:4]))
    return text if len(numbers) <= 4 else f"{text}, ... ({len(numbers)})"
