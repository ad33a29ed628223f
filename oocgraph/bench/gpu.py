"""Searches on a GPU: the bandwidth of its memories, graphs with their edges here and there, kernels for themselves; all in one run.

In: graphs, a device. Out: a `Report`. Every result is validated; the processor searches from the same sources beside it.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

import numpy as np

from oocgraph.arrays import Device, device_choice
from oocgraph.bench.disk import measure_disk
from oocgraph.bench.gpu_cases import Case, CaseRun, Resources, cases_of, measure_case, stored_edges
from oocgraph.bench.gpu_kernels import measure_methods, measure_plane_scan, measure_preparation
from oocgraph.bench.gpu_metrics import case_metrics
from oocgraph.bench.gpu_rates import DeviceRates, measure_device
from oocgraph.bench.gpu_targets import verdicts
from oocgraph.bench.harness import Report, scratch_folder
from oocgraph.bench.sources import draw_sources, source_ids
from oocgraph.errors import BudgetError
from oocgraph.kernels.gpu import GpuKernels
from oocgraph.store.graph import CSRStore
from oocgraph.types import Progress

BUDGETS = ("10%", "25%")
"""Of device memory, as shares of the edge bytes."""

PREPARED_VERTICES = 1 << 24
"""Vertices of the graph of which a dependency subgraph is made."""


def bench_gpu(
    stores: Sequence[CSRStore],
    *,
    num_sources: int,
    seed: int,
    progress: Progress,
    device: Device | None = None,
    budgets: tuple[str, ...] = BUDGETS,
    memory_budget: str | int | None = None,
    threads: int | None = None,
    folder: str | None = None,
    prepared_vertices: int = PREPARED_VERTICES,
    baseline: Literal["sweep"] | None = None,
    emulated: bool = False,
) -> Report:
    """Measure a device and searches on it.

    Parameters
    ----------
    stores
        The graphs.
    num_sources, seed
        Number of vertices with edges to draw of each, and the seed of the draw.
    progress
        Called with searches and validations done.
    device
        Where; by default the GPU that CuPy regards as current.
    budgets
        Of device memory: sizes such as ``2G``, or shares of the edge bytes such as ``10%``. Each is measured with the remaining edges in
        host memory, and with them on disk.
    memory_budget, threads
        Of the host, as for `bfs`; the processor's search gets the same.
    folder
        Where results wait for their validation (10 bytes for each vertex and source).
    prepared_vertices
        Of the graph of which a dependency subgraph is made.
    baseline
        ``sweep``: where edges are in host memory, beside each search one that loads whole partitions in turn in every iteration
        (`oocgraph.bench.gpu_sweep`), with the bytes of both over the link.
    emulated
        `device` only executes kernels on the processor: its times are not compared.

    Raises
    ------
    DeviceError
        No GPU can be used, or it failed.
    OocGraphError
        A graph has no edges, or a budget is not a size.
    """
    if device is None:
        device = device_choice("cuda").device
        assert device is not None
    resources = Resources(device=device, memory_budget=memory_budget, threads=threads, progress=progress)
    cases = [cases_of(store, budgets) for store in stores]
    rates = measure_device(device)
    kernels = GpuKernels(device, np.dtype(np.uint32))
    preparation = measure_preparation(device, kernels, prepared_vertices)
    del kernels
    device.close()
    graphs: list[dict[str, Any]] = []
    invalid: list[str] = []
    with scratch_folder(folder) as scratch:
        for number, (store, some) in enumerate(zip(stores, cases, strict=True)):
            vertices = draw_sources(store, num_sources, seed)
            metrics, wrong = _measure_graph(
                store, some, vertices.tolist(), rates, resources, scratch / str(number), beside_sweep=baseline == "sweep"
            )
            graphs.append(metrics)
            invalid += wrong
    return Report(
        title=device.name,
        metrics={
            "device": device.name,
            "date": datetime.now(UTC).isoformat(timespec="seconds"),
            "num_sources": num_sources,
            "seed": seed,
            "num_invalid": len(invalid),
            "device_copy_bytes_per_second": rates.device_copy,
            "link_bytes_per_second": rates.link,
            "preparation": preparation,
            "graphs": graphs,
            "targets": verdicts(graphs, preparation, emulated=emulated),
        },
        invalid=tuple(invalid),
    )


def _measure_graph(
    store: CSRStore, cases: Sequence[Case], vertices: Sequence[int], rates: DeviceRates, resources: Resources, folder: Path, *,
    beside_sweep: bool,
) -> tuple[dict[str, Any], list[str]]:  # fmt: skip
    """Measure all cases of a graph and the kernels on it; return the metrics, and what is wrong, in words."""
    sources = source_ids(store, vertices)
    disk = measure_disk(stored_edges(store))
    runs: list[CaseRun] = []
    for case in cases:
        beside_cpu = all(run.refused is not None for run in runs)
        runs.append(
            measure_case(case, store, sources, resources, folder=folder / str(len(runs)), beside_cpu=beside_cpu, beside_sweep=beside_sweep)
        )
        resources.device.close()
    kernels = _measure_kernels(store, sources[0], vertices[0], resources)
    if kernels["plane_scan"] is not None:
        kernels["plane_scan"]["device_copy_fraction"] = kernels["plane_scan"]["bytes_per_second"] / rates.device_copy
    methods = [f": push by {name} does not find level {one['level']}" for one in kernels["methods"] for name in one["wrong"]]
    metrics = {
        "graph": store.url,
        "num_vertices": store.num_rows,
        "num_stored_edges": store.attributes.num_stored_edges,
        "edge_bytes": store.edge_bytes,
        "disk_bytes_per_second": disk.bytes_per_second,
        "disk": disk.how,
        "cases": [case_metrics(run, rates, disk) for run in runs],
        **kernels,
    }
    return metrics, [f"{store.url}{wrong}" for wrong in [*(wrong for run in runs for wrong in run.wrong), *methods]]


def _measure_kernels(store: CSRStore, source: Any, vertex: int, resources: Resources) -> dict[str, Any]:
    """Measure kernels on as much of a graph as fits in device memory.

    ``methods`` are ways to gather neighbours against each other, of each frontier; ``unmeasured`` says why kernels were not measured, None
    if they were.
    """
    metrics: dict[str, Any] = {"methods": [], "plane_scan": None, "preparation": None, "unmeasured": None}
    resources.progress("measuring kernels", 0, 1)
    try:
        runtime = resources.open_device(store, max_host_edges=0)
    except BudgetError as error:
        return {**metrics, "unmeasured": str(error)}
    with runtime:
        if runtime.graph.push.all_resident:
            metrics["methods"] = measure_methods(runtime, source, vertex)
        else:
            metrics["unmeasured"] = "the edges do not fit in device memory"
        metrics["plane_scan"] = measure_plane_scan(runtime, vertex)
        metrics["preparation"] = measure_preparation(resources.device, runtime.kernels, store.num_rows, runtime.graph.push.lookup)
    resources.progress("measuring kernels", 1, 1)
    return metrics
