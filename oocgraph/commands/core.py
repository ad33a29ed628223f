"""``oocgraph core``: the core number of every vertex."""

from __future__ import annotations

from time import perf_counter
from typing import TYPE_CHECKING

import click

from oocgraph.commands.common import (
    check_pages_option,
    check_result_path,
    emit,
    json_option,
    overwrite_option,
    progress_bars,
    resources_options,
    tell_cold_kernels,
)

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
@click.option("--out", metavar="FILE", help="Write vertices and core numbers: .zarr, .parquet or .csv.")
@overwrite_option
@click.option("--validate", is_flag=True, help="Check the result by a code that shares nothing with it, reading every edge once.")
@json_option
def core(
    graph: str, *, schedule: str, resources: Resources, out: str | None, overwrite: bool, validate: bool, check_pages: bool, as_json: bool,
) -> None:  # fmt: skip
    """Find the core number of every vertex of the graph store GRAPH; of a directed graph, by the edges from it and those to it.

    Metrics: degeneracy is the largest core number; num_blocks_read counts the blocks of edges read, of num_blocks. bytes_read is the larger
    of the bytes requested and the device bytes of this process.
    """
    from oocgraph.algorithms.cores import check_task, find_cores
    from oocgraph.memory import PeakSampler
    from oocgraph.store.graph import open_graph
    from oocgraph.verify_peeling import verification_bytes, verify_cores

    store = open_graph(graph, check_pages=check_pages)
    check_result_path(out, overwrite=overwrite)
    check_task(store, schedule)
    tell_cold_kernels("blocks")
    with PeakSampler() as sampler, progress_bars() as progress:
        result = find_cores(store, schedule, resources, progress=progress, following_bytes=verification_bytes(store) if validate else 0)
        began = perf_counter()
        if validate:
            verify_cores(store, result, memory_budget=resources.memory_budget)
        validated = perf_counter()
        if out is not None:
            result.write(out, overwrite=overwrite)
    seconds = {"result_seconds": perf_counter() - validated} | ({"validation_seconds": validated - began} if validate else {})
    emit({**result.summary(), **seconds, "peak_host_bytes": sampler.peak_bytes}, as_json=as_json, title=repr(result))
