"""Betweenness centrality, out of core: shortest paths from eight sources at once, by two sweeps for each level.

Brandes, "A faster algorithm for betweenness centrality", Journal of Mathematical Sociology 25, 2001, algorithm 1; with NetworkX's
conventions. Differs from the paper in: there is no queue, stack or list of predecessors. A sweep against the edges finds a level and adds
up numbers of paths; levels are stored, and a sweep along the edges finds what depends on a level from those on the next one
(`oocgraph.algorithms.path_counts`).
"""

from __future__ import annotations

import os
from random import Random

import numpy as np

from oocgraph.algorithms.path_counts import PathCounts
from oocgraph.algorithms.path_needs import path_needs
from oocgraph.algorithms.runtimes import Runtime
from oocgraph.algorithms.sweeping import Call
from oocgraph.arguments import is_whole, known_keywords
from oocgraph.engine.sweeps import Sweeps
from oocgraph.errors import ArgumentError
from oocgraph.kernels.betweenness import LANES
from oocgraph.resources import Resources
from oocgraph.results.centrality import BetweennessResult
from oocgraph.store.graph import CSRStore
from oocgraph.store.vertices import VertexIds
from oocgraph.types import Array, ProgressOption

SOURCES = "sources"
"""Phase of progress: sources done, of all."""

BLOCK_IDS = 1 << 14
"""Ids that are looked at together for those of a sample: less than 1 MiB."""


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
        An argument is invalid, or `k` is larger than the graph; shortest paths have more than 65,534 edges, or there are 1e522 times as
        many of them to one vertex as to another at the same distance.
    BudgetError
        The budget is too small; the message names the smallest that works.
    StoreError, CorruptStoreError
        The store cannot be opened or read.

    Notes
    -----
    Host memory: 96 bytes for each vertex that has edges, pieces of 2 MiB of edges (or as long as the longest list), and what the budget
    has left for edges that stay; where all of these do, 12 or 16 bytes more for each vertex and thread, if they are left, make it faster on
    graphs of many levels. Of a sample about 250 bytes for each source, and 40 for each vertex where it is a large part of these.
    Eight sources read the others at most three times for each level, and of these only pieces with rows that matter, or, of few vertices,
    only those rows. Isolated vertices may be in a sample, as in NetworkX.

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
    if k is not None and not is_whole(k, 1, num_ids):
        raise ArgumentError(
            f"k is {k!r}; it must be a whole number from 1 to {num_ids}, which are all vertices of {call.store.url}; leave it out for all"
        )
    num_sampled = None if k is None or k == num_ids else int(k)

    def compute(sweeps: Sweeps) -> tuple[Array, int]:
        sources = range(sweeps.store.num_rows) if num_sampled is None else sampled(sweeps.store, num_sampled, random)
        paths = PathCounts(sweeps)
        for first in range(0, len(sources), LANES):
            sweeps.progress(SOURCES, first, len(sources))
            paths.add(np.asarray(sources[first : first + LANES]), endpoints=endpoints)
        sweeps.progress(SOURCES, len(sources), len(sources))
        scale, of_sources = scales(
            num_ids, num_sampled, normalized=normalized, directed=call.store.attributes.directed, endpoints=endpoints
        )
        own = paths.centrality[sources] * of_sources if isinstance(sources, np.ndarray) else None
        paths.rescale(scale)
        if own is not None:
            paths.centrality[sources] = own
        return paths.centrality, paths.depth

    (centrality, depth), fields = call.run(path_needs(call.store, {"sampled sources": sample_bytes(num_ids, num_sampled or 0)}), compute)
    details = {"num_sources": num_sampled or num_ids, "depth": depth}
    return BetweennessResult(stored={"centrality": centrality}, isolated={"centrality": 0.0}, details=details, **fields)


def sample_bytes(num_ids: int, num_sampled: int) -> int:
    """Return what it takes to choose some of all ids."""
    return 250 * num_sampled + (40 * num_ids if num_ids < 16 * num_sampled else 0)


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
