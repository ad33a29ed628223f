"""Where a search in this process runs: on the processor, or on a GPU."""

from __future__ import annotations

import logging
from functools import partial
from typing import TYPE_CHECKING, Any

from oocgraph.arrays import Device, DeviceChoice, Work, device_choice
from oocgraph.config import settings
from oocgraph.engine.fallback import processor_instead
from oocgraph.engine.few import is_small
from oocgraph.engine.small import SmallRuntime
from oocgraph.errors import ArgumentError, BudgetError
from oocgraph.kernels.gpu import search_source
from oocgraph.resources import Resources
from oocgraph.store.graph import CSRStore

if TYPE_CHECKING:
    from oocgraph.engine.block_runtime import BlockRuntime
    from oocgraph.engine.device import DeviceRuntime
    from oocgraph.engine.local import LocalRuntime

logger = logging.getLogger(__name__)

MANY_SEARCHES = 64
"""Searches for which a graph is opened, or products for which a matrix is, when ``auto`` decides where: as many as Graph 500 has."""

EDGE_SECONDS = 1e-9
"""Time of one thread for each stored edge of a graph, in a search in memory: between 0.2 (Kronecker, scale 24) and 2.7 ns (uniform, 2^22)
of docs/measurements.md. Roads take longer, on a GPU too."""


def open_in_process(
    store: CSRStore, resources: Resources, *, device: Device | None = None, num_searches: int = MANY_SEARCHES, **options: Any
) -> LocalRuntime | BlockRuntime | DeviceRuntime | SmallRuntime:  # fmt: skip
    """Load a graph for many searches, on the device that the resources name; in locality order, and larger than memory, by blocks.

    A small graph in memory is searched where it is.

    Parameters
    ----------
    store
        The graph.
    resources
        With device ``auto`` the search is on the processor also where starting a GPU would take longer, or a budget that the GPU needs is
        too small, unless `device_memory_budget` is given.
    device
        A device that is open, instead of the one that `resources` names.
    num_searches
        How many searches the start of a GPU has to pay for.
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
    runtime, reason = _opened(store, resources, device, num_searches, options)
    runtime.device_reason = reason
    return runtime


def _opened(
    store: CSRStore, resources: Resources, device: Device | None, num_searches: int, options: dict[str, Any]
) -> tuple[LocalRuntime | BlockRuntime | DeviceRuntime | SmallRuntime, str]:  # fmt: skip
    """Return a runtime, and why it is where it is."""
    kind, requested = resources.device or settings().device, resources.device_memory_budget
    if device is None and requested is None and kind != "cuda" and is_small(store):
        return SmallRuntime(store, **options), "the graph is small, and in memory"
    work = None if requested is not None else partial(search_work, store, resources.num_threads, num_searches)
    opened, reason = device_choice(kind, work=work) if device is None else DeviceChoice(device, "it was given")
    if device is None:
        logger.info("device: %s (%s)", "cpu" if opened is None else opened.name, reason)
    if opened is not None:
        from oocgraph.engine.device import DeviceRuntime

        try:
            results = 0 if num_searches == 1 else None  # to lock memory takes longer than to copy one result
            return DeviceRuntime.open(store, device=opened, device_memory_budget=requested, max_results=results, **options), reason
        except BudgetError as error:
            asked = kind if device is None else "cuda"
            reason = processor_instead("graph", opened, error, kind=asked, device_memory_budget=requested)
    elif requested is not None:
        raise ArgumentError(f"device_memory_budget is given, but the search would run on the processor: {reason}")
    from oocgraph.engine.local import LocalRuntime

    if store.attributes.vertex_order == "locality" and not LocalRuntime.holds_all(store, **options):
        from oocgraph.engine.block_runtime import BlockRuntime

        return BlockRuntime.open(store, **options), reason
    return LocalRuntime.open(store, **options), reason


def search_work(store: CSRStore, threads: int, num_searches: int) -> Work:
    """Estimate some searches, of which the graph's edges are brought to a device once."""
    seconds = num_searches * store.attributes.num_stored_edges * EDGE_SECONDS / threads
    return Work(seconds, 0, (search_source(store.index_dtype),))
