"""Where a search in this process runs: on the processor, or on a GPU."""

from __future__ import annotations

import logging
import os
from typing import TYPE_CHECKING, Any

from oocgraph.arrays import Device, DeviceKind, device_choice
from oocgraph.config import settings
from oocgraph.errors import OocGraphError
from oocgraph.store.graph import CSRStore

if TYPE_CHECKING:
    from oocgraph.runtime.device import DeviceRuntime
    from oocgraph.runtime.local import LocalRuntime

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
        ``auto``, ``cpu`` or ``cuda`` (see `oocgraph.bfs`); by default as configured. Or a device that is open.
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
    if device is None or isinstance(device, str):
        kind = device or settings().device
        opened, reason = device_choice(kind)
        logger.info("device: %s (%s)", "cpu" if opened is None else opened.name, reason)
    else:
        opened, reason = device, "it was given"
    if opened is None:
        if device_memory_budget is not None:
            raise OocGraphError(f"device_memory_budget (--device-memory) was given, but the search would run on the processor: {reason}")
        from oocgraph.runtime.local import LocalRuntime

        return LocalRuntime.open(graph, **options)
    from oocgraph.runtime.device import DeviceRuntime

    return DeviceRuntime.open(graph, device=opened, device_memory_budget=device_memory_budget, **options)
