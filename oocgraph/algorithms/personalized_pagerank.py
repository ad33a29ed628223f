"""PageRank as many vertices see it, out of core: one sweep of the in-edges an iteration serves all of them.

Haveliwala, "Topic-Sensitive PageRank", WWW 2002, with NetworkX's conventions: a walk starts again at its seed, and a vertex that no edge
leaves passes its rank on to the seed. Differs from it in: walks begin at the seed, not anywhere, so a vertex that none reaches has rank 0
from the first iteration on; a vertex holds its ranks side by side, so an edge is read once for all seeds.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from oocgraph.algorithms.pagerank_arguments import check_arguments, chosen_column
from oocgraph.algorithms.runtimes import Runtime
from oocgraph.algorithms.sweeping import ITERATIONS, Call
from oocgraph.arguments import known_keywords
from oocgraph.engine.sweeps import Needs, Sweeps
from oocgraph.errors import ArgumentError, BudgetError, ConvergenceError
from oocgraph.kernels import personalized as kernels
from oocgraph.products.ranking import check_strengths
from oocgraph.resources import Resources
from oocgraph.results.personalized import PersonalizedPageRankResult
from oocgraph.store.graph import CSRStore
from oocgraph.store.scipy import row_degrees
from oocgraph.store.vertices import VertexIds
from oocgraph.types import Array, ProgressOption

if TYPE_CHECKING:
    from distributed import Client

NUMBER_SECONDS = 1e-9
"""About what a number takes that is multiplied."""


@known_keywords
def personalized_pagerank(
    graph: CSRStore | str | os.PathLike[str],
    seeds: Sequence[Any] | Array,
    *,
    damping: float = 0.85,
    tol: float = 1e-6,
    max_iter: int = 100,
    weight: str | bool | None = None,
    runtime: Runtime | None = None,
    resources: Resources | None = None,
    memory_budget: str | int | None = None,
    client: Client | None = None,
    progress: ProgressOption = None,
) -> PersonalizedPageRankResult:
    """Rank all vertices as each of some seeds sees them: where a walk is found in the long run that starts again at the seed.

    Parameters
    ----------
    graph
        A graph store or its path.
    seeds
        User ids, all different. Each has ranks of its own; for one ranking that starts at several see `oocgraph.pagerank`.
    damping
        Probability of following an edge, from 0 to below 1 (NetworkX's `alpha`).
    tol
        The run ends when the ranks of no seed change by N * tol, all together, as in NetworkX. 0: exactly `max_iter` iterations, and no
        error.
    max_iter
        Iterations at most.
    weight
        Edge column of the weights; True: the graph's weight; False: every edge counts 1; by default the graph's weight, if it has one.
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
        Called with ("iterations", done, most); True draws a bar.

    Returns
    -------
    PersonalizedPageRankResult
        ``rank`` has a column for each seed; ``of(ids, seed=...)`` and ``top(seed=...)`` look some up.

    Raises
    ------
    ConvergenceError
        The ranks of a seed still change by N * tol or more after `max_iter` iterations.
    ArgumentError
        An argument is invalid, or a weight is negative, NaN or infinite.
    VertexNotFoundError
        A seed does not occur in the graph's input.
    BudgetError
        The budget is too small; the message names the smallest that works, and how many seeds fit.
    ClusterError
        The client is closed, no worker comes in time, workers have another version or do not see the graph, or are lost again and again.
    StoreError, CorruptStoreError
        The store cannot be opened or read.

    Notes
    -----
    Host memory: for each vertex that has edges 16 bytes a seed (8 of them are the result) and 4 (8 with weights), pieces of 2 MiB of
    edges (or as long as the longest list), and what the budget has left for edges that stay. An iteration reads the others once.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> from oocgraph import build_csr
    >>> with TemporaryDirectory() as folder:
    ...     result = personalized_pagerank(build_csr(([0, 1, 2], [2, 2, 0]), f"{folder}/g.zarr", directed=True), [0, 1])
    ...     result.rank.round(3).tolist()
    [[0.541, 0.391], [0.0, 0.15], [0.459, 0.459]]
    """
    check_arguments(damping, tol, max_iter, weight)
    call = Call("personalized_pagerank", graph, runtime, resources, memory_budget, progress, client)
    store, column, names = call.store, chosen_column(call.store, weight), _distinct(call.store, seeds)
    n, enough = store.num_rows, tol * store.attributes.num_input_vertices
    numbers = VertexIds(store).vertices_of(names).astype(np.int64)

    def compute(sweeps: Sweeps) -> tuple[Array, int]:
        strength = _strength(sweeps, column)
        share, new = np.zeros((n, numbers.size)), np.zeros((n, numbers.size))
        linked = np.flatnonzero(numbers >= 0)
        at = numbers[linked]
        share[at, linked] = 1 / np.where(strength[at] > 0, strength[at], 1)
        dangling = np.where(numbers < 0, 1.0, 0.0)
        dangling[linked[strength[at] == 0]] = 1.0
        for iteration in range(1, max_iter + 1):
            jumps = damping * dangling + 1 - damping
            sums = np.sum(
                sweeps.pull(kernels.spread, [share], [strength, new], [float(damping), numbers, jumps]) or [np.zeros((2, numbers.size))],
                axis=0,
            )  # fmt: skip
            share, new = new, share
            dangling[linked] = sums[1, linked]
            sweeps.progress(ITERATIONS, iteration, max_iter)
            change = float(sums[0].max())
            if change < enough:
                break
        else:
            if enough:
                raise ConvergenceError(
                    f"personalized PageRank has not converged: after {max_iter} iterations the ranks of a seed still change by "
                    f"{change:.3g}, and tol asks for less than {enough:.3g} (N * tol); raise max_iter or tol"
                )
        sweeps.vertices(lambda a, z: kernels.to_ranks(share, strength, a, z), NUMBER_SECONDS * share.size)
        return share, iteration

    def needs(num_seeds: int) -> Needs:
        kind = np.float64 if column else np.uint32 if store.attributes.num_stored_edges < 2**32 else np.int64
        block, one, ints = np.empty((0, 0)), np.empty(0, kind), np.empty(0, np.int64)
        kept = {"ranks": 16 * n * num_seeds, "weights of vertices": n * one.itemsize}
        return Needs(
            vectors=kept, result_bytes=8 * n * num_seeds, lists=("in", "out") if column else ("in",), column=column,
            kernels=[(kernels.spread, block, one, block, 0.0, ints, np.empty(0)), *([(kernels.add_up_weights, one)] if column else [])],
            vertex_kernels=[(kernels.to_ranks, block, one, 0, 0)],
        )  # fmt: skip

    try:
        (rank, iterations), fields = call.run(needs(numbers.size), compute)
    except BudgetError as error:
        fitting = call.most_that_fit(needs, numbers.size - 1)
        remedy = f"; or give at most {fitting:,} of the {numbers.size:,} seeds at once ({16 * n:,} bytes each)" if fitting else ""
        raise BudgetError(f"{error}{remedy}") from error
    stored = {f"rank_{c}": rank[:, c] for c in range(numbers.size)}
    details = {"num_iterations": iterations, "num_seeds": numbers.size, "seeds": names.tolist()}
    return PersonalizedPageRankResult(stored=stored, isolated=dict.fromkeys(stored, 0.0), details=details, **fields)


def _distinct(store: CSRStore, seeds: Any) -> Array:
    """Return seeds as the graph has its ids.

    Raises
    ------
    ArgumentError
        There is none, or one is there twice.
    VertexNotFoundError
        One is not of the graph's kind.
    """
    names = VertexIds(store).parse(seeds)
    if not names.size:
        raise ArgumentError("seeds is empty; give one id or more")
    seen = set[Any]()
    for name in names.tolist():
        if name in seen:
            raise ArgumentError(f"seeds has {name!r} more than once; give each id once")
        seen.add(name)
    return names


def _strength(sweeps: Sweeps, column: str | None) -> Array:
    """Sum of the weights of each vertex' out-edges; without weights their number.

    Raises
    ------
    ArgumentError
        A weight is negative, NaN or infinite, or those of a vertex sum to too much, or too little.
    """
    if column is None:
        return row_degrees(sweeps.store, "out")
    strength = np.zeros(sweeps.store.num_rows)
    named = sweeps.store.attributes.input_column(column)
    if not all(sweeps.pull(kernels.add_up_weights, [], [strength], lists="out")):
        raise ArgumentError(
            f"{sweeps.store.url}: {named} has negative or infinite weights, or NaN; leave them out (weight=False), or name another column"
        )
    check_strengths(f"{sweeps.store.url}: {named}", strength)
    return strength
