"""Between the user's vertex ids and the store's vertex numbers, by range reads or by streams.

In: user ids (integers or strings), or store numbers. Out: the other. ``vertices/sorted_id`` holds the ids of the
vertices with edges, ascending (strings bytewise), ``vertices/order`` the store number of each; ids without edges are
implied by a range or listed in ``vertices/isolated_id``. Nothing of O(vertices) stays in memory: a few ids are found
by bisection in pages on disk, many by sorting them and streaming the ids once.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import numpy as np

from oocgraph.arrow import from_strings
from oocgraph.errors import VertexNotFoundError
from oocgraph.store import id_order
from oocgraph.store.columns import Column, Ids, IntColumn, LongStringsError, as_numpy, distinct, read_at, taken
from oocgraph.store.given import as_collection
from oocgraph.store.graph_arrays import GraphArrays
from oocgraph.store.id_order import ISOLATED, IdPages
from oocgraph.store.layout import ISOLATED_ID, ORDER, SORTED_ID, VERTEX_ID
from oocgraph.store.strings import bytes_at
from oocgraph.text import short_integer
from oocgraph.types import Array

BLOCK_VERTICES = 1 << 19
"""Ids read at once when they are streamed: 4 MiB of integers."""

TEXT_BYTES = 1 << 20
"""Bytes of strings that are looked through at once: as Python's they take several times as much."""

_SEEK_IDS = 4096
"""What one scattered read costs, in ids streamed instead: 15 us against 2 GB/s."""

ABSENT = -2
"""Store number of an id that does not occur."""


class VertexIds:
    """The vertex ids of a store.

    Parameters
    ----------
    store
        An open graph.

    Attributes
    ----------
    kind : str
        ``int64`` or ``string``.
    num_ids : int
        Ids of the input, isolated ones included.
    first : (k,) int64, or pyarrow.LargeStringArray
        Ids of the first vertices by store number that are held: none, unless asked for by `holding`.
    most_bytes : int, optional
        What the ids that a block of vertices is named after may take (`oocgraph.results.join.named_after`).
    """

    def __init__(self, store: GraphArrays) -> None:
        self.store = store
        self.kind = store.attributes.id_kind
        self.num_ids = store.attributes.num_input_vertices
        self.first: Ids = np.empty(0, np.int64)
        self.most_bytes: int | None = None

    def __repr__(self) -> str:
        return f"<VertexIds of {self.store.url!r}: {self.num_ids:,} ids, {self.kind}>"

    def holding(self, num_bytes: int, *, most_bytes: int | None = None) -> VertexIds:
        """Return the same, with as many ids in memory as so many bytes hold, from store number 0 on, and another `most_bytes`.

        In order of degree most vertices are named after one of the first: of a search of a Kronecker graph of scale 24 the first 0.1 %
        have two thirds of the children, the first 1 % six sevenths.
        """
        held, column = VertexIds(self.store), self._column(VERTEX_ID)
        held.first, held.most_bytes = column.read(0, column.within(0, column.length, num_bytes)), most_bytes
        return held

    def vertices_of(self, ids: Any) -> Array:
        """Return the store numbers of user ids.

        Parameters
        ----------
        ids
            One id or a sequence of them; an integer graph also takes numerals as text (the command line has only text).

        Returns
        -------
        (num_ids,) int64
            -1 for an isolated vertex.

        Raises
        ------
        VertexNotFoundError
            An id does not occur in the input, or is not of the graph's kind.
        """
        given = self.parse(ids)
        wanted = distinct(given)
        vertices = self._numbers_of(wanted)
        if (absent := wanted[vertices == ABSENT]).size:
            raise self._no_such(absent)
        return vertices[np.searchsorted(wanted, given)]

    def numbers_of(self, ids: Any) -> Array:
        """Return the same as `vertices_of`; -2 for an id that does not occur."""
        given = self.parse(ids)
        wanted = distinct(given)
        return self._numbers_of(wanted)[np.searchsorted(wanted, given)]

    def _numbers_of(self, wanted: Array) -> Array:
        """Return the store numbers of ascending ids, -1 for isolated vertices and -2 where there is none."""
        vertices = np.full(wanted.size, ISOLATED, np.int64)
        position = self._positions(wanted)
        found = position >= 0
        vertices[found] = self._numbers_at(position[found])
        rest = np.flatnonzero(~found)
        vertices[rest[self._is_absent(wanted[rest])]] = ABSENT
        return vertices

    def look_up(self, given: Any) -> tuple[Ids, Array]:
        """Return some user ids as `stored_blocks` has them, and their store numbers (-1: isolated).

        Raises
        ------
        VertexNotFoundError
            An id does not occur in the input, or is not of the graph's kind.
        """
        ids = self.parse(given)
        numbers = self.vertices_of(ids)
        if self.kind == "int64":
            return ids, numbers
        return from_strings(ids), numbers

    def positions_of(self, ids: Any) -> Array:
        """Return where user ids stand among all ids, ascending: (n,) int64.

        Raises
        ------
        VertexNotFoundError
            An id does not occur in the input, or is not of the graph's kind.
        """
        given, implied = self.parse(ids), self.store.attributes.implied_ids
        self.vertices_of(given)  # that all of them occur
        if implied is not None:
            return given - implied[0]
        wanted = distinct(given)
        below = sum(count_below(IdPages(self.store, name), wanted) for name in self._id_columns())
        return np.asarray(below)[np.searchsorted(wanted, given)]

    def _id_columns(self) -> list[str]:
        """Return the columns that have all ids that are listed."""
        return [SORTED_ID, ISOLATED_ID] if self.store.attributes.num_isolated else [SORTED_ID]

    def ids_of(self, vertices: Any) -> Array:
        """Return the user ids of store numbers: (n,) int64, or object array of str.

        Raises
        ------
        VertexNotFoundError
            A number is not in ``0 .. num_vertices - 1``.
        """
        return as_numpy(self.stored_ids_of(vertices))

    def stored_ids_of(self, vertices: Any, *, most_bytes: int | None = None) -> Ids:
        """`ids_of` without turning strings into Python objects: int64, or pyarrow.LargeStringArray.

        Raises
        ------
        VertexNotFoundError
            A number is not in ``0 .. num_vertices - 1``.
        LongStringsError
            They are strings of more than `most_bytes`.
        """
        numbers = np.atleast_1d(np.asarray(vertices))
        if numbers.size and numbers.dtype.kind not in "iu":
            raise VertexNotFoundError(f"{self.store.url}: vertex numbers are integers, and {vertices!r} has others")
        unique = distinct(numbers).astype(np.int64)
        if unique.size and not 0 <= unique[0] <= unique[-1] < self.store.num_rows:
            raise VertexNotFoundError(
                f"{self.store.url}: vertex numbers must be 0 to {self.store.num_rows - 1}, not {unique[0]} to {unique[-1]}"
            )
        ids, places = self._ids_at(unique, most_bytes), np.searchsorted(unique, numbers.astype(np.int64, copy=False))
        if most_bytes is not None and bytes_at(ids, places) > most_bytes:
            raise LongStringsError
        return taken(ids, places)

    def blocks(self, block_size: int = BLOCK_VERTICES) -> Iterator[tuple[Array, Array]]:
        """Iterate over every input id, ascending, isolated ones included.

        Yields
        ------
        ids : (at most block_size,) int64, or object array of str
        vertices : as many int64
            Store numbers; -1 where isolated.
        """
        for ids, vertices in self.stored_blocks(block_size):
            yield as_numpy(ids), vertices

    def stored_blocks(self, block_size: int = BLOCK_VERTICES) -> Iterator[tuple[Ids, Array]]:
        """`blocks` without turning strings into Python objects: int64, or pyarrow.LargeStringArray."""
        return id_order.stream(self.store, block_size)

    def stored_block(self, start: int, stop: int) -> tuple[Ids, Array]:
        """Return the ids at positions ``start .. stop - 1`` of those that `stored_blocks` streams, and their store numbers."""
        return id_order.block(self.store, start, min(stop, self.num_ids))

    def bounds(self) -> tuple[Any, Any] | None:
        """Smallest and largest id; None when there is none."""
        if not self.num_ids:
            return None
        ends = (0, 1), (self.num_ids - 1, self.num_ids)
        first, last = (as_numpy(id_order.block(self.store, *end)[0])[0] for end in ends)
        return first, last

    def parse(self, ids: Any) -> Array:
        """Return ids as (n,) int64 or object array of str, as the graph has them.

        Raises
        ------
        VertexNotFoundError
            An id is not of the graph's kind.
        ArgumentError
            An id is missing, or is itself a collection.
        """
        ids = as_collection(ids)
        if self.kind == "string":
            return self._parse_strings(ids)
        array = np.asarray(ids)
        if array.size == 0:
            return np.empty(0, np.int64)
        if array.dtype.kind in "iu" and (array.dtype != np.uint64 or array.max() < 2**63):
            return array.astype(np.int64).reshape(-1)
        return np.array([self._parse_int(one) for one in ids], np.int64)

    def _parse_int(self, one: Any) -> int:
        if isinstance(one, str) and re.fullmatch(r"\s*[+-]?[0-9]+\s*", one):
            one = int(one)
        if not isinstance(one, (int, np.integer)) or isinstance(one, bool):
            raise VertexNotFoundError(f"{one!r} is not a vertex of {self.store.url}: its ids are integers{self._range()}; give one of them")
        if not -(2**63) <= one < 2**63:
            raise VertexNotFoundError(
                f"vertex {short_integer(int(one))} is not in {self.store.url}: it is not a 64-bit integer{self._range()}"
            )
        return int(one)

    def _parse_strings(self, ids: Any) -> Array:
        out = np.empty(len(ids), object)
        out[:] = ids
        for one in out:
            if not isinstance(one, str):
                raise VertexNotFoundError(
                    f"{one!r} is not a vertex of {self.store.url}: its ids are strings{self._range()}; give one of them, quoted"
                )
        return out

    def _range(self) -> str:
        implied = self.store.attributes.implied_ids
        if implied is not None:
            return f", {implied[0]} to {implied[1] - 1}" if implied[1] > implied[0] else ""
        bounds = self.bounds()
        return "" if bounds is None else f", {_quoted(bounds[0])} to {_quoted(bounds[1])}"

    def _is_absent(self, wanted: Array) -> Array:
        """Return which of some ascending ids, all without edges, do not occur."""
        implied = self.store.attributes.implied_ids
        if implied is not None:
            return np.asarray((wanted < implied[0]) | (wanted >= implied[1]), np.bool_)
        if wanted.size and self.store.attributes.num_isolated:
            return locate(IdPages(self.store, ISOLATED_ID), wanted) < 0
        return np.ones(wanted.size, np.bool_)

    def _no_such(self, absent: Array) -> VertexNotFoundError:
        named = ", ".join(_quoted(one) for one in absent[:3]) + (f" and {absent.size - 3} more" if absent.size > 3 else "")
        known = f"ids are {self.kind}{self._range()}{self._near(absent[0])}"
        return VertexNotFoundError(
            f"vertex {named} is not in {self.store.url}: its input has no such id ({known}); give an id that occurs there"
        )

    def _near(self, absent: Any) -> str:
        if self.store.attributes.implied_ids is not None or not self.num_ids:
            return ""
        at = sum(IdPages(self.store, name).below(absent) for name in self._id_columns())
        near = as_numpy(id_order.block(self.store, max(0, at - 1), min(self.num_ids, at + 1))[0])
        return f"; the nearest {'are' if len(near) > 1 else 'is'} " + " and ".join(_quoted(one) for one in near)

    def _positions(self, wanted: Array) -> Array:
        """Return where ascending ids stand among those with edges, -1 where absent: (n,) int64."""
        return locate(IdPages(self.store, SORTED_ID), wanted)

    def _numbers_at(self, positions: Array) -> Array:
        """Return the store numbers at ascending positions among the ids with edges."""
        return read_at(self.store.array(ORDER), positions)

    def _ids_at(self, numbers: Array, most_bytes: int | None = None) -> Ids:
        """Return the ids of ascending store numbers, as stored; raises as `Column.read_at`."""
        return self._column(VERTEX_ID).read_at(numbers, most_bytes)

    def _column(self, name: str) -> Column:
        return id_order.id_column(self.store, name)


def locate(pages: IdPages, wanted: Array) -> Array:
    """Return the positions of values in an ascending column.

    Parameters
    ----------
    pages
        The column, without duplicates.
    wanted : (n,) int64 or object array of str
        Ascending.

    Returns
    -------
    (n,) int64
        -1 where absent.
    """
    position, length = np.full(wanted.size, -1, np.int64), pages.length
    if _is_for_bisection(pages, wanted):
        for i, one in enumerate(wanted):
            at = pages.below(one)
            if at < length and pages[at] == one:
                position[i] = at
        return position
    for start, values in _blocks(pages.column):
        lo, hi = np.searchsorted(wanted, values[0]), np.searchsorted(wanted, values[-1], side="right")
        places = np.searchsorted(values, wanted[lo:hi])
        found = values[places] == wanted[lo:hi]
        position[lo:hi][found] = places[found] + start
    return position


def count_below(pages: IdPages, wanted: Array) -> Array:
    """Return how many values of an ascending column are below each of those `wanted`, which ascend: (n,) int64."""
    if _is_for_bisection(pages, wanted):
        return np.array([pages.below(one) for one in wanted], np.int64)
    count = np.zeros(wanted.size, np.int64)
    for _, values in _blocks(pages.column):
        beyond = np.searchsorted(wanted, values[-1], side="right")
        count[:beyond] += np.searchsorted(values, wanted[:beyond])
        count[beyond:] += values.size
    return count


def _blocks(column: Column) -> Iterator[tuple[int, Array]]:
    """Iterate over a column: where each block begins, and its values as (n,) int64 or object array of str."""
    start, num_bytes = 0, 8 * BLOCK_VERTICES if isinstance(column, IntColumn) else TEXT_BYTES
    while start < column.length:
        stop = max(start + 1, column.within(start, min(column.length, start + BLOCK_VERTICES), num_bytes))
        yield start, as_numpy(column.read(start, stop))
        start = stop


def _is_for_bisection(pages: IdPages, wanted: Array) -> bool:
    """Return whether values are found sooner by bisection of a column than in a stream of it."""
    return bool(wanted.size * pages.num_reads * _SEEK_IDS < pages.length)


def _quoted(one: Any) -> str:
    return repr(one) if isinstance(one, str) else str(int(one))
