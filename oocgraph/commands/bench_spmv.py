"""``oocgraph bench spmv``: products of a graph and a vector, beside SciPy's and beside a sequential read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from typing import Any

import click

from oocgraph.commands.bench_options import count_option, finish, folder_option, generated, peer_option, scale_option
from oocgraph.commands.common import json_option, memory_option, progress_bars, threads_option
from oocgraph.commands.tables import print_table


@click.command("spmv")
@click.argument("graph", metavar="[GRAPH]", required=False)
@scale_option
@peer_option("Compare with scipy, which multiplies the same arrays in turn.")
@count_option("--rounds", "num_rounds", default=9, text="Products of each kind.")
@click.option("--device", "on_devices", is_flag=True, help="On GPUs: 1 to all that are there; the peer is cuSPARSE.")
@click.option("--device-memory", "device_memory_budget", metavar="SIZE", help="Device memory to hold, of each GPU.  [default: most]")
@count_option("--parts", "num_parts", default=8, text="Parts whose balance is reported.")
@threads_option
@memory_option
@folder_option("--folder", "For the generated graph.")
@json_option
def bench_spmv(
    graph: str | None, *, scale: int, as_json: bool, memory: str | None, folder: str | None, on_devices: bool,
    device_memory_budget: str | None, **options: Any,
) -> None:  # fmt: skip
    """Multiply GRAPH and a vector: in memory with float64 values, the pattern alone, and streamed from the disk.

    ratio_to_peer is the median over the rounds of our seconds by the peer's, both with stored float64 values and in the same vertex
    order; a product that differs from the peer's is exit code 1. Out of core the rate stands beside that of one sequential reader of the
    same files, with the page cache emptied before each.

    On GPUs (--device): products of a matrix that is resident and of one that is streamed, from files or from page-locked memory, cut by
    nonzeros and by rows, made by rows and by columns; bytes over the link, what cutting, loading and merging take, and cuSPARSE on the
    first GPU, with the vectors there.
    """
    from oocgraph.bench.spmv import bench_spmv as run
    from oocgraph.errors import OocGraphError
    from oocgraph.store.graph import open_graph

    measured: list[dict[str, Any]] = []
    with ExitStack() as stack:
        progress = stack.enter_context(progress_bars())
        store = open_graph(graph) if graph is not None else generated(stack, scale, folder, memory, progress)
        if on_devices:
            report = _on_devices(store, options, memory_budget=memory, progress=progress, device_memory_budget=device_memory_budget)
            if not as_json:
                measured = report.metrics["num_devices"]
                report = replace(report, metrics={**report.metrics, "num_devices": len(measured)})
        elif device_memory_budget is not None:
            raise OocGraphError("--device-memory is given without --device; give both, or neither")
        else:
            report = run(store, memory_budget=memory, progress=progress, **options)
    finish(report, as_json=as_json, show=lambda _metrics: _print_devices(measured) if measured else None)


def _on_devices(store: Any, options: dict[str, Any], **others: Any) -> Any:
    """Measure on all GPUs."""
    from oocgraph.arrays import devices_choice
    from oocgraph.bench.spmv_on_devices import bench_spmv_on_devices
    from oocgraph.errors import OocGraphError

    if options["peer"] is not None:
        raise OocGraphError("--peer is given with --device, where the peer is cuSPARSE; leave one of them out")
    devices, _ = devices_choice("cuda")
    return bench_spmv_on_devices(store, devices, num_rounds=options["num_rounds"], **others)


def _print_devices(measured: Sequence[Mapping[str, Any]]) -> None:
    """Print what was found on each number of devices: how the matrix was cut and moved; times; ratios."""
    names = [name for name in measured[0] if name != "devices"]
    times = [name for name in names if name.endswith("seconds")]
    ratios = [name for name in names if name.endswith("ratio") or name.startswith("ratio")]
    for some in ([name for name in names if name not in times and name not in ratios and "ratio" not in name], times, ratios):
        if some:
            print_table({"devices": one["devices"], **{name: one.get(name) for name in some}} for one in measured)
