"""Where a search in this process runs: on the processor, or on a GPU."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

from oocgraph.arrays import Device, device_choice
from oocgraph.config import settings
from oocgraph.engine.few import is_small
from oocgraph.engine.small import SmallRuntime
from oocgraph.errors import ArgumentError, BudgetError
from oocgraph.resources import Resources
from oocgraph.store.graph import CSRStore

if TYPE_CHECKING:
    from oocgraph.engine.block_runtime import BlockRuntime
    from oocgraph.engine.device import DeviceRuntime
    from oocgraph.engine.local import LocalRuntime

logger = logging.getLogger(__name__)


def open_in_process(
    store: CSRStore, resources: Resources, *, device: Device | None = None, **options: Any
) -> LocalRuntime | BlockRuntime | DeviceRuntime | SmallRuntime:  # fmt: skip
    """Load a graph for many searches, on the device that the resources name; in locality order, and larger than memory, by blocks.

    A small graph in memory is searched where it is.

    Parameters
    ----------
    store
        The graph.
    resources
        With device ``auto`` the search is on the processor also where a budget that the GPU needs is too small, unless
        `device_memory_budget` is given.
    device
        A device that is open, instead of the one that `resources` names.
    **options
        Of `LocalRuntime.open` and `DeviceRuntime.open`: ``io_threads``, ``max_planes``, ``progress``; or ``following_bytes`` of the first.

    Raises
    ------
    DeviceError
        ``cuda``, and no GPU can be used.
    ArgumentError
        Device memory was given, and no GPU can be used.
    """
    options |= {"memory_budget": resources.memory_budget, "threads": resources.threads}
    kind, requested = resources.device or settings().device, resources.device_memory_budget
    if device is None and requested is None and kind != "cuda" and is_small(store):
        return SmallRuntime(store, **options)
    opened, reason = device_choice(kind) if device is None else (device, "it was given")
    if device is None:
        logger.info("device: %s (%s)", "cpu" if opened is None else opened.name, reason)
    if opened is not None:
        from oocgraph.engine.device import DeviceRuntime

        try:
            return DeviceRuntime.open(store, device=opened, device_memory_budget=requested, **options)
        except BudgetError as error:
            if kind != "auto" or device is not None or requested is not None:
                raise
            logger.warning("device: cpu, because this graph does not fit the memory of %s: %s", opened.name, error)
    elif requested is not None:
        raise ArgumentError(f"device_memory_budget is given, but the search would run on the processor: {reason}")
    from oocgraph.engine.local import LocalRuntime

    if store.attributes.vertex_order == "locality" and not LocalRuntime.holds_all(store, **options):
        from oocgraph.engine.block_runtime import BlockRuntime

        return BlockRuntime.open(store, **options)
    return LocalRuntime.open(store, **options)
