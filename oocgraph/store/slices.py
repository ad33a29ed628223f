"""A range of a stored array that looks like a NumPy array to code that only slices and bisects: nothing is read before it is asked for.

In: a `StoredArray`. Out: `StoredSlice`: ``s[a:b]`` is a narrower one, ``s[i]`` one element, of whose page (compressed: chunk) two are kept,
``read()`` the elements; `StoredSlice.last_at_most` finds many values at once. A stored matrix can so be cut by the same lines as one in
memory (`oocgraph.sparse.partial`).
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from typing import Any

import numpy as np

from oocgraph.errors import CorruptStoreError
from oocgraph.store.arrays import REMEDY, PlainArray, StoredArray
from oocgraph.store.fetched import ZarrArray
from oocgraph.store.values import Below, Offsets
from oocgraph.types import PAGE_BYTES, Array

STREAMED_ELEMENTS = 1 << 17
"""Elements read at once where values are found by reading all: 1 MiB of pointers."""

STREAMED_PAGES = 12
"""Pages that are read in a stream in the time of one that is looked up alone (20 us, warm)."""


class StoredSlice:
    """Elements ``start .. stop - 1`` of a stored array; by default all.

    Attributes
    ----------
    array : StoredArray
    start, stop : int
        Range in `array`.
    """

    ndim = 1

    def __init__(self, array: StoredArray, start: int = 0, stop: int | None = None) -> None:
        self.array, self.start, self.stop = array, start, array.length if stop is None else stop
        self._page_length = array.chunk_length if isinstance(array, ZarrArray) else max(1, PAGE_BYTES // array.dtype.itemsize)
        self._kept: tuple[tuple[int, Array], ...] = ()  # no cache that refers to it: what is read millions of times must not wait for gc
        self._unruled: StoredArray | None = None
        rule = array.rule
        self._highest = rule.stop if isinstance(rule, Offsets) else rule.stop - 1 if isinstance(rule, Below) else None

    def __repr__(self) -> str:
        return f"<StoredSlice {self.array.name}[{self.start}:{self.stop}], {self.dtype}, on disk>"

    @property
    def dtype(self) -> np.dtype[Any]:
        """Dtype of the elements, in the machine's byte order."""
        return self.array.dtype.newbyteorder("=")

    @property
    def size(self) -> int:
        """Elements."""
        return self.stop - self.start

    @property
    def nbytes(self) -> int:
        """Bytes of the elements in memory."""
        return self.size * self.dtype.itemsize

    @property
    def page_bytes(self) -> int:
        """Bytes that looking up single elements holds at most."""
        return 2 * self._page_length * self.dtype.itemsize

    def __len__(self) -> int:
        return self.size

    def __getitem__(self, key: Any) -> Any:
        """Return one element, or the range of a slice (of step 1), unread."""
        if isinstance(key, slice):
            first, stop, step = key.indices(self.size)
            if step != 1:
                raise IndexError(f"{self!r} has slices of step 1 only")
            return StoredSlice(self.array, self.start + first, self.start + max(first, stop))
        if not 0 <= key < self.size:
            raise IndexError(f"{key} is outside of {self!r}")
        page, at = divmod(self.start + int(key), self._page_length)
        value = int(self._page(page)[at])
        if self._highest is not None and not 0 <= value <= self._highest:
            self.array.read(self.start + int(key), self.start + int(key) + 1)  # which says what is wrong with it
        return value

    def read(self, out: Array | None = None, *, direct: bool = False) -> Array:
        """Return the elements: where they are in memory, or in the first of `out`, where it is given, is large enough and can be used.

        `direct`: into `out` around the page cache, where that can be done (`oocgraph.store.arrays.PlainArray.read_into`): whole pages are
        read then, and the elements begin in one of them, if `out` has room for two pages more.
        """
        if self.stop <= self.array.held.size:
            return self.array.held[self.start : self.stop]
        if isinstance(self.array, PlainArray) and out is not None and out.size >= self.size:
            lead = self.start % self._page_length
            size = min(-(-(lead + self.size) // self._page_length) * self._page_length, self.array.length - self.start + lead)
            if direct and self.size < size <= out.size:
                self.array.read_into(self.start - lead, out[:size], direct=True)
                return out[lead : lead + self.size]
            elements = out[: self.size]
            self.array.read_into(self.start, elements, direct=direct)
            return elements
        return self.array.read(self.start, self.stop).astype(self.dtype, copy=False)

    def last_at_most(self, values: Sequence[int]) -> tuple[list[int], list[bool]]:
        """Find values among the elements, both ascending: of each the last position whose element is not above it.

        Returns
        -------
        positions : list of int
        below : list of bool
            Whether the element there is below the value, not equal to it.

        Raises
        ------
        CorruptStoreError
            An element is none that the array may hold, or the first one is above a value.

        Notes
        -----
        Looks single elements up, or reads all of them, 1 MiB (compressed: a chunk) at once: whichever is less work.
        """
        if not len(values):
            return [], []
        pages = -(-self.size // self._page_length)
        if len(values) * pages.bit_length() * STREAMED_PAGES < pages:
            self._refuse_above(self[0], values[0])
            positions = [bisect_right(self, value, 1) - 1 for value in values]
            return positions, [self[position] < value for position, value in zip(positions, values, strict=True)]
        wanted, step = np.asarray(values, np.int64), max(STREAMED_ELEMENTS, self._page_length)
        positions, below, last = list[int](), list[bool](), values[0]
        for start in range(self.start, self.stop, step):
            elements = self.array.read(start, min(self.stop, start + step))
            if start == self.start:
                self._refuse_above(int(elements[0]), values[0])
            here = wanted[len(positions) : int(np.searchsorted(wanted, elements[-1]))]
            found = np.searchsorted(elements, here, side="right") - 1  # -1: it is the last element of the block before
            positions += (start - self.start + found).tolist()
            below += (np.where(found < 0, last, elements[found]) < here).tolist()
            last = int(elements[-1])
        rest = wanted[len(positions) :]
        return positions + [self.size - 1] * rest.size, below + (last < rest).tolist()

    def _refuse_above(self, first: int, value: int) -> None:
        """Refuse elements of which the first is above a value that is looked for among them."""
        if first > value:
            raise CorruptStoreError(
                f"{self.array.place_of(self.start)}: element {self.start} of {self.array.name} is {first}, but must be at most {value}; "
                f"{REMEDY}"
            )

    def _page(self, page: int) -> Array:
        kept = self._kept
        for number, values in kept:
            if number == page:
                return values
        # its order is left to who reads a range: comparing whole pages for single elements made a product of scale 22 a tenth slower
        if self._unruled is None:
            self._unruled = self.array.without_rule()
        start = page * self._page_length
        values = self._unruled.read(start, min(self.array.length, start + self._page_length))
        self._kept = (*kept[-1:], (page, values))
        return values
