"""A stored graph as a graph of NetworkX in memory.

In: a store. Out: a graph of NetworkX of the same kind, under the user's ids, with the edge columns as attributes. The memory that it
takes is estimated before anything is read.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from oocgraph.config import settings
from oocgraph.errors import MissingDependencyError
from oocgraph.memory import Budget, effective_budget_bytes
from oocgraph.store.columns import id_bytes
from oocgraph.store.layout import VERTEX_ID, WEIGHT

if TYPE_CHECKING:
    from oocgraph.store.graph import CSRStore

EDGE_BYTES, PARALLEL_EDGE_BYTES = 500, 700
"""Bytes that an edge of a graph of NetworkX takes at most, and one of a multigraph (measured 250 to 450, and 450 to 550)."""

NODE_BYTES = 500
"""The same of a node."""


def to_networkx(graph: CSRStore, *, memory_budget: str | int | None = None) -> Any:
    """Return a graph as one of NetworkX; see `oocgraph.store.access.GraphAccess.to_networkx`."""
    try:
        import networkx as nx
    except ImportError as error:
        raise MissingDependencyError("to_networkx needs NetworkX, which is not installed: `pip install oocgraph[networkx]`") from error
    asked = settings().memory_budget if memory_budget is None else memory_budget
    edge_bytes = PARALLEL_EDGE_BYTES if graph.is_multigraph() else EDGE_BYTES
    needed = graph.num_vertices * (NODE_BYTES + 2 * id_bytes(graph, VERTEX_ID)) + graph.num_edges * edge_bytes  # ids of the stream, too
    Budget(effective_budget_bytes(asked)).reserve(f"{graph.url} as a graph of NetworkX", needed)
    kinds = (nx.MultiGraph, nx.MultiDiGraph) if graph.is_multigraph() else (nx.Graph, nx.DiGraph)
    found = kinds[graph.attributes.directed]()
    own = {one: one for one in graph}  # an edge holds its ends: the nodes, not strings of its own
    found.add_nodes_from(own)
    stored = list(graph.attributes.columns)
    names = [graph.attributes.weight_name or name if name == WEIGHT else name for name in stored]
    for batch in graph.edges(columns=stored):
        source, target, *columns = (column.to_pylist() for column in batch.columns)
        ends = (own[one] for one in source), (own[one] for one in target)
        found.add_edges_from((u, v, dict(zip(names, values, strict=True))) for u, v, *values in zip(*ends, *columns, strict=True))
    return found
