"""``oocgraph check``: every stored page against its checksum, and the structure of the arrays."""

from __future__ import annotations

import click

from oocgraph.commands.common import emit, json_option, progress_bars, threads_option


@click.command()
@click.argument("graph", metavar="GRAPH")
@threads_option
@json_option
def check(graph: str, *, threads: int | None, as_json: bool) -> None:
    """Check the structure and checksums of the graph store GRAPH; a bad page is named."""
    from dataclasses import asdict

    from oocgraph.store.check import check_store
    from oocgraph.store.graph import open_graph

    store = open_graph(graph)
    with progress_bars() as progress:
        report = check_store(store, threads=threads, progress=progress)
    emit({"path": graph, "valid": True, **asdict(report)}, as_json=as_json, title=f"{graph}: sound")
