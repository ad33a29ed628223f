"""``oocgraph check``: every stored page against its checksum, and the structure of the arrays; partitions against their graph."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from oocgraph.commands.common import emit, json_option, progress_bars, resources_options

if TYPE_CHECKING:
    from oocgraph.resources import Resources
    from oocgraph.store.partitions import Partitions
    from oocgraph.types import Progress


@click.command()
@click.argument("graph", metavar="GRAPH|PARTITIONS")
@click.option("--of", "whole", metavar="GRAPH", help="The graph that was partitioned.  [default: where it was then]")
@resources_options
@json_option
def check(graph: str, *, whole: str | None, resources: Resources, as_json: bool) -> None:
    """Check the structure and checksums of a graph store; a bad page is named.

    Of what `oocgraph partition` wrote each part is checked so, and then compared with the graph, edge by edge. All of it is streamed,
    within --memory.
    """
    from dataclasses import asdict

    from oocgraph.store.check import check_store
    from oocgraph.store.graph import open_graph
    from oocgraph.store.partitions import is_partitions, open_partitions

    with progress_bars() as progress:
        if is_partitions(graph):
            fields = _check_partitions(open_partitions(graph), whole, resources, progress)
        elif whole is not None:
            raise click.UsageError(f"--of names the graph of partitions, but {graph} is none; leave it out")
        else:
            fields = asdict(check_store(open_graph(graph), resources=resources, progress=progress))
    emit({"path": graph, "valid": True, **fields}, as_json=as_json, title=f"{graph}: sound")


def _check_partitions(partitions: Partitions, whole: str | None, resources: Resources, progress: Progress) -> dict[str, Any]:
    """Check every part by itself, then all of them against the graph."""
    from dataclasses import asdict

    from oocgraph.partition.check import check_partitions, most_check_bytes
    from oocgraph.store.check import check_within
    from oocgraph.store.graph import open_graph

    store = open_graph(whole or partitions.attributes.graph)
    following = most_check_bytes(store, len(partitions), partitions.attributes.read)
    reports = [check_within(part.store, resources, following_bytes=following, progress=progress) for part in partitions]
    sums = {name: sum(getattr(report, name) for report in reports) for name in ("num_checksums", "checked_bytes")}
    return {**sums, **asdict(check_partitions(partitions, store, progress, memory_budget=resources.memory_budget))}
