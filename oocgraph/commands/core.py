"""``oocgraph core``: the core number of every vertex."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import click

from oocgraph.commands.clusters import Place, client_options
from oocgraph.commands.common import (
    check_pages_option,
    check_result_path,
    emit,
    resources_options,
)
from oocgraph.commands.running import result_options, running, validate_option
from oocgraph.commands.tables import SHOWN_BINS, print_histogram

if TYPE_CHECKING:
    from oocgraph.resources import Resources


@click.command()
@click.argument("graph", metavar="GRAPH")
@click.option(
    "--schedule",
    type=click.Choice(["auto", "async", "rounds"]),
    default="auto",
    show_default=True,
    help="auto, async: blocks of edges in memory before others; rounds: blocks in order, again and again.",
)
@resources_options
@check_pages_option
@client_options
@validate_option
@result_options("vertices and core numbers")
def core(
    graph: str, *, schedule: str, resources: Resources, place: Place, out: str | None, overwrite: bool, validate: bool, check_pages: bool,
    as_json: bool,
) -> None:  # fmt: skip
    """Find the core number of every vertex of the graph store GRAPH; of a directed graph, by the edges from it and those to it.

    It runs in this process, or on a Dask cluster (--cluster, --scheduler); --memory and --threads are then of each worker.

    Shown are the vertices of each core number, then metrics; with --quiet, neither.

    Metrics: degeneracy is the largest core number; num_blocks_read counts the blocks of edges read, of num_blocks. bytes_read is the larger
    of the bytes requested and the device bytes of this process.
    """
    from oocgraph.algorithms.cores import check_task, find_cores
    from oocgraph.store.graph import open_graph
    from oocgraph.verify_results import cores_bytes, verify_cores

    place.check()
    store = open_graph(graph, check_pages=check_pages)
    check_result_path(out, overwrite=overwrite)
    check_task(store, schedule, is_on_cluster=place.is_cluster)
    with running(resources, place) as run:
        following = cores_bytes(store) if validate else 0
        result = find_cores(store, schedule, run.resources, progress=run.progress, following_bytes=following)
        run.finish(result, out, overwrite=overwrite, verify=partial(verify_cores, store) if validate else None)
    emit(run.fields(result), as_json=as_json, title=repr(result), answer=lambda: print_histogram(result.histogram(SHOWN_BINS)))
