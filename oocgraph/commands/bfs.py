"""``oocgraph bfs``: load once, search, write the result, validate; each timed and measured apart."""

from __future__ import annotations

from dataclasses import replace
from time import perf_counter
from typing import TYPE_CHECKING, Any

import click

from oocgraph.commands.clusters import Place, cluster_options
from oocgraph.commands.common import (
    check_pages_option,
    check_result_path,
    device_resources_options,
    emit,
    is_quiet,
    where_option,
)
from oocgraph.commands.running import result_options, running
from oocgraph.commands.tables import SHOWN_BINS, print_histogram, print_levels

if TYPE_CHECKING:
    from oocgraph.resources import Resources

DIRECTIONS = ["auto", "push", "pull", "half", "alpha-beta", "gemini"]


@click.command()
@click.argument("graph", metavar="GRAPH")
@click.option("--source", "sources", metavar="ID", multiple=True, required=True, help="Vertex to start from; repeat for a set.")
@click.option(
    "--target", "targets", metavar="ID", multiple=True, help="Stop at the level at which it is found; repeat for several; in this process."
)
@where_option
@click.option("--reverse", is_flag=True, help="Follow edges from their targets to their sources; in this process.")
@device_resources_options
@click.option("--direction", type=click.Choice(DIRECTIONS), default="auto", show_default=True, help="Rule that chooses push or pull.")
@click.option("--depth-limit", type=click.IntRange(min=0), help="Maximum depth.  [default: none]")
@click.option("--partition", metavar="1d|2d|DIR", help="Search over partitions that exchange messages: made now, or by oocgraph partition.")
@check_pages_option
@click.option("--validate", is_flag=True, help="Validate the result by Graph500's rules; an invalid one is an error.")
@cluster_options
@result_options("vertices, level and parent")
def bfs(
    graph: str,
    sources: tuple[str, ...],
    targets: tuple[str, ...],
    *,
    place: Place,
    resources: Resources,
    check_pages: bool,
    out: str | None,
    overwrite: bool,
    validate: bool,
    as_json: bool,
    **options: Any,
) -> None:
    """Search the graph store GRAPH breadth-first; several --source make one search from the set.

    The search runs in this process, on a GPU where that pays (--device), or on a Dask cluster (--cluster, --scheduler); --memory,
    --device-memory and --threads are then those of each worker. With --partition it is top-down, over --partitions parts of the edges
    whose parts tell each other what they find; making them is the setup.

    Shown are the vertices of each level, then metrics; with --quiet, neither.

    Metrics: load and validation are apart from the search. bytes_read is the larger of the bytes requested and the device bytes of this
    process during the search; peak_host_bytes covers load, search and writing the result, not the validation.
    """
    from oocgraph.algorithms.bfs import bfs as search
    from oocgraph.store.graph import open_graph
    from oocgraph.store.vertices import VertexIds
    from oocgraph.verify import verify_bfs

    place.check(in_process=("--partitions",) if options["partition"] is not None else ())
    store = open_graph(graph, check_pages=check_pages)
    check_result_path(out, overwrite=overwrite)
    ids = VertexIds(store)
    source_ids = ids.parse(list(sources)).tolist()
    ids.vertices_of(source_ids)  # before the load: a wrong id is reported at once
    source = source_ids[0] if len(source_ids) == 1 else source_ids
    with running(resources, place) as run:
        there = replace(run.resources, num_partitions=place.partitions)
        target = ids.parse(list(targets)).tolist() if targets else None
        result = search(store, source, target=target, resources=there, progress=run.progress, **place.result_options(), **options)
        run.finish(result, out, overwrite=overwrite)
    fields = {**result.summary(), **run.figures()}
    if validate:
        start = perf_counter()
        verify_bfs(store, result, memory_budget=run.verification_budget)
        fields |= {"valid": True, "validation_seconds": perf_counter() - start}
    if as_json:
        fields["vertices_per_level"] = result.vertices_per_level().tolist()
    emit(fields, as_json=as_json, title=repr(result), answer=lambda: print_histogram(result.histogram(SHOWN_BINS)))
    if not (as_json or is_quiet()):
        print_levels(result.iterations)
