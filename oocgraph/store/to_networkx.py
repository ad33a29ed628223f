"""A stored graph as a graph of NetworkX in memory.

In: a store. Out: a graph of NetworkX of the same kind, under the user's ids, with the edge columns as attributes. The memory that it
takes is estimated before anything is read.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, cast

from oocgraph.config import settings
from oocgraph.errors import MissingDependencyError
from oocgraph.memory import Budget, effective_budget_bytes
from oocgraph.store.columns import id_bytes
from oocgraph.store.edge_batches import stream_bytes
from oocgraph.store.layout import VERTEX_ID, string_arrays

if TYPE_CHECKING:
    from oocgraph.store.graph import CSRStore

EDGE_BYTES, PARALLEL_EDGE_BYTES = 350, 500
"""Most bytes of an edge of a NetworkX graph, and of one of a multigraph, without its attributes."""

NODE_BYTES = 500
"""Most bytes of a node, without its id."""

NUMBER_BYTES = 32
"""Bytes of a number as a Python object."""

TEXT_BYTES, MOST_CHARACTER_BYTES = 80, 4
"""Bytes of a string without its characters, and of a character: the widest one of a string sets the width of all."""

BATCH_VALUES = 1 << 17
"""Ends and attributes of a batch, which are Python objects."""


def to_networkx(graph: CSRStore, *, memory_budget: str | int | None = None) -> Any:
    """Return a graph as one of NetworkX; see `oocgraph.store.access.GraphAccess.to_networkx`."""
    try:
        import networkx as nx
    except ImportError as error:
        raise MissingDependencyError("to_networkx needs NetworkX, which is not installed: `pip install oocgraph[networkx]`") from error
    stored = list(graph.attributes.columns)
    names = [graph.attributes.input_column(name) for name in stored]
    batch_size = BATCH_VALUES // (2 + len(names))
    asked = settings().memory_budget if memory_budget is None else memory_budget
    needed = _graph_bytes(graph, stored, names) + sum(stream_bytes(graph, stored, batch_size).values())
    Budget(effective_budget_bytes(asked)).reserve(f"{graph.url} as a graph of NetworkX", needed)
    kinds = (nx.MultiGraph, nx.MultiDiGraph) if graph.is_multigraph() else (nx.Graph, nx.DiGraph)
    found = kinds[graph.attributes.directed]()
    own = {one: one for one in graph}  # an edge holds its ends: the nodes, not strings of its own
    found.add_nodes_from(own)
    texts = dict[str, list[str]]()
    for batch in graph.edges(columns=stored, batch_size=batch_size, memory_budget=asked):
        source, target, *columns = batch.columns
        ends = ((own[one] for one in end.to_pylist()) for end in (source, target))
        values = (_values(column, name, texts) for column, name in zip(columns, stored, strict=True))
        found.add_edges_from((u, v, dict(zip(names, own_values, strict=True))) for u, v, *own_values in zip(*ends, *values, strict=True))
    return found


def _values(column: Any, name: str, texts: dict[str, list[str]]) -> list[Any]:
    """Return the values of a column as Python objects; edges with the same string share it."""
    if not hasattr(column, "dictionary"):
        return cast("list[Any]", column.to_pylist())
    if name not in texts:
        texts[name] = column.dictionary.to_pylist()
    return [texts[name][number] for number in column.indices.to_pylist()]


def _graph_bytes(graph: CSRStore, stored: list[str], names: list[str]) -> int:
    """Return the most bytes that the NetworkX graph takes; each edge has a dictionary for its attributes."""
    attributes = dict[str, str]()
    attributes.update(zip(names, names, strict=True))
    texts = [string_arrays(f"columns/{name}") for name in stored if graph.attributes.columns[name] == "string"]
    text_bytes = sum(MOST_CHARACTER_BYTES * graph.array(data).length + TEXT_BYTES * graph.array(offsets).length for data, offsets in texts)
    edge_bytes = PARALLEL_EDGE_BYTES if graph.is_multigraph() else EDGE_BYTES
    edge_bytes += sys.getsizeof(attributes) + NUMBER_BYTES * (len(stored) - len(texts))
    node_bytes = NODE_BYTES + MOST_CHARACTER_BYTES * id_bytes(graph, VERTEX_ID)
    return graph.num_vertices * node_bytes + graph.num_edges * edge_bytes + text_bytes
