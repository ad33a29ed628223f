"""Levels and parents of a search that reached few vertices of a large graph: of the others nothing is held.

In: the vertices, their parents and levels, in any order. Out: array-likes, as `Search` and `Join` use them: NumPy's indexing by an integer,
a slice or an array of store numbers, and `numpy.asarray` for all of them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from oocgraph.lazy import cached_property
from oocgraph.types import LEVEL_UNREACHED, UNREACHED, Array, no_parent


@dataclass(frozen=True, eq=False)
class FewReached:
    """What a search found.

    Attributes
    ----------
    vertices, parents : (num_reached,) int64 or index dtype
        Store numbers.
    levels : (num_reached,) uint8 or int32
    num_vertices
        Of the graph.
    """

    vertices: Array
    parents: Array
    levels: Array
    num_vertices: int

    @cached_property
    def order(self) -> tuple[Array, Array]:
        """Places by vertex, and the vertices in this order."""
        places = np.argsort(self.vertices)
        return places, self.vertices[places]


class FewValues:
    """Level or parent of all vertices, of which few were reached.

    Parameters
    ----------
    found
        What was reached.
    values : (num_reached,)
        Of these.
    dtype, otherwise
        As an array has them; the value of all others.

    Attributes
    ----------
    of_reached : (num_reached,)
        `values`.
    """

    ndim = 1

    def __init__(self, found: FewReached, values: Array, dtype: np.dtype[Any], otherwise: int) -> None:
        self._found, self.of_reached, self.dtype, self._otherwise = found, values, dtype, otherwise
        self.shape, self.size = (found.num_vertices,), found.num_vertices

    def __repr__(self) -> str:
        return f"<FewValues: {self.of_reached.size:,} of {self.size:,} {self.dtype}>"

    def __len__(self) -> int:
        return self.size

    def __getitem__(self, key: Any) -> Any:
        """Return the value of a vertex, or an array of those of a slice or of an array of store numbers."""
        if isinstance(key, slice):
            wanted = range(self.size)[key]
            if wanted.step == 1:
                return self._stretch(wanted.start, wanted.stop)
            key = np.arange(wanted.start, wanted.stop, wanted.step)
        numbers = np.asarray(key)
        places, vertices = self._found.order
        out = np.full(numbers.shape, self._otherwise, self.dtype)
        if vertices.size:
            at = np.minimum(np.searchsorted(vertices, numbers), vertices.size - 1)
            out = np.where(vertices[at] == numbers, self.of_reached[places[at]], out).astype(self.dtype, copy=False)
        return out if numbers.ndim else out[()]

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        """Return all values, as `numpy.asarray` asks for them."""
        if copy is False:
            raise ValueError(f"{self!r} holds few values: it cannot be an array without a copy")
        values = self._stretch(0, self.size)
        return values if dtype is None else values.astype(dtype, copy=False)

    def _stretch(self, start: int, stop: int) -> Array:
        places, vertices = self._found.order
        low, high = np.searchsorted(vertices, [start, stop])
        out = np.full(max(0, stop - start), self._otherwise, self.dtype)
        out[vertices[low:high] - start] = self.of_reached[places[low:high]]
        return out


def levels_and_parents(vertices: Array, parents: Array, bounds: Array, num_vertices: int, dtype: np.dtype[Any], *, dense: bool) -> Any:
    """Return the arrays of a search, level first, as `Search` has them.

    Parameters
    ----------
    vertices, parents : (num_reached,) int64
        By level.
    bounds : (num_levels + 1,) int64
        Where each level begins.
    dtype
        Of store numbers.
    dense
        Whether they are arrays as long as the graph.
    """
    is_wide = bounds.size - 1 > LEVEL_UNREACHED
    kind, unreached = np.dtype(np.int32 if is_wide else np.uint8), UNREACHED if is_wide else LEVEL_UNREACHED
    levels = np.repeat(np.arange(bounds.size - 1, dtype=kind), np.diff(bounds))
    if not dense:
        found = FewReached(vertices, parents, levels, num_vertices)
        return FewValues(found, levels, kind, unreached), FewValues(found, parents, dtype, no_parent(dtype))
    level, parent = np.full(num_vertices, unreached, kind), np.full(num_vertices, no_parent(dtype), dtype)
    level[vertices], parent[vertices] = levels, parents
    return level, parent
