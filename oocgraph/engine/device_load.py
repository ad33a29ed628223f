"""Loads a whole graph for searches on a device: plans what is where, charges both budgets, reads.

In: a store, a device, a budget of its memory and one of the host's. Out: a `Shard` whose adjacencies are on the device.
"""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any

import numpy as np

from oocgraph.arrays import Device
from oocgraph.config import parse_bytes
from oocgraph.engine import resident as host
from oocgraph.engine.device_graph import (
    READ_BYTES,
    UPLOAD_BYTES,
    DeviceAdjacency,
    Uploader,
    upload_lookup,
    upload_planes,
    upload_pointers,
)
from oocgraph.engine.shard import Shard, close_files
from oocgraph.errors import BudgetError
from oocgraph.kernels.rows import Planes, RowLookup
from oocgraph.memory import SLACK_BYTES, Budget, format_bytes, page_cache_bytes
from oocgraph.plan.device_residency import host_least_bytes, plan_device_residency
from oocgraph.plan.residency import GraphSizes
from oocgraph.pool import Pool
from oocgraph.store.arrays import PlainArray, StoredArray
from oocgraph.store.degrees import plane_lengths
from oocgraph.store.gather import EdgeFiles, checksum_bytes
from oocgraph.store.graph import CSRStore
from oocgraph.store.row_gatherer import held_window_bytes
from oocgraph.store.row_lookup import sorted_lookup
from oocgraph.types import Array, Progress, ignore_progress

LOCKING = "page-locking host memory"
"""Phase of loading; bytes, of one group's edges."""

HOST_READ_BYTES = 64 << 20
"""Read into host memory between two reports of progress."""

DEFAULT_SHARE = 0.9
"""Of the device memory that is free, when the user gives no budget."""


def device_limit_bytes(device: Device, requested: str | int | None, *, held_bytes: int = 0, sharers: int = 1) -> int:
    """Return the budget of device memory: what the user asks for, or most of what is free.

    Parameters
    ----------
    held_bytes
        What the budget covers already of what is not free.
    sharers
        Processes that use the device, each with as much.

    Raises
    ------
    BudgetError
        More was asked for than is free.
    """
    free = device.free_bytes() + held_bytes
    if requested is None:
        return int(DEFAULT_SHARE * min(free, device.total_bytes // sharers))
    wanted = parse_bytes(requested)
    if wanted > free:
        raise BudgetError(
            f"the device memory budget is {format_bytes(wanted)}, but {format_bytes(free)} of {format_bytes(device.total_bytes)} are free "
            f"on {device.name}; set device_memory_budget to less, or end other programs that use the device"
        )
    return wanted


def host_fixed_bytes(num_vertices: int, itemsize: int, *, io_threads: int, buffer_bytes: int, window_bytes: int = 0) -> int:
    """Host bytes of a search on a device beside pinned memory: the result, reading threads, upload, the interpreter's slack."""
    reading = io_threads * (buffer_bytes + window_bytes)
    return num_vertices * (itemsize + 4) + num_vertices // 8 + reading + 2 * UPLOAD_BYTES + SLACK_BYTES


def load_device_graph(
    store: CSRStore, device: Device, budget: Budget, *, device_limit: int, threads: int, io_threads: int, buffer_bytes: int,
    max_planes: int | None, max_host_edges: int | None, max_results: int | None = None, progress: Progress = ignore_progress,
) -> Shard[DeviceAdjacency]:  # fmt: skip
    """Plan, charge to `budget` what the host holds, and read; `progress` is called with bytes of edges in host memory.

    Raises
    ------
    BudgetError
        Before anything is read: one of the budgets is too small.
    CorruptStoreError
        A chunk is missing or truncated, or a page differs from its checksum.
    DeviceError
        The device does not give what the plan asks for.
    """
    began = time.perf_counter()
    groups = ["out", "in"] if store.attributes.directed else ["out"]
    indices = [store.array(f"{group}/indices") for group in groups]
    is_sorted = store.attributes.vertex_order == "degree"
    lookups = {group: sorted_lookup(host.for_loading(store)) for group in groups if group == store.pull_group and is_sorted}
    sizes = device_sizes(store, indices, lookups)
    windows = max(held_window_bytes(array) for array in indices)
    fixed = host_fixed_bytes(store.num_rows, sizes.itemsize, io_threads=io_threads, buffer_bytes=buffer_bytes, window_bytes=windows)
    checksums = sum(checksum_bytes(array) for array in indices)
    at_least = "results, reading threads and page-locked staging"
    budget.reserve(at_least, fixed + checksums + host_least_bytes(sizes))  # so that the budget it names works
    budget.check_alternatives()
    budget.release(at_least)
    budget.reserve("results and reading threads", fixed + checksums)
    residency = plan_device_residency(
        sizes,
        available_bytes=device_limit,
        limit_bytes=device_limit,
        host_available_bytes=budget.available_bytes,
        host_limit_bytes=budget.limit_bytes,
        max_planes=max_planes,
        max_host_edges=max_host_edges,
        max_results=max_results,
    )
    budget.reserve("pinned staging", residency.host_staging_bytes)
    budget.reserve("pinned results", residency.host_result_bytes)
    budget.reserve("pinned edges", residency.host_edge_bytes)
    held: list[DeviceAdjacency] = []
    try:
        with Pool(max(2, threads), "oocgraph-load") as pool, Uploader(device, pool) as uploader:
            for group, array, num_resident, num_host in zip(groups, indices, residency.num_resident, residency.num_host, strict=True):
                num_planes = residency.num_planes if group == store.pull_group else 0
                held.append(
                    _load(
                        store, device, uploader, pool, group, array, lookups.get(group), num_planes, num_resident, num_host,
                        limit_bytes=budget.limit_bytes, progress=progress,
                    )
                )  # fmt: skip
    except BaseException:
        close_files(held)
        raise
    return Shard(held[0], held[-1], residency, time.perf_counter() - began)


def device_sizes(store: CSRStore, indices: list[StoredArray], lookups: dict[str, Any]) -> GraphSizes:
    """Return what the plan needs to know of a whole graph; `lookups` are those of the groups without explicit row starts."""
    sizes = host.graph_sizes(store, indices, lookups)
    return replace(sizes, lookup_bytes=sizes.indptr_bytes + sum(part.nbytes for lookup in lookups.values() for part in lookup) + 4096)


def _load(
    store: CSRStore, device: Device, uploader: Uploader, pool: Pool, group: str, array: StoredArray,
    lookup: RowLookup | None, num_planes: int, num_resident: int, num_host: int, *, limit_bytes: int, progress: Progress,
) -> DeviceAdjacency:  # fmt: skip
    """Bring one direction to the device and to pinned memory."""
    verified = host.for_loading(store)
    heads = _load_planes(verified, device, uploader, group, num_planes, lookup)
    loading = verified.array(array.name)
    resident = uploader.first(loading, num_resident)
    pinned = _read_pinned(device, loading, num_host, pool, progress)
    mapped, files = device.mapped(pinned), None
    rows = upload_pointers(uploader, verified.array(f"{group}/indptr")) if lookup is None else upload_lookup(uploader, lookup)
    if max(num_resident, num_host) < array.length and isinstance(array, PlainArray):  # last: what fails before leaves no file open
        on_disk = (array.length - num_resident) * array.dtype.itemsize
        files = EdgeFiles(array, stream_direct=on_disk > page_cache_bytes(limit_bytes))
    return DeviceAdjacency(array, rows, heads, resident, files, store.num_rows, host=pinned, mapped=mapped)


def _read_pinned(device: Device, array: StoredArray, num_edges: int, pool: Pool, progress: Progress) -> Array:
    """Read the first edges into page-locked memory. Locking is one call, of some seconds for tens of gigabytes."""
    dtype = array.dtype.newbyteorder("=")
    num_bytes, step = num_edges * dtype.itemsize, max(1, HOST_READ_BYTES // dtype.itemsize)
    if num_bytes:
        progress(LOCKING, 0, num_bytes)
    pinned = device.pinned(num_bytes).view(dtype)
    if num_bytes:
        progress(LOCKING, num_bytes, num_bytes)
    for a in range(0, num_edges, step):
        host.read_into(array, a, pinned[a : a + step], pool, READ_BYTES)
        progress(f"reading {array.name} into host memory", min(a + step, num_edges) * dtype.itemsize, num_bytes)
    return pinned


def _load_planes(store: CSRStore, device: Device, uploader: Uploader, group: str, num_planes: int, lookup: RowLookup | None) -> Planes:
    dtype = store.index_dtype
    if lookup is None or not num_planes:
        return upload_planes(device, uploader, np.full(1, store.num_rows, np.int64), dtype, lambda _k, _target: None)
    stored = store.array(f"{group}/planes/indices")
    starts = store.plane_offsets
    lengths = plane_lengths(lookup.value, lookup.first, store.num_rows, num_planes)
    return upload_planes(device, uploader, lengths, dtype, lambda k, target: uploader.stored(stored, int(starts[k]), target))
