"""Sweeps on a Dask cluster: each worker has a range of the rows, and is sent the vectors of each sweep.

In: a client, what an algorithm needs. Out: `ClusterEdges`, which an algorithm does not tell from edges in its own process. A sweep changes
nothing in this process before all workers have returned: if one is lost meanwhile, its rows go to others, and the sweep is made again.
What a sweep costs beside the edges: all vectors of all vertices that a kernel reads go to every worker, as with PageRank, by way of this
process.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from oocgraph.cluster import worker_sweeps
from oocgraph.cluster.session import ClusterSession
from oocgraph.cluster.worker_ranks import cut_rows
from oocgraph.cluster.worker_sweeps import Range, SweepSpec, Swept
from oocgraph.config import settings
from oocgraph.engine.sweeps import Lists, Needs, Way, lists_of
from oocgraph.memory import Budget
from oocgraph.resources import Resources
from oocgraph.store.fingerprint import graph_fingerprint
from oocgraph.store.graph import CSRStore
from oocgraph.types import Array


@contextmanager
def open_on_workers(store: CSRStore, needs: Needs, budget: Budget, resources: Resources, lease: str | None) -> Iterator[ClusterEdges]:
    """Yield the edges on the workers of a client; threads and memory of `resources` are of each worker.

    With the `lease` of a runtime workers keep edges for its next run.

    Raises
    ------
    BudgetError
        Vectors do not fit, here or on a worker, which is named.
    ClusterError
        The client is closed, no worker comes in time, workers have another version or do not see the graph.
    """
    num_bytes = sum(needs.vectors.values()) if needs.sent_bytes is None else needs.sent_bytes
    budget.reserve("vectors as workers send them", num_bytes)
    with ClusterSession(resources.client) as session, session.loss_reported():
        spec = SweepSpec(
            url=store.place, check_pages=store.check_pages, column=needs.column, lists=tuple(lists_of(store, needs)),
            settings=settings(), device="cpu", threads=resources.threads, memory_budget=resources.memory_budget, vector_bytes=num_bytes,
            kept_for=lease or session.lease,
        )  # fmt: skip
        edges = ClusterEdges(store, session, spec)
        session.rerun(edges.place)
        yield edges


@dataclass(slots=True, eq=False)
class ClusterEdges:
    """The edges of a graph on the workers of a session."""

    store: CSRStore
    session: ClusterSession
    spec: SweepSpec
    bytes_requested: int = 0
    bytes_read: int = 0
    _addresses: list[str] | None = None
    _ranges: dict[Lists, list[Range]] | None = None
    _number: int = -1

    def place(self) -> None:
        """Find the workers, give each a range of the rows of every list, and have them reserve what they need."""
        found = sorted(self.session.find_workers(self.spec.url, graph_fingerprint(self.store)))
        self._addresses = found[: max(1, min(len(found), self.store.num_rows))]
        self._ranges = {}
        for lists in self.spec.lists:
            entries, rows = cut_rows(self.store, len(self._addresses), transpose=lists == "in")
            self._ranges[lists] = [Range(p, lists, *one) for p, one in enumerate(zip(entries, rows, strict=True))]
        shares = zip(self._addresses, zip(*self._ranges.values(), strict=True), strict=True)
        self._gather([(address, worker_sweeps.prepare, (self.spec, ranges)) for address, ranges in shares])

    def pull(self, kernel: Any, whole: Sequence[Array], mine: Sequence[Array], scalars: Sequence[Any], way: Way) -> list[Any]:
        """See `oocgraph.engine.sweeps.Sweeps.pull`; all rows are given: a kernel does nothing for those without work anyway."""
        self._number += 1
        swept = self.session.rerun(lambda: self._sweep(kernel, whole, mine, scalars, way.lists), self.place)
        for rows, one in swept:
            for ours, theirs in zip(mine, one.mine, strict=True):
                ours[slice(*rows)] = theirs
            self.bytes_requested, self.bytes_read = self.bytes_requested + one.bytes_requested, self.bytes_read + one.bytes_read
        return [result for _, one in swept for result in one.results]

    def _sweep(
        self, kernel: Any, whole: Sequence[Array], mine: Sequence[Array], scalars: Sequence[Any], lists: Lists
    ) -> list[tuple[tuple[int, int], Swept]]:  # fmt: skip
        """Return the rows of each range, and what its worker has returned."""
        assert self._addresses is not None
        assert self._ranges is not None
        ranges = self._ranges[lists if lists in self._ranges else self.spec.lists[0]]
        named, sent = (kernel.py_func.__module__, kernel.py_func.__name__), [self.session.scatter(tuple(whole), self._addresses)]
        try:
            tasks = []
            for address, one in zip(self._addresses, ranges, strict=True):
                sent.append(self.session.scatter(tuple(vector[slice(*one.rows)] for vector in mine), [address]))
                tasks.append((address, worker_sweeps.sweep, (self.spec, one, self._number, named, sent[0], sent[-1], tuple(scalars))))
            return list(zip([one.rows for one in ranges], self._gather(tasks), strict=True))
        finally:
            self.session.drop(sent)

    def _gather(self, tasks: Sequence[tuple[str, Callable[..., Any], tuple[Any, ...]]]) -> list[Any]:
        """Submit tasks, each for one worker, and fetch what they return."""
        submitted = self.session.at_once(lambda: [self.session.call(address, call, *given) for address, call, given in tasks])
        return self.session.gather(dict(zip(submitted, [address for address, _, _ in tasks], strict=True)))
