"""What results of searches share: the vertex before each on the way from where it was reached, and the path along these.

In: a value and a parent of every vertex in store order. Out: `TreeResult`, the base of `oocgraph.results.bfs.BFSResult` and of
`oocgraph.results.paths.PathsResult`.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, ClassVar

import numpy as np

from oocgraph.errors import ArgumentTypeError, NoPathError
from oocgraph.lazy import cached_property
from oocgraph.results.base import VertexResult
from oocgraph.results.join import origins_of
from oocgraph.results.mapping import ColumnMapping
from oocgraph.store.given import is_single
from oocgraph.types import Array


class TreeResult(VertexResult):
    """Vertices that were reached, each from the one before it; the sources are before themselves."""

    value_column: ClassVar[str]

    @property
    @abstractmethod
    def no_value(self) -> Any:
        """What the user sees as the value of a vertex that was not reached."""

    @property
    @abstractmethod
    def num_reached(self) -> int:
        """Vertices that were reached, sources included."""

    @abstractmethod
    def _parents(self) -> Any:
        """Return the store number of the vertex before each, in store order."""

    @abstractmethod
    def _are_reached(self) -> Array:
        """Return which vertices were reached: (num_vertices,) bool."""

    @cached_property
    def parent(self) -> Any:
        """Id of the vertex before each of `vertices`, of a source its own: int64, -1 where unreached, or object array of str with None."""
        return self._joined("parent")

    def parent_of(self, ids: Any) -> Any:
        """Id of the vertex before one vertex or several; -1, or None for strings, where unreached.

        Raises
        ------
        VertexNotFoundError
            An id does not occur in the graph's input.
        """
        return self._look_up("parent", ids)

    @cached_property
    def origin(self) -> Any:
        """Id of the source that each of `vertices` is reached from: int64, -1 where unreached, or object array of str with None."""
        return self._joined("origin")

    def origin_of(self, ids: Any) -> Any:
        """Id of the source that one vertex, or each of several, is reached from; -1, or None for strings, where unreached.

        Raises
        ------
        VertexNotFoundError
            An id does not occur in the graph's input.
        """
        return self._look_up("origin", ids)

    @cached_property
    def stored_origin(self) -> Array:
        """Store numbers of these sources, in store order; `no_parent` where unreached."""
        return origins_of(np.asarray(self._parents()), self._are_reached())

    def reached(self, column: str | None = None) -> ColumnMapping:
        """Return a mapping from the vertices that were reached to their values, or to those in another column; nothing is held.

        Raises
        ------
        ArgumentError
            There is no such column.
        """
        return ColumnMapping(self, self._chosen(column), (self.value_column, self.no_value), self.num_reached)

    def path(self, target: Any) -> Array:
        """Return the path to `target` from where it begins, both included, as user ids.

        Raises
        ------
        VertexNotFoundError
            `target` does not occur in the graph's input.
        ArgumentTypeError
            `target` is not one vertex.
        NoPathError
            It was not reached.
        """
        if not is_single(target):
            raise ArgumentTypeError(f"target is {target!r}; give one vertex")
        target = target.item() if isinstance(target, np.generic) else target  # which messages would name with its dtype
        if self._look_up(self.value_column, target) == self.no_value:
            raise NoPathError(f"there is no path to {target!r} that {self!r} has found")
        vertex = int(self.ids.vertices_of(target)[0])
        if vertex < 0:  # a source that has no edge
            return self.ids.parse(target)
        parent, numbers = self._parents(), [vertex]
        while (before := int(parent[numbers[-1]])) != numbers[-1]:
            numbers.append(before)
        return self.ids.ids_of(numbers[::-1])
