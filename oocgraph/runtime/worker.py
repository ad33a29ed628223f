"""What a worker does: partitions in a plugin, steps of searches as tasks.

Every task finds its worker's `Holdings` through the plugin named `PLUGIN`. What it returns is all that Dask sees: a part of a frontier.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

import numpy as np
from distributed import get_worker
from distributed.diagnostics.plugin import WorkerPlugin

from oocgraph.exchange.parts import FrontierPart
from oocgraph.runtime import worker_product
from oocgraph.runtime.holdings import Holdings
from oocgraph.runtime.specs import GraphSpec, LeftError, SearchSpec, StateLostError
from oocgraph.runtime.worker_product import ProductSpec
from oocgraph.types import Array

PLUGIN = "oocgraph"


class OocGraphPlugin(WorkerPlugin):  # type: ignore[misc]
    """Gives a worker its `Holdings`."""

    name = PLUGIN
    idempotent = True

    def setup(self, worker: Any) -> None:
        """Begin with nothing."""
        self.holdings = Holdings(worker)

    def teardown(self, worker: Any) -> None:
        """Close all that is held."""
        self.holdings.close()


def holdings() -> Holdings:
    """Return what the worker of the running task holds."""
    plugin = get_worker().plugins.get(PLUGIN)
    if plugin is None:
        raise StateLostError("this worker has not been prepared for oocgraph")
    found: Holdings = plugin.holdings
    return found


# The tasks. Of one that comes late nothing is said: Dask would log an error for each on every Ctrl-C.


def acquire(lease: str, spec: GraphSpec, partitions: Sequence[int]) -> list[dict[str, Any]]:
    """Load partitions on this worker: `Holdings.acquire`."""
    with suppress(LeftError):
        return holdings().acquire(lease, spec, partitions)
    return []


def step(spec: SearchSpec | tuple[str, int], graph: tuple[str, int], partition: int, index: int, *parts: FrontierPart) -> FrontierPart:
    """Take one step of a search: `Holdings.step`."""
    with suppress(LeftError):
        return holdings().step(spec, graph, partition, index, parts)
    return FrontierPart(0, False, np.empty(0, np.int64))


def finish(search: str, graph: tuple[str, int], partition: int) -> dict[str, Any]:
    """Write a partition's result: `Holdings.finish`."""
    with suppress(LeftError):
        return holdings().finish(search, graph, partition)
    return {}


def prepare_product(spec: ProductSpec) -> None:
    """Refuse a share of a product that this worker has no memory for, before anything is sent: `worker_product.prepare`."""
    worker_product.prepare(get_worker(), spec)


def multiply_share(spec: ProductSpec, x: Array, part: Any = None) -> Array:
    """Multiply this worker's share of a matrix: `worker_product.multiply_share`."""
    return worker_product.multiply_share(get_worker(), spec, x, part)


def add_partials(spec: ProductSpec, one: Array, other: Array) -> Array:
    """Add two column partials: `worker_product.add_partials`."""
    return worker_product.add_partials(spec, one, other)


def with_worker(function: Callable[..., Any], *arguments: Any) -> Any:
    """Call a function with the worker of the running task, and what else it takes."""
    return function(get_worker(), *arguments)


# Called at once on every worker, apart from tasks; in a thread, because a step has to end first and the worker's loop may not wait.


async def forget(search: str, dask_worker: Any = None) -> None:
    """Drop the states of a search."""
    if PLUGIN in dask_worker.plugins:
        await asyncio.to_thread(dask_worker.plugins[PLUGIN].holdings.forget, search)


async def release(lease: str, dask_worker: Any = None) -> None:
    """Give back what a lease holds; waits for the steps that run."""
    if PLUGIN in dask_worker.plugins:
        await asyncio.to_thread(dask_worker.plugins[PLUGIN].holdings.release, lease)


def leases(dask_worker: Any = None) -> list[str]:
    """Say whose runtimes a worker holds something for: names that begin with that of their client."""
    found: list[str] = dask_worker.plugins[PLUGIN].holdings.leases() if PLUGIN in dask_worker.plugins else []
    return found


def inventory(dask_worker: Any = None) -> dict[str, Any]:
    """Say what a worker holds."""
    found: dict[str, Any] = dask_worker.plugins[PLUGIN].holdings.inventory() if PLUGIN in dask_worker.plugins else {}
    return found
