"""In-memory libraries as peers: each prepares its own form of a SciPy CSR matrix and computes on it.

In: the adjacency matrix in input order and a number of threads. Out: a `Library`, whose `run` is timed and whose `count` is not. Each
computes in the fastest way it offers for the result that is compared (levels or order alone, ranks, parts), with no other output.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from oocgraph.errors import MissingDependencyError, OocGraphError

DAMPING = 0.85


@dataclass(frozen=True, slots=True)
class Library:
    """A library that holds a graph.

    Attributes
    ----------
    run
        From a number (a row to search from, iterations to make, parts to cut into) to the library's own result.
    count
        From that result to the number of vertices reached, or what else is compared; None where nothing is.
    """

    run: Callable[[int], Any]
    count: Callable[[Any], float] | None = None


def scipy_bfs(matrix: Any, **_: Any) -> Library:
    """SciPy's ``breadth_first_order``: one thread; float64 data spares it a conversion in every call."""
    from scipy.sparse.csgraph import breadth_first_order

    matrix = matrix.astype(np.float64)
    return Library(
        lambda source: breadth_first_order(matrix, source, directed=True, return_predecessors=True), lambda result: len(result[0])
    )  # an undirected graph is a symmetric matrix


def igraph_bfs(matrix: Any, *, directed: bool, **_: Any) -> Library:
    """``distances`` of igraph: one thread."""
    import igraph

    edges = np.stack(_edges(matrix, directed=directed), axis=1)
    graph = igraph.Graph(n=matrix.shape[0], edges=edges, directed=directed)
    return Library(lambda source: graph.distances(source=source, mode="out")[0], lambda distances: int(np.isfinite(distances).sum()))


def graphblas_bfs(matrix: Any, *, threads: int, **_: Any) -> Library:
    """SuiteSparse:GraphBLAS, push only: a vector times the matrix in each level, masked by the levels found."""
    import graphblas

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

    return Library(search, lambda levels: int(levels.nvals))


def scipy_sssp(matrix: Any, **_: Any) -> Library:
    """SciPy's ``dijkstra``: one thread."""
    from scipy.sparse.csgraph import dijkstra

    matrix = matrix.astype(np.float64)
    return Library(lambda source: dijkstra(matrix, indices=source), lambda distance: int(np.isfinite(distance).sum()))


def networkit_sssp(matrix: Any, *, directed: bool, threads: int) -> Library:
    """NetworKit's ``Dijkstra``, distances only: one thread."""
    import networkit

    networkit.setNumberOfThreads(threads)
    ends = _edges(matrix, directed=directed)
    weights = np.asarray(matrix[ends[0], ends[1]], np.float64).ravel()
    graph = networkit.GraphFromCoo(
        (weights, tuple(one.astype(np.int64) for one in ends)), n=matrix.shape[0], weighted=True, directed=directed
    )

    return Library(partial(_networkit_distances, networkit.distance.Dijkstra, graph), _networkit_reached)


def networkit_core(matrix: Any, *, directed: bool, threads: int) -> Library:
    """NetworKit's ``CoreDecomposition``."""
    import networkit

    if directed:
        raise OocGraphError("--peer networkit finds core numbers of undirected graphs, and this graph is directed")
    graph = _networkit_of(matrix, directed=False, threads=threads)
    return Library(lambda _number: networkit.centrality.CoreDecomposition(graph).run())


def scipy_components(matrix: Any, *, directed: bool, **_: Any) -> Library:
    """SciPy's ``connected_components``: one thread."""
    from scipy.sparse.csgraph import connected_components

    return Library(lambda _number: connected_components(matrix, directed=directed, connection="weak"), lambda result: int(result[0]))


def scipy_pagerank(matrix: Any, **_: Any) -> Library:
    """Power iteration by SciPy's CSR product, transposed and divided beforehand: one thread."""
    strength = matrix.sum(axis=1)
    share = np.divide(1.0, strength, out=np.zeros(strength.size), where=strength > 0)
    transposed = matrix.T.tocsr()
    dangling = strength == 0

    def rank(num_iterations: int) -> Any:
        n = strength.size
        ranks = np.full(n, 1 / max(1, n))
        for _ in range(num_iterations):
            jump = (DAMPING * ranks[dangling].sum() + 1 - DAMPING) / n
            ranks, before = DAMPING * (transposed @ (ranks * share)) + jump, ranks
            np.abs(ranks - before).sum()
        return ranks

    return Library(rank)


def networkx_pagerank(matrix: Any, **_: Any) -> Library:
    """NetworkX's own, which makes its matrix in every call: that is in its seconds."""
    import networkx as nx

    graph = nx.from_scipy_sparse_array(matrix, create_using=nx.DiGraph)

    def rank(num_iterations: int) -> Any:
        try:
            return nx.pagerank(graph, alpha=DAMPING, max_iter=num_iterations, tol=0)
        except nx.PowerIterationFailedConvergence:
            return None  # after exactly as many iterations as asked for

    return Library(rank)


def pymetis_partition(matrix: Any, *, directed: bool, **_: Any) -> Library:
    """METIS, without loading: one thread."""
    import pymetis

    if directed:
        raise OocGraphError("--peer pymetis takes undirected graphs, and this graph is directed")
    matrix.setdiag(0)
    matrix.eliminate_zeros()  # METIS takes no self-loops
    adjacency = pymetis.CSRAdjacency(adj_starts=matrix.indptr.astype(np.int64), adjacent=matrix.indices.astype(np.int64))
    return Library(lambda num_parts: pymetis.part_graph(num_parts, adjacency))


def scipy_scc(matrix: Any, **_: Any) -> Library:
    """SciPy's ``connected_components``, strong: one thread."""
    from scipy.sparse.csgraph import connected_components

    return Library(lambda _number: connected_components(matrix, directed=True, connection="strong"), lambda result: int(result[0]))


def scipy_forest(matrix: Any, **_: Any) -> Library:
    """SciPy's ``minimum_spanning_tree``: one thread."""
    from scipy.sparse.csgraph import minimum_spanning_tree

    matrix = matrix.astype(np.float64)
    return Library(lambda _number: minimum_spanning_tree(matrix), lambda tree: float(tree.sum()))


def _networkx(run: Callable[[Any, Any, int], Any], count: Callable[[Any, Any, Any], float] | None = None) -> Callable[..., Library]:
    """Return what opens NetworkX: `run` gets it, the graph, and a number; `count` gets it, the graph, and the result."""

    def opened(matrix: Any, *, directed: bool, **_: Any) -> Library:
        import networkx as nx

        graph = nx.from_scipy_sparse_array(matrix, create_using=nx.DiGraph if directed else nx.Graph)
        return Library(partial(run, nx, graph), count and partial(count, nx, graph))

    return opened


def _networkit(run: Callable[[Any, Any, int], Any], count: Callable[[Any, Any, Any], float] | None = None) -> Callable[..., Library]:
    """Return what opens NetworKit, as `_networkx`."""

    def opened(matrix: Any, *, directed: bool, threads: int) -> Library:
        import networkit

        graph = _networkit_of(matrix, directed=directed, threads=threads)
        return Library(partial(run, networkit, graph), count and partial(count, networkit, graph))

    return opened


def _networkit_distances(kind: Any, graph: Any, source: int) -> Any:
    """Search by one of NetworKit's algorithms, distances only."""
    run = kind(graph, source, storePaths=False)
    run.run()
    return run


def _networkit_reached(run: Any) -> int:
    """Return how many vertices NetworKit has reached."""
    return int((np.asarray(run.getDistances(asarray=True)) < np.finfo(np.float64).max).sum())


def _networkit_of(matrix: Any, *, directed: bool, threads: int) -> Any:
    """Return the graph as NetworKit has it, which may use so many threads."""
    import networkit

    networkit.setNumberOfThreads(threads)
    edges = tuple(ends.astype(np.int64) for ends in _edges(matrix, directed=directed))  # 11.2 crashes on 32-bit arrays
    return networkit.GraphFromCoo(edges, n=matrix.shape[0], directed=directed)


def _edges(matrix: Any, *, directed: bool) -> tuple[Any, Any]:
    """Endpoints of the edges; an undirected one once."""
    coo = matrix.tocoo()
    rows, columns = coo.row, coo.col
    if directed:
        return rows, columns
    once = rows <= columns
    return rows[once], columns[once]


LIBRARIES: dict[str, dict[str, Callable[..., Library]]] = {
    "bfs": {
        "scipy": scipy_bfs,
        "networkit": _networkit(
            lambda nk, graph, source: _networkit_distances(nk.distance.BFS, graph, source), lambda _nk, _graph, run: _networkit_reached(run)
        ),
        "igraph": igraph_bfs,
        "graphblas": graphblas_bfs,
    },
    "coloring": {
        "networkx": _networkx(lambda nx, graph, _number: nx.greedy_color(graph), lambda _nx, _graph, found: 1 + max(found.values()))
    },
    "components": {"scipy": scipy_components},
    "core": {"networkit": networkit_core},
    "sssp": {"scipy": scipy_sssp, "networkit": networkit_sssp},
    "pagerank": {"scipy": scipy_pagerank, "networkx": networkx_pagerank},
    "partition": {"pymetis": pymetis_partition},
    "betweenness": {
        "networkx": _networkx(lambda nx, graph, number: nx.betweenness_centrality(graph, k=min(number, len(graph)), seed=1)),
        "networkit": _networkit(lambda nk, graph, number: nk.centrality.EstimateBetweenness(graph, number, False, True).run()),
    },
    "biconnected-components": {
        "networkit": _networkit(
            lambda nk, graph, _number: nk.components.BiconnectedComponents(graph).run(),
            lambda _nk, _graph, found: found.numberOfComponents(),
        ),
    },
    "eigenvector": {"networkx": _networkx(lambda nx, graph, _number: nx.eigenvector_centrality(graph, max_iter=1000))},
    "hits": {"networkx": _networkx(lambda nx, graph, _number: nx.hits(graph, max_iter=1000))},  # by ARPACK
    "label-propagation": {"networkit": _networkit(lambda nk, graph, _number: nk.community.PLP(graph).run())},
    "louvain": {
        "networkx": _networkx(
            lambda nx, graph, number: nx.community.louvain_communities(graph, seed=number),
            lambda nx, graph, found: float(nx.community.modularity(graph, found)),
        ),
        "networkit": _networkit(
            lambda nk, graph, _number: nk.community.PLM(graph).run().getPartition(),
            lambda nk, graph, partition: float(nk.community.Modularity().getQuality(partition, graph)),
        ),
    },
    "scc": {"scipy": scipy_scc},
    "spanning-forest": {"scipy": scipy_forest},
    "triangles": {
        "networkx": _networkx(lambda nx, graph, _number: nx.triangles(graph), lambda _nx, _graph, found: sum(found.values()) // 3)
    },
}
"""The libraries of each algorithm, by the names that ``--peer`` takes. All are called with `directed` and `threads`; most ignore one."""

FLOAT64_LIBRARIES = ("scipy", "networkx")
"""Libraries that take float64 data; the others take the smallest there is."""


def open_library(algorithm: str, name: str, matrix: Any, *, directed: bool, threads: int) -> Library:
    """Prepare a library for an algorithm.

    Raises
    ------
    MissingDependencyError
        Its package is not installed.
    """
    try:
        return LIBRARIES[algorithm][name](matrix, directed=directed, threads=threads)
    except ImportError as error:
        package = {"graphblas": "python-graphblas"}.get(name, name)
        raise MissingDependencyError(f"--peer {name} needs the package {package}, which is not installed: pip install {package}") from error
