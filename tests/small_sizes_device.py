"""Devices with small buffers, pieces and batches, executed on the CPU, beside the processor: ``python -m tests.small_sizes_device 200``.

As `tests.small_sizes`. Budgets of device memory are drawn from the least on, and orders of threads and streams.
"""

from __future__ import annotations

from contextlib import ExitStack, nullcontext
from functools import partial
from importlib import import_module
from unittest.mock import patch

import numpy as np

import oocgraph
from oocgraph import Resources
from oocgraph.arrays import DeviceChoice
from oocgraph.config import setting
from oocgraph.engine.cpu_engine import TinyLimits
from oocgraph.engine.device_graph import DeviceAdjacency
from oocgraph.plan import device_residency, paths_residency
from tests import small_sizes
from tests.cuda_on_cpu.device import CpuDevice

SIZES = {
    "engine.transfers.SLOT_BYTES": (8, 72), "engine.transfers.NUM_SLOTS": (1, 2), "engine.device_load.HOST_READ_BYTES": (4096,),
    "engine.device_graph.UPLOAD_BYTES": (8, 72, 4096), "engine.device_graph.READ_BYTES": (8, 4096), "engine.device.SOURCES": (1,),
    "engine.device_engine.SAMPLE_EDGES": (1, 5), "engine.device_engine.WINDOW_PAGES": (1, 2), "engine.device_engine.SAMPLE_WORDS": (1, 2),
    "engine.device_engine.COUNT_SHARE": (0.0, 1.0), "engine.levels.FEW_PAGES": (0,), "plan.direction.PROBE_BYTES": (0, 1e4),
    "plan.direction.FINISH_MARGIN": (0.0, 1e9), "plan.access.LAUNCH_SECONDS": (0.0, 1e9), "plan.access.STAGING_SECONDS": (0.0, 1e9),
    "subgraph.dependency.LAUNCH_BITS": (1, 2), "kernels.gpu.BLOCKS_PER_MULTIPROCESSOR": (1, 2), "store.row_gatherer.PART_BYTES": (64,),
    "store.row_gatherer.WINDOW_BYTES": (8, 256), "store.row_gatherer.RUN_ROWS": (1, 2), "engine.device.BUFFER_BYTES": (4096,),
    "products.device_product.PIECE_ENTRIES": (1, 7, 50), "products.device_product.MIN_PIECE_ENTRIES": (1, 5),
    "products.device_product.MAX_PIECES": (1,), "products.device_product.NUM_SLOTS": (1, 5), "products.device_product.SLOTS_SHARE": (1,),
    "products.device_matrix.THROUGH_BYTES": (8, 64), "algorithms.sssp_on_device.WIDTH": (0.01, 1000), "kernels.gpu_spmv.HUB_EDGES": (0, 10),
    "algorithms.spmv_on_device.TILE_WIDTH": (1, 3), "kernels.gpu_spmv.SHARE_EDGES": (1, 300), "kernels.gpu_spmv.MIN_SHARE_EDGES": (1,),
}  # fmt: skip
"""Constants of modules of the package, with what else they may be."""

PLANS = {"NUM_BUFFERS": (2, 5), "MIN_ROWS": (1, 7, 100), "MIN_BUFFER_BYTES": (24, 256), "ROW_SHARE": (0.0, 0.5), "PAGE_BYTES": (8, 64)}
"""Those of plans of device memory, which two modules have."""


def draw(stack, rng, devices):
    """Let sizes and budgets be small, and everything find these devices."""

    def put(name, value):
        module, _, constant = name.rpartition(".")
        stack.enter_context(patch.object(import_module(f"oocgraph.{module}"), constant, value))

    for name, values in SIZES.items():
        if rng.random() < 0.5:
            put(name, rng.choice(values).item())
    for name, values in PLANS.items():
        value = rng.choice(values).item()
        for module in ("device_residency", "paths_residency") if rng.random() < 0.7 else ():
            put(f"plan.{module}.{name}", value)
            if name == "MIN_BUFFER_BYTES":
                put(f"plan.{module}.MAX_BUFFER_BYTES", value)
    if rng.random() < 0.8:  # else all levels of a small graph are tiny
        for module in ("device_levels", "device_engine"):
            put(f"engine.{module}.TINY", TinyLimits(vertices=0, edges=1 << 12))
    extra, most = int(rng.integers(0, 5000)), [None, 0, int(rng.integers(0, 2000))][rng.integers(3)]
    if rng.random() < 0.6:  # tails are pulled from disk, in windows of pages of few edges
        extra, most = int(rng.choice([0, 100, 400, 2000])), 0
        put("engine.device_engine.WINDOW_PAGES", int(rng.integers(1, 3)))
        stack.enter_context(patch.object(DeviceAdjacency, "page_shift", int(rng.integers(3))))
    plan, plan_paths = device_residency.plan_device_residency, paths_residency.plan_paths_residency

    def of_search(sizes, **options):
        return plan(sizes, **options | {"available_bytes": device_residency.least_bytes(sizes) + extra, "max_host_edges": most})

    def of_paths(sizes, **options):
        return plan_paths(sizes, **options | {"available_bytes": sizes.least_bytes + extra})

    put("engine.device_load.plan_device_residency", of_search)
    put("engine.device_paths.plan_paths_residency", of_paths)
    room = int(rng.choice([30_000, 100_000, 1 << 28]))
    put("algorithms.spmv_on_device.device_rooms", lambda given, *_: [room] * len(given))
    put("algorithms.devices.devices_choice", lambda kind, **_: ((), "") if kind == "cpu" else (devices, ""))
    for name in ("algorithms.devices", "engine.in_process"):
        put(f"{name}.device_choice", lambda kind, **_: DeviceChoice(None if kind == "cpu" else devices[0], ""))


def answers(graph, rng):
    """Yield names, and what computes something where its options say."""
    ids, n = sorted(graph.to_networkx()), graph.attributes.num_input_vertices
    for direction in ("auto", "push", *4 * ["pull"]):
        sources = rng.choice(ids, int(rng.integers(1, 4))).tolist()
        yield f"bfs {direction}", lambda s=sources, d=direction, **given: oocgraph.bfs(graph, s, direction=d, **given).level
    for delta in (None, 1.0):
        source = rng.choice(ids).item()
        yield f"sssp {delta}", lambda s=source, d=delta, **given: oocgraph.sssp(graph, s, delta=d, **given).distance
    for ring in ("plus_times", "min_plus"):
        x, transpose = rng.random((n, int(rng.integers(1, 5)))), bool(rng.integers(2))
        yield f"spmv {ring}", partial(oocgraph.spmv, graph, x, semiring=ring, transpose=transpose)
    yield "pagerank", lambda **given: oocgraph.pagerank(graph, tol=0, max_iter=9, **given).rank


def with_long_rows(edges, rng):
    """Let a few vertices have edges from many, mostly."""
    if rng.random() < 0.3:
        return edges
    hubs, ends = rng.integers(0, int(rng.integers(1, 6)), 400), rng.integers(0, 1 + edges[0].max(), 400)
    return tuple(np.r_[old, new] for old, new in zip(edges, (ends, hubs, rng.integers(1, 9, 400)), strict=True))


def compare(seed, folder):
    """Draw a graph, sizes and devices, compute on them, and return what differs: a list of names."""
    rng, asked, wrong = np.random.default_rng(seed), {"resources": Resources(device="cuda", threads=2)}, []
    directed = bool(rng.random() < 0.5)
    if (edges := small_sizes.drawn_edges(rng, directed)) is None:
        return []
    with setting("vertex-order", str(rng.choice(["original", "degree"]))):
        graph = oocgraph.build_csr(
            with_long_rows(edges, rng), folder / f"{seed}.zarr", weight="weight", directed=directed, duplicates="min"
        )
    calls = [(name, call, call(resources=Resources(device="cpu"))) for name, call in answers(graph, rng)]
    kinds = rng.integers([6, 2, 2], size=(int(rng.integers(1, 4)), 3)).tolist()
    devices = tuple(CpuDevice(order, deferred=bool(deferred), peers=bool(peers)) for order, deferred, peers in kinds)
    with ExitStack() as stack:
        draw(stack, rng, devices)
        with oocgraph.open_runtime(graph, **asked) if rng.random() < 0.6 else nullcontext() as runtime:
            for name, call, expected in calls:
                try:
                    why = "" if small_sizes.matches(call(**({"runtime": runtime} if runtime else asked)), expected) else "differs"
                except Exception as error:
                    why = f"{type(error).__name__}: {error}"
                wrong += [f"{name}: {why}"] if why else []
    return wrong + ["memory is left on a device"] * any(one.allocated_bytes or one.pinned_bytes for one in devices)


if __name__ == "__main__":
    small_sizes.main(compare, __doc__)
