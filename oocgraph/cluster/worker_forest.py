"""A worker's share of connected components: trees of all vertices, joined along its share of the edges.

In: a `ForestSpec`, and what all workers have found before. Out: `Linked`. Two of them are joined by either worker.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from oocgraph.cluster.ledger import WorkerLedger
from oocgraph.engine.forest import Forest, charge_forest, kernel_calls
from oocgraph.kernels.load import load_kernels
from oocgraph.memory import Budget, device_bytes_read
from oocgraph.store.graph import CSRStore, open_graph
from oocgraph.types import Array

FIRST_PLANES = 2
"""Planes that are linked before workers learn of each other's trees; more are not, because the largest tree is found by then."""

NUM_VECTORS = 7
"""Of a worker: what all have found before, its own trees and a neighbour's, the sum of these, another sum, and copies of both."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ForestSpec:
    """A worker's share.

    Attributes
    ----------
    url, check_pages
        Of the graph; whether what is read of it is compared with its checksums.
    memory_budget, threads
        Of the worker, as asked for; None: as Dask gave them.
    share
        Which of how many.
    """

    url: str
    check_pages: bool
    memory_budget: str | int | None
    threads: int | None
    share: tuple[int, int]


class Linked(NamedTuple):
    """Trees that have been joined, and what was read for them.

    Attributes
    ----------
    parent : (num_vertices,) index dtype
        Of each vertex the smallest of its tree.
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
class HeldForest:
    """The memory for trees, from the first share until the lease is released; what is done with it is done in turn."""

    store: CSRStore
    threads: int
    budget: Budget
    ledger: WorkerLedger
    lock: threading.Lock = field(default_factory=threading.Lock)

    def forget(self, search: str) -> None:
        """Do nothing: no search has a state here."""

    def close(self) -> None:
        """Give back everything."""
        with self.lock:
            self.ledger.close(self.budget)


def _held(plugin: Any, lease: str, spec: ForestSpec) -> HeldForest:
    def make() -> HeldForest:
        store = open_graph(spec.url, check_pages=spec.check_pages)
        load_kernels(kernel_calls(store.index_dtype))
        threads = spec.threads or max(1, int(plugin.worker.state.nthreads))
        with plugin.ledger.naming(), plugin.ledger.opening(spec.memory_budget) as budget, budget.all_or_none():
            charge_forest(store, budget, threads, num_vectors=NUM_VECTORS)
        return HeldForest(store, threads, budget, plugin.ledger)

    held: HeldForest = plugin.keep(lease, make)
    return held


def link(plugin: Any, lease: str, spec: ForestSpec, before: Linked | None) -> Linked:
    """Link a share of the first planes, or where `before` has those of all workers, of the lists that are needed then.

    Raises
    ------
    BudgetError
        The trees do not fit; the message names the worker.
    CorruptStoreError
        The store cannot be read.
    """
    held = _held(plugin, lease, spec)
    with held.lock, Forest(held.store, held.threads, share=spec.share) as forest:
        plugin.at("compute", 0 if before is None else 1, spec.share[0])
        device = device_bytes_read()
        if before is None:
            forest.link_planes(FIRST_PLANES)
        else:
            forest.join(before.parent.copy())
            forest.num_planes = before.num_planes
            forest.link_lists()
        read = [forest.num_bytes, forest.plane_bytes, device_bytes_read() - device]
        if before is not None and spec.share[0] == 0:
            read = [a + b for a, b in zip(read, before[2:], strict=True)]
        return Linked(forest.parent, forest.num_planes, *read)


def join(plugin: Any, lease: str, spec: ForestSpec, one: Linked, other: Linked) -> Linked:
    """Join what two workers have found; neither is changed, Dask may send it again."""
    held = _held(plugin, lease, spec)
    with held.lock, Forest(held.store, held.threads) as forest:
        forest.parent = one.parent.copy()
        forest.join(other.parent.copy())
        return Linked(forest.parent, one.num_planes, *(a + b for a, b in zip(one[2:], other[2:], strict=True)))
