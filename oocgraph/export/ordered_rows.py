"""The rows of a stored CSR as a stream of offsets and a stream of neighbours, in store order or in input order.

In: a store and one of its groups. Out: what a file format of CSR arrays holds, block by block. Store order is a
copy. Input order is an external sort: entries become keys (row position, neighbour position), are distributed to temporary files by ranges
of rows, and each file is sorted; so memory stays bounded, and the disk moves each entry twice more (8 bytes).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from oocgraph.compiled.load import Call
from oocgraph.errors import BudgetError
from oocgraph.external_sort.bins import BinFiles
from oocgraph.external_sort.key_bins import balanced_bins
from oocgraph.external_sort.temporary import Folder
from oocgraph.external_sort.workers import Workers
from oocgraph.kernels.build import dealing_calls
from oocgraph.kernels.export import KEY_SHIFT, row_keys
from oocgraph.kernels.packed_keys import packing_calls
from oocgraph.memory import Budget, enough_memory, format_bytes
from oocgraph.store.arrays import decoded_bytes
from oocgraph.store.columns import id_bytes
from oocgraph.store.graph import CSRStore
from oocgraph.store.input_order import BLOCK_VERTICES, input_positions
from oocgraph.store.layout import ORDER, SORTED_ID
from oocgraph.store.rows import BLOCK_ROWS, RowBlock, degree_blocks, row_blocks
from oocgraph.store.scipy import row_degrees
from oocgraph.store.vertices import VertexIds
from oocgraph.types import Array

BIN_ENTRIES = 1 << 20
"""Entries that a temporary file should have: 8 MiB of keys sort in the cache."""

MAX_BINS = 256
"""Temporary files written to at once."""

ENTRY_BYTES = 40
"""Bytes that an entry takes while its file is sorted: the key, and the results on their way to the output."""

BLOCK_BYTES = 24
"""Bytes that an entry takes while it becomes a key and is distributed to a file."""

BLOCK_ENTRIES = 1 << 20
"""Entries distributed at once."""

_SAMPLE = 16
"""Rows between two known sizes when rows are cut into ranges: half a byte a row."""

MIN_ENTRIES = 1 << 16
"""Entries that each thread sorts, and distributes, at the least."""

_STREAM_BYTES = 128
"""What an id takes while it is streamed; of strings beside the ids, of which eight copies are held."""

SORTING = "vertex_partition and sorting"
"""Name of the reservation that blocks and files are sized by."""

Done = Callable[[int], None]
"""Receives numbers of entries as they are read."""


Entries = tuple[Array, Array | None]
"""Neighbours (unsigned), and the values of the edge column that travels along, if one does."""


def read_entries(store: CSRStore, group: str, column: str | None, start: int, stop: int) -> Entries:
    """Read a range of entries of a group."""
    values = None if column is None else store.array(f"{group}/{column}").read(start, stop)
    return store.array(f"{group}/indices").read(start, stop), values


@dataclass(frozen=True, slots=True)
class StoreRows:
    """Rows as the store has them: by degree, isolated vertices left out. `offsets` is iterated before `entries`.

    Attributes
    ----------
    column
        Edge column that travels along, or None.
    """

    store: CSRStore
    group: str
    column: str | None

    @property
    def num_rows(self) -> int:
        """Vertices that have an edge."""
        return self.store.num_rows

    def offsets(self) -> Iterator[Array]:
        """Blocks of ``indptr``."""
        return (block for _, block in self.store.array(f"{self.group}/indptr").blocks(BLOCK_ROWS))

    def entries(self, done: Done) -> Iterator[Entries]:
        """Blocks of ``indices``."""
        length = self.store.array(f"{self.group}/indices").length
        for start in range(0, length, BLOCK_ENTRIES):
            stop = min(length, start + BLOCK_ENTRIES)
            yield read_entries(self.store, self.group, self.column, start, stop)
            done(stop - start)


class InputRows:
    """Rows by the positions of their ids among the input ids, ascending, as are the neighbours; isolated vertices are empty rows.

    Parameters
    ----------
    store, group
        The graph and ``out`` or ``in``.
    column
        Edge column that travels along, or None.
    budget
        What `charge_input_order` has charged it with is used, and blocks and files are sized by what is left.
    workers
        Threads that distribute and sort.
    scratch
        Folder of the temporary files.

    Raises
    ------
    BudgetError
        The largest range of rows does not fit.
    """

    def __init__(self, store: CSRStore, group: str, column: str | None, *, budget: Budget, workers: Workers, scratch: Path) -> None:
        self.store, self.group, self.column, self.workers = store, group, column, workers
        self.num_rows = store.attributes.num_input_vertices
        self._budget, self._scratch = budget, scratch
        self._position, self._degree = input_positions(store), row_degrees(store, group)
        self._num_sorting = workers.num_threads
        self._sample = np.zeros(1, np.int64)  # entries before every _SAMPLE-th row

    def offsets(self) -> Iterator[Array]:
        """Blocks of the offsets; sizes of ranges of rows are noted on the way."""
        total, sample = 0, [np.zeros(1, np.int64)]
        yield np.zeros(1, np.int64)
        for _, vertices in VertexIds(self.store).stored_blocks(BLOCK_VERTICES):
            degree = np.zeros(vertices.size, np.int64)
            known = vertices >= 0
            degree[known] = self._degree[vertices[known]]
            ends = np.cumsum(degree) + total
            sample.append(ends[_SAMPLE - 1 :: _SAMPLE])
            total = int(ends[-1])
            yield ends
        self._sample = np.concatenate([*sample, [total]])

    def entries(self, done: Done) -> Iterator[Entries]:
        """Blocks of neighbours, a range of rows at a time."""
        files = self._deal(done)
        try:
            yield from self.workers.ordered(lambda index: self._sorted(files, index), range(files.bins.num_bins), most=self._num_sorting)
        finally:
            files.close()

    def _deal(self, done: Done) -> BinFiles:
        """Turn every entry into a key, in the temporary file of its range of rows."""
        num_entries = self.store.array(f"{self.group}/indices").length
        dtypes = _dtypes(self.store, self.group, self.column)
        payload = 2 * sum(dtype.itemsize for dtype in dtypes)
        longest = _longest_rows(self.store, self.group)
        capacity, block = _sizes(self._budget, self.workers.num_threads, payload, longest + num_entries // MAX_BINS + MIN_ENTRIES)
        share = min(BIN_ENTRIES, capacity // 2, max(MIN_ENTRIES, capacity * self.workers.num_threads - longest))
        num_bins = min(MAX_BINS, max(1, -(-num_entries // max(1, share))))
        files = BinFiles(
            Folder(self._scratch / f"entries-{self.group}"), balanced_bins(0, self.num_rows << KEY_SHIFT, num_bins, self._below), dtypes
        )

        def partition_vertices(rows: RowBlock) -> None:
            scratch, size = self.workers.scratch, rows.num_entries
            keys = scratch.get("keys", size, np.uint64)
            entries, values = read_entries(self.store, self.group, self.column, rows.start, rows.stop)
            row_keys(rows.indptr, rows.first_row, rows.start, entries, self._position, keys)
            files.append((keys,) if values is None else (keys, values), scratch)
            done(size)

        self.workers.each(partition_vertices, row_blocks(self.store, self.group, max_entries=block, whole_rows=False))
        largest = int(files.counts.max(initial=0))
        if largest > capacity * self.workers.num_threads:
            need = self._budget.promised_bytes + largest * (ENTRY_BYTES + payload)
            raise BudgetError(
                f"the largest of {num_bins} ranges of rows has {largest} entries, but the memory budget "
                f"{format_bytes(self._budget.limit_bytes)} sorts {capacity * self.workers.num_threads}; {enough_memory(need)}"
            )
        self._num_sorting = min(self.workers.num_threads, capacity * self.workers.num_threads // max(1, largest))
        return files

    def _below(self, keys: Array) -> Array:
        """Entries of the rows before each key, interpolated between the sampled rows."""
        rows = np.append(np.arange(self._sample.size - 1) * _SAMPLE, self.num_rows)
        return np.interp(keys.astype(np.float64) / 2.0**KEY_SHIFT, rows, self._sample)

    def _sorted(self, files: BinFiles, index: int) -> Entries:
        keys, *values = files.read(index, self.workers.scratch)
        files.remove(index)
        if values:
            # blocks that cut parallel edges come in any order
            is_simple = self.store.attributes.parallel_edges is False
            order = np.argsort(keys, kind="stable") if is_simple else np.lexsort((values[0], keys))
            return _low_halves(keys)[order], values[0][order]
        keys.sort()
        return _low_halves(keys).copy(), None


def _dtypes(store: CSRStore, group: str, column: str | None) -> list[np.dtype[Any]]:
    """Dtypes of what travels beside the keys."""
    return [] if column is None else [store.array(f"{group}/{column}").dtype]


def _low_halves(keys: Array) -> Any:
    return keys.view(np.uint32)[::2]


def charge_input_order(store: CSRStore, groups: Sequence[str], column: str | None, *, budget: Budget, num_threads: int) -> None:
    """Reserve what `InputRows` holds at the least, of one group after the other.

    Raises
    ------
    BudgetError
        It does not fit.
    """
    payload = 2 * sum(dtype.itemsize for dtype in _dtypes(store, groups[0], column))
    degree_bytes = 4 if store.attributes.num_stored_edges < 2**32 else 8
    budget.reserve("vertex positions and degrees", (4 + degree_bytes) * store.num_rows + 8 * store.attributes.num_input_vertices // _SAMPLE)
    names = [f"{groups[0]}/indptr", ORDER, *(f"{group}/indices" for group in groups)]
    budget.reserve(
        "streams", stream_bytes(store) + BLOCK_ROWS * 24 + (num_threads + 1) * max(decoded_bytes(store.array(one)) for one in names)
    )
    budget.reserve(SORTING, max(_least_bytes(store, group, payload, num_threads) for group in groups))


def charge_store_order(store: CSRStore, column: str | None, *, budget: Budget) -> None:
    """Reserve what `StoreRows` holds: blocks of entries as read and as written."""
    arrays = [store.array(f"out/{name}") for name in ("indptr", "indices", *([] if column is None else [column]))]
    budget.reserve("blocks", sum(4 * BLOCK_ENTRIES * array.dtype.itemsize + decoded_bytes(array) for array in arrays))


def input_order_calls(store: CSRStore, column: str | None) -> list[Call]:
    """Return what makes keys and deals them calls, with arguments of the types that it has."""
    entries = np.empty(0, store.array("out/indices").dtype.newbyteorder("="))
    keys = row_keys, (np.zeros(1, np.int64), 0, 0, entries, np.empty(0, np.uint32), np.empty(0, np.uint64))
    return [keys, *dealing_calls(_dtypes(store, "out", column)), *packing_calls()]


def stream_bytes(store: CSRStore) -> int:
    """Return what a stream of the ids holds."""
    return BLOCK_VERTICES * (_STREAM_BYTES + 8 * id_bytes(store, SORTED_ID))


def _least_bytes(store: CSRStore, group: str, payload: int, num_threads: int) -> int:
    """Bytes without which entries cannot be distributed and sorted: a range of rows is an even share, and at most `_SAMPLE` rows more."""
    share = store.attributes.num_stored_edges // MAX_BINS + MIN_ENTRIES
    largest = share + _longest_rows(store, group)
    each = MIN_ENTRIES * (ENTRY_BYTES + BLOCK_BYTES + 2 * payload)
    return max(num_threads * each, largest * (ENTRY_BYTES + payload) + MIN_ENTRIES * (BLOCK_BYTES + payload) * num_threads)


def _longest_rows(store: CSRStore, group: str) -> int:
    """Entries of the `_SAMPLE` longest rows together."""
    longest = np.empty(0, np.int64)
    for _, degree in degree_blocks(store, group):
        lengths = np.concatenate([longest, degree])
        longest = np.partition(lengths, max(0, lengths.size - _SAMPLE))[-_SAMPLE:]
    return int(longest.sum())


def _sizes(budget: Budget, num_threads: int, payload: int, largest: int) -> tuple[int, int]:
    """Entries of a temporary file at most, and of a block, by what is left of the budget beside what is charged for sorting.

    One thread alone may have to sort `largest` of them, for which all memory of the threads but their blocks is there.
    """
    free = (budget.available_bytes + budget.reservations[SORTING]) // num_threads
    beside = (free - largest * (ENTRY_BYTES + payload) // num_threads) // (BLOCK_BYTES + payload)
    block = min(BLOCK_ENTRIES, free // 3 // (BLOCK_BYTES + payload), max(MIN_ENTRIES, beside))
    return (free - block * (BLOCK_BYTES + payload)) // (ENTRY_BYTES + payload), block
