"""The partitions that one worker holds, loaded with what its two memories leave.

In: a `GraphSpec`, which partitions, and on whose behalf. Out: `PartRuntime` of each, or `DevicePartRuntime` on a worker with a GPU.

A *lease* is one opened runtime of one client: it reserves memory for one search at a time on the partitions it uses. Leases on
the same graph share what is loaded of it; where another graph comes, those that are there give up edges and planes for it.
"""

from __future__ import annotations

import gc
import itertools
import threading
from collections import deque
from collections.abc import Sequence
from typing import Any

from oocgraph.arrays import DeviceChoice
from oocgraph.cluster.ledger import WorkerLedger
from oocgraph.cluster.specs import GraphSpec, LeftError
from oocgraph.cluster.worker_device import WorkerDevice
from oocgraph.cluster.worker_memory import HeldPart, WorkerMemory, device_bytes, loaded
from oocgraph.engine.cpu_engine import BUFFER_BYTES
from oocgraph.engine.device_part import DevicePartRuntime
from oocgraph.engine.device_part_load import DevicePartPlan, DevicePartResidency
from oocgraph.engine.part import PartRuntime
from oocgraph.engine.shard_plan import Loading, ShardPlan
from oocgraph.engine.take_over import Mapped
from oocgraph.errors import BudgetError, ClusterError
from oocgraph.kernels import warm
from oocgraph.partition.vertex_partition import VertexPartition, partition_vertices
from oocgraph.plan.residency import Residency, part_state_bytes
from oocgraph.store.fingerprint import graph_fingerprint
from oocgraph.store.graph import CSRStore, open_graph

REMEMBERED = 1024
"""Searches and leases that have left, the last ones, so that a task of theirs that comes late finds the door shut."""

MOST_NAMED = 8
"""Partitions that a message names one by one."""


class ShardCache:
    """The partitions of one worker. Its lock is taken before that of a partition."""

    def __init__(self, worker: Any, ledger: WorkerLedger) -> None:
        self.worker, self.ledger = worker, ledger
        self.device = WorkerDevice(worker.address)
        self.memory = WorkerMemory(ledger, self.device)
        self._lock = threading.RLock()
        self._loads = itertools.count(1)
        self._left: deque[str] = deque(maxlen=REMEMBERED)
        self._parts: dict[tuple[str, int, int], HeldPart] = {}
        self._charges: dict[tuple[str, int], int] = {}
        self._dealings: dict[tuple[str, int], tuple[CSRStore, VertexPartition]] = {}
        ledger.add(self.reserved_bytes)
        self.device.add(lambda: self.device_bytes_held)

    @property
    def device_bytes_held(self) -> int:
        """Bytes of device memory of the partitions that are here."""
        return sum(device_bytes(part.residency) for part in list(self._parts.values()))

    def reserved_bytes(self) -> int:
        """Bytes of the partitions that are here, and of one search at a time for each lease."""
        parts = list(self._parts.values())
        return sum(list(self._charges.values())) + sum(part.residency.num_bytes + part.mapped_bytes for part in parts)

    def limit_bytes(self, spec: GraphSpec) -> int:
        """Bytes that this worker may hold in all."""
        return self.memory.limit_bytes(spec)

    def acquire(self, lease: str, spec: GraphSpec, partitions: Sequence[int]) -> list[dict[str, Any]]:
        """Reserve memory for one search and load `partitions`, if they are not here already.

        What the lease holds of a graph with other shares is given back first: an opened graph has one vertex partition.

        Returns
        -------
        list of dict
            Of each partition: planes, bytes and imbalance metrics.

        Raises
        ------
        BudgetError
            They do not fit beside what is here; nothing else has changed then.
        DeviceError
            The device cannot be used, or does not give what it says it has.
        """
        with self._lock, self.ledger.lock:
            self.refuse_late(lease)
            self._drop_failed()
            self._leave_others(lease, spec)
            store, vertex_partition = self._deal(spec)
            choice = self.device.choose(spec)
            warm.load_search_kernels(store.attributes.index_dtype, parts=True, device=choice.device is not None)
            if choice.device is not None:
                self.device.reclaim()
                self.device.warm(choice.device, store.index_dtype)
            threads = spec.threads_on(self.worker)
            state_bytes = [part_state_bytes(store.num_rows, n, store.index_dtype.itemsize) for n in vertex_partition.num_owned.tolist()]
            shares = spec.num_partitions > 1 and spec.settings.exchange != "messages"
            loading = Loading(threads, spec.settings.io_threads, BUFFER_BYTES, spec.max_planes, shares_planes=shares)
            charges = {(lease, p): state_bytes[p] for p in partitions}
            plans = {
                (*spec.graph, p): _plan(store, vertex_partition, p, loading, choice)
                for p in partitions
                if (*spec.graph, p) not in self._parts
            }
            if plans and self.ledger.reclaim is not None:
                self.ledger.reclaim(self.limit_bytes(spec))
            for part in self._parts.values() if plans else ():
                part.stop_mapping()  # what comes needs room more
            try:
                try:
                    added = sum(num_bytes - self._charges.get(key, 0) for key, num_bytes in charges.items())
                    residencies = self.memory.share_out(spec, plans, self._parts, added)
                except BudgetError as error:
                    raise BudgetError(
                        f"worker {self.worker.address} cannot take partition {_some(partitions)} of {spec.num_partitions}: {error}; "
                        f"{self.ledger.remedy()}"
                    ) from error
                self._shrink({key: r for key, r in residencies.items() if key in self._parts})
                self._charges.update(charges)
                for key, plan in plans.items():
                    runtime = self._load(spec, plan, residencies[key])
                    self._parts[key] = HeldPart(spec, plan, residencies[key], choice, runtime, next(self._loads))
                    self.refuse_late(lease)
                for p in partitions:
                    self._parts[*spec.graph, p].leases.add(lease)
            finally:
                self._prepare_to_map()
            return [self._metrics(self._parts[*spec.graph, p], p) for p in partitions]

    def _prepare_to_map(self) -> None:
        """Reserve what partitions map of others to take over work, where there is room without giving anything up."""
        for part in self._parts.values():
            if part.runtime is None or part.runtime.common is None or part.mapped is not None:
                continue
            if part.bytes_to_map <= self.limit_bytes(part.spec) - self.ledger.baseline_bytes - self.ledger.reserved_bytes:
                part.mapped, part.mapped_bytes = Mapped(), part.bytes_to_map

    def leave(self, name: str) -> None:
        """Refuse the tasks of a lease or a search from now on."""
        self._left.append(name)

    def refuse_late(self, name: str) -> None:
        """Refuse a task of a lease or a search that has left: it was on its way when the client went."""
        if name in self._left:
            raise LeftError(f"{name} has left worker {self.worker.address}")

    def _deal(self, spec: GraphSpec) -> tuple[CSRStore, VertexPartition]:
        key = spec.graph
        if key not in self._dealings:
            store = open_graph(spec.url, check_pages=spec.check_pages)
            if graph_fingerprint(store) != spec.fingerprint:
                raise ClusterError(
                    f"worker {self.worker.address} sees another graph at {spec.url} than the client; "
                    "give a path that means the same on every machine"
                )
            self._dealings[key] = store, partition_vertices(store, spec.num_partitions, spec.shares)
        return self._dealings[key]

    def _leave_others(self, lease: str, spec: GraphSpec) -> None:
        """Give back what a lease holds of another graph than `spec`, or of this one with other shares."""
        for key, part in list(self._parts.items()):
            if lease in part.leases and key[:2] != spec.graph:
                self._charges.pop((lease, key[2]), None)
                self._leave_part(lease, key, part)
        self._forget_dealings()

    def _leave_part(self, lease: str, key: tuple[str, int, int], part: HeldPart) -> None:
        """Give back a partition; the last of its leases closes it. What is held must be locked."""
        part.leases.discard(lease)
        with part.lock:
            if part.runtime is not None:
                part.runtime.buffers.clear()
            if not part.leases:
                del self._parts[key]
                self._close_part(part)

    def _forget_dealings(self) -> None:
        """Forget who owns which vertices of graphs that are not here any more."""
        used = {key[:2] for key in self._parts}
        self._dealings = {key: value for key, value in self._dealings.items() if key in used}

    def _shrink(self, residencies: dict[Any, Residency]) -> None:
        """Load what is here again, with less."""
        for key, residency in residencies.items():
            part = self._parts[key]
            with part.lock:
                self._close_part(part)
                try:
                    part.runtime = self._load(part.spec, part.plan, residency)
                except BaseException:
                    del self._parts[key]
                    raise
                part.residency = residency
                part.load = next(self._loads)

    def _load(self, spec: GraphSpec, plan: ShardPlan, residency: Residency) -> PartRuntime:
        limit, loading = self.limit_bytes(spec), plan.loading
        if isinstance(plan, DevicePartPlan) and isinstance(residency, DevicePartResidency):
            with self.device.naming():
                return DevicePartRuntime.open(plan, residency, limit, spec.settings)
        assert plan.vertex_partition is not None
        graph = plan.load(residency, limit)
        return PartRuntime(
            plan.store,
            plan.vertex_partition,
            plan.partition,
            graph,
            threads=loading.threads,
            io_threads=loading.io_threads,
            knobs=spec.settings,
        )

    def _drop_failed(self) -> None:
        """Drop the partitions whose device has failed: who still wants one asks for it again, and its state is made from the logs."""
        for key, part in list(self._parts.items()):
            with part.lock:
                if part.runtime is not None and part.runtime.has_failed:
                    self._close_part(part)
                    del self._parts[key]
                    gc.collect()  # what the error and its frames keep of the device

    def _close_part(self, part: HeldPart) -> None:
        """Give back the memory of a partition whose lock is held."""
        runtime, part.runtime = part.runtime, None
        if runtime is not None:
            runtime.close()

    def _metrics(self, part: HeldPart, partition: int) -> dict[str, Any]:
        runtime = loaded(part)
        return {
            "partition": partition,
            "worker": self.worker.address,
            "planes_resident": runtime.planes_resident,
            "in_memory": runtime.graph.push.all_resident,
            "memory_budget": self.limit_bytes(part.spec),
            "resident_bytes": part.residency.num_bytes,
            "device": part.device.device.name if part.device.device is not None else "cpu",
            "device_reason": part.device.reason,
            "device_memory_budget": self.memory.device_limit if part.device.device is not None else 0,
            "device_bytes": device_bytes(part.residency),
            "load_seconds": runtime.graph.load_seconds,
            "num_owned": int(runtime.vertex_partition.num_owned[partition]),
            "num_edges": int(runtime.vertex_partition.num_edges[partition]),
        }


def _plan(store: CSRStore, vertex_partition: VertexPartition, partition: int, loading: Loading, choice: DeviceChoice) -> ShardPlan:
    if choice.device is None:
        return ShardPlan(store, vertex_partition, partition, loading)
    return DevicePartPlan(store, vertex_partition, partition, loading, choice.device)


def _some(partitions: Sequence[int]) -> str:
    """Name a few of many."""
    if len(partitions) <= MOST_NAMED:
        return ", ".join(map(str, partitions))
    return f"{partitions[0]}, {partitions[1]}, ..., {partitions[-1]} ({len(partitions)} of them)"
