"""Who holds how much of a worker's two memories: its own, and that of its device.

In: plans of partitions that are here or are to be loaded, and what is reserved for searches. Out: what each may hold. A partition takes
what is left; if that is too little, all get equal shares, and those that are here give up edges and planes. What other computations hold is
left to them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from oocgraph.cluster.ledger import WorkerLedger
from oocgraph.cluster.specs import GraphSpec
from oocgraph.cluster.worker_device import WorkerDevice
from oocgraph.engine.device_part_load import DevicePartPlan, DevicePartResidency, Share
from oocgraph.engine.shard_plan import ShardPlan
from oocgraph.errors import BudgetError
from oocgraph.plan.residency import Residency


class Held(Protocol):
    """A partition that is here."""

    spec: GraphSpec
    plan: ShardPlan
    residency: Residency


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
        return self.ledger.limit_bytes(spec.memory_budget if spec.memory_budget is not None else spec.settings.memory_budget)

    def share_out(
        self, spec: GraphSpec, plans: Mapping[Any, ShardPlan], held: Mapping[Any, Held], added_bytes: int
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

    def _device_bytes(self, spec: GraphSpec, plans: Mapping[Any, ShardPlan], held: Mapping[Any, Held]) -> tuple[int, int]:
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
