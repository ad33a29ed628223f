"""``oocgraph export``: the graph under its input ids, for other programs."""

from __future__ import annotations

import click

from oocgraph.commands.common import emit, json_option, memory_option, overwrite_option, progress_bars


@click.command()
@click.argument("graph", metavar="GRAPH")
@click.argument("out", metavar="OUT")
@memory_option
@overwrite_option
@json_option
def export(graph: str, out: str, *, memory: str | None, overwrite: bool, as_json: bool) -> None:
    """Write the graph store GRAPH to OUT under the input's ids: .parquet, .npz, or GAPBS .sg (isolated vertices included)."""
    from pathlib import Path
    from time import perf_counter

    from oocgraph.ingest.export import export_graph
    from oocgraph.store.graph import open_graph

    start = perf_counter()
    with progress_bars() as progress:
        export_graph(open_graph(graph), out, memory_budget=memory, overwrite=overwrite, progress=progress)
    fields = {"path": out, "file_bytes": Path(out).stat().st_size, "seconds": perf_counter() - start}
    emit(fields, as_json=as_json, title=f"{out}: exported from {graph}")
