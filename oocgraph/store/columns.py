"""Columns of user ids (or categories) on disk, read by ranges or at scattered positions: integers, or strings.

In: positions in a stored array. Out: what `EdgeBlock` uses: int64 NumPy arrays, or pyarrow.LargeStringArray.
pyarrow is imported only for strings, so that a search of an integer graph does not pay for it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any, TypeAlias

import numpy as np

from oocgraph.arrow import from_numbers, from_strings, to_objects
from oocgraph.errors import CorruptStoreError
from oocgraph.store.arrays import REMEDY, PlainArray, StoredArray
from oocgraph.store.graph_arrays import GraphArrays
from oocgraph.store.layout import string_arrays
from oocgraph.types import Array

Ids: TypeAlias = Any
"""(n,) int64, or pyarrow.LargeStringArray."""

COALESCE_BYTES = 64 << 10
"""Scattered positions closer than this are read as one range: 64 KiB at queue depth 1 cost about what 4 KiB do (BASELINES.md)."""

RANGE_BYTES = 4 << 20
"""A coalesced range is cut at multiples of this, which bounds the memory of a scattered read."""

FEW_STRINGS = 128
"""Strings that are read together without a look at how long they are."""

SINGLE_STRINGS = 8
"""Strings of plain local files up to which each is read by itself: as Arrow's, one takes as long as ten."""


class LongStringsError(Exception):
    """Strings are more bytes than their reader may hold: it has to ask for fewer."""


def coalesced(array: StoredArray, positions: Array, itemsize: int) -> Iterator[tuple[int, int]]:
    """Cut ascending positions into runs ``lo, hi`` of `positions` that one read serves; `itemsize` is what an element costs.

    Where a chunk is decoded as a whole, each is read once.
    """
    gap, span = max(1, COALESCE_BYTES // itemsize), max(1, RANGE_BYTES // itemsize)
    if array.unit > 1:
        gap = span = array.chunk_length
    cut = (np.diff(positions) > gap) | (positions[1:] // span != positions[:-1] // span)
    bounds = [0, *(np.flatnonzero(cut) + 1).tolist(), positions.size] if positions.size else [0]
    yield from pairwise(bounds)


def read_at(array: StoredArray, positions: Array) -> Array:
    """Return the elements at `positions` (ascending), by coalesced range reads."""
    if array.is_held:
        return array.held[positions]
    out = np.empty(positions.size, array.dtype)
    for lo, hi in coalesced(array, positions, array.dtype.itemsize):
        first = int(positions[lo])
        out[lo:hi] = array.read(first, int(positions[hi - 1]) + 1)[positions[lo:hi] - first]
    return out


def id_bytes(store: GraphArrays, name: str) -> int:
    """Return the bytes of one id of a column: 8, or of strings their mean length, rounded up, and 8 of offsets."""
    if store.attributes.id_kind == "int64":
        return 8
    data, offsets = (store.array(one).length for one in string_arrays(name))
    return 8 + -(-data // max(1, offsets - 1))


class IntColumn:
    """Integers: one stored array."""

    def __init__(self, store: GraphArrays, name: str) -> None:
        self.array = store.array(name)
        self.length = self.array.length

    def read(self, start: int, stop: int) -> Array:
        """Return the values ``start .. stop - 1`` as int64."""
        return self.array.read(start, stop).astype(np.int64, copy=False)

    def read_at(self, positions: Array, most_bytes: int | None = None) -> Array:
        """Return the values at ascending positions as int64."""
        return read_at(self.array, positions).astype(np.int64, copy=False)

    def within(self, start: int, stop: int, num_bytes: int) -> int:
        """Return up to where, `stop` at most, values from `start` on can be read at once within so many bytes."""
        return min(stop, start + max(0, num_bytes) // 8)


class StringColumn:
    """Strings: UTF-8 bytes, and offsets into them (Arrow's layout)."""

    def __init__(self, store: GraphArrays, name: str) -> None:
        data, offsets = string_arrays(name)
        self._bytes, self.array = store.array(data), store.array(offsets)
        self.length = self.array.length - 1

    def read(self, start: int, stop: int) -> Ids:
        """Return the values ``start .. stop - 1`` as a pyarrow.LargeStringArray."""
        import pyarrow as pa

        if stop <= start:
            return pa.nulls(0, pa.large_string())
        offsets = self.array.read(start, stop + 1)
        data = self._bytes.read(int(offsets[0]), int(offsets[-1]))
        found = pa.LargeStringArray.from_buffers(stop - start, pa.py_buffer(offsets - offsets[0]), pa.py_buffer(data))
        try:
            found.validate(full=True)  # pyarrow trusts what it is given: that its bytes are UTF-8, too
        except pa.ArrowInvalid as error:
            raise self._damaged(int(offsets[0]), start, stop, error) from error
        return found

    @property
    def is_plain(self) -> bool:
        """Whether single strings are read as fast as many, by `value`."""
        return isinstance(self._bytes, PlainArray)

    def value(self, at: int) -> str:
        """Return the value at a position."""
        first, stop = self.array.read(at, at + 2).tolist()
        raw = self._bytes.read(first, stop).tobytes()
        try:
            return raw.decode()
        except UnicodeDecodeError as error:
            raise self._damaged(first, at, at + 1, error) from error

    def _damaged(self, first_byte: int, start: int, stop: int, error: Exception) -> CorruptStoreError:
        where = self._bytes.place_of(first_byte)
        return CorruptStoreError(f"{where}: strings {start} to {stop} of {self._bytes.name} are damaged ({error}); {REMEDY}")

    def read_at(self, positions: Array, most_bytes: int | None = None) -> Ids:
        """Return the values at ascending positions as a pyarrow.LargeStringArray.

        Raises
        ------
        LongStringsError
            They are of more than `most_bytes`.
        """
        import pyarrow as pa

        if positions.size <= SINGLE_STRINGS and self.is_plain and most_bytes is None:
            return from_strings([self.value(at) for at in positions.tolist()])
        parts, num_bytes = [pa.nulls(0, pa.large_string())], 0
        for some in self._runs(positions):
            parts.append(self.read(int(some[0]), int(some[-1]) + 1).take(from_numbers(some - some[0])))
            num_bytes += parts[-1].nbytes
            if most_bytes is not None and num_bytes > most_bytes:
                raise LongStringsError
        return pa.concat_arrays(parts)

    def _runs(self, positions: Array) -> Iterator[Array]:
        """Cut ascending positions into runs that one read serves, as `coalesced` does; of long strings sooner."""
        each = max(32, self._bytes.length // max(1, self.length))  # about an offset and a short string
        for lo, hi in coalesced(self.array, positions, each):
            rest = positions[lo:hi]
            while rest.size:
                first, stop = int(rest[0]), int(rest[-1]) + 1
                if stop - first > FEW_STRINGS:
                    stop = max(first + 1, self.within(first, stop, RANGE_BYTES))
                end = int(np.searchsorted(rest, stop))
                yield rest[:end]
                rest = rest[end:]

    def within(self, start: int, stop: int, num_bytes: int) -> int:
        """Return up to where, `stop` at most, values from `start` on can be read at once within so many bytes; offsets are held twice."""
        low, high = start, min(stop, start + max(0, num_bytes) // 16)
        middle, first = high, self._offset(start)
        while low < high:
            is_within = 16 * (middle - start) + self._offset(middle) - first <= num_bytes
            low, high = (middle, high) if is_within else (low, middle - 1)
            middle = (low + high + 1) // 2
        return low

    def _offset(self, at: int) -> int:
        return int(self.array.read(at, at + 1)[0])


Column: TypeAlias = IntColumn | StringColumn
"""A stored column of ids; its `array` has an element for each: the numbers, or the strings' offsets."""


def distinct(values: Array) -> Array:
    """Return the distinct values, ascending: NumPy's own `unique` hashes integers and takes 2.1 s for 2.4 M, this 0.02 s."""
    return without_repeats(np.sort(values, axis=None))


def without_repeats(ascending: Array) -> Array:
    """Return each of some values that ascend once."""
    if ascending.size < 2:
        return ascending
    keep: Array = np.concatenate([[True], ascending[1:] != ascending[:-1]])
    return np.compress(keep, ascending)


def lower_bounds(values: Array, low: Array, high: Array, wanted: Array) -> Array:
    """Return the first position of each range ``low .. high - 1`` of `values`, which ascend there, whose value is not below a wanted one.

    Examples
    --------
    >>> lower_bounds(np.array([3, 5, 9, 1, 2]), np.array([0, 3]), np.array([3, 5]), np.array([6, 7])).tolist()
    [2, 5]
    """
    low, high = low.copy(), high.copy()
    while (wide := np.flatnonzero(low < high)).size:
        middle = (low[wide] + high[wide]) // 2
        below = values[middle] < wanted[wide]
        low[wide], high[wide] = np.where(below, middle + 1, low[wide]), np.where(below, high[wide], middle)
    return low


def taken(ids: Ids, places: Array) -> Ids:
    """Return the ids at some places; Arrow's own `take` imports pandas for places of NumPy's, where it is installed."""
    return ids[places] if isinstance(ids, np.ndarray) else ids.take(from_numbers(places))


def as_numpy(ids: Ids) -> Array:
    """Return ids as NumPy sees them: int64, or an object array of str (None where null)."""
    array: Array = ids if isinstance(ids, np.ndarray) else to_objects(ids)
    return array


def as_arrow(ids: Ids) -> Any:
    """Return ids, or other numbers, as a pyarrow.Array, without a copy."""
    return from_numbers(ids) if isinstance(ids, np.ndarray) else ids


def joined(parts: Sequence[Ids]) -> Ids:
    """Return the ids of some arrays, one after another; those of a single one are not copied."""
    if len(parts) == 1:
        return parts[0]
    if isinstance(parts[0], np.ndarray):
        return np.concatenate(parts)
    import pyarrow as pa

    return pa.concat_arrays(parts)
