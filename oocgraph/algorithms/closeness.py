"""Closeness and harmonic centrality, out of core: exact for given vertices, or estimated for all from searches of a sample.

Searches from 64 vertices at a time share what they read (`oocgraph.algorithms.source_words`). Distances are those to a vertex, as in
NetworkX: exact values are found by searches against the edges; estimates by searches along the edges from a sample, whose distances are
added up at every vertex that they reach.

Wasserman, Faust, "Social Network Analysis", 1994 (closeness of a disconnected graph); Boldi, Vigna, "Axioms for centrality", Internet
Mathematics 10, 2014 (harmonic); Eppstein, Wang, "Fast approximation of centrality", Journal of Graph Algorithms and Applications 8, 2004
(a sample).
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from oocgraph.algorithms.runtimes import Runtime
from oocgraph.algorithms.source_levels import Figures
from oocgraph.algorithms.source_words import SourceWords, words_needs
from oocgraph.algorithms.sweeping import Call
from oocgraph.arguments import is_whole, known_keywords
from oocgraph.engine.sweeps import Sweeps
from oocgraph.errors import ArgumentError
from oocgraph.kernels import words as kernels
from oocgraph.resources import Resources
from oocgraph.results.distances import ClosenessResult, HarmonicResult
from oocgraph.store.given import as_list
from oocgraph.store.graph import CSRStore
from oocgraph.store.vertices import VertexIds
from oocgraph.types import Array, ProgressOption

if TYPE_CHECKING:
    from distributed import Client

DENSE_SHARE = 50
"""NumPy draws one of fewer than so many ids from a list of all ids."""

SAMPLE_BYTES = 48
"""Of a vertex that was chosen: its number, as drawn and in order, its own sums, and its value."""


@known_keywords
def closeness_centrality(
    graph: CSRStore | str | os.PathLike[str],
    vertices: Any = None,
    *,
    k: int | None = None,
    wf_improved: bool = True,
    seed: int = 1,
    runtime: Runtime | None = None,
    resources: Resources | None = None,
    memory_budget: str | int | None = None,
    client: Client | None = None,
    progress: ProgressOption = None,
) -> ClosenessResult:
    """Find how close vertices are to those that reach them: 1 / (the average distance of these to it).

    Parameters
    ----------
    graph
        A graph store or its path; the distance along an edge is 1.
    vertices
        User ids of the vertices whose values are wanted, each of which takes a search; the others have NaN, or 0 if they have no edges. By
        default all vertices.
    k
        Estimate the values of all vertices by searches from so many, 2 or more, chosen at random.
    wf_improved
        Multiply by the share of the other vertices that reach it, as Wasserman and Faust do, and NetworkX.
    seed
        Of the choice; 0 or more.
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
    ClosenessResult
        Its column is `closeness`, float64; a vertex that no other reaches has 0.

    Raises
    ------
    VertexNotFoundError
        A vertex does not occur in the graph's input.
    ArgumentError
        An argument is invalid, or contradicts another.
    BudgetError
        The budget is too small; the message names the smallest that works.
    ClusterError
        The client is closed, no worker comes in time, workers have another version or do not see the graph, or are lost again and again.
    StoreError, CorruptStoreError
        The store cannot be opened or read.

    Notes
    -----
    What is exact: all values without `k`; with `k`, in an undirected graph, those of the vertices that were chosen. An estimate is that of
    Eppstein and Wang; with k of the order of log(N) / epsilon^2, the average distances of a connected graph are off by at most epsilon
    times its diameter, with high probability. Differs from them in: a vertex is no sample of itself, so k = N gives the exact values;
    and a vertex that some of the samples do not reach is taken to be reached by the same share of all vertices.

    Searches are made 64 at a time, and all vertices without `k` take N / 64 such passes: hours for large graphs.

    Host memory: 40 bytes for each vertex that has edges, and 8 for each that is searched from; with `k`, 44 and 48, and 8 for each id where
    k is more than a fiftieth of them. Beside these, pieces of 2 MiB of edges (or as long as the longest list), and what the budget has left
    for edges that stay.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> from oocgraph import build_csr
    >>> with TemporaryDirectory() as folder:
    ...     result = closeness_centrality(build_csr(([1, 2, 3], [2, 3, 4]), f"{folder}/g.zarr"))
    ...     result.closeness.tolist()
    [0.5, 0.75, 0.75, 0.5]
    """
    call = Call("closeness_centrality", graph, runtime, resources, memory_budget, progress, client)
    others = call.store.attributes.num_input_vertices - 1

    def exact(num: Array, total: Array) -> Array:
        share = num / others if wf_improved and others > 0 else 1.0
        return np.divide(num, total, out=np.zeros(total.size), where=total > 0) * share

    def estimate(num: Array, total: Array, num_samples: int) -> None:
        kernels.closeness(num, total, num_samples if wf_improved else 0)

    values, fields = _values(call, vertices, k, seed, _Sums(exact, estimate, is_inverse=False))
    return ClosenessResult(stored={"closeness": values}, isolated={"closeness": 0.0}, **fields)


@known_keywords
def harmonic_centrality(
    graph: CSRStore | str | os.PathLike[str],
    vertices: Any = None,
    *,
    k: int | None = None,
    seed: int = 1,
    runtime: Runtime | None = None,
    resources: Resources | None = None,
    memory_budget: str | int | None = None,
    client: Client | None = None,
    progress: ProgressOption = None,
) -> HarmonicResult:
    """Find the sum of 1 / distance of all vertices that reach a vertex.

    Parameters
    ----------
    graph
        A graph store or its path; the distance along an edge is 1.
    vertices
        User ids of the vertices whose values are wanted, each of which takes a search; the others have NaN, or 0 if they have no edges. By
        default all vertices.
    k
        Estimate the values of all vertices by searches from so many, 2 or more, chosen at random.
    seed
        Of the choice; 0 or more.
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
    HarmonicResult
        Its column is `harmonic`, float64; a vertex that no other reaches has 0.

    Raises
    ------
    VertexNotFoundError
        A vertex does not occur in the graph's input.
    ArgumentError
        An argument is invalid, or contradicts another.
    BudgetError
        The budget is too small; the message names the smallest that works.
    ClusterError
        The client is closed, no worker comes in time, workers have another version or do not see the graph, or are lost again and again.
    StoreError, CorruptStoreError
        The store cannot be opened or read.

    Notes
    -----
    As for `oocgraph.closeness_centrality`; an estimate is the sum over the sample, times the number of other vertices for each of it.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> from oocgraph import build_csr
    >>> with TemporaryDirectory() as folder:
    ...     result = harmonic_centrality(build_csr(([1, 2], [2, 3]), f"{folder}/g.zarr", directed=True))
    ...     result.harmonic.tolist()
    [0.0, 1.0, 1.5]
    """
    call = Call("harmonic_centrality", graph, runtime, resources, memory_budget, progress, client)
    others = call.store.attributes.num_input_vertices - 1

    def estimate(num: Array, total: Array, num_samples: int) -> None:
        np.multiply(total, others / num_samples, out=total)

    values, fields = _values(call, vertices, k, seed, _Sums(lambda num, total: total, estimate, is_inverse=True))
    return HarmonicResult(stored={"harmonic": values}, isolated={"harmonic": 0.0}, **fields)


class _Sums(NamedTuple):
    """What a centrality is, by the number of vertices that reach a vertex, and the sum of their distances, or of 1 / these.

    Attributes
    ----------
    exact
        Returns it.
    estimate
        Puts it in the place of the sum, by the samples that reach a vertex and how many others there are.
    is_inverse
    """

    exact: Callable[[Array, Array], Array]
    estimate: Callable[[Array, Array, int], None]
    is_inverse: bool

    def of(self, figures: Figures) -> Array:
        """Return it by what searches from the vertices have found."""
        return self.exact(figures.num, figures.inverse if self.is_inverse else figures.total.astype(np.float64))


def _values(call: Call, vertices: Any, k: int | None, seed: int, sums: _Sums) -> tuple[Array, dict[str, Any]]:
    """Return values of all vertices with edges, and fields of the result."""
    n, num_ids = call.store.num_rows, call.store.attributes.num_input_vertices
    if k is not None and vertices is not None:
        raise ArgumentError(
            "vertices and k are given: values of given vertices are exact, and k is a sample for all; leave one of them out"
        )
    if k is not None and not is_whole(k, 2, num_ids):
        raise ArgumentError(f"k is {k!r}; it must be a whole number from 2 to {num_ids}, the vertices of the graph; or leave it out")
    if seed < 0:
        raise ArgumentError(f"seed is {seed}; it must be 0 or more")
    chosen = None if vertices is None else VertexIds(call.store).vertices_of(as_list(vertices))

    def compute(sweeps: Sweeps) -> Array:
        if k is None:
            values = np.full(n, 0.0 if chosen is None else np.nan)
            sources = np.arange(n) if chosen is None else np.unique(chosen[chosen >= 0])
            _exact(SourceWords(sweeps), sources, sums, values)
            return values
        sources = np.random.default_rng(seed).choice(num_ids, k, replace=False, shuffle=False)
        return _estimated(SourceWords(sweeps), np.sort(sources[sources < n]), k, sums)

    empty, words = np.empty(0), np.empty(0, np.uint64)
    num, numbers = np.empty(0, np.int32), np.empty(0, np.int64)
    needs = words_needs(
        call.store, {"sums": 8 * n, **_sample_bytes(k, n, num_ids, 0 if chosen is None else chosen.size)}, 8 * n,
        [
            (kernels.add_up, words, 0, num, empty, False, 0, 0), (kernels.closeness, num, empty, 0),
            (kernels.add_listed, numbers, words, numbers, 0, num, empty, False),
        ] if k else [],
    )  # fmt: skip
    values, fields = call.run(needs, compute)
    num_sources = k or (num_ids if chosen is None else chosen.size)
    return values, {"details": {"num_sources": num_sources, "is_estimate": k is not None and k < num_ids}, **fields}


def _sample_bytes(k: int | None, n: int, num_ids: int, num_chosen: int) -> dict[str, int]:
    if k is None:
        return {"sources": 8 * (num_chosen or n)}
    return {"numbers of samples": 4 * n, "sample": SAMPLE_BYTES * k + (8 * num_ids if k * DENSE_SHARE >= num_ids else 0)}


def _exact(words: SourceWords, sources: Array, sums: _Sums, values: Array) -> None:
    """Set the values of some vertices, by searches against the edges."""
    for _, batch in words.batches(sources):
        figures = Figures(batch.size)
        for found in words.search(batch, reverse=True):
            figures.add(found)
        values[batch] = sums.of(figures)


def _estimated(words: SourceWords, sources: Array, k: int, sums: _Sums) -> Array:
    """Return values by searches along the edges from a sample of k vertices, of which `sources` have edges."""
    n, is_directed = words.sweeps.store.num_rows, words.sweeps.store.attributes.directed
    num, total = np.zeros(n, np.int32), np.zeros(n)
    exact = np.zeros(sources.size)
    for here, batch in words.batches(sources):
        figures = Figures(batch.size)
        for found in words.search(batch, lists=True):
            words.over_found(found, kernels.add_up, kernels.add_listed, num, total, sums.is_inverse)
            figures.add(found)
        exact[here] = sums.of(figures)
    of_sources = num[sources], total[sources]
    sums.estimate(num, total, k)
    if is_directed:
        sums.estimate(*of_sources, k - 1)  # of which a source is none itself
        exact = of_sources[1]
    total[sources] = exact
    return total
