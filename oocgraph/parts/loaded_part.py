"""One part of a partitioned traversal: its local CSR, the state of its masters, and what it has to tell its peers.

In: a part, its `Addresses`, its edges. Out: `LoadedPart`, loaded once, and for each search a `PartTraversal`: the steps of an iteration::

    begin(messages of the new frontier)     own masters and mirrors that are in it become the rows to expand
    expand                                  follow their edges; each local vertex is noted at most once in the whole search
    candidates() -> messages                mirrors found, with parents, for the parts that own them; masters found are applied already
    apply(messages of candidates)           drop the visited, set the parents of the others
    frontier() -> messages                  the new masters, for the parts that have mirrors of them with out-edges

Levels are not stored while it runs: masters are appended to a queue as they are found, and a level is a range of it.

Buluç and Madduri, "Parallel Breadth-First Search on Distributed Memory Systems", SC 2011, algorithms 2 and 3. Differs from them in that
a mirror is sent once in a search, not once in each level that finds it again; and in that a partition may be any vertex cut.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from oocgraph.exchange.addresses import ALIGNMENT, Addresses
from oocgraph.exchange.messages import Message, pack_messages
from oocgraph.kernels import cpu, traverse
from oocgraph.parts.device_edges import DeviceLocalEdges
from oocgraph.parts.local_edges import LocalEdges
from oocgraph.store.partitions import Part
from oocgraph.types import UNREACHED, Array, no_parent

SORT_SHARE = 1 / 64
"""Share of the rows above which a frontier is put into order by a bitmap, below by sorting; in order it is expanded 3.6 times as fast."""

MIN_RANGE_EDGES = 1 << 15
"""Edges of a range of rows that is worth a thread's while: handing one over takes 15 us, expanding these about 100 us."""

PIECE_VERTICES = 1 << 16
"""Vertices put in store order at once."""

ASKED_VERTICES = 1 << 18
"""Vertices of which all parts are asked at once what they know: `PartTraversal.values_between`."""

_NO_MESSAGES: dict[int, Message] = {}


@dataclass(slots=True, kw_only=True)
class LoadedPart:
    """What is held of one part, for any number of searches, one at a time.

    Attributes
    ----------
    index
        Its number.
    num_masters, num_isolated, num_rows : int
        Masters with a row; those without; rows.
    addresses
        How its messages name vertices.
    indptr : (num_rows + 1,) int64
    global_id : (num_rows,) index dtype of the graph
    isolated : (num_isolated,) index dtype of the graph
        Numbers in the graph of masters without a row.
    edges
        Its edges.
    """

    index: int
    num_masters: int
    num_isolated: int
    num_rows: int
    addresses: Addresses
    indptr: Array
    global_id: Array
    isolated: Array
    edges: LocalEdges | DeviceLocalEdges

    @classmethod
    def load(
        cls, part: Part, addresses: Addresses, group: str, dtype: np.dtype[Any], edges: Callable[[Array], LocalEdges | DeviceLocalEdges]
    ) -> LoadedPart:
        """Read what is held; `edges` makes edges of row pointers."""
        pointers = part.store.array(f"{group}/indptr")
        indptr = pointers.read(0, pointers.length).astype(np.int64, copy=False)
        return cls(
            index=part.index, num_masters=part.num_masters, num_isolated=part.num_isolated, num_rows=part.num_vertices,
            addresses=addresses, indptr=indptr, global_id=part.global_id().astype(dtype), isolated=part.isolated_masters().astype(dtype),
            edges=edges(indptr),
        )  # fmt: skip

    @property
    def device_bytes(self) -> int:
        """Bytes of device memory that it holds."""
        return self.edges.device_bytes if isinstance(self.edges, DeviceLocalEdges) else 0

    @property
    def num_slots(self) -> int:
        """Masters."""
        return self.num_masters + self.num_isolated

    def ids_of(self, slots: Array) -> Array:
        """Return the numbers in the graph of some slots."""
        ids = np.empty(slots.size, self.global_id.dtype)
        has_row = slots < self.num_masters
        ids[has_row] = self.global_id[slots[has_row]]
        ids[~has_row] = self.isolated[slots[~has_row] - self.num_masters]
        return ids

    def slots_between(self, first: int, stop: int) -> Array:
        """Return the slots of the masters numbered ``first .. stop - 1`` in the graph."""
        bounds = [first, stop]
        return np.concatenate(
            [
                np.arange(*np.searchsorted(self.global_id[: self.num_masters], bounds)),
                self.num_masters + np.arange(*np.searchsorted(self.isolated, bounds)),
            ]
        )

    def slots_of(self, vertices: Array) -> Array:
        """Return the slots of those of some vertices (numbers in the graph) whose masters are here."""
        found = []
        for first, ids in ((0, self.global_id[: self.num_masters]), (self.num_masters, self.isolated)):
            at = np.searchsorted(ids, vertices)
            here = at < ids.size
            here[here] = ids[at[here]] == vertices[here]
            found.append(at[here] + first)
        return np.concatenate(found)


def row_bytes(part: Part, itemsize: int) -> int:
    """Bytes of row pointers and ids that a part holds."""
    return 8 * (part.num_vertices + 1) + itemsize * (part.num_vertices + part.num_isolated)


def search_bytes(part: Part, num_copies: int, num_parts: int, itemsize: int) -> int:
    """Bytes that a search holds of one part: state, queues, and messages on their way."""
    num_slots = part.num_masters + part.num_isolated
    num_places, num_cast_places = part.num_mirrors + ALIGNMENT * num_parts, num_copies + ALIGNMENT * num_parts
    bitmaps = (2 * part.num_vertices + part.num_isolated + num_places + num_cast_places) // 8 + 40
    state = (itemsize + 4) * num_slots + itemsize * num_places + 4 * part.num_mirrors + 4 * part.num_vertices + 4 * num_copies
    messages = 2 * (4 + itemsize) * part.num_mirrors + 8 * num_copies
    return bitmaps + state + messages


def answer_bytes(part: Part, itemsize: int) -> int:
    """Bytes that `PartTraversal.values_between` takes besides: levels by slot, then slots, numbers, parents and levels of an answer."""
    num_slots = part.num_masters + part.num_isolated
    return 4 * num_slots + min(num_slots, ASKED_VERTICES) * (32 + 2 * itemsize)


class PartTraversal:
    """The state of one search in one part.

    Parameters
    ----------
    loaded
        What is held.
    sources : (num_sources,) int64
        Numbers in the graph, distinct; those whose masters are here are visited at level 0.

    Attributes
    ----------
    parent : (num_slots,) index dtype of the graph
    order : (num_slots,) uint32
        Masters found so far, level by level.
    level_ends : list of int
        Where each level ends in `order`.
    num_edges : int
        Entries of the rows expanded so far.
    """

    def __init__(self, loaded: LoadedPart, sources: Array) -> None:
        m, a, dtype = loaded, loaded.addresses, loaded.global_id.dtype
        self.loaded = loaded
        self.seen = np.zeros((m.num_rows + m.num_isolated + 63) >> 6, np.uint64)
        self.parent = np.full(m.num_slots, no_parent(dtype), dtype)
        self.order = np.empty(m.num_slots, np.uint32)
        self.found = np.zeros(2, np.int64)
        self.num_edges = 0
        self._place_parent = np.empty(a.num_places, dtype)
        self._outbox = np.empty(a.place_of.size, np.uint32)
        self._words, self._cast_words = np.zeros(a.num_places >> 6, np.uint64), np.zeros(a.num_cast_places >> 6, np.uint64)
        self._casts = np.empty(a.num_copies, np.uint32)
        self._rows, self._marked = np.empty(m.num_rows, np.uint32), np.zeros((m.num_rows + 63) >> 6, np.uint64)
        self._num_rows = self._sent = 0
        self._level: Array | None = None
        slots = m.slots_of(sources)
        traverse.apply_list(
            np.arange(slots.size, dtype=np.uint32), m.ids_of(slots), slots.astype(np.uint32), *self._sizes, self.seen, self.parent,
            self.order, self.found,
        )  # fmt: skip
        self.level_ends = [int(self.found[0])]

    @property
    def _sizes(self) -> tuple[int, int]:
        return self.loaded.num_masters, self.loaded.num_rows

    @property
    def rows(self) -> Array:
        """Rows of the frontier: (n,) uint32, ascending."""
        return self._rows[: self._num_rows]

    @property
    def num_new(self) -> int:
        """Masters that the last complete level has here."""
        return self.level_ends[-1] - (self.level_ends[-2] if len(self.level_ends) > 1 else 0)

    def _new_slots(self) -> Array:
        return self.order[self.level_ends[-1] - self.num_new : self.level_ends[-1]]

    def frontier(self) -> dict[int, Message]:
        """Return the messages that tell of the last level's masters."""
        a = self.loaded.addresses
        if not a.num_copies or not self.num_new:
            return _NO_MESSAGES
        count = traverse.spread(self._new_slots(), a.copy_first, a.copy_place, self._casts)
        return pack_messages(self._casts[:count], a.cast_first, a.cast_length, self._cast_words, None)

    def begin(self, messages: Mapping[int, Message]) -> int:
        """Make the last level's masters and the mirrors named the rows to expand; returns the number of their edges."""
        m = self.loaded
        count = traverse.own_rows(self._new_slots(), m.num_masters, m.indptr, self._rows, 0)
        for q, message in messages.items():
            receive = traverse.receive_bitmap if message.dense else traverse.receive_list
            count = receive(message.vertices, m.addresses.row_of[q], self.seen, self._rows, count)
        self._num_rows = count
        if count > SORT_SHARE * self._rows.size:
            cpu.mark_vertices(self._rows, count, self._marked)
            cpu.list_vertices(self._marked, self._rows)
        else:
            self._rows[:count].sort()
        edges = int(traverse.count_row_edges(self.rows, m.indptr))
        self.num_edges += edges
        return edges

    def ranges(self, max_ranges: int) -> list[tuple[int, int]]:
        """Cut the rows to expand into at most so many ranges, which threads may expand at a time."""
        edges = self.loaded.edges
        if isinstance(edges, DeviceLocalEdges):
            return [(0, self._num_rows)] if self._num_rows else []
        return edges.cut(self.rows, max_ranges, MIN_RANGE_EDGES) if self._num_rows else []

    def expand(self, first: int, stop: int, staging: Array | None) -> None:
        """Follow the edges of a range of rows."""
        m, a = self.loaded, self.loaded.addresses
        if isinstance(m.edges, DeviceLocalEdges):
            self._take(*m.edges.expand(self.rows[first:stop], self.seen))
            return

        def call(rows: Array, begin: Array, end: Array, by_row: bool, edges: Array) -> None:
            traverse.expand(
                rows, 0, rows.size, begin, end, by_row, edges, m.num_masters, self.seen, m.global_id, self.parent, self.order, a.place_of,
                self._place_parent, self._outbox, self.found,
            )  # fmt: skip

        m.edges.pieces(self.rows[first:stop], call, staging)

    def _take(self, found: Array, found_from: Array) -> None:
        """Take what a device has found: local vertices, and the row of each."""
        m, a, parents = self.loaded, self.loaded.addresses, self.loaded.global_id[found_from]
        is_master = found < m.num_masters
        masters, mirrors = found[is_master], a.place_of[found[~is_master] - m.num_masters]
        self.parent[masters], self._place_parent[mirrors] = parents[is_master], parents[~is_master]
        for which, queue, values in ((0, self.order, masters), (1, self._outbox, mirrors)):
            queue[self.found[which] : self.found[which] + values.size] = values
            self.found[which] += values.size

    def candidates(self) -> dict[int, Message]:
        """Return the messages of the mirrors found."""
        a, found = self.loaded.addresses, int(self.found[1])
        places = self._outbox[self._sent : found]
        self._sent = found
        return pack_messages(places, a.first, a.length, self._words, self._place_parent)

    def apply(self, messages: Mapping[int, Message]) -> int:
        """Take candidates, and end the level; returns how many masters it has here."""
        for p, message in messages.items():
            apply = traverse.apply_bitmap if message.dense else traverse.apply_list
            slots = self.loaded.addresses.slot_of[p]
            apply(message.vertices, message.parents, slots, *self._sizes, self.seen, self.parent, self.order, self.found)
        self.level_ends.append(int(self.found[0]))
        return self.num_new

    def values_between(self, first: int, stop: int) -> tuple[Array, Array, Array]:
        """Return number, parent and level of the reached ones of the masters numbered ``first .. stop - 1`` in the graph.

        Call it when the search has ended. Arrays are (n,), index dtype of the graph twice, and int32.
        """
        if self._level is None:
            self._level = np.full(self.loaded.num_slots, UNREACHED, np.int32)
            for start in range(0, num_found := int(self.found[0]), PIECE_VERTICES):
                end = min(num_found, start + PIECE_VERTICES)
                self._level[self.order[start:end]] = self.levels(start, end)
        slots = self.loaded.slots_between(first, stop)
        slots = slots[self._level[slots] != UNREACHED]
        return self.loaded.ids_of(slots), self.parent[slots], self._level[slots]

    def levels(self, start: int, stop: int) -> Array:
        """Return the levels of masters in the order in which they were found, from one to before another: (stop - start,) int32."""
        ends = np.clip(self.level_ends, start, stop)
        return np.repeat(np.arange(ends.size, dtype=np.int32), np.diff(ends, prepend=start))
