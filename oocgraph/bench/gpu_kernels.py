"""Kernels of a search on a GPU, each by itself: ways to gather neighbours, a pull over all planes, the making of a dependency subgraph.

In: a graph that is loaded on a device. Out: seconds by the device's own events, bytes moved, and whether the result is right.
"""

from __future__ import annotations

import statistics
import time
from functools import partial
from typing import Any

import numpy as np

from oocgraph.algorithms.bfs import bfs
from oocgraph.arrays import Device
from oocgraph.bench.gpu_rates import event_seconds
from oocgraph.engine.device import DeviceRuntime
from oocgraph.engine.device_levels import TINY
from oocgraph.engine.device_state import DeviceState, num_words
from oocgraph.engine.transfers import TRANSFER_BYTES, Transfers
from oocgraph.kernels.gpu import EVERY_EDGE, HYBRID, SCAN, SERIAL, WARP, Counter, GpuKernels, Lookup
from oocgraph.plan.device_residency import subgraph_bytes
from oocgraph.subgraph.dependency import DependencySubgraph
from oocgraph.types import LEVEL_UNREACHED, Array

METHODS = {"serial": SERIAL, "warp": WARP, "scan": SCAN, "hybrid": HYBRID}
"""``hybrid`` is Scan + Warp + CTA, ``serial`` one thread for each vertex."""

LAUNCHES = 7
"""Launches of a kernel; the median of all but the first counts."""

SCANS = 20
"""Pulls over the planes between two events: each takes a tenth of a millisecond."""

WIDEST_LEVELS = 8
"""Number of the largest levels among which the frontier with the most edges is chosen."""

ACTIVE_SHARE = 0.1


def measure_methods(runtime: DeviceRuntime, source: Any, vertex: int) -> list[dict[str, Any]]:
    """Push the frontier with the most vertices of a search, and the one with the most edges, by each method.

    Parameters
    ----------
    runtime
        All edges are in device memory.
    source, vertex
        User id and store number of where the search starts.
    """
    levels = bfs(runtime.store, source, runtime=runtime).search.level
    unreached = LEVEL_UNREACHED if levels.dtype == np.uint8 else -1
    sizes = np.bincount(levels[levels != unreached])[:-1]  # nothing is behind the last level
    if not sizes.size:
        return []
    state = runtime.start(np.array([vertex]))
    edges = {}
    for level in np.argsort(sizes)[::-1][:WIDEST_LEVELS].tolist():
        _set_frontier(runtime, state, levels, unreached, level)
        edges[level] = state.frontier_edges
    chosen = [int(np.argmax(sizes)), max(edges, key=edges.__getitem__)]
    return [_measure_frontier(runtime, state, levels, unreached, level) for level in dict.fromkeys(chosen)]


def _set_frontier(runtime: DeviceRuntime, state: DeviceState, levels: Array, unreached: int, level: int) -> None:
    """Let the vertices of a level be the frontier, and those up to it visited."""
    words = state.arrays.visited.size
    runtime.staged.upload(bitmap(levels == level, words), state.arrays.frontier)
    runtime.staged.upload(bitmap((levels <= level) & (levels != unreached), words), state.arrays.visited)
    state.level = level
    runtime.kernels.reset()
    runtime.measure_frontier(state)


def _measure_frontier(runtime: DeviceRuntime, state: DeviceState, levels: Array, unreached: int, level: int) -> dict[str, Any]:
    _set_frontier(runtime, state, levels, unreached, level)
    visited = runtime.device.empty(state.arrays.visited.size, np.uint64)
    runtime.kernels.copy(state.arrays.visited, visited)
    expected = bitmap(levels == level + 1, visited.size)
    seconds, wrong = {}, []
    for name, method in METHODS.items():
        seconds[name] = statistics.median([_push(runtime, state, visited, method) for _ in range(LAUNCHES)][1:])
        if not np.array_equal(runtime.staged.download(state.arrays.pushed), expected):
            wrong.append(name)
    return {
        "level": level + 1,
        "frontier": state.frontier_size,
        "frontier_edges": state.frontier_edges,
        **{f"{name}_seconds": one for name, one in seconds.items()},
        "serial_to_hybrid": seconds["serial"] / seconds["hybrid"],
        "best_other_to_hybrid": min(seconds["warp"], seconds["scan"]) / seconds["hybrid"],
        "wrong": wrong,
    }


def _push(runtime: DeviceRuntime, state: DeviceState, visited: Array, method: int) -> float:
    """Push the frontier, always from the same state; return the seconds of the kernel."""
    kernels, rows, push, a, device = runtime.kernels, runtime.subgraph, runtime.graph.push, state.arrays, runtime.device
    queue = device.empty(TINY.edges, kernels.dtype)
    kernels.copy(visited, a.visited)
    kernels.fill(a.found, 0)
    kernels.reset()
    rows.activate(a.frontier)
    seconds = 0.0
    for row0 in range(0, state.frontier_size, rows.capacity):
        rows.ask(push.lookup, row0=row0)
        launch = partial(
            kernels.push_rows, rows.vertex, rows.start, rows.offset, 0, EVERY_EDGE, push.resident, 0, a.closed, a.pushed, runtime.owners,
            state.marks, queue, num_edges=state.frontier_edges, method=method,
        )  # fmt: skip
        seconds += event_seconds(device, kernels.stream, launch)
    return max(seconds, 1e-9)


def measure_plane_scan(runtime: DeviceRuntime, vertex: int) -> dict[str, Any] | None:
    """Pull over all planes with an empty frontier and nothing visited: every entry is read, nothing is found; None without planes.

    The bytes that it must touch: the planes once, the bitmaps of what is visited and of the frontier, those of what is found and left.
    """
    kernels, pull, device = runtime.kernels, runtime.graph.pull, runtime.device
    if not pull.num_planes:
        return None
    state = runtime.start(np.array([vertex]))
    a = state.arrays
    for words in (a.frontier, a.visited):
        kernels.fill(words, 0)

    def scan() -> None:
        for _ in range(SCANS):
            kernels.pull_heads(
                0, a.visited.size, state.num_vertices, pull.lookup, *pull.heads, pull.resident[:0], 0,
                a.frontier, a.visited, a.undecided, a.found, state.marks,
            )  # fmt: skip

    seconds = [event_seconds(device, kernels.stream, scan) / SCANS for _ in range(LAUNCHES)]
    num_bytes = int(pull.heads.edges.nbytes) + 4 * 8 * int(a.visited.size)
    median = max(statistics.median(seconds[1:]), 1e-9)
    return {"planes": pull.num_planes, "touched_bytes": num_bytes, "seconds": median, "bytes_per_second": num_bytes / median}


def measure_preparation(device: Device, kernels: GpuKernels, num_vertices: int, lookup: Lookup | None = None) -> dict[str, Any] | None:
    """Make a dependency subgraph of a random tenth of the vertices: list them, find their rows, sum the degrees, copy the counts back.

    Parameters
    ----------
    lookup
        Of the rows; by default that of a power law, of which half of the vertices have one edge.

    Returns
    -------
    dict
        ``seconds`` from the host's first call to the counts on the host; ``kernel_seconds`` by events. None: the device has no room.
    """
    words = num_words(num_vertices)
    mask = np.random.default_rng(1).integers(0, round(1 / ACTIVE_SHARE), num_vertices, np.uint8) == 0
    count = int(np.count_nonzero(mask))
    if not count or subgraph_bytes(num_vertices, kernels.dtype.itemsize, count) + 8 * words + TRANSFER_BYTES > device.free_bytes():
        return None
    transfers = Transfers(device, kernels.stream)

    def brought(values: Array) -> Array:
        target = device.empty(values.size, values.dtype)
        transfers.upload(values, target)
        return target

    active = brought(bitmap(mask, words))
    rows = DependencySubgraph(device, kernels, words, count)
    of_rows = Lookup(*map(brought, power_law(num_vertices))) if lookup is None else lookup
    transfers.close()
    start, stop = device.event(), device.event()
    seconds, kernel_seconds, counts = [], [], np.empty(0, np.int64)
    for _ in range(LAUNCHES):
        kernels.reset()
        device.synchronize(kernels.stream)
        began = time.perf_counter()
        device.record(start, kernels.stream)
        rows.activate(active)
        rows.ask(of_rows)
        device.record(stop, kernels.stream)
        counts = kernels.read()
        seconds.append(time.perf_counter() - began)
        kernel_seconds.append(device.seconds(start, stop))
    return {
        "num_vertices": num_vertices,
        "num_active": count,
        "num_rows": int(counts[Counter.NUM_ROWS]),
        "num_edges": int(counts[Counter.NUM_EDGES]),
        "seconds": statistics.median(seconds[1:]),
        "kernel_seconds": statistics.median(kernel_seconds[1:]),
    }


def power_law(num_vertices: int, most: int = 2048) -> tuple[Array, Array, Array, Array]:
    """Return the row lookup of a degree-ordered graph in which one vertex in d + 1 has more than d edges.

    Examples
    --------
    >>> indptr, first, edge, value = power_law(12, most=3)
    >>> first.tolist(), value.tolist(), edge.tolist()
    ([0, 4, 6], [3, 2, 1], [0, 12, 16])
    """
    value = np.arange(most, 0, -1, dtype=np.int64)
    first = np.where(value == most, 0, num_vertices // (value + 1))
    counts = np.diff(np.append(first, num_vertices))
    value, first, counts = value[counts > 0], first[counts > 0], counts[counts > 0]
    edge = np.concatenate([[0], np.cumsum(counts * value)[:-1]])
    return np.empty(0, np.int64), first, edge, value


def bitmap(mask: Array, words: int) -> Array:
    """Return a bitmap of `words` 64-bit words whose bit v is ``mask[v]``.

    Examples
    --------
    >>> bitmap(np.array([True, False, True]), 1).tolist()
    [5]
    """
    out = np.zeros(8 * words, np.uint8)
    packed = np.packbits(mask, bitorder="little")
    out[: packed.size] = packed
    return out.view(np.uint64)
