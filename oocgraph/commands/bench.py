"""``oocgraph bench``: measurements; exit code 1 when a result is invalid."""

from __future__ import annotations

from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any

import click

from oocgraph.commands.bench_gpu import bench_gpu
from oocgraph.commands.bench_pagerank import bench_pagerank
from oocgraph.commands.bench_partition import bench_partition
from oocgraph.commands.bench_plan import bench_plan
from oocgraph.commands.bench_spmv import bench_spmv
from oocgraph.commands.bfs import DIRECTIONS
from oocgraph.commands.clusters import Place, place_options
from oocgraph.commands.common import check_size, emit, json_option, memory_option, note, progress_bars, threads_option

if TYPE_CHECKING:
    from oocgraph.bench.cluster_report import ClusterReport
    from oocgraph.bench.run import BenchReport

EXIT_INVALID = 1

_num_sources = click.option(
    "--num-sources", type=click.IntRange(min=1), default=16, show_default=True, help="Sources to draw from vertices with edges."
)
_seed = click.option("--seed", type=int, default=1, show_default=True, help="The same seed draws the same sources.")
_direction = click.option(
    "--direction", type=click.Choice(DIRECTIONS), default="auto", show_default=True, help="Rule that chooses push or pull."
)
_scratch = click.option(
    "--scratch", metavar="DIR", type=click.Path(exists=True, file_okay=False, writable=True), help="Folder for temporary files."
)


@click.group()
def bench() -> None:
    """Measure, beside a peer on the same graph."""


bench.add_command(bench_gpu)
bench.add_command(bench_pagerank)
bench.add_command(bench_spmv)
bench.add_command(bench_partition)
bench.add_command(bench_plan)


@bench.command("bfs")
@click.argument("graph", metavar="GRAPH")
@_num_sources
@_seed
@memory_option
@threads_option
@_direction
@click.option("--peer", metavar="NAME", help="Compare with scipy, networkit, igraph, graphblas, or gapbs:PATH (its bfs program).")
@click.option("--oracle", is_flag=True, help="Count the exact pages that either direction would have read.")
@_scratch
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
    _exit_if_invalid([f"source {one.result['source']}: {one.invalid}" for one in report.searches if one.invalid is not None])


@bench.command("cluster")
@click.argument("graph", metavar="GRAPH")
@_num_sources
@_seed
@click.option("--source", metavar="ID", help="Search from this vertex, --num-sources times, instead of from random ones.")
@place_options
@memory_option
@click.option("--in-process-memory", metavar="SIZE", callback=check_size, help="Memory of the one process.  [default: that of all workers]")
@_direction
@click.option("--apart", is_flag=True, help="All on the cluster, then, when it is gone, all in process: the memory of both is never taken.")
@_scratch
@json_option
def bench_cluster(graph: str, *, place: Place, as_json: bool, memory: str | None, **options: Any) -> None:
    """Search GRAPH on a cluster (by default --cluster local) and in one process, with as many threads and the same planes.

    Every result is validated, one invalid result is exit code 1. Both search the same sources in turn, and ratios are per source;
    overhead is their difference in milliseconds, divided by the iterations. --memory is that of each worker. Workers must see --scratch.
    """
    from oocgraph.bench.cluster import bench_cluster as run
    from oocgraph.store.graph import open_graph

    if place.scheduler is None and place.cluster is None:
        place = replace(place, cluster="local")
    place.check()
    store = open_graph(graph)
    with progress_bars() as progress:
        report = run(store, open_client=place.client, num_partitions=place.partitions, memory_budget=memory, progress=progress, **options)
    emit(report.figures(), as_json=as_json, title=repr(store))
    if not as_json:
        _print_comparisons(report)
    _exit_if_invalid(report.invalid)


def _exit_if_invalid(rules: list[str]) -> None:
    """Tell of results that break a rule, and exit."""
    if rules:
        note(f"{len(rules)} results are invalid; the first: {rules[0]}")
        click.get_current_context().exit(EXIT_INVALID)


_COLUMNS = {
    "source": "source",
    "num_reached": "reached",
    "depth": "depth",
    "num_hops": "hops",
    "seconds": "seconds",
    "in_process_seconds": "process_seconds",
    "ratio": "ratio",
    "ms_per_iteration": "ms/level",
    "overhead_ms_per_iteration": "overhead_ms",
    "busy_imbalance": "imbalance",
    "bytes_read": "bytes_read",
    "sent_bytes": "sent_bytes",
}
"""Figures of a search on a cluster and their columns: as many as fit in a line."""


def _print_comparisons(report: ClusterReport) -> None:
    """Print a table of workers and one of searches."""
    from oocgraph.commands.tables import print_table

    print_table({**asdict(one), "partitions": ", ".join(map(str, one.partitions))} for one in report.workers)
    rows = [one.row() for one in report.searches]
    print_table({column: row[name] for name, column in _COLUMNS.items()} | {"valid": "yes" if row["valid"] else "NO"} for row in rows)


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
