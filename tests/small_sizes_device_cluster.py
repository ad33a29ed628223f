"""Computations on workers in this process with devices, executed on the CPU: ``python -m tests.small_sizes_device_cluster 50 --seed 1``.

As `tests.small_sizes_cluster`. Budgets of device memory are from the least on; one that a refusal names must be enough.
"""

from __future__ import annotations

import re
from contextlib import ExitStack
from functools import partial
from unittest.mock import patch

import numpy as np
from distributed import Client, LocalCluster

import oocgraph
from oocgraph import BudgetError, Resources
from oocgraph.arrays import DeviceChoice
from oocgraph.config import setting
from oocgraph.engine import device_part_load
from oocgraph.engine.device_graph import DeviceAdjacency
from oocgraph.engine.shard_plan import ShardPlan
from oocgraph.plan import device_residency
from tests.cluster import clusters
from tests.cuda_on_cpu.device import CpuDevice
from tests.small_sizes import drawn_edges, main
from tests.small_sizes_cluster import answers, import_all
from tests.small_sizes_device import PLANS, SIZES, with_long_rows

MIB = 1 << 20
NAMES = ("bfs", "resumed", "bfs 1d", "bfs 2d", "spmv", "pagerank")


def draw(stack, rng, devices):
    """Let sizes be small, tails be on disk, and each worker find a device of its own."""
    for name, values in SIZES.items():
        if rng.random() < 0.5 and not name.startswith("algorithms."):
            stack.enter_context(patch(f"oocgraph.{name}", rng.choice(values).item()))
    for name, values in (PLANS | {"FIXED_BYTES": (MIB,)}).items():
        value = rng.choice(values).item()
        for module in ("device_residency", "paths_residency") if rng.random() < 0.7 else ():
            for constant in {name, name.replace("MIN_BUFFER", "MAX_BUFFER")}:
                stack.enter_context(patch(f"oocgraph.plan.{module}.{constant}", value))
    if rng.random() < 0.8:  # else the host takes all levels of a small graph
        for name in ("QUEUE_CAPACITY", "FEW_VERTICES"):
            stack.enter_context(patch(f"oocgraph.engine.part.{name}", 0))
    if rng.random() < 0.6:
        stack.enter_context(patch("oocgraph.engine.device_engine.WINDOW_PAGES", int(rng.integers(1, 3))))
        stack.enter_context(patch.object(DeviceAdjacency, "page_shift", int(rng.integers(3))))

    def found(kind):
        devices.append(CpuDevice(int(rng.integers(6)), deferred=bool(rng.integers(2))))
        return DeviceChoice(devices[-1], f"{kind}: a shim")

    planned = device_part_load.plan_device_residency

    extra = int(rng.choice([0, 400, 2000]))

    def on_disk(sizes, **options):
        most = min(options["available_bytes"], device_residency.least_bytes(sizes) + extra)
        return planned(sizes, **options | {"available_bytes": most, "max_host_edges": 0})

    if rng.random() < 0.7:
        stack.enter_context(patch("oocgraph.engine.device_part_load.plan_device_residency", on_disk))
        stack.enter_context(patch.object(ShardPlan, "residency", ShardPlan.residency))
        clusters.cramp(0.0)
    stack.enter_context(patch("oocgraph.cluster.worker_device.open_device", found))


def compute(call, rng):
    """Return what a call finds with a small budget, or with the one that its refusal names."""
    budget, refusals = int(rng.integers(1, 3 * MIB)), []
    while True:
        try:
            return call(budget)
        except BudgetError as error:
            refusals.append(str(error))
            named = re.search(r"device_memory_budget to at least (\d+)M", str(error))
            if named is None or len(refusals) > 2:
                raise AssertionError(f"a refusal named a budget that was refused, too, or none: {refusals}") from error
            budget = int(named[1]) << 20


def compare(seed, folder):
    """Draw a graph, sizes and devices, compute in one process and on workers, and return the names of what differs."""
    import_all()
    rng, folder, devices = np.random.default_rng(seed), folder / f"devices-{seed}", []
    if (edges := drawn_edges(rng, directed := bool(rng.random() < 0.5))) is None:
        return []
    folder.mkdir()
    with setting("vertex-order", str(rng.choice(["original", "degree"]))):
        graph = oocgraph.build_csr(with_long_rows(edges, rng), folder / "graph", weight="weight", directed=directed, duplicates="min")
    calls, wrong = {name: call for name, call in answers(graph, rng, folder).items() if name in NAMES}, []
    expected = {name: np.asarray(call({"resources": Resources(device="cpu", client=False)})) for name, call in calls.items()}
    quiet = {"processes": False, "threads_per_worker": 1, "dashboard_address": None, "scheduler_kwargs": {"dashboard_address": ":0"}}
    with LocalCluster(n_workers=1 + seed % 3, **quiet) as cluster, Client(cluster) as client, ExitStack() as stack:
        draw(stack, rng, devices)

        def found(name, in_runtime, budget):
            asked = {"client": client, "resources": Resources(device="cuda", device_memory_budget=budget)}
            if not in_runtime:
                return calls[name](asked)
            with oocgraph.open_runtime(graph, **asked) as runtime:
                return calls[name]({"runtime": runtime})

        for name in rng.permutation(NAMES).tolist():
            in_runtime = name not in ("spmv", "pagerank") or rng.random() < 0.5
            try:
                values = compute(partial(found, name, in_runtime), rng)
                np.testing.assert_allclose(np.asarray(values), expected[name], rtol=1e-5, atol=1e-9)
            except Exception as error:
                wrong.append(f"{name}: {type(error).__name__}: {' '.join(str(error).split())[:300]}")
    return wrong + ["memory is left on a device"] * any(one.allocated_bytes or one.pinned_bytes for one in devices)


if __name__ == "__main__":
    main(compare, __doc__)
