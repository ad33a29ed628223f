"""``oocgraph bench``: measurements; exit code 1 when a result is invalid."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from oocgraph.commands.bfs import DIRECTIONS
from oocgraph.commands.common import emit, json_option, memory_option, note, progress_bars, threads_option

if TYPE_CHECKING:
    from oocgraph.bench.run import BenchReport

EXIT_INVALID = 1


@click.group()
def bench() -> None:
    """Measure, beside a peer on the same graph."""


@bench.command("bfs")
@click.argument("graph", metavar="GRAPH")
@click.option("--num-sources", type=click.IntRange(min=1), default=16, show_default=True, help="Sources to draw from vertices with edges.")
@click.option("--seed", type=int, default=1, show_default=True, help="The same seed draws the same sources.")
@memory_option
@threads_option
@click.option("--direction", type=click.Choice(DIRECTIONS), default="auto", show_default=True, help="Rule that chooses push or pull.")
@click.option("--peer", metavar="NAME", help="Compare with scipy, networkit, igraph, graphblas, or gapbs:PATH (its bfs program).")
@click.option("--oracle", is_flag=True, help="Count the exact pages that either direction would have read.")
@click.option("--scratch", metavar="DIR", type=click.Path(exists=True, file_okay=False, writable=True), help="Folder for temporary files.")
@json_option
def bench_bfs(graph: str, *, as_json: bool, memory: str | None, **options: Any) -> None:
    """Search GRAPH from random sources; every result is validated, one invalid result is exit code 1.

    ratio_to_peer is the median over the sources of our seconds by the peer's; both search the same sources in turn.
    """
    from oocgraph.bench.run import bench_bfs as run
    from oocgraph.store.graph import open_graph

    store = open_graph(graph)
    with progress_bars() as progress:
        report = run(store, memory_budget=memory, progress=progress, **options)
    emit(report.figures(), as_json=as_json, title=repr(store))
    if not as_json:
        _print_searches(report)
    if report.num_invalid:
        note(f"{report.num_invalid} of {len(report.searches)} results are invalid; the first: {_first_invalid(report)}")
        click.get_current_context().exit(EXIT_INVALID)


def _first_invalid(report: BenchReport) -> str:
    return next(f"source {one.result['source']}: {one.invalid}" for one in report.searches if one.invalid is not None)


def _print_searches(report: BenchReport) -> None:
    from oocgraph.commands.tables import print_table

    names = ("source", "num_reached", "depth", "seconds", "teps", "bytes_read", "read_fraction")
    rows = []
    for one in report.searches:
        row: dict[str, Any] = {name: one.result[name] for name in names}
        if one.peer_seconds is not None:
            row["peer_seconds"] = one.peer_seconds
        if one.peer_degree_ordered_seconds is not None:
            row["peer_degree_ordered_seconds"] = one.peer_degree_ordered_seconds
        rows.append({**row, "valid": "yes" if one.invalid is None else "NO"})
    print_table(rows)
