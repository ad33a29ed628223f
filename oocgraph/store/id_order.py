"""Every input id of a store in ascending order, with its store number: streamed, or any range of positions.

In: a store. Out: blocks of ids (int64, or pyarrow.LargeStringArray) and store numbers, -1 for ids without edges. Two ascending
columns make the order: ``vertices/sorted_id`` of the vertices with edges, and the others, which are none, or all of an implied
range that the first column lacks, or ``vertices/isolated_id``. A stream walks both; a range finds by bisection where it
begins and ends in each, so that blocks can be made anywhere, each by itself.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from oocgraph.arrow import to_numbers
from oocgraph.store.columns import Column, Ids, IntColumn, StringColumn, as_numpy, id_bytes, taken
from oocgraph.store.fetched import ZarrArray
from oocgraph.store.graph_arrays import GraphArrays
from oocgraph.store.layout import ISOLATED_ID, ORDER, SORTED_ID
from oocgraph.types import Array

ISOLATED = -1
"""Store number of a vertex without edges: it has none."""

READ_OFFSETS = 8
"""Bytes of a string's offset, beside those that `id_bytes` counts: offsets are held twice where strings are read."""

_PAGE_IDS = 512
"""Ids of one page: what bisection reads at once (of a compressed column: a chunk)."""

_MOST_BYTES = 256 << 10
"""Bytes of a page, about: one of long strings has fewer."""


def id_column(store: GraphArrays, name: str) -> Column:
    """Return a column of the store's ids."""
    return IntColumn(store, name) if store.attributes.id_kind == "int64" else StringColumn(store, name)


def stream(store: GraphArrays, block_size: int) -> Iterator[tuple[Ids, Array]]:
    """Iterate over all ids in blocks of at most `block_size`."""
    run = _Run(store, SORTED_ID)
    order = store.array(ORDER)
    num_ids, implied = store.attributes.num_input_vertices, store.attributes.implied_ids
    if num_ids == run.length:
        while run.position < run.length:
            start, ids = run.position, run.peek(block_size)
            run.position += len(ids)
            yield ids, order.read(start, run.position).astype(np.int64)
    elif implied is not None:
        for first in range(implied[0], implied[1], block_size):
            ids = np.arange(first, min(first + block_size, implied[1]), dtype=np.int64)
            ahead = run.peek(block_size)
            here = ahead[: np.searchsorted(ahead, ids[-1], side="right")]
            vertices = np.full(ids.size, ISOLATED, np.int64)
            vertices[here - first] = order.read(run.position, run.position + here.size)
            run.position += here.size
            yield ids, vertices
    else:
        yield from _merged(run, order, _Run(store, ISOLATED_ID), block_size)


def block(store: GraphArrays, start: int, stop: int) -> tuple[Ids, Array]:
    """Return the ids at positions ``start .. stop - 1`` of the ascending order, and their store numbers.

    Notes
    -----
    Reads the range itself, and two to four times log2 pages to find it.
    """
    column, order = id_column(store, SORTED_ID), store.array(ORDER)
    num_ids, implied = store.attributes.num_input_vertices, store.attributes.implied_ids
    stop = max(start, stop)
    if num_ids == column.length:
        return column.read(start, stop), order.read(start, stop).astype(np.int64)
    if implied is not None:
        ids = np.arange(implied[0] + start, implied[0] + stop, dtype=np.int64)
        pages = IdPages(store, SORTED_ID)
        low, high = pages.below(implied[0] + start), pages.below(implied[0] + stop)
        vertices = np.full(ids.size, ISOLATED, np.int64)
        vertices[column.read(low, high) - implied[0] - start] = order.read(low, high)
        return ids, vertices
    isolated = id_column(store, ISOLATED_ID)
    linked, alone = IdPages(store, SORTED_ID), IdPages(store, ISOLATED_ID)
    low, high = linked.before(alone, start), linked.before(alone, stop)
    ids, by_id = _sorted_together(column.read(low, high), isolated.read(start - low, stop - high))
    vertices = np.full(stop - start, ISOLATED, np.int64)
    vertices[: high - low] = order.read(low, high)
    return taken(ids, by_id), vertices[by_id]


def bisect(low: int, high: int, is_far: Callable[[int], Any]) -> int:
    """Return the first of ``low .. high - 1`` for which `is_far` holds, or `high`; it must hold for all that follow."""
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if is_far(middle) else (middle + 1, high)
    return low


class IdPages:
    """An ascending column of ids, of which the page last read is kept: the last steps of a bisection are all in it."""

    def __init__(self, store: GraphArrays, name: str) -> None:
        self.column = id_column(store, name)
        self.length = self.column.length
        array = self.column.array
        self._size = array.chunk_length if isinstance(array, ZarrArray) else min(_PAGE_IDS, max(1, _MOST_BYTES // id_bytes(store, name)))
        self._first, self._values = 0, np.empty(0)
        self._implied = store.attributes.implied_ids if self.length > self._size else None

    @property
    def num_reads(self) -> int:
        """Pages that a bisection reads."""
        return (-(-self.length // self._size)).bit_length() + 1

    def __getitem__(self, position: int) -> Any:
        if isinstance(self.column, StringColumn) and self.column.is_plain:
            return self.column.value(position)
        values = self._page(position // self._size)
        at = position - self._first
        return as_numpy(values[at : at + 1])[0]

    def _page(self, number: int) -> Ids:
        if not len(self._values) or self._first != number * self._size:
            self._first = number * self._size
            self._values = self.column.read(self._first, min(self.length, self._first + self._size))
        return self._values

    def below(self, value: Any) -> int:
        """Return how many values are below `value`."""
        if isinstance(self.column, StringColumn) and self.column.is_plain:
            return bisect(0, self.length, lambda i: self[i] >= value)
        low, high = 0, -(-self.length // self._size)  # between which the first page is that does not end below the value
        known = None if self._implied is None else [(0, int(self._implied[0])), (self.length, int(self._implied[1]))]
        for step in range(2 * high.bit_length() + 1):
            if low >= high:
                break
            page = (low + high) // 2
            if known is not None and step % 2 == 0:  # where it is if ids without edges are evenly spread; halving ends it if they are not
                (start, after), (stop, before) = known
                guess = start + (int(value) - after) * (stop - start) // max(1, before - after)
                page = min(max(guess // self._size, low), high - 1)
            values = self._page(page)
            first, last = as_numpy(values[:1])[0], as_numpy(values[-1:])[0]
            if first < value <= last:
                return self._first + self._within(values, value)
            if value == first:
                return self._first
            if last < value:
                low = page + 1
                if known is not None:
                    known[0] = self._first + len(values), int(last) + 1
            else:
                high = page
                if known is not None:
                    known[1] = self._first, int(first)
        return min(low * self._size, self.length)

    def _within(self, values: Ids, value: Any) -> int:
        if isinstance(values, np.ndarray):
            return int(np.searchsorted(values, value))
        return bisect(0, len(values), lambda i: as_numpy(values[i : i + 1])[0] >= value)

    def before(self, other: IdPages, position: int) -> int:
        """Return how many of the first `position` values of both columns, merged, are from this one; they have none in common."""
        first, last = max(0, position - other.length), min(position, self.length)
        return bisect(first, last, lambda i: self[i] > other[position - i - 1])


class _Run:
    """An ascending column read from front to back; `peek` looks ahead without moving `position`."""

    def __init__(self, store: GraphArrays, name: str) -> None:
        self._column, self.position = id_column(store, name), 0
        self.length, self._num_bytes = self._column.length, READ_OFFSETS + id_bytes(store, name)
        self._held: Ids = self._column.read(0, 0)
        self._first = 0

    def peek(self, count: int) -> Ids:
        if self.follow and self.position + count > self._first + len(self._held):
            self._first = self.position
            self._held = self._column.read(self.position, self._fitting(2 * count))
        return self._held[self.position - self._first :][:count]

    @property
    def follow(self) -> bool:
        """Whether there are ids after those that are held."""
        return self._first + len(self._held) < self.length

    def _fitting(self, count: int) -> int:
        """Return where a read of so many ids from `position` on ends: where they are long, after as many bytes as others would have."""
        stop = min(self.length, self.position + count)
        return max(self.position + 1, self._column.within(self.position, stop, count * self._num_bytes))


def _merged(run: _Run, order: Any, isolated: _Run, block_size: int) -> Iterator[tuple[Ids, Array]]:
    """Merge ids with and without edges into blocks of at most `block_size`."""
    while run.position < run.length or isolated.position < isolated.length:
        ahead, alone = run.peek(block_size), isolated.peek(block_size)
        ids, by_id = _sorted_together(ahead, alone)
        lasts = [last for one, last in ((run, len(ahead) - 1), (isolated, len(ids) - 1)) if one.follow]
        if lasts:  # what follows there is not before it
            by_id = by_id[: int(np.flatnonzero(np.isin(by_id, lasts))[0]) + 1]
        by_id = by_id[:block_size]
        vertices = np.full(len(ahead) + len(alone), ISOLATED, np.int64)
        vertices[: len(ahead)] = order.read(run.position, run.position + len(ahead))
        num_run = int(np.count_nonzero(by_id < len(ahead)))
        run.position += num_run
        isolated.position += by_id.size - num_run
        yield taken(ids, by_id), vertices[by_id]


def _sorted_together(one: Ids, other: Ids) -> tuple[Ids, Array]:
    """Both runs joined, and the order that sorts them."""
    if isinstance(one, np.ndarray):
        both = np.concatenate([one, other])
        return both, np.argsort(both, kind="stable")  # merges two runs in linear time
    import pyarrow as pa
    import pyarrow.compute as pc

    strings = pa.concat_arrays([one, other])
    return strings, to_numbers(pc.array_sort_indices(strings)).astype(np.int64)
