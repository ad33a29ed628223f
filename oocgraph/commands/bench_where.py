"""``oocgraph bench where``: searches by a condition beside those of the whole graph."""

from __future__ import annotations

from typing import Any

import click

from oocgraph.commands.bench_options import finish, graph_argument, num_sources_option, seed_option
from oocgraph.commands.common import json_option, memory_option, progress_bars, threads_option


@click.command("where")
@graph_argument
@click.option("--where", metavar="CONDITION", required=True, help="Condition on edge columns, as of oocgraph bfs.")
@num_sources_option("--num-rounds")
@seed_option
@memory_option
@threads_option
@json_option
def bench_where(graph: str, *, where: str, as_json: bool, memory: str | None, **options: Any) -> None:
    """Time searches of GRAPH by a condition on its edges, from the store on; the last is validated; an invalid one is exit code 1.

    In each round the whole graph is searched, the columns of the condition are read, and the graph is searched by the condition. ratio is
    the median of the time of the last by 1.5 times the first and the second; byte_ratio the same of bytes read.
    """
    from oocgraph.bench.where import bench_where as run
    from oocgraph.store.graph import open_graph

    store = open_graph(graph)
    with progress_bars() as progress:
        report = run(store, where, memory_budget=memory, progress=progress, **options)
    finish(report, as_json=as_json)
