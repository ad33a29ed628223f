"""``oocgraph bench components``: connected components beside a peer's."""

from __future__ import annotations

from typing import Any

import click

from oocgraph.commands.bench_options import count_option, finish, folder_option, graph_argument, peer_option
from oocgraph.commands.common import json_option, memory_option, progress_bars, threads_option


@click.command("components")
@graph_argument
@count_option("--num-rounds", default=5, text="Rounds: ours, then the peer's.")
@memory_option
@threads_option
@peer_option("Compare with scipy, or gapbs:PATH (its cc program).")
@folder_option("--scratch", "Folder for a peer's graph.")
@json_option
def bench_components(graph: str, *, as_json: bool, memory: str | None, **options: Any) -> None:
    """Time the connected components of GRAPH, from the store on; the result is validated; an invalid one is exit code 1.

    ratio_to_peer_1 is the median over the rounds of our seconds by the peer's, which holds the graph in memory; of GAPBS, peer 2 is on
    the degree-ordered graph. plane_bytes are read in order; list_fraction is what was read beside them, by all edge bytes.
    """
    from oocgraph.bench.components import bench_components as run
    from oocgraph.store.graph import open_graph

    store = open_graph(graph)
    with progress_bars() as progress:
        report = run(store, memory_budget=memory, progress=progress, **options)
    finish(report, as_json=as_json)
