"""``oocgraph bench spmv``: products of a graph and a vector, beside SciPy's and beside a sequential read."""

from __future__ import annotations

from contextlib import ExitStack
from typing import Any

import click

from oocgraph.commands.bench_gpu import generated
from oocgraph.commands.common import emit, json_option, memory_option, note, progress_bars, threads_option

EXIT_INVALID = 1


@click.command("spmv")
@click.argument("graph", metavar="[GRAPH]", required=False)
@click.option("--scale", type=int, default=20, show_default=True, help="Without GRAPH: of the Kronecker graph that is generated.")
@click.option("--peer", metavar="NAME", help="Compare with scipy, which multiplies the same arrays in turn.")
@click.option("--rounds", "num_rounds", type=click.IntRange(min=1), default=9, show_default=True, help="Products of each kind.")
@click.option("--parts", "num_parts", type=click.IntRange(min=1), default=8, show_default=True, help="Parts whose balance is told.")
@threads_option
@memory_option
@click.option("--folder", metavar="DIR", type=click.Path(exists=True, file_okay=False, writable=True), help="For the generated graph.")
@json_option
def bench_spmv(graph: str | None, *, scale: int, as_json: bool, memory: str | None, folder: str | None, **options: Any) -> None:
    """Multiply GRAPH and a vector: in memory with float64 values, the pattern alone, and streamed from the disk.

    ratio_to_peer is the median over the rounds of our seconds by the peer's, both with stored float64 values and in the same vertex
    order; a product that differs from the peer's is exit code 1. Out of core the rate stands beside that of one sequential reader of the
    same files, with the page cache emptied before each.
    """
    from oocgraph.bench.spmv import bench_spmv as run
    from oocgraph.store.graph import open_graph

    with ExitStack() as stack:
        progress = stack.enter_context(progress_bars())
        store = open_graph(graph) if graph is not None else generated(stack, scale, folder, memory, progress)
        report = run(store, memory_budget=memory, progress=progress, **options)
    emit(report.figures(), as_json=as_json, title=repr(store))
    if report.invalid:
        note(f"{len(report.invalid)} results are invalid; the first: {report.invalid[0]}")
        click.get_current_context().exit(EXIT_INVALID)
