"""``oocgraph components``: find the connected components, write the component of every vertex."""

from __future__ import annotations

from dataclasses import replace
from time import perf_counter
from typing import TYPE_CHECKING

import click

from oocgraph.commands.clusters import Place, client_options, peak_name
from oocgraph.commands.common import (
    check_pages_option,
    check_result_path,
    json_option,
    overwrite_option,
    progress_bars,
    resources_options,
    where_option,
)
from oocgraph.commands.values import emit_groups, top_option

if TYPE_CHECKING:
    from oocgraph.resources import Resources


@click.command()
@click.argument("graph", metavar="GRAPH")
@where_option
@resources_options
@check_pages_option
@client_options
@top_option(0)
@click.option("--out", metavar="FILE", help="Write vertices and components: .zarr, .parquet or .csv.")
@overwrite_option
@click.option("--validate", is_flag=True, help="Check the result by a code that shares nothing with it, reading every edge once.")
@json_option
def components(
    graph: str, *, where: str | None,
    resources: Resources, place: Place, num_top: int, out: str | None, overwrite: bool, validate: bool, check_pages: bool, as_json: bool,
) -> None:  # fmt: skip
    """Find the connected components of the graph store GRAPH; of a directed graph, the weakly connected ones.

    Each component is named after its vertex with the smallest id; a vertex without edges is a component of its own.

    It runs in this process, or on a Dask cluster (--cluster, --scheduler); --memory and --threads are then of each worker.

    Shown are the components of each size, the largest with --top, then metrics; with --quiet, none of it.

    Metrics: plane_bytes is what was read of the vertices' first neighbours, bytes_requested that and the lists of vertices outside of the
    largest component; bytes_read is the larger of the bytes requested and the device bytes of this process. On a cluster, exchange says
    whether workers linked in one forest, in memory that they share, or sent each other theirs, and why.
    """
    from oocgraph.algorithms.components import find_components
    from oocgraph.algorithms.search_options import on_processor
    from oocgraph.memory import PeakSampler
    from oocgraph.results.histogram import sizes_bytes
    from oocgraph.store.graph import open_graph
    from oocgraph.store.views import view_of
    from oocgraph.verify_connectivity import verification_bytes, verify_components

    place.check()
    store = view_of(open_graph(graph, check_pages=check_pages), where=where)
    check_result_path(out, overwrite=overwrite)
    with PeakSampler() as sampler, place.client() as client, progress_bars() as progress:
        following = max(sizes_bytes(store.num_rows), verification_bytes(store) if validate else 0)
        there = on_processor(replace(resources, client=client), {"where": where})
        result = find_components(store, there, progress=progress, following_bytes=following)
        began = perf_counter()
        if validate:
            verify_components(store.stored, result, memory_budget=resources.memory_budget if client is None else None)
        validated = perf_counter()
        if out is not None:
            result.write(out, overwrite=overwrite)
        written = perf_counter()
        best = result.top(num_top)
    seconds = {"result_seconds": written - validated} | ({"validation_seconds": validated - began} if validate else {})
    fields = {**result.summary(), **seconds}
    fields.pop("peak_host_bytes")
    fields[peak_name(client)] = sampler.peak_bytes
    emit_groups(result, fields, best, as_json=as_json)
