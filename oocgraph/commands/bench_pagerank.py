"""``oocgraph bench pagerank``: iterations beside a peer's, and beside the disk."""

from __future__ import annotations

from typing import Any

import click

from oocgraph.commands.common import emit, json_option, memory_option, progress_bars, tell_cold_kernels, threads_option
from oocgraph.commands.pagerank import PRECISIONS


@click.command("pagerank")
@click.argument("graph", metavar="GRAPH")
@click.option("--num-iterations", type=click.IntRange(min=1), default=20, show_default=True, help="Iterations of a round.")
@click.option("--num-rounds", type=click.IntRange(min=1), default=3, show_default=True, help="Rounds: ours, then the peer's.")
@memory_option
@threads_option
@click.option("--precision", type=click.Choice(PRECISIONS), default="auto", show_default=True, help="Of what is gathered along edges.")
@click.option("--peer", metavar="NAME", help="Compare with scipy, networkx, or gapbs:PATH (its pr program).")
@click.option("--scratch", metavar="DIR", type=click.Path(exists=True, file_okay=False, writable=True), help="Folder for a peer's graph.")
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
    tell_cold_kernels("pagerank")
    with progress_bars() as progress:
        report = run(store, memory_budget=memory, progress=progress, **options)
    emit(report.figures(), as_json=as_json, title=repr(report.result))
