"""The figures of `oocgraph bench gpu` that need no GPU, from kernels executed on the processor.

``python -m tests.bench.gpu_figures --scale 16``: bytes moved, planes, batches and pieces are those of a GPU; times are not. What does not
grow with a graph (queues, staging, batches of 65,536 rows) takes more than a tenth of a small one's edge bytes: here the plan counts about
a large graph's share of it instead.
"""

from __future__ import annotations

import json
import tempfile
from contextlib import contextmanager
from pathlib import Path
from unittest import mock

import click

from oocgraph import generate_kronecker, open_graph
from oocgraph.bench.gpu import BUDGETS, bench_gpu
from oocgraph.commands.bench_gpu import print_report
from oocgraph.plan import device_residency
from oocgraph.progress import progress_bars
from tests.cuda_on_cpu.device import CpuDevice

LARGE = {"FIXED_BYTES": 0, "MIN_ROWS": 1 << 12, "MIN_BUFFER_BYTES": 1 << 14}
"""Constants of the plan for small graphs: about what their real values are to a graph of scale 24 to 26."""


@contextmanager
def planned_as_large(**constants):
    """Let the plan see constants that a small graph has room for."""
    with mock.patch.multiple(device_residency, **{**LARGE, **constants}):
        yield


@click.command()
@click.argument("graph", required=False)
@click.option("--scale", default=16)
@click.option("--sources", default=16)
@click.option("--device-memory", "budgets", multiple=True, default=BUDGETS)
@click.option("--baseline", type=click.Choice(["sweep"]))
@click.option("--json", "as_json", is_flag=True)
def main(graph, scale, sources, budgets, baseline, as_json):
    """Search a store, or a Kronecker graph of a scale."""
    with tempfile.TemporaryDirectory() as folder, planned_as_large(), progress_bars() as progress:
        store = open_graph(graph) if graph else generate_kronecker(scale, Path(folder) / f"kron{scale}.zarr", seed=1)
        device = CpuDevice(total_bytes=2 << 30)
        report = bench_gpu(
            [store],
            num_sources=sources,
            seed=1,
            progress=progress,
            device=device,
            budgets=budgets,
            prepared_vertices=1 << 16,
            baseline=baseline,
            emulated=True,
        )
        print(json.dumps(report.metrics)) if as_json else print_report(report.metrics)
    assert not report.invalid, report.invalid


if __name__ == "__main__":
    main()
