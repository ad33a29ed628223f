"""Sets of vertices of a store, and shortest paths to all of them: collections that hold a few bytes a vertex, made of what was found.

In: ids as they are stored (int64, or Arrow strings); a search. Out: `VertexSet`, which is equal to a Python set of the same ids;
`PathsOf`, a mapping from each reached vertex to its path, which is made when it is asked for.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Mapping, Set
from typing import Any

import numpy as np

from oocgraph.errors import VertexNotFoundError
from oocgraph.store.columns import Ids

BLOCK_IDS = 1 << 16
"""Ids that are Python objects at once while they are iterated over."""


class VertexSet(Set[Any]):
    """A set of vertices.

    Parameters
    ----------
    ids : (n,) int64, or pyarrow.LargeStringArray
        Ascending, without duplicates.

    Examples
    --------
    >>> import numpy as np
    >>> reached = VertexSet(np.array([2, 3, 7]))
    >>> 3 in reached, 4 in reached, len(reached), reached == {7, 3, 2}, reached & {1, 2}
    (True, False, 3, True, {2})
    """

    __slots__ = ("ids",)

    def __init__(self, ids: Ids) -> None:
        self.ids = ids

    @classmethod
    def _from_iterable(cls, it: Any) -> set[Any]:
        return set(it)

    def __repr__(self) -> str:
        first = ", ".join(map(repr, self.ids[:5].tolist()))
        return f"<VertexSet of {len(self):,} vertices: {first}{', ...' if len(self) > 5 else ''}>"

    def __len__(self) -> int:
        return len(self.ids)

    def __iter__(self) -> Iterator[Any]:
        for start in range(0, len(self.ids), BLOCK_IDS):
            yield from self.ids[start : start + BLOCK_IDS].tolist()

    def __contains__(self, vertex: Any) -> bool:
        if isinstance(self.ids, np.ndarray):
            if not isinstance(vertex, int | np.integer):
                return False
            at = int(np.searchsorted(self.ids, vertex))
            return at < self.ids.size and bool(self.ids[at] == vertex)
        if not isinstance(vertex, str):
            return False
        at = bisect_left(self.ids, vertex, key=lambda one: one.as_py())
        return at < len(self.ids) and self.ids[at].as_py() == vertex


class PathsOf(Mapping[Any, list[Any]]):
    """Shortest paths to every reached vertex.

    Parameters
    ----------
    search
        A result that has them.
    reverse
        Whether they lead from the reached vertices to the one where the search began.
    """

    def __init__(self, search: Any, *, reverse: bool = False) -> None:
        self._search, self._reverse, self._reached = search, reverse, search.reached()

    def __repr__(self) -> str:
        return f"<PathsOf {self._search!r}>"

    def __getitem__(self, vertex: Any) -> list[Any]:
        if vertex not in self._reached:
            raise VertexNotFoundError(f"there is no path to {vertex!r} that {self._search!r} has found")
        path: list[Any] = self._search.path(vertex).tolist()
        return path[::-1] if self._reverse else path

    def __len__(self) -> int:
        return len(self._reached)

    def __iter__(self) -> Iterator[Any]:
        return iter(self._reached)

    def __contains__(self, vertex: Any) -> bool:
        return vertex in self._reached
