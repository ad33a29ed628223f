"""``oocgraph bench access``: neighbours and samples of them, beside random reads of the same files."""

from __future__ import annotations

from typing import Any

import click

from oocgraph.commands.bench_options import count_option, finish, graph_argument, seed_option
from oocgraph.commands.common import json_option, memory_option, progress_bars
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
def bench_access(graph: str, *, as_json: bool, memory: str | None, **options: Any) -> None:
    """Ask GRAPH for neighbours of random vertices and for samples of them, with an empty page cache.

    page_ratio is pages asked by pages that hold the answer. ratio_to_random_reads is what random reads of 4 KiB, measured in turn, would
    take for the pages of a batch (those of ids included; of edge_ratio_to_random_reads not), by what the batch takes.
    """
    from oocgraph.bench.access import bench_access as run
    from oocgraph.store.graph import open_graph

    store = open_graph(graph)
    with progress_bars() as progress:
        report = run(store, memory_budget=memory, progress=progress, **options)
    finish(report, as_json=as_json)
