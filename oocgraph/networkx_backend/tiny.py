"""Searches of tiny graphs of NetworkX, of which no store is built: their rows are made of the converted edges, and a kernel searches them.

In: a `ConvertedGraph` that `is_tiny`, nodes by position. Out: `TinySearch`, which has of a result of `oocgraph.bfs` or `oocgraph.sssp` what
functions of the backend ask for. A call takes about 0.1 ms; building a store, and searching it, six times as long.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import floor, inf
from typing import Any

import numpy as np

from oocgraph.compiled.load import load_kernel
from oocgraph.engine.levels import MAX_DEPTH_LIMIT
from oocgraph.kernels import few as kernels
from oocgraph.kernels.relax import MOST_WIDE, SHORTEST
from oocgraph.kernels.rest import Rest, Walk, walk_rest
from oocgraph.kernels.rows import explicit_rows
from oocgraph.networkx_backend.graph import ConvertedGraph
from oocgraph.results.join import origins_of
from oocgraph.types import UNREACHED, Array, no_parent

TINY = 1 << 14
"""Nodes and neighbours of a tiny graph, of which an edge counts twice: what is held of one is less than 1 MiB, within what every call is
allowed beside its reservations."""

MOST_STEPS = 1 << 22
"""Nodes and neighbours that searches of a tiny graph may look at in all: up to that one at a time is quicker than 64 in sweeps."""

_NOBODY = np.empty(0, np.int64)


def is_tiny(graph: ConvertedGraph) -> bool:
    """Whether a graph is tiny."""
    return len(graph.nodes) + graph.near.size <= TINY


def are_few(num_sources: int, num_nodes: int, num_neighbours: int) -> bool:
    """Whether searches from so many nodes of a graph are made one after the other, as of a tiny one."""
    return num_nodes + num_neighbours <= TINY and num_sources * (num_nodes + num_neighbours) <= MOST_STEPS


class TinySearch:
    """What a search of a tiny graph found, by position of the nodes.

    Parameters
    ----------
    name
        Of the column: ``level`` or ``distance``.
    values : (num_nodes,) int32, int64 or float64
    no_value
        That of nodes that were not reached.
    parent : (num_nodes,) int64
        -1 where there is none.
    """

    def __init__(self, name: str, values: Array, no_value: Any, parent: Array) -> None:
        self.columns, self.no_value, self.parent = (name,), no_value, parent
        self.level = self.distance = values

    @property
    def depth(self) -> int:
        """Largest level."""
        return int(self.level.max(initial=0))

    def level_of(self, node: int) -> int:
        """Return the level of a node; -1: it was not reached."""
        return int(self.level[node])

    def of(self, nodes: Array) -> Array:
        """Return the values of some nodes."""
        return self.level[nodes]

    @property
    def origin(self) -> Array:
        """Node that the path to each begins at; -1: it was not reached."""
        return origins_of(self.parent, self.parent >= 0)

    def reached(self) -> dict[int, Any]:
        """Return the values of the nodes that were reached."""
        found = np.flatnonzero(self.level != self.no_value)
        return dict(zip(found.tolist(), self.level[found].tolist(), strict=True))

    def path(self, node: int) -> Array:
        """Return the nodes on the way to one that was reached."""
        path = [node]
        while (before := int(self.parent[path[-1]])) != path[-1]:
            path.append(before)
        return np.array(path[::-1], np.int64)


def search_tiny(
    graph: ConvertedGraph, sources: Sequence[int], targets: Sequence[int], last_level: int | None, *, reverse: bool
) -> TinySearch:
    """Search breadth-first from some nodes, until all of the targets are found, if there are any."""
    indptr, near, _ = rows_of(graph, reverse=reverse)
    num_nodes = len(graph.nodes)
    limits = np.array([MAX_DEPTH_LIMIT if last_level is None else min(last_level, MAX_DEPTH_LIMIT), num_nodes, near.size], np.int64)
    called = explicit_rows(indptr), near, num_nodes, _distinct(sources), _distinct(targets), limits
    load_once(kernels.search_few, called)
    _, begin, _, vertices, parents, log = kernels.search_few(*called)
    level, parent = np.full(num_nodes, UNREACHED, np.int32), np.full(num_nodes, UNREACHED, np.int64)
    bounds = np.append(log[:, 0], (begin, vertices.size))
    level[vertices] = np.repeat(np.arange(bounds.size - 1, dtype=np.int32), np.diff(bounds))
    parent[vertices] = parents
    return TinySearch("level", level, UNREACHED, parent)


def shortest_in_tiny(
    graph: ConvertedGraph, sources: Sequence[int], target: int | None, limit: float | None, *, reverse: bool
) -> TinySearch:  # fmt: skip
    """Find shortest paths from the nearest of some nodes by the weights of a graph that has some, none of them negative."""
    indptr, near, weights = rows_of(graph, reverse=reverse)
    is_integer = weights.dtype.kind == "i"
    unreached = SHORTEST["wide" if is_integer else "float"][1]
    distance, parent = np.full(len(graph.nodes), unreached), np.full(len(graph.nodes), no_parent(near.dtype), near.dtype)
    bound = unreached
    if limit is not None:
        bound = type(unreached)(floor(min(limit, 2.0**62)) if is_integer else limit)
    if target in sources:
        bound = type(unreached)(0)
    targets = _NOBODY if target is None else np.array([target])
    called = indptr, near, weights, _distinct(sources), targets, bound, MOST_WIDE if is_integer else unreached, distance, parent
    load_once(kernels.shortest_few, called)
    kernels.shortest_few(*called)
    is_reached, no_value = distance != unreached, UNREACHED if is_integer else inf
    return TinySearch(
        "distance", np.where(is_reached, distance, no_value), no_value, np.where(is_reached, parent.astype(np.int64), UNREACHED)
    )


def eccentricities_in_tiny(graph: ConvertedGraph, sources: Array, *, weighted: bool) -> Array:
    """Find the largest distance from some nodes, -1 or infinite where not all can be reached.

    `weighted`: by the weights of the graph, if it has any; else by the number of edges.
    """
    indptr, near, weights = rows_of(graph, reverse=False)
    weights = weights if weighted else np.ones(weights.size, np.int64)
    is_integer = weights.dtype.kind == "i"
    unreached = SHORTEST["wide" if is_integer else "float"][1]
    distance, parent = np.full(len(graph.nodes), unreached), np.full(len(graph.nodes), no_parent(near.dtype), near.dtype)
    farthest = np.empty(sources.size, distance.dtype)
    called = indptr, near, weights, sources, _NOBODY, MOST_WIDE if is_integer else unreached, distance, parent, farthest
    load_once(kernels.farthest_few, called)
    kernels.farthest_few(*called)
    return np.where(farthest == unreached, UNREACHED, farthest) if is_integer else farthest


def strong_in_tiny(graph: ConvertedGraph) -> tuple[Array, int]:
    """Find the strongly connected components: of each node the first of its component, and how many there are."""
    indptr, near, _ = rows_of(graph, reverse=False)
    n, kind = len(graph.nodes), near.dtype
    number = np.arange(n, dtype=kind)
    rest = Rest(np.array([n, near.size]), number, indptr[:-1], indptr[1:], near, number)
    walk = Walk(np.empty(n, np.int64), np.empty(n, kind), np.zeros(n, kind), np.empty(n, kind), np.empty(n, kind))
    called = rest, walk, kind.type(no_parent(kind))
    load_once(walk_rest, called)
    walk_rest(*called)
    roots, first, component = np.unique(walk.seen, return_index=True, return_inverse=True)
    return first[component], roots.size


def rows_of(graph: ConvertedGraph, *, reverse: bool) -> tuple[Array, Array, Array]:
    """Return where rows begin, neighbours and weights, which are ones where all edges weigh one."""
    kept = graph.rows.get(reverse)
    if kept is None:
        near, weights = graph.near.astype(np.uint32), graph.near_weights
        weights = np.ones(near.size, np.int64) if weights is None else weights
        indptr = np.zeros(len(graph.nodes) + 1, np.int64)
        if reverse and graph.is_directed():
            order = np.argsort(near, kind="stable")
            source = np.repeat(np.arange(len(graph.nodes), dtype=np.uint32), graph.degrees)
            np.cumsum(np.bincount(near, minlength=len(graph.nodes)), out=indptr[1:])
            near, weights = source[order], weights[order]
        else:
            np.cumsum(graph.degrees, out=indptr[1:])
        kept = graph.rows[reverse] = indptr, near, weights
    return kept


def _distinct(positions: Sequence[int]) -> Array:
    """Return positions in ascending order, each once."""
    return np.array(sorted(set(positions)), np.int64)


def load_once(kernel: Any, called: tuple[Any, ...]) -> None:
    """Bring a kernel into memory, which is the same for all calls in which the third argument has the same dtype, if any."""
    key = kernel, called[2].dtype if isinstance(called[2], np.ndarray) else None
    if key not in _loaded:
        load_kernel(kernel, called)
        _loaded.add(key)


_loaded: set[tuple[Any, Any]] = set()
