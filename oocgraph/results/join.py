"""Joins a search in store order with the user's vertex ids, block by block.

In: ids as a graph stores them (ascending, isolated ones included) with their store numbers, and level and parent in store
order. Out: level and parent of the block's vertices under the user's ids. Strings stay Arrow arrays until Python strings are needed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from oocgraph.results.search import StoreOrdered
from oocgraph.store.columns import Ids
from oocgraph.store.vertices import VertexIds
from oocgraph.types import LEVEL_UNREACHED, UNREACHED, Array


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

    ids: VertexIds
    level: StoreOrdered
    parent: StoreOrdered
    isolated_ids: Array

    def values_of(self, columns: Sequence[str], vertices: Ids, numbers: Array) -> dict[str, Ids]:
        """Return ``level``, and ``parent`` where it is among `columns`, of vertices given by id and by store number (-1: isolated)."""
        level = self._levels(vertices, numbers)
        return {"level": level, "parent": self._parents(vertices, numbers, level)} if "parent" in columns else {"level": level}

    def _levels(self, vertices: Ids, numbers: Array) -> Array:
        """Return levels: (n,) int32, -1 where unreached."""
        level = np.full(numbers.size, UNREACHED, np.int32)
        known = numbers >= 0
        level[known] = self.level[numbers[known]]
        if self.level.dtype == np.uint8:
            level[level == LEVEL_UNREACHED] = UNREACHED
        level[self._isolated_sources(vertices, ~known)] = 0
        return level

    def _parents(self, vertices: Ids, numbers: Array, levels: Array) -> Ids:
        """Return the ids of parents; a vertex at level 0 is its own."""
        found = levels > 0
        return join_parents(self.ids, vertices, self.parent[numbers[found]], found, levels == 0)

    def _isolated_sources(self, vertices: Ids, isolated: Array) -> Array:
        """Positions of the isolated sources among `vertices`."""
        if not self.isolated_ids.size or not isolated.any():
            return np.empty(0, np.int64)
        return np.flatnonzero(isolated & among(vertices, self.isolated_ids))


def join_parents(ids: VertexIds, vertices: Ids, parent: Array, found: Array, own: Array) -> Ids:
    """Return the ids of parents of some vertices: int64 with -1, or pyarrow.LargeStringArray with nulls, where there is none.

    Parameters
    ----------
    ids
        The graph's.
    vertices : (n,) int64, or pyarrow.LargeStringArray
        User ids.
    parent : (num_found,) store numbers
        Of those that are `found`.
    found, own : (n,) bool
        Which vertices have a parent, and which are their own.
    """
    parents = ids.stored_ids_of(parent)
    if isinstance(parents, np.ndarray):
        out = np.full(found.size, UNREACHED, np.int64)
        out[found], out[own] = parents, vertices[own]
        return out
    import pyarrow as pa

    at = np.cumsum(found) - 1
    at[own] = len(parents) + np.flatnonzero(own)
    return pa.concat_arrays([parents, vertices]).take(pa.array(at, mask=~(found | own)))


def among(vertices: Ids, wanted: Array) -> Array:
    """Return which user ids are among those `wanted`, int64 or object array of str: (n,) bool."""
    if isinstance(vertices, np.ndarray):
        return np.isin(vertices, wanted)
    import pyarrow as pa
    import pyarrow.compute as pc

    found: Array = pc.is_in(vertices, value_set=pa.array(wanted, pa.large_string())).to_numpy(zero_copy_only=False)
    return found
