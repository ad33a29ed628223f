"""``oocgraph bench results``: writing results beside the libraries that write such files."""

from __future__ import annotations

from typing import Any

import click

from oocgraph.commands.bench_options import count_option, finish, folder_option, graph_argument, seed_option
from oocgraph.commands.common import json_option, memory_option, progress_bars, threads_option


@click.command("results")
@graph_argument
@count_option("--num-rounds", default=5, text="Times that each file is written.")
@folder_option("--folder", "Where files are written; by default where the system has temporary ones.")
@seed_option
@memory_option
@threads_option
@json_option
def bench_results(graph: str, *, as_json: bool, memory: str | None, **options: Any) -> None:
    """Time how the result of a search of GRAPH becomes files and arrays, beside pyarrow, zarr and NumPy; different files are exit code 1.

    The peers have the table in memory; they write it with the same options and row groups. parquet_ratio, csv_ratio, zarr_ratio and
    parent_ratio are medians of our time by theirs in the same round.
    """
    from oocgraph.bench.results import bench_results as run
    from oocgraph.store.graph import open_graph

    with progress_bars() as progress:
        report = run(open_graph(graph), memory_budget=memory, progress=progress, **options)
    finish(report, as_json=as_json)
