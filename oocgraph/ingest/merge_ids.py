"""The vertices of two stores together: every id once, ascending, with its number in each.

In: two stores of the same kind of ids. Out: blocks of ids, streamed as often as they are asked for; and ids by position in that order,
as the steps of a build take them (`oocgraph.ingest.ids.Ids`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from oocgraph.arrow import from_numbers, to_numbers
from oocgraph.kernels.append import place_ids, union_ids
from oocgraph.store.graph import CSRStore
from oocgraph.store.id_order import bisect, id_column, stream
from oocgraph.store.layout import ORDER, SORTED_ID, string_arrays
from oocgraph.types import Array

BLOCK_BYTES = 2 << 20
"""Bytes of the ids of each store that are held at a time, about."""

STRING_BYTES = 40
"""Bytes of an id that is a string, beside its characters: where it begins and its number, and its places while both stores are sorted."""

ReadAhead = Callable[[Iterator[tuple[Any, Array]]], Iterator[tuple[Any, Array]]]

Run = tuple[Any, Array]
"""Some consecutive ids of a store, (n,) int64 or pyarrow.LargeStringArray, ascending, and their numbers, (n,) int64: -1 without edges."""


def joined_runs(first: CSRStore, second: CSRStore, *, linked_only: bool, ahead: ReadAhead = iter) -> Iterator[tuple[Run, Run]]:
    """Iterate over the ids of both stores, a run of each at a time: what one store has in a run's range, the other's run has, too.

    With `linked_only` they are those that have an edge, since an implied range tells of the others. `ahead` iterates over what is read,
    and may read ahead.
    """
    runs = tuple(_Ahead(ahead(_ids_of(one, linked_only=linked_only))) for one in (first, second))
    while runs[0].size or runs[1].size:
        last = min(run.last() for run in runs if run.size)
        yield runs[0].take(last), runs[1].take(last)


def place_runs(runs: tuple[Run, Run], start: int, places: tuple[Array, Array], in_first: Array) -> int:
    """Note where the ids of two runs are among all, the first at `start`; return how many there are. See `place_ids`."""
    (ids, numbers), (other_ids, other_numbers) = runs
    if not isinstance(ids, np.ndarray) or not isinstance(other_ids, np.ndarray):
        position = _positions(ids, other_ids)[1]
        ids, other_ids = position[: len(ids)], position[len(ids) :]
    return int(place_ids(ids, numbers, other_ids, other_numbers, start, *places, in_first))


def _distinct(runs: tuple[Run, Run]) -> Any:
    """Return the ids of two runs, each once."""
    (ids, _), (other_ids, _) = runs
    if not len(ids) or not len(other_ids):
        return ids if len(ids) else other_ids
    if not isinstance(ids, np.ndarray):
        return _positions(ids, other_ids)[0]
    out = np.empty(ids.size + other_ids.size, np.int64)
    return out[: union_ids(ids, other_ids, out)]


def _positions(ids: Any, other_ids: Any) -> tuple[Any, Array]:
    """Return the distinct strings of both, in order, and where each is among them: those of the second after those of the first."""
    import pyarrow as pa
    import pyarrow.compute as pc

    strings = pa.concat_arrays([one for one in (ids, other_ids) if len(one)])
    order = to_numbers(pc.array_sort_indices(strings)).astype(np.int64)
    ordered = strings.take(from_numbers(order))
    new = np.append(True, to_numbers(pc.not_equal(ordered[1:], ordered[:-1])))
    position = np.empty(order.size, np.int64)
    position[order] = np.cumsum(new) - 1
    return ordered.filter(from_numbers(new)), position


def _ids_of(store: CSRStore, *, linked_only: bool) -> Iterator[tuple[Any, Array]]:
    return _linked(store) if linked_only else stream(store, _block_ids(store))


class _Ahead:
    """The ids of a store, of which some are held: those not taken yet."""

    def __init__(self, blocks: Iterator[tuple[Any, Array]]) -> None:
        self._blocks = blocks
        nothing: tuple[Any, Array] = np.empty(0, np.int64), np.empty(0, np.int64)
        self._ids, self._numbers = next(self._blocks, nothing)

    @property
    def size(self) -> int:
        """Ids held; 0 at the end."""
        return len(self._ids)

    def last(self) -> Any:
        """Return the last id held."""
        return _plain(self._ids[len(self._ids) - 1])

    def take(self, last: Any) -> tuple[Any, Array]:
        """Return the ids held up to `last`, and their numbers; hold others when none is left."""
        stop = _up_to(self._ids, last)
        taken = self._ids[:stop], self._numbers[:stop]
        self._ids, self._numbers = self._ids[stop:], self._numbers[stop:]
        if not self.size:
            self._ids, self._numbers = next(self._blocks, (self._ids, self._numbers))
        return taken


def _linked(store: CSRStore) -> Iterator[tuple[Any, Array]]:
    """Iterate over the ids of vertices with an edge, and their numbers."""
    column, order, size = id_column(store, SORTED_ID), store.array(ORDER), _block_ids(store)
    for start in range(0, column.length, size):
        stop = min(column.length, start + size)
        yield column.read(start, stop), order.read(start, stop).astype(np.int64)


def _block_ids(store: CSRStore) -> int:
    beside = STRING_BYTES if store.attributes.id_kind == "string" else 0
    return max(1, int(BLOCK_BYTES / (beside + _mean_bytes(store))))


def _mean_bytes(*stores: CSRStore) -> float:
    """Bytes of an id of these stores, about: as of those of vertices with an edge."""
    stores = tuple(store for store in stores if store.attributes.id_kind == "string")
    if not stores:
        return 8
    num_bytes = sum(store.array(string_arrays(SORTED_ID)[0]).length for store in stores)
    return max(1.0, num_bytes / max(1, sum(store.num_rows for store in stores)))


def _plain(value: Any) -> Any:
    return value.as_py() if hasattr(value, "as_py") else value


def _up_to(ids: Any, last: Any) -> int:
    """Return how many ascending ids are not above `last`."""
    if isinstance(ids, np.ndarray):
        return int(np.searchsorted(ids, last, side="right"))
    return bisect(0, len(ids), lambda at: ids[at].as_py() > last)  # text compares by code points, as its bytes in UTF-8 do


class JoinedIds:
    """Ids of two stores by position, read from front to back.

    Attributes
    ----------
    num_ids
        How many there are.
    implied
        As of `oocgraph.ingest.ids.Ids`.
    """

    all_used = True
    """Every position is a vertex."""

    def __init__(self, first: CSRStore, second: CSRStore, num_ids: int, implied: tuple[int, int] | None) -> None:
        self.num_ids, self.implied, self.mean_bytes = num_ids, implied, _mean_bytes(first, second)
        self._blocks = map(_distinct, joined_runs(first, second, linked_only=implied is not None))
        self._start = 0
        self._held: Any = np.empty(0, np.int64)

    def read(self, start: int, stop: int) -> Any:
        """Return the first ids of the positions ``start .. stop - 1``, none of which is before those read last."""
        while start >= self._start + len(self._held):
            self._start, self._held = self._start + len(self._held), next(self._blocks)
        return _as_built(self._held[start - self._start : stop - self._start])


def _as_built(ids: Any) -> Any:
    """Return ids as a build has them: strings as their bytes."""
    if isinstance(ids, np.ndarray):
        return ids
    import pyarrow as pa

    return ids.cast(pa.large_binary())
