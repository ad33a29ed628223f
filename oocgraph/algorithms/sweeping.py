"""What algorithms by sweeps share: arguments, resources, budget, time, and the fields of their results.

In: what a public function was called with, what it needs (`oocgraph.engine.sweeps.Needs`), and what it computes with `Sweeps`. Out: what
that has found, and the fields that all results have. An algorithm is one file of a page: it says what it needs, and its loop.
"""

from __future__ import annotations

import os
from bisect import bisect_left
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from dataclasses import replace
from functools import partial
from time import perf_counter
from typing import Any, TypeVar

from oocgraph.algorithms.runtimes import Runtime, check_runtime, checked_in_process, opened_of
from oocgraph.allocator import returned_memory
from oocgraph.arguments import check_number, check_whole
from oocgraph.engine.opened import Unopened
from oocgraph.engine.sweeps import Edges, Needs, Sweeps, least_bytes, load_sweep_kernels, open_sweeps, stream_edges
from oocgraph.errors import ArgumentError, BudgetError
from oocgraph.memory import Budget, PeakSampler, with_threads_that_fit
from oocgraph.progress import watched
from oocgraph.resources import CAPABILITIES, Resources, resources_of
from oocgraph.store.graph import CSRStore, open_graph
from oocgraph.store.libraries import load_libraries
from oocgraph.store.vertices import VertexIds
from oocgraph.types import Progress, ProgressOption, ignore_progress

ITERATIONS = "iterations"
"""Phase of progress: iterations done, of the most that may be done."""

LEAST_ON_WORKERS = 16 << 20
"""Bytes of edges from which on sweeps run on the current client where none is given: asking workers takes about 10 ms a sweep, in which
one process passes over as many."""

Found = TypeVar("Found")


class Call:
    """One call of a public function that sweeps.

    Parameters
    ----------
    function
        Its name, in `oocgraph.resources.CAPABILITIES`.
    graph, runtime, resources, memory_budget, progress, client
        As they were given.

    Attributes
    ----------
    store : CSRStore
    num_threads : int
        Of this process: as many as were asked for, or as a run had room for.

    Raises
    ------
    ArgumentError
        They contradict each other.
    StoreError
        The store cannot be opened.
    """

    def __init__(
        self, function: str, graph: CSRStore | str | os.PathLike[str], runtime: Runtime | None, resources: Resources | None,
        memory_budget: str | int | None, progress: ProgressOption, client: Any = None,
    ) -> None:  # fmt: skip
        self._asked = resources_of(function, resources, memory_budget=memory_budget, client=client, runtime=runtime, graph=graph)
        self._function, self._runtime, self._progress, self._started = function, runtime, progress, perf_counter()
        if runtime is not None:
            if CAPABILITIES[function].cluster:
                check_runtime(runtime, graph)
            else:
                runtime = checked_in_process(runtime, graph, f"{function} runs")
            self._asked = replace(runtime.resources, client=runtime.client)
        self.store = open_graph(graph) if runtime is None else runtime.store
        is_given = client is not None or (resources is not None and resources.client is not None)
        if runtime is None and self.store.edge_bytes < (1 if is_given else LEAST_ON_WORKERS):
            self._asked = replace(self._asked, client=None)
        here = Resources() if self._asked.client else self._asked  # of this process, where vectors are
        self.num_threads = here.num_threads
        self._opened = Unopened(here.limit_bytes) if self._asked.client else opened_of(runtime, self.store, here)

    def part(self, store: CSRStore) -> Call:
        """Return a call that is a part of this one, of another graph: its budget has what the process held when this one began."""
        own = Resources(memory_budget=self._asked.memory_budget, threads=self._asked.threads)
        call = Call(self._function, store, None, own, None, self._progress)
        if isinstance(self._opened, Unopened):
            call._opened = Unopened(own.limit_bytes, baseline_bytes=self._opened.baseline_bytes)
        return call

    def run(self, needs: Needs, compute: Callable[[Sweeps], Found]) -> tuple[Found, dict[str, Any]]:
        """Compute within the budget; returns what was found, and fields of a `oocgraph.results.values.ValuesResult`.

        Raises
        ------
        BudgetError
            The budget is too small; the message names the smallest that works.
        CorruptStoreError
            The store cannot be read.
        """
        store, fields = self.store, dict[str, Any]()
        load_libraries(store)
        with watched(self._progress) as shown, PeakSampler() as sampler, returned_memory():
            load_sweep_kernels(store, needs)

            def within(budget: Budget) -> Found:
                with self._opening(needs, budget, shown) as sweeps:
                    began = perf_counter()
                    found = compute(sweeps)
                    fields.update(
                        seconds=perf_counter() - began, load_seconds=began - self._started, bytes_requested=sweeps.bytes_requested,
                        bytes_read=max(sweeps.bytes_requested, sweeps.edges.bytes_read), memory_budget=budget.limit_bytes,
                    )  # fmt: skip
                    return found

            def with_threads(threads: int) -> Found:
                self.num_threads = threads
                return self._opened.within(within)

            found = with_threads_that_fit(with_threads, self.num_threads, self.num_threads if self._asked.client else 1)
        fields.update(ids=VertexIds(store), edge_bytes=store.edge_bytes, peak_host_bytes=sampler.peak_bytes)
        return found, fields

    def most_that_fit(self, needs: Callable[[int], Needs], most: int) -> int:
        """Return the largest number, up to `most`, of which the needs are within the budget, in one thread; 0 if there is none."""

        def fits(num: int) -> bool:
            def within(budget: Budget) -> bool:
                self.num_threads = 1
                with self._opening(needs(num), budget, ignore_progress):
                    return True

            try:
                return self._opened.within(within)
            except BudgetError:
                return False

        return bisect_left(range(1, most + 1), True, key=lambda num: not fits(num))

    def _opening(self, needs: Needs, budget: Budget, progress: Progress) -> AbstractContextManager[Sweeps]:
        """Open the edges, here or on workers."""
        if self._asked.client:
            sent = needs.sent_bytes
            pieces, open_edges = sum(needs.vectors.values()) if sent is None else sent, self._on_workers
        else:
            pieces = least_bytes(self.store, needs, self.num_threads)
            open_edges = partial(stream_edges, opened=self._opened, threads=self.num_threads)
        return open_sweeps(self.store, needs, budget, open_edges, threads=self.num_threads, pieces=pieces, progress=progress)

    def _on_workers(self, store: CSRStore, needs: Needs, budget: Budget) -> AbstractContextManager[Edges]:
        """Have the workers of a cluster give the edges to kernels; imports nothing of Dask before."""
        from oocgraph.cluster.sweeps import open_on_workers

        return open_on_workers(store, needs, budget, self._asked, None if self._runtime is None else self._runtime.lease)


def check_iterations(tol: float, max_iter: int) -> None:
    """Refuse a tolerance or a number of iterations that makes no sense.

    Raises
    ------
    ArgumentError
        It does.
    """
    check_number("tol", tol, low=0)
    check_whole("max_iter", max_iter, least=1)


def check_weights(store: CSRStore, column: str | None, least: Iterable[float]) -> None:
    """Refuse weights of which the least, each of some edges, are negative or NaN (which stands for infinity, too).

    Raises
    ------
    ArgumentError
        They are.
    """
    if column is not None and not all(one >= 0 for one in least):
        named = store.attributes.input_column(column)
        raise ArgumentError(
            f"{store.url}: {named} has negative or infinite weights, or NaN; leave them out (weight=False), or name another column"
        )


def check_undirected(function: str, store: CSRStore) -> None:
    """Refuse a directed graph.

    Raises
    ------
    ArgumentError
        It is directed.
    """
    if store.attributes.directed:
        raise ArgumentError(f"{store.url} is directed, and {function} takes undirected graphs; build it with directed=False")
