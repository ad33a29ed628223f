"""Where a search in this process runs: on the processor, or on a GPU."""

from __future__ import annotations

import logging
import os
from typing import TYPE_CHECKING, Any

from oocgraph.arrays import Device, DeviceKind, device_choice
from oocgraph.config import settings
from oocgraph.errors import BudgetError, OocGraphError
from oocgraph.store.graph import CSRStore

if TYPE_CHECKING:
    from oocgraph.engine.device import DeviceRuntime
    from oocgraph.engine.local import LocalRuntime

logger = logging.getLogger(__name__)


def open_runtime(
    graph: CSRStore | str | os.PathLike[str],
    *,
    device: DeviceKind | Device | None = None,
    device_memory_budget: str | int | None = None,
    **options: Any,
) -> LocalRuntime | DeviceRuntime:
    """Load a graph for many searches, where `device` says.

    Parameters
    ----------
    graph
        A graph store or its path.
    device
        ``auto``, ``cpu`` or ``cuda`` (see `oocgraph.bfs`); by default as configured. Or a device that is open. ``auto`` is the processor,
        too, where a budget that the device needs is too small, unless `device_memory_budget` is given.
    device_memory_budget
        Bytes of device memory (text such as ``4G``); by default most of what is free.
    **options
        Of `LocalRuntime.open` and `DeviceRuntime.open`: ``memory_budget``, ``threads``, ``io_threads``, ``max_planes``, ``check_pages``,
        ``progress``.

    Raises
    ------
    DeviceError
        ``cuda``, and no GPU can be used.
    OocGraphError
        Device memory was given, and no GPU can be used.
    """
    kind = None
    if device is None or isinstance(device, str):
        kind = device or settings().device
        opened, reason = device_choice(kind)
        logger.info("device: %s (%s)", "cpu" if opened is None else opened.name, reason)
    else:
        opened, reason = device, "it was given"
    if opened is not None:
        from oocgraph.engine.device import DeviceRuntime

        try:
            return DeviceRuntime.open(graph, device=opened, device_memory_budget=device_memory_budget, **options)
        except BudgetError as error:
            if kind != "auto" or device_memory_budget is not None:
                raise
            logger.warning("device: cpu, because what %s has does not do for this graph: %s", opened.name, error)
    elif device_memory_budget is not None:
        raise OocGraphError(f"device_memory_budget (--device-memory) was given, but the search would run on the processor: {reason}")
    from oocgraph.engine.local import LocalRuntime

    return LocalRuntime.open(graph, **options)
