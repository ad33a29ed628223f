"""``oocgraph bench gpu``: a GPU's memories, searches with the edges here and there, kernels for themselves; tables of all of it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import click

from oocgraph.commands.bench_options import exit_if_invalid, folder_option, generated, num_sources_option, scale_option, seed_option
from oocgraph.commands.common import emit, json_option, memory_option, progress_bars, threads_option
from oocgraph.text import format_number


@click.command("gpu")
@click.argument("graphs", metavar="[GRAPH]...", nargs=-1)
@num_sources_option("--sources")
@seed_option
@scale_option
@click.option(
    "--device-memory",
    "budgets",
    metavar="SIZE",
    multiple=True,
    default=("10%", "25%"),
    show_default=True,
    help="Budget of device memory: a size, or a share of the edge bytes; repeat for several.",
)
@click.option(
    "--baseline",
    type=click.Choice(["sweep"]),
    help="What searches with edges in host memory are compared with. sweep: loading whole partitions in turn, in every iteration.",
)
@memory_option
@threads_option
@folder_option("--folder", "For the generated graph and for results that wait for their validation.")
@json_option
def bench_gpu(graphs: tuple[str, ...], *, scale: int, as_json: bool, memory: str | None, folder: str | None, **options: Any) -> None:
    """Measure a GPU, and searches of each GRAPH on it; every result is validated, one invalid result is exit code 1.

    Each graph is searched with all edges in device memory and, for each --device-memory, with the rest of them in host memory and on
    disk (cold); the processor searches from the same sources. Then kernels for themselves, and what was to be reached.
    """
    from oocgraph.arrays import device_choice
    from oocgraph.bench.gpu import bench_gpu as run
    from oocgraph.store.graph import open_graph

    device = device_choice("cuda").device
    with ExitStack() as stack:
        progress = stack.enter_context(progress_bars())
        stores = [open_graph(graph) for graph in graphs] or [generated(stack, scale, folder, memory, progress)]
        report = run(stores, device=device, memory_budget=memory, folder=folder, progress=progress, **options)
    if as_json:
        emit(report.metrics, as_json=True, title="")
    else:
        print_report(report.metrics)
    exit_if_invalid(report)


_TIMES = {
    "median_seconds": "seconds",
    "median_device_seconds": "without results",
    "median_teps": "teps",
    "median_device_teps": "without results (teps)",
    "cpu_to_gpu": "cpu/gpu",
}
_MOVED = {
    "planes_resident": "planes",
    "median_link_fraction": "link fraction",
    "worst_link_fraction": "worst fraction",
    "median_num_batches": "batches",
    "median_num_pieces": "pieces",
    "median_bytes_read": "bytes_read",
    "device_bytes": "device_bytes",
    "peak_device_bytes": "peak_device_bytes",
    "peak_host_bytes": "peak_host_bytes",
}
_SWEPT = {
    "link_to_sweep": "link bytes/sweep",
    "sweep_to_gpu": "sweep/gpu",
    "median_link_bytes": "link_bytes",
    "sweep_link_bytes": "sweep_bytes",
    "sweep_partitions": "partitions",
}
_STAGED = {
    "median_read_seconds": "read_seconds",
    "median_copy_seconds": "copy_seconds",
    "median_kernel_seconds": "kernel_seconds",
    "median_overlap_seconds": "overlap_seconds",
    "median_idle_seconds": "idle_seconds",
    "median_each_edge_once_ratio": "/ each edge once",
    "median_slowest_tier_ratio": "/ slowest tier",
}
"""Metrics of a case and their columns."""


def print_report(metrics: Mapping[str, Any]) -> None:
    """Print all metrics of a run as tables."""
    from oocgraph.commands.tables import print_table

    rates = {"device copy": metrics["device_copy_bytes_per_second"], "link (pinned to device)": metrics["link_bytes_per_second"]}
    click.echo(f"{metrics['device']}, {metrics['date']}, {metrics['num_sources']} sources, seed {metrics['seed']}")
    for what, rate in rates.items():
        click.echo(f"  {what:<24} {_rate(rate)}")
    for graph in metrics["graphs"]:
        click.echo(f"\n{graph['graph']}: {graph['num_vertices']:,} vertices, {graph['num_stored_edges']:,} stored edges")
        click.echo(f"  disk {_rate(graph['disk_bytes_per_second'])} ({graph['disk']})")
        measured = [case for case in graph["cases"] if case["refused"] is None]
        for columns in (_TIMES, _MOVED, _STAGED):
            _print_columns(measured, columns)
        _print_columns([_with_sweep(case) for case in measured if case.get("sweep")], _SWEPT)
        for case in graph["cases"]:
            if case["refused"] is not None:
                click.echo(f"  {case['case']}: not measured: {case['refused']}")
        _print_kernels(graph)
    click.echo("")
    print_table(_target_row(row) for row in metrics["targets"])


def _print_columns(cases: Iterable[Mapping[str, Any]], columns: Mapping[str, str]) -> None:
    from oocgraph.commands.tables import print_table

    rows = [{"edges": case["case"], **{head: case.get(name) for name, head in columns.items()}} for case in cases]
    if rows:
        print_table(rows)


def _with_sweep(case: Mapping[str, Any]) -> dict[str, Any]:
    """Return a case with the figures of its baseline beside its own."""
    sweep = case["sweep"]
    return {**case, "sweep_link_bytes": sweep.get("median_link_bytes"), "sweep_partitions": sweep.get("num_partitions")}


def _print_kernels(graph: Mapping[str, Any]) -> None:
    """Print what kernels took for themselves."""
    from oocgraph.commands.tables import print_table

    if graph["methods"]:
        click.echo("  push of the largest frontiers (by vertices, by edges), ways to gather neighbours")
        print_table({name: value for name, value in one.items() if name != "wrong"} for one in graph["methods"])
    if (scan := graph["plane_scan"]) is not None:
        share = 100 * scan["device_copy_fraction"]
        click.echo(f"  full scan of {scan['planes']} planes: {_rate(scan['bytes_per_second'])}, {share:.0f} % of a device copy")
    if (made := graph["preparation"]) is not None:
        rows = f"{made['num_active']:,} of {made['num_vertices']:,} vertices"
        click.echo(f"  dependency subgraph of {rows}: {1e3 * made['seconds']:.3f} ms (kernels {1e3 * made['kernel_seconds']:.3f} ms)")
    if graph["unmeasured"] is not None:
        click.echo(f"  kernels not measured: {graph['unmeasured']}")


def _target_row(row: Mapping[str, Any]) -> dict[str, Any]:
    """Columns of what was to be reached; the last is cut where there is no room."""
    shown = {"graph": Path(row["graph"]).name or "-", "must_reach": row["must_reach"], "measured": _number(row["measured"])}
    return {**shown, "verdict": row["verdict"], "meant_for": row["meant_for"], "what": row["what"]}


def _rate(bytes_per_second: float | None) -> str:
    """Text of a bandwidth.

    Examples
    --------
    >>> _rate(52.5e9), _rate(None)
    ('52.5 GB/s', 'not known')
    """
    return "not known" if bytes_per_second is None else f"{bytes_per_second / 1e9:,.1f} GB/s"


def _number(value: float | None) -> str:
    return "-" if value is None else format_number(value, 3)
