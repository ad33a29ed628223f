"""A range of a stored array that looks like a NumPy array to code that only slices and bisects: nothing is read before it is asked for.

In: a `StoredArray`. Out: `StoredSlice`: ``s[a:b]`` is a narrower one, ``s[i]`` one element, of whose page (compressed: chunk) two are kept,
``read()`` the elements. A stored matrix can so be cut by the same lines as one in memory (`oocgraph.partition.partial`).
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np

from oocgraph.store.arrays import PlainArray, StoredArray
from oocgraph.store.fetched import ZarrArray
from oocgraph.store.values import Below, Offsets
from oocgraph.types import PAGE_BYTES, Array


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
        self._page = lru_cache(maxsize=2)(self._read_page)
        self._unruled, rule = array.without_rule(), array.rule
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
        """Return the elements: in the first of `out`, where it is given, is large enough and the array can be read into it.

        `direct`: into `out` around the page cache, where that can be done (`oocgraph.store.arrays.PlainArray.read_into`).
        """
        if isinstance(self.array, PlainArray) and out is not None and out.size >= self.size:
            elements = out[: self.size]
            self.array.read_into(self.start, elements, direct=direct)
            return elements
        return self.array.read(self.start, self.stop).astype(self.dtype, copy=False)

    def _read_page(self, page: int) -> Array:
        start = page * self._page_length
        # its order is left to who reads a range: comparing whole pages for single elements made a product of scale 22 a tenth slower
        return self._unruled.read(start, min(self.array.length, start + self._page_length))
