"""What a call costs where there is next to nothing to compute: every function on a graph in memory of ten vertices.

In: how often. Out: a `Report` with the shortest and the median time of each function, in milliseconds, and of conversions of 1,000 edges.
All take turns. Programs that call functions thousands of times on small graphs, such as the tests of NetworkX, wait for this alone.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from oocgraph.algorithms.betweenness import betweenness_centrality
from oocgraph.algorithms.bfs import bfs
from oocgraph.algorithms.biconnected import biconnected_components
from oocgraph.algorithms.closeness import closeness_centrality, harmonic_centrality
from oocgraph.algorithms.components import connected_components
from oocgraph.algorithms.cores import core_numbers
from oocgraph.algorithms.eccentricity import diameter, eccentricity
from oocgraph.algorithms.eigenvector import eigenvector_centrality
from oocgraph.algorithms.greedy import greedy_coloring, maximal_independent_set
from oocgraph.algorithms.hits import hits
from oocgraph.algorithms.katz import katz_centrality
from oocgraph.algorithms.label_propagation import label_propagation
from oocgraph.algorithms.louvain import louvain
from oocgraph.algorithms.multi_source_bfs import multi_source_bfs
from oocgraph.algorithms.pagerank import pagerank
from oocgraph.algorithms.personalized_pagerank import personalized_pagerank
from oocgraph.algorithms.shortest_path import shortest_path
from oocgraph.algorithms.spanning import minimum_spanning_forest
from oocgraph.algorithms.spmv import spmv
from oocgraph.algorithms.sssp import sssp
from oocgraph.algorithms.strong_components import strongly_connected_components
from oocgraph.algorithms.topological import is_directed_acyclic_graph
from oocgraph.algorithms.triangles import clustering, transitivity, triangles
from oocgraph.bench.harness import Report, in_turn, timed
from oocgraph.ingest.build import build_csr
from oocgraph.store.graph import CSRStore
from oocgraph.types import Progress

PHASE = "calling"

NUM_VERTICES, NUM_EDGES = 10, 1000


def bench_calls(*, num_rounds: int, progress: Progress) -> Report:
    """Call every function `num_rounds` times."""
    subjects = {name: timed(call) for name, call in _calls().items()}
    for call in subjects.values():
        call(-1)  # kernels are loaded
    found = in_turn(subjects, list(range(num_rounds)), progress, phase=PHASE)
    rows = [
        {"name": name, "least_ms": 1e3 * min(seconds), "median_ms": 1e3 * statistics.median(seconds)} for name, seconds in found.items()
    ]
    worst = max(rows, key=lambda row: row["least_ms"])
    metrics = {"num_rounds": num_rounds, "worst": worst["name"], "worst_ms": worst["least_ms"], "calls": rows}
    return Report(title=f"calls on graphs in memory of {NUM_VERTICES} vertices, and conversions of {NUM_EDGES:,} edges", metrics=metrics)


def _calls() -> dict[str, Callable[[], Any]]:
    ends, others = np.array([[0, 1, 2, 2, 3, 4, 5, 6, 7, 8], [1, 2, 0, 3, 4, 5, 3, 7, 8, 9]]), np.array([[5], [6]])
    graph, directed = build_csr(tuple(np.hstack([ends, others]))), build_csr(tuple(ends), directed=True)
    weighted = _weighted(np.hstack([ends, others]))
    rng = np.random.default_rng(1)
    many = tuple(rng.integers(0, 300, (2, NUM_EDGES)))
    text = tuple(np.array([f"v{i}" for i in end], object) for end in many)
    source = np.ones(NUM_VERTICES)
    on_graph: dict[str, Callable[[CSRStore], Any]] = {
        "bfs": lambda g: bfs(g, 0), "connected_components": connected_components, "core_numbers": core_numbers, "pagerank": pagerank,
        "personalized_pagerank": lambda g: personalized_pagerank(g, [0]), "spmv": lambda g: spmv(g, source), "hits": hits,
        "katz_centrality": katz_centrality, "eigenvector_centrality": lambda g: eigenvector_centrality(g, max_iter=1000),
        "betweenness_centrality": betweenness_centrality, "multi_source_bfs": lambda g: multi_source_bfs(g, [0, 9]),
        "closeness_centrality": closeness_centrality, "harmonic_centrality": harmonic_centrality,
        "eccentricity": lambda g: eccentricity(g, [0, 9]), "diameter": diameter, "label_propagation": label_propagation, "louvain": louvain,
        "triangles": triangles, "clustering": clustering, "transitivity": transitivity, "minimum_spanning_forest": minimum_spanning_forest,
        "biconnected_components": biconnected_components, "greedy_coloring": greedy_coloring,
        "maximal_independent_set": maximal_independent_set,
    }  # fmt: skip
    calls: dict[str, Callable[[], Any]] = {name: partial(function, graph) for name, function in on_graph.items()}
    calls |= {one.__name__: partial(one, directed) for one in (strongly_connected_components, is_directed_acyclic_graph)}
    calls |= {"sssp": partial(sssp, weighted, 0), "shortest_path": partial(shortest_path, graph, 0, 9)}
    return calls | {"edges from arrays": partial(build_csr, many), "edges from strings": partial(build_csr, text)}


def _weighted(ends: Any) -> CSRStore:
    from scipy.sparse import coo_array

    return build_csr(coo_array((np.arange(1.0, ends.shape[1] + 1), tuple(ends)), shape=(NUM_VERTICES, NUM_VERTICES)))
