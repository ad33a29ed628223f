"""The baseline of searches whose edges do not fit in device memory: whole partitions are loaded into it in turn, in every iteration.

In: a graph that a `DeviceRuntime` has opened, all of its edges in pinned host memory. Out: searches of it, with the bytes that cross the
link. The edges are cut into partitions of equal size, two of which have room beside the vertex state; while kernels take the one, the
next is copied. This is the partitioning-based processing that Subway (Sabet et al., EuroSys 2020, section 2) compares itself with.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from oocgraph.engine.device import DeviceRuntime
from oocgraph.engine.device_engine import OnDevice
from oocgraph.errors import OocGraphError
from oocgraph.kernels.gpu import Counter
from oocgraph.kernels.rows import Planes
from oocgraph.results.search import DeviceMetrics

MIN_PARTITION_BYTES = 4096


class SweepRuntime(DeviceRuntime):
    """Searches of an opened graph by sweeps over its partitions; `direction` must be ``pull``. It is closed with `runtime`.

    Parameters
    ----------
    runtime
        The graph, with all edges in host memory. Vertex state, row lookup and kernels are its own, planes and resident edges are not used.

    Attributes
    ----------
    partition_edges, num_partitions
        Edges of a partition: half of what `runtime` has device memory for beside state and row lookup. Partitions of the graph.

    Raises
    ------
    OocGraphError
        Host memory does not hold all edges.
    """

    def __init__(self, runtime: DeviceRuntime) -> None:
        self.__dict__.update(runtime.__dict__)
        pull, residency, dtype = self.graph.pull, runtime.graph.residency, self.kernels.dtype
        if pull.host.size != pull.num_edges:
            raise OocGraphError(f"{self.store.url} is swept from host memory, which holds {pull.host.size:,} of {pull.num_edges:,} edges")
        room: int = residency.plane_bytes + residency.resident_bytes + residency.staging_bytes
        self.partition_edges = max(MIN_PARTITION_BYTES, room // 2) // dtype.itemsize
        self.num_partitions = -(-pull.num_edges // self.partition_edges)
        device = self.device
        self._buffers = [device.empty(self.partition_edges, dtype) for _ in range(2)]
        self._copies = device.stream()
        self._copied, self._taken = ([device.event() for _ in range(2)] for _ in range(2))
        offset, length = device.empty(1, np.int64), device.empty(1, np.int64)
        self.staged.upload(np.zeros(1, np.int64), offset)
        self.staged.upload(np.full(1, self.store.num_rows, np.int64), length)
        self._no_planes = Planes(device.empty(0, dtype), offset, length)

    def pull_heads(self, state: OnDevice) -> int:
        """Let every unvisited vertex be undecided; returns how many there are."""
        a, pull = state.arrays, self.graph.pull
        with self.naming(state):
            self._stale.pop(id(a.found), None)
            self.kernels.pull_heads(
                0, a.visited.size, state.num_vertices, pull.lookup, *self._no_planes, pull.resident[:0], 0,
                a.frontier, a.visited, a.undecided, a.found, state.marks,
            )  # fmt: skip
            return int(self.kernels.read()[Counter.UNDECIDED])

    def pull_tails(self, state: OnDevice) -> int:
        """Load one partition after the other, and pull over it."""
        a, pull, device, stream = state.arrays, self.graph.pull, self.device, self.kernels.stream
        with self.naming(state):
            for number in range(self.num_partitions):
                at, first = number % 2, number * self.partition_edges
                edges = pull.host[first : first + self.partition_edges]
                buffer = self._buffers[at][: edges.size]
                device.wait(self._copies, self._taken[at])
                device.copy(edges, buffer, self._copies)
                device.record(self._copied[at], self._copies)
                device.wait(stream, self._copied[at])
                self.kernels.pull_lists(pull.lookup, 0, buffer, first, a.frontier, a.visited, a.undecided, a.found, state.marks)
                device.record(self._taken[at], stream)
                self._link_bytes += edges.nbytes
        return 0

    def moved(self) -> DeviceMetrics:
        """Return what this iteration has moved to the device."""
        moved = super().moved()
        return replace(moved, access="sweep: every partition in turn", num_pieces=self.num_partitions) if moved.link_bytes else moved

    def close(self) -> None:
        """Do nothing: the graph is closed with the runtime that has opened it."""


def sweep_metrics(sweep: SweepRuntime) -> dict[str, Any]:
    """Return what a sweep holds on the device beside the state."""
    return {"num_partitions": sweep.num_partitions, "partition_bytes": sweep.partition_edges * sweep.kernels.dtype.itemsize}
