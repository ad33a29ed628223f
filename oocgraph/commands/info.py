"""``oocgraph info``: what the root of a store says; reads metadata only."""

from __future__ import annotations

import click

from oocgraph.commands.common import emit, json_option


@click.command()
@click.argument("graph", metavar="GRAPH")
@json_option
def info(graph: str, *, as_json: bool) -> None:
    """Say what the graph store GRAPH (a folder or URL) holds."""
    from oocgraph.store.graph import open_graph

    store = open_graph(graph)
    fields = {"path": graph, **store.attributes.to_json(), "edge_bytes": store.edge_bytes, "arrays": store.array_names()}
    emit(fields, as_json=as_json, title=repr(store))
