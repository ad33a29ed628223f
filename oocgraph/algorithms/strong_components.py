"""Strongly connected components, out of core: a pivot's first, chains of the rest in memory, colours where it does not fit.

1. Trim: a vertex without in- or out-neighbours is a component. The pivot is the one with the largest product of their numbers.
2. Forward-backward: vertices that the pivot has a path to, and those that have one to it; both is its component. Each sweep over the
   in-lists spreads both, what it finds is used at once, and pieces without anything to do are not read.
3. The rest is trimmed in a sweep, and loaded into memory if there is room for it; Tarjan's algorithm ends it there. So it does once a sweep
   of step 2 finds few vertices: in a graph of long chains sweeps would be many.
4. What does not fit is coloured: every vertex takes the smallest of the random numbers of those that have a path to it; those with a path
   back to the vertex of that number are its component, and the others of the same number a class: no component is in two of them. Steps 3
   and 4 take turns, and no path is followed from class to class.

Slota, Rajamanickam, Madduri, "BFS and Coloring-based Parallel Algorithms for Strongly Connected Components and Related Problems"
(Multistep), IPDPS 2014. Differs from the paper in: sweeps in place of levels, with in-lists alone for both directions; whatever is left is
ended in memory as soon as it fits and sweeps find little, by Tarjan's algorithm (1972); numbers at random and classes, after Blelloch, Gu,
Shun, Sun, "Parallelism in Randomized Incremental Algorithms", SPAA 2016, by which the turns grow with the logarithm of the vertices.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import numpy as np

from oocgraph.algorithms.runtimes import Runtime
from oocgraph.algorithms.sweeping import Call
from oocgraph.arguments import known_keywords
from oocgraph.engine.naming import name_by_smallest_id, naming_bytes, naming_calls
from oocgraph.engine.rest import count_rest, example, has_room, is_due, load_rest, walk_calls, whole_bytes
from oocgraph.engine.sweeps import DEGREES_BYTES, Needs, Sweeps
from oocgraph.errors import ArgumentError
from oocgraph.kernels import strong as kernels
from oocgraph.kernels.rest import CORE, DONE, is_any_left
from oocgraph.resources import Resources
from oocgraph.results.strong import StrongComponentsResult
from oocgraph.store.graph import CSRStore
from oocgraph.types import Array, ProgressOption

FEW = 64
"""A sweep that finds less than one of so many vertices is not worth its time, if a rest in memory can follow it."""

ONE = np.uint64(1)

STEP_SECONDS = 2e-9
"""About what a vertex takes in a step on all vertices."""


@known_keywords
def strongly_connected_components(
    graph: CSRStore | str | os.PathLike[str],
    *,
    runtime: Runtime | None = None,
    resources: Resources | None = None,
    memory_budget: str | int | None = None,
    progress: ProgressOption = None,
) -> StrongComponentsResult:
    """Find the strongly connected components of a directed graph: the largest sets of vertices with a path from each to each.

    Parameters
    ----------
    graph
        A directed graph store or its path.
    runtime
        The graph opened before (`oocgraph.open_runtime`), in this process; it has its own resources, and keeps edges between calls.
    resources
        Threads and memory; see `oocgraph.Resources`.
    memory_budget
        Bytes that the process may hold (text such as ``"640M"``); the same as in `resources`.
    progress
        Called with ("vertices", how many have their component, all); True draws a bar.

    Returns
    -------
    StrongComponentsResult
        Its column `component` has the smallest id of each vertex's component; `num_components`; `largest`, vertices of the largest one.

    Raises
    ------
    ArgumentError
        An argument is invalid, or the graph is undirected.
    BudgetError
        The budget is too small; the message names the smallest that works.
    StoreError, CorruptStoreError
        The store cannot be opened or read.

    Notes
    -----
    Host memory: 10 bytes for each vertex that has edges (18 where there are 2**32), pieces of 2 MiB of edges (or as long as the longest
    list). What the budget has left may hold a rest, 44 bytes for each of its vertices and 4 for each of its edges (half of it, if that is
    too little for all of the graph), and edges that stay. A sweep reads half of the edges at most. The worst case is a long cycle, in no
    order, that does not fit as a rest: a sweep for every few of its vertices.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> from oocgraph import build_csr
    >>> with TemporaryDirectory() as folder:
    ...     result = strongly_connected_components(build_csr(([3, 1, 2, 2], [1, 2, 3, 4]), f"{folder}/g.zarr", directed=True))
    ...     result.component.tolist(), result.num_components, result.largest
    ([1, 1, 1, 4], 2, 3)
    """
    call = Call("strongly_connected_components", graph, runtime, resources, memory_budget, progress)
    store, n = call.store, call.store.num_rows
    if not store.attributes.directed:
        raise ArgumentError(
            f"{store.url} is undirected, and paths lead both ways: take connected_components, or a graph built with directed=True"
        )
    vector, none, bits, degrees = (
        n * store.index_dtype.itemsize,
        np.empty(0, store.index_dtype),
        np.empty(0, np.uint8),
        np.empty(0, np.int64),
    )
    rest, walk = example(store.index_dtype)
    needs = Needs(
        vectors={"components and colours": 2 * vector, "marks": 2 * n, "degrees and names": DEGREES_BYTES + naming_bytes(store)},
        result_bytes=vector, room_bytes=(0, whole_bytes(store)), room_share=0.5,
        kernels=[
            (kernels.search, bits, bits), (kernels.trim, bits, bits, none), (kernels.spread_colours, bits, none, none),
            (kernels.mark_back, bits, bits, none), (kernels.gather_after_search, bits, bits, rest),
        ],
        vertex_kernels=[
            (kernels.begin, bits, none, none, 0, degrees), (kernels.keep_core, bits, bits, none, 0, 0, 0, 0),
            (kernels.end_search, bits, bits, 0, 0),
            (kernels.end_trim, bits, bits, none, 0, 0), (kernels.begin_colours, none, ONE, 0, 0),
            (kernels.mark_roots, bits, bits, none, ONE, 0, 0),
            (kernels.end_colours, bits, bits, none, none, 0, 0), (kernels.has_to_mark, bits, bits, 0, 0),
            (kernels.has_to_search, bits, bits, 0, 0, True), (is_any_left, bits, 0, 0), (kernels.count_roots, none, 0, 0),
            (kernels.end_rest, rest, walk, bits, bits, none, 0), (kernels.largest_group, none, none),
            *naming_calls(store), *walk_calls(store),
        ],
    )  # fmt: skip
    (component, count, largest), fields = call.run(needs, lambda sweeps: _Strong(sweeps).find())
    details = {"num_components": count + store.attributes.num_isolated, "largest": max(largest, int(store.attributes.num_isolated > 0))}
    return StrongComponentsResult(stored={"component": component}, details=details, **fields)


class _Strong:
    """One run: the component of each vertex, named after any vertex of it, and the marks of `oocgraph.kernels.strong`."""

    def __init__(self, sweeps: Sweeps) -> None:
        n, dtype = sweeps.store.num_rows, sweeps.store.index_dtype
        self.sweeps, self.num_left = sweeps, n
        self.component, self.colour = np.empty(n, dtype), np.empty(n, dtype)
        self.own, self.other = np.zeros(n, np.uint8), np.zeros(n, np.uint8)
        self.random = np.random.default_rng(n)

    def find(self) -> tuple[Array, int, int]:
        """Return the components, how many there are, and the vertices of the largest."""
        pivot = self._begin()
        if pivot >= 0:
            self._search(pivot)
        while self.num_left:
            edges = self._trim()
            if not self.num_left or self._end_in_memory((self.num_left, edges)):
                break
            self._colour()
        return self._named()

    def _begin(self) -> int:
        """Trim by degrees; returns the pivot, or -1 if nothing is left."""
        for first, degree in self.sweeps.degrees("out"):
            self.colour[first : first + degree.size] = degree
        found = [kernels.begin(self.own, self.component, self.colour, first, degree) for first, degree in self.sweeps.degrees("in")]
        self.num_left -= sum(trimmed for _, _, trimmed in found)
        return int(max(found, key=lambda one: one[0], default=(0, -1))[1])

    def _search(self, pivot: int) -> None:
        """Find the component of the pivot, and all others if the rest fits into memory once sweeps find few vertices."""
        self.own[pivot], self.other[pivot] = kernels.AFTER, 1
        n, found = self.own.size, 1

        def has_work(start: int, stop: int) -> bool:
            return bool(kernels.has_to_search(self.own, self.other, start, stop, False))

        while found:
            found = sum(self.sweeps.pull(kernels.search, [self.own, self.other], only=has_work, alternates=True))
            if not found or (found * FEW < n and is_due(self.sweeps)):
                self._say(self._step(lambda a, z: kernels.keep_core(self.own, self.other, self.component, pivot, CORE, a, z)))
                if found and self._end_in_memory(count_rest(self.sweeps, self.own), pivot):
                    return
        self._step(lambda a, z: kernels.keep_core(self.own, self.other, self.component, pivot, DONE, a, z))
        self._step(lambda a, z: kernels.end_search(self.own, self.other, a, z))

    def _trim(self) -> int:
        """Find vertices without in- or out-neighbours that are left; returns the edges that are left, at most."""
        whole = [self.own, self.other, self.component]
        edges: int = sum(self.sweeps.pull(kernels.trim, whole, only=self._is_any_left, alternates=True))
        self._say(self._step(lambda a, z: kernels.end_trim(self.own, self.other, self.component, a, z)))
        return edges

    def _end_in_memory(self, size: tuple[int, int], pivot: int = -1) -> bool:
        """Find all that is left, if so many vertices and edges fit into memory; returns whether they do."""
        if not has_room(self.sweeps, size):
            return False

        def has_work(start: int, stop: int) -> bool:
            return bool(kernels.has_to_search(self.own, self.other, start, stop, True))

        rest, walk = load_rest(self.sweeps, size, self.colour, kernels.gather_after_search, [self.own, self.other], has_work)
        kernels.end_rest(rest, walk, self.own, self.other, self.component, pivot)
        self._say(0)
        return True

    def _colour(self) -> None:
        """Find the components of the vertices that colours come from."""
        own, other, colour, component, found = self.own, self.other, self.colour, self.component, 1
        factor = int(self.random.integers(2**63)) | 1
        inverse = pow(factor, -1, 2**64)

        def has_marks(start: int, stop: int) -> bool:
            return bool(kernels.has_to_mark(own, other, start, stop))

        self._step(lambda a, z: kernels.begin_colours(colour, np.uint64(factor), a, z))
        while found:
            found = sum(self.sweeps.pull(kernels.spread_colours, [own, component, colour], only=self._is_any_left, alternates=True))
        self._step(lambda a, z: kernels.mark_roots(own, other, colour, np.uint64(inverse), a, z))
        found = 1
        while found:
            found = sum(self.sweeps.pull(kernels.mark_back, [own, other, colour], only=has_marks, alternates=True))
        self._say(self._step(lambda a, z: kernels.end_colours(own, other, component, colour, a, z)))

    def _named(self) -> tuple[Array, int, int]:
        count = self._step(lambda a, z: kernels.count_roots(self.component, a, z))
        name_by_smallest_id(self.sweeps.store, self.component, self.colour, count, self._parts)
        return self.component, count, int(kernels.largest_group(self.component, self.colour))

    def _is_any_left(self, start: int, stop: int) -> bool:
        return bool(is_any_left(self.own, start, stop))

    def _parts(self, call: Callable[[int, int], Any]) -> list[Any]:
        return self.sweeps.vertices(call, STEP_SECONDS * self.own.size)

    def _step(self, call: Callable[[int, int], int]) -> int:
        return sum(found or 0 for found in self._parts(call))

    def _say(self, num_left: int) -> None:
        self.num_left = num_left
        self.sweeps.progress("vertices", self.own.size - num_left, self.own.size)
