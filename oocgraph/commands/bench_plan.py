"""``oocgraph bench plan``: predictions beside real searches."""

from __future__ import annotations

from typing import Any

import click

from oocgraph.commands.bench_options import count_option, graph_argument
from oocgraph.commands.common import emit, json_option, parse_numbers, progress_bars
from oocgraph.commands.tables import SHOWN_LEVELS, print_table


@click.command("plan")
@graph_argument
@click.option(
    "--workers", metavar="N,N,...", default="4,9,16", show_default=True, callback=parse_numbers, help="Numbers of parts in process."
)
@click.option("--source", metavar="ID", help="Vertex to start from.  [default: the one with most edges]")
@click.option("--timed/--not-timed", default=True, help="Also search with two worker processes, for the time.  [default: timed]")
@count_option("--num-searches", default=7, text="Timed searches; the median counts.")
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
    with progress_bars() as progress:
        report = run(store, source=start, progress=progress, **options)
    metrics = report.metrics
    if as_json:
        emit(metrics, as_json=True, title="")
        return
    emit({"source": metrics["source"]}, as_json=False, title=report.title, figures_asked=True)
    names = ("dimension", "num_workers", "bytes_ratio", "messages_ratio", "seconds_ratio")
    print_table({name: case[name] for name in names} for case in metrics["cases"])
    for case in metrics["cases"]:
        click.echo(f"{case['dimension']} with {case['num_workers']} parts")
        shown = case["iterations"][:SHOWN_LEVELS]
        print_table({name: value for name, value in one.items() if value is not None} for one in shown)
        if len(case["iterations"]) > len(shown):
            click.echo(f"  ... and {len(case['iterations']) - len(shown):,} more levels")
