"""Breadth-first searches and shortest paths as functions of the backend begin them, and groups of the vertices that were found."""

from __future__ import annotations

from collections.abc import Iterator
from math import ceil, inf
from typing import Any

import networkx as nx
import numpy as np

from oocgraph.algorithms.bfs import bfs
from oocgraph.algorithms.sssp import sssp
from oocgraph.kernels.grouping import count_groups, order_by_group
from oocgraph.networkx_backend.nodes import Nodes
from oocgraph.store.views import view_of
from oocgraph.types import Array


def last_level(cutoff: float | None) -> int | None:
    """Return the last level that NetworkX finds with a cutoff, or a limit of the depth."""
    return None if cutoff is None or cutoff == inf else max(0, ceil(cutoff))


def search(nodes: Nodes, source: Any, *, cutoff: float | None = None, reverse: bool = False, target: Any = None) -> Any:
    """Search breadth-first from what oocgraph calls a node, or several."""
    return bfs(view_of(nodes.store, reverse=reverse), source, depth_limit=last_level(cutoff), resources=nodes.resources)


def shortest_paths(
    nodes: Nodes, source: Any, weight: str | None, *, cutoff: float | None = None, reverse: bool = False, target: Any = None
) -> Any:
    """Find shortest paths by a weight, or by the number of edges where the graph does not have it; `reverse`: against the edges.

    Raises
    ------
    NotImplementedError
        A weight is negative: NetworkX has its own answers for those.
    """
    column = nodes.column_of(weight)
    if column is None:
        limit = None if cutoff is None else int(max(cutoff, 0)) if cutoff != inf else None
        return search(nodes, source, cutoff=limit, reverse=reverse, target=target)
    nodes.leave_negative_weights()
    graph = view_of(nodes.store, reverse=reverse)
    return sssp(graph, source, weight=column, distance_limit=cutoff, target=target, resources=nodes.resources)


def groups(group: Array, num_groups: int) -> Iterator[Array]:
    """Iterate over the vertices of each group that has any, ascending; those of negative groups are left out."""
    ends = np.zeros(num_groups, np.int64)
    count_groups(group, ends)
    begin = np.concatenate([[0], np.cumsum(ends[:-1])]) if num_groups else ends
    order = np.empty(int(ends.sum()), np.int32 if group.size < 2**31 else np.int64)
    order_by_group(group, begin, order)
    start = 0
    for end in begin.tolist():
        if end > start:
            yield order[start:end]
        start = end


def no_path(source: Any, target: Any) -> nx.NetworkXNoPath:
    """Return the error that there is no path between two nodes."""
    return nx.NetworkXNoPath(f"No path between {source} and {target}.")
