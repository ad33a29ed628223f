"""``oocgraph info``: what the root of a store, or of partitions, says; reads metadata only."""

from __future__ import annotations

import click

from oocgraph.commands.common import emit, graph_fields, json_option


@click.command()
@click.argument("graph", metavar="GRAPH|PARTITIONS")
@json_option
def info(graph: str, *, as_json: bool) -> None:
    """Show what a graph store (a folder or URL), or what `oocgraph partition` wrote, holds."""
    from dataclasses import asdict

    from oocgraph.partition.report import report_of
    from oocgraph.store.graph import open_graph
    from oocgraph.store.partitions import is_partitions, open_partitions

    if is_partitions(graph):
        partitions = open_partitions(graph)
        fields = {"path": graph, **partitions.attributes.to_json(), **asdict(report_of(partitions))}
        emit(fields, as_json=as_json, title=repr(partitions), figures_asked=True)
        return
    store = open_graph(graph)
    fields = {**graph_fields(graph, store), "arrays": store.array_names()}
    emit(fields, as_json=as_json, title=repr(store), figures_asked=True)
