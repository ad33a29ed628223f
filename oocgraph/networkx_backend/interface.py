"""What NetworkX calls: `BackendInterface`, with the functions of the backend under NetworkX's names."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import Any

import networkx as nx

from oocgraph.networkx_backend.graph import ConvertedGraph, converted, to_networkx
from oocgraph.networkx_backend.nx_tests import mark_expected_failures
from oocgraph.networkx_backend.registry import ALGORITHMS
from oocgraph.store.graph import CSRStore

TOPICS = (
    "biconnected", "bipartite", "centrality", "clustering", "communities", "components", "cores", "cuts", "dag", "degrees",
    "distances", "greedy", "link_prediction", "mixing", "paths", "ranking", "traversal", "trees", "weighted",
)  # fmt: skip
"""Modules that have the functions."""


class BackendInterface:
    """The backend as NetworkX sees it; its functions are set below."""

    @staticmethod
    def convert_from_nx(graph: Any, edge_attrs: Mapping[str, Any] | None = None, **_: Any) -> ConvertedGraph:
        """Convert a graph of NetworkX; other attributes are taken from it where they are asked for."""
        return converted(graph, edge_attrs)

    @staticmethod
    def convert_to_nx(found: Any, **_: Any) -> Any:
        """Return a graph of the backend as one of NetworkX, and anything else as it is."""
        return to_networkx(found) if isinstance(found, ConvertedGraph | CSRStore) else found

    @staticmethod
    def can_run(name: str, args: Sequence[Any], kwargs: Mapping[str, Any]) -> bool | str:
        """Return whether a call can run, or why it cannot."""
        return ALGORITHMS[name].refusal(args, kwargs) or True

    @staticmethod
    def should_run(name: str, args: Sequence[Any], kwargs: Mapping[str, Any]) -> bool | str:
        """Return whether a call is worth the conversion of its graph, or why it is not."""
        graph = args[0] if args else kwargs["G"]
        least = nx.config.backends["oocgraph"].min_edges
        if not isinstance(graph, nx.Graph) or (num_edges := graph.number_of_edges()) >= least:
            return True
        return f"the graph has {num_edges:,} edges, and those with fewer than min_edges={least:,} are left to NetworkX"

    on_start_tests = staticmethod(mark_expected_failures)


for topic in TOPICS:
    import_module(f"oocgraph.networkx_backend.{topic}")
for name, found in ALGORITHMS.items():
    setattr(BackendInterface, name, staticmethod(found.run))
