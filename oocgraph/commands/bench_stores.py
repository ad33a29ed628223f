"""``oocgraph bench``: stores built, loaded, asked for neighbours and read from elsewhere, and what becomes of results."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import click

from oocgraph.commands.bench_options import (
    count_option,
    folder_option,
    graph_argument,
    num_sources_option,
    run_benchmark,
    scale_option,
    seed_option,
)
from oocgraph.commands.common import json_option, memory_option, threads_option
from oocgraph.commands.neighbors import fanout_option


@click.command("access")
@graph_argument
@count_option("--ids", "num_ids", default=10_000, text="Vertices whose neighbours are asked for.")
@count_option("--seeds", "num_seeds", default=1024, text="Vertices of a batch of samples.")
@fanout_option
@count_option("--rounds", "num_rounds", default=5, text="Batches, and measurements of random reads.")
@seed_option
@memory_option
@json_option
def bench_access(**options: Any) -> None:
    """Ask GRAPH for neighbours of random vertices and for samples of them, with an empty page cache.

    page_ratio is pages asked by pages that hold the answer. ratio_to_random_reads is what random reads of 4 KiB, measured in turn, would
    take for the pages of a batch (those of ids included; of edge_ratio_to_random_reads not), by what the batch takes.
    """
    run_benchmark("access", **options)


@click.command("append")
@click.argument("edges", metavar="[EDGES.parquet]", required=False)
@scale_option
@click.option("--percent", type=float, default=1.0, show_default=True, help="New edges, of all: the last ones of the list.")
@count_option("--num-rounds", default=3, text="Appends, and builds.")
@click.option("--directed", is_flag=True, help="Build directed graphs.")
@folder_option("--folder", "Folder for the stores, three at a time.  [default: the temporary directory]")
@memory_option
@threads_option
@json_option
def bench_append(**options: Any) -> None:
    """Append the last edges of a list to a store of the others, and build all of them again, in turn; stores that differ are exit code 1.

    ratio is the median of the time of an append by that of a build; cpu_ratio the same of processor time.
    """
    run_benchmark("append", **options)


@click.command("build")
@click.argument("sources", metavar="SOURCE...", nargs=-1, required=True)
@click.option(
    "--peer",
    "peers",
    metavar="NAME",
    multiple=True,
    default=("duckdb", "pyarrow"),
    show_default=True,
    help="Compare with duckdb, pyarrow (which only reads), gapbs:PATH (its bfs program; builds a Kronecker graph as large).",
)
@count_option("--num-rounds", default=3, text="Builds of each.")
@click.option("--in-memory", is_flag=True, help="Keep what is built in memory, also that of DuckDB.")
@memory_option
@threads_option
@folder_option("--scratch", "Folder for what is built.")
@json_option
def bench_build(**options: Any) -> None:
    """Build from each SOURCE, in turn with peers under the same limit of memory; other numbers of distinct ids are exit code 1.

    SOURCE is Parquet, or text of two columns without a header (.tsv, .csv, .el). ratio is the median over the rounds of our seconds by the
    peer's. Times begin when libraries are loaded; bytes are those of calls, whether cached or not.
    """
    run_benchmark("build", show=_print_builds, **options)


def _print_builds(metrics: Mapping[str, Any]) -> None:
    from oocgraph.commands.tables import print_table

    names = {"median_seconds": "seconds", "median_cpu_seconds": "cpu_seconds", "worst_peak_bytes": "peak_bytes"}
    names |= {"median_read_bytes": "read_bytes", "median_written_bytes": "written_bytes", "ratio": "ratio"}
    print_table(
        {"source": one["source"], "subject": one["subject"], **{column: one.get(name) for name, column in names.items()}}
        for one in metrics["builds"]
    )


@click.command("load")
@graph_argument
@count_option("--num-rounds", default=5, text="Loads, and reads of either kind.")
@count_option("--searches", "num_searches", default=8, text="Searches after the first, from one vertex.")
@memory_option
@json_option
def bench_load(**options: Any) -> None:
    """Load GRAPH into memory, its files dropped from the page cache, and search it.

    ratio_to_read is the load's seconds by those of two threads that read the same bytes into memory as large; ratio_to_pass by those of two
    that read them into a small buffer each. first_to_median_search is the first search by the median of those that follow.
    """
    run_benchmark("load", **options)


@click.command("objects")
@click.argument("url", metavar="URL")
@click.option("--delay", metavar="MS", type=click.FloatRange(min=0), default=30, show_default=True, help="Milliseconds added to a request.")
@num_sources_option("--num-rounds")
@seed_option
@memory_option
@threads_option
@json_option
def bench_objects(*, delay: float, **options: Any) -> None:
    """Time searches of the graph at URL from opening it on, and count requests; an invalid result is exit code 1.

    The setting oocgraph.storage-options names the server. Each round searches the graph, then reads the bytes of all edges by fsspec's
    cat_ranges; ratio is the median of the seconds of the first by those of the second.
    """
    run_benchmark("objects", delay_seconds=delay / 1000, **options)


@click.command("results")
@graph_argument
@count_option("--num-rounds", default=5, text="Times that each file is written.")
@folder_option("--folder", "Where files are written; by default where the system has temporary ones.")
@seed_option
@memory_option
@threads_option
@json_option
def bench_results(**options: Any) -> None:
    """Time how the result of a search of GRAPH becomes files and arrays, beside pyarrow, zarr and NumPy; different files are exit code 1.

    The peers have the table in memory; they write it with the same options and row groups. parquet_ratio, csv_ratio, zarr_ratio and
    parent_ratio are medians of our time by theirs in the same round.
    """
    run_benchmark("results", **options)
