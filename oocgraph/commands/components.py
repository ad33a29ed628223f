"""``oocgraph components``: find the connected components, write the component of every vertex."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import click

from oocgraph.commands.clusters import Place, client_options
from oocgraph.commands.common import (
    check_pages_option,
    check_result_path,
    resources_options,
    where_option,
)
from oocgraph.commands.running import result_options, running, validate_option
from oocgraph.commands.values import emit_groups, top_option

if TYPE_CHECKING:
    from oocgraph.resources import Resources


@click.command()
@click.argument("graph", metavar="GRAPH")
@where_option
@resources_options
@check_pages_option
@client_options
@top_option(0)
@validate_option
@result_options("vertices and components")
def components(
    graph: str, *, where: str | None,
    resources: Resources, place: Place, num_top: int, out: str | None, overwrite: bool, validate: bool, check_pages: bool, as_json: bool,
) -> None:  # fmt: skip
    """Find the connected components of the graph store GRAPH; of a directed graph, the weakly connected ones.

    Each component is named after its vertex with the smallest id; a vertex without edges is a component of its own.

    It runs in this process, or on a Dask cluster (--cluster, --scheduler); --memory and --threads are then of each worker.

    Shown are the components of each size, the largest with --top, then metrics; with --quiet, none of it.

    Metrics: plane_bytes is what was read of the vertices' first neighbours, bytes_requested that and the lists of vertices outside of the
    largest component; bytes_read is the larger of the bytes requested and the device bytes of this process. On a cluster, exchange says
    whether workers linked in one forest, in memory that they share, or sent each other theirs, and why.
    """
    from oocgraph.algorithms.components import find_components
    from oocgraph.algorithms.search_options import on_processor
    from oocgraph.results.histogram import sizes_bytes
    from oocgraph.store.graph import open_graph
    from oocgraph.store.views import view_of
    from oocgraph.verify_results import components_bytes, verify_components

    place.check()
    store = view_of(open_graph(graph, check_pages=check_pages), where=where)
    check_result_path(out, overwrite=overwrite)
    with running(resources, place) as run:
        following = max(sizes_bytes(store.num_rows), components_bytes(store) if validate else 0)
        there = on_processor(run.resources, {"where": where})
        result = find_components(store, there, progress=run.progress, following_bytes=following)
        run.finish(result, out, overwrite=overwrite, verify=partial(verify_components, store.stored) if validate else None)
        best = result.top(num_top)
    emit_groups(result, run.fields(result), best, as_json=as_json)
