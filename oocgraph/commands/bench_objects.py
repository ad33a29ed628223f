"""``oocgraph bench objects``: searches of a graph in an object store, each request delayed."""

from __future__ import annotations

from typing import Any

import click

from oocgraph.commands.bench_options import finish, num_sources_option, seed_option
from oocgraph.commands.common import json_option, memory_option, progress_bars, threads_option


@click.command("objects")
@click.argument("url", metavar="URL")
@click.option("--delay", metavar="MS", type=click.FloatRange(min=0), default=30, show_default=True, help="Milliseconds added to a request.")
@num_sources_option("--num-rounds")
@seed_option
@memory_option
@threads_option
@json_option
def bench_objects(url: str, *, delay: float, as_json: bool, memory: str | None, **options: Any) -> None:
    """Time searches of the graph at URL from opening it on, and count requests; an invalid result is exit code 1.

    The setting oocgraph.storage-options names the server. Each round searches the graph, then reads the bytes of all edges by fsspec's
    cat_ranges; ratio is the median of the seconds of the first by those of the second.
    """
    from oocgraph.bench.objects import bench_objects as run

    with progress_bars() as progress:
        report = run(url, delay_seconds=delay / 1000, memory_budget=memory, progress=progress, **options)
    finish(report, as_json=as_json)
