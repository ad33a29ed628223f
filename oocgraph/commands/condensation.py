"""``oocgraph condensation``: the graph of the strongly connected components."""

from __future__ import annotations

from time import perf_counter
from typing import TYPE_CHECKING

import click

from oocgraph.commands.common import (
    check_pages_option,
    emit,
    graph_fields,
    json_option,
    overwrite_option,
    resources_options,
)
from oocgraph.commands.running import running

if TYPE_CHECKING:
    from oocgraph.resources import Resources


@click.command()
@click.argument("graph", metavar="GRAPH")
@click.argument("out", metavar="OUT.zarr")
@resources_options
@check_pages_option
@overwrite_option
@json_option
def condensation(graph: str, out: str, *, resources: Resources, check_pages: bool, overwrite: bool, as_json: bool) -> None:
    """Build OUT.zarr, the graph of the strongly connected components of the directed graph store GRAPH.

    Its vertices are the smallest ids of the components, its edges lead from one component to another; it has no cycles and no weights.
    """
    import oocgraph

    store, began = oocgraph.open_graph(graph, check_pages=check_pages), perf_counter()
    with running(resources) as run:
        made = oocgraph.condensation(store, out, overwrite=overwrite, resources=run.resources, progress=run.progress)
    fields = {
        **graph_fields(out, made), "seconds": perf_counter() - began, **run.figures(), "memory_budget": resources.limit_bytes,
    }  # fmt: skip
    emit(fields, as_json=as_json, title=f"{out}: condensation of {graph}")
