"""Which edges of a graph count, by a condition on their columns: evaluated once for a group of lists, when these are first read.

In: a graph and an `EdgeCondition`. Out: `EdgeMasks`, with a `oocgraph.store.arrays.Mask` of each array that is read otherwise: an edge that
does not count leads to the vertex that it comes from, in lists and planes alike, and has weight 0. So whatever loads, searches or checks a
graph finds nothing along it, and need not know of the condition. A bit for each stored edge is held, and where rows begin.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from functools import cached_property
from queue import SimpleQueue
from typing import TYPE_CHECKING

import numpy as np

from oocgraph.config import settings
from oocgraph.errors import CorruptStoreError, StoreError
from oocgraph.kernels import live as kernels
from oocgraph.kernels.live import NO_MASK, NO_ROWS, REPLACE, EdgeMask
from oocgraph.kernels.load import load_kernels
from oocgraph.kernels.rows import Repair, RowLookup, explicit_rows
from oocgraph.store.arrays import REMEDY, Mask, PlainArray, decoded_bytes
from oocgraph.store.edge_conditions import EdgeCondition
from oocgraph.store.row_lookup import sorted_lookup
from oocgraph.store.rows import edge_blocks, map_bounded
from oocgraph.types import Array

if TYPE_CHECKING:
    from oocgraph.store.graph import CSRStore

BLOCK_EDGES = 1 << 18
"""Edges of which a thread reads the columns at once; a multiple of 64."""

MOST_THREADS = 8

BLOCK_VERTICES = 1 << 16
"""Vertices whose dead edges are counted at once."""


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
        self._found: dict[str, EdgeMask] = {}
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
        a, total = self.store.attributes, 0
        for group in groups:
            arrays = [self.store.array(f"{group}/{name}") for name in self.condition.columns]
            edge_bytes = sum(array.dtype.itemsize for array in arrays) + 4
            block_bytes = edge_bytes * self._block_edges(group) + sum(decoded_bytes(array) for array in arrays)
            rows_bytes = 0 if self._is_sorted(group) else 8 * (a.num_vertices + 1)
            total += 8 * (a.num_stored_edges // 64 + 1) + rows_bytes + 2 * self._threads * block_bytes
        return total + self.condition.table_bytes + 8 * a.num_self_loops

    def found(self, group: str) -> EdgeMask:
        """Return which edges of a group count; the first call reads their columns.

        Raises
        ------
        StoreError, CorruptStoreError
            A column is not there, or cannot be read.
        """
        with self._finding:
            if group not in self._found:
                if not self._found:
                    self.condition.fill_tables()
                self._found[group] = EdgeMask(self._evaluate(group), self._rows(group))
            return self._found[group]

    def count_dead(self, group: str, chosen: Callable[[Array], Array]) -> int:
        """Count the edges in the rows of chosen vertices that do not count."""
        mask, n = self.found(group), self.store.num_rows
        blocks = (np.arange(first, min(n, first + BLOCK_VERTICES)) for first in range(0, n, BLOCK_VERTICES))
        return sum(int(kernels.count_dead(mask, int(rows[0]), np.asarray(chosen(rows)).astype(np.uint8))) for rows in blocks)

    @cached_property
    def live_loops(self) -> Array:
        """Vertex of each kept self-loop that counts, ascending: (n,) int64. Reads all neighbours."""
        loops, size = np.empty(self.store.attributes.num_self_loops, np.int64), 0
        if not loops.size:
            return loops
        live = self.found("out").live
        for block, (neighbours,) in edge_blocks(self.store, "out", ["indices"], BLOCK_EDGES):
            size = kernels.list_live_loops(block.indptr, block.first_row, block.start, neighbours, live, loops, size)
        if size > loops.size:
            raise CorruptStoreError(f"{self.store.url}: out/indices has more self-loops than vertices/self_loops; {REMEDY}")
        return loops[:size]

    @property
    def _threads(self) -> int:
        return min(MOST_THREADS, settings().threads)

    def _is_sorted(self, group: str) -> bool:
        return self.store.attributes.vertex_order == "degree" and group == self.store.pull_group

    def _rows(self, group: str) -> RowLookup:
        if self._is_sorted(group):
            return sorted_lookup(self.store)
        return explicit_rows(self.store.read(f"{group}/indptr"))

    def _block_edges(self, group: str) -> int:
        units = [self.store.array(f"{group}/{name}").unit for name in self.condition.columns]
        return max(BLOCK_EDGES, *(-(-unit // 64) * 64 for unit in units))

    def _evaluate(self, group: str) -> Array:
        """Read the columns of a group, and note which edges count."""
        for name in self.condition.columns:
            if not self.store.has_array(f"{group}/{name}"):
                raise StoreError(f"{self.store.url}: column {name!r} of {group}/ is not there; build the graph again")
        arrays = {name: self.store.array(f"{group}/{name}") for name in self.condition.columns}
        num_edges, step, threads = self.store.attributes.num_stored_edges, self._block_edges(group), self._threads
        live = np.zeros(num_edges // 64 + 1, np.uint64)
        as_bytes = live.view(np.uint8)
        slots: SimpleQueue[dict[str, Array]] = SimpleQueue()
        for _ in range(threads):
            slots.put(
                {name: np.empty(min(step, num_edges), array.dtype) for name, array in arrays.items() if isinstance(array, PlainArray)}
            )

        def evaluate(start: int) -> None:
            stop, room = min(num_edges, start + step), slots.get()
            try:
                block = {}
                for name, array in arrays.items():
                    if name in room:
                        block[name] = room[name][: stop - start]
                        array.read_into(start, block[name])
                    else:
                        block[name] = array.read(start, stop)
                bits = np.packbits(self.condition.test(block), bitorder="little")
                as_bytes[start // 8 : start // 8 + bits.size] = bits
            finally:
                slots.put(room)

        for _ in map_bounded(evaluate, range(0, num_edges, step), threads):
            continue
        return live

    def _load_kernels(self) -> None:
        """Bring the kernels into memory, before it is counted."""
        vertices, numbers, words = np.empty(0, self.store.index_dtype), np.empty(0, np.int64), np.empty(0, np.uint64)
        load_kernels([
            *((replace, (0, 0, 0, 0)) for replace in REPLACE.values()),
            (kernels.replace_dead_of_plane, (NO_MASK, 0, 0, vertices)),
            (kernels.count_dead, (NO_MASK, 0, np.empty(0, np.uint8))),
            (kernels.list_live_loops, (numbers, 0, 0, vertices, words, numbers, 0)),
        ])  # fmt: skip


class _ListMask:
    """Of neighbours, or of weights, of so many bytes: `oocgraph.store.arrays.Mask`."""

    def __init__(self, masks: EdgeMasks, group: str, itemsize: int, *, is_weight: bool) -> None:
        self._masks, self._group, self._itemsize, self._is_weight = masks, group, itemsize, is_weight

    @cached_property
    def _words(self) -> Array:
        found = self._masks.found(self._group)
        return kernels.words_of(found._replace(rows=NO_ROWS) if self._is_weight else found)

    @property
    def repair(self) -> Repair:
        """What kernels take."""
        return kernels.repair_by(self._itemsize, self._words)

    def applied(self, start: int, values: Array) -> Array:
        """Replace those that do not count."""
        values = _changeable(values)
        REPLACE[self._itemsize](self._words.ctypes.data, start, values.ctypes.data, values.size)
        return values


class _PlaneMask:
    """Of planes, which kernels do not read themselves: `oocgraph.store.arrays.Mask`."""

    def __init__(self, masks: EdgeMasks, group: str) -> None:
        self._masks, self._group = masks, group

    @property
    def repair(self) -> Repair:
        raise TypeError("planes are not read by kernels")

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
