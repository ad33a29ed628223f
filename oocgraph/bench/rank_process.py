"""A peer of PageRank in a process of its own, so that its memory is not ours: ``python -m oocgraph.bench.rank_process NAME GRAPH``.

In, on stdin: a number of iterations a line. Out, on stdout: one JSON object a line: first ``ready`` (or ``error``), then for each line
``seconds`` of all its iterations and the process's peak so far.
"""

from __future__ import annotations

import resource
import sys
from collections.abc import Callable
from time import perf_counter
from typing import Any

import numpy as np

from oocgraph.bench.child import tell
from oocgraph.errors import MissingDependencyError, OocGraphError
from oocgraph.store.graph import open_graph

DAMPING = 0.85


def main() -> None:
    """Serve runs until stdin ends."""
    name, url = sys.argv[1], sys.argv[2]
    try:
        matrix = open_graph(url).to_scipy(dtype=np.float64)
        rank = {"scipy": scipy_ranks, "networkx": networkx_ranks}[name](matrix)
    except (OocGraphError, MemoryError) as error:
        tell(error=str(error) or "out of memory")
        return
    tell(ready=True)
    for line in sys.stdin:
        start = perf_counter()
        rank(int(line))
        tell(seconds=perf_counter() - start, peak_bytes=resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024)


def scipy_ranks(matrix: Any) -> Callable[[int], Any]:
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

    return rank


def networkx_ranks(matrix: Any) -> Callable[[int], Any]:
    """NetworkX's own, which makes its matrix in every call: that is in its seconds."""
    try:
        import networkx as nx
    except ImportError as error:
        raise MissingDependencyError("--peer networkx needs the package networkx, which is not installed: pip install networkx") from error
    graph = nx.from_scipy_sparse_array(matrix, create_using=nx.DiGraph)

    def rank(num_iterations: int) -> Any:
        try:
            return nx.pagerank(graph, alpha=DAMPING, max_iter=num_iterations, tol=0)
        except nx.PowerIterationFailedConvergence:
            return None  # after exactly so many iterations, as asked

    return rank


if __name__ == "__main__":
    main()
