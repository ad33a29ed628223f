"""``oocgraph bench``: measurements; exit code 1 when a result is invalid."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import click

from oocgraph.commands.bench_analyses import (
    bench_analysis,
    bench_calls,
    bench_components,
    bench_pagerank,
    bench_schedule,
    bench_small,
    bench_where,
)
from oocgraph.commands.bench_gpu import bench_gpu
from oocgraph.commands.bench_imbalance import bench_imbalance
from oocgraph.commands.bench_options import (
    direction_option,
    folder_option,
    graph_argument,
    num_sources_option,
    peer_option,
    run_benchmark,
    seed_option,
)
from oocgraph.commands.bench_partition import bench_partition
from oocgraph.commands.bench_plan import bench_plan
from oocgraph.commands.bench_spmv import bench_spmv
from oocgraph.commands.bench_stores import bench_access, bench_append, bench_build, bench_load, bench_objects, bench_results
from oocgraph.commands.clusters import Place, place_options
from oocgraph.commands.common import WholeHelps, check_size, json_option, memory_option, threads_option

SCRATCH = "Folder for temporary files."


@click.group(cls=WholeHelps)
def bench() -> None:
    """Measure, beside a peer on the same graph."""


for command in (
    bench_access, bench_analysis, bench_append, bench_build, bench_calls, bench_components, bench_gpu, bench_imbalance, bench_load,
    bench_objects, bench_pagerank, bench_partition, bench_plan, bench_results, bench_schedule, bench_small, bench_spmv, bench_where,
):  # fmt: skip
    bench.add_command(command)


@bench.command("bfs")
@graph_argument
@num_sources_option()
@seed_option
@memory_option
@threads_option
@direction_option
@peer_option("Compare with scipy, networkit, igraph, graphblas, or gapbs:PATH (its bfs program).")
@click.option("--oracle", is_flag=True, help="Count the exact pages that either direction would have read.")
@folder_option("--scratch", SCRATCH)
@json_option
def bench_bfs(**options: Any) -> None:
    """Search GRAPH from random sources; every result is validated, one invalid result is exit code 1.

    ratio_to_peer is the median over the sources of our seconds by the peer's; both search the same sources in turn.
    """
    run_benchmark("bfs", show=_print_searches, **options)


@bench.command("cluster")
@graph_argument
@num_sources_option()
@seed_option
@click.option("--source", metavar="ID", help="Search from this vertex, --num-sources times, instead of from random ones.")
@place_options
@memory_option
@click.option("--in-process-memory", metavar="SIZE", callback=check_size, help="Memory of the one process.  [default: that of all workers]")
@direction_option
@click.option("--apart", is_flag=True, help="All on the cluster, then, when it is gone, all in process: the memory of both is never taken.")
@folder_option("--scratch", SCRATCH)
@json_option
def bench_cluster(*, place: Place, **options: Any) -> None:
    """Search GRAPH on a cluster (by default --cluster local) and in one process, with as many threads and the same planes.

    Every result is validated, one invalid result is exit code 1. Both search the same sources in turn, and ratios are per source;
    overhead is their difference in milliseconds, divided by the iterations. --memory is that of each worker. Workers must see --scratch.
    """
    if place.scheduler is None and place.cluster is None:
        place = replace(place, cluster="local")
    place.check()
    run_benchmark("cluster", show=_print_comparisons, open_client=place.client, num_partitions=place.partitions, **options)


_COLUMNS = {
    "source": "source",
    "num_reached": "reached",
    "depth": "depth",
    "num_steps": "exchanges",
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
"""Metrics of a search on a cluster and their columns: as many as fit in a line."""


def _print_comparisons(metrics: Mapping[str, Any]) -> None:
    """Print a table of workers and one of searches."""
    from oocgraph.commands.tables import print_table

    print_table({**one, "partitions": ", ".join(map(str, one["partitions"]))} for one in metrics["workers"])
    print_table({column: one[name] for name, column in _COLUMNS.items()} | _valid(one) for one in metrics["searches"])


def _print_searches(metrics: Mapping[str, Any]) -> None:
    from oocgraph.commands.tables import print_table

    names = ("source", "num_reached", "depth", "seconds", "teps", "bytes_read", "read_fraction")
    peers = [name for name in ("peer_seconds", "peer_degree_ordered_seconds") if metrics["searches"][0][name] is not None]
    print_table({name: one[name] for name in (*names, *peers)} | _valid(one) for one in metrics["searches"])


def _valid(search: Mapping[str, Any]) -> dict[str, str]:
    return {"valid": "yes" if search["valid"] else "NO"}
