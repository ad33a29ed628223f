"""What algorithms by sweeps share: arguments, resources, budget, time, and the fields of their results.

In: what a public function was called with, what it needs (`oocgraph.engine.sweeps.Needs`), and what it computes with `Sweeps`. Out: what
that has found, and the fields that all results have. An algorithm is one file of a page: it says what it needs, and its loop.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from dataclasses import replace
from time import perf_counter
from typing import Any, TypeVar

import numpy as np

from oocgraph.algorithms.runtimes import Runtime, checked_in_process, opened_of
from oocgraph.allocator import returned_memory
from oocgraph.engine.opened import Unopened
from oocgraph.engine.sweeps import Needs, Sweeps, load_sweep_kernels, open_sweeps
from oocgraph.errors import ArgumentError
from oocgraph.memory import Budget, PeakSampler
from oocgraph.progress import watched
from oocgraph.resources import Resources, is_count, resources_of
from oocgraph.store.graph import CSRStore, open_graph
from oocgraph.store.libraries import load_libraries
from oocgraph.store.vertices import VertexIds
from oocgraph.types import ProgressOption

Found = TypeVar("Found")


class Call:
    """One call of a public function that sweeps.

    Parameters
    ----------
    function
        Its name, in `oocgraph.resources.CAPABILITIES`.
    graph, runtime, resources, memory_budget, progress
        As they were given.

    Attributes
    ----------
    store : CSRStore

    Raises
    ------
    ArgumentError
        They contradict each other.
    StoreError
        The store cannot be opened.
    """

    def __init__(
        self, function: str, graph: CSRStore | str | os.PathLike[str], runtime: Runtime | None, resources: Resources | None,
        memory_budget: str | int | None, progress: ProgressOption,
    ) -> None:  # fmt: skip
        self._asked = resources_of(function, resources, memory_budget=memory_budget, runtime=runtime)
        self._function, self._progress, self._started = function, progress, perf_counter()
        if runtime is not None:
            runtime = checked_in_process(runtime, graph, f"{function} runs")
            self._asked = replace(runtime.resources, client=False)
        self.store = open_graph(graph) if runtime is None else runtime.store
        self._opened = opened_of(runtime, self.store, self._asked)

    @property
    def num_threads(self) -> int:
        """Threads that compute."""
        return self._asked.num_threads

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
                with open_sweeps(store, needs, self._opened, budget, threads=self._asked.num_threads, progress=shown) as sweeps:
                    began = perf_counter()
                    found = compute(sweeps)
                    fields.update(
                        seconds=perf_counter() - began, load_seconds=began - self._started, bytes_requested=sweeps.bytes_requested,
                        bytes_read=sweeps.bytes_read, memory_budget=budget.limit_bytes,
                    )  # fmt: skip
                    return found

            found = self._opened.within(within)
        fields.update(ids=VertexIds(store), edge_bytes=store.edge_bytes, peak_host_bytes=sampler.peak_bytes)
        return found, fields


def check_iterations(tol: float, max_iter: int) -> None:
    """Refuse a tolerance or a number of iterations that makes no sense.

    Raises
    ------
    ArgumentError
        It does.
    """
    check_number("tol", tol, low=0)
    if not is_count(max_iter):
        raise ArgumentError(f"max_iter is {max_iter!r}; it must be a whole number, 1 or more")


def check_number(name: str, value: Any, *, low: float = -np.inf, high: float = np.inf, is_open: bool = False) -> None:
    """Refuse what is no number from `low` to `high`, or between them if `is_open`.

    Raises
    ------
    ArgumentError
        It is none.
    """
    number = isinstance(value, int | float | np.number) and not isinstance(value, bool)
    if not number or not (low < value < high if is_open else low <= value <= high) or not np.isfinite(value):
        bounds = f"above {low:g} and below {high:g}" if is_open else f"{low:g} or more" if high == np.inf else f"from {low:g} to {high:g}"
        raise ArgumentError(f"{name} is {value!r}; it must be a number{'' if low == -np.inf else ', ' + bounds}")


def check_weights(store: CSRStore, column: str | None, least: Iterable[float]) -> None:
    """Refuse weights of which the least, each of some edges, are negative or NaN.

    Raises
    ------
    ArgumentError
        They are.
    """
    if column is not None and not all(one >= 0 for one in least):
        raise ArgumentError(
            f"{store.url}: {column} has negative weights or NaN; weights must be 0 or more: leave them out (weight=False), or name another "
            "column"
        )
