"""Eccentricities, and the diameter of an undirected graph, out of core, by searches from 64 vertices at a time.

The diameter is found as follows (iFUB):

1. The middle is found by searches from vertices that may be it and, in turn, from the farthest of each. A vertex at distance d from one of
   eccentricity e has one of max(d, e - d) at the least: the next that may be the middle is the one of which that is least, until no vertex
   can be less eccentric than the middle so far.
2. No two vertices of level i or less around the middle are farther from each other than 2 i. From the outermost level inwards, searches
   from all vertices of a level find the largest of their eccentricities, until it is more than 2 i of what is left.
3. A vertex at distance d from one of eccentricity e has no more than e + d: if an eccentricity as large is known, it is left out.

Crescenzi, Grossi, Habib, Lanzi, Marino, "On computing the diameter of real-world undirected graphs", Theoretical Computer Science 514,
2013; the first step is of Borassi, Crescenzi, Habib, Kosters, Marino, Takes, "Fast diameter and radius BFS-based computation in (weakly
connected) real-world graphs", Theoretical Computer Science 586, 2015 (SumSweep); the third of Takes, Kosters, "Determining the Diameter of
Small World Networks", CIKM 2011. Differs in: from the levels 64 vertices are searched from at a time, which share what they read
(`oocgraph.algorithms.source_words`).
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from oocgraph.algorithms.runtimes import Runtime
from oocgraph.algorithms.source_levels import NUM_SOURCES, Figures
from oocgraph.algorithms.source_words import SEARCHES, SourceWords, words_needs
from oocgraph.algorithms.sweeping import Call
from oocgraph.arguments import check_whole, known_keywords
from oocgraph.engine.sweeps import Sweeps
from oocgraph.errors import ArgumentError, CorruptStoreError
from oocgraph.kernels import words as kernels
from oocgraph.resources import Resources
from oocgraph.results.distances import DiameterResult, EccentricityResult
from oocgraph.store.columns import distinct
from oocgraph.store.given import as_list
from oocgraph.store.graph import CSRStore
from oocgraph.store.vertices import VertexIds
from oocgraph.types import Array, ProgressOption

if TYPE_CHECKING:
    from distributed import Client

LEVEL_BYTES = 4
"""Of a vertex, in a table of levels."""

MOST_ROUNDS = 16
"""Vertices that may be the middle, at the most."""


@known_keywords
def eccentricity(
    graph: CSRStore | str | os.PathLike[str],
    vertices: Any = None,
    *,
    runtime: Runtime | None = None,
    resources: Resources | None = None,
    memory_budget: str | int | None = None,
    client: Client | None = None,
    progress: ProgressOption = None,
) -> EccentricityResult:
    """Find the eccentricity of vertices: the distance to the vertex that is farthest from it, along the edges.

    Parameters
    ----------
    graph
        A graph store or its path; connected, a directed one strongly.
    vertices
        User ids of the vertices whose values are wanted; the others have -1. By default all vertices.
    runtime
        The graph opened before (`oocgraph.open_runtime`); it has its own resources, and keeps edges between calls.
    resources
        Threads, memory and cluster; see `oocgraph.Resources`.
    memory_budget
        Bytes that the process, or each worker, may hold (text such as ``"640M"``); the same as in `resources`.
    client
        A `distributed.Client` whose workers share the edges; as in `resources`. By default the current client, from 16 MiB of edges on. A
        lost worker costs the sweep that it was in.
    progress
        Called with ("searches", done, all); True draws a bar.

    Returns
    -------
    EccentricityResult
        Its column is `eccentricity`, int32.

    Raises
    ------
    VertexNotFoundError
        A vertex does not occur in the graph's input.
    ArgumentError
        An argument is invalid, or contradicts another, or a vertex does not reach all others.
    BudgetError
        The budget is too small; the message names the smallest that works.
    ClusterError
        The client is closed, no worker comes in time, workers have another version or do not see the graph, or are lost again and again.
    StoreError, CorruptStoreError
        The store cannot be opened or read.

    Notes
    -----
    Every vertex takes a search, and 64 are made at a time. Host memory: 36 bytes for each vertex that has edges, and 8 for each that is
    asked for, pieces of 2 MiB of edges (or as long as the longest list), and what the budget has left for edges that stay.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> from oocgraph import build_csr
    >>> with TemporaryDirectory() as folder:
    ...     result = eccentricity(build_csr(([1, 2, 3], [2, 3, 4]), f"{folder}/g.zarr"))
    ...     result.eccentricity.tolist()
    [3, 2, 2, 3]
    """
    call = Call("eccentricity", graph, runtime, resources, memory_budget, progress, client)
    n, chosen = call.store.num_rows, None
    if vertices is not None:
        numbers = VertexIds(call.store).vertices_of(as_list(vertices))
        chosen = distinct(numbers[numbers >= 0])
    _check_isolated(call.store)

    def compute(sweeps: Sweeps) -> Array:
        words, values = SourceWords(sweeps), np.full(n, -1, np.int32)
        sources = np.arange(n) if chosen is None else chosen
        for _, batch in words.batches(sources):
            values[batch] = _depths(words, batch)
        return values

    num_sources = n if chosen is None else chosen.size
    needs = words_needs(call.store, {"eccentricities": LEVEL_BYTES * n, "sources": 8 * num_sources}, LEVEL_BYTES * n, [])
    values, fields = call.run(needs, compute)
    stored = {"eccentricity": values}
    return EccentricityResult(stored=stored, isolated={"eccentricity": 0}, details={"num_sources": num_sources}, **fields)


@known_keywords
def diameter(
    graph: CSRStore | str | os.PathLike[str],
    *,
    max_searches: int | None = None,
    runtime: Runtime | None = None,
    resources: Resources | None = None,
    memory_budget: str | int | None = None,
    client: Client | None = None,
    progress: ProgressOption = None,
) -> DiameterResult:
    """Find the diameter of an undirected graph, or bounds of it: the largest distance between two vertices.

    Parameters
    ----------
    graph
        A graph store or its path; undirected and connected; the distance along an edge is 1.
    max_searches
        Stop after about so many searches, with the bounds that are known then. By default the diameter is found, which takes few searches
        for roads, grids and networks with hubs, and one from every sixth vertex where all are about equally eccentric (a uniform random
        graph), or from every one (a ring).
    runtime
        The graph opened before (`oocgraph.open_runtime`); it has its own resources, and keeps edges between calls.
    resources
        Threads, memory and cluster; see `oocgraph.Resources`.
    memory_budget
        Bytes that the process, or each worker, may hold (text such as ``"640M"``); the same as in `resources`.
    client
        A `distributed.Client` whose workers share the edges; as in `resources`. By default the current client, from 16 MiB of edges on. A
        lost worker costs the sweep that it was in.
    progress
        Called with ("searches", done, 0); True draws a bar.

    Returns
    -------
    DiameterResult
        Its `diameter`; if it was stopped, `lower` and `upper`.

    Raises
    ------
    ArgumentError
        An argument is invalid; the graph is directed, not connected, or has no vertices.
    BudgetError
        The budget is too small; the message names the smallest that works.
    ClusterError
        The client is closed, no worker comes in time, workers have another version or do not see the graph, or are lost again and again.
    StoreError, CorruptStoreError
        The store cannot be opened or read.

    Notes
    -----
    Host memory: 40 bytes for each vertex, pieces of 2 MiB of edges (or as long as the longest list), and what the budget has left for edges
    that stay.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> from oocgraph import build_csr
    >>> with TemporaryDirectory() as folder:
    ...     diameter(build_csr(([1, 2, 3], [2, 3, 4]), f"{folder}/g.zarr")).diameter
    3
    """
    if max_searches is not None:
        check_whole("max_searches", max_searches, least=1)
    call = Call("diameter", graph, runtime, resources, memory_budget, progress, client)
    n = call.store.num_rows
    if call.store.attributes.directed:
        raise ArgumentError(
            f"{call.store.url} is directed, and diameter takes undirected graphs; the largest value of eccentricity(graph), a search from "
            "every vertex, is the diameter of a strongly connected one"
        )
    if not call.store.attributes.num_input_vertices:
        raise ArgumentError(f"{call.store.url} has no vertices, so it has no diameter")
    _check_isolated(call.store)
    levels, row, words, numbers = np.empty((0, 0), np.int32), np.empty(0, np.int32), np.empty(0, np.uint64), np.empty(0, np.int64)
    needs = words_needs(
        call.store, {"levels": 2 * LEVEL_BYTES * n}, 0,
        [
            (kernels.write_levels, words, 0, levels, 0, 0), (kernels.write_listed, numbers, words, numbers, 0, levels),
            (kernels.vertices_at, row, 0, 0, numbers), (kernels.raise_least, row, 0, row),
            (kernels.cover, words, 0, row, 0, 0), (kernels.cover_listed, numbers, words, numbers, 0, row),
        ],
    )  # fmt: skip
    found, fields = call.run(needs, lambda sweeps: _Fringes(sweeps).bounds(max_searches) if n else (0, 0, [], 0))
    lower, upper, ends, num_searches = found
    ids: VertexIds = fields.pop("ids")
    named = ids.ids_of(ends).tolist() if ends else [next(ids.blocks())[0].tolist()[0]] * 2  # of a vertex alone
    return DiameterResult(lower=lower, upper=upper, ends=(named[0], named[1]), num_searches=num_searches, **fields)


class _Fringes:
    """iFUB in a connected graph with edges: the steps in the docstring of this module."""

    def __init__(self, sweeps: Sweeps) -> None:
        self.words, self.num_searches, self.depth = SourceWords(sweeps), 0, 0  # the largest level of the last searches
        self.lower, self.end = 0, 0  # the largest eccentricity so far, and a vertex that has it
        self.radius, self.middle = sweeps.store.num_rows, 0  # the smallest
        self.levels: Any = np.empty((2, sweeps.store.num_rows), np.int32)  # of the last search; what eccentricities are at the least

    def bounds(self, most: int | None) -> tuple[int, int, list[int], int]:
        """Return bounds of the diameter, two vertices at the distance of the lower one, and the number of searches."""
        self._find_middle()
        self._search(self.middle)
        upper = max(self.lower, 2 * int(self.levels[0].max()))
        for sources in self._from_outside():
            upper = max(self.lower, 2 * int(self.levels[0, sources[0]]))
            if self.lower == upper or (most is not None and self.num_searches >= most):
                break
            depths = _depths(self.words, sources)
            self._note(sources, depths)
            self._cover(sources, self.lower - depths)
            self.words.sweeps.progress(SEARCHES, self.num_searches, 0)
        upper, num_searches = max(self.lower, upper), self.num_searches
        self._search(self.end)
        return self.lower, upper, [self.end, int(self.levels[0].argmax())], num_searches

    def _find_middle(self) -> None:
        """Search from vertices in the middle of what is known, and from the farthest from each, until none can be more in the middle."""
        levels, least = self.levels
        least.fill(0)
        vertex = 0
        for _ in range(MOST_ROUNDS):
            self._search(vertex)
            self._search(int(levels.argmax()))
            vertex = int(least.argmin())
            if least[vertex] >= self.radius:
                break

    def _search(self, source: int) -> None:
        """Set the levels of all vertices, and raise what is known of how eccentric they are at the least."""
        numbers, levels = np.array([source]), self.levels[0]
        levels[source] = 0
        self._note(numbers, _depths(self.words, numbers, self.levels[:1]))
        kernels.raise_least(levels, self.depth, self.levels[1])

    def _cover(self, sources: Array, margins: Array) -> None:
        """Leave out all near to vertices that are less eccentric than another one, by so much: none is more eccentric than that."""
        for margin in np.unique(margins[margins > 0]).tolist():
            for found in self.words.search(sources[margins == margin], depth_limit=margin, lists=True):
                self.words.over_found(found, kernels.cover, kernels.cover_listed, self.levels[0])

    def _note(self, sources: Array, depths: Array) -> None:
        if (depths < self.levels[1, sources]).any():
            raise CorruptStoreError(
                f"{self.words.sweeps.store.url} is damaged: the distance between two vertices is not the same in both directions; run "
                "`oocgraph check`"
            )
        self.num_searches += sources.size
        self.depth = int(depths.max())
        if depths.max() > self.lower:
            self.lower, self.end = int(depths.max()), int(sources[depths.argmax()])
        if depths.min() < self.radius:
            self.radius, self.middle = int(depths.min()), int(sources[depths.argmin()])

    def _from_outside(self) -> Iterator[Array]:
        """Yield vertices, a word of them at a time, by level around the middle, the outermost first; of level 0 is the middle itself."""
        out = np.empty(NUM_SOURCES, np.int64)
        for one in range(int(self.levels[0].max()), -1, -1):
            start, count = 0, NUM_SOURCES
            while count == NUM_SOURCES:
                count, start = kernels.vertices_at(self.levels[0], one, start, out)
                if count:
                    yield out[:count].copy()


def _depths(words: SourceWords, sources: Array, levels: Array | None = None) -> Array:
    """Return the eccentricities of up to 64 vertices; write the levels of all others, if there is room for them.

    Raises
    ------
    ArgumentError
        One does not reach all others.
    """
    figures = Figures(sources.size)
    for found in words.search(sources, lists=levels is not None):
        figures.add(found)
        if levels is not None:
            words.over_found(found, kernels.write_levels, kernels.write_listed, levels)
    num_reached = figures.num + 1
    store = words.sweeps.store
    num_ids = store.attributes.num_input_vertices
    if (lost := np.flatnonzero(num_reached < num_ids)).size:
        vertex, reached = store.ids_of(sources[lost[:1]]).tolist()[0], num_reached[lost[0]]
        _refuse(store, f"vertex {vertex!r} reaches {reached:,} of {num_ids:,} vertices")
    return figures.depth


def _check_isolated(store: CSRStore) -> None:
    if store.attributes.num_isolated and store.attributes.num_input_vertices > 1:
        _refuse(store, f"{store.attributes.num_isolated:,} vertices have no edges")


def _refuse(store: CSRStore, why: str) -> NoReturn:
    strongly = "strongly " if store.attributes.directed else ""
    raise ArgumentError(
        f"{store.url} is not {strongly}connected, so distances are infinite: {why}; take one component of it, or the depth of each source "
        "that multi_source_bfs finds, which counts what is reached"
    )
