"""``oocgraph bench load``: a graph into memory with an empty page cache, beside plain reads, and the searches that follow."""

from __future__ import annotations

from typing import Any

import click

from oocgraph.commands.bench_options import count_option, finish, graph_argument
from oocgraph.commands.common import json_option, memory_option, progress_bars


@click.command("load")
@graph_argument
@count_option("--num-rounds", default=5, text="Loads, and reads of either kind.")
@count_option("--searches", "num_searches", default=8, text="Searches after the first, from one vertex.")
@memory_option
@json_option
def bench_load(graph: str, *, as_json: bool, memory: str | None, **options: Any) -> None:
    """Load GRAPH into memory, its files dropped from the page cache, and search it.

    ratio_to_read is the load's seconds by those of two threads that read the same bytes into memory as large; ratio_to_pass by those of two
    that read them into a small buffer each. first_to_median_search is the first search by the median of those that follow.
    """
    from oocgraph.bench.load import bench_load as run
    from oocgraph.store.graph import open_graph

    store = open_graph(graph)
    with progress_bars() as progress:
        report = run(store, memory_budget=memory, progress=progress, **options)
    finish(report, as_json=as_json)
