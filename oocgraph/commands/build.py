"""``oocgraph build``: an edge list in any format to a graph store, within a memory budget."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import click

from oocgraph.commands.common import emit, graph_fields, id_kind_option, note, output_options, progress_bars, vertex_order_option


def _dtypes(_context: click.Context, _option: click.Parameter, values: tuple[str, ...]) -> dict[str, str]:
    if bad := [value for value in values if not all(value.rpartition("=")[::2])]:
        raise click.BadParameter(f"{bad[0]!r} is not NAME=DTYPE, such as price=float64")
    return {name: dtype for name, _, dtype in (value.rpartition("=") for value in values)}


@click.command()
@click.argument("source")
@click.argument("out", metavar="OUT.zarr")
@id_kind_option
@click.option("--directed/--undirected", default=None, help="Kind of graph.  [default: what the source says, else undirected]")
@click.option("--source-column", metavar="NAME", help="Column of the edges' sources.")
@click.option("--target-column", metavar="NAME", help="Column of the edges' targets.")
@click.option("--weight-column", metavar="NAME", help="Column of the edges' weights.")
@click.option("--edge-column", "edge_columns", metavar="NAME", multiple=True, help="Column to keep with the edges; may be repeated.")
@click.option(
    "--dtype",
    "dtypes",
    metavar="NAME=DTYPE",
    multiple=True,
    callback=_dtypes,
    help="What a column is to be, float64, int32, ... or string; may be repeated.  [default: what the source has, or its first rows]",
)
@click.option("--num-vertices", type=click.IntRange(0, 2**63 - 1), help="Vertices are 0 .. N - 1.  [default: those that occur]")
@click.option(
    "--duplicates",
    type=click.Choice(["drop", "min", "max", "sum", "first", "error", "keep"]),
    help="What becomes of repeated edges; drop means min when weighted, and min, max, sum and first mean drop when not.  [default: drop]",
)
@click.option("--keep-self-loops", is_flag=True, help="Keep edges from a vertex to itself.")
@vertex_order_option
@click.option("--codec", type=click.Choice(["none", "blosc", "zstd"]), help="Compression.  [default: the setting oocgraph.codec]")
@click.option("--append", is_flag=True, help="Add the edges to the store OUT.zarr; its kind, order and compression stay as they are.")
@output_options
def build(source: str, out: str, *, as_json: bool, memory: str | None, append: bool, **options: Any) -> None:
    """Build the graph store OUT.zarr from SOURCE.

    SOURCE is Parquet or text (.csv, .tsv, .txt, .edges; a file, a folder or a quoted glob), Matrix Market (.mtx), NumPy (.npy, .npz),
    SciPy (.npz), GAPBS (.el, .wel, .sg, .wsg), DIMACS (.gr), METIS (.graph) or KONECT (out.NAME). Text may be compressed: .gz, .bz2,
    .xz, .zst. Vertex ids are integers from 0 to 2**63 - 1, or strings.
    """
    from oocgraph.ingest.payload import MEANT

    if append:
        _append(source, out, as_json=as_json, memory_budget=memory, **options)
        return
    fields = build_store(source, out, memory_budget=memory, **options)
    if (asked := options["duplicates"]) not in (None, fields["duplicates"]):
        note(f"--duplicates {asked} {MEANT[fields['duplicates']]}")
    emit(fields, as_json=as_json, title=f"{out}: built from {source}")


def _append(source: str, out: str, *, as_json: bool, **options: Any) -> None:
    from oocgraph.ingest.append import append_with_report
    from oocgraph.ingest.build_job import BuildOptions

    for name in ("vertex_order", "codec"):
        if options.pop(name) is not None:
            raise click.UsageError(f"--{name.replace('_', '-')} cannot be given with --append: the store's stays as it is; leave it out.")
    if options.pop("dtypes"):
        raise click.UsageError("--dtype cannot be given with --append: columns are read as what the store's are; leave it out.")
    if options.pop("overwrite"):
        raise click.UsageError("--overwrite and --append exclude each other: give --append to add edges, --overwrite to build again.")
    with progress_bars() as progress:
        graph, report = append_with_report(out, source, BuildOptions(**options), progress)
    fields = {**graph_fields(out, graph), **asdict(report)}
    emit(fields, as_json=as_json, title=f"{out}: {report.num_rows:,} edges added from {source}")


def build_store(source: Any, out: str, **options: Any) -> dict[str, Any]:
    """Build a store with progress bars; return the graph's attributes and the build's metrics as JSON fields."""
    from oocgraph.config import settings
    from oocgraph.ingest.build import build_with_report
    from oocgraph.ingest.build_job import BuildOptions

    order, codec = options.get("vertex_order") or settings().vertex_order, options.get("codec") or settings().codec
    chosen = BuildOptions(**{**options, "vertex_order": order, "codec": codec})
    with progress_bars() as progress:
        graph, report = build_with_report(source, out, chosen, progress)
    return {**graph_fields(out, graph), **asdict(report)}
