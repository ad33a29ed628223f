"""``oocgraph bench spmv``: products of a graph and a vector, beside SciPy's and beside a sequential read."""

from __future__ import annotations

from contextlib import ExitStack
from typing import Any

import click

from oocgraph.commands.bench_options import count_option, finish, folder_option, generated, peer_option, scale_option
from oocgraph.commands.common import json_option, memory_option, progress_bars, threads_option


@click.command("spmv")
@click.argument("graph", metavar="[GRAPH]", required=False)
@scale_option
@peer_option("Compare with scipy, which multiplies the same arrays in turn.")
@count_option("--rounds", "num_rounds", default=9, text="Products of each kind.")
@count_option("--parts", "num_parts", default=8, text="Parts whose balance is reported.")
@threads_option
@memory_option
@folder_option("--folder", "For the generated graph.")
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
    finish(report, as_json=as_json)
