"""``oocgraph bench``: algorithms beside a peer's, their schedules, and calls that take little time."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import click

from oocgraph.commands.bench_options import (
    count_option,
    folder_option,
    graph_argument,
    num_sources_option,
    peer_option,
    run_benchmark,
    seed_option,
)
from oocgraph.commands.common import json_option, memory_option, threads_option
from oocgraph.commands.pagerank import PRECISIONS

NAMES = (
    "betweenness",
    "biconnected-components",
    "coloring",
    "eigenvector",
    "hits",
    "label-propagation",
    "louvain",
    "scc",
    "spanning-forest",
    "triangles",
)


@click.command("analysis")
@click.argument("name", type=click.Choice(NAMES))
@graph_argument
@count_option("--num-rounds", default=5, text="Rounds: ours from the store, ours on an opened graph, then the peers.")
@memory_option
@threads_option
@peer_option("Compare with scipy, networkx, networkit or igraph, as far as they have it, or gapbs:PATH (its bc or tc program).")
@folder_option("--scratch", "Folder for a peer's graph.")
@json_option
def bench_analysis(**options: Any) -> None:
    """Time an analysis of GRAPH; where a peer counts something else than ours, or finds better communities, that is exit code 1.

    ratio_to_peer_1 is the median over the rounds of our seconds, from the store on and within --memory, by the peer's, which holds the
    graph in memory; resident_ratio_to_peer_1, without --memory, that of ours on an opened graph. read_fraction is what was read by all
    edge bytes. Of betweenness, seconds are of one source.
    """
    run_benchmark("analysis", **options)


@click.command("calls")
@count_option("--num-rounds", default=20, text="Calls of each function.")
@json_option
def bench_calls(**options: Any) -> None:
    """Call every function on a graph in memory of ten vertices, and convert 1,000 edges: milliseconds of each."""
    run_benchmark("calls", show=_print_calls, **options)


def _print_calls(metrics: Mapping[str, Any]) -> None:
    from oocgraph.commands.tables import print_table

    print_table(metrics["calls"])


@click.command("components")
@graph_argument
@count_option("--num-rounds", default=5, text="Rounds: ours, then the peer's.")
@memory_option
@threads_option
@peer_option("Compare with scipy, or gapbs:PATH (its cc program).")
@folder_option("--scratch", "Folder for a peer's graph.")
@json_option
def bench_components(**options: Any) -> None:
    """Time the connected components of GRAPH, from the store on; the result is validated; an invalid one is exit code 1.

    ratio_to_peer_1 is the median over the rounds of our seconds by the peer's, which holds the graph in memory; of GAPBS, peer 2 is on
    the degree-ordered graph. plane_bytes are read in order; list_fraction is what was read beside them, by all edge bytes.
    """
    run_benchmark("analysis", name="components", **options)


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
def bench_pagerank(**options: Any) -> None:
    """Time iterations of PageRank on GRAPH, without weights, the first left out: it brings edges into memory.

    ratio_to_peer_1 is the median over the rounds of our seconds by the peer's, for one iteration; of GAPBS, peer 2 is on the
    degree-ordered graph. With a budget that does not hold all edges, fraction_of_sequential is what the disk gave by what one
    sequential reader got.
    """
    run_benchmark("pagerank", **options)


@click.command("schedule")
@graph_argument
@num_sources_option()
@seed_option
@click.option(
    "--algorithm", "algorithms", multiple=True, type=click.Choice(["sssp", "core", "bfs", "worklist", "distribution"]),
    help="By default all that fit GRAPH, and work lists. distribution: how threads share a pull and a sort, by the size of a piece.",
)  # fmt: skip
@click.option(
    "--schedule", "schedules", multiple=True, type=click.Choice(["async", "buckets", "rounds"]), default=["async", "buckets"],
    show_default=True, help="Schedule of shortest paths; may be repeated.",
)  # fmt: skip
@click.option("--share", type=float, default=0.25, show_default=True, help="Share of the edge bytes that is held.")
@threads_option
@peer_option("Compare runs in memory with scipy, networkit, or gapbs:PATH (its sssp program; the best of five deltas).")
@folder_option("--scratch", "Folder for a peer's graph.")
@json_option
def bench_schedule(**options: Any) -> None:
    """Compare schedules on GRAPH: shortest paths where it has weights, core numbers, and searches where it is in locality order.

    read_fraction is bytes requested by the edge bytes, weights included, where the smallest budget and a share of the edges are
    held; seconds_by and bytes_by are medians of async by another schedule. Results must agree; an invalid one is exit code 1.
    """
    run_benchmark("schedule", **options)


@click.command("small")
@graph_argument
@count_option("--num-sources", "num_sources", default=64, text="Vertices, of at most 100 neighbours, whose surroundings are asked for.")
@count_option("--depth-limit", "depth_limit", default=2, text="Hops.")
@seed_option
@memory_option
@json_option
def bench_small(graph: str, *, memory: str | None, **options: Any) -> None:
    """Ask GRAPH, opened, for what is within a few hops of random vertices, and search tiny graphs in memory.

    Counted are the vertices that reach fewer than 10,000. ratio_to_large_levels is the time of a search that begins with a table of what it
    finds, by that of one that touches the state of all vertices (--direction alpha-beta), in turn.
    """
    from oocgraph.algorithms.runtimes import open_runtime
    from oocgraph.resources import Resources
    from oocgraph.store.graph import open_graph

    store = open_graph(graph)
    with open_runtime(store, resources=Resources(device="cpu", memory_budget=memory, client=False)) as runtime:
        run_benchmark("small", store=store, runtime=runtime, **options)


@click.command("where")
@graph_argument
@click.option("--where", metavar="CONDITION", required=True, help="Condition on edge columns, as of oocgraph bfs.")
@num_sources_option("--num-rounds")
@seed_option
@memory_option
@threads_option
@json_option
def bench_where(**options: Any) -> None:
    """Time searches of GRAPH by a condition on its edges, from the store on; the last is validated; an invalid one is exit code 1.

    In each round the whole graph is searched, the columns of the condition are read, and the graph is searched by the condition. ratio is
    the median of the time of the last by 1.5 times the first and the second; byte_ratio the same of bytes read.
    """
    run_benchmark("where", **options)
