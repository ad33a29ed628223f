"""In-memory libraries as peers: each prepares its own form of a SciPy CSR matrix and searches it.

In: the adjacency matrix in input order and a number of threads. Out: an `Engine`, whose search is timed and whose count is
not. Each searches in the fastest way it offers for levels or order alone; none is asked for more than that.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from oocgraph.errors import MissingDependencyError, OocGraphError


@dataclass(frozen=True, slots=True)
class Engine:
    """A library that holds a graph.

    Attributes
    ----------
    search
        From a row of the matrix to the library's own result.
    count
        From that result to the number of vertices reached.
    """

    search: Callable[[int], Any]
    count: Callable[[Any], int]


def scipy_engine(matrix: Any, *, directed: bool, threads: int) -> Engine:
    """SciPy's ``breadth_first_order``: one thread; float64 data spares it a conversion in every call."""
    from scipy.sparse.csgraph import breadth_first_order

    del directed, threads  # an undirected graph is a symmetric matrix
    matrix = matrix.astype(np.float64)
    return Engine(
        lambda source: breadth_first_order(matrix, source, directed=True, return_predecessors=True), lambda result: len(result[0])
    )


def networkit_engine(matrix: Any, *, directed: bool, threads: int) -> Engine:
    """NetworKit's ``BFS``, distances only."""
    import networkit

    networkit.setNumberOfThreads(threads)
    edges = tuple(ends.astype(np.int64) for ends in _edges(matrix, directed=directed))  # 11.2 crashes on 32-bit arrays
    graph = networkit.GraphFromCoo(edges, n=matrix.shape[0], directed=directed)

    def search(source: int) -> Any:
        run = networkit.distance.BFS(graph, source, storePaths=False)
        run.run()
        return run

    unreached = np.finfo(np.float64).max
    return Engine(search, lambda run: int((np.asarray(run.getDistances(asarray=True)) < unreached).sum()))


def igraph_engine(matrix: Any, *, directed: bool, threads: int) -> Engine:
    """``distances`` of igraph: one thread."""
    import igraph

    del threads
    edges = np.stack(_edges(matrix, directed=directed), axis=1)
    graph = igraph.Graph(n=matrix.shape[0], edges=edges, directed=directed)
    return Engine(lambda source: graph.distances(source=source, mode="out")[0], lambda distances: int(np.isfinite(distances).sum()))


def graphblas_engine(matrix: Any, *, directed: bool, threads: int) -> Engine:
    """SuiteSparse:GraphBLAS, push only: a vector times the matrix in each level, masked by the levels found."""
    import graphblas

    del directed
    graphblas.ss.config["nthreads"] = threads
    adjacency = graphblas.io.from_scipy_sparse(matrix)
    n = matrix.shape[0]

    def search(source: int) -> Any:
        levels = graphblas.Vector(np.int32, n)
        frontier = graphblas.Vector(bool, n)
        frontier[source] = True
        level = 0
        while frontier.nvals:
            levels(frontier.S)[:] << level
            frontier(~levels.S, replace=True) << graphblas.semiring.any_pair(frontier @ adjacency)
            level += 1
        return levels

    return Engine(search, lambda levels: int(levels.nvals))


def _edges(matrix: Any, *, directed: bool) -> tuple[Any, Any]:
    """Endpoints of the edges; an undirected one once."""
    coo = matrix.tocoo()
    rows, columns = coo.row, coo.col
    if directed:
        return rows, columns
    once = rows <= columns
    return rows[once], columns[once]


ENGINES: dict[str, Callable[..., Engine]] = {
    "scipy": scipy_engine,
    "networkit": networkit_engine,
    "igraph": igraph_engine,
    "graphblas": graphblas_engine,
}


def open_engine(name: str, matrix: Any, *, directed: bool, threads: int) -> Engine:
    """Prepare the peer `name`.

    Raises
    ------
    OocGraphError
        No such peer.
    MissingDependencyError
        Its package is not installed.
    """
    if name not in ENGINES:
        raise OocGraphError(f"--peer {name}: unknown; choose {', '.join(ENGINES)} or gapbs:PATH (the path of GAPBS's bfs program)")
    try:
        return ENGINES[name](matrix, directed=directed, threads=threads)
    except ImportError as error:
        package = {"graphblas": "python-graphblas"}.get(name, name)
        raise MissingDependencyError(f"--peer {name} needs the package {package}, which is not installed: pip install {package}") from error
