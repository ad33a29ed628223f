"""Minimum spanning forests, out of core: Boruvka's algorithm, a sweep over some of the edges a round.

Boruvka, "O jistem problemu minimalnim", 1926; in parallel Chung, Condon, "Parallel Implementation of Boruvka's Minimum Spanning Tree
Algorithm", IPPS 1996. In each round every tree chooses its lightest edge to another tree, and is joined to it. Edges are ordered by weight,
and among equals by their vertices, so the forest is one and the same whatever the threads and the budget. Differs from these in: edges
stay where they are, not one is moved or contracted; a vertex keeps the edge it has found for as long as that leads to another tree, and
pieces of edges in which every vertex does so, or has none left, are not read; trees are kept rooted, by turning round the way from the
vertex of the chosen edge to its root, so a forest is a parent of each vertex: the smallest form that it has, and one like other results.
"""

from __future__ import annotations

import os

import numpy as np

from oocgraph.algorithms.pagerank_arguments import chosen_column
from oocgraph.algorithms.runtimes import Runtime
from oocgraph.algorithms.sweeping import Call
from oocgraph.arguments import known_keywords
from oocgraph.engine.sweeps import Needs, Sweeps
from oocgraph.errors import ArgumentError, CorruptStoreError
from oocgraph.kernels import spanning as kernels
from oocgraph.resources import Resources
from oocgraph.results.spanning import SpanningForestResult
from oocgraph.store.graph import CSRStore
from oocgraph.types import Array, ProgressOption

VERTICES_JOINED = "vertices joined"
"""Phase of progress: edges of the forest that are found, of the most that there can be."""

VERTEX_SECONDS = 5e-9
"""About what a vertex takes in one step of a round."""


@known_keywords
def minimum_spanning_forest(
    graph: CSRStore | str | os.PathLike[str],
    *,
    weight: str | bool | None = None,
    maximum: bool = False,
    runtime: Runtime | None = None,
    resources: Resources | None = None,
    memory_budget: str | int | None = None,
    progress: ProgressOption = None,
) -> SpanningForestResult:
    """Find the edges of least total weight that connect what the graph connects: a tree of each of its components.

    Parameters
    ----------
    graph
        A graph store or its path; undirected.
    weight
        Edge column of the weights, negative ones too; True: the graph's weight; False: every edge counts 1, any spanning forest will do;
        by default the graph's weight, if it has one. Weights are compared as float64.
    maximum
        Find the edges of greatest total weight.
    runtime
        The graph opened before (`oocgraph.open_runtime`), in this process; it has its own resources, and keeps edges between calls.
    resources
        Threads and memory; see `oocgraph.Resources`.
    memory_budget
        Bytes that the process may hold (text such as ``"640M"``); the same as in `resources`.
    progress
        Called with ("vertices joined", how many, most); True draws a bar.

    Returns
    -------
    SpanningForestResult
        Its columns are `parent` (the vertex' own id where it is a root) and `weight`; ``edges()`` has the same as a list of edges.

    Raises
    ------
    ArgumentError
        An argument is invalid, the graph is directed, or a weight is NaN or infinite.
    BudgetError
        The budget is too small; the message names the smallest that works.
    StoreError, CorruptStoreError
        The store cannot be opened or read.

    Notes
    -----
    Host memory: 32 bytes for each vertex that has edges (12 of them are the result), pieces of 2 MiB of edges (or as long as the longest
    list), and what the budget has left for edges that stay. There are log2(vertices) rounds at most, usually 4 to 8; the first reads all
    edges, later ones those pieces in which a vertex has lost its edge.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> import pandas as pd
    >>> from oocgraph import build_csr
    >>> streets = pd.DataFrame({"source": [1, 1, 2, 3], "target": [2, 3, 3, 4], "length": [4, 9, 3, 1]})
    >>> with TemporaryDirectory() as folder:
    ...     result = minimum_spanning_forest(build_csr(streets, f"{folder}/g.zarr", weight="length"))
    ...     result.num_trees, result.total_weight, pd.DataFrame(result.edges()).values.tolist()
    (1, 8.0, [[1.0, 2.0, 4.0], [2.0, 3.0, 3.0], [4.0, 3.0, 1.0]])
    """
    call = Call("minimum_spanning_forest", graph, runtime, resources, memory_budget, progress)
    store, column = call.store, chosen_column(call.store, weight)
    if store.attributes.directed:
        raise ArgumentError(
            f"{store.url} is directed, and spanning forests are of undirected graphs; build it with directed=False, and an edge of either "
            "direction counts"
        )
    n, sign = store.num_rows, -1.0 if maximum else 1.0

    def compute(sweeps: Sweeps) -> tuple[Array, Array, float, int, int]:
        tree, chosen, parent = (np.arange(n, dtype=store.index_dtype) for _ in range(3))
        nearest, lightest, weights = np.zeros(n, store.index_dtype), np.zeros(n), np.zeros(n)
        num_joined, rounds = 0, 0
        while num_joined < n - 1:
            rounds += 1
            _find_nearest(sweeps, tree, nearest, lightest, column, sign, is_first=rounds == 1)
            sweeps.vertices(lambda a, z: kernels.choose(tree, nearest, lightest, chosen, a, z), VERTEX_SECONDS * n)
            joined = sweeps.vertices(
                lambda a, z: kernels.join(tree, nearest, lightest, chosen, parent, weights, a, z), VERTEX_SECONDS * n
            )  # fmt: skip
            if not any(joined):
                break
            sweeps.vertices(lambda a, z: kernels.hook(tree, nearest, chosen, parent, a, z), VERTEX_SECONDS * n)
            if min(sweeps.vertices(lambda a, z: kernels.flatten(tree, chosen, a, z), VERTEX_SECONDS * n)) < 0:
                raise CorruptStoreError(
                    f"{store.url}: an edge has another weight in one direction than in the other; run `oocgraph check`, then restore the "
                    "store or build it again"
                )
            num_joined += sum(joined)
            sweeps.progress(VERTICES_JOINED, num_joined, n)
        if maximum and column is not None:
            sweeps.vertices(lambda a, z: np.subtract(0.0, weights[a:z], out=weights[a:z]), VERTEX_SECONDS * n)  # no root has -0.0
        total = sweeps.add_up(sweeps.vertices(lambda a, z: _total(weights[a:z]), VERTEX_SECONDS * n))
        return parent, weights, total, num_joined, rounds

    ids, floats = store.index_dtype.itemsize * n, 8 * n
    index, number = np.empty(0, store.index_dtype), np.empty(0)
    needs = Needs(
        vectors={"trees": 4 * ids, "weights of edges": 2 * floats}, result_bytes=ids + floats, lists=("out",), column=column,
        kernels=[(kernels.find_nearest, index, index, number, True, sign)],
        vertex_kernels=[
            (kernels.has_stale, index, index, 0, 0), (kernels.choose, index, index, number, index, 0, 0),
            (kernels.join, index, index, number, index, index, number, 0, 0), (kernels.hook, index, index, index, index, 0, 0),
            (kernels.flatten, index, index, 0, 0),
        ],
    )  # fmt: skip
    (parent, weights, total, num_edges, rounds), fields = call.run(needs, compute)
    details = {
        "num_trees": store.attributes.num_input_vertices - num_edges, "num_edges": num_edges, "total_weight": total, "num_rounds": rounds,
    }  # fmt: skip
    return SpanningForestResult(stored={"parent": parent, "weight": weights}, isolated={"weight": 0.0}, details=details, **fields)


def _total(weights: Array) -> float:
    """Return a sum, which is infinite if float64 does not hold it."""
    with np.errstate(over="ignore"):
        return float(weights.sum())


def _find_nearest(
    sweeps: Sweeps, tree: Array, nearest: Array, lightest: Array, column: str | None, sign: float, *, is_first: bool
) -> None:  # fmt: skip
    """Find the lightest edge into another tree of every vertex that has lost its last one.

    Raises
    ------
    ArgumentError
        A weight is NaN or infinite.
    """
    found = sweeps.pull(
        kernels.find_nearest, [tree], [nearest, lightest], [is_first, sign], lists="out",
        only=None if is_first else lambda first, stop: kernels.has_stale(tree, nearest, first, stop),
    )  # fmt: skip
    if column is not None and not all(found):
        named = sweeps.store.attributes.input_column(column)
        raise ArgumentError(
            f"{sweeps.store.url}: {named} has NaN or infinite weights; leave them out (weight=False), or name another column"
        )
