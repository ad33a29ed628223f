"""Betweenness centrality, out of core: shortest paths from eight sources at once, by two sweeps for each level.

Levels of few vertices are listed and passed in one call, by one thread, where the rows stay in memory: see
`oocgraph.algorithms.source_words`.

Brandes, "A faster algorithm for betweenness centrality", Journal of Mathematical Sociology 25, 2001, algorithm 1; with NetworkX's
conventions. Differs from the paper in: there is no queue, stack or list of predecessors. A sweep against the edges finds a level and adds
up numbers of paths; levels are stored, and a sweep along the edges finds what depends on a level from those on the next one.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from random import Random
from typing import Any

import numpy as np

from oocgraph.algorithms.runtimes import Runtime
from oocgraph.algorithms.sweeping import Call
from oocgraph.arguments import known_keywords
from oocgraph.engine.sweeps import Lists, Needs, Sweeps
from oocgraph.errors import ArgumentError
from oocgraph.kernels import betweenness as kernels
from oocgraph.kernels.betweenness import LANES, WORD
from oocgraph.kernels.piece_rows import DONE, MISSING
from oocgraph.resources import Resources, is_count
from oocgraph.results.centrality import BetweennessResult
from oocgraph.store.graph import CSRStore
from oocgraph.store.vertices import VertexIds
from oocgraph.types import Array, ProgressOption

SOURCES = "sources"
"""Phase of progress: sources done, of all."""

UNSEEN = np.iinfo(np.uint16).max
"""Level of a vertex that has not been found; others are below."""

MARKED_SHARE = 1 / 32
"""Share of all edges below which those of a level mark its neighbours, so that only these rows, and pieces that have any, are looked at."""

BLOCK_IDS = 1 << 14
"""Ids that are looked at together for those of a sample: less than 1 MiB."""

VERTEX_SECONDS = 1e-8
"""About what a vertex takes when its levels or paths are looked at."""

LISTED_SHARE, LEAST_LISTED = 4, 1 << 14
"""Of the vertices one in so many, or so many, are the vertices and edges of a level that is listed at the most."""

LISTED_LEVELS, LEAST_LEVELS = 1 << 10, 4
"""Levels that are passed in one call, at the most; on the way back, from how many on that is done."""


@known_keywords
def betweenness_centrality(
    graph: CSRStore | str | os.PathLike[str],
    k: int | None = None,
    *,
    seed: int = 1,
    normalized: bool = True,
    endpoints: bool = False,
    runtime: Runtime | None = None,
    resources: Resources | None = None,
    memory_budget: str | int | None = None,
    progress: ProgressOption = None,
) -> BetweennessResult:
    """Find the betweenness centrality of every vertex: the share of the shortest paths between others that go through it, added up.

    Paths are counted by edges; weights are not used. An edge that occurs several times counts once, a self-loop not at all.

    Parameters
    ----------
    graph
        A graph store or its path.
    k
        Vertices whose paths are counted, as a sample of all of them; by default all, each of which takes as long.
    seed
        Chooses the sample: for the same seed the one of NetworkX, if the nodes of its graph were added by ascending id.
    normalized
        Divide by the number of pairs of other vertices; otherwise paths of an undirected graph count once for both directions.
    endpoints
        Count the ends of paths, too.
    runtime
        The graph opened before (`oocgraph.open_runtime`), in this process; it has its own resources, and keeps edges between calls.
    resources
        Threads and memory; see `oocgraph.Resources`.
    memory_budget
        Bytes that the process may hold (text such as ``"640M"``); the same as in `resources`.
    progress
        Called with ("sources", done, all); True draws a bar.

    Returns
    -------
    BetweennessResult
        Its column is `centrality`, float64; isolated vertices have 0. As in NetworkX it is NaN of the source of a sample of one, through
        which no path goes.

    Raises
    ------
    ArgumentError
        An argument is invalid, or `k` is larger than the graph; between two vertices there are more shortest paths than float64 can count
        (1.8e308), or more than 65,534 edges.
    BudgetError
        The budget is too small; the message names the smallest that works.
    StoreError, CorruptStoreError
        The store cannot be opened or read.

    Notes
    -----
    Host memory: 96 bytes for each vertex that has edges, pieces of 2 MiB of edges (or as long as the longest list), and what the budget
    has left for edges that stay. Of a sample about 250 bytes for each source, and 40 for each vertex where it is a large part of these.
    Eight sources read the others at most three times for each level, and of these only pieces with rows that matter. Isolated vertices may
    be in a sample, as in NetworkX.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> from oocgraph import build_csr
    >>> with TemporaryDirectory() as folder:
    ...     result = betweenness_centrality(build_csr(([1, 2, 3], [2, 3, 4]), f"{folder}/g.zarr"), normalized=False)
    ...     result.centrality.tolist()
    [0.0, 2.0, 2.0, 0.0]
    """
    call = Call("betweenness_centrality", graph, runtime, resources, memory_budget, progress)
    return find_betweenness(call, k, Random(seed), normalized=normalized, endpoints=endpoints)


def find_betweenness(call: Call, k: int | None, random: Random, *, normalized: bool, endpoints: bool) -> BetweennessResult:
    """Find the betweenness centrality of every vertex, with a sample that `random` chooses; see `betweenness_centrality`."""
    num_ids = call.store.attributes.num_input_vertices
    if k is not None and not (is_count(k) and k <= num_ids):
        raise ArgumentError(
            f"k is {k!r}; it must be a whole number from 1 to {num_ids}, which are all vertices of {call.store.url}; leave it out for all"
        )
    num_sampled = None if k is None or k == num_ids else int(k)

    def compute(sweeps: Sweeps) -> tuple[Array, int]:
        sources = range(sweeps.store.num_rows) if num_sampled is None else sampled(sweeps.store, num_sampled, random)
        paths = _Paths(sweeps)
        for first in range(0, len(sources), LANES):
            sweeps.progress(SOURCES, first, len(sources))
            paths.add(np.asarray(sources[first : first + LANES]), endpoints=endpoints)
        sweeps.progress(SOURCES, len(sources), len(sources))
        scale, of_sources = scales(
            num_ids, num_sampled, normalized=normalized, directed=call.store.attributes.directed, endpoints=endpoints
        )
        own = paths.centrality[sources] * of_sources if isinstance(sources, np.ndarray) else None
        sweeps.vertices(lambda a, z: kernels.rescale(paths.centrality, scale, a, z), VERTEX_SECONDS * paths.centrality.size)
        if own is not None:
            paths.centrality[sources] = own
        return paths.centrality, paths.depth

    (centrality, depth), fields = call.run(_needs(call.store, num_sampled), compute)
    details = {"num_sources": num_sampled or num_ids, "depth": depth}
    return BetweennessResult(stored={"centrality": centrality}, isolated={"centrality": 0.0}, details=details, **fields)


def sampled_positions(num_ids: int, num_sampled: int, random: Random) -> Array:
    """Return positions among all ids that are chosen, ascending."""
    return np.sort(np.fromiter(random.sample(range(num_ids), num_sampled), np.int64, num_sampled))


def sampled(store: CSRStore, num_sampled: int, random: Random) -> Array:
    """Return the store numbers of vertices chosen among all ids, those of isolated ones left out."""
    ids, found, start = VertexIds(store), list[Array](), 0
    positions = sampled_positions(ids.num_ids, num_sampled, random)
    for _, numbers in ids.stored_blocks(BLOCK_IDS):
        low, high = np.searchsorted(positions, [start, start + numbers.size])
        found.append(numbers[positions[low:high] - start])
        start += numbers.size
    sources = np.concatenate(found)
    return sources[sources >= 0]


def scales(num_ids: int, num_sampled: int | None, *, normalized: bool, directed: bool, endpoints: bool) -> tuple[float, float]:
    """Return what sums are multiplied by, as NetworkX does it: those of vertices outside of the sample, and of those in it."""
    others = num_ids if endpoints else num_ids - 1  # that may be where a path through a vertex begins
    if others < 2:
        return 1.0, 1.0
    scale = 1 / (others - 1) if normalized else others if directed else others / 2
    num_sources = num_sampled or others
    if num_sampled is None or endpoints:
        return scale / num_sources, scale / num_sources
    return scale / num_sources, scale / (num_sources - 1) if num_sources > 1 else np.nan


def _needs(store: CSRStore, num_sampled: int | None) -> Needs:
    n, k, num_ids = store.num_rows, num_sampled or 0, store.attributes.num_input_vertices
    numbers, words, paths, level = np.empty(0), np.empty(0, WORD), np.empty((0, LANES)), np.empty((LANES, 0), np.uint16)
    table, listed = (np.empty(0, np.int64), np.empty((0, 3), np.int64)), np.empty((2, 0), np.int64)
    kind, ends = np.empty(0, store.index_dtype), np.empty(0, np.int64)
    return Needs(
        vectors={
            "numbers of paths": 8 * LANES * n, "levels": 2 * LANES * n, "lanes": 3 * n, "centrality": 8 * n,
            "listed vertices": 2 * 9 * most_listed(n), "sizes of levels": 20 * UNSEEN,
            "sampled sources": 250 * k + (40 * num_ids if num_ids < 16 * k else 0),
        },
        result_bytes=8 * n, lists=("in", "out"),
        kernels=[
            (kernels.count_paths, words, paths, words, words, level, 0), (kernels.add_dependencies, words, paths, words, numbers),
            (kernels.mark_neighbours, words, words, words),
        ],
        vertex_kernels=[
            (kernels.find_level, level, 0, words, 0, 0), (kernels.invert_last, words, paths, 0, 0),
            (kernels.count_ends, words, WORD(0), numbers, 0, 0), (kernels.rescale, numbers, 0.0, 0, 0),
            (kernels.list_front, words, ends), (kernels.list_levels, level, 0, ends, words, ends),
            (kernels.count_listed, *table, *table, kind, words, paths, words, words, level, 0, listed, 0, listed, 0),
            (kernels.add_listed, *table, kind, words, paths, words, numbers, ends, words, ends, 0),
        ],
    )  # fmt: skip


def most_listed(num_vertices: int) -> int:
    """Return how many vertices and edges a level that is listed has at the most."""
    return max(LEAST_LISTED, num_vertices // LISTED_SHARE)


class _Paths:
    """Shortest paths from the sources that have been added.

    Attributes
    ----------
    centrality : (num_vertices,) float64
        Sum of what depends on each vertex.
    depth : int
        The last level that any vertex is on.
    """

    def __init__(self, sweeps: Sweeps) -> None:
        n = sweeps.store.num_rows
        self._sweeps, self.depth = sweeps, 0
        self._paths: Array = np.zeros((n, LANES))
        self._level: Array = np.zeros((LANES, n), np.uint16)
        self._front, self._next, self._unseen = (np.zeros(n, WORD) for _ in range(3))
        self.centrality: Array = np.zeros(n)
        self._sizes: Array = np.zeros((UNSEEN + 1, 2), np.int64)  # of each level: vertices, and entries of their rows
        self._out = sweeps.table("out")
        self._in = sweeps.table("in") if sweeps.store.attributes.directed else self._out
        self._most = most_listed(n)
        self._vertices: Array = np.empty((2, self._most), np.int64)
        self._words: Array = np.empty(self._vertices.size, WORD)

    def add(self, sources: Array, *, endpoints: bool) -> None:
        """Add those from at most `LANES` sources."""
        lanes = np.arange(sources.size)
        used = WORD((1 << sources.size) - 1)
        self._level.fill(UNSEEN)
        self._front.fill(0)
        self._next.fill(0)
        self._unseen.fill(used)
        self._front[sources] = 1 << lanes
        self._unseen[sources] ^= self._front[sources]
        self._paths[sources, lanes] = 1
        self._sizes[0] = sources.size, 0
        depth = self._count()
        self._accumulate(depth)
        self.depth = max(self.depth, depth)
        if endpoints:
            counts = self._over_vertices(kernels.count_ends, self._unseen, used, self.centrality)
            self.centrality[sources] += np.sum(counts, axis=0)[lanes] - 2  # all paths begin there; it was counted as an end of one

    def _count(self) -> int:
        """Count shortest paths, level by level; returns the last one, whose lanes are in `_front`. Of each level notes the size."""
        depth = 0
        while depth < UNSEEN:
            if depth and self._is_small(depth):  # the neighbours of sources are often many
                num, is_over = self._count_listed(depth)
                depth += num
                if is_over:
                    return depth
            if depth < UNSEEN:
                if not self._count_level(depth + 1):
                    return depth
                depth += 1
        raise self._refusal(f"{UNSEEN:,} edges or more")

    def _count_level(self, depth: int) -> bool:
        """Find a level by sweeps; returns whether it has any vertices."""
        if self._sizes[depth - 1, 1] < self._sweeps.store.attributes.num_stored_edges * MARKED_SHARE:
            self._next.fill(0)
            self._pull(kernels.mark_neighbours, [self._unseen, self._next], [self._front], lists="out", only=self._front)
        else:
            np.copyto(self._next, self._unseen)
        whole, mine = [self._front, self._paths], [self._next, self._unseen]
        calls = self._pull(kernels.count_paths, whole, mine, [self._level, depth], only=self._next)
        self._check(all(finite for *_, finite in calls))
        self._sizes[depth] = [sum(call[i] for call in calls) for i in range(2)]
        if not self._sizes[depth, 0]:
            return False
        self._front, self._next = self._next, self._front
        return True

    def _count_listed(self, depth: int) -> tuple[int, bool]:
        """Find the levels after one that are small; returns how many, and whether there are no more at all."""
        most, num = min(UNSEEN, depth + LISTED_LEVELS) - depth, 0
        self._next.fill(0)
        while num < most:
            num_front = kernels.list_front(self._front, self._vertices[0])
            more, why, is_out, piece, finite = kernels.count_listed(
                self._out.firsts, self._out.places, self._in.firsts, self._in.places, self._out.kind, self._front, self._paths, self._next,
                self._unseen, self._level, depth + num + 1, self._vertices, num_front, self._sizes[depth + num + 1 :], most - num,
            )  # fmt: skip
            self._check(finite)
            num += more
            if why != MISSING or not (self._out if is_out else self._in).bring(piece):
                return num, why == DONE
        return num, False

    def _accumulate(self, last: int) -> None:
        """Add up dependencies, from the last level but one to the first; on the sources themselves none counts."""
        self._over_vertices(kernels.invert_last, self._front, self._paths)
        depth = last - 1
        while depth > 0:
            num, is_done = self._add_listed(depth)
            depth -= num
            if not is_done:
                self._over_vertices(kernels.find_level, self._level, depth, self._next)
                mine = [self._next, self.centrality]
                self._pull(kernels.add_dependencies, [self._front, self._paths], mine, lists="out", only=self._next)
                self._front, self._next = self._next, self._front
                depth -= 1

    def _add_listed(self, depth: int) -> tuple[int, bool]:
        """Add up dependencies on a level and those before it that are small; returns how many, and whether all of these are done."""
        if depth < LEAST_LEVELS or not all(self._is_small(depth - i) for i in range(LEAST_LEVELS)):
            return 0, False
        vertices, table, sizes = self._vertices.reshape(-1), self._out, self._sizes[depth : max(0, depth - LISTED_LEVELS) : -1]
        behind = np.cumsum(sizes[:, 0])
        num = int(np.argmax(np.append((behind > vertices.size) | (sizes.sum(axis=1) > self._most), True)))
        ends = np.append(0, np.cumsum(sizes[num - 1 :: -1, 0]))
        kernels.list_levels(self._level, depth - num + 1, vertices, self._words, ends)
        done, why, is_here = 0, MISSING, True
        while why == MISSING and is_here:
            self._next.fill(0)
            more, why, piece = kernels.add_listed(
                table.firsts, table.places, table.kind, self._front, self._paths, self._next, self.centrality, vertices, self._words,
                ends[: num - done + 1], self._most,
            )  # fmt: skip
            if more:
                self._front, self._next = self._next, self._front
            done += more
            is_here = why != MISSING or table.bring(piece)
        return done, why == DONE

    def _pull(
        self, kernel: Any, whole: list[Array], mine: list[Array], scalars: Sequence[Any] = (), *, lists: Lists = "in", only: Array
    ) -> list[Any]:  # fmt: skip
        """`Sweeps.pull` of pieces with rows that have a lane in `only`."""
        return self._sweeps.pull(kernel, whole, mine, scalars, lists=lists, only=lambda a, z: bool(only[a:z].any()))

    def _is_small(self, depth: int) -> bool:
        return bool(self._sizes.item(depth, 0) + self._sizes.item(depth, 1) <= self._most)

    def _check(self, are_finite: bool) -> None:
        if not are_finite:
            raise self._refusal(f"more than {np.finfo(np.float64).max:.2g} shortest paths")

    def _over_vertices(self, kernel: Any, *arguments: Any) -> list[Any]:
        return self._sweeps.vertices(lambda a, z: kernel(*arguments, a, z), VERTEX_SECONDS * self.centrality.size)

    def _refusal(self, what: str) -> ArgumentError:
        return ArgumentError(
            f"{self._sweeps.store.url}: between two vertices there are {what}, and betweenness_centrality cannot count them; "
            "give a smaller graph, or one of smaller diameter"
        )
