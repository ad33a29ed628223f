"""Who holds how much of a worker's two memories: its own, and that of its device.

In: plans of partitions that are here or are to be loaded, and what is reserved for searches. Out: what each may hold. A partition takes
what is left; if that is too little, all get equal shares, and those that are here give up edges and planes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Protocol

from oocgraph.errors import BudgetError
from oocgraph.memory import default_budget_bytes, effective_budget_bytes, host_bytes
from oocgraph.plan.residency import Residency
from oocgraph.runtime.device_part_load import DevicePartPlan, DevicePartResidency, Share
from oocgraph.runtime.part_load import PartPlan
from oocgraph.runtime.specs import GraphSpec
from oocgraph.runtime.worker_device import WorkerDevice

SPILL_MARGIN = 0.05
"""Budget of a worker below the share of its memory at which Dask begins to spill results."""

SPILL_SHARE = 0.7
"""That share where Dask's configuration does not name one."""


class Held(Protocol):
    """A partition that is here."""

    spec: GraphSpec
    plan: PartPlan
    residency: Residency


class WorkerMemory:
    """What a worker may hold, and what it holds beside partitions and searches.

    Attributes
    ----------
    baseline
        Bytes of the process without either, as far as that could be told.
    device_limit
        Bytes of device memory that the worker may hold for those who use it now.
    """

    def __init__(self, worker: Any, device: WorkerDevice) -> None:
        self._worker, self._device = worker, device
        self.baseline = 0
        self.device_limit = 0

    def limit_bytes(self, spec: GraphSpec) -> int:
        """Bytes that this worker may hold in all."""
        return worker_limit_bytes(self._worker, spec.memory_budget if spec.memory_budget is not None else spec.settings.memory_budget)

    def share_out(
        self, spec: GraphSpec, plans: Mapping[Any, PartPlan], held: Mapping[Any, Held], charges: dict[Any, int], reserved: Iterable[int]
    ) -> dict[Any, Residency]:
        """Plan what new partitions hold; if they do not fit beside those that are here, all get equal shares.

        Parameters
        ----------
        plans, held
            New partitions; those that are here.
        charges
            Bytes of all searches, with those to come.
        reserved
            Bytes of the searches before.

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
        here = host_bytes()  # later it cannot be told from what is reserved and not yet touched, so it never falls
        self.baseline = max(self.baseline, here - taken - sum(reserved)) if held else here
        free = limit - self.baseline - sum(charges.values())
        on_device, taken_on_device = self._device_bytes(spec, plans, held)
        if taken <= free:
            try:
                return equal_shares(plans, free - taken, limit, on_device - taken_on_device, on_device)
            except BudgetError:
                if not held:
                    raise
        shares = equal_shares({**{key: part.plan for key, part in held.items()}, **plans}, free, limit, on_device, on_device)
        grown = {key for key, part in held.items() if _is_no_less(shares[key], part.residency)}
        return {key: residency for key, residency in shares.items() if key not in grown}

    def _device_bytes(self, spec: GraphSpec, plans: Mapping[Any, PartPlan], held: Mapping[Any, Held]) -> tuple[int, int]:
        """Bytes of device memory that may be held, as everybody who uses the device has asked, and that are held."""
        taken = sum(device_bytes(part.residency) for part in held.values())
        users: list[tuple[GraphSpec, PartPlan]] = [(spec, plan) for plan in plans.values()] + [
            (part.spec, part.plan) for part in held.values()
        ]
        limits = [self._device.limit_bytes(one, plan.device, taken) for one, plan in users if isinstance(plan, DevicePartPlan)]
        self.device_limit = min(limits, default=0)
        return self.device_limit, taken


def worker_limit_bytes(worker: Any, requested: str | int | None) -> int:
    """Bytes that a worker may hold in all: what was asked for, below the share of its memory at which Dask begins to spill results."""
    import dask.config

    limit = worker.memory_manager.memory_limit
    if not limit:
        return effective_budget_bytes(requested) if requested is not None else default_budget_bytes()
    spill = dask.config.get("distributed.worker.memory.spill", SPILL_SHARE)
    share = (spill if spill else SPILL_SHARE) - SPILL_MARGIN
    most = int(share * limit)
    return most if requested is None else min(most, effective_budget_bytes(requested))


def equal_shares(
    plans: Mapping[Any, PartPlan], available_bytes: int, limit_bytes: int, device_available_bytes: int, device_limit_bytes: int
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
