"""``oocgraph core``: the core number of every vertex."""

from __future__ import annotations

from dataclasses import replace
from time import perf_counter
from typing import TYPE_CHECKING

import click

from oocgraph.commands.clusters import Place, client_options, peak_name
from oocgraph.commands.common import (
    check_pages_option,
    check_result_path,
    emit,
    json_option,
    overwrite_option,
    progress_bars,
    resources_options,
)
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
@click.option("--out", metavar="FILE", help="Write vertices and core numbers: .zarr, .parquet or .csv.")
@overwrite_option
@click.option("--validate", is_flag=True, help="Check the result by a code that shares nothing with it, reading every edge once.")
@json_option
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
    from oocgraph.memory import PeakSampler
    from oocgraph.store.graph import open_graph
    from oocgraph.verify_peeling import verification_bytes, verify_cores

    place.check()
    store = open_graph(graph, check_pages=check_pages)
    check_result_path(out, overwrite=overwrite)
    check_task(store, schedule, is_on_cluster=place.is_cluster)
    with PeakSampler() as sampler, place.client() as client, progress_bars() as progress:
        following = verification_bytes(store) if validate else 0
        result = find_cores(store, schedule, replace(resources, client=client), progress=progress, following_bytes=following)
        began = perf_counter()
        if validate:
            verify_cores(store, result, memory_budget=resources.memory_budget if client is None else None)
        validated = perf_counter()
        if out is not None:
            result.write(out, overwrite=overwrite)
    seconds = {"result_seconds": perf_counter() - validated} | ({"validation_seconds": validated - began} if validate else {})
    fields = {**result.summary(), **seconds}
    fields.pop("peak_host_bytes")
    fields[peak_name(client)] = sampler.peak_bytes
    emit(fields, as_json=as_json, title=repr(result), answer=lambda: print_histogram(result.histogram(SHOWN_BINS)))
