"""``oocgraph bench pagerank``: iterations beside a peer's, and beside the disk."""

from __future__ import annotations

from typing import Any

import click

from oocgraph.commands.bench_options import count_option, finish, folder_option, graph_argument, peer_option
from oocgraph.commands.common import json_option, memory_option, progress_bars, threads_option
from oocgraph.commands.pagerank import PRECISIONS


@click.command("pagerank")
@graph_argument
@count_option("--num-iterations", default=20, text="Iterations of a round.")
@count_option("--num-rounds", default=3, text="Rounds: ours, then the peer's.")
@memory_option
@threads_option
@click.option("--precision", type=click.Choice(PRECISIONS), default="auto", show_default=True, help="Precision of ranks along edges.")
@peer_option("Compare with scipy, networkx, or gapbs:PATH (its pr program).")
@folder_option("--scratch", "Folder for a peer's graph.")
@json_option
def bench_pagerank(graph: str, *, as_json: bool, memory: str | None, **options: Any) -> None:
    """Time iterations of PageRank on GRAPH, without weights, the first left out: it brings edges into memory.

    ratio_to_peer_1 is the median over the rounds of our seconds by the peer's, for one iteration; of GAPBS, peer 2 is on the
    degree-ordered graph. With a budget that does not hold all edges, fraction_of_sequential is what the disk gave by what one
    sequential reader got.
    """
    from oocgraph.bench.pagerank import bench_pagerank as run
    from oocgraph.store.graph import open_graph

    store = open_graph(graph)
    with progress_bars() as progress:
        report = run(store, memory_budget=memory, progress=progress, **options)
    finish(report, as_json=as_json)
