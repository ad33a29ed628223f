"""``oocgraph bench schedule``: schedules of blocks of edges, in memory and with a share of the edges."""

from __future__ import annotations

from typing import Any

import click

from oocgraph.commands.bench_options import finish, folder_option, graph_argument, num_sources_option, peer_option, seed_option
from oocgraph.commands.common import json_option, progress_bars, threads_option


@click.command("schedule")
@graph_argument
@num_sources_option()
@seed_option
@click.option(
    "--algorithm", "algorithms", multiple=True, type=click.Choice(["sssp", "core", "bfs", "worklist", "distribution"]),
    help="By default all that fit GRAPH, and work lists. distribution: how threads share a pull and a sort, by the size of a piece.",
)  # fmt: skip
@click.option(
    "--schedule", "schedules", multiple=True, type=click.Choice(["async", "buckets", "rounds"]), default=["async", "buckets"],
    show_default=True, help="Schedule of shortest paths; may be repeated.",
)  # fmt: skip
@click.option("--share", type=float, default=0.25, show_default=True, help="Share of the edge bytes that is held.")
@threads_option
@peer_option("Compare runs in memory with scipy, networkit, or gapbs:PATH (its sssp program; the best of five deltas).")
@folder_option("--scratch", "Folder for a peer's graph.")
@json_option
def bench_schedule(graph: str, *, as_json: bool, **options: Any) -> None:
    """Compare schedules on GRAPH: shortest paths where it has weights, core numbers, and searches where it is in locality order.

    read_fraction is bytes requested by the edge bytes, weights included, where the smallest budget and a share of the edges are
    held; seconds_by and bytes_by are medians of async by another schedule. Results must agree; an invalid one is exit code 1.
    """
    from oocgraph.bench.schedule import bench_schedule as run
    from oocgraph.store.graph import open_graph

    store = open_graph(graph)
    with progress_bars() as progress:
        report = run(store, progress=progress, **options)
    finish(report, as_json=as_json)
