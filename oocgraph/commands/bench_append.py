"""``oocgraph bench append``: edges appended to a store, beside a build of all edges."""

from __future__ import annotations

from typing import Any

import click

from oocgraph.commands.bench_options import count_option, finish, folder_option, scale_option
from oocgraph.commands.common import json_option, memory_option, progress_bars, threads_option


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
def bench_append(edges: str | None, *, as_json: bool, memory: str | None, **options: Any) -> None:
    """Append the last edges of a list to a store of the others, and build all of them again, in turn; stores that differ are exit code 1.

    ratio is the median of the time of an append by that of a build; cpu_ratio the same of processor time.
    """
    from oocgraph.bench.append import bench_append as run

    with progress_bars() as progress:
        report = run(edges, memory_budget=memory, progress=progress, **options)
    finish(report, as_json=as_json)
