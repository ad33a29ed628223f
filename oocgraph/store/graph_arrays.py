"""An open graph, as the modules that read its arrays see it: they lie below `oocgraph.store.graph`, which opens graphs and uses them."""

from __future__ import annotations

from typing import Protocol

from oocgraph.store.arrays import StoredArray
from oocgraph.store.layout import GraphAttributes


class GraphArrays(Protocol):
    """Attributes and arrays of a graph, such as those of a `oocgraph.store.graph.CSRStore`.

    Attributes
    ----------
    url : str
        Where the graph is.
    attributes : GraphAttributes
        What its root group says.
    """

    url: str
    attributes: GraphAttributes

    @property
    def num_rows(self) -> int:
        """Vertices that have an edge."""
        ...

    def array(self, name: str) -> StoredArray:
        """Reader of the array `name`, such as ``out/indices``."""
        ...
