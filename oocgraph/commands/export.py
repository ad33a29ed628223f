"""``oocgraph export``: the graph under its input ids, for other programs."""

from __future__ import annotations

from typing import Any

import click

from oocgraph.commands.common import (
    check_pages_option,
    emit,
    json_option,
    overwrite_option,
    progress_bars,
    resources_options,
)


@click.command()
@click.argument("graph", metavar="GRAPH")
@click.argument("out", metavar="OUT")
@click.option(
    "--order",
    type=click.Choice(["input", "store"]),
    default="input",
    show_default=True,
    help="Vertex numbers in OUT; an edge list has ids.",
)
@click.option("--weight", metavar="NAME", help="Edge column of the values in .npz, .mtx and .wsg.  [default: the weight]")
@check_pages_option
@resources_options
@overwrite_option
@json_option
def export(graph: str, out: str, *, check_pages: bool, as_json: bool, **options: Any) -> None:
    """Write the graph store GRAPH to OUT under the input's ids.

    Edge lists: .parquet, .csv, .tsv. Matrices, isolated vertices included: .npz (SciPy), .mtx (Matrix Market), .sg and .wsg (GAPBS).
    Text may be compressed: .csv.gz, .mtx.gz.
    """
    from dataclasses import asdict

    from oocgraph.export.files import export_graph
    from oocgraph.store.graph import open_graph

    store = open_graph(graph, check_pages=check_pages)
    with progress_bars() as progress:
        report = export_graph(store, out, progress=progress, **options)
    emit(asdict(report), as_json=as_json, title=f"{out}: exported from {graph}")
