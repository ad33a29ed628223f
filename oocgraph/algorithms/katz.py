"""Katz centrality, out of core: one sweep against the edges an iteration.

Katz, "A new status index derived from sociometric analysis", Psychometrika 18, 1953; with NetworkX's conventions.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import numpy as np

from oocgraph.algorithms.pagerank_arguments import chosen_column
from oocgraph.algorithms.runtimes import Runtime
from oocgraph.algorithms.spectral import Power, converged, power_needs, start
from oocgraph.algorithms.sweeping import Call, check_iterations
from oocgraph.arguments import check_number, known_keywords
from oocgraph.engine.sweeps import Sweeps
from oocgraph.resources import Resources
from oocgraph.results.centrality import KatzResult
from oocgraph.store.graph import CSRStore
from oocgraph.types import Array, ProgressOption

if TYPE_CHECKING:
    from distributed import Client


@known_keywords
def katz_centrality(
    graph: CSRStore | str | os.PathLike[str],
    *,
    alpha: float = 0.1,
    beta: float = 1.0,
    normalized: bool = True,
    tol: float = 1e-6,
    max_iter: int = 100,
    weight: str | bool | None = None,
    runtime: Runtime | None = None,
    resources: Resources | None = None,
    memory_budget: str | int | None = None,
    client: Client | None = None,
    progress: ProgressOption = None,
) -> KatzResult:
    """Find the Katz centrality of every vertex: ``x = alpha * (sum of x over its in-neighbours) + beta``.

    Parameters
    ----------
    graph
        A graph store or its path.
    alpha
        How much a step along an edge takes away, above 0; below 1 / (largest eigenvalue of the adjacency matrix), or there is no answer.
    beta
        What each vertex has by itself.
    normalized
        Divide by the Euclidean norm of all values.
    tol
        The run ends when all values together change by less than N * tol, as in NetworkX. 0: exactly `max_iter` iterations, and no error.
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
        lost worker costs the sweep that it was in. Values differ from those of one process by rounding.
    progress
        Called with ("iterations", done, most); True draws a bar.

    Returns
    -------
    KatzResult
        Its column is `centrality`, float64.

    Raises
    ------
    ConvergenceError
        The values still change by more than N * tol after `max_iter` iterations, or grow without end.
    ArgumentError
        An argument is invalid, or a weight is negative, infinite or NaN.
    BudgetError
        The budget is too small; the message names the smallest that works.
    ClusterError
        The client is closed, no worker comes in time, workers have another version or do not see the graph, or are lost again and again.
    StoreError, CorruptStoreError
        The store cannot be opened or read.

    Notes
    -----
    Host memory: 16 bytes for each vertex that has edges, pieces of 2 MiB of edges (or as long as the longest list), and what the budget
    has left for edges that stay; a worker of a cluster holds the vectors twice. An iteration reads the others once.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> from oocgraph import build_csr
    >>> with TemporaryDirectory() as folder:
    ...     result = katz_centrality(build_csr(([1, 2, 3], [2, 3, 4]), f"{folder}/g.zarr"), normalized=False)
    ...     result.centrality.round(3).tolist()
    [1.124, 1.236, 1.236, 1.124]
    """
    check_iterations(tol, max_iter)
    check_number("alpha", alpha, low=0, is_open=True)
    check_number("beta", beta)
    call = Call("katz_centrality", graph, runtime, resources, memory_budget, progress, client)
    column, num_ids = chosen_column(call.store, weight), call.store.attributes.num_input_vertices

    def compute(sweeps: Sweeps) -> tuple[Array, float, int]:
        power = Power(sweeps, column)
        x, new = start(call, 0.0, 2)
        remedy = "alpha must be below 1 / (largest eigenvalue of the adjacency matrix): give a smaller one, or "
        for iteration in range(1, max_iter + 1):
            sums = power.multiply(x, x, new, scale=alpha, shift=beta)
            x, new = new, x
            isolated = abs(beta) * (num_ids - x.size) * (iteration == 1)
            if converged("Katz centrality", sums.change + isolated, num_ids * tol, iteration, max_iter, power, remedy):
                break
        norm = float(np.sqrt(sums.squares + beta**2 * (num_ids - x.size))) if normalized else 1.0
        power.rescale(x, x, 1 / (norm or 1))
        return x, beta / (norm or 1), iteration

    (centrality, isolated, iterations), fields = call.run(power_needs(call.store, column, num_vectors=2, num_results=1), compute)
    return KatzResult(
        stored={"centrality": centrality}, isolated={"centrality": isolated}, details={"num_iterations": iterations}, **fields
    )  # fmt: skip
