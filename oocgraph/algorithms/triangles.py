"""Triangles, clustering coefficients and transitivity, out of core: each edge is looked at from the end with more earlier neighbours.

1. Vertices are ordered by degree, hubs first. One sweep counts the earlier neighbours of each vertex. They are no more than the square
   root of the number of stored neighbours, because each of them has at least as many neighbours as the vertex.
2. The earlier neighbours of a range of vertices are written to memory; the range is as large as the budget has room for.
3. A sweep marks the earlier neighbours of each vertex, and looks up those of its neighbours in the range that have fewer. What it finds
   closes a triangle, which is counted at its three vertices. With the next range it goes on at 2.

A triangle is found once, at the edge of its two later vertices. There are as many passes as ranges: one, if half of the edges fit. With
room for the part h of all earlier neighbours, and for no other edges, all edges are read about 2 + 1 / h times.

Chiba, Nishizeki, "Arboricity and subgraph listing algorithms", SIAM Journal on Computing 14, 1985: as many steps as the shorter list of
each edge is long; Latapy, "Main-memory triangle computations for very large (sparse (power-law)) graphs", Theoretical Computer Science 407,
2008, algorithm compact-forward. Differs in: lists are held for one range after the other, and the longer list is marked, whichever end has
it. With NetworkX's conventions: self-loops do not count.
"""

from __future__ import annotations

import os
from functools import partial
from itertools import pairwise
from math import isqrt
from typing import Any

import numpy as np

from oocgraph.algorithms.runtimes import Runtime
from oocgraph.algorithms.sweeping import Call, check_undirected
from oocgraph.arguments import known_keywords
from oocgraph.engine.blocks import degree_dtype, simple_degrees
from oocgraph.engine.sweeps import Needs, Sweeps
from oocgraph.errors import ArgumentError
from oocgraph.kernels import triangles as kernels
from oocgraph.resources import Resources
from oocgraph.results.triangles import ClusteringResult, TrianglesResult
from oocgraph.store.graph import CSRStore
from oocgraph.types import Array, ProgressOption

PASSES = "passes"
"""Phase of progress: ranges whose triangles are counted, of all."""

LEAST_ROOM = 8
"""Bytes a vertex that are held of earlier neighbours at least, if there are so many: less memory than the results, and no more passes than
a quarter of the mean degree."""

COEFFICIENT_SECONDS = 3e-9
"""About what a vertex takes when coefficients are found."""


@known_keywords
def triangles(
    graph: CSRStore | str | os.PathLike[str],
    *,
    runtime: Runtime | None = None,
    resources: Resources | None = None,
    memory_budget: str | int | None = None,
    progress: ProgressOption = None,
) -> TrianglesResult:
    """Count the triangles of every vertex, and of the graph.

    Parameters
    ----------
    graph
        A store, or its path, of an undirected graph; self-loops do not count.
    runtime
        The graph opened before (`oocgraph.open_runtime`), in this process; it has its own resources, and keeps edges between calls.
    resources
        Threads and memory; see `oocgraph.Resources`.
    memory_budget
        Bytes that the process may hold (text such as ``"640M"``); the same as in `resources`.
    progress
        Called with ("passes", done, all); True draws a bar.

    Returns
    -------
    TrianglesResult
        Its columns are `triangles`, int64, and `clustering`, float64: the share of the pairs of neighbours that are neighbours of each
        other. Its details: `num_triangles`, `transitivity`, `average_clustering` (over all vertices, isolated ones included), `num_passes`.

    Raises
    ------
    ArgumentError
        The graph is directed, or has kept duplicate edges; arguments contradict each other.
    BudgetError
        The budget is too small; the message names the smallest that works.
    StoreError, CorruptStoreError
        The store cannot be opened or read.

    Notes
    -----
    Host memory: 28 bytes for each vertex that has edges (32 in a graph of 2^31 neighbours and more), and 8 for earlier neighbours; for
    each thread, and two that read, an eighth of a byte a vertex and 64 KiB; pieces of 2 MiB of edges (or as long as the longest list). What
    the budget has left is first for more earlier neighbours, which all together are half of the edges, and then for edges that stay.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> from oocgraph import build_csr
    >>> with TemporaryDirectory() as folder:
    ...     result = triangles(build_csr(([1, 1, 2, 3], [2, 3, 3, 4]), f"{folder}/g.zarr"))
    ...     result.triangles.tolist(), result.clustering.round(3).tolist(), result.num_triangles, result.transitivity
    ([1, 1, 1, 0], [1.0, 1.0, 0.333, 0.0], 1, 0.6)
    """
    return TrianglesResult(**_found("triangles", graph, runtime, resources, memory_budget, progress))


@known_keywords
def clustering(
    graph: CSRStore | str | os.PathLike[str],
    *,
    runtime: Runtime | None = None,
    resources: Resources | None = None,
    memory_budget: str | int | None = None,
    progress: ProgressOption = None,
) -> ClusteringResult:
    """Find the clustering coefficient of every vertex: the share of the pairs of its neighbours that are neighbours of each other.

    Parameters
    ----------
    graph, runtime, resources, memory_budget, progress
        As of `oocgraph.triangles`.

    Returns
    -------
    ClusteringResult
        Its column is `clustering`, float64, 0 where there is no pair; the rest is as of `oocgraph.triangles`.

    Raises
    ------
    ArgumentError, BudgetError, StoreError, CorruptStoreError
        As of `oocgraph.triangles`.

    Notes
    -----
    Memory and time are those of `oocgraph.triangles`.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> from oocgraph import build_csr
    >>> with TemporaryDirectory() as folder:
    ...     result = clustering(build_csr(([1, 1, 2, 3], [2, 3, 3, 4]), f"{folder}/g.zarr"))
    ...     result.of(2), round(result.average_clustering, 3)
    (1.0, 0.583)
    """
    found = _found("clustering", graph, runtime, resources, memory_budget, progress)
    del found["stored"]["triangles"]
    return ClusteringResult(**found)


@known_keywords
def transitivity(
    graph: CSRStore | str | os.PathLike[str],
    *,
    runtime: Runtime | None = None,
    resources: Resources | None = None,
    memory_budget: str | int | None = None,
    progress: ProgressOption = None,
) -> float:
    """Return the share of the pairs of edges with a common end that are part of a triangle, over the whole graph.

    Parameters
    ----------
    graph, runtime, resources, memory_budget, progress
        As of `oocgraph.triangles`.

    Returns
    -------
    float
        0 where there is no such pair.

    Raises
    ------
    ArgumentError, BudgetError, StoreError, CorruptStoreError
        As of `oocgraph.triangles`.

    Notes
    -----
    Memory and time are those of `oocgraph.triangles`, which returns this number, too.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> from oocgraph import build_csr
    >>> with TemporaryDirectory() as folder:
    ...     transitivity(build_csr(([1, 1, 2, 3], [2, 3, 3, 4]), f"{folder}/g.zarr"))
    0.6
    """
    found: float = _found("transitivity", graph, runtime, resources, memory_budget, progress)["details"]["transitivity"]
    return found


def _found(function: str, *given: Any) -> dict[str, Any]:
    """Return the fields of a `TrianglesResult`; arguments as for `Call`."""
    call = Call(function, *given)
    store, n = call.store, call.store.num_rows
    check_undirected(function, store)

    def compute(sweeps: Sweeps) -> tuple[Array, Array, dict[str, Any]]:
        count, coefficient = np.zeros(n, np.int64), np.zeros(n)
        degree = simple_degrees(store)
        num_passes = _count(sweeps, degree, count)
        found = sweeps.vertices(lambda a, z: kernels.find_clustering(count, degree, coefficient, a, z), COEFFICIENT_SECONDS * n)
        total, corners, pairs = sweeps.add_up([one[0] for one in found]), sum(one[1] for one in found), sum(one[2] for one in found)
        return count, coefficient, {
            "num_triangles": corners // 3, "transitivity": corners / max(1, pairs),
            "average_clustering": total / max(1, store.attributes.num_input_vertices), "num_passes": num_passes,
        }  # fmt: skip

    (count, coefficient, details), fields = call.run(_needs(store), compute)
    stored, isolated = {"triangles": count, "clustering": coefficient}, {"triangles": 0, "clustering": 0.0}
    return {"stored": stored, "isolated": isolated, "details": details, **fields}


def _count(sweeps: Sweeps, degree: Array, count: Array) -> int:
    """Count the triangles of each vertex; returns the number of passes."""
    store, n = sweeps.store, count.size
    by_number = store.attributes.vertex_order == "degree" and not store.attributes.num_self_loops
    at = np.zeros(n + 1, np.int64)
    if any(sweeps.pull(kernels.count_earlier, [degree], [at[1:]], [by_number])):
        raise ArgumentError(
            f"{store.url} has kept duplicate edges, which would count triangles more than once; build it with duplicates='drop' and "
            "without edge columns"
        )
    kernels.add_up(at)
    held = np.empty(min(sweeps.room_bytes // store.index_dtype.itemsize, int(at[n])), store.index_dtype)
    begins = _ranges(at, held.size)
    for i, (begin, stop) in enumerate(pairwise(begins), 1):
        sweeps.pull(kernels.hold_earlier, [degree, at, held], scalars=[begin, stop, by_number], only=partial(_overlap, begin, stop))
        sweeps.pull(kernels.count_triangles, [degree, at, held, count], scalars=[begin, stop, by_number], has_scratch=True)
        sweeps.progress(PASSES, i, len(begins) - 1)
    return len(begins) - 1


def _ranges(at: Array, room: int) -> list[int]:
    """Return where ranges of vertices begin, each as long as its earlier neighbours have room, and the end."""
    begins = [0]
    while at[begins[-1]] < at[-1]:
        begins.append(int(np.searchsorted(at, at[begins[-1]] + room, side="right")) - 1)
    return begins


def _overlap(begin: int, stop: int, first: int, end: int) -> bool:
    """Whether rows ``first .. end - 1`` have some of a range."""
    return first < stop and end > begin


def _needs(store: CSRStore) -> Needs:
    n, kind, edges = store.num_rows, degree_dtype(store), store.attributes.num_stored_edges
    itemsize = store.index_dtype.itemsize
    longest, most = (1 + isqrt(edges)) * itemsize, -(-edges // 2) * itemsize
    degree, offsets, held = np.empty(0, kind), np.empty(0, np.int64), np.empty(0, store.index_dtype)
    marks, bits = np.empty(0, np.uint32), np.empty(0, np.uint64)
    return Needs(
        vectors={"triangles and coefficients": 16 * n, "degrees": kind.itemsize * n, "places": 8 * (n + 1)}, result_bytes=16 * n,
        scratch=[(np.uint32, min(n, kernels.MARKED)), (np.uint64, n // 64 + 1)],
        room_bytes=(max(longest, min(LEAST_ROOM * n, most)), max(longest, most)),
        kernels=[
            (kernels.count_earlier, degree, offsets, True), (kernels.hold_earlier, degree, offsets, held, 0, 0, True),
            (kernels.count_triangles, degree, offsets, held, offsets, 0, 0, True, marks, bits),
        ],
        vertex_kernels=[(kernels.add_up, offsets), (kernels.find_clustering, offsets, degree, np.empty(0), 0, 0)],
    )  # fmt: skip
