"""``oocgraph multi-source-bfs``: searches from many vertices, 64 at a time."""

from __future__ import annotations

from typing import Any

import click

from oocgraph.commands.clusters import Place, client_options
from oocgraph.commands.common import (
    check_pages_option,
    check_result_path,
    emit,
    resources_options,
)
from oocgraph.commands.running import result_options, running
from oocgraph.commands.tables import print_table


@click.command("multi-source-bfs")
@click.argument("graph", metavar="GRAPH")
@click.option("--source", "sources", metavar="ID", multiple=True, required=True, help="Vertex to search from; repeat for more.")
@click.option("--reverse", is_flag=True, help="Search against the direction of the edges.")
@click.option("--depth-limit", type=click.IntRange(min=0), help="Maximum depth.  [default: none]")
@resources_options
@check_pages_option
@client_options
@result_options("vertices and their level in each search")
def multi_source_bfs(
    *, graph: str, sources: tuple[str, ...], check_pages: bool, resources: Any, place: Place, out: str | None, overwrite: bool,
    as_json: bool, **own: Any,
) -> None:  # fmt: skip
    """Search the graph store GRAPH breadth-first from each --source, 64 at a time, which share what they read.

    Shown are of each source the vertices that it reaches, the depth, and the sums of distances and of 1 / distance. With --out the level
    of every vertex in every search is held in memory: --depth-limit 127 makes it one byte.

    It runs in this process, or on a Dask cluster (--cluster, --scheduler); --memory and --threads are then of each worker.
    """
    import oocgraph
    from oocgraph.store.vertices import VertexIds

    place.check()
    store = oocgraph.open_graph(graph, check_pages=check_pages)
    check_result_path(out, overwrite=overwrite)
    with running(resources, place) as run:
        ids = VertexIds(store).parse(list(sources)).tolist()
        result = oocgraph.multi_source_bfs(store, ids, distances=out is not None, resources=run.resources, progress=run.progress, **own)
        if out is not None:
            result.write(out, overwrite=overwrite)
    fields = run.fields(result)
    names = ("num_reached", "depth", "sum_distances", "sum_inverse_distances")
    columns = [fields.pop(name) for name in names]
    rows = [{"source": source, **dict(zip(names, row, strict=True))} for source, *row in zip(fields.pop("sources"), *columns, strict=True)]
    emit({**fields, "searches": rows}, as_json=as_json, title=repr(result))
    if not as_json:
        print_table({**row, "source": str(row["source"])} for row in rows)
