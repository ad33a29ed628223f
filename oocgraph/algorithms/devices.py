"""Whether a computation is made on the GPUs of this machine or on its processor.

In: resources, where its graph is open, and what computes on devices. Out: what that has made; None: the processor is to do it.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import TypeVar

from oocgraph.arrays import Device, DeviceKind, Work, device_choice, devices_choice
from oocgraph.config import settings
from oocgraph.engine.fallback import processor_instead
from oocgraph.engine.opened import Opened, OpenedGraph, Unopened
from oocgraph.errors import ArgumentError, BudgetError
from oocgraph.resources import Resources

logger = logging.getLogger(__name__)

Made = TypeVar("Made")


def on_devices(
    what: str, opened: Opened | Unopened, asked: Resources,
    compute: Callable[[Sequence[Device], str | int | None], Made], *, work: Callable[[], Work], alone: bool = False,
) -> Made | None:  # fmt: skip
    """Compute on GPUs where they are to be used; None: on the processor.

    Parameters
    ----------
    what
        Name of the computation, in messages.
    opened
        A graph that is open on the processor is computed there; of one that is open on a GPU, that GPU is the first.
    asked
        Device, and memory of each.
    compute
        Called with the devices and the memory that is asked for.
    work
        Says what is to be done, where a GPU would have to be started for it.
    alone
        Use one GPU, not all.

    Raises
    ------
    BudgetError
        They have too little memory, and were asked for.
    ArgumentError
        Device memory was given, and the processor computes.
    """
    kind, given = asked.device or settings().device, asked.device_memory_budget
    devices, reason = _chosen(kind, opened, work if given is None else None, alone=alone)
    logger.info("device: %s (%s)", ", ".join(one.name for one in devices) or "cpu", reason)
    if devices:
        try:
            return compute(devices, given if given is not None else settings().device_memory_budget)
        except BudgetError as error:
            processor_instead(what, devices[0], error, kind=kind, device_memory_budget=given)
    elif given is not None:
        raise ArgumentError(f"device_memory_budget is given, but the {what} would run on the processor: {reason}")
    return None


def _chosen(
    kind: DeviceKind, opened: Opened | Unopened, work: Callable[[], Work] | None, *, alone: bool
) -> tuple[tuple[Device, ...], str]:  # fmt: skip
    """Open the devices of a computation, and say why it is these; none for the processor."""
    ordinal = None
    if isinstance(opened, OpenedGraph):
        if opened.device is None:
            return (), "the graph is open on the processor"
        ordinal, work = opened.device.ordinal, None
    if not alone:
        return devices_choice(kind, ordinal=ordinal, work=work)
    device, reason = device_choice(kind, ordinal=ordinal, work=work)
    return () if device is None else (device,), reason
