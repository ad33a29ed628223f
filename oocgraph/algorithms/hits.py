"""Hubs and authorities, out of core: two sweeps an iteration, one along the edges and one against them.

Kleinberg, "Authoritative sources in a hyperlinked environment", Journal of the ACM 46, 1999; as NetworkX has it, each of the two vectors
sums up to 1.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import numpy as np

from oocgraph.algorithms.pagerank_arguments import chosen_column
from oocgraph.algorithms.runtimes import Runtime
from oocgraph.algorithms.spectral import Power, converged, power_needs, start
from oocgraph.algorithms.sweeping import Call, check_iterations
from oocgraph.arguments import known_keywords
from oocgraph.engine.sweeps import Sweeps
from oocgraph.errors import ConvergenceError
from oocgraph.resources import Resources
from oocgraph.results.centrality import HitsResult
from oocgraph.store.graph import CSRStore
from oocgraph.types import Array, ProgressOption

if TYPE_CHECKING:
    from distributed import Client


@known_keywords
def hits(
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
) -> HitsResult:
    """Find hubs, from which edges lead to authorities, and authorities, to which edges lead from hubs.

    Parameters
    ----------
    graph
        A graph store or its path. In an undirected graph both are the same.
    tol
        The run ends when the hubs change by less, all together (they sum to 1). 0: exactly `max_iter` iterations, and no error.
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
    HitsResult
        Its columns are `hub` and `authority`, float64; isolated vertices have 0.

    Raises
    ------
    ConvergenceError
        The hubs still change by more than `tol` after `max_iter` iterations.
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
    Host memory: 24 bytes for each vertex that has edges, pieces of 2 MiB of edges (or as long as the longest list), and what the budget
    has left for edges that stay; a worker of a cluster holds the vectors twice. An iteration reads the others twice.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> from oocgraph import build_csr
    >>> with TemporaryDirectory() as folder:
    ...     result = hits(build_csr(([1, 1, 2], [2, 3, 3]), f"{folder}/g.zarr", directed=True))
    ...     result.hub.round(3).tolist(), result.authority.round(3).tolist()
    ([0.618, 0.382, 0.0], [0.0, 0.382, 0.618])
    """
    check_iterations(tol, max_iter)
    call = Call("hits", graph, runtime, resources, memory_budget, progress, client)
    column = chosen_column(call.store, weight)

    def factor_of(total: float) -> float:
        """Return the number by which a vector of this sum becomes one of the sum 1."""
        factor = 1 / (total or 1)
        if not 0 < factor < np.inf:
            what = "more than float64 can hold" if factor == 0 else "too little for float64"
            raise ConvergenceError(f"{call.store.url}: the weights at a vertex sum to {what}; divide all by one number")
        return factor

    def compute(sweeps: Sweeps) -> tuple[Array, Array, int]:
        power, n = Power(sweeps, column), max(1, call.store.num_rows)
        hub, authority, new = start(call, 1 / n, 3)
        for iteration in range(1, max_iter + 1):
            total = power.multiply(hub, authority, authority).total
            if iteration == 1 and not total:  # weights are 0, or so small that a part of one is
                power.rescale(hub, hub, n)
                total = power.multiply(hub, authority, authority).total
            power.rescale(authority, authority, factor_of(total))
            total = power.multiply(authority, hub, new, lists="out").total
            change = power.rescale(new, hub, factor_of(total))
            hub, new = new, hub
            if converged("HITS", change, tol, iteration, max_iter, power):
                break
        return hub, authority, iteration

    needs = power_needs(call.store, column, num_vectors=3, num_results=2, lists=("in", "out"))
    (hub, authority, iterations), fields = call.run(needs, compute)
    stored, isolated = {"hub": hub, "authority": authority}, {"hub": 0.0, "authority": 0.0}
    return HitsResult(stored=stored, isolated=isolated, details={"num_iterations": iterations}, **fields)
