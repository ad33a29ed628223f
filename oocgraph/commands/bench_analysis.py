"""``oocgraph bench analysis``: any analysis beside a peer's."""

from __future__ import annotations

from typing import Any

import click

from oocgraph.commands.bench_options import count_option, finish, folder_option, graph_argument, peer_option
from oocgraph.commands.common import json_option, memory_option, progress_bars, threads_option

NAMES = ("betweenness", "eigenvector", "hits", "label-propagation", "louvain", "scc", "spanning-forest", "triangles")


@click.command("analysis")
@click.argument("name", type=click.Choice(NAMES))
@graph_argument
@count_option("--num-rounds", default=5, text="Rounds: ours from the store, ours on an opened graph, then the peers.")
@memory_option
@threads_option
@peer_option("Compare with scipy, networkx, networkit or igraph, as far as they have it, or gapbs:PATH (its bc or tc program).")
@folder_option("--scratch", "Folder for a peer's graph.")
@json_option
def bench_analysis(name: str, graph: str, *, as_json: bool, memory: str | None, **options: Any) -> None:
    """Time an analysis of GRAPH; where a peer counts something else than ours, or finds better communities, that is exit code 1.

    ratio_to_peer_1 is the median over the rounds of our seconds, from the store on and within --memory, by the peer's, which holds the
    graph in memory; resident_ratio_to_peer_1, without --memory, that of ours on an opened graph. read_fraction is what was read by all
    edge bytes. Of betweenness, seconds are of one source.
    """
    from oocgraph.bench.analysis import bench_analysis as run
    from oocgraph.store.graph import open_graph

    store = open_graph(graph)
    with progress_bars() as progress:
        report = run(store, name, memory_budget=memory, progress=progress, **options)
    finish(report, as_json=as_json)
