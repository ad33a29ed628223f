"""What a worker does: one plugin holds all that computations keep on it, and tasks work with that.

Every task finds its worker's plugin by the name `PLUGIN`: its memory ledger, the partitions of searches (`WorkerState`), messages to peers
(`Exchange`), and by lease what other computations keep. What a task returns is all that Dask sees.
"""

from __future__ import annotations

import asyncio
import logging
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from typing import Any, ClassVar

from distributed import get_worker
from distributed.diagnostics.plugin import WorkerPlugin

from oocgraph.cluster.events import STEPS
from oocgraph.cluster.ledger import WorkerLedger
from oocgraph.cluster.specs import GraphSpec, LeftError, StateLostError
from oocgraph.cluster.stream_cache import StreamCache
from oocgraph.cluster.worker_matrix import DeviceMatrices
from oocgraph.cluster.worker_state import WorkerState
from oocgraph.cluster.worker_windows import WorkerWindows
from oocgraph.compiled import announce
from oocgraph.errors import BudgetError, OocGraphError
from oocgraph.exchange.dask import Exchange

PLUGIN = "oocgraph"

EVENT_SECONDS = 0.001
"""How long an event of a hop waits for the message that the step has ended (Dask sends one batch every 2 ms)."""


class Resident(ABC):
    """What a computation keeps on a worker, under its lease.

    That of a computation which is cut into numbered shares has `shares`, those that are here by number.
    """

    __slots__ = ()

    def forget(self, search: str) -> None:  # noqa: B027 - most have no searches
        """Drop the state of one search."""

    def take_over(self, before: Any) -> None:  # noqa: B027 - most begin again
        """Take what does not depend on the shares from what was kept before; it is closed already."""

    @abstractmethod
    def close(self) -> None:
        """Give back everything; waits for the step that runs."""


def _names(kind: type) -> Iterator[str]:
    """Yield the name of a class, and those of its subclasses."""
    yield kind.__name__
    subclasses: list[type] = kind.__subclasses__()
    for one in subclasses:
        yield from _names(one)


def is_worth_logging(record: logging.LogRecord) -> bool:
    """Return whether a record of Dask's worker is more than that a task has raised an error of ours, which the client raises itself.

    A budget that is too small is tried again as long as others may give memory back: each time Dask would log a traceback.
    """
    said = record.args if isinstance(record.args, tuple) else ()
    names = {text.partition("(")[0] for text in said if isinstance(text, str)}
    return not (str(record.msg).startswith("Compute Failed") and names.intersection(_names(OocGraphError)))


class OocGraphPlugin(WorkerPlugin):  # type: ignore[misc]
    """All that computations keep on a worker.

    Attributes
    ----------
    ledger
        Its memory.
    worker_state
        Partitions of searches, and the searches.
    exchange
        Messages to other workers.
    streams, matrices
        Edges that products and ranks keep between calls; those of them that are on the worker's device.
    windows
        Memory into which workers of the same host put messages.
    resident
        What other computations keep, by lease.
    """

    name = PLUGIN
    idempotent = True
    on_phase: ClassVar[Callable[[str, int, int], None] | None] = None
    """For tests: called with (phase, step, partition) as each phase of a step begins: read, kernel, transfer, finish; receive, compute."""

    def setup(self, worker: Any) -> None:
        """Begin with nothing."""
        announce.silence()
        logging.getLogger("distributed.worker").addFilter(is_worth_logging)
        self.worker = worker
        self.ledger = WorkerLedger(worker)
        self.worker_state = WorkerState(worker, self.ledger, self.at)
        self.exchange = Exchange(worker)
        self.streams = StreamCache(self.ledger)
        self.matrices = DeviceMatrices(self.ledger, self.worker_state.device)
        self.windows = WorkerWindows(self.ledger)
        self.resident: dict[str, Any] = {}  # each is a `Resident`

    def teardown(self, worker: Any) -> None:
        """Close all that is held."""
        for lease in self.windows.leases():
            self.windows.release(lease)
        self.worker_state.close()
        self.exchange.close()
        for lease in list(self.resident):
            self.drop(lease)

    def check_lease(self, lease: str) -> None:
        """Refuse a task whose lease has left: it was on its way when the client went.

        Raises
        ------
        LeftError
            It has.
        """
        self.worker_state.refuse_late(lease)

    def check_program(self, name: str, lease: str) -> None:
        """Refuse a task whose program or lease has left.

        Raises
        ------
        LeftError
            It has.
        """
        self.check_lease(lease)
        self.worker_state.refuse_late(name)

    def keep(self, lease: str, make: Callable[[], Any]) -> Any:
        """Return what is kept under a lease; `make` makes it where nothing is.

        Raises
        ------
        LeftError
            The lease has left.
        """
        with self.ledger.lock:
            self.check_lease(lease)
            if lease not in self.resident:
                self.resident[lease] = make()
            return self.resident[lease]

    def keep_shares(self, lease: str, spec: GraphSpec, numbers: Sequence[int], load: Callable[[Sequence[int]], Resident]) -> Any:
        """Return the shares of a computation that are kept under a lease; `load` loads them, all together, where some are missing.

        Raises
        ------
        LeftError
            The lease has left.
        BudgetError
            They do not fit; the message names the worker.
        """
        try:
            with self.ledger.lock:  # a load that began before, and whose client has given it up, ends first
                self.check_lease(lease)
                there = self.resident.get(lease)
                if there is not None and not set(there.shares) >= set(numbers):
                    numbers = sorted({*numbers, *there.shares})  # another worker was lost: all are loaded again, to be charged together
                    self.drop(lease)
                    self.keep(lease, lambda: load(numbers)).take_over(there)
                return self.keep(lease, lambda: load(numbers))
        except BudgetError as error:
            raise BudgetError(
                f"worker {self.worker.address} cannot take {len(numbers)} of {spec.num_partitions} parts: {error}; {self.ledger.remedy()}"
            ) from error

    def shares_of(self, lease: str, number: int) -> Any:
        """Return what is kept under a lease.

        Raises
        ------
        LeftError
            The lease has left.
        StateLostError
            The share with this number is not there: the worker was started again.
        """
        self.check_lease(lease)
        there = self.resident.get(lease)
        if there is None or number not in there.shares:
            raise StateLostError(f"worker {self.worker.address} does not hold part {number}")
        return there

    def drop(self, lease: str) -> None:
        """Close what is kept under a lease, if anything is."""
        with self.ledger.lock:
            one = self.resident.pop(lease, None)
        if one is not None:
            one.close()

    def at(self, phase: str, step: int, partition: int) -> None:
        """Note that a phase begins."""
        if (hook := OocGraphPlugin.on_phase) is not None:
            hook(phase, step, partition)

    def tell(self, event: dict[str, Any], *, is_awaited: bool) -> None:
        """Send the event of a hop; where tasks wait for this one a moment later, for the stream to the scheduler pauses after a message."""
        loop = self.worker.loop
        if is_awaited:
            loop.add_callback(loop.call_later, EVENT_SECONDS, self.worker.log_event, STEPS, event)
        else:
            loop.add_callback(self.worker.log_event, STEPS, event)

    def leases(self) -> list[str]:
        """Names of the leases that hold something here."""
        edges = (*self.streams.leases(), *self.matrices.leases())
        return sorted({*self.worker_state.leases(), *list(self.resident), *edges, *self.windows.leases()})

    def forget(self, search: str) -> None:
        """Drop the states of a search; a step that runs ends first."""
        self.worker_state.leave(search)
        self.windows.abort(search)
        self.worker_state.forget(search)
        self.exchange.forget(search)
        for one in list(self.resident.values()):
            one.forget(search)

    def release(self, lease: str) -> None:
        """Give back what a lease holds; a step that runs ends first."""
        self.worker_state.leave(lease)
        self.windows.release(lease)
        self.worker_state.release(lease)
        self.drop(lease)
        self.streams.release(lease)
        self.matrices.release(lease)


def plugin() -> OocGraphPlugin:
    """Return the plugin of the running task's worker.

    Raises
    ------
    StateLostError
        The worker has none: it has come since the workers were prepared.
    """
    found: OocGraphPlugin | None = get_worker().plugins.get(PLUGIN)
    if found is None:
        raise StateLostError(f"worker {get_worker().address} has not been prepared for oocgraph")
    return found


# The tasks. Of one that comes late nothing is said: Dask would log an error for each on every Ctrl-C.


def acquire(plugin: OocGraphPlugin, lease: str, spec: GraphSpec, partitions: Sequence[int]) -> list[dict[str, Any]]:
    """Load partitions on this worker: `WorkerState.acquire`."""
    return plugin.worker_state.acquire(lease, spec, partitions)


def finish(search: str, graph: tuple[str, int], partition: int) -> dict[str, Any]:
    """Write a partition's result: `WorkerState.finish`."""
    with suppress(LeftError):
        return plugin().worker_state.finish(search, graph, partition)
    return {}


def with_plugin(function: Callable[..., Any], *arguments: Any) -> Any:
    """Call a function with the plugin of the running task's worker, and what else it takes; None of a lease that has left."""
    with suppress(LeftError):
        return function(plugin(), *arguments)
    return None


# Called at once on every worker, apart from tasks; in a thread, because a step has to end first and the worker's loop may not wait.


async def forget(search: str, dask_worker: Any = None) -> None:
    """Drop the states of a search."""
    if PLUGIN in dask_worker.plugins:
        await asyncio.to_thread(dask_worker.plugins[PLUGIN].forget, search)


def abort(name: str, dask_worker: Any = None) -> None:
    """End the hops of a program that wait for others; returns at once."""
    if PLUGIN in dask_worker.plugins:
        dask_worker.plugins[PLUGIN].windows.abort(name)


async def release(lease: str, dask_worker: Any = None) -> None:
    """Give back what a lease holds; waits for the steps that run."""
    if PLUGIN in dask_worker.plugins:
        await asyncio.to_thread(dask_worker.plugins[PLUGIN].release, lease)


def leases(dask_worker: Any = None) -> list[str]:
    """Say whose sessions a worker holds something for: names that begin with that of their client."""
    found: list[str] = dask_worker.plugins[PLUGIN].leases() if PLUGIN in dask_worker.plugins else []
    return found


def inventory(dask_worker: Any = None) -> dict[str, Any]:
    """Say what a worker holds."""
    if PLUGIN not in dask_worker.plugins:
        return {}
    found = dask_worker.plugins[PLUGIN]
    return {
        **found.worker_state.inventory(),
        "resident": sorted(found.resident),
        "streams": found.streams.inventory(),
        "matrices": found.matrices.inventory(),
        "windows": found.windows.leases(),
    }
