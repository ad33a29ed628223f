"""``oocgraph generate``: a synthetic graph straight to a store, or its raw edge list."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from oocgraph.commands.common import Command, WholeHelps, emit, output_options, progress_bars, vertex_order_option

if TYPE_CHECKING:
    from oocgraph.ingest.generators.generated import GeneratedEdges


def _destination_options(command: Command) -> Command:
    edges = click.option("--edges", metavar="FILE", help="Write the raw edge list (.parquet or .npy) instead of a store.")
    weights = click.option("--weights", metavar="LOW:HIGH", callback=_range, help="Give edges integer weights, such as 1:255.")
    return click.argument("out", metavar="[OUT.zarr]", required=False)(weights(edges(vertex_order_option(output_options(command)))))


def _range(context: click.Context, parameter: click.Parameter, text: str | None) -> tuple[int, int] | None:
    """Read LOW:HIGH."""
    if text is None:
        return None
    low, colon, high = text.partition(":")
    if not (colon and low.isdecimal() and high.isdecimal()):
        raise click.BadParameter(f"{text!r} is not LOW:HIGH; write for example 1:255", context, parameter)
    return int(low), int(high)


def _random_options(command: Command) -> Command:
    seed = click.option("--seed", type=int, default=1, show_default=True, help="The same seed gives the same graph.")
    factor = click.option("--edge-factor", type=click.IntRange(min=0), default=16, show_default=True, help="Edges per vertex.")
    scale = click.option("--scale", type=int, required=True, help="The graph has 2**SCALE vertices.")
    return scale(factor(seed(_destination_options(command))))


@click.group(cls=WholeHelps)
def generate() -> None:
    """Make a synthetic graph: OUT.zarr is a store; with --edges FILE the edge list is written instead."""


@generate.command()
@_random_options
def kronecker(scale: int, edge_factor: int, seed: int, weights: Any, **options: Any) -> None:
    """Make Graph500's Kronecker graph: a power law, half of the vertices isolated."""
    from oocgraph.ingest.generators.kronecker import KroneckerEdges

    _write(KroneckerEdges(scale, edge_factor=edge_factor, seed=seed, weights=weights), **options)


@generate.command()
@_random_options
def uniform(scale: int, edge_factor: int, seed: int, weights: Any, **options: Any) -> None:
    """Make a uniform random graph (GAPBS -u): no hubs."""
    from oocgraph.ingest.generators.uniform import UniformEdges

    _write(UniformEdges(scale, edge_factor=edge_factor, seed=seed, weights=weights), **options)


@generate.command()
@click.option("--rows", type=int, required=True, help="Rows of the grid.")
@click.option("--columns", type=int, required=True, help="Columns of the grid.")
@click.option("--keep", type=float, default=1.0, show_default=True, help="Share of the edges that are kept.")
@click.option("--shuffle", is_flag=True, help="Give vertices random ids.")
@click.option("--seed", type=int, default=1, show_default=True, help="Seed of which edges are kept, and of the ids.")
@_destination_options
def grid(rows: int, columns: int, keep: float, shuffle: bool, seed: int, weights: Any, **options: Any) -> None:
    """Make a grid of streets: a high-diameter graph."""
    from oocgraph.ingest.generators.grid import GridEdges

    _write(GridEdges(rows, columns, keep=keep, shuffle=shuffle, seed=seed, weights=weights), **options)


def _write(
    source: GeneratedEdges, *, out: str | None, edges: str | None, memory: str | None, threads: int | None, vertex_order: str | None,
    overwrite: bool, as_json: bool,
) -> None:  # fmt: skip
    if (out is None) == (edges is None):
        raise click.UsageError("give either OUT.zarr or --edges FILE")
    if edges is not None:
        _write_edges(source, edges, memory=memory, overwrite=overwrite, as_json=as_json)
        return
    from oocgraph.commands.build import build_store

    fields = build_store(source, str(out), memory_budget=memory, threads=threads, overwrite=overwrite, vertex_order=vertex_order)
    emit(fields, as_json=as_json, title=f"{out}: {source.description}")


def _write_edges(source: GeneratedEdges, path: str, *, memory: str | None, overwrite: bool, as_json: bool) -> None:
    from time import perf_counter

    from oocgraph.ingest.generators.edge_file import write_edges

    start = perf_counter()
    with progress_bars() as progress:
        num_edges, num_bytes = write_edges(source, path, overwrite=overwrite, memory_budget=memory, progress=progress)
    fields = {
        "path": path,
        "source": source.description,
        "num_vertices": source.num_vertices,
        "num_edges": num_edges,
        "file_bytes": num_bytes,
        "seconds": perf_counter() - start,
    }
    emit(fields, as_json=as_json, title=f"{path}: {source.description}")
