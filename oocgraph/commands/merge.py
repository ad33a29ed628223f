"""``oocgraph merge``: two graph stores become one."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import click

from oocgraph.commands.common import emit, graph_fields, output_options, progress_bars


@click.command()
@click.argument("graph", metavar="GRAPH")
@click.argument("other", metavar="OTHER")
@click.argument("out", metavar="OUT.zarr")
@click.option("--num-vertices", type=click.IntRange(0, 2**63 - 1), help="Vertices are 0 .. N - 1.  [default: those of both graphs]")
@output_options
def merge(graph: str, other: str, out: str, *, as_json: bool, memory: str | None, **options: Any) -> None:
    """Write the edges of the stores GRAPH and OTHER to the store OUT.zarr.

    Both must be of one kind: directed, ids, edge columns, duplicates. Order and compression are those of GRAPH. The result is the store
    that one build of both edge lists would write. To add an edge list to a store use build --append.
    """
    from oocgraph.ingest.append import merge_with_report
    from oocgraph.ingest.build_job import BuildOptions

    with progress_bars() as progress:
        merged, report = merge_with_report(graph, other, out, BuildOptions(memory_budget=memory, **options), progress)
    fields = {**graph_fields(out, merged), **asdict(report)}
    emit(fields, as_json=as_json, title=f"{out}: {graph} and {other}")
