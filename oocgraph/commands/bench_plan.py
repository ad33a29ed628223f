"""``oocgraph bench plan``: predictions beside real searches."""

from __future__ import annotations

from typing import Any

import click

from oocgraph.commands.common import emit, json_option, progress_bars, tell_cold_kernels
from oocgraph.commands.plan import check_workers
from oocgraph.commands.tables import SHOWN_LEVELS, print_table


@click.command("plan")
@click.argument("graph", metavar="GRAPH")
@click.option(
    "--workers", metavar="N,N,...", default="4,9,16", show_default=True, callback=check_workers, help="Numbers of members in process."
)
@click.option("--source", metavar="ID", help="Vertex to start from.  [default: the one with most edges]")
@click.option("--timed/--not-timed", default=True, help="Also search with two worker processes, for the time.  [default: timed]")
@click.option("--num-searches", type=click.IntRange(min=1), default=7, show_default=True, help="Timed searches; the median counts.")
@json_option
def bench_plan(graph: str, *, as_json: bool, source: str | None, **options: Any) -> None:
    """Compare what `oocgraph plan` predicts for GRAPH with what real searches send, and how long two workers take.

    Every ratio is predicted by measured. Constants of time are measured on the same two workers, in turn with the searches.
    """
    from oocgraph.bench.plan import bench_plan as run
    from oocgraph.store.graph import open_graph
    from oocgraph.store.vertices import VertexIds

    store = open_graph(graph)
    start = None if source is None else VertexIds(store).parse([source]).tolist()[0]
    tell_cold_kernels("forecast")
    with progress_bars() as progress:
        report = run(store, source=start, progress=progress, **options)
    if as_json:
        emit(report.figures(), as_json=True, title="")
        return
    emit({"source": report.source}, as_json=False, title=repr(store))
    names = ("dimension", "num_workers", "bytes_ratio", "messages_ratio", "seconds_ratio")
    print_table({name: getattr(case, name) for name in names} for case in report.cases)
    for case in report.cases:
        click.echo(f"{case.dimension} with {case.num_workers} members")
        shown = case.iterations[:SHOWN_LEVELS]
        fields = [name for name in shown[0].__slots__ if getattr(shown[0], name) is not None] if shown else []
        print_table({name: getattr(one, name) for name in fields} for one in shown)
        if len(case.iterations) > len(shown):
            click.echo(f"  ... and {len(case.iterations) - len(shown):,} more levels")
