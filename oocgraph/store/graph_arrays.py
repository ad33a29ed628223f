"""An open graph, as the modules that read its arrays see it: they lie below `oocgraph.store.graph`, which opens graphs and uses them."""

from __future__ import annotations

from typing import Protocol

from oocgraph.store.arrays import StoredArray
from oocgraph.store.layout import GraphAttributes
from oocgraph.types import Array


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
    def place(self) -> str:
        """Path or URL by which it is opened again, whatever the working folder has become."""
        ...

    @property
    def where(self) -> str | None:
        """Condition that edges meet; None: all count."""
        ...

    @property
    def num_rows(self) -> int:
        """Vertices that have an edge."""
        ...

    @property
    def num_vertices(self) -> int:
        """Vertices of the input, isolated ones included."""
        ...

    @property
    def pull_group(self) -> str:
        """Group that carries degree classes, where vertices are sorted by degree."""
        ...

    @property
    def degree_classes(self) -> tuple[Array, Array]:
        """Distinct degrees of that group, descending, and the first vertex of each."""
        ...

    def has_array(self, name: str) -> bool:
        """Whether there is such an array."""
        ...

    def array(self, name: str) -> StoredArray:
        """Reader of the array `name`, such as ``out/indices``."""
        ...
