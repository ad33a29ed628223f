"""Shortest paths on a GPU of this process: what `oocgraph.sssp` does where a GPU is to be used.

Davidson et al., "Work-Efficient Parallel GPU Methods for Single-Source Shortest Paths", IPDPS 2014; see `oocgraph.engine.device_paths`.
"""

from __future__ import annotations

from time import perf_counter
from typing import Any

import numpy as np

from oocgraph.algorithms.relaxing import sampled_weights
from oocgraph.arrays import Device, Work
from oocgraph.config import settings
from oocgraph.engine.device_load import device_limit_bytes
from oocgraph.engine.device_paths import DevicePaths
from oocgraph.engine.opened import OpenedGraph, Unopened
from oocgraph.kernels.gpu import search_source
from oocgraph.kernels.gpu_paths import path_source
from oocgraph.memory import Budget, PeakSampler, device_bytes_read
from oocgraph.resources import Resources
from oocgraph.store.graph import CSRStore
from oocgraph.types import Array, Progress

PATH_EDGE_SECONDS = 9e-9
"""Time of one thread for each stored edge: kron22 in memory, docs/measurements.md."""

WIDTH = 8
"""Buckets are so many mean weights wide, by the mean degree. (The paper has 32, the width of a warp, in section 5.2; a quarter follows
1.4, 1.2 and 1.1 times the edges of a Kronecker graph of scale 14, a uniform one and a grid, in place of 2.8, 2.6 and 1.5, with 2.0, 1.5
and 1.3 times the launches, whose number hardly grows with a graph.)"""


def paths_work(store: CSRStore, column: str, threads: int) -> Work:
    """Estimate a search for shortest paths: every edge with its weight reaches a device once."""
    weight, num_edges = store.array(f"out/{column}").dtype, store.attributes.num_stored_edges
    distance = np.dtype(np.float64 if weight.kind == "f" else np.int32)
    sources = search_source(store.index_dtype), path_source(store.index_dtype, distance)
    return Work(num_edges * PATH_EDGE_SECONDS / threads, num_edges * (store.index_dtype.itemsize + weight.itemsize), sources)


def width_on_device(store: CSRStore, column: str) -> float:
    """Choose the width of a bucket: wide enough to keep a device busy, narrow enough not to follow most edges twice."""
    mean, degree = float(sampled_weights(store, column).mean()), store.attributes.num_stored_edges / max(1, store.num_rows)
    return WIDTH * mean / max(1.0, degree) or 1.0


def find_on_device(
    device: Device, store: CSRStore, column: str, unreached: Any, resources: Resources, opened: OpenedGraph | Unopened, *, sources: Array,
    delta: float, bound: Any, targets: Array, requested: str | int | None, progress: Progress,
) -> dict[str, Any]:  # fmt: skip
    """Find paths on a device, with distances of the dtype of `unreached`; returns arguments of `oocgraph.SSSPResult`.

    Parameters
    ----------
    bound
        Distances up to which paths are found, of that dtype; None: all.
    requested
        Device memory that may be held.

    Raises
    ------
    EdgeError
        A weight is negative or no number, or a distance does not fit.
    BudgetError
        One of the budgets is too small.
    """
    started = perf_counter()
    arrays = store.array("out/indices"), store.array(f"out/{column}")

    def within(budget: Budget) -> dict[str, Any]:
        read, held = device_bytes_read(), opened.held_on_device(0)
        device_limit = device_limit_bytes(device, requested, held_bytes=opened.allocated_on_device(0))
        with PeakSampler() as sampler, DevicePaths.open(
            store, column, device, budget, unreached, device_limit=device_limit - held, num_sources=sources.size, num_targets=targets.size,
            threads=resources.num_threads, knobs=settings(),
        ) as paths:  # fmt: skip
            distance, parent, work = paths.run(sources, delta=delta, bound=bound, targets=targets, progress=progress)
            used = paths.residency.device_bytes
        return {
            "stored_value": distance, "stored_parent": parent, "unreached": unreached, "weight": column, "schedule": "near-far", "slack": 0,
            "delta": delta, "num_relaxed": work.num_followed, "num_again": work.num_again, "seconds": work.seconds,
            "load_seconds": perf_counter() - started - work.seconds, "bytes_requested": work.bytes_read,
            "bytes_read": max(work.bytes_read, device_bytes_read() - read), "edge_bytes": sum(a.length * a.dtype.itemsize for a in arrays),
            "peak_host_bytes": sampler.peak_bytes, "memory_budget": resources.limit_bytes, "device": device.name,
            "device_memory_budget": device_limit, "device_bytes": used, "link_bytes": work.link_bytes,
        }  # fmt: skip

    return opened.within(within)
