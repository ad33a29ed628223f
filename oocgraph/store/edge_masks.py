"""Which edges of a graph count, by a condition on their columns: evaluated once, block by block, when lists are first read there.

In: a graph and an `EdgeCondition`. Out: `EdgeMasks`, with a `oocgraph.store.arrays.Mask` of each array that is read otherwise: an edge that
does not count leads to the vertex that it comes from, in lists and planes alike, and has weight 0. So whatever loads, searches or checks a
graph finds nothing along it, and need not know of the condition. A bit for each stored edge is held, and where rows begin.

The first to read a range of lists evaluates the condition there: threads that load lists do so between their reads. Planes, and
kernels that read pages of any lists, need all of it first.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Iterable, Iterator
from queue import SimpleQueue
from typing import TYPE_CHECKING

import numpy as np

from oocgraph.compiled.load import load_kernels
from oocgraph.config import settings
from oocgraph.errors import CorruptStoreError, StoreError
from oocgraph.kernels import live as kernels
from oocgraph.kernels.live import NO_MASK, NO_ROWS, REPLACE, EdgeMask
from oocgraph.kernels.rows import Repair, RowLookup, explicit_rows
from oocgraph.lazy import cached_property
from oocgraph.store.arrays import REMEDY, Mask, PlainArray, StoredArray, decoded_bytes
from oocgraph.store.edge_conditions import EdgeCondition
from oocgraph.store.row_lookup import sorted_lookup
from oocgraph.store.rows import are_by_degree, edge_blocks, map_bounded
from oocgraph.types import Array

if TYPE_CHECKING:
    from oocgraph.store.graph import CSRStore

LEAST_SHIFT, MOST_SHIFT, BLOCKS_SHIFT = 16, 20, 6
"""Binary logarithms of the edges whose condition a thread evaluates at once, and of the blocks that a graph of fewer has. Two threads that
evaluate 128 million edges take 21 ms in blocks of 2^20, 35 ms of 2^19, 60 ms of 2^18: they wait for each other between short calls."""

TESTED_EDGES = 120 << 10
"""Edges tested at once: what that makes, a byte an edge, is allocated without a system call, and its pages are not touched first."""

GRAIN_EDGES = 1 << 14
"""Fewest edges whose condition is evaluated, where columns are not compressed."""

LOOP_EDGES = 1 << 18
"""Edges that are read at once where self-loops are looked for."""

MOST_THREADS = 4
"""Threads that evaluate at a time."""

BLOCK_VERTICES = 1 << 17
"""Vertices whose dead edges a thread counts at once."""


_Rooms = SimpleQueue[dict[str, Array]]
"""Memory for blocks of columns, by name, for each thread that evaluates at a time."""


class EdgeMasks:
    """Which edges of a graph count.

    Parameters
    ----------
    store
        The graph, all of whose edges count.
    condition
        Of its columns.
    """

    def __init__(self, store: CSRStore, condition: EdgeCondition) -> None:
        self.store, self.condition = store, condition
        self._groups: dict[str, _GroupBits] = {}
        self._rooms: _Rooms = SimpleQueue()
        for _ in range(_num_threads()):
            self._rooms.put({})
        self._finding = threading.RLock()
        self._load_kernels()

    def of(self, name: str, itemsize: int) -> Mask | None:
        """Return the mask of an array of the graph, by name and the bytes of a value; None where it is read as it is."""
        group, _, rest = name.partition("/")
        if group not in self.store.attributes.stored_groups:
            return None
        if rest == "planes/indices":
            return _PlaneMask(self, group)
        if rest == "indices" or self.store.attributes.columns.get(rest, "string") != "string":
            return _ListMask(self, group, itemsize, is_weight=rest != "indices")
        return None

    def held_bytes(self, groups: Iterable[str]) -> int:
        """Return what is held, at the most, once lists of some groups have been read."""
        a, total, block_bytes = self.store.attributes, 0, 0
        for group in groups:
            arrays = [self.store.array(f"{group}/{name}") for name in self.condition.columns]
            edge_bytes = sum(array.dtype.itemsize for array in arrays) + 4
            block_bytes = max(block_bytes, edge_bytes * _block_edges(arrays) + max(map(decoded_bytes, arrays), default=0))
            rows_bytes = 0 if are_by_degree(self.store, group) else 8 * (a.num_vertices + 1)
            total += 8 * (a.num_stored_edges // 64 + 1) + rows_bytes
        return total + _num_threads() * block_bytes + self.condition.table_bytes + 8 * a.num_self_loops

    def found(self, group: str, start: int = 0, stop: int | None = None, *, widen: bool = True) -> EdgeMask:
        """Return which edges of a group count: all that do, or those of a range at least. Reads columns that have not been read.

        Unless `widen` is False, the condition is evaluated for as many edges around the range as are evaluated at once.

        Raises
        ------
        StoreError, CorruptStoreError
            A column is not there, or cannot be read.
        """
        with self._finding:
            if group not in self._groups:
                if not self._groups:
                    self.condition.fill_tables()
                self._groups[group] = _GroupBits(self.store, group, self.condition, self._rows(group), self._rooms)
            bits = self._groups[group]
            if stop is None:
                bits.evaluate_all()
        if stop is not None:
            bits.evaluate(start, stop, widen=widen)
        return bits.mask

    def count_dead(self, group: str, chosen: Callable[[Array], Array]) -> int:
        """Count the edges in the rows of chosen vertices that do not count."""
        mask, n = self.found(group), self.store.num_rows

        def count(first: int) -> int:
            rows = np.arange(first, min(n, first + BLOCK_VERTICES))
            return int(kernels.count_dead(mask, first, np.asarray(chosen(rows)).astype(np.uint8)))

        return sum(map_bounded(count, range(0, n, BLOCK_VERTICES), _num_threads()))

    @cached_property
    def live_loops(self) -> Array:
        """Vertex of each kept self-loop that counts, ascending: (n,) int64. Reads all neighbours."""
        loops, size = np.empty(self.store.attributes.num_self_loops, np.int64), 0
        if not loops.size:
            return loops
        live = self.found("out").live
        for block, (neighbours,) in edge_blocks(self.store, "out", ["indices"], LOOP_EDGES):
            size = kernels.list_live_loops(block.indptr, block.first_row, block.start, neighbours, live, loops, size)
        if size > loops.size:
            raise CorruptStoreError(f"{self.store.url}: out/indices has more self-loops than vertices/self_loops; {REMEDY}")
        return loops[:size]

    def _rows(self, group: str) -> RowLookup:
        if are_by_degree(self.store, group):
            return sorted_lookup(self.store)
        return explicit_rows(self.store.read(f"{group}/indptr"))

    def _load_kernels(self) -> None:
        """Bring the kernels into memory, before it is counted."""
        vertices, numbers, words = np.empty(0, self.store.index_dtype), np.empty(0, np.int64), np.empty(0, np.uint64)
        load_kernels([
            *((replace, (0, 0, 0, 0)) for replace in REPLACE.values()),
            (kernels.replace_dead_of_plane, (NO_MASK, 0, 0, vertices)),
            (kernels.count_dead, (NO_MASK, 0, np.empty(0, np.uint8))),
            (kernels.list_live_loops, (numbers, 0, 0, vertices, words, numbers, 0)),
        ])  # fmt: skip


class _GroupBits:
    """The bits of one group.

    Attributes
    ----------
    mask : EdgeMask
        Its bits tell of the blocks that were evaluated.

    Raises
    ------
    StoreError
        A column is not there.
    """

    def __init__(self, store: CSRStore, group: str, condition: EdgeCondition, rows: RowLookup, rooms: _Rooms) -> None:
        for name in condition.columns:
            if not store.has_array(f"{group}/{name}"):
                raise StoreError(f"{store.url}: column {name!r} of {group}/ is not there; build the graph again")
        self._condition, self._num_edges = condition, store.attributes.num_stored_edges
        self._arrays = {name: store.array(f"{group}/{name}") for name in condition.columns}
        self._step = _block_edges(self._arrays.values())
        self._grain = min(self._step, GRAIN_EDGES) if all(array.unit == 1 for array in self._arrays.values()) else self._step
        self._is_evaluated = np.zeros(-(-self._num_edges // self._grain), bool)
        self.mask = EdgeMask(np.zeros(self._num_edges // 64 + 1, np.uint64), rows)
        self._rooms = rooms

    def evaluate(self, start: int, stop: int, *, widen: bool) -> None:
        """Evaluate what has not been of a range, in this thread; where two do so at a time, they find the same."""
        unit = self._step if widen else self._grain
        for piece in self._missing(start // unit * unit, -(-stop // unit) * unit):
            self._evaluate(*piece)

    def evaluate_all(self) -> None:
        """Evaluate what has not been, with all threads."""
        missing = list(self._missing(0, self._num_edges))
        for _ in map_bounded(lambda piece: self._evaluate(*piece), missing, _num_threads()) if missing else ():
            continue

    def _missing(self, start: int, stop: int) -> Iterator[tuple[int, int]]:
        """Cut what has not been evaluated of a range, which begins and ends with a grain, into pieces."""
        first = start // self._grain
        is_missing = ~self._is_evaluated[first : -(-stop // self._grain)]
        if is_missing.any():
            ends = np.flatnonzero(np.diff(is_missing, prepend=False, append=False)) + first
            for begin, end in (ends.reshape(-1, 2) * self._grain).tolist():
                last = min(end, self._num_edges)
                yield from ((at, min(last, at + self._step)) for at in range(begin, last, self._step))

    def _evaluate(self, start: int, stop: int) -> None:
        room = self._rooms.get()
        try:
            block = {}
            for name, array in self._arrays.items():
                if isinstance(array, PlainArray):
                    if name not in room:
                        room[name] = np.empty(min(self._step, self._num_edges), array.dtype)
                    block[name] = room[name][: stop - start]
                    array.read_into(start, block[name])
                else:
                    block[name] = array.read(start, stop)
            live = self.mask.live.view(np.uint8)[start // 8 : -(-stop // 8)]
            for first in range(0, stop - start, TESTED_EDGES):
                tested = {name: values[first : first + TESTED_EDGES] for name, values in block.items()}
                bits = np.packbits(self._condition.test(tested), bitorder="little")
                live[first // 8 : first // 8 + bits.size] = bits
        finally:
            self._rooms.put(room)
        self._is_evaluated[start // self._grain : -(-stop // self._grain)] = True


def _num_threads() -> int:
    return min(MOST_THREADS, settings().threads)


def _block_edges(arrays: Collection[StoredArray]) -> int:
    """Return how many edges are evaluated at once, a multiple of 64: a share of all, or what is decoded at once."""
    shift = max(array.length for array in arrays).bit_length() - BLOCKS_SHIFT
    return max(1 << min(max(shift, LEAST_SHIFT), MOST_SHIFT), *(-(-array.unit // 64) * 64 for array in arrays))


class _ListMask:
    """Of neighbours, or of weights, of so many bytes: `oocgraph.store.arrays.Mask`."""

    def __init__(self, masks: EdgeMasks, group: str, itemsize: int, *, is_weight: bool) -> None:
        self._masks, self._group, self._itemsize, self._is_weight = masks, group, itemsize, is_weight

    @property
    def repair(self) -> Repair:
        """What kernels take."""
        self._masks.found(self._group)
        return kernels.repair_by(self._itemsize, self._words)

    def live_in(self, start: int, stop: int) -> Array:
        """Return the bits, of a range at least."""
        return self._masks.found(self._group, start, stop, widen=False).live

    def applied(self, start: int, values: Array) -> Array:
        """Replace those that do not count."""
        values = _changeable(values)
        self._masks.found(self._group, start, start + values.size)
        REPLACE[self._itemsize](self._words.ctypes.data, start, values.ctypes.data, values.size)
        return values

    @cached_property
    def _words(self) -> Array:
        """Where the mask is; bits of blocks that are evaluated later will be in the same place."""
        found = self._masks.found(self._group, 0, 0)
        return kernels.words_of(found._replace(rows=NO_ROWS) if self._is_weight else found)


class _PlaneMask:
    """Of planes, which kernels do not read themselves: `oocgraph.store.arrays.Mask`."""

    def __init__(self, masks: EdgeMasks, group: str) -> None:
        self._masks, self._group = masks, group

    @property
    def repair(self) -> Repair:
        raise TypeError("planes are not read by kernels")

    def live_in(self, start: int, stop: int) -> Array:
        raise TypeError("planes have bits in the lists")

    def applied(self, start: int, values: Array) -> Array:
        """Replace those that do not count."""
        values, mask, offsets = _changeable(values), self._masks.found(self._group), self._masks.store.plane_offsets
        plane = int(np.searchsorted(offsets, start, side="right")) - 1
        done = 0
        while done < values.size:
            stretch = values[done : done + int(offsets[plane + 1]) - start - done]
            kernels.replace_dead_of_plane(mask, plane, start + done - int(offsets[plane]), stretch)
            done, plane = done + stretch.size, plane + 1
        return values


def _changeable(values: Array) -> Array:
    """Return values that may be changed, in the machine's byte order."""
    return values if values.flags.writeable and values.dtype.isnative else values.astype(values.dtype.newbyteorder("="))
