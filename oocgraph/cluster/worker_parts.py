"""What a worker does in a partitioned traversal: holds parts, takes their steps, keeps the state of searches.

In: a `PartsSpec` (what to load), the number of a part and what its peers have sent. Out: `StepReport`, all that Dask sees: how many
masters are new, metrics, and which parts there are messages for; the messages stay here until they are asked for
(`oocgraph.exchange.dask`).

An iteration is two steps, `expand` and `apply` (`oocgraph.parts.loaded_part`), so two hops of the scheduler. Where masters own all their
out-edges there is nothing to broadcast, and a step applies and expands at once: one hop.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, ClassVar, NamedTuple

import numpy as np

from oocgraph.cluster.specs import GraphSpec, StateLostError
from oocgraph.cluster.worker import Resident
from oocgraph.cluster.worker_device import asked_for
from oocgraph.cluster.worker_steps import Hop, Steps, Taken
from oocgraph.engine.fallback import processor_instead
from oocgraph.errors import BudgetError
from oocgraph.exchange.messages import Message
from oocgraph.kernels.warm_traverse import load_traverse_kernels
from oocgraph.memory import Budget
from oocgraph.parts.loaded_part import PartTraversal, answer_bytes
from oocgraph.parts.local_parts import LocalParts
from oocgraph.store.partitions import open_partitions
from oocgraph.types import Array


@dataclass(frozen=True, slots=True, kw_only=True)
class PartsSpec(GraphSpec):
    """What workers load of a partitioned graph.

    Attributes
    ----------
    partitions
        Where the parts are.
    dtype, directed
        Index dtype of the graph; whether it is directed.
    """

    partitions: str
    dtype: str
    directed: bool


class StepReport(NamedTuple):
    """What a part has done in a step.

    Attributes
    ----------
    part, address
        Part, and the worker at which it is.
    num_new
        Masters of the last complete level; where all parts together have none the search has ended.
    num_edges
        Entries of the rows expanded.
    receivers
        Parts that there are messages for.
    sent
        Bytes of those.
    bytes_read, busy_seconds
        Bytes requested, and time, of this step.
    """

    part: int
    address: str
    num_new: int = 0
    num_edges: int = 0
    receivers: tuple[int, ...] = ()
    sent: int = 0
    bytes_read: int = 0
    busy_seconds: float = 0.0


@dataclass(slots=True)
class HeldParts(Resident):
    """The parts of one lease on one worker, and their searches."""

    spec: PartsSpec
    held: LocalParts
    dtype: np.dtype[Any]
    budget: Budget
    plugin: Any
    device: tuple[str, str]
    device_limit: int = 0
    searches: dict[tuple[str, int], PartTraversal] = field(default_factory=dict)
    lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def shares(self) -> dict[int, Any]:
        """The parts."""
        return self.held.loaded

    def close(self) -> None:
        """Give back everything."""
        with self.lock:
            self.searches.clear()
            self.held.close()
            self.plugin.worker_state.device.forget(self.held)
            self.plugin.ledger.close(self.budget)

    def forget(self, search: str) -> None:
        """Drop the states of a search."""
        for key in [key for key in list(self.searches) if key[0] == search]:
            self.searches.pop(key, None)


def acquire(plugin: Any, lease: str, spec: PartsSpec, numbers: Sequence[int]) -> list[dict[str, Any]]:
    """Load parts on this worker, if they are not here already.

    Raises
    ------
    BudgetError
        They do not fit; the message names the worker.
    """
    there = plugin.keep_shares(lease, spec, numbers, partial(_load, plugin, spec))
    return [_metrics(there, p, plugin.worker.address) for p in numbers]


def _load(plugin: Any, spec: PartsSpec, numbers: Sequence[int]) -> HeldParts:
    load_traverse_kernels(spec.dtype, spec.dtype)  # before the budget looks at the process
    dtype = np.dtype(spec.dtype)
    parts = list(open_partitions(spec.partitions).checked(spec.check_pages))
    device, reason = plugin.worker_state.device.choose(spec)
    options: dict[str, Any] = {
        "dtype": dtype, "directed": spec.directed, "threads": spec.threads_on(plugin.worker),
        "io_threads": spec.settings.io_threads, "reserved_bytes": sum(answer_bytes(parts[p], dtype.itemsize) for p in numbers),
    }  # fmt: skip
    there = plugin.worker_state.device
    with there.naming():
        if device is not None:
            there.reclaim()
            try:
                with plugin.ledger.opening(spec.requested_memory) as budget:
                    limit, others = there.limit_bytes(spec, device), there.held_bytes
                    held = LocalParts(
                        parts, numbers, budget=budget, device=device, device_limit=limit - others, device_held=others, **options
                    )
                    there.note(held, held.device_bytes)
                return HeldParts(spec, held, dtype, budget, plugin, (device.name, reason), limit)
            except BudgetError as error:
                reason = processor_instead("search over partitions", device, error, **asked_for(spec))
        with plugin.ledger.opening(spec.requested_memory) as budget:
            held = LocalParts(parts, numbers, budget=budget, **options)
    return HeldParts(spec, held, dtype, budget, plugin, ("cpu", reason))


def _metrics(there: HeldParts, p: int, address: str) -> dict[str, Any]:
    return {
        "partition": p, "worker": address, "has_broadcast": bool(there.held.loaded[p].addresses.num_copies),
        "num_edges": int(there.held.loaded[p].indptr[-1]), "memory_budget": there.budget.limit_bytes,
        "device": there.device[0], "device_reason": there.device[1], "device_bytes": there.held.loaded[p].device_bytes,
        "device_memory_budget": there.device_limit,
    }  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class PartSteps(Steps):
    """The steps of a search.

    Attributes
    ----------
    sources : (num_sources,) int64, or None
        Store numbers: the search starts here. None in later hops.
    last_level
        Maximum depth.
    has_broadcast
        Whether parts that mirror the frontier receive it: then a level is two steps.
    """

    sources: Array | None
    last_level: int
    has_broadcast: bool
    message: ClassVar[type[Any]] = StepReport

    def take(
        self, plugin: Any, hop: Hop, p: int, number: int, before: Sequence[StepReport], own: Mapping[int, Array], *, is_first: bool
    ) -> Taken:  # fmt: skip
        """Take the messages of all parts: candidates are applied, new members of the frontier noted. And expand it, or say what is new.

        Raises
        ------
        StateLostError
            The worker does not hold the part, or not the search: it was started again.
        """
        there = plugin.shares_of(hop.lease, p)
        began, requested = time.perf_counter(), there.held.loaded[p].edges.num_bytes_read
        if is_first and self.sources is not None:
            there.searches[hop.run, p] = PartTraversal(there.held.loaded[p], self.sources)
        state = there.searches.get((hop.run, p))
        if state is None:
            raise StateLostError(f"worker {plugin.worker.address} holds no search of part {p}")
        plugin.at("receive", number, p)
        expands, applies, broadcasts = self._kind(number)
        received = {q: Message.from_bytes(one, there.dtype if applies else None) for q, one in own.items()}
        plugin.at("compute", number, p)
        if applies:
            state.apply(received)
            received = {}
        num_edges, messages = 0, dict[int, Message]()
        if expands:
            num_edges = state.begin(received)
            with plugin.worker_state.device.naming():
                there.held.expand([state], num_edges=num_edges)
            messages = state.candidates()
        elif broadcasts:
            messages = state.frontier()
        plugin.at("transfer", number, p)
        report = StepReport(
            p, plugin.worker.address, state.num_new, num_edges, tuple(messages), sum(one.num_bytes for one in messages.values()),
            there.held.loaded[p].edges.num_bytes_read - requested, time.perf_counter() - began,
        )  # fmt: skip
        return Taken(report, {"report": list(report)}, {q: message.to_bytes() for q, message in messages.items()})

    def _kind(self, number: int) -> tuple[bool, bool, bool]:
        """Whether a step expands the frontier, whether what comes are candidates, and whether the new frontier is sent to its mirrors."""
        if self.has_broadcast:
            expands, level = number % 2 == 1, (number + 1) // 2
            return expands, number > 0 and not expands, not expands and level < self.last_level
        return number < self.last_level, number > 0, False

    def is_over(self, messages: Sequence[StepReport]) -> bool:
        """Whether no part has a new vertex."""
        return not any(one.num_new for one in messages)


def collect(plugin: Any, p: int, search: str, lease: str, first: int, stop: int) -> tuple[Array, Array, Array]:
    """Return what a part knows of the vertices ``first .. stop - 1``: `oocgraph.parts.loaded_part.PartTraversal.values_between`."""
    there = plugin.shares_of(lease, p)
    state = there.searches.get((search, p))
    if state is None:
        raise StateLostError(f"worker {plugin.worker.address} holds no search of part {p}")
    found: tuple[Array, Array, Array] = state.values_between(first, stop)
    return found
