"""One shortest path between two vertices: a breadth-first search, or a search by weights, that ends when its target is found."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from oocgraph.algorithms.bfs import bfs
from oocgraph.algorithms.sssp import sssp
from oocgraph.arguments import known_keywords
from oocgraph.errors import ArgumentTypeError
from oocgraph.resources import Resources, resources_of
from oocgraph.store.graph import CSRStore
from oocgraph.types import ProgressOption

if TYPE_CHECKING:
    from oocgraph.algorithms.runtimes import Runtime


@known_keywords
def shortest_path(
    graph: CSRStore | str | os.PathLike[str],
    source: Any,
    target: Any,
    *,
    weight: str | None = None,
    where: str | None = None,
    runtime: Runtime | None = None,
    resources: Resources | None = None,
    memory_budget: str | int | None = None,
    progress: ProgressOption = None,
) -> list[Any]:
    """Find a shortest path from one vertex to another, in this process and on its processor.

    Parameters
    ----------
    graph
        A graph store or its path. Of a directed graph, a path follows the edges.
    source, target
        User ids of the vertices.
    weight
        Edge column of the weights, numbers of 0 or more; by default a path is as long as it has edges, also in a graph that has weights.
    where
        Condition on edge columns that edges must meet; see `oocgraph.bfs`.
    runtime
        The graph opened before (`oocgraph.open_runtime`), for many paths; it has its own resources.
    resources
        Threads and memory; see `oocgraph.Resources`.
    memory_budget
        Bytes that the process may hold (text such as ``"640M"``); the same as in `resources`.
    progress
        Called as by `oocgraph.bfs` or `oocgraph.sssp`; True draws a bar.

    Returns
    -------
    list
        Ids of the vertices on the path, `source` first and `target` last. Of paths of one length, each vertex follows the one that the
        search took: the choice may differ between the two kinds of search.

    Raises
    ------
    VertexNotFoundError
        `source` or `target` does not occur in the graph's input.
    NoPathError
        No path leads there.
    ArgumentError
        An argument is invalid.
    BudgetError
        The budget is too small; the message names the smallest that works.
    StoreError, CorruptStoreError
        The store cannot be opened or read.

    Notes
    -----
    Host memory: as `oocgraph.bfs` or `oocgraph.sssp`.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> from oocgraph import build_csr
    >>> with TemporaryDirectory() as folder:
    ...     shortest_path(build_csr(([1, 1, 2, 3], [2, 3, 4, 4]), f"{folder}/g.zarr"), 1, 4) in ([1, 2, 4], [1, 3, 4])
    True
    """
    for name, given in (("source", source), ("target", target)):
        if given is None or isinstance(given, list | tuple | set | dict) or getattr(given, "ndim", 0) != 0:
            raise ArgumentTypeError(f"{name} is {given!r}; give one vertex")
    asked = resources_of("shortest_path", resources, memory_budget=memory_budget, runtime=runtime)
    here: dict[str, Any] = {"runtime": runtime} if runtime is not None else {"resources": replace(asked, client=False)}
    common: dict[str, Any] = {"target": target, "where": where, "progress": progress, **here}
    found = bfs(graph, source, **common) if weight is None else sssp(graph, source, weight=weight, **common)
    path: list[Any] = found.path(target).tolist()
    return path
