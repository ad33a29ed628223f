"""Many tiny levels in one launch, on a device: one block pushes them, and the host hears of all of them at once.

In: a search whose frontier is tiny and listed in a queue. Out: its state after the last level that was tiny, or that it was to find. What
the kernel receives goes to the device in one copy, and its answer, with the log of the first levels, comes back in one.
"""

from __future__ import annotations

import time

import numpy as np

from oocgraph.arrays import Device
from oocgraph.engine.cpu_engine import TinyLimits
from oocgraph.engine.device_graph import DeviceAdjacency
from oocgraph.engine.device_state import DeviceState
from oocgraph.kernels import cpu
from oocgraph.kernels.gpu import GpuKernels
from oocgraph.types import LEVEL_UNREACHED, Array

TINY = TinyLimits(vertices=4096, edges=16384)
"""Frontiers that one block pushes, many levels in one launch; a launch and its answer cost about what 16,384 edges cost one block."""

LOG_LEVELS, USUAL_LEVELS = 4096, 64
"""Levels in one such launch, and those whose log comes to the host along with the answer."""

LEVEL_SLOTS = 8
"""Arguments of such a launch, and what it leaves for the next."""


class TinyLevels:
    """Queues, limits and log of such launches, made once.

    Attributes
    ----------
    queues : two of (TINY.edges,) index dtype
        In device memory: the frontier is in the first when a launch begins.
    """

    def __init__(self, device: Device, kernels: GpuKernels) -> None:
        self._device, self._kernels = device, kernels
        self.queues = device.empty(TINY.edges, kernels.dtype), device.empty(TINY.edges, kernels.dtype)
        numbers = device.empty(2 * LEVEL_SLOTS + 2 * LOG_LEVELS, np.int64)
        self._asked = numbers[: 2 * LEVEL_SLOTS]
        self._limits, self._state, self._log = numbers[:LEVEL_SLOTS], numbers[LEVEL_SLOTS : 2 * LEVEL_SLOTS], numbers[2 * LEVEL_SLOTS :]
        self._answer, self._rest = numbers[LEVEL_SLOTS : 2 * (LEVEL_SLOTS + USUAL_LEVELS)], numbers[2 * (LEVEL_SLOTS + USUAL_LEVELS) :]
        pinned = device.pinned(8 * (numbers.size + LEVEL_SLOTS)).view(np.int64)
        self._host_asked, self._host_answer = pinned[: 2 * LEVEL_SLOTS], pinned[2 * LEVEL_SLOTS :]

    def push(self, state: DeviceState, push: DeviceAdjacency, edges: Array, last_level: int) -> bool:
        """Push level after level of `edges`; marks what is the frontier then, and returns whether it is a larger one; counters are 0."""
        kernels, a = self._kernels, state.arrays
        last_of_form = np.iinfo(np.int32).max if state.wide else LEVEL_UNREACHED - 1
        counts = [state.frontier_size, state.frontier_edges, state.level, 0, 0, 0, 0, 0]
        while True:
            began = time.perf_counter()
            self._host_asked[:] = [last_level, TINY.edges, 0, last_of_form, 0, TINY.vertices, 0, 0, *counts]
            self._device.copy(self._host_asked, self._asked, kernels.stream)
            kernels.push_levels(self.queues, self._state, self._limits, self._log, push.lookup, *push.heads, edges, a.visited, state.marks)
            counts, log = self._wait()
            log[:, 3] = 1e9 * (time.perf_counter() - began) / max(1, len(log))
            state.counts[:] = counts[:7]
            state.take_log(log, 0, 0.0)
            if counts[7] != cpu.STATUS_LOG_FULL:
                break
            counts[4] = 0
        kernels.clear_all(a.frontier, kernels.counters)
        kernels.add_vertices(self.queues[counts[6]], state.frontier_size, a.frontier)
        return counts[7] != cpu.STATUS_DONE

    def _wait(self) -> tuple[list[int], Array]:
        """Wait for a launch; returns its state, and its log as `SearchProgress.take_log` wants it."""
        device, stream, host = self._device, self._kernels.stream, self._host_answer
        device.copy(self._answer, host[: self._answer.size], stream)
        device.synchronize(stream)
        counts = host[:LEVEL_SLOTS].tolist()
        used = int(counts[4])
        if used > USUAL_LEVELS:
            device.copy(self._rest, host[self._answer.size :], stream)
            device.synchronize(stream)
        log = np.zeros((used, 4), np.int64)
        log[:, :2] = host[LEVEL_SLOTS : LEVEL_SLOTS + 2 * used].reshape(-1, 2)
        return counts, log
