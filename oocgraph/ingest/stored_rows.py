"""Whole rows of a store, wherever they are and in any order, read by each thread for itself.

In: where rows begin and end. Out: their entries, and where each row is among them. Pages of plain local files are read once for a call,
neighbouring ones together; compressed chunks are decoded; arrays in memory are copied from.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from oocgraph.errors import CorruptStoreError
from oocgraph.kernels.append import lay_out_rows, order_rows
from oocgraph.store.arrays import PlainArray, StoredArray
from oocgraph.store.gather import EdgeFiles, Gatherer, checksum_bytes
from oocgraph.store.graph import CSRStore
from oocgraph.store.row_gatherer import EdgeSource, RowGatherer, held_window_bytes
from oocgraph.store.scattered import load_gathering
from oocgraph.store.values import Below
from oocgraph.types import Array

BUFFER_BYTES = 1 << 20
"""Pages that a thread reads at once: rows that follow each other are one request, and nothing else reads files ahead."""

DIGITS = 1 << 11
"""Values of a digit by which rows are sorted."""

GAP_PAGES = 4
"""Pages between two rows that are read with them: copying 16 KiB takes as long as a request of a cached page (3 us)."""


Room = Callable[[str, int, Any], Array]
"""Returns uninitialised memory for so many elements of a dtype, by a name: valid until the next of the same name is asked for."""


def fresh(name: str, length: int, dtype: Any) -> Array:
    """Return memory of its own."""
    return np.empty(length, dtype)


def rows_bytes(store: CSRStore, names: list[str], threads: int) -> int:
    """Return what `StoredRows` holds: buffers, and checksums where they are compared."""
    arrays = [store.array(name) for name in names]
    return sum(map(checksum_bytes, arrays)) + threads * (BUFFER_BYTES + max(map(held_window_bytes, arrays), default=0))


class StoredRows:
    """Rows of the arrays of one store; closed with `close`.

    Parameters
    ----------
    store
        The graph.
    names
        Arrays that may be read, such as ``out/indices``.
    threads
        Threads that read at once.
    """

    def __init__(self, store: CSRStore, names: list[str], *, threads: int) -> None:
        arrays = [store.array(name) for name in names]
        self._arrays = {one.name: one if isinstance(one.rule, Below | None) else one.without_rule() for one in arrays}
        self._gatherer = Gatherer(threads, BUFFER_BYTES)
        self._files: list[EdgeFiles] = []
        self._sources = {name: self._source(array) for name, array in self._arrays.items()}

    def _source(self, array: StoredArray) -> EdgeSource:
        dtype = np.dtype(f"u{array.dtype.itemsize}")
        load_gathering(dtype)
        if isinstance(array, PlainArray):
            files = EdgeFiles(array, stream_direct=False)
            self._files.append(files)
            return EdgeSource(np.empty(0, dtype), files=files)
        return EdgeSource(array.held.view(dtype)) if array.is_held else EdgeSource(np.empty(0, dtype), stored=array)

    def read(self, name: str, begin: Array, end: Array, room: Room = fresh) -> tuple[Array, Array]:
        """Return the entries of some rows, row by row in the order of the file, and where each row begins among them.

        Parameters
        ----------
        begin, end : (num_rows,) int64
            Where rows are in the array `name`, in any order.
        room
            Returns memory, which what is returned stays in: a thread that reads often reuses its own.

        Raises
        ------
        CorruptStoreError
            As of `StoredArray.read`.
        """
        array = self._arrays[name]
        start, offset, position = (room(of, begin.size + 1, np.int64) for of in ("start", "offset", "position"))
        order, other = (room(of, begin.size, np.int32) for of in ("order", "other"))
        if begin.size:
            low, high = int(begin.min()), int(begin.max())
            if low < 0 or high > array.length:
                raise CorruptStoreError(f"{array.place_of(array.length - 1)}: rows begin outside of {name}; run `oocgraph check`")
            order_rows(begin, low, high, order, other, room("counts", DIGITS, np.int64))
        num_rows = lay_out_rows(begin, end, order, start, offset, position)
        if num_rows < 0:
            first = int(begin[np.argmax(end < begin)])
            raise CorruptStoreError(
                f"{array.place_of(min(max(0, first), array.length - 1))}: a row ends before it begins; run `oocgraph check`"
            )
        start, offset, position = start[:num_rows], offset[: num_rows + 1], position[: begin.size]
        out = room("entries", int(offset[-1]), array.dtype.newbyteorder("="))
        if out.size:
            if int(start[-1]) + int(offset[-1] - offset[-2]) > array.length:
                raise CorruptStoreError(f"{array.place_of(int(start[-1]))}: rows end behind the end of {name}; run `oocgraph check`")
            source, raw = self._sources[name], out.view(f"u{out.itemsize}")
            rows = RowGatherer(self._gatherer, source, start, offset, gap_pages=GAP_PAGES, stream=False)
            rows.gather([(0, 0, num_rows - 1, out.size)], 0, raw)
        return out, position

    def close(self) -> None:
        """Close the files."""
        for files in self._files:
            files.close()
        self._gatherer.close()
