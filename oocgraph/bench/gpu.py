"""Searches on a GPU: what its memories give, graphs with their edges here and there, kernels for themselves; all in one run.

In: graphs, a device. Out: a `GpuReport`. Every result is validated; the processor searches from the same sources beside it.
"""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

from oocgraph.arrays import Device, device_choice
from oocgraph.bench.gpu_cases import CaseReport, cases_of, measure_case, source_ids, stored_edges
from oocgraph.bench.gpu_kernels import measure_methods, measure_plane_scan, measure_preparation
from oocgraph.bench.gpu_rates import measure_device, measure_disk
from oocgraph.bench.gpu_report import GpuReport, GraphReport
from oocgraph.bench.sources import draw_sources
from oocgraph.errors import BudgetError
from oocgraph.kernels.gpu import GpuKernels
from oocgraph.runtime.device import DeviceRuntime
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
    emulated: bool = False,
) -> GpuReport:
    """Measure a device and searches on it.

    Parameters
    ----------
    stores
        The graphs.
    num_sources, seed
        How many vertices with edges to draw of each, and how.
    progress
        Told searches and validations done.
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
    emulated
        `device` only executes kernels on the processor: its times are not judged.

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
    cases = [cases_of(store, budgets) for store in stores]
    rates = measure_device(device)
    kernels = GpuKernels(device, np.dtype(np.uint32))
    preparation = measure_preparation(device, kernels, prepared_vertices)
    del kernels
    device.close()
    graphs = []
    with tempfile.TemporaryDirectory(prefix="oocgraph-bench-", dir=folder) as scratch:
        for number, (store, some) in enumerate(zip(stores, cases, strict=True)):
            vertices = draw_sources(store, num_sources, seed)
            sources = source_ids(store, vertices)
            disk = measure_disk(stored_edges(store))
            reports: list[CaseReport] = []
            for case in some:
                reports.append(
                    measure_case(
                        case, store, sources, device=device, memory_budget=memory_budget, threads=threads,
                        folder=Path(scratch) / f"{number}-{len(reports)}", progress=progress,
                        beside_cpu=all(one.refused is not None for one in reports),
                    )
                )  # fmt: skip
                device.close()
            graphs.append(
                GraphReport(
                    url=store.url,
                    edge_bytes=store.edge_bytes,
                    num_vertices=store.num_vertices,
                    num_stored_edges=store.attributes.num_stored_edges,
                    disk=disk,
                    cases=tuple(reports),
                    **_kernels(store, sources[0], int(vertices[0]), device, memory_budget, threads, progress),
                )
            )
    return GpuReport(
        device=device.name,
        date=datetime.now(UTC).isoformat(timespec="seconds"),
        num_sources=num_sources,
        seed=seed,
        emulated=emulated,
        rates=rates,
        preparation=preparation,
        graphs=tuple(graphs),
    )


def _kernels(
    store: CSRStore, source: Any, vertex: int, device: Device, memory_budget: str | int | None, threads: int | None, progress: Progress
) -> dict[str, Any]:
    """Measure kernels on as much of a graph as fits in device memory; returns fields of `GraphReport`."""
    figures: dict[str, Any] = {}
    progress("measuring kernels", 0, 1)
    try:
        runtime = DeviceRuntime.open(store, device=device, memory_budget=memory_budget, threads=threads, max_host_edges=0)
    except BudgetError as error:
        return {"unmeasured": str(error)}
    with runtime:
        if runtime.graph.push.all_resident:
            figures["methods"] = tuple(measure_methods(runtime, source, vertex))
        else:
            figures["unmeasured"] = "the edges do not fit in device memory"
        figures["plane_scan"] = measure_plane_scan(runtime, vertex)
        figures["preparation"] = measure_preparation(device, runtime.kernels, store.num_vertices, runtime.graph.push.lookup)
    progress("measuring kernels", 1, 1)
    return figures
