"""Buffers of results, taken again when the result that held them is gone.

Pages that a process touches for the first time cost it 3 to 12 ms for the parents and levels of 9 M vertices, a tenth of a search.
A buffer is lent through an object that dies with the last array (or view of it) on the buffer; only then is it lent again.
"""

from __future__ import annotations

import ctypes
import weakref
from typing import Any

import numpy as np

from oocgraph.types import Array


class BufferPool:
    """Lends uint8 buffers of given sizes; keeps those that came back.

    Examples
    --------
    >>> pool = BufferPool()
    >>> first = pool.take(8)
    >>> address, view = first.ctypes.data, first[2:4]
    >>> del first
    >>> pool.take(8).ctypes.data == address  # the view still holds it
    False
    >>> del view
    >>> address in [pool.take(8).ctypes.data, pool.take(8).ctypes.data]
    True
    """

    def __init__(self) -> None:
        self._free: dict[int, list[Array]] = {}

    def clear(self) -> None:
        """Give back what is not borrowed."""
        self._free.clear()

    def take(self, num_bytes: int) -> Array:
        """Return a buffer of `num_bytes` with any content: (num_bytes,) uint8, writable."""
        if not num_bytes:
            return np.empty(0, np.uint8)
        free = self._free.setdefault(num_bytes, [])
        owner = free.pop() if free else np.empty(num_bytes, np.uint8)
        lease: Any = (ctypes.c_uint8 * num_bytes).from_buffer(owner.data)  # type: ignore[arg-type,unused-ignore]
        weakref.finalize(lease, free.append, owner).atexit = False
        return np.frombuffer(lease, np.uint8)
