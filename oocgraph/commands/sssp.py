"""``oocgraph sssp``: shortest paths from a vertex, or the nearest of several, the distance and the parent of every vertex."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import click

from oocgraph.commands.clusters import Place, client_options
from oocgraph.commands.common import (
    check_pages_option,
    check_result_path,
    device_resources_options,
    emit,
    where_option,
)
from oocgraph.commands.running import result_options, running, validate_option
from oocgraph.commands.tables import SHOWN_BINS, print_histogram

if TYPE_CHECKING:
    from oocgraph.resources import Resources


@click.command()
@click.argument("graph", metavar="GRAPH")
@click.option(
    "--source", "sources", metavar="ID", multiple=True, required=True, help="Vertex to begin at; repeat for the nearest of several."
)
@click.option("--target", metavar="ID", help="Find only vertices that are not farther away than this one.")
@where_option
@click.option("--reverse", is_flag=True, help="Follow edges from their targets to their sources; in this process.")
@click.option("--distance-limit", type=float, help="Find only vertices up to this distance.")
@click.option("--weight", metavar="NAME", help="Edge column of the weights, 0 or more.  [default: the graph's weight]")
@click.option(
    "--schedule",
    type=click.Choice(["auto", "async", "buckets", "rounds"]),
    default="auto",
    show_default=True,
    help="auto, async: blocks of edges by priority; buckets: delta-stepping; rounds: Bellman-Ford.",
)
@click.option("--delta", type=float, help="Width of a bucket, as a distance.  [default: by weights and degrees]")
@device_resources_options
@check_pages_option
@client_options
@validate_option
@result_options("vertices, distances and parents")
def sssp(
    graph: str, *, sources: tuple[str, ...], target: str | None, where: str | None, reverse: bool,
    distance_limit: float | None, weight: str | None, schedule: str, delta: float | None,
    resources: Resources, place: Place, out: str | None, overwrite: bool, validate: bool, check_pages: bool, as_json: bool,
) -> None:  # fmt: skip
    """Find the shortest paths from a vertex of the graph store GRAPH to all others; of a directed graph, along the edges.

    With several --source, the paths are those from the nearest.

    It runs in this process, on a GPU of it (--device), or on a Dask cluster (--cluster, --scheduler); --memory and --threads are then of
    each worker.

    Shown are the vertices at each distance, then metrics; with --quiet, neither.

    Metrics: num_relaxed counts the edges followed, num_again those of vertices that had been followed before with a larger distance;
    num_blocks_read the blocks of edges read, of num_blocks. bytes_read is the larger of the bytes requested and the device bytes of this
    process.
    """
    from oocgraph.algorithms.search_options import on_processor
    from oocgraph.algorithms.sssp import Task, check_on_workers, checked_task, find_paths
    from oocgraph.store.graph import open_graph
    from oocgraph.store.vertices import VertexIds
    from oocgraph.store.views import view_of
    from oocgraph.verify_results import paths_bytes, verify_sssp

    place.check()
    if place.is_cluster:
        check_on_workers(resources)
    store = view_of(open_graph(graph, check_pages=check_pages), where=where, reverse=reverse)
    check_result_path(out, overwrite=overwrite)
    source_ids = VertexIds(store.stored).parse(list(sources)).tolist()
    task = Task(source_ids[0] if len(source_ids) == 1 else source_ids, weight, schedule, delta, target, distance_limit)
    column = checked_task(store, task, is_on_cluster=place.is_cluster)
    with running(resources, place) as run:
        following = paths_bytes(store, column) if validate else 0
        there = on_processor(run.resources, {"where": where, "reverse": store.reverse})
        result = find_paths(store, task, there, progress=run.progress, following_bytes=following)
        run.finish(result, out, overwrite=overwrite, verify=partial(verify_sssp, store.stored) if validate else None)
    emit(run.fields(result), as_json=as_json, title=repr(result), answer=lambda: print_histogram(result.histogram(SHOWN_BINS)))
