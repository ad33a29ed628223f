"""Eigenvector centrality, out of core: one sweep against the edges an iteration.

Bonacich, "Power and centrality: a family of measures", American Journal of Sociology 92, 1987; with NetworkX's conventions: the power
iteration of A + I, which has no two eigenvalues of the largest absolute value.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import numpy as np

from oocgraph.algorithms.pagerank_arguments import chosen_column
from oocgraph.algorithms.runtimes import Runtime
from oocgraph.algorithms.spectral import Power, Sums, converged, power_needs, start
from oocgraph.algorithms.sweeping import Call, check_iterations
from oocgraph.arguments import known_keywords
from oocgraph.engine.sweeps import Sweeps
from oocgraph.errors import ConvergenceError
from oocgraph.resources import Resources
from oocgraph.results.centrality import EigenvectorResult
from oocgraph.store.graph import CSRStore
from oocgraph.types import Array, ProgressOption

if TYPE_CHECKING:
    from distributed import Client


SMALL = 2.0**-600
"""What vectors are multiplied by where squares of their elements exceed float64: a power of two changes no digit."""


@known_keywords
def eigenvector_centrality(
    graph: CSRStore | str | os.PathLike[str],
    *,
    tol: float = 1e-6,
    max_iter: int = 100,
    weight: str | bool | None = None,
    runtime: Runtime | None = None,
    resources: Resources | None = None,
    memory_budget: str | int | None = None,
    client: Client | None = None,
    progress: ProgressOption = None,
) -> EigenvectorResult:
    """Find the eigenvector centrality of every vertex: in proportion to the sum of those of its in-neighbours.

    Parameters
    ----------
    graph
        A graph store or its path.
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
    EigenvectorResult
        Its column is `centrality`, float64, whose Euclidean norm is 1.

    Raises
    ------
    ConvergenceError
        The values still change by more than N * tol after `max_iter` iterations.
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
    ...     result = eigenvector_centrality(build_csr(([1, 2, 3, 3], [2, 3, 1, 4]), f"{folder}/g.zarr"))
    ...     result.centrality.round(3).tolist()
    [0.523, 0.523, 0.612, 0.282]
    """
    check_iterations(tol, max_iter)
    call = Call("eigenvector_centrality", graph, runtime, resources, memory_budget, progress, client)
    store = call.store
    column, num_ids = chosen_column(store, weight), store.attributes.num_input_vertices

    def compute(sweeps: Sweeps) -> tuple[Array, float, int]:
        power, isolated = Power(sweeps, column), 1 / max(1, num_ids)
        (x, new), scale = start(call, isolated, 2), 1.0
        for iteration in range(1, max_iter + 1):
            norm = _norm(power.multiply(x, x, new, scale=scale, keep=scale), scale * isolated, num_ids - x.size)
            if norm == np.inf and scale == 1:
                scale = SMALL
                norm = _norm(power.multiply(x, x, new, scale=scale, keep=scale), scale * isolated, num_ids - x.size)
            if norm == np.inf:
                raise ConvergenceError(f"{store.url}: the weights at a vertex sum to more than float64 can hold; divide all by one number")
            change = power.rescale(new, x, 1 / norm) + abs(scale * isolated / norm - isolated) * (num_ids - x.size)
            x, new, isolated = new, x, scale * isolated / norm
            if converged("Eigenvector centrality", change, num_ids * tol, iteration, max_iter, power):
                break
        return x, isolated, iteration

    (centrality, isolated, iterations), fields = call.run(power_needs(store, column, num_vectors=2, num_results=1), compute)
    return EigenvectorResult(
        stored={"centrality": centrality}, isolated={"centrality": isolated}, details={"num_iterations": iterations}, **fields
    )  # fmt: skip


def _norm(sums: Sums, isolated: float, num_isolated: int) -> float:
    """Return the length of a vector, of which so many values are `isolated` and the others have these sums; 1 of zeros."""
    return float(np.sqrt(sums.squares + isolated**2 * num_isolated)) or 1.0
