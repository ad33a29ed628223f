"""``oocgraph path``: a shortest path from one vertex to another."""

from __future__ import annotations

from time import perf_counter
from typing import TYPE_CHECKING

import click

from oocgraph.commands.common import (
    check_pages_option,
    emit,
    json_option,
    progress_bars,
    resources_options,
    where_option,
)

if TYPE_CHECKING:
    from oocgraph.resources import Resources


@click.command()
@click.argument("graph", metavar="GRAPH")
@click.argument("source", metavar="FROM")
@click.argument("target", metavar="TO")
@click.option("--weight", metavar="NAME", help="Edge column of the weights, 0 or more.  [default: a path is as long as it has edges]")
@where_option
@resources_options
@check_pages_option
@json_option
def path(
    graph: str, source: str, target: str, *, weight: str | None, where: str | None, resources: Resources, check_pages: bool, as_json: bool
) -> None:  # fmt: skip
    """Find a shortest path of the graph store GRAPH from the vertex FROM to the vertex TO; of a directed graph, along the edges."""
    from oocgraph.algorithms.shortest_path import shortest_path
    from oocgraph.store.graph import open_graph
    from oocgraph.store.vertices import VertexIds

    store = open_graph(graph, check_pages=check_pages)
    ends = VertexIds(store).parse([source, target]).tolist()
    began = perf_counter()
    with progress_bars() as progress:
        found = shortest_path(store, *ends, weight=weight, where=where, resources=resources, progress=progress)
    fields = {"num_edges": len(found) - 1, "seconds": perf_counter() - began, "path": found}
    emit(fields, as_json=as_json, title=" -> ".join(map(str, found)))
