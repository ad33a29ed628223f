"""A worker's share of shortest paths: the distances of all vertices as far as it knows them, and a share of the blocks of edges.

In: a `PathsSpec`, and what all shares have found in the step before. Out: `PathsSlice`. In a step a share takes the distances that others
have found, works on its own blocks by priority (`oocgraph.engine.blocks`), no farther than some buckets behind the earliest of all shares,
and says which distances got better. Every share knows all distances that were said, so that any of them can go on for all.
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
from oocgraph.cluster.specs import GraphSpec, LeftError, StateLostError
from oocgraph.engine.blocks import BlockEngine, EdgeError, load_loop, new_values
from oocgraph.kernels import relax
from oocgraph.kernels.blocks import NONE
from oocgraph.memory import Budget, device_bytes_read
from oocgraph.store.graph import open_graph
from oocgraph.types import Array, no_parent

ROUND_BUCKETS = 32
"""Buckets behind the earliest of all shares that a share works on before it hears of the others."""

SLICES = 4
"""Slices of a share that a worker holds at a time: one is made, Dask keeps two, and one is on its way."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PathsSpec(GraphSpec):
    """What a worker loads.

    Attributes
    ----------
    column
        Edge column of the weights.
    kind
        Of distances: a key of `oocgraph.kernels.relax.SHORTEST`.
    scale, slack
        Buckets in a unit of distance; see `oocgraph.kernels.blocks.Rules`.
    source, target
        Store numbers; of the target -1: none. A source of -1 has no edges.
    bound
        Distances beyond it are not kept; None: any are.
    """

    column: str
    kind: str
    scale: float
    slack: int
    source: int
    target: int
    bound: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class PathsStep:
    """One step of a run.

    Attributes
    ----------
    name, epoch, number
        Of the run, in events; of the step.
    lease
        Whose memory it uses.
    is_first
        Whether it is the first of its epoch: what comes before it is what one share knows, or nothing.
    """

    name: str
    epoch: int
    number: int
    lease: str
    is_first: bool


class PathsSlice(NamedTuple):
    """Distances that a share has found to be better, and what is left.

    Attributes
    ----------
    vertices, distance, parent : (n,)
        Store numbers, distances, and neighbours that these come from.
    earliest : int
        Earliest bucket that is pending in the share or for others; `NONE`: nothing is.
    """

    vertices: Array
    distance: Array
    parent: Array
    earliest: int


class PathsTable(NamedTuple):
    """What a share knows of all vertices: distances and parents, (num_vertices,) each."""

    distance: Array
    parent: Array


@dataclass(slots=True)
class PathsShare:
    """A share of the blocks, and what it knows.

    Attributes
    ----------
    published : (num_vertices,)
        Distances that the others know, too.
    left : (n,) int64
        Vertices that are pending.
    """

    engine: BlockEngine
    values: relax.Values
    published: Array
    left: Array
    epoch: int = -1
    number: int = -1
    lock: threading.Lock = field(default_factory=threading.Lock)


@dataclass(slots=True)
class HeldPaths:
    """The shares of one lease on one worker."""

    spec: PathsSpec
    shares: dict[int, PathsShare]
    budget: Budget
    ledger: WorkerLedger
    most_sent: int

    def take_over(self, before: HeldPaths) -> None:
        """Take what shares have found."""
        for p, share in before.shares.items():
            self.shares[p].values, self.shares[p].number = share.values, share.number

    def close(self) -> None:
        """Give back everything; waits for the steps that run."""
        for share in self.shares.values():
            with share.lock:
                share.engine.close()
                share.epoch = 2**62
        self.ledger.close(self.budget)

    def forget(self, search: str) -> None:
        """Do nothing: no search has a state here."""


def most_sent(num_vertices: int, num_partitions: int) -> int:
    """Return how many distances a share says at once, at most."""
    return max(1 << 12, -(-num_vertices // num_partitions))


def acquire(plugin: Any, lease: str, spec: PathsSpec, numbers: Sequence[int]) -> list[dict[str, Any]]:
    """Load shares on this worker, if they are not here already; edges are read when they are needed.

    Raises
    ------
    BudgetError
        They do not fit; the message names the worker.
    """
    there = plugin.keep_shares(lease, spec, numbers, partial(_load, plugin, spec))
    return [
        {
            "partition": p, "worker": plugin.worker.address, "memory_budget": there.budget.limit_bytes,
            "num_blocks": there.shares[p].engine.num_blocks,
        }
        for p in numbers
    ]  # fmt: skip


def _load(plugin: Any, spec: PathsSpec, numbers: Sequence[int]) -> HeldPaths:
    store = open_graph(spec.url, check_pages=spec.check_pages)
    requested = spec.memory_budget if spec.memory_budget is not None else spec.settings.memory_budget
    threads = spec.threads or max(1, int(plugin.worker.state.nthreads))
    loop, unreached = relax.SHORTEST[spec.kind]
    load_loop(loop, unreached.dtype, store, spec.column)
    n, entry_bytes = store.num_vertices, 8 + unreached.dtype.itemsize + store.index_dtype.itemsize
    sent, shares = most_sent(n, spec.num_partitions), dict[int, PathsShare]()
    with plugin.ledger.opening(requested) as budget:
        try:
            for i, p in enumerate(numbers):
                vertex_bytes = n * (2 * unreached.dtype.itemsize + store.index_dtype.itemsize)
                beside = {} if i else {"distances of other shares": spec.num_partitions * min(n, sent) * entry_bytes}
                beside |= {
                    f"distances and parents of share {p}": vertex_bytes + n // 8,
                    f"distances of share {p} that are sent": SLICES * min(n, sent) * entry_bytes,
                    f"pending vertices of share {p}": 3 * 8 * n,
                }
                engine = BlockEngine(
                    store, spec.column, budget, threads=threads, beside=beside, share=(p, spec.num_partitions), sharers=len(numbers) - i
                )  # fmt: skip
                value = np.full(n, unreached)
                parent = np.full(n, no_parent(store.index_dtype), store.index_dtype)
                values = new_values(value, parent, unreached if spec.bound is None else spec.bound, target=spec.target, scale=spec.scale)
                shares[p] = PathsShare(engine, values, value.copy(), np.empty(0, np.int64))
        except BaseException:
            for share in shares.values():
                share.engine.close()
            raise
    return HeldPaths(spec, shares, budget, plugin.ledger, sent)


def take_step(plugin: Any, p: int, step: PathsStep, *before: Any) -> PathsSlice:
    """Take the distances that others have found, and work on a share of the blocks.

    Parameters
    ----------
    p
        The share.
    *before
        The slices of all shares of the step before. In the first step of an epoch: the table of one share, or nothing.

    Raises
    ------
    StateLostError
        The worker does not hold the share: it was started again.
    CorruptStoreError
        The store cannot be read.
    """
    there: HeldPaths = plugin.shares_of(step.lease, p)
    share, spec = there.shares[p], there.spec
    with share.lock:
        if step.epoch < share.epoch:
            raise LeftError(f"{step.name} has begun again")
        plugin.at("receive", step.number, p)
        began, device = time.perf_counter(), device_bytes_read()
        loop, _ = relax.SHORTEST[spec.kind]
        value = share.values.value
        if step.is_first:
            earliest, pending = _begin(share, spec, before)
        else:
            earliest, pending = _receive(share, before)
        report: dict[str, Any] = {"error": None, "work": None}
        if earliest < NONE:
            if spec.target >= 0:
                share.values.bound[0] = min(share.values.bound[0], value[spec.target])
            plugin.at("compute", step.number, p)
            limit = min(earliest + ROUND_BUCKETS, int(NONE) - 1)
            try:
                work = share.engine.run(
                    loop, share.values, pending, _buckets(share, pending), schedule="async", slack=spec.slack, last=limit,
                    loads_all=spec.bound is None and spec.target < 0,
                )  # fmt: skip
                report["work"] = list(work)
            except EdgeError as error:
                report["error"] = [error.why, error.source, error.target]
            share.left = share.engine.pending_rows()
        share.number = step.number
        found = _publish(share, there.most_sent)
    plugin.at("transfer", step.number, p)
    plugin.tell({
        "search": step.name, "epoch": step.epoch, "step": step.number, "partition": p, "ended": False, "earliest": found.earliest,
        "seconds": time.perf_counter() - began, "device_bytes": device_bytes_read() - device, **report,
    })  # fmt: skip
    return found


def _buckets(share: PathsShare, vertices: Array) -> Array:
    """Buckets of vertices: (n,) int32."""
    value = share.values.value[vertices].astype(np.float64)
    return np.clip(np.floor(value * share.values.scale), 0, int(NONE) - 1).astype(np.int32)


def _begin(share: PathsShare, spec: PathsSpec, before: Sequence[Any]) -> tuple[int, Array]:
    """Begin an epoch: at the source, or with all that one share knows, of which anything may be pending."""
    _, unreached = relax.SHORTEST[spec.kind]
    value, parent = share.values.value, share.values.parent
    if not before:
        value[:], parent[:] = unreached, no_parent(parent.dtype)
        if spec.source >= 0:
            value[spec.source], parent[spec.source] = 0, spec.source
        share.published[:] = value
        return (0, np.array([spec.source])) if spec.source >= 0 else (int(NONE), np.empty(0, np.int64))
    (table,) = before
    better = table.distance < value
    np.copyto(value, table.distance, where=better)
    np.copyto(parent, table.parent, where=better)
    share.published[:] = table.distance
    pending = np.flatnonzero(value != unreached)
    return 0, pending


def _receive(share: PathsShare, before: Sequence[PathsSlice]) -> tuple[int, Array]:
    """Take what others have found; returns the earliest bucket of all shares, and what is pending in this one."""
    value, pending = share.values.value, [share.left]
    for one in before:
        better = np.flatnonzero(one.distance < value[one.vertices])
        vertices, distance = one.vertices[better], one.distance[better]
        value[vertices], share.values.parent[vertices] = distance, one.parent[better]
        share.published[vertices] = distance
        pending.append(vertices.astype(np.int64))
    return min(one.earliest for one in before), np.concatenate(pending)


def _publish(share: PathsShare, most: int) -> PathsSlice:
    """Return distances that got better, as many as are sent at once, and take note of that."""
    value, parent = share.values.value, share.values.parent
    changed = np.flatnonzero(value != share.published)
    waiting = [_buckets(share, one) for one in (share.left, changed)]
    earliest = min(int(one.min(initial=NONE)) for one in waiting)
    vertices = changed[:most].astype(parent.dtype)
    distance = value[vertices]
    share.published[vertices] = distance
    return PathsSlice(vertices, distance, parent[vertices], earliest)


def held_number(plugin: Any, lease: str) -> tuple[int, int]:
    """Return the last step that a share on this worker has taken, and the share; -1: none."""
    there: HeldPaths | None = plugin.resident.get(lease)
    return max(((share.number, p) for p, share in there.shares.items()), default=(-1, -1)) if there is not None else (-1, -1)


def table(plugin: Any, lease: str, p: int) -> PathsTable:
    """Return what a share knows.

    Raises
    ------
    StateLostError
        The worker does not hold the share.
    """
    there: HeldPaths = plugin.shares_of(lease, p)
    share = there.shares[p]
    with share.lock:
        if share.number < 0:
            raise StateLostError(f"worker {plugin.worker.address} has taken no step")
        return PathsTable(share.values.value.copy(), share.values.parent.copy())


def merged(plugin: Any, one: PathsTable, other: PathsTable) -> PathsTable:
    """Return the parents that two shares know together: of vertices that give the distance, and are nearer themselves, the smallest."""
    parent = one.parent.copy()
    for start in range(0, parent.size, 1 << 18):
        here = slice(start, start + (1 << 18))
        reached = np.flatnonzero(parent[here] != no_parent(parent.dtype)) + start
        nearer = [one.distance[p[reached]] < one.distance[reached] for p in (parent, other.parent)]
        takes = nearer[1] & (~nearer[0] | (other.parent[reached] < parent[reached]))
        parent[reached[takes]] = other.parent[reached[takes]]
    return PathsTable(one.distance, parent)
