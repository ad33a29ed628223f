"""The partitions that a worker holds, and how much each of its two memories: its own, and that of its device.

In: plans of partitions that are here or are to be loaded, and what is reserved for searches. Out: what each may hold. A partition takes
what is left; if that is too little, all get equal shares, and those that are here give up edges and planes. What other computations hold is
left to them.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from oocgraph.arrays import DeviceChoice
from oocgraph.cluster.ledger import WorkerLedger
from oocgraph.cluster.specs import GraphSpec, StateLostError
from oocgraph.cluster.worker_device import WorkerDevice
from oocgraph.engine.device_part_load import DevicePartPlan, DevicePartResidency, Share
from oocgraph.engine.part import PartRuntime
from oocgraph.engine.shard_plan import ShardPlan
from oocgraph.engine.take_over import LEAST_PIECES, Mapped
from oocgraph.errors import BudgetError
from oocgraph.plan.residency import Residency, part_state_bytes

LEAST_TOUCHED_BYTES = 4 << 20
"""Bytes of planes that a piece may touch in any case: a job of a millisecond has 10 pieces, not 64."""


@dataclass(slots=True)
class HeldPart:
    """A partition that is loaded, and who uses it.

    Attributes
    ----------
    runtime
        None when it is not loaded any more.
    load
        Number of this load among all of the worker.
    lock
        Held by a step.
    mapped, mapped_bytes
        Memory of other partitions that is mapped to take over their work (None: there is no room for it, or nothing to map), and the
        bytes reserved for it, for all searches together.
    """

    spec: GraphSpec
    plan: ShardPlan
    residency: Residency
    device: DeviceChoice
    runtime: PartRuntime | None
    load: int
    lock: threading.RLock = field(default_factory=threading.RLock)
    leases: set[str] = field(default_factory=set)
    mapped: Mapped | None = None
    mapped_bytes: int = 0
    _plans: dict[int, ShardPlan] = field(default_factory=dict)

    def plan_of(self, partition: int) -> ShardPlan:
        """Return where rows and planes of another partition begin."""
        if partition not in self._plans:
            self._plans[partition] = ShardPlan(self.plan.store, self.plan.vertex_partition, partition, self.plan.loading)
        return self._plans[partition]

    @property
    def planes_to_touch_bytes(self) -> int:
        """Bytes of another partition's planes that a piece may touch: of one like this, in a job of the fewest pieces."""
        return max(LEAST_TOUCHED_BYTES, 2 * self.residency.plane_bytes // LEAST_PIECES)

    @property
    def bytes_to_map(self) -> int:
        """Bytes of another partition's state, of those of its planes that a piece has, and of where the rows of all others are."""
        plan, vertex_partition = self.plan, self.plan.vertex_partition
        assert vertex_partition is not None
        n, most = plan.store.num_rows, int(vertex_partition.num_owned.max())
        lookup_bytes = 0 if plan.lookup is None else 24 * plan.lookup.first.size * (vertex_partition.num_partitions - 1)
        state_bytes = part_state_bytes(n, most, plan.store.index_dtype.itemsize)
        return state_bytes + self.planes_to_touch_bytes + lookup_bytes

    def stop_mapping(self) -> None:
        """Give up what is reserved to take over work."""
        self.mapped, self.mapped_bytes = None, 0
        self._plans.clear()


def loaded(part: HeldPart) -> PartRuntime:
    """Return what is loaded of a partition whose lock is held."""
    if part.runtime is None:
        raise StateLostError(f"partition {part.plan.partition} is not loaded any more")
    return part.runtime


class WorkerMemory:
    """What the partitions of a worker may hold of its two memories.

    Attributes
    ----------
    device_limit
        Bytes of device memory that the worker may hold for those who use it now.
    """

    def __init__(self, ledger: WorkerLedger, device: WorkerDevice) -> None:
        self.ledger, self._device = ledger, device
        self.device_limit = 0

    def limit_bytes(self, spec: GraphSpec) -> int:
        """Bytes that this worker may hold in all."""
        return self.ledger.limit_bytes(spec.requested_memory)

    def share_out(
        self, spec: GraphSpec, plans: Mapping[Any, ShardPlan], held: Mapping[Any, HeldPart], added_bytes: int
    ) -> dict[Any, Residency]:
        """Plan what new partitions hold; if they do not fit beside those that are here, all get equal shares.

        Parameters
        ----------
        plans, held
            New partitions; those that are here.
        added_bytes
            Bytes of the searches to come; those of partitions and searches that are here are in the ledger.

        Returns
        -------
        dict
            Of new partitions, and of those here that hold less from now on.

        Raises
        ------
        BudgetError
            They do not fit.
        """
        limit = self.limit_bytes(spec)
        taken = sum(part.residency.num_bytes for part in held.values())
        free = limit - self.ledger.baseline_bytes - (self.ledger.reserved_bytes - taken) - added_bytes
        on_device, taken_on_device = self._device_bytes(spec, plans, held)
        limit_on_device = self.device_limit
        if taken <= free:
            try:
                return equal_shares(plans, free - taken, limit, on_device - taken_on_device, limit_on_device)
            except BudgetError:
                if not held:
                    raise
        shares = equal_shares({**{key: part.plan for key, part in held.items()}, **plans}, free, limit, on_device, limit_on_device)
        grown = {key for key, part in held.items() if _is_no_less(shares[key], part.residency)}
        return {key: residency for key, residency in shares.items() if key not in grown}

    def _device_bytes(self, spec: GraphSpec, plans: Mapping[Any, ShardPlan], held: Mapping[Any, HeldPart]) -> tuple[int, int]:
        """Bytes of device memory that partitions may hold, as everybody who uses the device has asked, and that they hold."""
        taken = sum(device_bytes(part.residency) for part in held.values())
        users: list[tuple[GraphSpec, ShardPlan]] = [(spec, plan) for plan in plans.values()] + [
            (part.spec, part.plan) for part in held.values()
        ]
        limits = [self._device.limit_bytes(one, plan.device) for one, plan in users if isinstance(plan, DevicePartPlan)]
        self.device_limit = min(limits, default=0)
        return self.device_limit - (self._device.held_bytes - taken), taken


def equal_shares(
    plans: Mapping[Any, ShardPlan], available_bytes: int, limit_bytes: int, device_available_bytes: int, device_limit_bytes: int
) -> dict[Any, Residency]:
    """Divide both memories among some partitions.

    Raises
    ------
    BudgetError
        They do not fit.
    """
    k, on_device = len(plans), sum(isinstance(plan, DevicePartPlan) for plan in plans.values())
    found: dict[Any, Residency] = {}
    for key, plan in plans.items():
        if isinstance(plan, DevicePartPlan):
            host = Share(available_bytes // k, limit_bytes, k)
            found[key] = plan.residency_in(host, Share(device_available_bytes // on_device, device_limit_bytes, on_device))
        else:
            found[key] = plan.residency(available_bytes=available_bytes // k, limit_bytes=limit_bytes, shares=k)
    return found


def device_bytes(residency: Residency) -> int:
    """Bytes that a residency takes of the device's memory."""
    return residency.on_device.device_bytes if isinstance(residency, DevicePartResidency) else 0


def _is_no_less(residency: Residency, other: Residency) -> bool:
    return residency.num_bytes >= other.num_bytes and device_bytes(residency) >= device_bytes(other)
