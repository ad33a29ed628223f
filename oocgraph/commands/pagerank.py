"""``oocgraph pagerank``: rank every vertex, show those that rank highest, write all."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from oocgraph.commands.clusters import Place, client_options
from oocgraph.commands.common import (
    check_pages_option,
    check_result_path,
    device_resources_options,
    emit,
)
from oocgraph.commands.running import result_options, running
from oocgraph.commands.tables import print_table
from oocgraph.commands.values import rank_options, weight_options, with_weight

if TYPE_CHECKING:
    from oocgraph.resources import Resources

PRECISIONS = ["auto", "single", "double"]
SCHEDULES = ["auto", "in-place"]


@click.command()
@click.argument("graph", metavar="GRAPH")
@rank_options
@weight_options
@click.option(
    "--personalize", "personalized", metavar="ID[=NUMBER]", multiple=True, help="Start at this vertex instead of anywhere; repeat."
)
@click.option("--precision", type=click.Choice(PRECISIONS), default="auto", show_default=True, help="Precision of ranks along edges.")
@click.option(
    "--schedule", type=click.Choice(SCHEDULES), default="auto", show_default=True, help="in-place: use ranks as soon as they are made."
)
@device_resources_options
@check_pages_option
@client_options
@click.option("--checkpoint", metavar="DIR", help="Folder for the state of the run; if it holds one, resume from it.")
@click.option("--top", "num_top", type=click.IntRange(min=0), default=10, show_default=True, help="Vertices to show.")
@result_options("vertices and ranks")
def pagerank(
    graph: str,
    *,
    personalized: tuple[str, ...],
    precision: str,
    check_pages: bool,
    resources: Resources,
    place: Place,
    num_top: int,
    out: str | None,
    overwrite: bool,
    as_json: bool,
    **options: Any,
) -> None:
    """Rank the vertices of the graph store GRAPH by PageRank.

    Ranks sum to 1. The values are NetworkX's: a vertex without out-edges passes its rank on to all, isolated ones are counted.

    It runs in this process, on GPUs if there are some (--device), or on a Dask cluster (--cluster, --scheduler); --memory and --threads
    are then of each worker.

    Metrics: seconds are of the iterations, load_seconds of what comes before; edge_bytes is what one iteration visits, kept_bytes the
    part of it that stays in memory; bytes_read is the larger of the bytes requested and the device bytes of this process.
    """
    from oocgraph.algorithms.pagerank import pagerank as rank
    from oocgraph.config import setting
    from oocgraph.store.graph import open_graph
    from oocgraph.store.vertices import VertexIds

    options = with_weight(options)
    place.check()
    store = open_graph(graph, check_pages=check_pages)
    check_result_path(out, overwrite=overwrite)
    options["personalization"] = _personalization(VertexIds(store), personalized) if personalized else None
    with running(resources, place) as run, setting("precision", precision):
        result = rank(store, resources=run.resources, progress=run.progress, **options)
        run.finish(result, out, overwrite=overwrite)
        best = result.top(num_top)
    fields = {**run.fields(result), "top": [{"vertex": vertex, "rank": value} for vertex, value in best]}
    rows = [{"vertex": str(vertex), "rank": value} for vertex, value in best]
    emit(fields, as_json=as_json, title=repr(result), answer=lambda: print_table(rows))


def _personalization(ids: Any, texts: tuple[str, ...]) -> dict[Any, float]:
    """Return the personalization: each text is an id, or an id, "=" and a number; an id may hold "=" itself.

    Raises
    ------
    VertexNotFoundError
        An id does not occur in the graph's input.
    """
    from oocgraph.errors import VertexNotFoundError

    personalization: dict[Any, float] = {}
    for text in texts:
        name, equals, number = text.rpartition("=")
        try:
            ids.vertices_of(text)
            name, value = text, 1.0
        except VertexNotFoundError:
            if not equals:
                raise
            value = _number(text, number)
        (vertex,) = ids.parse(name).tolist()
        personalization[vertex] = personalization.get(vertex, 0.0) + value
    return personalization


def _number(text: str, number: str) -> float:
    from oocgraph.errors import OocGraphError

    try:
        return float(number)
    except ValueError as error:
        raise OocGraphError(f"--personalize {text}: {number!r} is no number; write --personalize ID or --personalize ID=2.5") from error
