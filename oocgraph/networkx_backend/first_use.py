"""Calls of NetworkX that compile what its answers need beside oocgraph's own functions: `oocgraph warm` makes them."""

from __future__ import annotations

from functools import partial
from typing import Any

import networkx as nx


def answer(undirected: Any, directed: Any) -> None:
    """Call what lists trees and groups of vertices: of two graphs, the directed one without cycles, and of small and large ones."""
    for function in (nx.connected_components, partial(nx.bfs_layers, sources=[0]), partial(nx.bfs_edges, source=0)):
        for graph in (undirected, nx.path_graph(9), nx.path_graph(1 << 14)):  # new ones: NetworkX warns where it keeps what was handed over
            list(function(graph, backend="oocgraph"))
    list(nx.topological_generations(directed, backend="oocgraph"))
