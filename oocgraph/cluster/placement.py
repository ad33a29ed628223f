"""The workers that hold a graph's partitions: which holds what, and what to do when one is lost.

In: a `ClusterSession`, a store, what is asked of its workers. Out: a `Placement`, whose `place_again` gives the partitions of lost workers
to others. What is done in steps with it is in `oocgraph.cluster.supersteps`.
"""

from __future__ import annotations

import queue
import time
import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import replace
from typing import Any

from oocgraph.clients import is_running, wanted, why_lost
from oocgraph.cluster import worker as tasks
from oocgraph.cluster.events import Watch
from oocgraph.cluster.preflight import SharedFolder, check_device_is_used, device_sharers
from oocgraph.cluster.session import POLL_SECONDS, ClusterSession, WorkersLostError
from oocgraph.cluster.specs import GraphSpec
from oocgraph.cluster.worker_windows import Group, MadeWindow, load_parts
from oocgraph.config import settings
from oocgraph.errors import BudgetError, ClusterError, DeviceError, OocGraphError
from oocgraph.resources import Resources
from oocgraph.store.fingerprint import graph_fingerprint
from oocgraph.store.graph import CSRStore

NO_NANNY_SECONDS = 5.0
"""Time that a lost worker has to come back if no nanny restarts it."""

MAX_IDLE_EPOCHS = 8
"""Placements in a row without a step taken, after which something is wrong that placing them again does not mend."""


WINDOWS, MESSAGES = "windows in shared memory", "messages of Dask"


class Placement:
    """The workers of one opened graph.

    Parameters
    ----------
    session
        Its cluster.
    spec
        What they hold.
    load
        What loads partitions on a worker: called with its plugin, lease, spec and their numbers.
    workers
        What each worker says of itself, by address (`ClusterSession.find_workers`).

    Attributes
    ----------
    addresses
        Address of the worker of each partition; changed as workers are lost.
    graph
        Name of what they hold, in tasks.
    parts
        What each partition's worker has said of it when it had loaded it.
    num_moves
        Partitions that went to another worker so far.
    exchange
        What messages between workers go through, and why.
    """

    def __init__(
        self, session: ClusterSession, spec: GraphSpec, workers: Mapping[str, dict[str, Any]], load: Callable[..., Any] = tasks.acquire
    ) -> None:
        addresses = sorted(workers)
        self.session, self.spec, self._load = session, spec, load
        self.addresses = [addresses[p % len(addresses)] for p in range(spec.num_partitions)]
        self.graph = spec.graph
        self.parts: list[dict[str, Any]] = [{} for _ in self.addresses]
        self.num_moves = 0
        self.exchange = MESSAGES
        self._windows: list[MadeWindow | None] = [None for _ in self.addresses]
        self._generation = self._run = 0
        self._nannies = {address: bool(said["nanny"]) for address, said in workers.items()}

    def load(self, watch: Watch) -> None:
        """Have the workers load all partitions.

        Raises
        ------
        ClusterError
            Workers cannot exchange messages in the way that is configured.
        """
        try:
            self.acquire(range(len(self.addresses)))
        except WorkersLostError:
            self.place_again(watch)
        if self.spec.settings.exchange == "windows" and not self.shares_memory:
            why = self.exchange.removeprefix(MESSAGES)
            raise ClusterError(f"oocgraph.exchange is windows, but they cannot be used{why}; set it to auto, or to messages")

    def deal_again(self, shares: tuple[int, ...] | None) -> None:
        """Have the workers load their partitions with other shares of the edges, in place of those that they hold.

        Raises
        ------
        BudgetError, DeviceError
            A worker cannot hold its new share; what it held is given back. Call this again with the shares before.
        """
        self.spec = replace(self.spec, shares=shares)
        self.graph = self.spec.graph
        self._generation += 1  # what had to give back a partition may have given back its windows, too
        self.acquire(range(len(self.addresses)))

    @property
    def shares_memory(self) -> bool:
        """Whether all workers are on one host, and share memory."""
        return self.exchange.startswith(WINDOWS)

    def next_group(self) -> Group | None:
        """Return whose windows a program's messages go through, with a number that none has had; None: they go through Dask."""
        self._run += 1
        windows = [one.address for one in self._windows if one is not None and one.address is not None]
        return Group(self._generation, self._run, tuple(windows)) if self.shares_memory else None

    def acquire(self, partitions: Iterable[int]) -> None:
        """Have the workers of some partitions load them, as far as they do not hold them."""
        mine: dict[str, list[int]] = {}
        for p in partitions:
            mine.setdefault(self.addresses[p], []).append(p)
        futures = {}
        for address, numbers in mine.items():
            key = f"load-partitions-{uuid.uuid4().hex}"
            arguments = self._load, self.session.lease, self.spec, numbers, self._generation
            futures[self.session.call(address, load_parts, *arguments, key=key)] = address
        for loaded in self.session.gather(futures):
            for part, window in zip(*loaded, strict=True) if loaded is not None else ():
                self.parts[part["partition"]], self._windows[part["partition"]] = part, window
        self.exchange = self._chosen()

    def _chosen(self) -> str:
        """Choose what messages go through."""
        why = self._why_not()
        if why is not None:
            return f"{MESSAGES}: {why}"
        return f"{WINDOWS}: workers of one host" if len(set(self.addresses)) > 1 else f"{WINDOWS}: one worker"

    def _why_not(self) -> str | None:
        """Return why messages cannot go through shared memory."""
        if self.spec.settings.exchange == "messages":
            return "as asked"
        spaces: dict[str, str] = {}
        for p, (one, address) in enumerate(zip(self._windows, self.addresses, strict=True)):
            if one is None or one.address is None:
                return f"worker {address} cannot share memory ({one.why if one else 'it has gone'})"
            if self.addresses.count(address) > one.num_threads:
                return f"worker {address} has more partitions than threads ({self.addresses.count(address)} and {one.num_threads})"
            spaces.setdefault(one.address.space, f"{p} at {address}")
        if len(spaces) > 1:
            first, second, *_ = spaces.values()
            return f"workers of partitions {first} and {second} are on two hosts, or do not see each other's processes"
        return None

    @property
    def memory_budget(self) -> int:
        """Bytes of all workers' budgets."""
        return sum({part["worker"]: part["memory_budget"] for part in self.parts if part}.values())

    @property
    def device_metrics(self) -> dict[str, Any]:
        """``device``: the names of the workers' devices; and what of their memory is used."""
        parts = [part for part in self.parts if part]
        return {
            "device": ", ".join(sorted({part["device"] for part in parts})) or "cpu",
            "device_memory_budget": sum({part["worker"]: part["device_memory_budget"] for part in parts}.values()),
            "device_bytes": sum(part["device_bytes"] for part in parts),
        }

    def check_device_is_used(self, compute: str) -> None:
        """Refuse a budget of device memory that no worker can heed; see `oocgraph.cluster.preflight.check_device_is_used`."""
        requested = None if self.spec.beside_searches else self.spec.device_memory_budget
        check_device_is_used(requested, compute, [(part["worker"], part["device"], part["device_reason"]) for part in self.parts])

    def place_again(self, watch: Watch) -> None:
        """Give the partitions of lost workers to others, loading what those do not hold.

        Raises
        ------
        ClusterError
            No worker is left, and none comes back in time.
        BudgetError
            The workers that are left cannot hold them.
        """
        with ExitStack() as waiting:
            self._place_again(watch, waiting)

    def _place_again(self, watch: Watch, waiting: ExitStack) -> None:
        patience, is_wanted = self.spec.settings.worker_timeout, False
        began, attempts = time.monotonic(), 0
        refused: OocGraphError | None = None
        while True:
            alive = self.session.workers()
            self._nannies |= {address: bool(info.get("nanny")) for address, info in alive.items()}
            lost = [p for p, address in enumerate(self.addresses) if address not in alive]
            if alive:
                attempts += 1
                try:
                    self._move(lost, sorted(alive))
                    return
                except WorkersLostError as error:
                    if attempts < MAX_IDLE_EPOCHS:
                        continue
                    raise ClusterError(
                        f"partitions were placed again {attempts} times, in vain: {error}; look at the workers' "
                        f"logs{why_lost(self.session.client)}"
                    ) from error
                except BudgetError as error:
                    refused = error
            if not is_wanted and not any(map(is_running, alive.values())):
                is_wanted = True
                waiting.enter_context(wanted(self.session.client))
            if not any(self._nannies.get(self.addresses[p], False) for p in lost):
                patience = min(patience, NO_NANNY_SECONDS)
            if time.monotonic() - began > patience:
                raise refused or ClusterError(
                    f"no worker is left, and none came back within {patience:g} s; start workers and try "
                    f"again{why_lost(self.session.client)}"
                )
            with suppress(queue.Empty):
                watch.queue.get(timeout=POLL_SECONDS)

    def _move(self, lost: Sequence[int], workers: Sequence[str]) -> None:
        """Place `lost` partitions on those of `workers` that hold fewest; try all before it is refused."""
        for p in lost:
            refused: OocGraphError | None = None
            for address in sorted(workers, key=lambda one: (self.addresses.count(one), one)):
                before, self.addresses[p] = self.addresses[p], address
                try:
                    self.acquire([p])
                    self.num_moves += 1
                    refused = None
                    break
                except (BudgetError, DeviceError) as error:
                    self.addresses[p], refused = before, error
            if refused is not None:
                raise refused
        self._generation += 1
        self.acquire(range(len(self.addresses)))  # a worker that came back under its old address holds nothing; and windows are made anew


def placed(
    session: ClusterSession, store: CSRStore, resources: Resources, watch: Watch, spec: Callable[..., GraphSpec],
    load: Callable[..., Any] = tasks.acquire, *, divide: Callable[[int], int], folder: SharedFolder | None = None, **asked: Any,
) -> Placement:  # fmt: skip
    """Find the workers of a session, and have them load their shares of a graph.

    Parameters
    ----------
    resources
        Memory, threads and device of each worker.
    spec
        Kind of what they load; `asked` are fields of it.
    load
        See `Placement`.
    divide
        Called with the number of workers; returns that of partitions.
    folder
        A folder that every worker must see.

    Raises
    ------
    ClusterError
        No worker comes in time, one has another version, or does not see the graph or the folder.
    BudgetError
        A worker cannot hold its share; the message names it.
    DeviceError, MissingDependencyError
        A GPU was asked for, and a worker has none that can be used.
    """
    knobs, fingerprint = settings(), graph_fingerprint(store)
    workers = session.find_workers(store.place, fingerprint, folder)
    fields = {
        "settings": knobs, "memory_budget": resources.memory_budget, "threads": resources.threads, "check_pages": store.check_pages,
        "device": resources.device or knobs.device, "device_memory_budget": resources.device_memory_budget,
        "device_sharers": device_sharers(workers),
    }  # fmt: skip
    found = spec(url=store.place, fingerprint=fingerprint, num_partitions=divide(len(workers)), **{**fields, **asked})
    placement = Placement(session, found, workers, load)
    placement.load(watch)
    return placement
