"""Joins values in store order with the user's vertex ids, block by block.

In: a block of ids as a graph stores them (ascending, isolated ones included) with their store numbers, and arrays in store order. Out:
values of the block's vertices; the ids of the vertices that these are named after, such as their parents. Strings stay Arrow arrays until
Python strings are needed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from oocgraph.arrow import from_numbers, from_strings, to_numbers
from oocgraph.compiled.load import load_kernel
from oocgraph.results.search import StoreOrdered
from oocgraph.store.columns import Ids, LongStringsError
from oocgraph.store.strings import bytes_at
from oocgraph.store.vertices import VertexIds
from oocgraph.types import LEVEL_UNREACHED, UNREACHED, Array, no_parent

FEW_VALUES = 1 << 16
"""Values that NumPy joins as quickly as a kernel, for which none has to be loaded."""


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
        own = self._isolated_sources(vertices, numbers)
        if "parent" in columns and self._is_compiled:
            return self._compiled_values(vertices, numbers, own)
        level = values_at(self.level, numbers, UNREACHED, np.int32)
        if self.level.dtype == np.uint8:
            level[level == LEVEL_UNREACHED] = UNREACHED
        level[own] = 0
        if "parent" not in columns:
            return {"level": level}
        return {"level": level, "parent": named_after(self.ids, self.parent, numbers, (level >= 0) & (numbers >= 0), vertices, own)}

    @property
    def _is_compiled(self) -> bool:
        """Whether both columns are made by a kernel: where there are so many values that its loading does not count."""
        held = self.ids.kind == "int64" and len(self.ids.first) > 0
        return held and self.level.size > FEW_VALUES and isinstance(self.level, np.ndarray) and isinstance(self.parent, np.ndarray)

    def _compiled_values(self, vertices: Ids, numbers: Array, own: Array) -> dict[str, Ids]:
        from oocgraph.kernels.take_ids import join_search, load_join_search  # with numba, which takes half a second: at first use

        load_join_search(self.level.dtype.name, self.parent.dtype.name)
        unreached = LEVEL_UNREACHED if self.level.dtype == np.uint8 else UNREACHED
        level, parent = np.empty(numbers.size, np.int32), np.empty(numbers.size, np.int64)
        if join_search(self.level, unreached, self.parent, numbers, self.ids.first, level, parent):
            reached = np.flatnonzero(level >= 0)
            above = self.parent[numbers[reached]]
            is_beyond = above >= len(self.ids.first)
            parent[reached[is_beyond]] = self.ids.stored_ids_of(above[is_beyond])
        level[own], parent[own] = 0, vertices[own]
        return {"level": level, "parent": parent}

    def _isolated_sources(self, vertices: Ids, numbers: Array) -> Array:
        """Positions of the isolated sources among `vertices`."""
        if not self.isolated_ids.size or not (numbers < 0).any():
            return np.empty(0, np.int64)
        return np.flatnonzero((numbers < 0) & among(vertices, self.isolated_ids))


def origins_of(parent: StoreOrdered, reached: Array) -> Array:
    """Return the vertex that the path to each begins at.

    Parameters
    ----------
    parent : (num_vertices,) store numbers
        The vertex before each.
    reached : (num_vertices,) bool
        Vertices that have a path.

    Returns
    -------
    (num_vertices,) store numbers, `no_parent` where there is no path
    """
    from oocgraph.kernels.take_ids import lead_back

    none = parent.dtype.type(no_parent(parent.dtype))
    origin: Array = np.where(reached, parent, none)
    load_kernel(lead_back, (origin, none))
    lead_back(origin, none)
    return origin


def values_at(stored: StoreOrdered, numbers: Array, isolated: Any, dtype: Any) -> Array:
    """Return the values at some store numbers as an array of a dtype; that of vertices without one (-1) is `isolated`."""
    if not stored.size:
        return np.full(numbers.size, isolated, dtype)
    is_isolated = numbers < 0
    values: Array = stored[np.maximum(numbers, 0)].astype(dtype, copy=False)
    values[is_isolated] = isolated
    return values


def named_after(ids: VertexIds, stored: StoreOrdered, numbers: Array, found: Array, vertices: Ids, own: Array) -> Ids:
    """Return the ids of the vertices that some are named after: int64 with -1, or pyarrow.LargeStringArray with nulls, where there is none.

    Parameters
    ----------
    ids
        The graph's; those that are held cost least.
    stored : (num_vertices,) store numbers
        In store order: the vertex that each is named after.
    numbers : (n,) int64
        Store numbers of the vertices.
    found : (n,) bool
        Which vertices are named after the one that is `stored`.
    vertices : (n,) int64, or pyarrow.LargeStringArray
        User ids.
    own : positions, or (n,) bool
        Those of the others that are named after themselves.

    Raises
    ------
    LongStringsError
        These are several strings, of more than ``ids.most_bytes``: fewer vertices have to be joined.
    """
    if ids.kind == "int64":
        return _integers_named_after(ids, stored, numbers, found, vertices, own)
    return _strings_named_after(ids, stored[numbers[found]], found, vertices, own)


def _strings_named_after(ids: VertexIds, after: Array, found: Array, vertices: Ids, own: Array) -> Ids:
    import pyarrow as pa

    first, place = ids.first if len(ids.first) else vertices[:0], np.full(found.size, -1, np.int64)
    is_held, left = after < len(first), ids.most_bytes if after.size > 1 else None
    if left is not None and (left := left - bytes_at(first, after[is_held])) < 0:
        raise LongStringsError
    if is_held.all() and not place[own].size:
        place[found] = after
        return first.take(from_numbers(place, valid=found))
    held, others = first.take(from_numbers(after[is_held])), ids.stored_ids_of(after[~is_held], most_bytes=left)
    place[found] = np.where(is_held, np.cumsum(is_held), len(held) + np.cumsum(~is_held)) - 1
    place[own] = len(held) + len(others) + np.arange(found.size)[own]
    return pa.concat_arrays([held, others, vertices]).take(from_numbers(place, valid=place >= 0))


def _integers_named_after(ids: VertexIds, stored: StoreOrdered, numbers: Array, found: Array, vertices: Array, own: Array) -> Array:
    from oocgraph.kernels.take_ids import STORED_DTYPES, load_take_ids, take_ids  # with numba, which takes half a second: at first use

    out = np.full(numbers.size, UNREACHED, np.int64)
    out[own] = vertices[own]
    beyond = found
    if numbers.size <= FEW_VALUES and len(ids.first) == ids.store.num_rows:
        out[found] = ids.first[stored[numbers[found]]]
        return out
    if len(ids.first) and isinstance(stored, np.ndarray) and stored.dtype.name in STORED_DTYPES:
        load_take_ids(stored.dtype.name)
        if not take_ids(stored, numbers, found, ids.first, out):
            return out
        beyond = found.copy()
        beyond[found] = stored[numbers[found]] >= len(ids.first)
    out[beyond] = ids.stored_ids_of(stored[numbers[beyond]])
    return out


def among(vertices: Ids, wanted: Array) -> Array:
    """Return which user ids are among those `wanted`, int64 or object array of str: (n,) bool."""
    if isinstance(vertices, np.ndarray):
        return np.isin(vertices, wanted)
    import pyarrow.compute as pc

    return to_numbers(pc.is_in(vertices, value_set=from_strings(wanted)))


def places_among(vertices: Ids, wanted: Ids) -> Array:
    """Return where user ids stand among those `wanted`, which are ascending if they are numbers: (n,) int64, -1 where they do not."""
    if isinstance(vertices, np.ndarray):
        place = np.minimum(np.searchsorted(wanted, vertices), len(wanted) - 1)
        return np.where(wanted[place] == vertices, place, -1)
    import pyarrow.compute as pc

    return to_numbers(pc.index_in(vertices, value_set=wanted).fill_null(-1)).astype(np.int64)
