"""``oocgraph bench build``: builds beside DuckDB's, GAPBS's, and reading alone."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import click

from oocgraph.commands.bench_options import count_option, finish, folder_option
from oocgraph.commands.common import json_option, memory_option, progress_bars, threads_option


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
def bench_build(sources: tuple[str, ...], *, as_json: bool, memory: str | None, **options: Any) -> None:
    """Build from each SOURCE, in turn with peers under the same limit of memory; other numbers of distinct ids are exit code 1.

    SOURCE is Parquet, or text of two columns without a header (.tsv, .csv, .el). ratio is the median over the rounds of our seconds by the
    peer's. Times begin when libraries are loaded; bytes are those of calls, whether cached or not.
    """
    from oocgraph.bench.build import bench_build as run

    with progress_bars() as progress:
        report = run(sources, memory_budget=memory, progress=progress, **options)
    finish(report, as_json=as_json, show=_print_builds)


def _print_builds(metrics: Mapping[str, Any]) -> None:
    from oocgraph.commands.tables import print_table

    names = {"median_seconds": "seconds", "median_cpu_seconds": "cpu_seconds", "worst_peak_bytes": "peak_bytes"}
    names |= {"median_read_bytes": "read_bytes", "median_written_bytes": "written_bytes", "ratio": "ratio"}
    print_table(
        {"source": one["source"], "subject": one["subject"], **{column: one.get(name) for name, column in names.items()}}
        for one in metrics["builds"]
    )
