"""Joins a search in store order with the user's vertex ids, block by block.

In: ids as a graph stores them (ascending, isolated ones included) with their store numbers, and level and parent in store
order. Out: level and parent of the block's vertices under the user's ids. Strings stay Arrow's until somebody asks for Python's.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

import numpy as np

from oocgraph.traversal import StoreOrdered
from oocgraph.types import LEVEL_UNREACHED, UNREACHED, Array

Ids: TypeAlias = Any
"""(n,) int64, or pyarrow.LargeStringArray (null where there is none)."""


class VertexIdMap(Protocol):
    """The user's ids of a graph's vertices, as a result needs them: see `oocgraph.store.vertices.VertexIds`."""

    kind: str
    num_ids: int

    def parse(self, ids: Any) -> Array:
        """Return ids as the graph has them."""
        ...

    def vertices_of(self, ids: Any) -> Array:
        """Return store numbers, -1 where isolated."""
        ...

    def ids_of(self, vertices: Any) -> Array:
        """Return user ids of store numbers."""
        ...

    def stored_ids_of(self, vertices: Any) -> Ids:
        """Return user ids of store numbers, strings as Arrow's."""
        ...

    def stored_blocks(self, block_size: int) -> Iterator[tuple[Ids, Array]]:
        """Iterate over every input id, ascending, with store numbers."""
        ...


@dataclass(frozen=True, slots=True)
class ResultBlock:
    """Some consecutive vertices of a result.

    Attributes
    ----------
    vertices : (n,) int64, or pyarrow.LargeStringArray
        User ids.
    level : (n,) int32
        -1 where unreached.
    parent : (n,) int64, or pyarrow.LargeStringArray
        User ids; -1 or null where unreached.
    """

    vertices: Ids
    level: Array
    parent: Ids


@dataclass(frozen=True, slots=True, eq=False)
class Join:
    """Level and parent of a search, to be joined with ids.

    Attributes
    ----------
    ids
        The graph's vertex ids.
    level, parent : (num_vertices,) values in store order
        As `Search` has them.
    isolated_ids : (num_isolated_sources,) int64, or object array of str
        Sources that have no edge, so no store number: each reaches itself.
    """

    ids: VertexIdMap
    level: StoreOrdered
    parent: StoreOrdered
    isolated_ids: Array

    def column(self, name: str, vertices: Ids, numbers: Array) -> Ids:
        """Return one column of a block: ``vertices``, ``level`` or ``parent``."""
        if name == "vertices":
            return vertices
        levels = self.levels(vertices, numbers)
        return levels if name == "level" else self.parents(vertices, numbers, levels)

    def block(self, vertices: Ids, numbers: Array) -> ResultBlock:
        """Return all columns of a block."""
        levels = self.levels(vertices, numbers)
        return ResultBlock(vertices, levels, self.parents(vertices, numbers, levels))

    def levels(self, vertices: Ids, numbers: Array) -> Array:
        """Return levels ((n,) int32, -1 where unreached) of vertices, given by id and by store number (-1: isolated)."""
        level = np.full(numbers.size, UNREACHED, np.int32)
        known = numbers >= 0
        level[known] = self.level[numbers[known]]
        if self.level.dtype == np.uint8:
            level[level == LEVEL_UNREACHED] = UNREACHED
        level[self._isolated_sources(vertices, ~known)] = 0
        return level

    def parents(self, vertices: Ids, numbers: Array, levels: Array) -> Ids:
        """Return the ids of parents; a vertex at level 0 is its own."""
        found, own = levels > 0, levels == 0
        parents = self.ids.stored_ids_of(self.parent[numbers[found]])
        if isinstance(parents, np.ndarray):
            out = np.full(numbers.size, UNREACHED, np.int64)
            out[found], out[own] = parents, vertices[own]
            return out
        import pyarrow as pa

        at = np.cumsum(found) - 1
        at[own] = len(parents) + np.flatnonzero(own)
        return pa.concat_arrays([parents, vertices]).take(pa.array(at, mask=levels == UNREACHED))

    def look_up(self, given: Any) -> tuple[Ids, Array]:
        """Return some user ids as a stored block has them, and their store numbers."""
        vertices, numbers = self.ids.parse(given), self.ids.vertices_of(given)
        if self.ids.kind == "int64":
            return vertices, numbers
        import pyarrow as pa

        return pa.array(vertices, pa.large_string()), numbers

    def _isolated_sources(self, vertices: Ids, isolated: Array) -> Array:
        """Positions of the isolated sources among `vertices`."""
        if not self.isolated_ids.size or not isolated.any():
            return np.empty(0, np.int64)
        if isinstance(vertices, np.ndarray):
            return np.flatnonzero(isolated & np.isin(vertices, self.isolated_ids))
        import pyarrow as pa
        import pyarrow.compute as pc

        wanted = pa.array(self.isolated_ids, pa.large_string())
        return np.flatnonzero(pc.is_in(vertices, value_set=wanted).to_numpy(zero_copy_only=False))
