"""``oocgraph diameter``: the largest distance of two vertices, or bounds of it."""

from __future__ import annotations

from typing import Any

import click

from oocgraph.commands.clusters import Place, client_options
from oocgraph.commands.common import (
    check_pages_option,
    emit,
    json_option,
    resources_options,
)
from oocgraph.commands.running import running


@click.command()
@click.argument("graph", metavar="GRAPH")
@click.option("--max-searches", type=int, help="Stop with bounds after so many searches.  [default: the diameter is found]")
@resources_options
@check_pages_option
@client_options
@json_option
def diameter(*, graph: str, check_pages: bool, resources: Any, place: Place, as_json: bool, max_searches: int | None) -> None:
    """Find the diameter of the undirected, connected graph store GRAPH, or bounds of it.

    It runs in this process, or on a Dask cluster (--cluster, --scheduler); --memory and --threads are then of each worker.
    """
    import oocgraph

    place.check()
    store = oocgraph.open_graph(graph, check_pages=check_pages)
    with running(resources, place) as run:
        result = oocgraph.diameter(store, max_searches=max_searches, resources=run.resources, progress=run.progress)
    emit(run.fields(result), as_json=as_json, title=repr(result))
