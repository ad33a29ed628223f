"""Positions of ids in ascending order, found in memory.

In: ids of the ends of edges, and of further vertices. Out: the position of each end, and what turns positions back into ids. Integers that
fill a range well enough are positions in it, with gaps; others, and strings, are sorted and numbered.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from oocgraph.allocator import passing_array
from oocgraph.compiled.load import load_kernels
from oocgraph.kernels.strings import string_calls
from oocgraph.store.layout import string_arrays
from oocgraph.store.strings import Placed, string_buffers, with_a_seed
from oocgraph.team import team_of
from oocgraph.types import Array

MAX_GAPS = 4
"""Positions per id up to which a range of integers is used as it is."""

TAKE_SECONDS = 1.5e-8
"""About what one scattered load and store take."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NumberedIds:
    """Ids by position.

    Attributes
    ----------
    source, target : (num_edges,) int64
        Positions of the ends.
    num_ids
        Number of positions.
    present : (num_ids,) bool, or None
        Whether a position is a vertex even without an edge; None: all are.
    implied : (first, stop) or None
        When every id of that range is a vertex.
    id_kind
        ``int64`` or ``string``.
    take
        Returns the ids at positions: (n,) int64, or a pyarrow array.
    """

    source: Array
    target: Array
    num_ids: int
    present: Array | None
    implied: tuple[int, int] | None
    id_kind: str
    take: Callable[[Array], Any]

    def name(self, position: int) -> Any:
        """Return the id at a position, for messages."""
        found = self.take(np.array([position]))[0]
        return found.as_py().decode() if self.id_kind == "string" else int(found)

    def arrays(self, name: str, positions: Array) -> dict[str, Array]:
        """Return the arrays of a store that hold the ids at positions, by name."""
        ids = self.take(positions)
        return {name: ids} if self.id_kind == "int64" else dict(zip(string_arrays(name), string_buffers(ids), strict=True))


def number_ids(source: Any, target: Any, vertices: Any = None, num_vertices: int | None = None, *, threads: int = 1) -> NumberedIds:
    """Return the positions of the ends of edges in ascending order of ids.

    Parameters
    ----------
    source, target : (num_edges,) int64, or pyarrow.LargeStringArray, or a pyarrow.ChunkedArray of those
        Ids of the ends.
    vertices : as `source`, or None
        Further vertices.
    num_vertices
        Declares that the vertices are ``0 .. num_vertices - 1``; no id is another.
    threads
        Threads that tell strings apart, sort and copy them.
    """
    if not isinstance(source, np.ndarray):
        return _number_strings(source, target, vertices, threads)
    ids = [source, target] if vertices is None else [source, target, vertices]
    low, high = (0, num_vertices - 1) if num_vertices is not None else _bounds(ids)
    implied, length, count = None if num_vertices is None else (0, num_vertices), high - low + 1, sum(one.size for one in ids)
    if length <= MAX_GAPS * count:
        present = np.zeros(length, bool) if implied is None else None
        if present is not None and vertices is not None:
            present[vertices - low] = True
        ends = (source, target) if not low else (source - low, target - low)
        return NumberedIds(
            source=ends[0], target=ends[1], num_ids=length, present=present, implied=implied, id_kind="int64", take=lambda at: at + low
        )  # fmt: skip
    table, position = np.unique(np.concatenate(ids), return_inverse=True)
    return NumberedIds(
        source=position[: source.size], target=position[source.size : 2 * source.size], num_ids=table.size, present=None, implied=implied,
        id_kind="int64", take=table.__getitem__,
    )  # fmt: skip


def _bounds(ids: list[Array]) -> tuple[int, int]:
    """Smallest and largest of some ids; of none, those of an empty range."""
    filled = [one for one in ids if one.size]
    return (min(int(one.min()) for one in filled), max(int(one.max()) for one in filled)) if filled else (0, -1)


def _number_strings(source: Any, target: Any, vertices: Any, threads: int) -> NumberedIds:
    load_kernels(string_calls())
    ends = [source, target] if vertices is None else [source, target, vertices]
    strings = Placed.of([part for end in ends for part in getattr(end, "chunks", [end])])
    with team_of(threads) as team:
        first, same = with_a_seed(lambda seed, _: strings.distinct(strings.hashes(seed, team), team), "strings in memory")
        table = strings.ascending(first, team)
        place_of, position = (passing_array(len(strings), np.int64) for _ in range(2))
        place_of[table] = np.arange(table.size)

        def take_places(start: int, stop: int) -> None:
            np.take(place_of, same[start:stop], out=position[start:stop], mode="clip")

        team.run_range(take_places, same.size, TAKE_SECONDS * same.size)

    def take(at: Array) -> Any:
        with team_of(threads) as team:
            return strings.copied(table[at], team)

    return NumberedIds(
        source=position[: len(source)], target=position[len(source) : len(source) + len(target)], num_ids=table.size, present=None,
        implied=None, id_kind="string", take=take,
    )  # fmt: skip
