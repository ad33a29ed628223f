"""Partitions on devices, in this process: what `tests.engine.parts` runs, with random small residencies of both memories."""

from __future__ import annotations

import dataclasses

import numpy as np

from oocgraph.arrays import DeviceChoice
from oocgraph.cluster import worker_device
from oocgraph.config import settings
from oocgraph.engine.device_part import DevicePartRuntime
from oocgraph.engine.device_part_load import DevicePartPlan, Share
from oocgraph.engine.shard_plan import Loading
from oocgraph.partition.vertex_partition import partition_vertices
from tests.cuda_on_cpu.device import CpuDevice
from tests.engine.parts import GENEROUS

HOST = Share(GENEROUS, GENEROUS, 1)


def cramped(planned, seed):
    """Return plans of a random small part of planes and edges on either side, and of small batches and buffers."""

    def residency(plan, host, device):
        rng, sizes = np.random.default_rng([seed, plan.partition]), plan.device_sizes()
        found = planned(plan, host, device)
        on_device = dataclasses.replace(
            found.on_device,
            num_planes=int(rng.integers(0, len(sizes.plane_edges))),
            num_resident=tuple(int(rng.integers(0, m + 1)) for m in sizes.num_edges),
            row_capacity=1 + int(sizes.num_vertices // rng.choice([1, 3, 20])),
            buffer_bytes=int(rng.choice([4096, 8192, 1 << 20])),
        )
        kind = rng.integers(3)
        return dataclasses.replace(
            found,
            num_resident=tuple([0, m, int(rng.integers(0, m + 1))][kind] for m in sizes.num_edges),
            cache_slots=int(rng.integers(1, 9)),
            road=bool(seed % 2),  # of the graph, not of a partition
            on_device=on_device,
        )

    return residency


def open_device_parts(store, num_partitions, device, *, cramp=None, check_pages=False):
    """Load every partition on one device, each with an equal share of it; `cramp` (a seed) keeps a random small part in memory."""
    vertex_partition = partition_vertices(store, num_partitions)
    store = store.checked(check_pages)
    loading = Loading(threads=1, io_threads=2, buffer_bytes=1 << 16, max_planes=None)
    share = Share(device.free_bytes() // num_partitions, device.free_bytes(), num_partitions)
    planned = DevicePartPlan.residency_in if cramp is None else cramped(DevicePartPlan.residency_in, cramp)
    plans = [DevicePartPlan(store, vertex_partition, p, loading, device) for p in range(num_partitions)]
    return [DevicePartRuntime.open(plan, planned(plan, HOST, share), GENEROUS, settings()) for plan in plans]


opened: list[CpuDevice] = []
"""Devices that `use_shim` has opened in this process."""


def use_shim(**options):
    """Let workers in this process, or the worker that runs this, search on the CPU as if it was a GPU; returns what it replaces."""
    before = worker_device.open_device

    def open_device(kind):
        opened.append(CpuDevice(**options))
        return DeviceChoice(opened[-1], f"{kind}: a shim")

    worker_device.open_device = open_device
    return before
