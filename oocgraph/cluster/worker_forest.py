"""A worker's share of connected components: trees of all vertices, linked along its share of the edges.

In: a `GraphSpec`, a share. Out: trees, and what was read for them.

- Workers of one host have one forest in memory that all map, as the threads of one process do: a root is hooked by compare-and-swap,
  whichever process does it. They take the steps of `ForestSteps`, and there is nothing to join.
- Otherwise each has trees of its own (`link`), and those of two workers are joined by either of them (`join`).
"""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Any, ClassVar, NamedTuple

from oocgraph.cluster.ledger import WorkerLedger
from oocgraph.cluster.specs import GraphSpec, LeftError, StateLostError
from oocgraph.cluster.worker import Resident
from oocgraph.cluster.worker_steps import Hop, Steps, Taken
from oocgraph.compiled.load import load_kernels
from oocgraph.engine.forest import Forest, charge_forest, kernel_calls
from oocgraph.exchange.shared_memory import MemoryAddress, SharedMemory, carve
from oocgraph.memory import Budget, device_bytes_read
from oocgraph.store.graph import CSRStore, open_graph
from oocgraph.types import Array

FIRST_PLANES = 2
"""Planes that are linked before workers learn of each other's trees; more are not, because the largest tree is found by then."""

NUM_VECTORS = 7
"""Of a worker with its own trees: what all have found before, its trees and a neighbour's, the sum of these, another sum, and copies of
both."""

SHARED_VECTORS = 3
"""Of a worker that has the trees in common with others: these, a copy for the client, and what of it is on its way."""


class Linked(NamedTuple):
    """Trees that have been joined, and what was read for them.

    Attributes
    ----------
    parent : (num_vertices,) index dtype
        Of each vertex one of the same tree.
    num_planes
        Neighbours of each vertex that all shares together have linked.
    num_bytes, plane_bytes, device_bytes
        Asked of the store's files; of those, of planes; read from block devices.
    """

    parent: Array
    num_planes: int
    num_bytes: int
    plane_bytes: int
    device_bytes: int


@dataclass(slots=True)
class HeldForest(Resident):
    """The memory for trees, from the first share until the lease is released; what is done with it is done in turn.

    Attributes
    ----------
    num_vectors
        Vectors of vertex numbers that are charged: `NUM_VECTORS` or `SHARED_VECTORS`.
    epoch, memory, forests
        Of trees that workers have in common: the epoch of the last step, where they are, and the shares that are linked here.
    """

    store: CSRStore
    threads: int
    budget: Budget
    ledger: WorkerLedger
    num_vectors: int
    lock: threading.Lock = field(default_factory=threading.Lock)
    epoch: int = -1
    memory: SharedMemory | None = None
    forests: dict[int, Forest] = field(default_factory=dict)

    def enter(self, epoch: int) -> None:
        """Give back what an earlier epoch had in common.

        Raises
        ------
        LeftError
            A later one has begun.
        """
        if epoch < self.epoch:
            raise LeftError("the components have begun again")
        if epoch > self.epoch:
            self._leave()
            self.epoch = epoch

    def make_memory(self) -> tuple[Any, ...]:
        """Make the memory of the trees, for all; returns its address."""
        self.memory = SharedMemory.for_arrays([(self.store.num_rows, self.store.index_dtype)])
        return tuple(self.memory.address)

    def begin(self, share: tuple[int, int], said: Sequence[TreesSaid]) -> None:
        """Map the memory whose address the first share has said, and begin with a share of the vertices."""
        if self.memory is None:
            (address,) = (one.address for one in said if one.address is not None)
            self.memory = SharedMemory.open(MemoryAddress(*address))
        self.forests[share[0]] = Forest(self.store, self.threads, share=share, parent=self.parent())

    def parent(self) -> Array:
        """Return the trees that workers have in common.

        Raises
        ------
        StateLostError
            The worker was started again.
        """
        if self.memory is None:
            raise StateLostError("the worker does not have the trees")
        return carve(self.memory.data, [(self.store.num_rows, self.store.index_dtype)])[0]

    def close(self) -> None:
        """Give back everything."""
        with self.lock:
            self._leave()
            self.epoch = 2**62
            self.ledger.close(self.budget)

    def _leave(self) -> None:
        for forest in self.forests.values():
            forest.close()
        if self.memory is not None:
            self.memory.close()
        self.forests, self.memory = {}, None


def _held(plugin: Any, lease: str, spec: GraphSpec, num_vectors: int) -> HeldForest:
    def make() -> HeldForest:
        store = open_graph(spec.url, check_pages=spec.check_pages)
        load_kernels(kernel_calls(store))
        threads = spec.threads_on(plugin.worker)
        with plugin.ledger.naming(), plugin.ledger.opening(spec.requested_memory) as budget, budget.all_or_none():
            charge_forest(store, budget, threads, num_vectors=num_vectors)
        return HeldForest(store, threads, budget, plugin.ledger, num_vectors)

    with plugin.ledger.lock:
        there = plugin.resident.get(lease)
        if there is not None and there.num_vectors != num_vectors:  # workers had the trees in common, until one was lost
            plugin.drop(lease)
        held: HeldForest = plugin.keep(lease, make)
        return held


def acquire(plugin: Any, lease: str, spec: GraphSpec, shares: Sequence[int]) -> list[dict[str, Any]]:
    """Take shares on this worker; what they need is reserved when they are linked, for it depends on what workers can share."""
    plugin.check_lease(lease)
    return [{"partition": p, "worker": plugin.worker.address} for p in shares]


class Phase(IntEnum):
    """The steps of `ForestSteps`: the first share makes memory; all begin, link planes, compress, and link lists."""

    MEMORY = 0
    BEGIN = 1
    PLANES = 2
    COMPRESS = 3
    LISTS = 4


class TreesSaid(NamedTuple):
    """What a share says to the others.

    Attributes
    ----------
    address
        Of the memory (`MemoryAddress`), from the first share in the first step; else None.
    giant
        Root of the largest tree, from the first share when all planes are linked; else -1.
    """

    address: Sequence[Any] | None
    giant: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ForestSteps(Steps):
    """What the shares do with trees that they have in common, a `Phase` in each step.

    Attributes
    ----------
    spec
        Of the graph.
    """

    spec: GraphSpec
    message: ClassVar[type[Any]] = TreesSaid

    def take(
        self, plugin: Any, hop: Hop, p: int, number: int, before: Sequence[Any], own: Mapping[int, Array], *, is_first: bool
    ) -> Taken:  # fmt: skip
        """Take a step.

        Raises
        ------
        BudgetError
            The trees do not fit; the message names the worker.
        CorruptStoreError
            The store cannot be read.
        """
        held = _held(plugin, hop.lease, self.spec, SHARED_VECTORS)
        with held.lock:
            held.enter(hop.epoch)
            plugin.at("compute", number, p)
            device, address, giant = device_bytes_read(), None, -1
            if number == Phase.MEMORY:
                address = held.make_memory() if p == 0 else None
            elif number == Phase.BEGIN:
                held.begin((p, self.spec.num_partitions), before)
            elif p not in held.forests:
                raise StateLostError(f"worker {plugin.worker.address} does not have the trees")
            elif number == Phase.PLANES:
                held.forests[p].link_planes(FIRST_PLANES)
            elif number == Phase.COMPRESS:
                largest = held.forests[p].largest()
                giant = largest if p == 0 else -1
            else:
                held.forests[p].link_lists(before[0].giant)
            forest = held.forests.get(p)
            read = [0, 0, 0] if forest is None else [forest.num_planes, forest.num_bytes, forest.plane_bytes]
            return Taken(TreesSaid(address, giant), {"read": read, "device_bytes": device_bytes_read() - device})

    def is_over(self, messages: Sequence[Any]) -> bool:
        """Return False: the number of the last step is known."""
        return False


def trees(plugin: Any, lease: str, spec: GraphSpec, epoch: int) -> Array:
    """Return a copy of the trees that workers have in common, when all are linked.

    Raises
    ------
    StateLostError
        The worker was started again.
    """
    held = _held(plugin, lease, spec, SHARED_VECTORS)
    with held.lock:
        held.enter(epoch)
        return held.parent().copy()


def link(plugin: Any, lease: str, spec: GraphSpec, share: tuple[int, int], before: Linked | None) -> Linked:
    """Link a share of the first planes, or where `before` has those of all workers, of the lists that are needed then.

    Raises
    ------
    BudgetError
        The trees do not fit; the message names the worker.
    CorruptStoreError
        The store cannot be read.
    """
    held = _held(plugin, lease, spec, NUM_VECTORS)
    with held.lock, Forest(held.store, held.threads, share=share) as forest:
        plugin.at("compute", 0 if before is None else 1, share[0])
        device = device_bytes_read()
        if before is None:
            forest.link_planes(FIRST_PLANES)
        else:
            forest.join(before.parent.copy())
            forest.num_planes = before.num_planes
            forest.link_lists()
        read = [forest.num_bytes, forest.plane_bytes, device_bytes_read() - device]
        if before is not None and share[0] == 0:
            read = [a + b for a, b in zip(read, before[2:], strict=True)]
        return Linked(forest.parent, forest.num_planes, *read)


def join(plugin: Any, lease: str, spec: GraphSpec, one: Linked, other: Linked) -> Linked:
    """Join what two workers have found; neither is changed, Dask may send it again."""
    held = _held(plugin, lease, spec, NUM_VECTORS)
    with held.lock, Forest(held.store, held.threads) as forest:
        forest.parent = one.parent.copy()
        forest.join(other.parent.copy())
        return Linked(forest.parent, one.num_planes, *(a + b for a, b in zip(one[2:], other[2:], strict=True)))
