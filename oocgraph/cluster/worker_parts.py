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
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from oocgraph.cluster.ledger import WorkerLedger
from oocgraph.cluster.specs import GraphSpec, StateLostError
from oocgraph.errors import ClusterError
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Hop:
    """What all parts do in one step of a search.

    Attributes
    ----------
    search, name, epoch, lease
        Its name in this epoch, its name in events, the epoch, and whose memory it uses.
    number
        Of the step; messages received are those of the step before.
    sources : (num_sources,) int64, or None
        Store numbers: the search starts here.
    apply
        Whether the messages received are candidates.
    expand
        Whether the frontier is expanded, once the messages received (of mirrors in it, if not of candidates) are taken.
    broadcast
        Whether parts that mirror the frontier receive it, for the next step.
    """

    search: str
    name: str
    epoch: int
    lease: str
    number: int
    sources: Array | None
    apply: bool
    expand: bool
    broadcast: bool


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
class HeldParts:
    """The parts of one lease on one worker, and their searches."""

    spec: PartsSpec
    held: LocalParts
    dtype: np.dtype[Any]
    budget: Budget
    ledger: WorkerLedger
    searches: dict[tuple[str, int], PartTraversal] = field(default_factory=dict)
    lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def shares(self) -> dict[int, Any]:
        """The parts."""
        return self.held.loaded

    def take_over(self, before: HeldParts) -> None:
        """Take nothing: searches begin again."""

    def close(self) -> None:
        """Give back everything."""
        with self.lock:
            self.searches.clear()
            self.held.close()
            self.ledger.close(self.budget)

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
    worker = plugin.worker
    requested = spec.memory_budget if spec.memory_budget is not None else spec.settings.memory_budget
    load_traverse_kernels(spec.dtype, spec.dtype)  # before the budget looks at the process
    dtype = np.dtype(spec.dtype)
    parts = list(open_partitions(spec.partitions).checked(spec.check_pages))
    with plugin.ledger.opening(requested) as budget:
        held = LocalParts(
            parts, numbers, dtype=dtype, budget=budget, directed=spec.directed,
            threads=spec.threads or max(1, int(worker.state.nthreads)), io_threads=spec.settings.io_threads,
            reserved_bytes=sum(answer_bytes(parts[p], dtype.itemsize) for p in numbers),
        )  # fmt: skip
    return HeldParts(spec, held, dtype, budget, plugin.ledger)


def _metrics(there: HeldParts, p: int, address: str) -> dict[str, Any]:
    return {
        "partition": p, "worker": address, "has_broadcast": bool(there.held.loaded[p].addresses.num_copies),
        "num_edges": int(there.held.loaded[p].indptr[-1]), "memory_budget": there.budget.limit_bytes,
    }  # fmt: skip


def take_step(plugin: Any, p: int, step: Hop, *before: StepReport) -> StepReport:
    """Take a step of a search with one part.

    Parameters
    ----------
    p
        The part.
    *before
        What all parts have sent in the step before.

    Raises
    ------
    StateLostError
        The worker does not hold the part, or not the search: it was started again.
        Or the worker that has a message for the part is gone.
    """
    if before and not any(one.num_new for one in before):
        return StepReport(p, plugin.worker.address)  # the search has ended; this step was submitted ahead
    there = plugin.shares_of(step.lease, p)
    began, requested = time.perf_counter(), there.held.loaded[p].edges.num_bytes_read
    if step.sources is not None:
        there.searches[step.search, p] = PartTraversal(there.held.loaded[p], step.sources)
    state = there.searches.get((step.search, p))
    if state is None:
        raise StateLostError(f"worker {plugin.worker.address} holds no search of part {p}")
    plugin.at("receive", step.number, p)
    received = _receive(plugin, p, step, before, there.dtype if step.apply else None)
    plugin.at("compute", step.number, p)
    num_edges, messages = _advance(there, state, step, received)
    plugin.exchange.put(step.search, step.number, p, {q: message.to_bytes() for q, message in messages.items()})
    plugin.at("transfer", step.number, p)
    report = StepReport(
        p, plugin.worker.address, state.num_new, num_edges, tuple(messages), sum(one.num_bytes for one in messages.values()),
        there.held.loaded[p].edges.num_bytes_read - requested, time.perf_counter() - began,
    )  # fmt: skip
    plugin.tell({"search": step.name, "epoch": step.epoch, "step": step.number, "partition": p, "ended": False, "report": list(report)})
    return report


def _receive(plugin: Any, p: int, step: Hop, before: Sequence[StepReport], dtype: np.dtype[Any] | None) -> dict[int, Message]:
    """Fetch the messages for a part, by sender."""
    senders: dict[str, list[int]] = {}
    for one in before:
        if p in one.receivers:
            senders.setdefault(one.address, []).append(one.part)
    try:
        raw = plugin.exchange.get(step.search, step.number - 1, p, senders)
    except ClusterError as error:
        raise StateLostError(str(error)) from error
    return {q: Message.from_bytes(message, dtype) for q, message in raw.items()}


def _advance(there: HeldParts, state: PartTraversal, step: Hop, received: dict[int, Message]) -> tuple[int, dict[int, Message]]:
    """Apply, expand, or both; returns edges expanded, and messages."""
    if step.apply:
        state.apply(received)
        received = {}
    if not step.expand:
        return 0, state.frontier() if step.broadcast else {}
    num_edges = state.begin(received)
    there.held.expand([state], num_edges=num_edges)
    return num_edges, state.candidates()


def collect(plugin: Any, p: int, search: str, lease: str, first: int, stop: int) -> tuple[Array, Array, Array]:
    """Return what a part knows of the vertices ``first .. stop - 1``: `oocgraph.parts.loaded_part.PartTraversal.values_between`."""
    there = plugin.shares_of(lease, p)
    state = there.searches.get((search, p))
    if state is None:
        raise StateLostError(f"worker {plugin.worker.address} holds no search of part {p}")
    found: tuple[Array, Array, Array] = state.values_between(first, stop)
    return found
