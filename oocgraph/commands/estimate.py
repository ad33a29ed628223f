"""``oocgraph estimate``: what a build and a search will take, before either starts."""

from __future__ import annotations

from typing import Any

import click

from oocgraph.commands.common import emit, id_kind_option, json_option, resources_options


@click.command()
@click.argument("source", metavar="SOURCE|GRAPH")
@click.option(
    "--out", "path", metavar="OUT.zarr", default=".", help="Path of the store; the free space of its disk is compared.  [default: here]"
)
@id_kind_option
@click.option("--directed/--undirected", default=None, help="Kind of graph.  [default: what the source says, else undirected]")
@click.option("--source-column", metavar="NAME", help="Column of the edges' sources.")
@click.option("--target-column", metavar="NAME", help="Column of the edges' targets.")
@click.option("--weight-column", "weight", metavar="NAME", help="Column of the edges' weights.")
@click.option("--edge-column", "edge_columns", metavar="NAME", multiple=True, help="Column to keep with the edges; may be repeated.")
@click.option(
    "--num-vertices", type=click.IntRange(0, 2**63 - 1), help="Number of vertices, which are 0 .. N - 1.  [default: those with edges]"
)
@resources_options
@json_option
def estimate(
    source: str, *, source_column: str | None, target_column: str | None, edge_columns: tuple[str, ...], as_json: bool, **options: Any
) -> None:
    """Estimate disk, memory and time of a build and of a breadth-first search, without doing either.

    SOURCE is an edge list, as for `oocgraph build`, of which up to a million edges are read. For a graph store only the search is
    estimated. Times are good to a factor of three.
    """
    from oocgraph.algorithms.estimate import estimate as estimated

    found = estimated(source, columns=[source_column, target_column, *edge_columns], **options)
    emit({**found.summary(), "shortages": found.shortages}, as_json=as_json, title=source, figures_asked=True)
    if not as_json:
        for shortage in found.shortages:
            click.echo(shortage)
