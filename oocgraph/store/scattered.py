"""Many ranges of the arrays of one graph, such as rows or single entries, read together: only the pages that hold them.

In: where ranges begin and end, ascending. Out: their elements, one range after the other. Pages of plain local files are read by a pool of
threads, each page once, neighbouring pages together; compressed chunks are decoded once; requests to an object store are joined
where they are near each other; arrays in memory are copied from.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

import numpy as np

from oocgraph.closing import Closing
from oocgraph.compiled.load import load_kernels
from oocgraph.config import settings
from oocgraph.kernels import gather
from oocgraph.kernels.rows import no_files
from oocgraph.memory import Budget
from oocgraph.store.arrays import PlainArray, StoredArray
from oocgraph.store.columns import id_bytes
from oocgraph.store.fetched import ZarrArray
from oocgraph.store.gather import EdgeFiles, Gatherer, checksum_bytes
from oocgraph.store.graph_arrays import GraphArrays
from oocgraph.store.layout import VERTEX_ID
from oocgraph.store.row_gatherer import PARTS_PER_THREAD, EdgeSource, Part, RowGatherer, held_window_bytes
from oocgraph.store.values import Below
from oocgraph.types import PAGE_BYTES, Array

BUFFER_BYTES = 64 << 10
"""Pages that a thread reads at once."""

PART_PAGES = 32
"""Pages below which a part is not worth a task of a thread."""

FEW_RANGES, FEW_PAGES = 8, 32
"""Ranges up to which each is read by itself, where an array is no plain local file and where it is: no buffers are made, and only the
files that hold them are opened."""


class RangeReader(Closing):
    """Reads ranges of arrays of a graph; a context manager that ends its threads and closes its files.

    Parameters
    ----------
    store
        The graph.
    budget
        Charged with buffers once threads are needed.
    resident
        Beginnings of arrays that are in memory, by name: they are not read.

    Attributes
    ----------
    bytes_read : Counter of str
        Bytes asked of the files of each array so far, whole pages where pages are read.
    """

    def __init__(self, store: GraphArrays, budget: Budget, resident: Mapping[str, Array] | None = None) -> None:
        self.store, self.budget, self.bytes_read, self._resident = store, budget, Counter[str](), resident or {}
        self._arrays: dict[str, StoredArray] = {}
        self._files: dict[str, EdgeFiles] = {}
        self._gatherer: Gatherer | None = None

    def close(self) -> None:
        """End the threads, close the files."""
        for files in self._files.values():
            files.close()
        if self._gatherer is not None:
            self._gatherer.close()

    def read(self, of: str | StoredArray, begin: Array, end: Array, *, gap_pages: int = 0) -> Array:
        """Return the elements of some ranges of an array of the graph, or of the one with a name.

        What no kernel can check as it reads, which is all but numbers below a bound, is not checked where there are many ranges.

        Parameters
        ----------
        begin, end : (num_ranges,) int64
            Ascending; ranges do not overlap.
        gap_pages
            Pages between two ranges that are read with them, to join reads of a plain file.

        Returns
        -------
        (sum of the lengths,) as stored, in the machine's byte order

        Raises
        ------
        CorruptStoreError
            As of `StoredArray.read`.
        BudgetError
            The buffers do not fit.
        """
        name = of if isinstance(of, str) else of.name
        if name not in self._arrays:
            array = self.store.array(of) if isinstance(of, str) else of
            self._arrays[name] = array if isinstance(array.rule, Below | None) else array.without_rule()
        array = self._arrays[name]
        filled = np.flatnonzero(end > begin)
        if filled.size <= (FEW_PAGES if isinstance(array, PlainArray) else FEW_RANGES) and name not in self._resident:
            before = array.bytes_asked if isinstance(array, PlainArray) else 0
            found = np.concatenate([np.empty(0, array.dtype), *map(array.read, begin[filled].tolist(), end[filled].tolist())])
            self.bytes_read[name] += array.bytes_asked - before if isinstance(array, PlainArray) else found.nbytes
            return found.astype(array.dtype.newbyteorder("="), copy=False)
        return self._gather(array, begin[filled], end[filled], gap_pages)

    def _gather(self, array: StoredArray, begin: Array, end: Array, gap_pages: int) -> Array:
        """Read many ranges with the threads; kernels take elements of any kind as unsigned integers of their size."""
        offset = np.concatenate([np.zeros(1, np.int64), np.cumsum(end - begin)])
        out = np.empty(int(offset[-1]), array.dtype.newbyteorder("="))
        raw = out.view(f"u{out.itemsize}")
        load_gathering(raw.dtype)
        gatherer = self._start(array)
        rows = RowGatherer(gatherer, self._source(array, raw.dtype), begin, offset, gap_pages=gap_pages, stream=False)
        if rows.source.files is None:
            self.bytes_read[array.name] += rows(0, out.size, raw)
        else:
            per_page, num_parts = PAGE_BYTES // out.itemsize, gatherer.num_threads * PARTS_PER_THREAD
            self.bytes_read[array.name] += rows.gather(page_parts(begin, end, offset, per_page, num_parts), 0, raw)
        return out

    def _source(self, array: StoredArray, dtype: np.dtype[Any]) -> EdgeSource:
        resident = self._resident.get(array.name, np.empty(0, array.dtype)).view(dtype)
        if isinstance(array, PlainArray):
            if array.name not in self._files:
                self.budget.reserve("checksums", checksum_bytes(array))
                self._files[array.name] = EdgeFiles(array, stream_direct=False)
            return EdgeSource(resident, files=self._files[array.name])
        if array.is_held:
            return EdgeSource(array.held.view(dtype))
        return EdgeSource(resident, stored=array)

    def _start(self, array: StoredArray) -> Gatherer:
        """Return the threads."""
        if self._gatherer is None:
            num_threads = _num_threads(array)
            self.budget.reserve("buffers of reading threads", num_threads * (BUFFER_BYTES + held_window_bytes(array)))
            self._gatherer = Gatherer(num_threads, BUFFER_BYTES)
        return self._gatherer


def reading_bytes(store: GraphArrays) -> int:
    """Return what a reader of a graph holds beside what it returns: buffers, and checksums where they are compared."""
    array = store.array(f"{store.attributes.stored_groups[0]}/indices")
    return _num_threads(array) * (BUFFER_BYTES + held_window_bytes(array)) + checksum_bytes(array)


def kept_bytes(store: GraphArrays) -> int:
    """Return what the pages take that a graph in plain local files will keep (`PlainArray.read`); others keep none."""
    array = store.array(f"{store.attributes.stored_groups[0]}/indices")
    if not isinstance(array, PlainArray):
        return 0
    return min(array.page_room_bytes, store.attributes.edge_bytes + store.num_vertices * (32 + 2 * id_bytes(store, VERTEX_ID)))


def _num_threads(array: StoredArray) -> int:
    """Return how many threads read an array; those that decode are as many as compute."""
    return settings().threads if isinstance(array, ZarrArray) else settings().io_threads


def page_parts(begin: Array, end: Array, offset: Array, per_page: int, most: int) -> list[Part]:
    """Cut ascending ranges into parts of about as many pages each, where pages begin, so that no page is in two parts.

    Parameters
    ----------
    begin, end : (num_ranges,) int64
        Ranges, none of them empty.
    offset : (num_ranges + 1,) int64
        Sums of their lengths.
    per_page
        Elements of a page.
    most
        Number of parts at the most; none has fewer than `PART_PAGES` pages, but the last.

    Examples
    --------
    >>> begin = np.arange(0, 64 * 8, 8)  # of each page a half
    >>> page_parts(begin, begin + 4, np.arange(0, 257, 4), 8, 2)
    [(0, 0, 31, 128), (32, 128, 63, 256)]
    """
    first, last = begin // per_page, (end - 1) // per_page
    new = last - np.maximum(first, np.concatenate([[-1], last[:-1]]) + 1) + 1  # pages that no range before has
    pages = np.cumsum(new)
    wanted = np.arange(0, pages[-1], max(PART_PAGES, -(-int(pages[-1]) // most)))[1:]
    row = np.searchsorted(pages, wanted, side="right")
    place = (last[row] + 1 - (pages[row] - wanted)) * per_page  # where the page that comes next begins
    row = np.searchsorted(end, place, side="right")
    edge = offset[row] + np.maximum(place - begin[row], 0)
    edges = [0, *edge.tolist(), int(offset[-1])]
    rows = [0, *row.tolist()]
    ends = [*(np.searchsorted(offset, edge) - 1).tolist(), begin.size - 1]
    return list(zip(rows, edges[:-1], ends, edges[1:], strict=True))


def load_gathering(dtype: np.dtype[Any]) -> None:
    """Bring the kernels that gather elements of an unsigned dtype into memory."""
    if dtype in _loaded:
        return
    positions, empty = np.zeros(2, np.int64), np.empty(0, dtype)
    files = no_files((PAGE_BYTES // dtype.itemsize).bit_length() - 1)
    scratch = np.zeros(PAGE_BYTES, np.uint8)
    load_kernels(
        [
            (gather.cut_rows, (positions, 0, 0, 1, np.zeros((2, 2), np.int64))),
            (gather.gather_rows, (positions, positions, 0, 0, 0, 0, empty, files, 0, scratch, scratch.view(dtype), empty)),
            (gather.copy_rows, (positions, positions, 0, 0, 0, 0, empty, empty, 0, empty)),
        ]
    )
    _loaded.add(dtype)


_loaded: set[np.dtype[Any]] = set()
