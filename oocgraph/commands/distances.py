"""``oocgraph closeness``, ``harmonic``, ``eccentricity``, ``diameter``, ``multi-source-bfs``: by searches from 64 vertices at a time."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

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
from oocgraph.commands.tables import print_table
from oocgraph.commands.values import values_command

_METRICS = """

    It runs in this process, or on a Dask cluster (--cluster, --scheduler); --memory and --threads are then of each worker.

    Metrics: seconds are of the searches, load_seconds of what comes before; bytes_read is the larger of the bytes requested and the
    device bytes of this process.
    """

_vertices = click.option(
    "--vertex", "vertices", metavar="ID", multiple=True, callback=lambda context, parameter, given: list(given) or None,
    help="Vertex whose value is wanted; repeat for several.  [default: all]",
)  # fmt: skip

_k = click.option("--samples", "k", type=int, help="Estimate all values by searches from so many vertices.")

_seed = click.option("--seed", type=int, default=1, show_default=True, help="Seed of the choice of these vertices.")

closeness = values_command(
    "closeness", "closeness_centrality",
    """Find the closeness centrality of vertices of the graph store GRAPH: 1 / (average distance to it of those that reach it).

    Exact for given vertices, or all, each of which takes a search; or estimated by a sample (--samples)."""
    + _METRICS,
    _vertices, _k,
    click.option(
        "--wf-improved/--plain", default=True, show_default=True, help="Multiply by the share of vertices that reach it, or do not."
    ),
    _seed, on_cluster=True,
)  # fmt: skip

harmonic = values_command(
    "harmonic", "harmonic_centrality",
    """Find the harmonic centrality of vertices of the graph store GRAPH: the sum of 1 / distance of all that reach it.

    Exact for given vertices, or all, each of which takes a search; or estimated by a sample (--samples)."""
    + _METRICS,
    _vertices, _k, _seed, on_cluster=True,
)  # fmt: skip

eccentricity = values_command(
    "eccentricity", "eccentricity",
    """Find the eccentricity of vertices of the graph store GRAPH: the distance to the vertex that is farthest.

    The graph must be connected, a directed one strongly. Each vertex takes a search."""
    + _METRICS,
    _vertices, on_cluster=True,
)  # fmt: skip


@click.command()
@click.argument("graph", metavar="GRAPH")
@click.option("--max-searches", type=int, help="Stop with bounds after so many searches.  [default: the diameter is found]")
@resources_options
@check_pages_option
@client_options
@json_option
def diameter(*, graph: str, check_pages: bool, resources: Any, place: Place, as_json: bool, max_searches: int | None) -> None:
    """Find the diameter of the undirected, connected graph store GRAPH, or bounds of it.

    It runs in this process, or on a Dask cluster (--cluster, --scheduler); --memory and --threads are then of each worker.
    """
    import oocgraph
    from oocgraph.memory import PeakSampler

    place.check()
    store = oocgraph.open_graph(graph, check_pages=check_pages)
    with PeakSampler() as sampler, place.client() as client, progress_bars() as progress:
        used = replace(resources, client=client)
        result = oocgraph.diameter(store, max_searches=max_searches, resources=used, progress=progress)
    fields = result.summary()
    fields.pop("peak_host_bytes")
    emit({**fields, peak_name(client): sampler.peak_bytes}, as_json=as_json, title=repr(result))


@click.command("multi-source-bfs")
@click.argument("graph", metavar="GRAPH")
@click.option("--source", "sources", metavar="ID", multiple=True, required=True, help="Vertex to search from; repeat for more.")
@click.option("--reverse", is_flag=True, help="Search against the direction of the edges.")
@click.option("--depth-limit", type=click.IntRange(min=0), help="Maximum depth.  [default: none]")
@resources_options
@check_pages_option
@client_options
@click.option("--out", metavar="FILE", help="Write vertices and their level in each search: .zarr, .parquet or .csv.")
@overwrite_option
@json_option
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
    from oocgraph.memory import PeakSampler
    from oocgraph.store.vertices import VertexIds

    place.check()
    store = oocgraph.open_graph(graph, check_pages=check_pages)
    check_result_path(out, overwrite=overwrite)
    with PeakSampler() as sampler, place.client() as client, progress_bars() as progress:
        used = replace(resources, client=client)
        ids = VertexIds(store).parse(list(sources)).tolist()
        result = oocgraph.multi_source_bfs(store, ids, distances=out is not None, resources=used, progress=progress, **own)
        if out is not None:
            result.write(out, overwrite=overwrite)
    fields = result.summary()
    fields.pop("peak_host_bytes")
    fields[peak_name(client)] = sampler.peak_bytes
    names = ("num_reached", "depth", "sum_distances", "sum_inverse_distances")
    columns = [fields.pop(name) for name in names]
    rows = [{"source": source, **dict(zip(names, row, strict=True))} for source, *row in zip(fields.pop("sources"), *columns, strict=True)]
    emit({**fields, "searches": rows}, as_json=as_json, title=repr(result))
    if not as_json:
        print_table({**row, "source": str(row["source"])} for row in rows)
