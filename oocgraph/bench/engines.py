"""In-memory libraries as peers: each prepares its own form of a SciPy CSR matrix and returns a search to be timed.

In: the adjacency matrix in input order and a number of threads. Out: a function from a source to the number
of vertices reached. Each searches in the fastest way it offers for levels or order alone; none is asked for more than that.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from oocgraph.errors import MissingDependencyError, OocGraphError

Search = Callable[[int], int]


def scipy_search(matrix: Any, *, directed: bool, threads: int) -> Search:
    """SciPy's ``breadth_first_order``: one thread; float64 data spares it a conversion in every call."""
    from scipy.sparse.csgraph import breadth_first_order

    del directed, threads  # an undirected graph is a symmetric matrix
    matrix = matrix.astype(np.float64)

    def search(source: int) -> int:
        order, _predecessors = breadth_first_order(matrix, source, directed=True, return_predecessors=True)
        return int(order.size)

    return search


def networkit_search(matrix: Any, *, directed: bool, threads: int) -> Search:
    """NetworKit's ``BFS``, distances only."""
    import networkit

    networkit.setNumberOfThreads(threads)
    rows, columns = _edges(matrix, directed=directed)
    graph = networkit.GraphFromCoo((rows, columns), n=matrix.shape[0], directed=directed)

    def search(source: int) -> int:
        run = networkit.distance.BFS(graph, source, storePaths=False)
        run.run()
        return int(run.getReachableNodes()) if hasattr(run, "getReachableNodes") else -1

    return search


def igraph_search(matrix: Any, *, directed: bool, threads: int) -> Search:
    """``distances`` of igraph: one thread."""
    import igraph

    del threads
    rows, columns = _edges(matrix, directed=directed)
    graph = igraph.Graph(n=matrix.shape[0], edges=np.stack([rows, columns], axis=1), directed=directed)

    def search(source: int) -> int:
        (distances,) = graph.distances(source=source, mode="out")
        return int(np.isfinite(distances).sum())

    return search


def graphblas_search(matrix: Any, *, directed: bool, threads: int) -> Search:
    """SuiteSparse:GraphBLAS, push only: a vector times the matrix in each level, masked by the levels found."""
    import graphblas

    del directed
    graphblas.ss.config["nthreads"] = threads
    adjacency = graphblas.io.from_scipy_sparse(matrix)
    n = matrix.shape[0]

    def search(source: int) -> int:
        levels = graphblas.Vector(np.int32, n)
        frontier = graphblas.Vector(bool, n)
        frontier[source] = True
        level = 0
        while frontier.nvals:
            levels(frontier.S)[:] << level
            frontier(~levels.S, replace=True) << graphblas.semiring.any_pair(frontier @ adjacency)
            level += 1
        return int(levels.nvals)

    return search


def _edges(matrix: Any, *, directed: bool) -> tuple[Any, Any]:
    """Endpoints of the edges; an undirected one once."""
    coo = matrix.tocoo()
    rows, columns = coo.row, coo.col
    if directed:
        return rows, columns
    once = rows <= columns
    return rows[once], columns[once]


ENGINES: dict[str, Callable[..., Search]] = {
    "scipy": scipy_search,
    "networkit": networkit_search,
    "igraph": igraph_search,
    "graphblas": graphblas_search,
}


def open_engine(name: str, matrix: Any, *, directed: bool, threads: int) -> Search:
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
