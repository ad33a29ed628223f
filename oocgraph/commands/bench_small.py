"""``oocgraph bench small``: the surroundings of random vertices, and searches of tiny graphs."""

from __future__ import annotations

from typing import Any

import click

from oocgraph.commands.bench_options import count_option, finish, graph_argument, seed_option
from oocgraph.commands.common import json_option, memory_option, progress_bars


@click.command("small")
@graph_argument
@count_option("--num-sources", "num_sources", default=64, text="Vertices, of at most 100 neighbours, whose surroundings are asked for.")
@count_option("--depth-limit", "depth_limit", default=2, text="Hops.")
@seed_option
@memory_option
@json_option
def bench_small(graph: str, *, as_json: bool, memory: str | None, **options: Any) -> None:
    """Ask GRAPH, opened, for what is within a few hops of random vertices, and search tiny graphs in memory.

    Counted are the vertices that reach fewer than 10,000. ratio_to_large_levels is the time of a search that begins with a table of what it
    finds, by that of one that touches the state of all vertices (--direction alpha-beta), in turn.
    """
    from oocgraph.algorithms.runtimes import open_runtime
    from oocgraph.bench.small import bench_small as run
    from oocgraph.resources import Resources
    from oocgraph.store.graph import open_graph

    store = open_graph(graph)
    with progress_bars() as progress, open_runtime(store, resources=Resources(device="cpu", memory_budget=memory, client=False)) as runtime:
        report = run(store, runtime, progress=progress, **options)
    finish(report, as_json=as_json)
