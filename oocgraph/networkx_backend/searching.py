"""Breadth-first searches and shortest paths as functions of the backend begin them, and groups of the vertices that were found."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from math import ceil, floor, inf, nextafter
from typing import Any

import numpy as np

from oocgraph.algorithms.bfs import bfs
from oocgraph.algorithms.sssp import sssp
from oocgraph.compiled.load import load_kernels
from oocgraph.kernels.grouping import count_groups, order_by_group
from oocgraph.networkx_backend.graph import ConvertedGraph
from oocgraph.networkx_backend.nodes import Nodes
from oocgraph.networkx_backend.tiny import is_tiny, search_tiny, shortest_in_tiny
from oocgraph.types import Array


def last_level(cutoff: float | None) -> int | None:
    """Return the last level that NetworkX finds with a cutoff, or a limit of the depth; with NaN, as below 0, the source alone."""
    if cutoff is None or cutoff == inf:
        return None
    return ceil(cutoff) if cutoff > 0 else 0


def largest_distance(cutoff: float | None) -> float | None:
    """Return the largest number, an int if it is whole, that is no more than a cutoff of distances; None: all are found.

    NetworkX leaves out what is farther than the cutoff, which may be a fraction, but never the source; with NaN it leaves out nothing.
    """
    if cutoff is None or not cutoff < inf or (whole := floor(max(cutoff, 0))) > sys.float_info.max:
        return None
    if whole >= cutoff and whole < 1 << 62:
        return whole
    near = float(cutoff)
    return near if near <= cutoff else nextafter(near, 0)


def _as_list(given: Any) -> list[int]:
    return given if isinstance(given, list) else [] if given is None else [given]


def search(nodes: Nodes, source: Any, *, cutoff: float | None = None, reverse: bool = False, target: Any = None) -> Any:
    """Search breadth-first from what oocgraph calls a node, or several."""
    limit = last_level(cutoff)
    if isinstance(nodes.graph, ConvertedGraph) and is_tiny(nodes.graph):
        return search_tiny(nodes.graph, _as_list(source), _as_list(target), limit, reverse=reverse and nodes.is_directed)
    return bfs(nodes.store, source, target=target, depth_limit=limit, reverse=reverse and nodes.is_directed, resources=nodes.resources)


def shortest_paths(
    nodes: Nodes, source: Any, weight: str | None, *, cutoff: float | None = None, reverse: bool = False, target: Any = None
) -> Any:
    """Find shortest paths from a node, or from the nearest of several; `reverse`: against the edges.

    They are by a weight, or by the number of edges where the graph does not have it.

    Raises
    ------
    NotImplementedError
        A weight is negative: NetworkX has its own answers for those.
    """
    column, limit = nodes.column_of(weight), largest_distance(cutoff)
    if column is None:
        return search(nodes, source, cutoff=None if limit is None else floor(limit), reverse=reverse, target=target)
    nodes.leave_negative_weights()
    reverse = reverse and nodes.is_directed
    if isinstance(nodes.graph, ConvertedGraph) and is_tiny(nodes.graph):
        return shortest_in_tiny(nodes.graph, _as_list(source), target, limit, reverse=reverse)
    return sssp(
        nodes.store, source, weight=column, distance_limit=limit, target=target, reverse=reverse, resources=nodes.resources,
    )  # fmt: skip


def groups(group: Array, num_groups: int) -> tuple[Array, Array]:
    """Return vertices by group, ascending in each, and where each group that has any ends; those of negative groups are left out.

    Notes
    -----
    Holds an index for each vertex, and two for each group.
    """
    dtype = np.int32 if group.size < 2**31 else np.int64
    ends = np.zeros(num_groups, dtype)
    load_kernels([(count_groups, (group, ends)), (order_by_group, (group, ends, ends))])
    count_groups(group, ends)
    np.cumsum(ends, out=ends)
    order, begin = np.empty(int(ends[-1]) if num_groups else 0, dtype), np.zeros(num_groups, dtype)
    begin[1:] = ends[:-1]
    order_by_group(group, begin, order)
    return order, ends[np.diff(ends, prepend=0) > 0]


def sets_of(nodes: Nodes, group: Array) -> Iterator[Any]:
    """Iterate over the groups of nodes, by a number of each in own order, as sets; the nodes that own order does not have are alone."""
    yield from nodes.in_sets(*groups(group, group.size))
    for node in nodes.alone():
        yield {node}


def between(source: Any, target: Any) -> str:
    """Return the text of an error: there is no path between two nodes."""
    return f"No path between {source} and {target}."
